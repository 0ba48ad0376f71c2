# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Attention of requests of any number of query tokens. A custom mask stands in the place of `causal`; windows hold beside both."""
import functools
import math

import quern
from quern import _check
from quern.compat.flashinfer._attention import (
    BACKENDS, NAMES, PagedWrapper, Wrapper, attend, batch_of, by_scales, dense_tables, dtype_of, ends_of, lse_for, mask_of_one, masks, one_sink, options_of, refuse_trtllm,
    refuse_variants, scales, soft_cap_of, whole,
)
from quern.compat.flashinfer._base import hint, one_of, refuse, restated, tensor, torch
from quern.compat.flashinfer._names import _FP4
from quern.compat.flashinfer.page import unpack


def single_prefill_with_kv_cache(q, k, v, scale_q=None, scale_k=None, scale_v=None, o_dtype=None, custom_mask=None, packed_custom_mask=None, causal=False, kv_layout="NHD",
                                 pos_encoding_mode="NONE", use_fp16_qk_reduction=False, sm_scale=None, window_left=-1, logits_soft_cap=None, rope_scale=None, rope_theta=None,
                                 backend="auto", return_lse=False, kv_cache_sf=None, k_scale=None, v_scale=None):
    """Attention of q [tokens, heads, head_dim] over k and v [length, heads_kv, head_dim], or [heads_kv, length, head_dim] in HND. scale_q, scale_k, scale_v:
    tensors of one number a head."""
    where = "single_prefill_with_kv_cache"
    refuse_variants(where, pos_encoding_mode, rope_scale, rope_theta, use_fp16_qk_reduction=use_fp16_qk_reduction, kv_cache_sf=kv_cache_sf)
    one_of(where, "backend", backend, BACKENDS)
    one_of(where, "kv_layout", kv_layout, {"NHD": None, "HND": None})
    for name, value in (("q", q), ("k", k), ("v", v)):
        tensor(where, name, value, 3)
    for first, second, names in ((scale_k, k_scale, "`scale_k` and `k_scale`"), (scale_v, v_scale, "`scale_v` and `v_scale`")):
        if first is not None and second is not None:
            raise ValueError(f"flashinfer.{where}: {names} are given, expected one")
    k, v = (k, v) if kv_layout == "NHD" else (k.transpose(0, 1), v.transpose(0, 1))
    q_ends, kv_ends = ends_of(q.size(0), q.device), ends_of(k.size(0), q.device)
    mask = mask_of_one(where, custom_mask, packed_custom_mask, q.size(0) * k.size(0))
    return attend(where, quern.attention.ragged, q, None, dtype_of(where, "o_dtype", o_dtype), lse_for(where, q, None, return_lse), k=k, v=v, q_indptr=q_ends, kv_indptr=kv_ends,
                  causal=_check.boolean(f"flashinfer.{where}", "causal", causal) and not mask, window_left=window_left, soft_cap=soft_cap_of(where, logits_soft_cap), max_seq_q=q.size(0), **mask,
                  **scales(where, q, k.size(1), 1, sm_scale, scale_q, scale_k if k_scale is None else k_scale, scale_v if v_scale is None else v_scale,
                           {"q_scale": "scale_q", **({"k_scale": "scale_k"} if k_scale is None else {}), **({"v_scale": "scale_v"} if v_scale is None else {})}))


single_prefill_with_kv_cache_return_lse = functools.partial(single_prefill_with_kv_cache, return_lse=True)


class _Captured:
    """What has a plan() that FlashInfer's kernels need before a graph runs again. quern's do not: they read their tables where they lie."""

    def __init__(self, wrapper):
        self._wrapper = wrapper

    def plan(self, float_workspace, int_workspace, pinned_workspace, qo_indptr, kv_indptr, kv_lens, total_rows, batch_size, num_qo_heads, num_kv_heads, page_size, use_cuda_graph, head_dim_qk,
             head_dim_vo, causal, window_left, *schedule):
        """Compares the sizes with those that were planned. Nothing that the others say changes a result: the tables lie in the wrapper's buffers, and `causal` and
        `window_left` are those of the run that was captured."""
        wrapper = self._wrapper
        for name, told, planned in (("batch_size", batch_size, wrapper._qo_indptr_buf.numel() - 1), ("num_qo_heads", num_qo_heads, wrapper._heads[0]), ("num_kv_heads", num_kv_heads, wrapper._heads[1]),
                                    ("page_size", page_size, wrapper._page_size), ("head_dim_qk", head_dim_qk, wrapper._head_dim), ("head_dim_vo", head_dim_vo, wrapper._head_dim)):
            if told != planned:
                raise ValueError(f"flashinfer.{wrapper._where}.plan: `{name}` is {told}, expected {planned}, as the plan before the graph was told")
        return []


class BatchPrefillWithPagedKVCacheWrapper(PagedWrapper):
    """Prefill of a batch over a paged cache: plan() for a step, run() for each layer. plan() takes tables on the host or the device; with a mask it waits for
    the device."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, qo_indptr_buf=None, paged_kv_indptr_buf=None, paged_kv_indices_buf=None,
                 paged_kv_last_page_len_buf=None, custom_mask_buf=None, mask_indptr_buf=None, backend="auto", jit_args=None, jit_kwargs=None, variant_owns_mask=False):
        buffers = {"qo_indptr_buf": qo_indptr_buf, "paged_kv_indptr_buf": paged_kv_indptr_buf, "paged_kv_indices_buf": paged_kv_indices_buf,
                   "paged_kv_last_page_len_buf": paged_kv_last_page_len_buf, "custom_mask_buf": custom_mask_buf, "mask_indptr_buf": mask_indptr_buf}
        super().__init__(type(self).__name__, float_workspace_buffer, kv_layout, use_cuda_graph, backend, buffers, jit_args=jit_args, jit_kwargs=jit_kwargs, variant_owns_mask=variant_owns_mask)
        self._fixed_batch_size = paged_kv_last_page_len_buf.numel() if use_cuda_graph else 0

    @whole
    def plan(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim_qk, page_size, head_dim_vo=None, custom_mask=None,
             packed_custom_mask=None, causal=False, pos_encoding_mode="NONE", use_fp16_qk_reduction=False, sm_scale=None, window_left=-1, logits_soft_cap=None, rope_scale=None,
             rope_theta=None, q_data_type="float16", kv_data_type=None, o_data_type=None, non_blocking=True, prefix_len_ptr=None, token_pos_in_items_ptr=None, token_pos_in_items_len=0,
             max_item_len_ptr=None, seq_lens=None, seq_lens_q=None, block_tables=None, max_token_per_sequence=None, max_sequence_kv=None, fixed_split_size=None, disable_split_kv=False,
             uniform_q_len=None):
        """Takes the tables of a step and what its calls have in common. seq_lens, seq_lens_q, block_tables, max_token_per_sequence, max_sequence_kv and
        uniform_q_len say what the tables say, and are not read."""
        where = f"{self._where}.plan"
        refuse_variants(where, pos_encoding_mode, rope_scale, rope_theta, use_fp16_qk_reduction=use_fp16_qk_reduction, prefix_len_ptr=prefix_len_ptr,
                        token_pos_in_items_ptr=token_pos_in_items_ptr, token_pos_in_items_len=token_pos_in_items_len, max_item_len_ptr=max_item_len_ptr)
        hint(where, "non_blocking", non_blocking)
        restated(where, (("seq_lens", seq_lens), ("seq_lens_q", seq_lens_q), ("block_tables", block_tables)), (("max_token_per_sequence", max_token_per_sequence), ("max_sequence_kv", max_sequence_kv),
                                                                                ("uniform_q_len", uniform_q_len)))
        *self._heads, self._head_dim, self._page_size = self._sizes(num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim_qk=head_dim_qk, page_size=page_size)
        if head_dim_vo is not None and self._sizes(head_dim_vo=head_dim_vo) != [head_dim_qk]:
            raise NotImplementedError(f"flashinfer.{where}: `head_dim_vo` is {head_dim_vo}, expected that of q and k, {head_dim_qk}: quern.attention.paged has one head_dim")
        mask = self._keep_masks(masks(where, custom_mask, packed_custom_mask, lambda: self._lengths_of(qo_indptr) *
                                      self._lengths(paged_kv_indptr.to(self.device), paged_kv_last_page_len.to(self.device), page_size)))
        self._qo_indptr_buf = self._keep("qo_indptr", qo_indptr, "qo_indptr_buf")
        self._tables({"paged_kv_indptr": paged_kv_indptr, "paged_kv_indices": paged_kv_indices, "paged_kv_last_page_len": paged_kv_last_page_len}, ("paged_kv_indptr_buf", "paged_kv_indices_buf", "paged_kv_last_page_len_buf"))
        self._options(causal, window_left, logits_soft_cap, sm_scale, q_data_type, kv_data_type, o_data_type, fixed_split_size, disable_split_kv, mask)

    begin_forward = plan

    # What SGLang reads when it plans a captured graph anew by a function of its own: it fills the buffers above, and hands the rest to `_cached_module`.
    _max_total_num_rows = _int_workspace_buffer = _pin_memory_int_workspace_buffer = None

    @property
    def _cached_module(self):
        return _Captured(self) if self._planned else None

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None, lse=None, return_lse=False, enable_pdl=None, window_left=None, sinks=None,
            kv_cache_sf=None, skip_softmax_threshold_scale_factor=None, use_fp16_softmax=None, uses_spcompress=None, lse_base="log2", lse_layout="NH"):
        """Attention of q [tokens, heads, head_dim]. sinks: logits that join the denominator."""
        if q_scale is k_scale is v_scale is lse is enable_pdl is window_left is sinks is kv_cache_sf is skip_softmax_threshold_scale_factor is use_fp16_softmax is uses_spcompress is None \
                and return_lse is False and not args and lse_base == "log2" and lse_layout == "NH":
            result = self._run_plainly(q, paged_kv_cache, out, None)
            if result is not None:
                return result
        where = f"{self._where}.run"
        refuse(where, "variants are hooks of quern's ops (docs/own_ops.md)", args=args or None)
        refuse_variants(where, kv_cache_sf=kv_cache_sf, skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor, use_fp16_softmax=use_fp16_softmax,
                        uses_spcompress=uses_spcompress)
        hint(where, "enable_pdl", enable_pdl)
        k, v = unpack(where, paged_kv_cache, self._kv_layout)
        return self._run(where, q, k, v, self._qo_indptr_buf, out, lse_for(where, tensor(where, "q", q, 3), lse, return_lse, lse_base, lse_layout), window_left,
                         sinks, q_scale, k_scale, v_scale)

    run_return_lse = functools.partialmethod(run, return_lse=True)

    def forward(self, q, paged_kv_cache, causal=False, pos_encoding_mode="NONE", use_fp16_qk_reduction=False, k_scale=None, v_scale=None, window_left=-1, logits_soft_cap=None,
                sm_scale=None, rope_scale=None, rope_theta=None, return_lse=False):
        """The old form of run(), with options of its own."""
        refuse_variants(f"{self._where}.forward", pos_encoding_mode, rope_scale, rope_theta, use_fp16_qk_reduction=use_fp16_qk_reduction)
        self._causal, self._window_left, self._logits_soft_cap, self._sm_scale = options_of(f"{self._where}.forward", causal, window_left, logits_soft_cap, sm_scale)
        return self.run(q, paged_kv_cache, k_scale=k_scale, v_scale=v_scale, return_lse=return_lse)

    forward_return_lse = functools.partialmethod(forward, return_lse=True)

    def end_forward(self):
        """Nothing is to be ended."""

    def workspace_size(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim_qk, page_size, head_dim_vo=None, custom_mask=None,
                       packed_custom_mask=None, causal=False, pos_encoding_mode="NONE", use_fp16_qk_reduction=False, sm_scale=None, window_left=-1, logits_soft_cap=None, rope_scale=None,
                       rope_theta=None, q_data_type="float16", kv_data_type=None, o_data_type=None, prefix_len_ptr=None, token_pos_in_items_ptr=None, token_pos_in_items_len=0,
                       max_item_len_ptr=None, seq_lens=None, seq_lens_q=None, block_tables=None, max_token_per_sequence=None, max_sequence_kv=None, fixed_split_size=None,
                       disable_split_kv=False, uniform_q_len=None):
        """(bytes of the float workspace, 0) of such a plan. What this wrapper has planned stays."""
        other = BatchPrefillWithPagedKVCacheWrapper(self._float_workspace_buffer, self._kv_layout)
        other.plan(qo_indptr, paged_kv_indptr, self._capacity(paged_kv_indices, "paged_kv_indices_buf"), paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim_qk, page_size, head_dim_vo, custom_mask, packed_custom_mask,
                   causal, pos_encoding_mode, use_fp16_qk_reduction, sm_scale, window_left, logits_soft_cap, rope_scale, rope_theta, q_data_type, kv_data_type, o_data_type, True,
                   prefix_len_ptr, token_pos_in_items_ptr, token_pos_in_items_len, max_item_len_ptr, seq_lens, seq_lens_q, block_tables, max_token_per_sequence, max_sequence_kv,
                   fixed_split_size, disable_split_kv, uniform_q_len)
        return other._workspace_bytes(int(qo_indptr[-1]), other._qo_indptr_buf), 0


class BatchPrefillWithRaggedKVCacheWrapper(Wrapper):
    """Prefill of a batch over keys that lie one request after the other."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, qo_indptr_buf=None, kv_indptr_buf=None, custom_mask_buf=None, mask_indptr_buf=None,
                 backend="auto", jit_args=None, jit_kwargs=None, variant_owns_mask=False):
        buffers = {"qo_indptr_buf": qo_indptr_buf, "kv_indptr_buf": kv_indptr_buf, "custom_mask_buf": custom_mask_buf, "mask_indptr_buf": mask_indptr_buf}
        super().__init__("BatchPrefillWithRaggedKVCacheWrapper", float_workspace_buffer, kv_layout, use_cuda_graph, backend, buffers, jit_args=jit_args, jit_kwargs=jit_kwargs, variant_owns_mask=variant_owns_mask)
        self._fixed_batch_size = qo_indptr_buf.numel() - 1 if use_cuda_graph else 0

    @whole
    def plan(self, qo_indptr, kv_indptr, num_qo_heads, num_kv_heads, head_dim_qk, head_dim_vo=None, custom_mask=None, packed_custom_mask=None, causal=False, pos_encoding_mode="NONE",
             use_fp16_qk_reduction=False, window_left=-1, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None, q_data_type="float16", kv_data_type=None,
             o_data_type=None, non_blocking=True, prefix_len_ptr=None, token_pos_in_items_ptr=None, token_pos_in_items_len=0, max_item_len_ptr=None, fixed_split_size=None,
             disable_split_kv=False, seq_lens=None, seq_lens_q=None, max_token_per_sequence=None, max_sequence_kv=None, v_indptr=None, o_indptr=None, uniform_q_len=None):
        """Takes the tables of a step and what its calls have in common. seq_lens, seq_lens_q, max_token_per_sequence, max_sequence_kv and uniform_q_len say what
        the tables say, and are not read."""
        where = f"{self._where}.plan"
        refuse_variants(where, pos_encoding_mode, rope_scale, rope_theta, use_fp16_qk_reduction=use_fp16_qk_reduction, prefix_len_ptr=prefix_len_ptr,
                        token_pos_in_items_ptr=token_pos_in_items_ptr, token_pos_in_items_len=token_pos_in_items_len, max_item_len_ptr=max_item_len_ptr, v_indptr=v_indptr, o_indptr=o_indptr)
        hint(where, "non_blocking", non_blocking)
        restated(where, (("seq_lens", seq_lens), ("seq_lens_q", seq_lens_q)), (("max_token_per_sequence", max_token_per_sequence), ("max_sequence_kv", max_sequence_kv),
                                                                                ("uniform_q_len", uniform_q_len)))
        *self._heads, self._head_dim, self._head_dim_vo = self._sizes(num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim_qk=head_dim_qk,
                                                                      head_dim_vo=head_dim_qk if head_dim_vo is None else head_dim_vo)
        mask = self._keep_masks(masks(where, custom_mask, packed_custom_mask, lambda: self._lengths_of(qo_indptr) * self._lengths_of(kv_indptr)))
        self._qo_indptr_buf = self._keep("qo_indptr", qo_indptr, "qo_indptr_buf")
        self._kv_indptr_buf = self._keep("kv_indptr", kv_indptr, "kv_indptr_buf")
        self._options(causal, window_left, logits_soft_cap, sm_scale, q_data_type, kv_data_type, o_data_type, fixed_split_size, disable_split_kv, mask)

    begin_forward = plan

    def run(self, q, k, v, *args, q_scale=None, k_scale=None, v_scale=None, o_scale=None, out=None, lse=None, return_lse=False, enable_pdl=None, kv_cache_sf=None, lse_base="log2",
            lse_layout="NH"):
        """Attention of q [tokens, heads, head_dim] over k and v [keys, heads_kv, head_dim], or [heads_kv, keys, head_dim] in HND. args: FlashInfer's older form
        of q_scale, k_scale and v_scale."""
        if q_scale is k_scale is v_scale is o_scale is lse is enable_pdl is kv_cache_sf is None and return_lse is False and not args and lse_base == "log2" and lse_layout == "NH":
            result = self._run_plainly(q, k, v, out)
            if result is not None:
                return result
        where = f"{self._where}.run"
        if args:
            if len(args) != 3 or any(scale is not None for scale in (q_scale, k_scale, v_scale)):
                raise ValueError(f"flashinfer.{where}: `args` are {len(args)}, expected 3, the scales of q, k and v, and none of them by keyword")
            q_scale, k_scale, v_scale = args
        refuse_variants(where, kv_cache_sf=kv_cache_sf, o_scale=o_scale)
        hint(where, "enable_pdl", enable_pdl)
        tensor(where, "q", q, 3), tensor(where, "k", k, 3), tensor(where, "v", v, 3)
        k, v = (k, v) if self._kv_layout == "NHD" else (k.transpose(0, 1), v.transpose(0, 1))
        lse = lse_for(where, q, lse, return_lse, lse_base, lse_layout)
        self._check_run(where, q, k, self._heads, self._head_dim)
        if v.size(-1) != self._head_dim_vo:
            raise ValueError(f"flashinfer.{where}: `v` has head_dim {v.size(-1)}, expected {self._head_dim_vo}, as plan() was told")
        return attend(where, quern.attention.ragged, q, out, self._o_dtype, lse, k=k, v=v, q_indptr=self._qo_indptr_buf, kv_indptr=self._kv_indptr_buf,
                      **scales(where, q, k.size(1), self._kv_indptr_buf.numel() - 1, self._sm_scale, q_scale, k_scale, v_scale), **self._shared())

    def _quick_run(self):
        op, Tensor, q_dtype, kv_dtype, heads, heads_kv = quern.attention.ragged, torch.Tensor, self._q_dtype, self._kv_dtype, *self._heads
        head_dim, head_dim_v, mask, mask_indptr, in_order = self._head_dim, self._head_dim_vo, self._mask.get("mask"), self._mask.get("mask_indptr"), self._kv_layout == "NHD"
        standard_scale, o_dtype = 1 / math.sqrt(head_dim), self._o_dtype

        def run(self, q, k, v, out):
            if (out is not None and o_dtype is not None and out.dtype is not o_dtype) or not type(q) is type(k) is type(v) is Tensor or q.dtype is not q_dtype or k.dtype is not kv_dtype or not q.dim() == k.dim() == v.dim() == 3:
                return None
            if not in_order:
                k, v = k.transpose(0, 1), v.transpose(0, 1)
            sm_scale = standard_scale if self._sm_scale is None else self._sm_scale
            if q.shape[1:] != (heads, head_dim) or k.shape[1:] != (heads_kv, head_dim) or v.shape[2] != head_dim_v or sm_scale == 0:
                return None
            try:
                return op(q=q, k=k, v=v, q_indptr=self._qo_indptr_buf, kv_indptr=self._kv_indptr_buf, mask=mask, mask_indptr=mask_indptr, out=out,
                          causal=self._causal and mask is None, window_left=self._window_left, soft_cap=self._logits_soft_cap, sm_scale=sm_scale)
            except (ValueError, TypeError, NotImplementedError):
                return None

        return run

    run_return_lse = functools.partialmethod(run, return_lse=True)

    def forward(self, q, k, v, causal=False, pos_encoding_mode="NONE", use_fp16_qk_reduction=False, window_left=-1, logits_soft_cap=None, sm_scale=None, rope_scale=None,
                rope_theta=None, return_lse=False):
        """The old form of run(), with options of its own."""
        refuse_variants(f"{self._where}.forward", pos_encoding_mode, rope_scale, rope_theta, use_fp16_qk_reduction=use_fp16_qk_reduction)
        self._causal, self._window_left, self._logits_soft_cap, self._sm_scale = options_of(f"{self._where}.forward", causal, window_left, logits_soft_cap, sm_scale)
        return self.run(q, k, v, return_lse=return_lse)

    forward_return_lse = functools.partialmethod(forward, return_lse=True)

    def end_forward(self):
        """Nothing is to be ended."""


def trtllm_batch_context_with_kv_cache(query, kv_cache, workspace_buffer, block_tables, seq_lens, max_q_len, max_kv_len, bmm1_scale, bmm2_scale, batch_size, cum_seq_lens_q, cum_seq_lens_kv,
                                       window_left=-1, out=None, out_dtype=None, o_sf_scale=None, o_sf_vec_size=None, kv_layout="HND", enable_pdl=None, sinks=None, kv_cache_sf=None,
                                       skip_softmax_threshold_scale_factor=None, uses_shared_paged_kv_idx=True, causal=True, lse=None, return_lse=False,
                                       multi_ctas_kv_counter_buffer=None, use_fp16_softmax=None, uses_spcompress=None, backend="trtllm-gen"):
    """Prefill over a dense table of pages. cum_seq_lens_kv says what seq_lens says, and is not read."""
    where = "prefill.trtllm_batch_context_with_kv_cache"
    one_of(where, "backend", backend, {**BACKENDS, "trtllm-gen": None})
    refuse_trtllm(where, o_sf_scale, o_sf_vec_size, 1.0, None, skip_softmax_threshold_scale_factor, kv_cache_sf, uses_shared_paged_kv_idx, None)
    refuse_variants(where, use_fp16_softmax=use_fp16_softmax, uses_spcompress=uses_spcompress)
    hint(where, "enable_pdl", enable_pdl)
    restated(where, (("workspace_buffer", workspace_buffer), ("multi_ctas_kv_counter_buffer", multi_ctas_kv_counter_buffer), ("cum_seq_lens_kv", cum_seq_lens_kv)))
    tensor(where, "query", query, 3)
    batch_of(where, seq_lens, batch_size)
    return dense_tables(where, query, kv_cache, block_tables, seq_lens, max_kv_len, bmm1_scale, bmm2_scale, window_left, out, dtype_of(where, "out_dtype", out_dtype), sinks, kv_layout,
                         tensor(where, "cum_seq_lens_q", cum_seq_lens_q, 1), max_q_len, _check.boolean(f"flashinfer.{where}", "causal", causal), lse_for(where, query, lse, return_lse),
                         {**NAMES, "q": "query", "k_cache": "kv_cache", "v_cache": "kv_cache", "page_table": "block_tables", "max_seq_kv": "max_kv_len", "max_seq_q": "max_q_len",
                          "q_indptr": "cum_seq_lens_q"})


def trtllm_ragged_attention_deepseek(query, key, value, workspace_buffer, seq_lens, max_q_len, max_kv_len, bmm1_scale, bmm2_scale, o_sf_scale, batch_size, window_left, cum_seq_lens_q,
                                     cum_seq_lens_kv, enable_pdl, is_causal, return_lse, attention_sinks=None, skip_softmax_threshold_scale_factor=None, out=None, lse=None,
                                     sage_attn_sfs=(None, None, None, None), num_elts_per_sage_attn_blk=(0, 0, 0, 0), backend="trtllm-gen", q_seq_lens_cpu=None, kv_seq_lens_cpu=None,
                                     use_fp16_softmax=None, uses_spcompress=None, skip_all_rows_active_check=True):
    """Attention of query [tokens, heads, head_dim] over contiguous key [keys, heads_kv, head_dim] and value [keys, heads_kv, head_dim_vo], as MLA's prefill has it.
    bmm1_scale: the factor of logits; bmm2_scale: that of the result. o_sf_scale: 1 or None. seq_lens and max_kv_len say what cum_seq_lens_kv says, and are not read. The
    backends are names of other libraries' kernels: the result is that of quern's."""
    where = "prefill.trtllm_ragged_attention_deepseek"
    _check.boolean(f"flashinfer.{where}", "skip_all_rows_active_check", skip_all_rows_active_check)
    one_of(where, "backend", backend, dict.fromkeys(("trtllm-gen", "cute-dsl", "auto")))
    hint(where, "enable_pdl", enable_pdl)
    refuse(where, _FP4, o_sf_scale=None if o_sf_scale == 1 else o_sf_scale)
    refuse_variants(where, skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor, use_fp16_softmax=use_fp16_softmax, uses_spcompress=uses_spcompress)
    for name, given, kind in (("sage_attn_sfs", sage_attn_sfs, type(None)), ("num_elts_per_sage_attn_blk", num_elts_per_sage_attn_blk, int)):
        if not isinstance(given, (tuple, list)):
            _check.fail_type(f"flashinfer.{where}", name, given, "a tuple of four")
        if any(not isinstance(x, kind) or x for x in given):
            raise NotImplementedError(f"flashinfer.{where}: `{name}` is given, expected its default: scales of SageAttention need SM100")
    restated(where, (("workspace_buffer", workspace_buffer), ("q_seq_lens_cpu", q_seq_lens_cpu), ("kv_seq_lens_cpu", kv_seq_lens_cpu)), (("max_kv_len", max_kv_len),))
    tensor(where, "query", query, 3), tensor(where, "key", key, 3), tensor(where, "value", value, 3)
    batch_of(where, seq_lens, batch_size)
    return attend(where, quern.attention.ragged, query, out, None, lse_for(where, query, lse, return_lse),
                  {**NAMES, "q": "query", "k": "key", "v": "value", "q_indptr": "cum_seq_lens_q", "kv_indptr": "cum_seq_lens_kv", "sink": "attention_sinks", "max_seq_q": "max_q_len"},
                  k=key, v=value, q_indptr=tensor(where, "cum_seq_lens_q", cum_seq_lens_q, 1), kv_indptr=tensor(where, "cum_seq_lens_kv", cum_seq_lens_kv, 1), sink=attention_sinks,
                  causal=_check.boolean(f"flashinfer.{where}", "is_causal", is_causal), window_left=window_left, max_seq_q=max_q_len,
                  **by_scales(where, query, key.size(1), batch_size, bmm1_scale, bmm2_scale))


def _ends(lengths, like):
    """[batch + 1] of lengths of any shape, on a device."""
    lengths = lengths.reshape(-1).to(like.device, non_blocking=True)
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).int()


def cudnn_batch_prefill_with_kv_cache(q, k_cache, v_cache, scale, workspace_buffer, *, max_token_per_sequence, max_sequence_kv, actual_seq_lens_q=None, actual_seq_lens_kv=None,
                                      block_tables=None, causal, return_lse, q_scale=None, k_scale=None, v_scale=None, batch_offsets_q=None, batch_offsets_o=None, batch_offsets_k=None,
                                      batch_offsets_v=None, batch_offsets_stats=None, batch_offsets_units="elements", out=None, lse=None, is_cuda_graph_compatible=False, backend=None,
                                      o_data_type=None, lse_base="log2"):
    """(out, lse), lse None without return_lse: attention of q [tokens, heads, head_dim] over k_cache and v_cache, with block_tables [batch, pages] pages
    [pages, heads_kv, page_size, head_dim], without contiguous [keys, heads_kv, head_dim]. Requests follow each other, and have actual_seq_lens_q and
    actual_seq_lens_kv tokens, tensors of any shape on the host or the device."""
    where = "prefill.cudnn_batch_prefill_with_kv_cache"
    if backend is not None:
        one_of(where, "backend", backend, {"cudnn": None, "cudnn-native": None})
    hint(where, "is_cuda_graph_compatible", is_cuda_graph_compatible)
    one_of(where, "batch_offsets_units", batch_offsets_units, {"elements": None, "tokens": None})
    refuse(where, "requests follow each other, as their lengths say", batch_offsets_q=batch_offsets_q, batch_offsets_o=batch_offsets_o, batch_offsets_k=batch_offsets_k,
           batch_offsets_v=batch_offsets_v, batch_offsets_stats=batch_offsets_stats)
    restated(where, (("workspace_buffer", workspace_buffer),))
    tensor(where, "q", q, 3), tensor(where, "k_cache", k_cache, 3 if block_tables is None else 4), tensor(where, "v_cache", v_cache, 3 if block_tables is None else 4)
    tensor(where, "actual_seq_lens_q", actual_seq_lens_q), tensor(where, "actual_seq_lens_kv", actual_seq_lens_kv)
    _check.number(f"flashinfer.{where}", "scale", scale)
    names = {**NAMES, "k": "k_cache", "v": "v_cache", "k_cache": "k_cache", "v_cache": "v_cache", "page_table": "block_tables", "seq_lens": "actual_seq_lens_kv",
             "q_indptr": "actual_seq_lens_q", "kv_indptr": "actual_seq_lens_kv", "max_seq_q": "max_token_per_sequence", "max_seq_kv": "max_sequence_kv"}
    shared = {"causal": _check.boolean(f"flashinfer.{where}", "causal", causal), "q_indptr": _ends(actual_seq_lens_q, q),
              "max_seq_q": _check.integer(f"flashinfer.{where}", "max_token_per_sequence", max_token_per_sequence, 0, 2**31 - 1)}
    longest = _check.integer(f"flashinfer.{where}", "max_sequence_kv", max_sequence_kv, 0, 2**31 - 1)
    batch, result_lse = actual_seq_lens_q.numel(), lse_for(where, q, lse, return_lse, lse_base)
    o_data_type = dtype_of(where, "o_data_type", o_data_type)
    if block_tables is None:
        result = attend(where, quern.attention.ragged, q, out, o_data_type, result_lse, names, k=k_cache, v=v_cache, kv_indptr=_ends(actual_seq_lens_kv, q),
                        **scales(where, q, k_cache.size(1), batch, scale, q_scale, k_scale, v_scale, {"sm_scale": "scale"}), **shared)
    else:
        result = attend(where, quern.attention.paged, q, out, o_data_type, result_lse, names, k_cache=k_cache.transpose(1, 2), v_cache=v_cache.transpose(1, 2),
                        page_table=tensor(where, "block_tables", block_tables, 2), seq_lens=actual_seq_lens_kv.reshape(-1).to(q.device, non_blocking=True), max_seq_kv=longest,
                        **scales(where, q, k_cache.size(1), batch, scale, q_scale, k_scale, v_scale, {"sm_scale": "scale"}), **shared)
    return result if return_lse else (result, None)


_CHUNKS = "chunks of keys are custom masks of the prefill wrappers"


def trtllm_fmha_v2_prefill(qkv, input_layout, workspace_buffer, seq_lens, max_q_len, max_kv_len, bmm1_scale, bmm2_scale, batch_size, cum_seq_lens_q, cum_seq_lens_kv, block_tables=None,
                           out=None, out_dtype=None, sinks=None, pos_encoding_mode=None, logits_soft_cap_scale=None, mask_mode="causal", window_left=-1, chunked_attention_size=0,
                           save_softmax_stats=False, skip_softmax_threshold_scale_factor=0):
    """Attention of requests that begin at cum_seq_lens_q and cum_seq_lens_kv. By input_layout qkv is PACKED_QKV [tokens, 3, heads, head_dim]; CONTIGUOUS_Q_KV (q [tokens,
    heads, head_dim], kv [keys, 2, heads_kv, head_dim]); SEPARATE_Q_K_V (q, k, v); or Q_PAGED_KV_NHD and _HND (q, cache [pages, 2, ..] or (k, v)) with block_tables
    [batch, pages], those of k and v alike, and keys by seq_lens. mask_mode: causal, padding (all keys) or sliding_window, which is causal too; both have window_left. bmm1_scale: the factor of logits;
    bmm2_scale: that of the result; logits_soft_cap_scale: the bound of logits."""
    where = "trtllm_fmha_v2_prefill"
    layout = one_of(where, "input_layout", input_layout, dict.fromkeys(("PACKED_QKV", "CONTIGUOUS_Q_KV", "SEPARATE_Q_K_V", "Q_PAGED_KV_NHD", "Q_PAGED_KV_HND")))
    mode = one_of(where, "mask_mode", mask_mode, {"causal": None, "padding": None, "sliding_window": None, "chunked": _CHUNKS})
    if pos_encoding_mode is not None:
        refuse_variants(where, pos_encoding_mode)
    refuse(where, _CHUNKS, chunked_attention_size=chunked_attention_size)
    refuse(where, "quern's ops give the logarithm of the sum, the prefill wrappers return it", save_softmax_stats=save_softmax_stats)
    refuse_variants(where, skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor)
    restated(where, (("workspace_buffer", workspace_buffer),), (("max_q_len", max_q_len), ("max_kv_len", max_kv_len)))
    window = _check.integer(f"flashinfer.{where}", "window_left", window_left, -1, 2**31 - 1)
    if (mode == "sliding_window" and window < 0) or (mode == "padding" and window >= 0):
        raise ValueError(f"flashinfer.{where}: `window_left` is {window} beside `mask_mode` {mode!r}, expected {'a window' if window < 0 else '-1: all keys are seen'}")
    parts = (qkv,) if layout == "PACKED_QKV" else qkv
    expected = {"PACKED_QKV": 1, "SEPARATE_Q_K_V": 3}.get(layout, 2)
    if not isinstance(parts, (tuple, list)):
        _check.fail_type(f"flashinfer.{where}", "qkv", qkv, f"a tuple of {expected} tensors")
    if len(parts) != expected:
        raise ValueError(f"flashinfer.{where}: `qkv` has {len(parts)} tensors, expected {expected} of {layout}")
    batch = batch_of(where, seq_lens, batch_size)
    indptr = tensor(where, "cum_seq_lens_q", cum_seq_lens_q, 1)
    tensor(where, "cum_seq_lens_kv", cum_seq_lens_kv, 1)
    names = {**NAMES, **dict.fromkeys(("q", "k", "v", "k_cache", "v_cache"), "qkv"), "page_table": "block_tables", "q_indptr": "cum_seq_lens_q", "kv_indptr": "cum_seq_lens_kv",
             "soft_cap": "logits_soft_cap_scale", "max_seq_q": "max_q_len", "max_seq_kv": "max_kv_len"}
    cap = 0.0 if logits_soft_cap_scale is None else _check.number(f"flashinfer.{where}", "logits_soft_cap_scale", logits_soft_cap_scale)
    shared = {"causal": mode != "padding", "window_left": window, "soft_cap": cap, "sink": one_sink(where, sinks), "q_indptr": indptr, "max_seq_q": max_q_len}
    out_dtype = dtype_of(where, "out_dtype", out_dtype)
    if layout.startswith("Q_PAGED"):
        q = tensor(where, "qkv", parts[0], 3)
        k, v = unpack(where, parts[1], layout[-3:], "qkv")
        return attend(where, quern.attention.paged, q, out, out_dtype, ({}, None), names, k_cache=k, v_cache=v, page_table=tensor(where, "block_tables", block_tables, 2), seq_lens=seq_lens,
                      max_seq_kv=max_kv_len, **shared, **by_scales(where, q, k.size(2), batch, bmm1_scale, bmm2_scale))
    refuse(where, f"{layout} has no pages", block_tables=block_tables)
    dims = {"PACKED_QKV": (4,), "CONTIGUOUS_Q_KV": (3, 4), "SEPARATE_Q_K_V": (3, 3, 3)}[layout]
    parts = [tensor(where, "qkv", part, n) for part, n in zip(parts, dims)]
    packed = 4 - len(parts)  # q, k and v, or k and v, in the last tensor
    if parts[-1].dim() == 4 and parts[-1].size(1) != packed:
        raise ValueError(f"flashinfer.{where}: `qkv` has shape {list(parts[-1].shape)}, expected {packed} at dim 1")
    q, k, v = [*parts[:-1], *parts[-1].unbind(1)] if parts[-1].dim() == 4 else parts
    return attend(where, quern.attention.ragged, q, out, out_dtype, ({}, None), names, k=k, v=v, kv_indptr=cum_seq_lens_kv, **shared,
                  **by_scales(where, q, k.size(1), batch, bmm1_scale, bmm2_scale))
