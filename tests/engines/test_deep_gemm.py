# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""quern.compat.deep_gemm as vLLM and SGLang look for DeepGEMM: what their own code finds, what it does not, and what it computes."""
import ast
import contextlib
import importlib.util
import inspect
import sys

import pytest
import torch
from sglang.srt.layers import deep_gemm_wrapper
from vllm.utils import deep_gemm as vllm_deep_gemm
from vllm.utils.import_utils import _has_module, has_deep_gemm

import quern.compat.deep_gemm
from quern.compat.deep_gemm._absent import ABSENT

# vLLM's names of what it found. None is what it takes for a kernel that is not there.
FOUND = {"_cublaslt_gemm_nt_impl", "_fp8_gemm_nt_impl", "_grouped_impl", "_grouped_masked_impl", "_grouped_fp4_impl", "_get_mn_major_tma_aligned_tensor_impl",
         "_get_mk_alignment_for_contiguous_layout_impl", "_get_theoretical_mk_alignment_for_contiguous_layout_impl", "_transform_sf_into_required_layout_impl"}


@pytest.fixture
def dg(monkeypatch):
    """vLLM, after it looked."""
    monkeypatch.setitem(sys.modules, "deep_gemm", quern.compat.deep_gemm)
    monkeypatch.setenv("DG_JIT_CACHE_DIR", "/nonexistent")
    _has_module.cache_clear()
    for name in [n for n in vars(vllm_deep_gemm) if n.endswith("_impl")]:
        monkeypatch.setattr(vllm_deep_gemm, name, None)
    assert importlib.util.find_spec("deep_gemm") is not None and has_deep_gemm()
    vllm_deep_gemm._lazy_init()
    yield vllm_deep_gemm
    _has_module.cache_clear()


def test_what_vllm_finds(dg):
    impls = {name: value for name, value in vars(dg).items() if name.endswith("_impl")}
    assert {name for name, value in impls.items() if value is not None} == FOUND and len(impls) > len(FOUND)


def names_of(source):
    """Names of deep_gemm that a module asks for: attributes, imports, and texts of getattr."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("deep_gemm", "_dg", "dg"):
            yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and isinstance(node.args[0], ast.Name) and node.args[0].id in ("deep_gemm", "_dg", "dg"):
            yield node.args[1].value
        elif isinstance(node, ast.ImportFrom) and node.module == "deep_gemm":
            yield from (a.name for a in node.names)


def test_names_that_the_engines_ask_for():
    """Each is there, or is known to be absent."""
    from sglang.srt.layers.deep_gemm_wrapper import compile_utils, entrypoint

    asked = {name for module in (vllm_deep_gemm, compile_utils, entrypoint) for name in names_of(inspect.getsource(module))}
    assert len(asked) > 30 and {"fp8_gemm_nt", "set_compile_mode", "set_num_sms", "fp8_mqa_logits"} & asked
    for name in asked:
        assert hasattr(quern.compat.deep_gemm, name) != (name in ABSENT), name


def operands(m, n, k):
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(*s, generator=generator) for s in ((m, k), (n, k)))
    return quern.compat.deep_gemm.per_token_cast_to_fp8(a, use_ue8m0=False), quern.compat.deep_gemm.per_block_cast_to_fp8(b, use_ue8m0=False)


def real(operand, rows):
    q, scales = operand
    return q.double() * scales.double().repeat_interleave(rows, 0)[:q.shape[0]].repeat_interleave(128, 1)[:, :q.shape[1]]


def check(out, a, b):
    expected, magnitude = real(a, 1) @ real(b, 128).T, real(a, 1).abs() @ real(b, 128).abs().T
    assert ((out.double() - expected).abs() <= 2.0**-8 * expected.abs() + 2.0**-11 * magnitude).all()


def test_products_of_vllm(dg):
    """Its functions, as its layers call them."""
    (a, b), out = operands(9, 64, 256), torch.full((9, 64), torch.nan, dtype=torch.bfloat16)
    dg.fp8_gemm_nt(a, b, out, is_deep_gemm_e8m0_used=False)
    check(out, a, b)
    grouped, of_row = torch.full((128, 64), torch.nan, dtype=torch.bfloat16), torch.tensor([0] * 9 + [-1] * 119, dtype=torch.int32)
    rows = [torch.nn.functional.pad(t.view(torch.uint8) if t.element_size() == 1 else t, (0, 0, 0, 119)) for t in a]
    dg.m_grouped_fp8_gemm_nt_contiguous((rows[0].view(torch.float8_e4m3fn), rows[1]), tuple(t[None] for t in b), grouped, of_row)
    check(grouped[:9], a, b)


def test_products_of_sglang(monkeypatch):
    """The entry points of its wrapper, which is off on a machine without a GPU."""
    from sglang.srt.layers.deep_gemm_wrapper import compile_utils, entrypoint

    assert not deep_gemm_wrapper.ENABLE_JIT_DEEPGEMM
    monkeypatch.setattr(entrypoint, "deep_gemm", quern.compat.deep_gemm, raising=False)
    monkeypatch.setattr(compile_utils, "deep_gemm_execution_hook", lambda *sizes: contextlib.nullcontext())  # compiles ahead, on a GPU
    (a, b), out = operands(9, 64, 256), torch.full((9, 64), torch.nan, dtype=torch.bfloat16)
    entrypoint.gemm_nt_f8f8bf16(a, b, out)
    check(out, a, b)
