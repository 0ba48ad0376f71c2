# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Dense GEMMs: d = c + a @ b.T and its transposes, written into d."""
import torch

import quern
from quern.compat.deep_gemm._arguments import checked
from quern.compat.deep_gemm._operands import gran_n_of, scales_of, transposed, write


@checked(a="operand", b="operand")
def fp8_fp4_gemm_nt(a, b, d, c=None, recipe=None, recipe_a=None, recipe_b=None, compiled_dims="nk", disable_ue8m0_cast=False):
    """d = c + a @ b.T by quern.gemm.scaled; a and b are (tensor, scales): [m, k] e4m3 with f32 [m, ceil(k / 128)], [n, k] with [ceil(n / 128) or n,
    ceil(k / 128)] of any strides. d, c: [m, n] bf16 or f32, c also None or d itself. `compiled_dims` and `disable_ue8m0_cast` change nothing."""
    gran_n = gran_n_of("fp8_gemm_nt", recipe, recipe_a, recipe_b)
    (a, scales_a), (b, scales_b) = scales_of("fp8_gemm_nt", "a", a, 1), scales_of("fp8_gemm_nt", "b", b, gran_n)
    write("fp8_gemm_nt", quern.gemm.scaled, d, a=a, scales_a=scales_a, b=b, scales_b=scales_b, c=c)


@checked(a="operand", b="operand")
def fp8_fp4_gemm_nn(a, b, d, c=None, recipe=None, recipe_a=None, recipe_b=None, compiled_dims="nk", disable_ue8m0_cast=False):
    """The same of b and scales that are transposed: [k, n]. Its memory must be K-major, as on every sm_90a."""
    fp8_fp4_gemm_nt(a, transposed(b), d, c, recipe, recipe_a, recipe_b)


@checked(a="operand", b="operand")
def fp8_fp4_gemm_tn(a, b, d, c=None, recipe=None, recipe_a=None, recipe_b=None, compiled_dims="mn", disable_ue8m0_cast=False):
    """The same of a [k, m] and b [k, n]."""
    fp8_fp4_gemm_nt(transposed(a), transposed(b), d, c, recipe, recipe_a, recipe_b)


@checked(a="operand", b="operand")
def fp8_fp4_gemm_tt(a, b, d, c=None, recipe=None, recipe_a=None, recipe_b=None, compiled_dims="mn", disable_ue8m0_cast=False):
    """The same of a [k, m]."""
    fp8_fp4_gemm_nt(transposed(a), b, d, c, recipe, recipe_a, recipe_b)


@checked()
def bf16_gemm_nt(a, b, d, c=None, compiled_dims="nk"):
    """d = c + a @ b.T by quern.gemm.dense: [m, k] and [n, k] bf16; d, c: [m, n] bf16 or f32, c also None or d itself."""
    write("bf16_gemm_nt", quern.gemm.dense, d, a=a, b=b, c=c)


@checked()
def bf16_gemm_nn(a, b, d, c=None, compiled_dims="nk"):
    """The same of b [k, n]."""
    bf16_gemm_nt(a, b.mT, d, c)


@checked()
def bf16_gemm_tn(a, b, d, c=None, compiled_dims="mn"):
    """The same of a [k, m] and b [k, n]."""
    bf16_gemm_nt(a.mT, b.mT, d, c)


@checked()
def bf16_gemm_tt(a, b, d, c=None, compiled_dims="mn"):
    """The same of a [k, m]."""
    bf16_gemm_nt(a.mT, b, d, c)


@checked()
def cublaslt_gemm_nt(a, b, d, c=None):
    """d = c + a @ b.T of bf16, or of FP8 without scales. By quern's kernels: cuBLASLt is not there."""
    if a.dtype == torch.bfloat16:
        return bf16_gemm_nt(a, b, d, c)
    one = torch.ones((1, 1), device=a.device)
    write("cublaslt_gemm_nt", quern.gemm.scaled, d, a=a, scales_a=one, b=b, scales_b=one, c=c)


@checked()
def cublaslt_gemm_nn(a, b, d, c=None):
    """The same of b [k, n]."""
    cublaslt_gemm_nt(a, b.mT, d, c)


@checked()
def cublaslt_gemm_tn(a, b, d, c=None):
    """The same of a [k, m] and b [k, n]."""
    cublaslt_gemm_nt(a.mT, b.mT, d, c)


@checked()
def cublaslt_gemm_tt(a, b, d, c=None):
    """The same of a [k, m]."""
    cublaslt_gemm_nt(a.mT, b, d, c)
