# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Copies of parts into one tensor, by torch."""
from quern.compat.flashinfer._base import one_of, tensor
from quern.compat.flashinfer._names import _SM100


def concat_mla_k(k, k_nope, k_rope, *, backend="default"):
    """k[:, :, :nope_dim] = k_nope, k[:, :, nope_dim:] = k_rope: k [tokens, heads, nope_dim + rope_dim], k_nope [tokens, heads, nope_dim], k_rope [tokens, 1, rope_dim],
    the same for all heads. One dtype; any strides. Two copies."""
    where = "concat_mla_k"
    one_of(where, "backend", backend, {"default": None, "cake": _SM100})
    tensor(where, "k", k, 3), tensor(where, "k_nope", k_nope, 3), tensor(where, "k_rope", k_rope, 3)
    nope = k_nope.size(2)
    for name, t, shape in (("k_nope", k_nope, (*k.shape[:2], nope)), ("k_rope", k_rope, (k.size(0), 1, k.size(2) - nope))):
        if tuple(t.shape) != shape:
            raise ValueError(f"flashinfer.{where}: `{name}` has shape {list(t.shape)}, expected {list(shape)}, as `k` has {list(k.shape)}")
        if t.dtype != k.dtype:
            raise TypeError(f"flashinfer.{where}: `{name}` is {str(t.dtype)[6:]}, expected {str(k.dtype)[6:]}, as `k`")
    k[:, :, :nope].copy_(k_nope), k[:, :, nope:].copy_(k_rope.expand(-1, k.size(1), -1))
