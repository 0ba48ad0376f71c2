# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""DeepGEMM's names through sys.modules, each called with its exact keywords; results beside torch in double."""
import importlib
import inspect
import os
import sys
import time

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402

import quern  # noqa: E402
import quern.compat.deep_gemm  # noqa: E402

pytestmark = pytest.mark.anywhere
DENSE = {t["name"]: t for t in quern.gemm.dense.schema.tensors}
needs_mn_major = pytest.mark.skipif(not DENSE["b"].get("either_major"), reason="needs gemm.dense with operands that are MN-major")
needs_grouped = pytest.mark.skipif(not hasattr(quern.gemm, "grouped_contiguous"), reason="needs gemm.grouped_contiguous and gemm.grouped_masked")
LAYOUTS = {"nt": (False, False), "nn": (False, True), "tn": (True, True), "tt": (True, False)}


@pytest.fixture
def dg(monkeypatch):
    """What a program gets that says `import deep_gemm`."""
    monkeypatch.setitem(sys.modules, "deep_gemm", quern.compat.deep_gemm)
    module = importlib.import_module("deep_gemm")
    yield module
    module.set_num_sms(quern.compat.deep_gemm._settings._all_sms())
    module.set_tc_util(100)
    module.set_pdl(False)
    module.set_mk_alignment_for_contiguous_layout(128)
    for name in [n for n in sys.modules if n.startswith("deep_gemm.")]:
        del sys.modules[name]


def randn(*shape, seed=1, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(places.TORCH)


def poisoned(*shape, dtype):
    return torch.full(shape, float("nan"), dtype=dtype, device=places.TORCH)


def block_scales(scales, rows, columns):
    """Scales of 1 or 128 rows and 128 columns, one for each element."""
    scales = scales.double().repeat_interleave(128, -1)[..., :columns]
    return scales if scales.size(-2) == rows else scales.repeat_interleave(128, -2)[..., :rows, :]


def real(operand):
    """The values of (tensor, scales), or of a tensor, in double."""
    if not isinstance(operand, tuple):
        return operand.double()
    return operand[0].double() * block_scales(operand[1], *operand[0].shape[-2:])


def judge(d, a, b, c=None):
    """d is c + a @ b.T: one rounding to d's dtype of a sum in f32. Each rounding of that is relative to at most the sum of all magnitudes; a tensor
    core's sum of 128 products of FP8 is off by up to 2^-11 of theirs (quern/ops/gemm/README.md)."""
    expected, magnitude = real(a) @ real(b).mT, real(a).abs() @ real(b).abs().mT
    if c is not None:
        expected, magnitude = expected + c.double(), magnitude + c.double().abs()
    k = real(a).size(-1)
    of_products = 2**-11 / max(1, -(-k // 128)) ** 0.5 if (a[0] if isinstance(a, tuple) else a).element_size() == 1 else 0
    tolerance = torch.finfo(d.dtype).eps / 2 * expected.abs() + (of_products + (k + 4) * 2**-24) * magnitude + 1e-30
    worst = ((d.double() - expected).abs() / tolerance).max() if d.numel() else torch.tensor(0.0)
    assert worst <= 1, f"{worst} times the tolerance"  # NaN is not


def in_memory(tensor, exchanged):
    """[mn, k] as a view of memory that is [k, mn], or as it is."""
    return tensor.mT.contiguous().mT if exchanged else tensor


def shown(tensor, exchanged):
    """What a call with "n" or "t" in its name takes for [mn, k]."""
    return tensor.mT if exchanged else tensor


@pytest.mark.parametrize("mn_major", [False, pytest.param(True, marks=needs_mn_major)])
@pytest.mark.parametrize("prefix", ["bf16_gemm", "cublaslt_gemm"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bf16(dg, layout, prefix, mn_major):
    function = getattr(dg, f"{prefix}_{layout}")
    keywords = {"compiled_dims": "nk"} if prefix == "bf16_gemm" else {}
    a, b = randn(9, 72, dtype=torch.bfloat16), randn(24, 72, seed=2, dtype=torch.bfloat16)
    over_a, over_b = LAYOUTS[layout]
    stored_a, stored_b = in_memory(a, over_a and mn_major), in_memory(b, over_b and mn_major)
    for dtype in (torch.bfloat16, torch.float32):
        c = randn(9, 24, seed=3, dtype=dtype)
        for given, d in ((None, poisoned(9, 24, dtype=dtype)), (c, poisoned(9, 24, dtype=dtype)), ("d", c.clone())):
            assert function(a=shown(stored_a, over_a), b=shown(stored_b, over_b), d=d, c=d if given == "d" else given, **keywords) is None
            judge(d, a, b, None if given is None else c)


def fp8_operands(dg, m, n, k, gran_n=128, ue8m0=False):
    a = dg.per_token_cast_to_fp8(randn(m, k), use_ue8m0=ue8m0, gran_k=128, use_packed_ue8m0=False)
    x = randn(n, k, seed=2)
    return a, dg.per_block_cast_to_fp8(x, use_ue8m0=ue8m0, gran_k=128) if gran_n == 128 else dg.per_token_cast_to_fp8(x, use_ue8m0=ue8m0)


@pytest.mark.parametrize("gran_n", [128, 1])
@pytest.mark.parametrize("prefix", ["fp8_gemm", "fp8_fp4_gemm"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_fp8(dg, layout, prefix, gran_n):
    m, n, k = 9, 136, 272
    a, b = fp8_operands(dg, m, n, k, gran_n)
    exchanged = [tuple(shown(t, over) for t in operand) for operand, over in zip((a, b), LAYOUTS[layout])]
    function = getattr(dg, f"{prefix}_{layout}")
    recipes = [{"recipe": None}, {"recipe": (1, gran_n, 128)}, {"recipe": None, "recipe_a": (1, 128), "recipe_b": (gran_n, 128)}]
    for dtype, recipe in zip((torch.bfloat16, torch.float32, torch.bfloat16), recipes):
        c = randn(m, n, seed=3, dtype=dtype)
        for given, d in ((None, poisoned(m, n, dtype=dtype)), (c, poisoned(m, n, dtype=dtype)), ("d", c.clone())):
            assert function(a=exchanged[0], b=exchanged[1], d=d, c=d if given == "d" else given, **recipe, compiled_dims="nk", disable_ue8m0_cast=True) is None
            judge(d, a, b, None if given is None else c)


def test_cublaslt_of_fp8(dg):
    a, b = (randn(n, 64, seed=n).to(torch.float8_e4m3fn) for n in (5, 24))
    d = poisoned(5, 24, dtype=torch.bfloat16)
    dg.cublaslt_gemm_nt(a=a, b=b, d=d, c=None)
    judge(d, a, b)


def test_empty(dg):
    a, b = fp8_operands(dg, 5, 24, 256)
    dg.fp8_gemm_nt((a[0][:0], a[1][:0]), b, poisoned(0, 24, dtype=torch.bfloat16))
    d, c = poisoned(5, 24, dtype=torch.float32), randn(5, 24)
    dg.fp8_gemm_nt(tuple(t[:, :0] for t in a), tuple(t[:, :0] for t in b), d, c=c)
    assert torch.equal(d, c)


SIZES = [100, 0, 128, 1]


def contiguous(sizes, alignment, psum):
    """(rows, grouped layout) with a few rows behind the last group."""
    ends, layout, row = [], [], 0
    for group, size in enumerate(sizes):
        padded = -(-size // alignment) * alignment
        ends.append(row + size)
        layout += [group] * size + [-1] * (padded - size)
        row += padded
    layout += [-1] * alignment
    return len(layout), torch.tensor(ends if psum else layout, dtype=torch.int32, device=places.TORCH), layout


def grouped_operands(dg, rows, groups, n, k, kind):
    """(a, b, b's parts of each group) of bf16 or of FP8 with scales."""
    a, b = randn(rows, k), randn(groups, n, k, seed=2)
    if kind == "bf16":
        return a.to(torch.bfloat16), b.to(torch.bfloat16), list(b.to(torch.bfloat16))
    parts = [dg.per_block_cast_to_fp8(x, use_ue8m0=False) for x in b]
    return dg.per_token_cast_to_fp8(a, use_ue8m0=False), (torch.stack([p[0] for p in parts]), torch.stack([p[1] for p in parts])), parts


def part_of(operand, index):
    return tuple(t[index] for t in operand) if isinstance(operand, tuple) else operand[index]


@needs_grouped
@pytest.mark.parametrize("psum", [False, True])
@pytest.mark.parametrize("layout", ["nt", "nn"])
@pytest.mark.parametrize("kind", ["bf16", "fp8", "fp8_fp4"])
def test_m_grouped_contiguous(dg, kind, layout, psum):
    alignment = 16 if psum else 128
    dg.set_mk_alignment_for_contiguous_layout(alignment)
    rows, grouped_layout, group_of_row = contiguous(SIZES, alignment, psum)
    a, b, parts = grouped_operands(dg, rows, len(SIZES), 136, 272, kind)
    function = getattr(dg, f"m_grouped_{kind}_gemm_{layout}_contiguous")
    shown_b = b if layout == "nt" else tuple(t.mT for t in b) if isinstance(b, tuple) else b.mT
    recipe = {} if kind == "bf16" else {"recipe": (1, 128, 128), "recipe_a": None, "recipe_b": None, "disable_ue8m0_cast": True}
    last = {"expected_m_for_psum_layout": 64 if psum else None} if layout == "nt" else {}
    for zeros in (True, False):
        d = poisoned(rows, 136, dtype=torch.bfloat16)
        function(a=a, b=shown_b, d=d, grouped_layout=grouped_layout, compiled_dims="nk", use_psum_layout=psum, ensure_zero_padding=zeros, **recipe, **last)
        for group, part in enumerate(parts):
            index = [i for i, g in enumerate(group_of_row) if g == group]
            judge(d[index], part_of(a, index), part)
        padding = d[[i for i, g in enumerate(group_of_row) if g < 0]]
        assert (padding == 0).all() if zeros else padding.isnan().all()


@needs_grouped
@pytest.mark.parametrize("kind", ["bf16", "fp8", "fp8_fp4"])
def test_m_grouped_masked(dg, kind):
    groups, most, n, k = 3, 40, 136, 272
    a, b, parts = grouped_operands(dg, groups * most, groups, n, k, kind)
    a = tuple(t.view(groups, most, -1) for t in a) if isinstance(a, tuple) else a.view(groups, most, -1)
    sizes = [40, 0, 7]
    d = poisoned(groups, most, n, dtype=torch.bfloat16)
    recipe = {} if kind == "bf16" else {"recipe": None, "recipe_a": (1, 128), "recipe_b": (128, 128), "disable_ue8m0_cast": False}
    masked_m = torch.tensor(sizes, dtype=torch.int32, device=places.TORCH)
    getattr(dg, f"m_grouped_{kind}_gemm_nt_masked")(a=a, b=b, d=d, masked_m=masked_m, expected_m=16, compiled_dims="nk", **recipe)
    for group, size in enumerate(sizes):
        judge(d[group, :size], part_of(part_of(a, group), slice(size)), parts[group])
        assert d[group, size:].isnan().all()


@pytest.mark.skipif(hasattr(quern.gemm, "grouped_contiguous"), reason="the ops are there")
def test_grouped_ops_that_are_missing_are_named(dg):
    a, b, _ = grouped_operands(dg, 128, 1, 24, 128, "bf16")
    with pytest.raises(NotImplementedError, match=r"deep_gemm\.m_grouped_bf16_gemm_nt_contiguous: this library has no op gemm\.grouped_contiguous"):
        dg.m_grouped_bf16_gemm_nt_contiguous(a, b, poisoned(128, 24, dtype=torch.bfloat16), torch.zeros(128, dtype=torch.int32, device=places.TORCH))
    with pytest.raises(NotImplementedError, match=r"deep_gemm\.m_grouped_bf16_gemm_nt_masked: this library has no op gemm\.grouped_masked"):
        dg.m_grouped_bf16_gemm_nt_masked(a[None], b, poisoned(1, 128, 24, dtype=torch.bfloat16), torch.ones(1, dtype=torch.int32, device=places.TORCH), 128)


def test_rows_of_no_group():
    """The rows that become zero, of both layouts: [0, 100) and [112, 113) have a group, and up to 144 nothing has."""
    from quern.compat.deep_gemm import _grouped

    quern.compat.deep_gemm.set_mk_alignment_for_contiguous_layout(16)
    expected = [not (row < 100 or row == 112) for row in range(144)]
    ends = torch.tensor([100, 100, 113], dtype=torch.int32)  # the second is empty and ends where it would be without its own padding
    assert _grouped._of_no_group(ends, True, 144).tolist() == expected
    assert _grouped._of_no_group(torch.tensor([-1 if e else 0 for e in expected]), False, 144).tolist() == expected
    quern.compat.deep_gemm.set_mk_alignment_for_contiguous_layout(128)


def test_k_grouped_fp8(dg):
    m, n, ks = 9, 24, [128, 0, 256]
    a, b = [[dg.per_token_cast_to_fp8(randn(rows, k, seed=k + rows), use_ue8m0=False) for k in ks] for rows in (m, n)]
    flat = [(torch.cat([t.flatten() for t, _ in parts]), torch.cat([s for _, s in parts], 1)) for parts in (a, b)]
    layout = torch.tensor(ks, dtype=torch.int32, device=places.TORCH)
    c = randn(3, m, n, seed=3)
    for given in (None, c):
        d = poisoned(3, m, n, dtype=torch.float32)
        dg.k_grouped_fp8_gemm_nt_contiguous(a=flat[0], b=flat[1], d=d, ks_cpu=ks, grouped_layout=layout, c=given, recipe=(1, 1, 128), compiled_dims="mn", use_psum_layout=False)
        for group in range(3):
            judge(d[group], a[group], b[group], None if given is None else c[group])
    with pytest.raises(ValueError, match=r"deep_gemm\.k_grouped_fp8_gemm_nt_contiguous: `ks_cpu` is \[128, 256\] and `recipe` \(1, 1, 128\) for 3456 .*, expected multiples of 128"):
        dg.k_grouped_fp8_gemm_nt_contiguous(*flat, d, [128, 256], layout, c)


@needs_mn_major
def test_k_grouped_bf16(dg):
    m, n, ks = 24, 40, [64, 0, 128]
    a, b = randn(sum(ks), m, dtype=torch.bfloat16), randn(sum(ks), n, seed=2, dtype=torch.bfloat16)
    layout, c = torch.tensor(ks, dtype=torch.int32, device=places.TORCH), randn(3, m, n, seed=3)
    d = poisoned(3, m, n, dtype=torch.float32)
    dg.k_grouped_bf16_gemm_tn_contiguous(a=a, b=b, d=d, ks_cpu=ks, grouped_layout=layout, c=c, compiled_dims="mn", use_psum_layout=False)
    for group, (rows_a, rows_b) in enumerate(zip(a.split(ks), b.split(ks))):
        judge(d[group], rows_a.T, rows_b.T, c[group])


def test_k_grouped_needs_sizes_on_the_host(dg):
    x = randn(128, 24, dtype=torch.bfloat16)
    for name, operand in (("k_grouped_bf16_gemm_tn_contiguous", x), ("k_grouped_fp8_gemm_nt_contiguous", (x, x))):
        for keywords in ({"ks_cpu": None}, {"ks_cpu": [128], "use_psum_layout": True}):
            with pytest.raises(NotImplementedError, match=rf"deep_gemm\.{name}: `ks_cpu` is .*, expected the groups' sizes on the host"):
                getattr(dg, name)(a=operand, b=operand, d=randn(1, 24, 24), grouped_layout=None, **keywords)
    with pytest.raises(ValueError, match=r"`ks_cpu` is \[64\] for 128 rows"):
        dg.k_grouped_bf16_gemm_tn_contiguous(x, x, randn(1, 24, 24), [64], None)


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
    dg.set_ignore_compile_dims(new_value=True), dg.set_block_size_multiple_of(value=(16, 32)), dg.init("", "")
    assert dg.get_mk_alignment_for_contiguous_layout() == dg.get_theoretical_mk_alignment_for_contiguous_layout(expected_m=64) == 128
    dg.set_mk_alignment_for_contiguous_layout(new_value=64)
    assert dg.get_m_alignment_for_contiguous_layout() == dg.get_k_alignment_for_contiguous_layout() == 64
    with pytest.raises(ValueError, match="expected at least 1"):
        dg.set_mk_alignment_for_contiguous_layout(0)


def test_submodules(dg):
    """Modules that a program imports beside the package have its settings and functions of the same names."""
    for name in ("utils", "utils.layout", "utils.math", "testing", "testing.bench", "testing.numeric", "testing.utils", "mega"):
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


def test_times_are_of_the_kernels_asked_for(dg):
    from quern.compat.deep_gemm.testing import bench  # the module's functions, whatever the profiler said

    module = sys.modules["quern.compat.deep_gemm.testing.bench"]
    kernels = [("void gemm_a", 4, 8e-6), ("void gemm_b", 4, 4e-6), ("fill", 4, 1.0)]
    assert callable(bench) and module._seconds_of("gemm_a", kernels, 4, False) == 2e-6 and module._seconds_of("gemm", kernels, 4, True) == 3e-6
    for name, text in (("gemm", "which 2 kernels have, expected one of void gemm_a, void gemm_b, fill"), ("none", "which 0 kernels have")):
        with pytest.raises(RuntimeError, match=text):
            module._seconds_of(name, kernels, 4, False)


def test_decorators(dg, monkeypatch, capsys):
    assert dg.testing.get_arch_major() == 9
    monkeypatch.setenv("QUERN_ANY", "1")
    seen = lambda: os.environ.get("QUERN_ANY")  # noqa: E731
    assert dg.testing.ignore_env(name="QUERN_ANY", condition=lambda: True)(seen)() is None and seen() == "1"
    assert dg.testing.ignore_env("QUERN_ANY", lambda: False)(seen)() == "1"
    assert dg.testing.test_filter(condition=lambda: True)(seen)() == "1" and dg.testing.test_filter(lambda: False)(seen)() is None
    assert "left out" in capsys.readouterr().out


def test_names_of_other_gpus(dg):
    for name, text in {
        "fp4_gemm_nt": "packed FP4 needs SM100", "m_grouped_fp4_gemm_nt_contiguous": "packed FP4 needs SM100", "m_grouped_fp4_gemm_nt_masked": "packed FP4 needs SM100",
        "per_token_cast_to_fp4": "packed FP4 needs SM100", "transpose_packed_fp4": "packed FP4 needs SM100", "cast_back_from_fp4": "packed FP4 needs SM100",
        "pack_ue8m0_to_int": "packed UE8M0 scales need SM100", "unpack_ue8m0_from_int": "packed UE8M0 scales need SM100",
        "get_mn_major_tma_aligned_packed_ue8m0_tensor": "packed UE8M0 scales need SM100",
        "get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor": "packed UE8M0 scales need SM100",
        "k_grouped_fp8_gemm_tn_contiguous": "FP8 that is MN-major needs SM100", "SymmBuffer": "mega kernels need SM100", "get_symm_buffer_for_mega_moe": "mega kernels need SM100",
        "transform_weights_for_mega_moe": "mega kernels need SM100", "fp8_fp4_mega_moe": "mega kernels need SM100", "fp8_mega_moe": "mega kernels need SM100",
        "bf16_mega_moe": "mega kernels need SM100", "fp8_gemm_nt_skip_head_mid": "quern has no GEMM that leaves a hole", "fp8_fp4_mqa_logits": "quern has no op for the logits",
        "fp8_mqa_logits": "quern has no op for the logits", "fp8_fp4_paged_mqa_logits": "quern has no op for the logits", "fp8_paged_mqa_logits": "quern has no op for the logits",
        "get_paged_mqa_logits_metadata": "quern has no op for the logits", "einsum": "quern has no batched GEMM", "fp8_einsum": "quern has no batched GEMM",
        "tf32_hc_prenorm_gemm": "quern has no GEMM in tf32",
    }.items():
        with pytest.raises(NotImplementedError, match=rf"^deep_gemm\.{name}: {text}"):
            getattr(dg, name)(1, any_keyword=2)


def test_operands_that_are_refused(dg):
    a, b = fp8_operands(dg, 9, 136, 256)
    d = poisoned(9, 136, dtype=torch.bfloat16)
    refused = [
        (NotImplementedError, r"`a` is int8, expected float8_e4m3fn: packed FP4 needs SM100", ((a[0].view(torch.int8), a[1]), b, d), {}),
        (NotImplementedError, r"scales of `b` are int32, expected float32: packed UE8M0 needs SM100", (a, (b[0], b[1].int()), d), {}),
        (NotImplementedError, r"`b` has stride 136 along K, expected 1: FP8 that is MN-major needs SM100", (a, (b[0].view(torch.uint8).T.contiguous().view(b[0].dtype).T, b[1]), d), {}),
        (NotImplementedError, r"`recipe` is \(1, 1, 32\), expected \(1, 128, 128\) or \(1, 1, 128\)", (a, b, d), {"recipe": (1, 1, 32)}),
        (NotImplementedError, r"`recipe` is \(\(128, 128\), \(128, 128\)\), expected", (a, b, d), {"recipe_a": (128, 128), "recipe_b": (128, 128)}),
        (ValueError, r"`recipe` is None, `recipe_a` \(1, 128\) and `recipe_b` None, expected `recipe` alone or the other two", (a, b, d), {"recipe_a": (1, 128)}),
        (ValueError, r"scales of `b` have shape \[2, 2\], expected \[136, 2\]", (a, b, d), {"recipe": (1, 1, 128)}),
        (ValueError, r"scales of `a` have shape \[1, 2\], expected \[9, 2\]", ((a[0], a[1][:1]), b, d), {}),
    ]
    for kind, text, arguments, keywords in refused:
        with pytest.raises(kind, match=r"^deep_gemm\.fp8_gemm_nt: " + text):
            dg.fp8_gemm_nt(*arguments, **keywords)
    assert d.isnan().all()
    with pytest.raises(ValueError, match=r"^gemm\.scaled: `b` has shape \[136, 256\]"):
        dg.fp8_gemm_nt((a[0][:, :128], a[1][:, :1]), b, d)


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
