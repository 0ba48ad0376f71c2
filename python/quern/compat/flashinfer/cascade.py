# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Attention over all keys from that over parts of them. Logarithms are to base 2."""
import quern
from quern import _check
from quern.compat.flashinfer._base import call, tensor, torch
from quern.compat.flashinfer.prefill import BatchPrefillWithPagedKVCacheWrapper


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


class MultiLevelCascadeAttentionWrapper:
    """Attention over prefixes that requests share and what is their own: a paged prefill wrapper for each level, whose results are merged. The last level is
    that of the newest keys, and alone is causal."""

    def __init__(self, num_levels, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, qo_indptr_buf_arr=None, paged_kv_indptr_buf_arr=None, paged_kv_indices_buf_arr=None,
                 paged_kv_last_page_len_buf_arr=None):
        arrays = (qo_indptr_buf_arr, paged_kv_indptr_buf_arr, paged_kv_indices_buf_arr, paged_kv_last_page_len_buf_arr)
        if use_cuda_graph and any(array is None or len(array) != num_levels for array in arrays):
            raise ValueError(f"flashinfer.MultiLevelCascadeAttentionWrapper: buffers of a graph are lists of {num_levels}, one for each level")
        self._wrappers = [BatchPrefillWithPagedKVCacheWrapper(float_workspace_buffer, kv_layout, use_cuda_graph, *(array[i] if use_cuda_graph else None for array in arrays))
                          for i in range(num_levels)]

    def reset_workspace_buffer(self, float_workspace_buffer, int_workspace_buffers):
        """Another workspace for graphs."""
        for wrapper in self._wrappers:
            wrapper.reset_workspace_buffer(float_workspace_buffer, None)

    def plan(self, qo_indptr_arr, paged_kv_indptr_arr, paged_kv_indices_arr, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, causal=False,
             pos_encoding_mode="NONE", use_fp16_qk_reduction=False, sm_scale=None, window_left=-1, logits_soft_cap=None, rope_scale=None, rope_theta=None, q_data_type="float16",
             kv_data_type=None):
        """Tables of each level. A window counts from the last key of its level, so there is none."""
        where = "flashinfer.MultiLevelCascadeAttentionWrapper.plan"
        for name, value in (("qo_indptr_arr", qo_indptr_arr), ("paged_kv_indptr_arr", paged_kv_indptr_arr), ("paged_kv_indices_arr", paged_kv_indices_arr),
                            ("paged_kv_last_page_len", paged_kv_last_page_len)):
            if not isinstance(value, (tuple, list)):
                _check.fail_type(where, name, value, "a list of tensors, one for each level")
        _check.boolean(where, "causal", causal)
        if _check.integer(where, "window_left", window_left, -1, 2**31 - 1) >= 0 and len(self._wrappers) > 1:
            raise NotImplementedError(f"flashinfer.MultiLevelCascadeAttentionWrapper.plan: `window_left` is {window_left}, expected -1: a level does not know where the next ends")
        tables = list(zip(qo_indptr_arr, paged_kv_indptr_arr, paged_kv_indices_arr, paged_kv_last_page_len))
        if len(tables) != len(self._wrappers):
            raise ValueError(f"flashinfer.MultiLevelCascadeAttentionWrapper.plan: there are tables of {len(tables)} levels, expected {len(self._wrappers)}")
        for i, (wrapper, table) in enumerate(zip(self._wrappers, tables)):
            wrapper.plan(*table, num_qo_heads, num_kv_heads, head_dim, page_size, causal=causal and i == len(tables) - 1, pos_encoding_mode=pos_encoding_mode,
                         use_fp16_qk_reduction=use_fp16_qk_reduction, sm_scale=sm_scale, window_left=window_left, logits_soft_cap=logits_soft_cap, rope_scale=rope_scale,
                         rope_theta=rope_theta, q_data_type=q_data_type, kv_data_type=kv_data_type)

    begin_forward = plan

    def run(self, q, paged_kv_cache):
        """Attention of q [tokens, heads, head_dim]."""
        *others, last = self._wrappers
        out, lse = last.run(q, paged_kv_cache, return_lse=True)
        for wrapper in others:
            merge_state_in_place(out, lse, *wrapper.run(q, paged_kv_cache, return_lse=True))
        return out

    forward = run

    def end_forward(self):
        """Nothing is to be ended."""
