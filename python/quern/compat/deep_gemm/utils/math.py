# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Casts to FP8 with scales, by quern.quant; results have its bits."""
import torch

import quern
from quern.compat.deep_gemm._arguments import checked
from quern.compat.deep_gemm._absent import cast_back_from_fp4, pack_ue8m0_to_int, per_token_cast_to_fp4, transpose_packed_fp4, unpack_ue8m0_from_int
from quern.compat.deep_gemm import _operands
from quern.compat.deep_gemm._operands import BLOCK

__all__ = [
    "align", "cast_back_from_fp4", "ceil_div", "ceil_to_ue8m0", "pack_ue8m0_to_int", "per_block_cast_to_fp8", "per_channel_cast_to_fp8", "per_custom_dims_cast_to_fp8",
    "per_token_cast_to_fp4", "per_token_cast_to_fp8", "transpose_packed_fp4", "unpack_ue8m0_from_int",
]

_LARGEST = 448.0  # of e4m3
_LEAST = 1e-4  # an amax below counts as this


@checked(x="extent", y="divisor")
def ceil_div(x, y):
    """x / y, rounded up."""
    return _operands.ceil_div(x, y)


@checked(x="extent", y="divisor")
def align(x, y):
    """x rounded up to a multiple of y."""
    return _operands.ceil_div(x, y) * y


@checked()
def ceil_to_ue8m0(x):
    """The least powers of two that are not below |x|, f32."""
    fraction, exponent = torch.frexp(x.float().abs())
    return torch.ldexp(torch.ones_like(fraction), exponent - (fraction == 0.5).int())


def _check(caller, gran_k, packed=False):
    if gran_k != BLOCK or packed:
        raise NotImplementedError(f"deep_gemm.{caller}: `gran_k` is {gran_k} and `use_packed_ue8m0` {packed}, expected 128 and False: others are of SM100")


@checked()
def per_token_cast_to_fp8(x, use_ue8m0, gran_k=128, use_packed_ue8m0=False):
    """(q, scales) of x [m, n], a scale for 128 elements of a row: e4m3 [m, n], f32 [m, ceil(n / 128)]. use_ue8m0: scales are powers of two."""
    _check("per_token_cast_to_fp8", gran_k, use_packed_ue8m0)
    scales = x.new_empty((x.size(0), ceil_div(x.size(1), BLOCK)), dtype=torch.float32)
    return quern.quant.per_token_group(x, power_of_two=bool(use_ue8m0), scales=scales)


@checked()
def per_channel_cast_to_fp8(x, use_ue8m0, gran_k=128):
    """The same with a scale for 128 elements of a column: f32 [m / 128, n], m a multiple of 128."""
    if x.size(0) % BLOCK:
        raise ValueError(f"deep_gemm.per_channel_cast_to_fp8: `x` has {x.size(0)} rows, expected a multiple of 128")
    q, scales = per_token_cast_to_fp8(x.T.contiguous(), use_ue8m0, gran_k)
    return q.T.contiguous(), scales.T.contiguous()


@checked()
def per_block_cast_to_fp8(x, use_ue8m0, gran_k=128):
    """The same with a scale for 128 x 128 elements: f32 [ceil(m / 128), ceil(n / 128)]."""
    _check("per_block_cast_to_fp8", gran_k)
    return quern.quant.per_block(x, power_of_two=bool(use_ue8m0))


@checked()
def per_custom_dims_cast_to_fp8(x, dims, use_ue8m0):
    """The same with a scale for each index of `dims`, without dims of one element. By torch."""
    shared = [d for d in range(x.dim()) if d not in dims]
    scales = x.float().abs().amax(shared, keepdim=True).clamp_min(_LEAST) / _LARGEST
    scales = ceil_to_ue8m0(scales) if use_ue8m0 else scales
    return x.float().mul(scales.reciprocal()).to(torch.float8_e4m3fn), scales.squeeze()
