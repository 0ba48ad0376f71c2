# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Prefill and decode in one call, and attention with sinks."""
import functools

from quern import _check
from quern.compat.flashinfer._attention import PagedWrapper, dtype_of, lse_for, refuse_variants, soft_cap_of
from quern.compat.flashinfer._base import refuse, tensor, torch
from quern.compat.flashinfer.page import unpack
from quern.compat.flashinfer.prefill import BatchPrefillWithPagedKVCacheWrapper


class BatchAttention(PagedWrapper):
    """Attention of requests of any number of query tokens over a paged cache, in one call; run() returns (out, lse)."""

    def __init__(self, kv_layout="NHD", device="cuda"):
        if not isinstance(device, (str, int, torch.device)):
            _check.fail_type("flashinfer.BatchAttention", "device", device, "a device of torch or its name")
        super().__init__("BatchAttention", torch.empty(0, dtype=torch.uint8, device=device), kv_layout, False, "auto", {})

    def plan(self, qo_indptr, kv_indptr, kv_indices, kv_len_arr, num_qo_heads, num_kv_heads, head_dim_qk, head_dim_vo, page_size, causal=False, sm_scale=None, logits_soft_cap=None,
             q_data_type=None, kv_data_type=None, use_profiler=False):
        """The tables of a step; kv_len_arr: keys of each request. A dtype that is None is bfloat16."""
        where = f"{self._where}.plan"
        refuse(where, "quern has no profiler of that kind", use_profiler=use_profiler)
        *self._heads, self._head_dim, self._page_size = self._sizes(num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim_qk=head_dim_qk, page_size=page_size)
        if self._sizes(head_dim_vo=head_dim_vo) != [head_dim_qk]:
            raise NotImplementedError(f"flashinfer.{where}: `head_dim_vo` is {head_dim_vo}, expected that of q and k, {head_dim_qk}: quern.attention.paged has one head_dim")
        last = torch.where(tensor(where, "kv_len_arr", kv_len_arr, 1) > 0, (kv_len_arr - 1) % page_size + 1, 0).int()
        self._tables({"kv_indptr": kv_indptr, "kv_indices": kv_indices, "kv_len_arr": last}, (None, None, None))
        self._qo_indptr_buf = self._keep("qo_indptr", qo_indptr)
        self._options(causal, -1, logits_soft_cap, sm_scale, q_data_type or torch.bfloat16, kv_data_type or torch.bfloat16, None, None, False, {})

    def run(self, q, kv_cache, out=None, lse=None, k_scale=None, v_scale=None, logits_soft_cap=0.0, profiler_buffer=None, kv_cache_sf=None):
        """(out, lse) of q [tokens, heads, head_dim]. logits_soft_cap: 0, or in the place of that of plan()."""
        where = f"{self._where}.run"
        refuse(where, "quern has no profiler of that kind", profiler_buffer=profiler_buffer)
        refuse_variants(where, kv_cache_sf=kv_cache_sf)
        k, v = unpack(where, kv_cache, self._kv_layout, "kv_cache")
        planned = self._logits_soft_cap if self._planned else 0
        try:
            self._logits_soft_cap = soft_cap_of(where, logits_soft_cap) or planned
            return self._run(where, q, k, v, self._qo_indptr_buf, out, lse_for(where, tensor(where, "q", q, 3), lse, True), None, None, None, k_scale, v_scale)
        finally:
            self._logits_soft_cap = planned


class BatchAttentionWithAttentionSinkWrapper(BatchPrefillWithPagedKVCacheWrapper):
    """The paged prefill wrapper whose run() takes sinks and the scale of logits by position: run(q, cache, sinks, sm_scale)."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, qo_indptr_buf=None, paged_kv_indptr_buf=None, paged_kv_indices_buf=None,
                 paged_kv_last_page_len_buf=None, custom_mask_buf=None, mask_indptr_buf=None, backend="auto", pos_encoding_mode="NONE", use_fp16_qk_reduction=False, q_data_type=None,
                 kv_data_type=None, head_dim_qk=128, head_dim_vo=128, window_left=-1):
        where = "BatchAttentionWithAttentionSinkWrapper"
        refuse_variants(where, pos_encoding_mode, use_fp16_qk_reduction=use_fp16_qk_reduction)
        q_data_type, kv_data_type = dtype_of(where, "q_data_type", q_data_type), dtype_of(where, "kv_data_type", kv_data_type)
        for name, value, least in (("head_dim_qk", head_dim_qk, 1), ("head_dim_vo", head_dim_vo, 1), ("window_left", window_left, -1)):
            _check.integer(f"flashinfer.{where}", name, value, least, 2**31 - 1)
        if head_dim_vo != head_dim_qk:
            raise NotImplementedError(f"flashinfer.BatchAttentionWithAttentionSinkWrapper: `head_dim_vo` is {head_dim_vo}, expected that of q and k, {head_dim_qk}")
        super().__init__(float_workspace_buffer, kv_layout, use_cuda_graph, qo_indptr_buf, paged_kv_indptr_buf, paged_kv_indices_buf, paged_kv_last_page_len_buf, custom_mask_buf,
                         mask_indptr_buf, backend)
        self._of_constructor = {"q_data_type": q_data_type, "kv_data_type": kv_data_type, "head_dim_qk": head_dim_qk, "window_left": window_left}

    def plan(self, *arguments, **keywords):
        """That of the prefill wrapper. What the constructor was told must agree."""
        super().plan(*arguments, **keywords)
        told = self._of_constructor
        for name, value, planned in (("head_dim_qk", told["head_dim_qk"], self._head_dim), ("q_data_type", told["q_data_type"] or torch.bfloat16, self._q_dtype),
                                     ("kv_data_type", told["kv_data_type"] or torch.bfloat16, self._kv_dtype)):
            if value != planned:
                self._planned = False
                raise ValueError(f"flashinfer.{self._where}.plan: `{name}` is {planned}, expected {value}, as the constructor was told")
        if (told["window_left"] >= 0) != (self._window_left >= 0):
            self._planned = False
            raise ValueError(f"flashinfer.{self._where}.plan: `window_left` is {self._window_left}, the constructor was told {told['window_left']}: expected a window in both or in none")

    begin_forward = plan

    def run(self, q, paged_kv_cache, *args, **keywords):
        """Attention with args = (sinks, sm_scale)."""
        if len(args) != 2:
            raise ValueError(f"flashinfer.{self._where}.run: `args` are {len(args)}, expected 2: sinks and sm_scale")
        if keywords.get("sinks") is not None:
            raise ValueError(f"flashinfer.{self._where}.run: `sinks` is given twice")
        planned = self._sm_scale if self._planned else None
        try:
            self._sm_scale = args[1]
            return super().run(q, paged_kv_cache, **{**keywords, "sinks": args[0]})
        finally:
            self._sm_scale = planned

    run_return_lse = functools.partialmethod(run, return_lse=True)
