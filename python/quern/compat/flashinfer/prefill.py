# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Attention of requests of any number of query tokens. A custom mask stands in the place of `causal`; windows hold beside both."""
import functools

import quern
from quern import _check
from quern.compat.flashinfer._attention import (
    BACKENDS, NAMES, PagedWrapper, Wrapper, attend, batch_of, by_scales, dense_tables, dtype_of, ends_of, lse_for, mask_of_one, masks, one_sink, options_of, refuse_trtllm,
    refuse_variants, scales, soft_cap_of,
)
from quern.compat.flashinfer._base import hint, one_of, refuse, restated, tensor, torch
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


class BatchPrefillWithPagedKVCacheWrapper(PagedWrapper):
    """Prefill of a batch over a paged cache: plan() for a step, run() for each layer. plan() takes tables on the host or the device; with a mask it waits for
    the device."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, qo_indptr_buf=None, paged_kv_indptr_buf=None, paged_kv_indices_buf=None,
                 paged_kv_last_page_len_buf=None, custom_mask_buf=None, mask_indptr_buf=None, backend="auto", jit_args=None, jit_kwargs=None):
        buffers = {"qo_indptr_buf": qo_indptr_buf, "paged_kv_indptr_buf": paged_kv_indptr_buf, "paged_kv_indices_buf": paged_kv_indices_buf,
                   "paged_kv_last_page_len_buf": paged_kv_last_page_len_buf, "custom_mask_buf": custom_mask_buf, "mask_indptr_buf": mask_indptr_buf}
        super().__init__(type(self).__name__, float_workspace_buffer, kv_layout, use_cuda_graph, backend, buffers, jit_args=jit_args, jit_kwargs=jit_kwargs)
        self._fixed_batch_size = paged_kv_last_page_len_buf.numel() if use_cuda_graph else 0

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

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None, lse=None, return_lse=False, enable_pdl=None, window_left=None, sinks=None,
            kv_cache_sf=None, skip_softmax_threshold_scale_factor=None, use_fp16_softmax=None, uses_spcompress=None, lse_base="log2", lse_layout="NH"):
        """Attention of q [tokens, heads, head_dim]. sinks: logits that join the denominator."""
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
                 backend="auto", jit_args=None, jit_kwargs=None):
        buffers = {"qo_indptr_buf": qo_indptr_buf, "kv_indptr_buf": kv_indptr_buf, "custom_mask_buf": custom_mask_buf, "mask_indptr_buf": mask_indptr_buf}
        super().__init__("BatchPrefillWithRaggedKVCacheWrapper", float_workspace_buffer, kv_layout, use_cuda_graph, backend, buffers, jit_args=jit_args, jit_kwargs=jit_kwargs)
        self._fixed_batch_size = qo_indptr_buf.numel() - 1 if use_cuda_graph else 0

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
                                       multi_ctas_kv_counter_buffer=None, use_fp16_softmax=None, uses_spcompress=None):
    """Prefill over a dense table of pages. cum_seq_lens_kv says what seq_lens says, and is not read."""
    where = "prefill.trtllm_batch_context_with_kv_cache"
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
