# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""GEMMs of groups, written into d: of rows (m_grouped) by quern.gemm.grouped_contiguous and grouped_masked, of K by quern.gemm.k_grouped."""
import torch

import quern
from quern.compat.deep_gemm._arguments import checked
from quern.compat.deep_gemm._operands import BLOCK, check_written, gran_n_of, scales_of, transposed, write
from quern.compat.deep_gemm._settings import get_mk_alignment_for_contiguous_layout


def _fp8_operands(caller, a, b, recipe, recipe_a, recipe_b):
    if gran_n_of(caller, recipe, recipe_a, recipe_b) == 1:
        raise NotImplementedError(f"deep_gemm.{caller}: `recipe` has a scale for each row of b, expected one for 128: quern's grouped GEMMs take no others")
    (a, scales_a), (b, scales_b) = scales_of(caller, "a", a, 1), scales_of(caller, "b", b, BLOCK)
    return a, b, {"scales_a": scales_a, "scales_b": scales_b}


def _of_no_group(layout, psum, rows, groups, behind=True):
    """[rows] bool: rows that pad a group, and with `behind` those behind the last group of a layout of ends."""
    if not psum:
        return (layout < 0) | (layout >= groups)
    alignment = get_mk_alignment_for_contiguous_layout()
    row = torch.arange(rows, device=layout.device, dtype=layout.dtype)
    group = torch.searchsorted(layout, row, right=True)
    ends = torch.cat([layout.new_zeros(1), layout])
    begins = (ends + alignment - 1) // alignment * alignment
    if behind:
        begins = torch.cat([begins[:-1], ends.new_full((1,), rows)])
    return row < begins[group]


def _workspace(d, size):
    """While a graph is captured, else None: torch's allocator may be called then, quern's may not."""
    capturing = d.is_cuda and torch.cuda.is_current_stream_capturing()
    return torch.empty(size, dtype=torch.uint8, device=d.device) if capturing else None


def _contiguous(caller, a, b, d, layout, scales, psum, zero):
    check_written(caller, d)
    rows = {"group_ends": layout} if psum else {"group_of_row": layout}
    workspace = None if psum else _workspace(d, 8 * b.size(0) + 8)
    write(caller, quern.gemm.grouped_contiguous, d, a=a, b=b, **rows, **scales, alignment=get_mk_alignment_for_contiguous_layout(), workspace=workspace)
    d.masked_fill_(_of_no_group(layout, psum, d.size(0), b.size(0), behind=zero).unsqueeze(1), 0)


@checked(a="operand", b="operand")
def m_grouped_fp8_fp4_gemm_nt_contiguous(a, b, d, grouped_layout, recipe=None, recipe_a=None, recipe_b=None, compiled_dims="nk", disable_ue8m0_cast=False,
                                         use_psum_layout=False, ensure_zero_padding=True, expected_m_for_psum_layout=None):
    """d[i] = a[i] @ b[g].T for the rows i of group g; a and b are (tensor, scales): [m, k] e4m3 with f32 [m, ceil(k / 128)], [groups, n, k] with [groups,
    ceil(n / 128), ceil(k / 128)]. grouped_layout: [m] i32, a row's group or -1; with use_psum_layout [groups] i32, where each group ends. Groups begin
    at multiples of get_mk_alignment_for_contiguous_layout(). Rows that pad a group become 0, which is a pass over d: DeepGEMM's kernels write them too, whatever
    ensure_zero_padding says, and its callers compare them. Rows behind the last group of group ends become 0 with ensure_zero_padding alone, else they stay."""
    a, b, scales = _fp8_operands("m_grouped_fp8_gemm_nt_contiguous", a, b, recipe, recipe_a, recipe_b)
    _contiguous("m_grouped_fp8_gemm_nt_contiguous", a, b, d, grouped_layout, scales, use_psum_layout, ensure_zero_padding)


@checked(a="operand", b="operand")
def m_grouped_fp8_fp4_gemm_nn_contiguous(a, b, d, grouped_layout, recipe=None, recipe_a=None, recipe_b=None, compiled_dims="nk", disable_ue8m0_cast=False,
                                         use_psum_layout=False, ensure_zero_padding=True):
    """The same of b and scales that are transposed: [groups, k, n]. Its memory must be K-major, as on every sm_90a."""
    m_grouped_fp8_fp4_gemm_nt_contiguous(a, transposed(b), d, grouped_layout, recipe, recipe_a, recipe_b, use_psum_layout=use_psum_layout, ensure_zero_padding=ensure_zero_padding)


@checked(a="operand", b="operand")
def m_grouped_fp8_fp4_gemm_nt_masked(a, b, d, masked_m, expected_m, recipe=None, recipe_a=None, recipe_b=None, compiled_dims="nk", disable_ue8m0_cast=False):
    """d[g, i] = a[g, i] @ b[g].T for i < masked_m[g]; a and b are (tensor, scales): [groups, max_m, k] e4m3 with f32 [groups, max_m, ceil(k / 128)],
    [groups, n, k] with [groups, ceil(n / 128), ceil(k / 128)]. masked_m: [groups] i32. Other rows of d stay as they are."""
    a, b, scales = _fp8_operands("m_grouped_fp8_gemm_nt_masked", a, b, recipe, recipe_a, recipe_b)
    write("m_grouped_fp8_gemm_nt_masked", quern.gemm.grouped_masked, d, a=a, b=b, masked_m=masked_m, **scales, expected_m=expected_m)


@checked()
def m_grouped_bf16_gemm_nt_contiguous(a, b, d, grouped_layout, compiled_dims="nk", use_psum_layout=False, ensure_zero_padding=True, expected_m_for_psum_layout=None):
    """As m_grouped_fp8_fp4_gemm_nt_contiguous of bf16, without scales; the memory of b may be N-major."""
    _contiguous("m_grouped_bf16_gemm_nt_contiguous", a, b, d, grouped_layout, {}, use_psum_layout, ensure_zero_padding)


@checked()
def m_grouped_bf16_gemm_nn_contiguous(a, b, d, grouped_layout, compiled_dims="nk", use_psum_layout=False, ensure_zero_padding=True):
    """The same of b [groups, k, n]."""
    m_grouped_bf16_gemm_nt_contiguous(a, b.mT, d, grouped_layout, use_psum_layout=use_psum_layout, ensure_zero_padding=ensure_zero_padding)


@checked()
def m_grouped_bf16_gemm_nt_masked(a, b, d, masked_m, expected_m, compiled_dims="nk"):
    """As m_grouped_fp8_fp4_gemm_nt_masked of bf16, without scales; the memory of b may be N-major."""
    write("m_grouped_bf16_gemm_nt_masked", quern.gemm.grouped_masked, d, a=a, b=b, masked_m=masked_m, expected_m=expected_m)


def _check_sizes(caller, ks_cpu, psum):
    if psum or not ks_cpu:
        raise NotImplementedError(f"deep_gemm.{caller}: `ks_cpu` is {ks_cpu} and `use_psum_layout` {psum}, expected the groups' sizes on the host: sizes on the device alone need SM100")


def _k_grouped(caller, a, b, d, c, ks_cpu, layout, **more):
    sizes = torch.tensor(ks_cpu, dtype=torch.int32, device=d.device) if layout is None else layout
    # Two tensor maps a group, and which columns it has
    write(caller, quern.gemm.k_grouped, d, a=a, b=b, c=c, k_sizes=sizes, **more, workspace=_workspace(d, 264 * len(d) + 8))


def k_grouped_of_bounds(caller, a, b, d, c, bounds):
    """d[g] = c[g] + a_g.T @ b_g of the rows [bounds[g], bounds[g + 1]) of a [k, m] and b [k, n]."""
    write(caller, quern.gemm.k_grouped, d, a=a.T, b=b.T, c=c, k_indptr=bounds, workspace=_workspace(d, 264 * len(d) + 8))


@checked(a="operand", b="operand")
def k_grouped_fp8_gemm_nt_contiguous(a, b, d, ks_cpu, grouped_layout, c=None, recipe=(1, 1, 128), compiled_dims="mn", use_psum_layout=False):
    """d[g] = c[g] + a_g @ b_g.T; a and b are (tensor, scales): e4m3 of 1 dim, where [m, ks_cpu[g]] and [n, ks_cpu[g]] follow each other, with f32
    [m, sum / 128], [n, sum / 128]. ks_cpu: multiples of 128 on the host, grouped_layout: the same on the device, i32. d, c: [groups, m, n] f32."""
    check_written("k_grouped_fp8_gemm_nt_contiguous", d)
    _check_sizes("k_grouped_fp8_gemm_nt_contiguous", ks_cpu, use_psum_layout)
    _, m, n = d.shape
    if tuple(recipe) != (1, 1, BLOCK) or any(k % BLOCK for k in ks_cpu) or a[0].numel() != m * sum(ks_cpu) or b[0].numel() != n * sum(ks_cpu) or len(ks_cpu) != len(d):
        raise ValueError(f"deep_gemm.k_grouped_fp8_gemm_nt_contiguous: `ks_cpu` is {list(ks_cpu)} and `recipe` {tuple(recipe)} for {a[0].numel()} and {b[0].numel()} "
                         f"elements of `a` and `b` and `d` {list(d.shape)}, expected multiples of 128 that add up to both, one a group, and (1, 1, 128)")
    k = sum(ks_cpu)
    _k_grouped("k_grouped_fp8_gemm_nt_contiguous", a[0].view(m, k), b[0].view(n, k), d, c, ks_cpu, grouped_layout, scales_a=a[1], scales_b=b[1], packed=True)


@checked()
def k_grouped_bf16_gemm_tn_contiguous(a, b, d, ks_cpu, grouped_layout, c=None, compiled_dims="mn", use_psum_layout=False):
    """d[g] = c[g] + a_g.T @ b_g; a: [sum of ks_cpu, m], b: [sum, n] bf16, whose rows are the groups' one after the other; d, c: [groups, m, n] f32.
    ks_cpu: on the host, grouped_layout: the same on the device, i32."""
    check_written("k_grouped_bf16_gemm_tn_contiguous", d)
    _check_sizes("k_grouped_bf16_gemm_tn_contiguous", ks_cpu, use_psum_layout)
    if sum(ks_cpu) != len(a) or len(ks_cpu) != len(d):
        raise ValueError(f"deep_gemm.k_grouped_bf16_gemm_tn_contiguous: `ks_cpu` is {list(ks_cpu)} for {len(a)} rows of `a` and {len(d)} groups of `d`, expected sizes that add up, one a group")
    _k_grouped("k_grouped_bf16_gemm_tn_contiguous", a.T, b.T, d, c, ks_cpu, grouped_layout)
