# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Layouts of scales. What sm_90a reads: f32, column by column ("MN-major"), each column at a multiple of 16 bytes, for TMA."""
import torch

import quern
from quern.compat.deep_gemm._absent import get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor, get_mn_major_tma_aligned_packed_ue8m0_tensor
from quern.compat.deep_gemm._arguments import checked
from quern.compat.deep_gemm._operands import BLOCK, ceil_div
from quern.compat.deep_gemm._settings import (
    get_mk_alignment_for_contiguous_layout, get_theoretical_mk_alignment_for_contiguous_layout, set_mk_alignment_for_contiguous_layout,
)

__all__ = [
    "get_k_alignment_for_contiguous_layout", "get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor", "get_m_alignment_for_contiguous_layout",
    "get_mk_alignment_for_contiguous_layout", "get_mn_major_tma_aligned_packed_ue8m0_tensor", "get_mn_major_tma_aligned_tensor",
    "get_theoretical_mk_alignment_for_contiguous_layout", "get_tma_aligned_size", "set_mk_alignment_for_contiguous_layout", "transform_sf_into_required_layout",
]

get_m_alignment_for_contiguous_layout = get_k_alignment_for_contiguous_layout = get_mk_alignment_for_contiguous_layout

_TMA_BYTES = 16


@checked(x="extent")
def get_tma_aligned_size(x, element_size):
    """x elements of so many bytes, rounded up to 16 bytes."""
    return ceil_div(x, _TMA_BYTES // element_size) * (_TMA_BYTES // element_size)


@checked()
def get_mn_major_tma_aligned_tensor(sf):
    """Scales [mn, columns] or [groups, mn, columns] f32 in the layout for TMA; those that have it are returned themselves. TypeError for another dtype."""
    if sf.dtype != torch.float32 or sf.dim() not in (2, 3):
        raise TypeError(f"deep_gemm.get_mn_major_tma_aligned_tensor: `sf` is {str(sf.dtype)[6:]} {list(sf.shape)}, expected float32 of 2 or 3 dims")
    *groups, mn, columns = sf.shape
    height = get_tma_aligned_size(mn, sf.element_size())
    if sf.stride()[-2:] == (1, height) and (not groups or sf.stride(0) == height * columns):
        return sf
    out = torch.empty_strided(sf.shape, (height * columns, 1, height)[-sf.dim():], dtype=sf.dtype, device=sf.device)
    for source, target in zip(sf, out) if groups else [(sf, out)]:
        quern.quant.transform_scales(source, out=target)
    return out


@checked(recipe="two or three")
def transform_sf_into_required_layout(sf, mn, k, recipe, num_groups=None, is_sfa=None, disable_ue8m0_cast=False, psum_layout=None):
    """Scales of an operand [mn, k], or [num_groups, mn, k], as the kernels read them: one a row in the layout for TMA, one for 128 rows as they are.
    recipe: (1, gran_n, 128), of which is_sfa=True takes the first and False the second, or (gran_mn, 128). ValueError for another shape,
    NotImplementedError for scales and recipes of SM100."""
    gran_mn, gran_k = (recipe[0] if is_sfa else recipe[1], recipe[2]) if len(recipe) == 3 else recipe
    if sf.dtype != torch.float32 or gran_mn not in (1, BLOCK) or gran_k != BLOCK:
        raise NotImplementedError(f"deep_gemm.transform_sf_into_required_layout: `recipe` is {tuple(recipe)} for {str(sf.dtype)[6:]}, expected 1 or 128 rows and 128 "
                                  "columns a scale of float32: others are of SM100")
    expected = ([] if num_groups is None else [num_groups]) + [ceil_div(mn, gran_mn), ceil_div(k, BLOCK)]
    if list(sf.shape) != expected:
        raise ValueError(f"deep_gemm.transform_sf_into_required_layout: `sf` has shape {list(sf.shape)}, expected {expected}")
    return get_mn_major_tma_aligned_tensor(sf) if gran_mn == 1 else sf
