# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Bits of booleans, and numbers of 8 bits with a scale a group."""
import quern
from quern import _check
from quern.compat.flashinfer._base import call, one_of, refuse, rows, tensor, torch

_ORDERS = {"big": None, "little": None}


def _bytes(where, x):
    """Booleans as bytes, of the same memory."""
    tensor(where, "x", x, 1)
    return x.view(torch.uint8) if x.dtype == torch.bool else x


def packbits(x, bitorder="big"):
    """Eight elements a byte, uint8: the first is bit 7 (big) or bit 0 (little)."""
    return call("packbits", quern.quant.packbits, {"bit_order": "bitorder"}, x=_bytes("packbits", x), bit_order=one_of("packbits", "bitorder", bitorder, _ORDERS))


def segment_packbits(x, indptr, bitorder="big"):
    """(bytes, indptr of bytes): each segment of x begins at a byte. The number of bytes is read from the device."""
    where = "segment_packbits"
    packed, ends = call(where, quern.quant.segment_packbits, None, x=_bytes(where, x), indptr=indptr, bit_order=one_of(where, "bitorder", bitorder, _ORDERS))
    return packed[:int(ends[-1])], ends


def per_token_group_quant_8bit(x, group_size, eps=1e-10, dst_dtype=None, column_major_scales=False, scale_tma_aligned=False, scale_ue8m0=False, backend="cutile"):
    """(q, scales) of x [..., k] in groups of group_size columns, 32, 64 or 128, which divides k: scale = max(max |x|, eps) / largest(q), q = x / scale. q is e4m3,
    the default, or int8 (-127 to 127); scales are f32 [..., k / group_size]. column_major_scales: of x [m, k] in the memory of their transpose, with
    scale_tma_aligned each column a multiple of 16 bytes, as FP8 GEMMs read them."""
    where = "per_token_group_quant_8bit"
    one_of(where, "backend", backend, {"cutile": None})
    given = rows(where, "x", x)
    group = _check.integer(f"flashinfer.{where}", "group_size", group_size, 1, 2**31 - 1)
    if given.size(1) % group:
        raise ValueError(f"flashinfer.{where}: `group_size` is {group}, expected a divisor of the {given.size(1)} columns of `x`")
    if dst_dtype is not None and not isinstance(dst_dtype, torch.dtype):
        _check.fail_type(f"flashinfer.{where}", "dst_dtype", dst_dtype, "a dtype of torch")
    if dst_dtype not in (None, torch.float8_e4m3fn, torch.int8):
        raise TypeError(f"flashinfer.{where}: `dst_dtype` is {str(dst_dtype)[6:]}, expected float8_e4m3fn or int8")
    for name, value in (("scale_ue8m0", scale_ue8m0), ("scale_tma_aligned", scale_tma_aligned), ("column_major_scales", column_major_scales)):
        _check.boolean(f"flashinfer.{where}", name, value)
    refuse(where, "it is of kernels for SM100", scale_ue8m0=scale_ue8m0)
    if scale_tma_aligned and not column_major_scales:
        raise NotImplementedError(f"flashinfer.{where}: `scale_tma_aligned` is True, expected `column_major_scales` beside it: rows of scales are not aligned")
    if column_major_scales and x.dim() != 2:
        raise NotImplementedError(f"flashinfer.{where}: `x` has {x.dim()} dims, expected 2 beside `column_major_scales`")
    m, groups = given.size(0), given.size(1) // group
    if column_major_scales:
        scales = torch.empty((groups, -(-m // 4) * 4 if scale_tma_aligned else m), dtype=torch.float32, device=x.device).mT[:m]
    else:
        scales = torch.empty((m, groups), dtype=torch.float32, device=x.device)
    q = torch.empty(x.shape, dtype=dst_dtype or torch.float8_e4m3fn, device=x.device)
    call(where, quern.quant.per_token_group, {"amax_floor": "eps"}, x=given, group_size=group, amax_floor=_check.number(f"flashinfer.{where}", "eps", eps), q=q.view(given.shape), scales=scales)
    return q, scales if column_major_scales else scales.view(*x.shape[:-1], groups)
