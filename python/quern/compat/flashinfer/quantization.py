# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Bits of booleans."""
import quern
from quern.compat.flashinfer._base import call, one_of, tensor, torch

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
