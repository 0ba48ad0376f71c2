# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Attention over all keys from that over parts of them. Logarithms are to base 2."""
import quern
from quern import _check
from quern.compat.flashinfer._attention import NAMES, attend, ends_of, lse_for, refuse_variants, scales
from quern.compat.flashinfer._base import call, tensor, torch
from quern.compat.flashinfer.decode import BatchDecodeWithPagedKVCacheWrapper
from quern.compat.flashinfer.page import unpack
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
        where = "flashinfer.MultiLevelCascadeAttentionWrapper"
        arrays = (qo_indptr_buf_arr, paged_kv_indptr_buf_arr, paged_kv_indices_buf_arr, paged_kv_last_page_len_buf_arr)
        _check.integer(where, "num_levels", num_levels, 1, 2**31 - 1), _check.boolean(where, "use_cuda_graph", use_cuda_graph)
        for name, array in zip(("qo_indptr_buf_arr", "paged_kv_indptr_buf_arr", "paged_kv_indices_buf_arr", "paged_kv_last_page_len_buf_arr"), arrays):
            if array is not None and not isinstance(array, (tuple, list)):
                _check.fail_type(where, name, array, "a list of tensors, one for each level")
        if use_cuda_graph and any(array is None or len(array) != num_levels for array in arrays):
            raise ValueError(f"flashinfer.MultiLevelCascadeAttentionWrapper: buffers of a graph are lists of {num_levels}, one for each level")
        self._wrappers = [BatchPrefillWithPagedKVCacheWrapper(float_workspace_buffer, kv_layout, use_cuda_graph, *(array[i] if use_cuda_graph else None for array in arrays))
                          for i in range(num_levels)]

    @property
    def is_cuda_graph_enabled(self):
        return self._wrappers[0].is_cuda_graph_enabled

    def prewarm_paged_kv_stride_variant(self, variant="independent"):
        """That of each level."""
        for wrapper in self._wrappers:
            wrapper.prewarm_paged_kv_stride_variant(variant)

    def reset_workspace_buffer(self, float_workspace_buffer, int_workspace_buffers):
        """Another workspace for graphs. quern's ops have no integer workspace."""
        if int_workspace_buffers is not None and not isinstance(int_workspace_buffers, (tuple, list)):
            _check.fail_type("flashinfer.MultiLevelCascadeAttentionWrapper.reset_workspace_buffer", "int_workspace_buffers", int_workspace_buffers, "a list of tensors, one for each level")
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
        _check.boolean(where, "causal", causal), _check.integer(where, "head_dim", head_dim, 1, 2**31 - 1)
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


class _SharedPrefix:
    """A prefix that all requests share, contiguous, and what is their own, paged: attention of both, merged. Three launches."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD"):
        self._where = type(self).__name__
        self._unique = self._paged(float_workspace_buffer, kv_layout)

    def reset_workspace_buffer(self, float_workspace_buffer, int_workspace_buffer):
        """Another workspace, which is not read: memory is of the device's pool."""
        self._unique.reset_workspace_buffer(float_workspace_buffer, int_workspace_buffer)

    def _merged(self, where, q, k_shared, v_shared, sm_scale, unique):
        """The result over both; `unique`: a function that gives (out, lse) of the second."""
        for name, t in (("q", q), ("k_shared", k_shared), ("v_shared", v_shared)):
            tensor(where, name, t, 3)
        k, v = (k_shared, v_shared) if self._unique._kv_layout == "NHD" else (k_shared.transpose(0, 1), v_shared.transpose(0, 1))
        out, lse = unique()
        shared = attend(where, quern.attention.ragged, q, None, None, lse_for(where, q, None, True), {**NAMES, "k": "k_shared", "v": "v_shared"}, k=k, v=v,
                        q_indptr=ends_of(q.size(0), q.device), kv_indptr=ends_of(k.size(0), q.device), max_seq_q=q.size(0), **scales(where, q, k.size(1), 1, sm_scale))
        merge_state_in_place(out, lse, *shared)
        return out

    def end_forward(self):
        """Nothing is to be ended."""


class BatchDecodeWithSharedPrefixPagedKVCacheWrapper(_SharedPrefix):
    """Decode of a query token a request over keys that all share, and over its own."""

    _paged = BatchDecodeWithPagedKVCacheWrapper

    def begin_forward(self, unique_kv_indptr, unique_kv_indices, unique_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, data_type="float16"):
        """Takes the tables of the keys that are not shared."""
        for name, t in (("unique_kv_indptr", unique_kv_indptr), ("unique_kv_indices", unique_kv_indices), ("unique_kv_last_page_len", unique_kv_last_page_len)):
            tensor(f"{self._where}.begin_forward", name, t, 1)
        self._unique.plan(unique_kv_indptr, unique_kv_indices, unique_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, data_type=data_type)

    def forward(self, q, k_shared, v_shared, unique_kv_cache):
        """Attention of q [batch, heads, head_dim] over k_shared and v_shared [length, heads_kv, head_dim], or [heads_kv, length, head_dim] in HND, and the cache."""
        where = f"{self._where}.forward"
        unpack(where, unique_kv_cache, self._unique._kv_layout, "unique_kv_cache")
        return self._merged(where, q, k_shared, v_shared, None, lambda: self._unique.run(q, unique_kv_cache, return_lse=True))


class BatchPrefillWithSharedPrefixPagedKVCacheWrapper(_SharedPrefix):
    """The same of any number of query tokens a request. Dtypes are those of the tensors."""

    _paged = BatchPrefillWithPagedKVCacheWrapper

    def prewarm_paged_kv_stride_variant(self, variant="independent"):
        """That of the keys that are not shared."""
        self._unique.prewarm_paged_kv_stride_variant(variant)

    def begin_forward(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size):
        """Takes the tables of the keys that are not shared."""
        if not isinstance(head_dim, int):
            _check.fail_type(f"flashinfer.{self._where}.begin_forward", "head_dim", head_dim, "an integer")
        self._unique.plan(qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size)

    def forward(self, q, k_shared, v_shared, unique_kv_cache, causal=False, use_fp16_qk_reduction=False, sm_scale=None, rope_scale=None, rope_theta=None):
        """Attention of q [tokens, heads, head_dim]. causal is of the keys that are not shared: those that are stand before all queries."""
        where = f"{self._where}.forward"
        refuse_variants(where, "NONE", rope_scale, rope_theta, use_fp16_qk_reduction=use_fp16_qk_reduction)
        tensor(where, "q", q, 3)
        k, v = unpack(where, unique_kv_cache, self._unique._kv_layout, "unique_kv_cache")
        _check.boolean(f"flashinfer.{where}", "causal", causal)
        self._unique._q_dtype, self._unique._kv_dtype = q.dtype, k.dtype
        return self._merged(where, q, k_shared, v_shared, sm_scale, lambda: self._unique.forward(q, unique_kv_cache, causal=causal, sm_scale=sm_scale, return_lse=True))
