# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""DeepGEMM's other names through sys.modules: casts, layouts, settings, what programs test and measure with, and what is not there."""
import importlib
import inspect
import os
import socket
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import randn  # noqa: E402

import quern  # noqa: E402

pytestmark = pytest.mark.anywhere


def test_casts(dg):
    x = randn(256, 200)
    x[3, :128] = 0  # its scale is of the least amax
    for power in (False, True):
        for name, block, padded in (("per_token_cast_to_fp8", (1, 128), (256, 256)), ("per_block_cast_to_fp8", (128, 128), (256, 256)), ("per_channel_cast_to_fp8", (128, 1), (256, 200))):
            q, scales = getattr(dg, name)(x=x, use_ue8m0=power, gran_k=128)
            wide = torch.zeros(padded, device=places.TORCH)
            wide[:, :200] = x
            amax = wide.view(padded[0] // block[0], block[0], padded[1] // block[1], block[1]).abs().amax((1, 3)).clamp_min(1e-4)
            exact = amax.double() / 448
            if power:
                exact = torch.exp2(torch.ceil(torch.log2(exact)))
            assert q.dtype == torch.float8_e4m3fn and q.shape == x.shape and scales.dtype == torch.float32 and scales.is_contiguous() and q.is_contiguous()
            assert torch.allclose(scales.double(), exact, rtol=2**-23, atol=0)
            each = scales.double().repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[:, :200]
            # Half a step of e4m3: 2^-4 of the value, or 2^-10 below its normal numbers; with a little for the roundings to f32.
            assert ((q.double() * each - x.double()).abs() <= (1.001 * torch.maximum(x.double().abs() * 2**-4, each * 2**-10))).all()
    q, scales = dg.per_custom_dims_cast_to_fp8(x=x.view(4, 64, 200), dims=(0, 2), use_ue8m0=False)
    assert torch.allclose(scales, x.view(4, 64, 200).abs().amax(1).clamp_min(1e-4) / 448) and scales.shape == (4, 200)
    assert ((q.double() * scales[:, None].double() - x.view(4, 64, 200).double()).abs() <= 1.001 * torch.maximum(x.view(4, 64, 200).double().abs() * 2**-4, scales[:, None].double() * 2**-10)).all()
    with pytest.raises(ValueError, match="`x` has 100 rows, expected a multiple of 128"):
        dg.per_channel_cast_to_fp8(x[:100], True)
    for keywords in ({"gran_k": 32}, {"use_packed_ue8m0": True}):
        with pytest.raises(NotImplementedError, match=r"deep_gemm\.per_token_cast_to_fp8: `gran_k` is .* of SM100"):
            dg.per_token_cast_to_fp8(x, True, **keywords)


def test_arithmetic(dg):
    assert dg.ceil_div(257, 128) == 3 and dg.ceil_div(0, 5) == 0 and dg.align(257, 128) == 384 and dg.align(256, 128) == 256
    x = torch.tensor([1.0, 1.0000001, 0.75, 448.0, -3.0, 2.0**-20])
    assert dg.ceil_to_ue8m0(x).tolist() == [1.0, 2.0, 1.0, 512.0, 4.0, 2.0**-20]


def test_layout_of_scales(dg):
    assert [dg.get_tma_aligned_size(x, 4) for x in (1, 4, 5)] == [4, 4, 8] and dg.get_tma_aligned_size(x=17, element_size=1) == 32
    for shape in ((9, 3), (2, 9, 3), (1, 1), (0, 3)):
        sf = randn(*shape)
        out = dg.get_mn_major_tma_aligned_tensor(sf)
        height = -(-shape[-2] // 4) * 4
        assert torch.equal(out, sf) and out.stride()[-2:] == (1, height) and (len(shape) == 2 or out.stride(0) == 3 * height)
        assert dg.get_mn_major_tma_aligned_tensor(out) is out
    with pytest.raises(TypeError, match=r"`sf` is float64 \[9, 3\], expected float32"):
        dg.get_mn_major_tma_aligned_tensor(randn(9, 3).double())


def test_transform_of_scales(dg):
    per_token, per_block = randn(9, 3), randn(2, 3)
    transform = dg.transform_sf_into_required_layout
    for recipe, is_sfa in (((1, 128, 128), True), ((1, 128), None)):
        out = transform(sf=per_token, mn=9, k=300, recipe=recipe, num_groups=None, is_sfa=is_sfa, disable_ue8m0_cast=False)
        assert torch.equal(out, per_token) and out.stride() == (1, 12)
    assert transform(sf=per_block, mn=200, k=300, recipe=(1, 128, 128), is_sfa=False) is per_block
    assert transform(sf=per_block.expand(4, 2, 3), mn=200, k=300, recipe=(128, 128), num_groups=4).shape == (4, 2, 3)
    with pytest.raises(ValueError, match=r"`sf` has shape \[9, 3\], expected \[8, 3\]"):
        transform(per_token, 8, 300, (1, 128))
    for sf, recipe in ((per_token.int(), (1, 128)), (per_token, (1, 32))):
        with pytest.raises(NotImplementedError, match="others are of SM100"):
            transform(sf, 9, 300, recipe)


def test_settings(dg, caplog):
    sms = dg.get_num_sms()
    assert sms > 0
    dg.set_num_sms(new_num_sms=sms - 2)
    assert dg.get_num_sms() == sms - 2 and f"use all {sms} SMs" in caplog.text
    with pytest.raises(ValueError, match=f"`new_num_sms` is {sms + 1}, expected 1 to {sms}"):
        dg.set_num_sms(sms + 1)
    assert dg.get_tc_util() == 100 and dg.get_pdl() is False
    dg.set_tc_util(new_tc_util=50), dg.set_pdl(new_enable_pdl=True)
    assert dg.get_tc_util() == 50 and dg.get_pdl() is True
    with pytest.raises(ValueError, match="expected 0 to 100"):
        dg.set_tc_util(101)
    assert dg.get_compile_mode() == 0
    dg.set_compile_mode(mode=1), dg.use_deterministic_algorithms(True), dg.use_deterministic_algorithms(enabled=False)
    assert dg.get_compile_mode() == 1
    dg.set_compile_mode(0)
    dg.set_ignore_compile_dims(new_value=True), dg.set_block_size_multiple_of(value=(16, 32)), dg.init("", "")
    assert dg.get_mk_alignment_for_contiguous_layout() == dg.get_theoretical_mk_alignment_for_contiguous_layout(expected_m=64) == 128
    dg.set_mk_alignment_for_contiguous_layout(new_value=64)
    assert dg.get_m_alignment_for_contiguous_layout() == dg.get_k_alignment_for_contiguous_layout() == 64
    with pytest.raises(ValueError, match="`new_value` is 0, expected 1 to"):
        dg.set_mk_alignment_for_contiguous_layout(0)


def test_submodules(dg):
    """Modules that a program imports beside the package have its settings and functions of the same names."""
    for name in ("utils", "utils.layout", "utils.math", "testing", "testing.bench", "testing.numeric", "testing.utils", "utils.dist", "legacy"):
        assert importlib.import_module("deep_gemm." + name).__name__ == "deep_gemm." + name
    from deep_gemm.testing import bench, bench_kineto, calc_diff, count_bytes, get_arch_major  # noqa: F401
    from deep_gemm.testing.bench import suppress_stdout_stderr  # noqa: F401
    from deep_gemm.utils.layout import get_mk_alignment_for_contiguous_layout
    from deep_gemm.utils.math import per_token_cast_to_fp8  # noqa: F401

    dg.set_mk_alignment_for_contiguous_layout(32)
    assert get_mk_alignment_for_contiguous_layout() == 32


def test_numeric(dg):
    x, y = randn(5, 7), randn(5, 7, seed=2)
    exact = 1 - 2 * (x.double() * y.double()).sum() / (x.double() ** 2 + y.double() ** 2).sum()
    assert abs(dg.testing.calc_diff(x=x, y=y) - exact) < 1e-12 and dg.testing.calc_diff(x, x) == 0 and dg.testing.calc_diff(x * 0, x * 0) == 0
    assert torch.isnan(dg.testing.calc_diff(x, x * float("nan")))
    assert dg.testing.count_bytes(x, (x.half(), None), [y.to(torch.int8)]) == 35 * (4 + 2 + 1)


def test_bench(dg, monkeypatch, capfd):
    calls = []

    def call():
        calls.append(1)
        quern.norm.rms_norm(randn(4, 64), randn(64))
        time.sleep(0.001)

    assert 0 < dg.testing.bench(fn=call, num_warmups=2, num_tests=3, high_precision=True) < 1 and len(calls) == 5
    keywords = {"num_tests": 2, "suppress_kineto_output": True, "trace_path": None, "flush_l2": True, "with_multiple_kernels": False, "barrier": None}
    assert 0 < dg.testing.bench_kineto(fn=call, kernel_names="norm_row", **keywords) < 1
    times = dg.testing.bench_kineto(call, ("norm_row", "norm_row"), num_tests=2)
    assert isinstance(times, tuple) and len(times) == 2 and all(0 < t < 1 for t in times)
    monkeypatch.setenv("DG_USE_NVIDIA_TOOLS", "1")
    assert dg.testing.bench_kineto(call, "norm_row") == 1 and dg.testing.bench_kineto(call, ("a", "b")) == (1, 1)
    capfd.readouterr()
    with dg.testing.suppress_stdout_stderr():
        os.write(1, b"quiet")
    with dg.testing.empty_suppress():
        os.write(1, b"loud")
    assert capfd.readouterr().out == "loud"


def test_times_are_of_the_kernels_asked_for(dg, monkeypatch, caplog):
    """Whatever the profiler saw."""
    kernels = [("void gemm_a", 4, 8e-6), ("void gemm_b", 4, 4e-6), ("fill", 4, 1.0), ("splits__reduce_f32", 4, 2e-6)]
    seconds = lambda names, several=False: dg.testing.bench_kineto(len, names, num_tests=4, with_multiple_kernels=several)  # noqa: E731
    with monkeypatch.context() as patched:
        patched.setitem(dg.testing.bench_kineto.__wrapped__.__globals__, "_profiled", lambda *_: kernels)
        patched.setattr(torch.cuda, "is_available", lambda: True)
        assert seconds("gemm_a") == 2e-6 and seconds("gemm", True) == 3e-6
        assert seconds(("gemm_b", "reduce")) == (1e-6, 5e-7) and seconds(("gemm", "reduce"), True) == (3e-6, 5e-7)
        assert seconds(("gemm_a", "nvjet")) == (2e-6, 0) and not caplog.text, "a call may or may not launch what a tuple names"
        assert seconds(("nvjet", "cutlass")) == (0, 0) and "of which no kernel has any" in caplog.text and "void gemm_a, void gemm_b, fill" in caplog.text
        for names, several, text in (("gemm", False, "which 2 kernels have, expected one of void gemm_a, void gemm_b, fill"), (("gemm", "reduce"), False, "'gemm', which 2 kernels have"),
                                     ("none", False, "'none', which 0 kernels have, expected one of"), ("none", True, "which 0 kernels have, expected one or more of")):
            with pytest.raises(RuntimeError, match=text):
                seconds(names, several)


def test_decorators(dg, monkeypatch, capsys):
    assert dg.testing.get_arch_major() == 9
    monkeypatch.setenv("QUERN_ANY", "1")
    seen = lambda: os.environ.get("QUERN_ANY")  # noqa: E731
    assert dg.testing.ignore_env(name="QUERN_ANY", condition=lambda: True)(seen)() is None and seen() == "1"
    assert dg.testing.ignore_env("QUERN_ANY", lambda: False)(seen)() == "1"
    assert dg.testing.test_filter(condition=lambda: True)(seen)() == "1" and dg.testing.test_filter(lambda: False)(seen)() is None
    assert "left out" in capsys.readouterr().out


ABSENT = {
    "fp4_gemm_nt": "packed FP4 needs SM100", "m_grouped_fp4_gemm_nt_contiguous": "packed FP4 needs SM100", "m_grouped_fp4_gemm_nt_masked": "packed FP4 needs SM100",
    "k_grouped_fp8_gemm_tn_contiguous": "FP8 that is MN-major needs SM100", "mega": "mega kernels need SM100", "SymmBuffer": "mega kernels need SM100",
    "get_symm_buffer_for_mega_moe": "mega kernels need SM100", "transform_weights_for_mega_moe": "mega kernels need SM100", "fp8_fp4_mega_moe": "mega kernels need SM100",
    "fp8_mega_moe": "mega kernels need SM100", "bf16_mega_moe": "mega kernels need SM100", "fp8_gemm_nt_skip_head_mid": "quern has no GEMM that leaves a hole",
    "fp8_fp4_mqa_logits": "quern has no op for the logits", "fp8_mqa_logits": "quern has no op for the logits", "fp8_fp4_paged_mqa_logits": "quern has no op for the logits",
    "fp8_paged_mqa_logits": "quern has no op for the logits", "get_paged_mqa_logits_metadata": "quern has no op for the logits", "einsum": "quern has no batched GEMM",
    "fp8_einsum": "quern has no batched GEMM", "tf32_hc_prenorm_gemm": "quern has no GEMM in tf32",
    **{name: "quern has no op for the logits" for name in ("fp8_fp4_sparse_mqa_logits", "fp8_fp4_paged_sparse_mqa_logits", "get_sparse_mqa_logits_metadata", "get_paged_sparse_mqa_logits_metadata")},
    "mega_mhc": "mega kernels need SM100", "bf16_mega_gate": "mega kernels need SM100",
}
# Of deep_gemm.utils they are functions.
REFUSING = {
    "per_token_cast_to_fp4": "packed FP4 needs SM100", "transpose_packed_fp4": "packed FP4 needs SM100", "cast_back_from_fp4": "packed FP4 needs SM100",
    "pack_ue8m0_to_int": "packed UE8M0 scales need SM100", "unpack_ue8m0_from_int": "packed UE8M0 scales need SM100",
    "get_mn_major_tma_aligned_packed_ue8m0_tensor": "packed UE8M0 scales need SM100", "get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor": "packed UE8M0 scales need SM100",
}


def test_names_that_callers_ask_for_are_absent(dg):
    """hasattr() says what there is; the error of a name that is not has the reason."""
    for name, text in {**ABSENT, **REFUSING}.items():
        assert not hasattr(dg, name) and getattr(dg, name, None) is None and name not in dir(dg)
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}': {text}"):
            getattr(dg, name)
    with pytest.raises(AttributeError, match=r"^module 'quern\.compat\.deep_gemm' has no attribute 'fp8_gemm_xy'$"):
        dg.fp8_gemm_xy
    with pytest.raises(ImportError):
        importlib.import_module("deep_gemm.mega")
    for name in ("fp8_gemm_nt", "m_grouped_fp8_fp4_gemm_nt_contiguous", "get_compile_mode", "set_compile_mode", "use_deterministic_algorithms", "legacy", "testing", "utils"):
        assert hasattr(dg, name)


def test_names_that_programs_import_say_why(dg):
    for name, text in REFUSING.items():
        with pytest.raises(NotImplementedError, match=rf"^deep_gemm\.{name}: {text}"):
            getattr(dg.utils, name)(1, any_keyword=2)


def test_bitwise_equal(dg):
    nan = float("nan")
    x = torch.tensor([[1.0, nan], [0.0, 2.0]], device=places.TORCH)
    equal = dg.testing.assert_bitwise_equal
    equal(x, x.clone()), equal(x[:0], x[:0]), equal(x.T, x.T.contiguous(), label="transposed")
    for other, text in ((x + torch.tensor([0.0, 0.0]).to(x), None), (torch.tensor([[1.0, nan], [-0.0, 2.0]]).to(x), r"out: element \[1, 0\] is 0\.0 \(0x00000000\), expected -0\.0 \(0x80000000\); 1 of 4 elements differ"),
                        (x[:1], r"out: torch\.float32 \[2, 2\] and torch\.float32 \[1, 2\], expected the same"), (x.half(), r"out: .*float16 \[2, 2\], expected the same")):
        if text:
            with pytest.raises(AssertionError, match="^" + text):
                equal(x, other, "out")


PROCESS = """
import sys
import torch
import quern.compat.deep_gemm as deep_gemm
sys.modules["deep_gemm"] = deep_gemm
from deep_gemm.utils.dist import dist_print
torch.cuda.is_available = lambda: False
rank, world, group = deep_gemm.utils.init_dist(int(sys.argv[1]), 2)
x = torch.full((rank + 1, 3), float(rank))
print(rank, world, deep_gemm.utils.uneven_all_gather(x, group=group).tolist(), deep_gemm.utils.dist.uneven_all_gather(x.T, dim=1).shape)
dist_print("once", once_in_node=True)
"""


def test_processes(dg):
    """Two of them, on the host."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    started = [subprocess.Popen([sys.executable, "-c", PROCESS, str(rank)], env={**environment, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}, stdout=subprocess.PIPE, text=True) for rank in range(2)]
    outputs = [process.communicate(timeout=120)[0] for process in started]
    gathered = "2 [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]] torch.Size([3, 3])"
    assert outputs == [f"0 {gathered}\nonce\n", f"1 {gathered}\n"]
    with pytest.raises(RuntimeError, match=r"^deep_gemm\.dist_print: no process group, expected a call of init_dist\(\) before$"):
        importlib.import_module("deep_gemm.utils.dist").dist_print("x")


# What the release has by these names, and in which order of parameters.
SIGNATURES = {
    "fp8_gemm_nt": "a b d c recipe recipe_a recipe_b compiled_dims disable_ue8m0_cast", "bf16_gemm_nt": "a b d c compiled_dims", "cublaslt_gemm_nt": "a b d c",
    "m_grouped_fp8_gemm_nt_contiguous": "a b d grouped_layout recipe recipe_a recipe_b compiled_dims disable_ue8m0_cast use_psum_layout ensure_zero_padding expected_m_for_psum_layout",
    "m_grouped_fp8_gemm_nn_contiguous": "a b d grouped_layout recipe recipe_a recipe_b compiled_dims disable_ue8m0_cast use_psum_layout ensure_zero_padding",
    "m_grouped_fp8_gemm_nt_masked": "a b d masked_m expected_m recipe recipe_a recipe_b compiled_dims disable_ue8m0_cast",
    "m_grouped_bf16_gemm_nt_contiguous": "a b d grouped_layout compiled_dims use_psum_layout ensure_zero_padding expected_m_for_psum_layout",
    "m_grouped_bf16_gemm_nn_contiguous": "a b d grouped_layout compiled_dims use_psum_layout ensure_zero_padding",
    "m_grouped_bf16_gemm_nt_masked": "a b d masked_m expected_m compiled_dims",
    "k_grouped_fp8_gemm_nt_contiguous": "a b d ks_cpu grouped_layout c recipe compiled_dims use_psum_layout",
    "k_grouped_bf16_gemm_tn_contiguous": "a b d ks_cpu grouped_layout c compiled_dims use_psum_layout",
}


def test_signatures(dg):
    for name, parameters in SIGNATURES.items():
        assert list(inspect.signature(getattr(dg, name)).parameters) == parameters.split(), name
    for suffix in ("nn", "tn", "tt"):
        for prefix in ("fp8_gemm", "fp8_fp4_gemm", "bf16_gemm", "cublaslt_gemm"):
            theirs, mine = (inspect.signature(getattr(dg, f"{prefix}_{s}")).parameters for s in (suffix, "nt"))
            assert list(theirs) == list(mine)
    assert dg.fp8_m_grouped_gemm_nt_masked is dg.m_grouped_fp8_gemm_nt_masked and dg.bf16_m_grouped_gemm_nt_masked is dg.m_grouped_bf16_gemm_nt_masked
