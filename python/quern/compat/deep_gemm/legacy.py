# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""DeepGEMM's names of grouped products of bf16 for GPUs before sm_90a, which it has in Triton; here quern's portable kernels. Where an operand's rows are
picked by indices ("fused") they are copied first."""
import torch

from quern.compat.deep_gemm._arguments import checked
from quern.compat.deep_gemm._grouped import k_grouped_of_bounds, m_grouped_bf16_gemm_nt_contiguous

__all__ = [
    "a_fused_k_grouped_bf16_gemm_tn_contiguous_tl", "a_fused_m_grouped_bf16_gemm_nn_contiguous_tl", "a_fused_m_grouped_bf16_gemm_nt_contiguous_tl",
    "b_fused_k_grouped_bf16_gemm_tn_contiguous_tl", "m_grouped_bf16_gemm_nn_contiguous_tl", "m_grouped_bf16_gemm_nt_contiguous_tl",
]


def _picked(rows, indices):
    """Row indices[i] of `rows`, zeros where that is below 0."""
    return rows.index_select(0, indices.clamp_min(0)).masked_fill_((indices < 0).unsqueeze(1), 0)


@checked()
def m_grouped_bf16_gemm_nt_contiguous_tl(a, b, d, m_indices):
    """d[i] = a[i] @ b[m_indices[i]].T; rows whose index is -1 become 0."""
    m_grouped_bf16_gemm_nt_contiguous(a, b, d, m_indices)


@checked()
def m_grouped_bf16_gemm_nn_contiguous_tl(a, b, d, m_indices):
    """The same of b [groups, k, n]."""
    m_grouped_bf16_gemm_nt_contiguous(a, b.mT, d, m_indices)


@checked(mappings="mappings of rows")
def a_fused_m_grouped_bf16_gemm_nt_contiguous_tl(a, b, d, mappings):
    """mappings: (m_indices, m_row_indices), [m] i32 each. d[i] = a[m_row_indices[i]] @ b[m_indices[i]].T, where -1 is a row of zeros."""
    m_indices, rows = mappings
    m_grouped_bf16_gemm_nt_contiguous(_picked(a, rows), b, d, m_indices)


@checked(mappings="mappings of rows")
def a_fused_m_grouped_bf16_gemm_nn_contiguous_tl(a, b, d, mappings):
    """The same of b [groups, k, n]."""
    a_fused_m_grouped_bf16_gemm_nt_contiguous_tl(a, b.mT, d, mappings)


def _k_grouped(caller, a, b, d, starts, ends, accumulate):
    if len(starts) != len(d) or len(ends) != len(d) or not torch.equal(starts[1:], ends[:-1]):
        raise ValueError(f"deep_gemm.{caller}: `mappings` has groups of k that begin at {starts.tolist()} and end at {ends.tolist()}, expected {len(d)}, each where the one before ends")
    k_grouped_of_bounds(caller, a, b, d, d if accumulate else None, torch.cat([starts[:1], ends]))


@checked(mappings="mappings of k")
def a_fused_k_grouped_bf16_gemm_tn_contiguous_tl(a, b, d, mappings, accumulate):
    """mappings: (k_indices, k_start, k_end). d[g] = a_g.T @ b_g, added to d[g] with `accumulate`, of rows [k_start[g], k_end[g]) of a[k_indices] and b;
    d: [groups, m, n] f32. The bounds are read on the host."""
    indices, starts, ends = mappings
    _k_grouped("a_fused_k_grouped_bf16_gemm_tn_contiguous_tl", _picked(a, indices), b, d, starts, ends, accumulate)


@checked(mappings="mappings of k")
def b_fused_k_grouped_bf16_gemm_tn_contiguous_tl(a, b, d, mappings, accumulate):
    """The same, where the rows of b are picked and a's are not."""
    indices, starts, ends = mappings
    _k_grouped("b_fused_k_grouped_bf16_gemm_tn_contiguous_tl", a, _picked(b, indices), d, starts, ends, accumulate)
