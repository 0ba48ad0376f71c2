# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Products of groups of rows, each with a matrix of its own, by quern.gemm.grouped_contiguous. Where groups begin is read on the device."""
import quern
from quern import _check
from quern.compat.flashinfer._base import asked, call, one_of, result_of, tensor, torch


def _grouped(where, a, b, m_indptr, out, out_dtype, backend, tactic, skip_check, **options):
    one_of(where, "backend", backend, {"cudnn": None}), _check.boolean(f"flashinfer.{where}", "skip_check", skip_check)
    if _check.integer(f"flashinfer.{where}", "tactic", tactic, -1, 2**31 - 1) != -1:
        raise NotImplementedError(f"flashinfer.{where}: `tactic` is {tactic}, expected -1: plans of cuDNN have numbers, quern chooses its own")
    result = result_of(where, None if out is None else tensor(where, "out", out, 2), out_dtype, torch.bfloat16)
    return call(where, quern.gemm.grouped_contiguous, None, a=a, b=b, m_indptr=tensor(where, "m_indptr", m_indptr, 1).int(), skip_check=skip_check, **options, **result)


@asked()
def grouped_mm_bf16(a, b, m_indptr, out=None, out_dtype=None, *, backend="cudnn", tactic=-1, skip_check=False):
    """out[i] = a[i] @ b[g].T for the rows m_indptr[g] to m_indptr[g + 1]: a [m, k] and b [groups, n, k] of bf16 or f16, m_indptr [groups + 1], out [m, n] of bf16, the
    default, f16 or f32. Rows of no group are not written."""
    where = "grouped_mm_bf16"
    return _grouped(where, tensor(where, "a", a, 2), tensor(where, "b", b, 3), m_indptr, out, out_dtype, backend, tactic, skip_check)


@asked()
def grouped_mm_fp8(a, b, m_indptr, alpha=None, out=None, out_dtype=None, *, backend="cudnn", tactic=-1, skip_check=False):
    """The same of e4m3 or e5m2, times alpha, a tensor of one f32; None: 1. Each 128 products of a row are multiplied by it, and then added up in f32."""
    where = "grouped_mm_fp8"
    tensor(where, "a", a, 2), tensor(where, "b", b, 3)
    if alpha is None:
        alpha = torch.ones(1, dtype=torch.float32, device=a.device)
    elif tensor(where, "alpha", alpha).numel() != 1:
        raise ValueError(f"flashinfer.{where}: `alpha` has {alpha.numel()} elements, expected 1")
    blocks = -(-a.size(1) // 128)
    ones = torch.ones(1, dtype=torch.float32, device=a.device)
    return _grouped(where, a, b, m_indptr, out, out_dtype, backend, tactic, skip_check, scales_a=alpha.float().reshape(1, 1).expand(a.size(0), blocks),
                    scales_b=ones.view(1, 1, 1).expand(b.size(0), -(-b.size(1) // 128), blocks))
