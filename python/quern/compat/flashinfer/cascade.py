# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Attention over all keys from that over parts of them. Logarithms are to base 2."""
import quern
from quern.compat.flashinfer._base import call, tensor, torch


def merge_state(v_a, s_a, v_b, s_b):
    """(v, s) of two parts: v [tokens, heads, head_dim], s f32 [tokens, heads]."""
    tensor("merge_state", "v_a", v_a, 3), tensor("merge_state", "s_a", s_a, 2)
    return call("merge_state", quern.attention.merge_states, {"v": "v_a", "lse": "s_a", "v_other": "v_b", "lse_other": "s_b"}, v=v_a[None], lse=s_a[None], v_other=v_b, lse_other=s_b,
                out_lse=True)


def merge_state_in_place(v, s, v_other, s_other, mask=None):
    """The same into v and s; where mask is False they stay."""
    where = "merge_state_in_place"
    tensor(where, "v_other", v_other, 3), tensor(where, "s_other", s_other, 2)
    if mask is not None and tensor(where, "mask", mask, 1).dtype == torch.bool:
        mask = mask.view(torch.uint8)
    call(where, quern.attention.merge_states, {"v": "v_other", "lse": "s_other", "v_other": "v", "lse_other": "s", "out": "v", "out_lse": "s"}, v=v_other[None], lse=s_other[None],
         v_other=v, lse_other=s, mask=mask, out=v, out_lse=s)


def merge_states(v, s):
    """(v, s) of several parts: v [tokens, parts, heads, head_dim], s f32 [tokens, parts, heads]."""
    tensor("merge_states", "v", v, 4), tensor("merge_states", "s", s, 3)
    return call("merge_states", quern.attention.merge_states, {"lse": "s"}, v=v.transpose(0, 1), lse=s.transpose(0, 1), out_lse=True)
