# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Attention of one query token a request, or of the same few."""
import functools
import warnings

import quern
from quern import _check
from quern.compat.flashinfer._attention import (
    BACKENDS, NAMES, PagedWrapper, attend, dense_tables, dtype_of, ends_of, lse_for, options_of, planned_dtypes, refuse_trtllm, refuse_variants, scales, soft_cap_of, whole,
)
from quern.compat.flashinfer._base import hint, one_of, refuse, restated, tensor, torch
from quern.compat.flashinfer._names import _SM100
from quern.compat.flashinfer.page import unpack


def single_decode_with_kv_cache(q, k, v, kv_layout="NHD", pos_encoding_mode="NONE", use_tensor_cores=False, q_scale=None, k_scale=None, v_scale=None, window_left=-1,
                                logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None, return_lse=False):
    """Attention of q [heads, head_dim] over k and v [length, heads_kv, head_dim], or [heads_kv, length, head_dim] in HND: as over one page."""
    where = "single_decode_with_kv_cache"
    refuse_variants(where, pos_encoding_mode, rope_scale, rope_theta)
    one_of(where, "kv_layout", kv_layout, {"NHD": None, "HND": None})
    hint(where, "use_tensor_cores", use_tensor_cores)
    tensor(where, "q", q, 2), tensor(where, "k", k, 3), tensor(where, "v", v, 3)
    k, v = (k, v) if kv_layout == "NHD" else (k.transpose(0, 1), v.transpose(0, 1))
    q = q[None]
    options = {"window_left": window_left, "soft_cap": soft_cap_of(where, logits_soft_cap), **scales(where, q, k.size(1), 1, sm_scale, q_scale, k_scale, v_scale)}
    lse = lse_for(where, q, None, return_lse)
    if k.size(0) and q.size(2) == v.size(2):
        length = ends_of(k.size(0), q.device)
        result = attend(where, quern.attention.paged, q, None, None, lse, k_cache=k[None], v_cache=v[None], page_table=length[None, :1], seq_lens=length[1:], **options)
    else:
        result = attend(where, quern.attention.ragged, q, None, None, lse, k=k, v=v, q_indptr=ends_of(1, q.device), kv_indptr=ends_of(k.size(0), q.device), **options)
    return (result[0][0], result[1][0]) if return_lse else result[0]


_POSITIONAL = ("pos_encoding_mode", "window_left", "logits_soft_cap", "q_data_type", "kv_data_type", "o_data_type", "data_type", "sm_scale", "rope_scale", "rope_theta", "non_blocking",
               "block_tables", "seq_lens", "fixed_split_size", "disable_split_kv")


class BatchDecodeWithPagedKVCacheWrapper(PagedWrapper):
    """Decode of a batch over a paged cache: plan() for a step, run() for each layer. plan() takes tables on the host or the device, and waits for neither."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, use_tensor_cores=False, paged_kv_indptr_buffer=None, paged_kv_indices_buffer=None,
                 paged_kv_last_page_len_buffer=None, backend="auto", jit_args=None):
        where = "BatchDecodeWithPagedKVCacheWrapper"
        hint(where, "use_tensor_cores", use_tensor_cores)
        buffers = {"paged_kv_indptr_buffer": paged_kv_indptr_buffer, "paged_kv_indices_buffer": paged_kv_indices_buffer, "paged_kv_last_page_len_buffer": paged_kv_last_page_len_buffer}
        super().__init__(where, float_workspace_buffer, kv_layout, use_cuda_graph, backend, buffers, jit_args=jit_args)
        self._use_tensor_cores = use_tensor_cores
        self._fixed_batch_size = paged_kv_last_page_len_buffer.numel() if use_cuda_graph else 0

    @property
    def use_tensor_cores(self):
        return self._use_tensor_cores

    @property
    def resolved_backend(self):
        """What the constructor was told. "auto" stays: quern chooses in each call."""
        return self._backend

    def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, *deprecated_positional_args, **kwargs):
        """Takes the tables of a step and what its calls have in common. Options are those of _plan_impl; by position they are FlashInfer's deprecated form."""
        if len(deprecated_positional_args) > len(_POSITIONAL):
            raise TypeError(f"flashinfer.{self._where}.plan: {len(deprecated_positional_args)} options by position, expected at most {len(_POSITIONAL)}")
        if deprecated_positional_args:
            warnings.warn(f"flashinfer.{self._where}.plan: options behind `page_size` are to be given by keyword", DeprecationWarning, stacklevel=2)
        by_position = dict(zip(_POSITIONAL, deprecated_positional_args))
        twice = sorted(set(by_position) & set(kwargs))
        if twice:
            raise TypeError(f"flashinfer.{self._where}.plan: `{twice[0]}` is given twice")
        self._plan_impl(indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, **by_position, **kwargs)

    @whole
    def _plan_impl(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, *, pos_encoding_mode="NONE", window_left=-1, window_right=0,
                   logits_soft_cap=None, q_data_type="float16", kv_data_type=None, o_data_type=None, data_type=None, sm_scale=None, rope_scale=None, rope_theta=None, non_blocking=True,
                   block_tables=None, seq_lens=None, fixed_split_size=None, disable_split_kv=False, q_len_per_req=1):
        refuse_variants(f"{self._where}.plan", pos_encoding_mode, rope_scale, rope_theta, window_right=window_right)
        q_data_type, kv_data_type = planned_dtypes(f"{self._where}.plan", q_data_type, kv_data_type, data_type)
        restated(f"{self._where}.plan", (("block_tables", block_tables), ("seq_lens", seq_lens)))
        hint(f"{self._where}.plan", "non_blocking", non_blocking)
        self._tables({"indptr": indptr, "indices": indices, "last_page_len": last_page_len}, ("paged_kv_indptr_buffer", "paged_kv_indices_buffer", "paged_kv_last_page_len_buffer"))
        *self._heads, self._head_dim, self._page_size = self._sizes(num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, page_size=page_size)
        self._q_len = _check.integer(f"flashinfer.{self._where}.plan", "q_len_per_req", q_len_per_req, 1, 2**31 - 1)
        self._tokens = (indptr.numel() - 1) * q_len_per_req
        self._qo_indptr_buf = None if q_len_per_req == 1 else torch.arange(indptr.numel(), dtype=torch.int32, device=self.device) * q_len_per_req
        self._options(q_len_per_req > 1, window_left, logits_soft_cap, sm_scale, q_data_type, kv_data_type, o_data_type, fixed_split_size, disable_split_kv, {})

    begin_forward = plan

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None, lse=None, return_lse=False, enable_pdl=None, window_left=None, sinks=None,
            q_len_per_req=None, skip_softmax_threshold_scale_factor=None, kv_cache_sf=None):
        """Attention of q [batch * q_len_per_req, heads, head_dim]. sinks: logits that join the denominator."""
        if q_scale is k_scale is v_scale is lse is enable_pdl is window_left is sinks is q_len_per_req is skip_softmax_threshold_scale_factor is kv_cache_sf is None \
                and return_lse is False and not args:
            result = self._run_plainly(q, paged_kv_cache, out, self._tokens)
            if result is not None:
                return result
        where = f"{self._where}.run"
        refuse(where, "variants are hooks of quern's ops (docs/own_ops.md)", args=args or None)
        refuse_variants(where, skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor, kv_cache_sf=kv_cache_sf)
        hint(where, "enable_pdl", enable_pdl)
        k, v = unpack(where, paged_kv_cache, self._kv_layout)
        if q_len_per_req is not None and self._planned and _check.integer(f"flashinfer.{where}", "q_len_per_req", q_len_per_req, 1, 2**31 - 1) != self._q_len:
            raise ValueError(f"flashinfer.{where}: `q_len_per_req` is {q_len_per_req}, expected {self._q_len}, as plan() was told")
        if self._planned and tensor(where, "q", q, 3).size(0) != self._tokens:
            raise ValueError(f"flashinfer.{where}: `q` has {q.size(0)} tokens, expected {self._tokens}, as plan() was told")
        return self._run(where, q, k, v, self._qo_indptr_buf, out, lse_for(where, q, lse, return_lse), window_left, sinks, q_scale, k_scale, v_scale)

    run_return_lse = functools.partialmethod(run, return_lse=True)

    def forward(self, q, paged_kv_cache, pos_encoding_mode="NONE", q_scale=None, k_scale=None, v_scale=None, window_left=-1, logits_soft_cap=None, sm_scale=None, rope_scale=None,
                rope_theta=None, return_lse=False):
        """The old form of run(), with options of its own."""
        refuse_variants(f"{self._where}.forward", pos_encoding_mode, rope_scale, rope_theta)
        _, self._window_left, self._logits_soft_cap, self._sm_scale = options_of(f"{self._where}.forward", False, window_left, logits_soft_cap, sm_scale)
        return self.run(q, paged_kv_cache, q_scale=q_scale, k_scale=k_scale, v_scale=v_scale, return_lse=return_lse)

    forward_return_lse = functools.partialmethod(forward, return_lse=True)

    def end_forward(self):
        """Nothing is to be ended."""

    def workspace_size(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, pos_encoding_mode="NONE", window_left=-1, logits_soft_cap=None,
                       q_data_type="float16", kv_data_type=None, o_data_type=None, data_type=None, sm_scale=None, rope_scale=None, rope_theta=None, block_tables=None, seq_lens=None,
                       fixed_split_size=None, disable_split_kv=False, q_len_per_req=1):
        """(bytes of the float workspace, 0) of such a plan. What this wrapper has planned stays."""
        other = BatchDecodeWithPagedKVCacheWrapper(self._float_workspace_buffer, self._kv_layout)
        other._plan_impl(indptr, self._capacity(indices, "paged_kv_indices_buffer"), last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, pos_encoding_mode=pos_encoding_mode, window_left=window_left,
                         logits_soft_cap=logits_soft_cap, q_data_type=q_data_type, kv_data_type=kv_data_type, o_data_type=o_data_type, data_type=data_type, sm_scale=sm_scale,
                         rope_scale=rope_scale, rope_theta=rope_theta, block_tables=block_tables, seq_lens=seq_lens, fixed_split_size=fixed_split_size,
                         disable_split_kv=disable_split_kv, q_len_per_req=q_len_per_req)
        return other._workspace_bytes((indptr.numel() - 1) * q_len_per_req, other._qo_indptr_buf), 0


class CUDAGraphBatchDecodeWithPagedKVCacheWrapper(BatchDecodeWithPagedKVCacheWrapper):
    """The same in graph mode."""

    def __init__(self, workspace_buffer, indptr_buffer, indices_buffer, last_page_len_buffer, kv_layout="NHD", use_tensor_cores=False):
        for name, t in (("workspace_buffer", workspace_buffer), ("indptr_buffer", indptr_buffer), ("indices_buffer", indices_buffer), ("last_page_len_buffer", last_page_len_buffer)):
            tensor("CUDAGraphBatchDecodeWithPagedKVCacheWrapper", name, t, 1)
        super().__init__(workspace_buffer, kv_layout, True, use_tensor_cores, indptr_buffer, indices_buffer, last_page_len_buffer)


def fast_decode_plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, pos_encoding_mode="NONE", window_left=-1, logits_soft_cap=None,
                     q_data_type=None, kv_data_type=None, data_type=None, sm_scale=None, rope_scale=None, rope_theta=None, non_blocking=True, fixed_split_size=None,
                     disable_split_kv=False, q_len_per_req=1, global_override_indptr_cpu=None):
    """plan() of a decode wrapper, `self`: here plan() is as fast. It needs no copy of indptr on the host."""
    restated("decode.fast_decode_plan", (("global_override_indptr_cpu", global_override_indptr_cpu),))
    if not isinstance(self, BatchDecodeWithPagedKVCacheWrapper):
        _check.fail_type("flashinfer.decode.fast_decode_plan", "self", self, "a BatchDecodeWithPagedKVCacheWrapper")
    self._plan_impl(indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, pos_encoding_mode=pos_encoding_mode, window_left=window_left,
                    logits_soft_cap=logits_soft_cap, q_data_type=q_data_type or "float16" if q_data_type or data_type is None else dtype_of("decode.fast_decode_plan", "data_type", data_type), kv_data_type=kv_data_type, data_type=data_type,
                    sm_scale=sm_scale, rope_scale=rope_scale, rope_theta=rope_theta, non_blocking=non_blocking, fixed_split_size=fixed_split_size,
                    disable_split_kv=disable_split_kv, q_len_per_req=q_len_per_req, o_data_type=getattr(self, "_o_dtype", None))


_DENSE = {**NAMES, "q": "query", "k_cache": "kv_cache", "v_cache": "kv_cache", "page_table": "block_tables", "max_seq_kv": "max_seq_len", "q_indptr": "cum_seq_lens_q"}


def _q_indptr(where, query, seq_lens, q_len_per_req, max_q_len, name, indptr):
    """(q_indptr, the most query tokens of a request) of a uniform or any number of them."""
    if indptr is not None:
        return tensor(where, name, indptr, 1), max_q_len or 0
    length = _check.integer(f"flashinfer.{where}", "q_len_per_req", 1 if q_len_per_req is None else q_len_per_req, 1, 2**31 - 1)
    return (None if length == 1 else torch.arange(seq_lens.numel() + 1, dtype=torch.int32, device=query.device) * length), length


def trtllm_batch_decode_with_kv_cache(query, kv_cache, workspace_buffer, block_tables, seq_lens, max_seq_len, bmm1_scale=1.0, bmm2_scale=1.0, window_left=-1, out=None, out_dtype=None,
                                      o_sf_scale=None, o_sf_vec_size=None, sinks=None, kv_layout="HND", enable_pdl=None, backend="auto", q_len_per_req=1, o_scale=1.0, mask=None,
                                      max_q_len=None, cum_seq_lens_q=None, skip_softmax_threshold_scale_factor=None, kv_cache_sf=None, uses_shared_paged_kv_idx=True, lse=None,
                                      return_lse=False, bmm1_scale_log2=None, multi_ctas_kv_counter_buffer=None, enable_block_sparse_attention=False, cp_world=1,
                                      cp_rank=0, causal_seqlens_kv_global=None, bf16q_fp8kv_transform_mode=None, request_order=None, request_order_plan=None):
    """Decode over a dense table of pages; q_len_per_req or cum_seq_lens_q: several causal query tokens a request."""
    where = "decode.trtllm_batch_decode_with_kv_cache"
    one_of(where, "backend", backend, {**BACKENDS, "auto": None, "xqa": None})
    refuse_trtllm(where, o_sf_scale, o_sf_vec_size, o_scale, mask, skip_softmax_threshold_scale_factor, kv_cache_sf, uses_shared_paged_kv_idx, bmm1_scale_log2)
    refuse(where, _SM100, enable_block_sparse_attention=enable_block_sparse_attention, bf16q_fp8kv_transform_mode=bf16q_fp8kv_transform_mode)
    refuse(where, "one rank has all keys of a request", cp_world=None if cp_world == 1 else cp_world, cp_rank=cp_rank, causal_seqlens_kv_global=causal_seqlens_kv_global)
    refuse(where, "quern's kernels order requests themselves", request_order=request_order, request_order_plan=request_order_plan)
    hint(where, "enable_pdl", enable_pdl)
    restated(where, (("workspace_buffer", workspace_buffer), ("multi_ctas_kv_counter_buffer", multi_ctas_kv_counter_buffer)), (("max_q_len", max_q_len),))
    tensor(where, "query", query, 3), tensor(where, "seq_lens", seq_lens, 1)
    q_indptr, longest = _q_indptr(where, query, seq_lens, q_len_per_req, max_q_len, "cum_seq_lens_q", cum_seq_lens_q)
    return dense_tables(where, query, kv_cache, block_tables, seq_lens, max_seq_len, bmm1_scale, bmm2_scale, window_left, out, dtype_of(where, "out_dtype", out_dtype), sinks, kv_layout, q_indptr, longest, q_indptr is not None,
                 lse_for(where, query, lse, return_lse), _DENSE)


def xqa_batch_decode_with_kv_cache(query, kv_cache, workspace_buffer, block_tables, seq_lens, max_seq_len, bmm1_scale=1.0, bmm2_scale=1.0, window_left=-1, out=None, sinks=None,
                                   kv_layout="NHD", enable_pdl=None, q_len_per_req=1, o_scale=1.0, mask=None, kv_cache_sf=None, q_cu_seq_lens=None):
    """The same in layout NHD."""
    where = "decode.xqa_batch_decode_with_kv_cache"
    refuse_trtllm(where, None, None, o_scale, mask, None, kv_cache_sf, True, None)
    hint(where, "enable_pdl", enable_pdl)
    restated(where, (("workspace_buffer", workspace_buffer),))
    tensor(where, "query", query, 3), tensor(where, "seq_lens", seq_lens, 1)
    q_indptr, longest = _q_indptr(where, query, seq_lens, q_len_per_req, None, "q_cu_seq_lens", q_cu_seq_lens)
    return dense_tables(where, query, kv_cache, block_tables, seq_lens, max_seq_len, bmm1_scale, bmm2_scale, window_left, out, None, sinks, kv_layout, q_indptr, longest, q_indptr is not None, ({}, None), _DENSE)


def cudnn_batch_decode_with_kv_cache(q, k_cache, v_cache, scale, workspace_buffer, *, max_sequence_kv, actual_seq_lens_kv=None, block_tables=None, is_cuda_graph_compatible=False,
                                     batch_offsets_q=None, batch_offsets_o=None, batch_offsets_k=None, batch_offsets_v=None, out=None, return_lse=False, lse=None, q_len_per_req=1,
                                     window_left=-1, sinks=None):
    """Decode of q [batch * q_len_per_req, heads, head_dim] over pages [pages, heads_kv, page_size, head_dim]: block_tables [batch, pages], and keys by actual_seq_lens_kv, a tensor of any
    shape on the host or the device. scale: the factor of logits."""
    where = "cudnn_batch_decode_with_kv_cache"
    hint(where, "is_cuda_graph_compatible", is_cuda_graph_compatible)
    refuse(where, "requests follow each other, with a query token each", batch_offsets_q=batch_offsets_q, batch_offsets_o=batch_offsets_o, batch_offsets_k=batch_offsets_k,
           batch_offsets_v=batch_offsets_v)
    restated(where, (("workspace_buffer", workspace_buffer),))
    tensor(where, "q", q, 3), tensor(where, "k_cache", k_cache, 4), tensor(where, "v_cache", v_cache, 4), tensor(where, "block_tables", block_tables, 2)
    lengths = tensor(where, "actual_seq_lens_kv", actual_seq_lens_kv).reshape(-1).to(q.device, non_blocking=True)
    q_indptr, longest = _q_indptr(where, q, lengths, q_len_per_req, None, "", None)
    return dense_tables(where, q, (k_cache, v_cache), block_tables, lengths, max_sequence_kv, _check.number(f"flashinfer.{where}", "scale", scale), 1.0, window_left, out, None, sinks, "HND", q_indptr,
                        longest, q_indptr is not None, lse_for(where, q, lse, return_lse), {**NAMES, "k_cache": "k_cache", "v_cache": "v_cache", "page_table": "block_tables", "seq_lens": "actual_seq_lens_kv", "max_seq_kv": "max_sequence_kv"})
