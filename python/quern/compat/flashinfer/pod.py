# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Prefill and decode of a step by one call: attention of the one, then of the other, each by its own launch of quern.attention.ragged or paged."""
import quern
from quern import _check
from quern.compat.flashinfer._attention import NAMES, PagedWrapper, attend, ends_of, lse_for, mask_of_one, masks, options_of, planned_dtypes, refuse_variants, scales
from quern.compat.flashinfer._base import hint, one_of, refuse, tensor, torch
from quern.compat.flashinfer.page import LAYOUTS, unpack


def _counts(bits, *tables):
    """(all bits, bytes of all) of requests whose tables lie on the host, else Nones: nobody waits for them. `bits`: a function that gives those of each."""
    if any(t.device.type != "cpu" for t in tables):
        return None, None
    each = bits()
    return int(each.sum()), int(((each + 7) // 8).sum())


class PODWithPagedKVCacheWrapper(PagedWrapper):
    """Prefill of one request over contiguous keys, and decode of a batch, a query token each, over a paged cache. plan() is of the decode."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False, paged_kv_indptr_buffer=None, paged_kv_indices_buffer=None, paged_kv_last_page_len_buffer=None,
                 jit_args=None):
        buffers = {"paged_kv_indptr_buffer": paged_kv_indptr_buffer, "paged_kv_indices_buffer": paged_kv_indices_buffer, "paged_kv_last_page_len_buffer": paged_kv_last_page_len_buffer}
        super().__init__("PODWithPagedKVCacheWrapper", float_workspace_buffer, kv_layout, use_cuda_graph, "auto", buffers, jit_args=jit_args)

    def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, pos_encoding_mode="NONE", window_left=-1, q_data_type="float16", kv_data_type=None,
             data_type=None, sm_scale=None, rope_scale=None, rope_theta=None, non_blocking=True):
        """Takes the tables of the decode and what its calls have in common."""
        where = f"{self._where}.plan"
        refuse_variants(where, pos_encoding_mode, rope_scale, rope_theta)
        hint(where, "non_blocking", non_blocking)
        self._tables({"indptr": indptr, "indices": indices, "last_page_len": last_page_len}, tuple(self._buffers))
        *self._heads, self._head_dim, self._page_size = self._sizes(num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, page_size=page_size)
        self._mask_counts = _counts(lambda: self._lengths(indptr, last_page_len, page_size), indptr, last_page_len)
        self._options(False, window_left, None, sm_scale, *planned_dtypes(where, q_data_type, kv_data_type, data_type), None, None, False, {})

    begin_forward = plan

    def run(self, q_p, k_p, v_p, q_d, paged_kv_cache_d, custom_mask_p=None, packed_custom_mask_p=None, causal_p=False, kv_layout_p="NHD", pos_encoding_mode_p="NONE", sm_scale_p=None,
            window_left_p=-1, rope_scale_p=None, rope_theta_p=None, return_lse_p=False, custom_mask_d=None, packed_custom_mask_d=None, causal_d=False, kv_layout_d="NHD",
            pos_encoding_mode_d="NONE", sm_scale_d=None, window_left_d=-1, rope_scale_d=None, rope_theta_d=None, q_scale=None, k_scale=None, v_scale=None, return_lse_d=False,
            use_fp16_qk_reduction=False, enable_pdl=None, *args):
        """(out of the prefill, out of the decode); with return_lse_p or return_lse_d the first or the second is (out, lse). q_p [tokens, heads, head_dim] attends
        to k_p and v_p [length, heads_kv, head_dim], or [heads_kv, length, head_dim] in HND; q_d [batch, heads, head_dim] to the cache, whose layout the wrapper
        was told. sm_scale_d and window_left_d are those of plan() where they are not given; q_scale, k_scale and v_scale are of the decode. A mask of the
        decode has a bit for each key of each request; where plan() had the tables on the device, its size is not looked at."""
        where = f"{self._where}.run"
        refuse(where, "variants are hooks of quern's ops (docs/own_ops.md)", args=args or None)
        refuse_variants(where, pos_encoding_mode_p, rope_scale_p, rope_theta_p, "_p", use_fp16_qk_reduction=use_fp16_qk_reduction)
        refuse_variants(where, pos_encoding_mode_d, rope_scale_d, rope_theta_d, "_d")
        hint(where, "enable_pdl", enable_pdl)
        causal_p, causal_d = (_check.boolean(f"flashinfer.{where}", name, value) for name, value in (("causal_p", causal_p), ("causal_d", causal_d)))
        window_p, window_d = (_check.integer(f"flashinfer.{where}", name, value, -1, 2**31 - 1) for name, value in (("window_left_p", window_left_p), ("window_left_d", window_left_d)))
        if sm_scale_d is not None:
            _check.number(f"flashinfer.{where}", "sm_scale_d", sm_scale_d)
        for name, layout in (("kv_layout_p", kv_layout_p), ("kv_layout_d", kv_layout_d)):
            one_of(where, name, layout, LAYOUTS)
        if kv_layout_d not in ("NHD", self._kv_layout):
            raise ValueError(f"flashinfer.{where}: `kv_layout_d` is {kv_layout_d!r}, expected {self._kv_layout!r}, as the wrapper was told, or else its default")
        tensor(where, "q_p", q_p, 3), tensor(where, "k_p", k_p, 3), tensor(where, "v_p", v_p, 3), tensor(where, "q_d", q_d, 3)
        k_p, v_p = (k_p, v_p) if kv_layout_p == "NHD" else (k_p.transpose(0, 1), v_p.transpose(0, 1))
        k_d, v_d = unpack(where, paged_kv_cache_d, self._kv_layout, "paged_kv_cache_d")
        lse_p, lse_d = (lse_for(where, q, None, _check.boolean(f"flashinfer.{where}", name, wanted)) for q, name, wanted in
                        ((q_p, "return_lse_p", return_lse_p), (q_d, "return_lse_d", return_lse_d)))
        if self._planned and q_d.size(0) != self._paged_kv_indptr_buf.numel() - 1:
            raise ValueError(f"flashinfer.{where}: `q_d` has {q_d.size(0)} tokens, expected {self._paged_kv_indptr_buf.numel() - 1}, as plan() was told")
        mask_p = mask_of_one(where, custom_mask_p, packed_custom_mask_p, q_p.size(0) * k_p.size(0), ("custom_mask_p", "packed_custom_mask_p"))
        mask_d = masks(where, custom_mask_d, packed_custom_mask_d, lambda: self._lengths(self._paged_kv_indptr_buf, self._paged_kv_last_page_len_buf, self._page_size),
                       self._mask_counts if self._planned else (None, None), ("custom_mask_d", "packed_custom_mask_d"))
        decoded = self._run(where, q_d, k_d, v_d, None, None, lse_d, window_d if window_d >= 0 else None, None, q_scale, k_scale, v_scale, sm_scale_d, "_d",
                            causal=causal_d and not mask_d, **mask_d)
        filled = attend(where, quern.attention.ragged, q_p, None, None, lse_p, {**NAMES, "q": "q_p", "k": "k_p", "v": "v_p", "mask": "packed_custom_mask_p"}, k=k_p, v=v_p,
                        q_indptr=ends_of(q_p.size(0), q_p.device), kv_indptr=ends_of(k_p.size(0), q_p.device), causal=causal_p and not mask_p, window_left=window_p,
                        max_seq_q=q_p.size(0), **mask_p, **scales(where, q_p, k_p.size(1), 1, sm_scale_p, names={"sm_scale": "sm_scale_p"}), **self._workspace())
        return filled, decoded

    def end_forward(self):
        """Nothing is to be ended."""


class BatchPODWithPagedKVCacheWrapper:
    """Prefill of some requests and decode of others, both over paged caches. Decodes are not causal: with a query token a request there is no difference."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD"):
        self._p, self._d = (PagedWrapper("BatchPODWithPagedKVCacheWrapper", float_workspace_buffer, kv_layout, False, "auto", {}) for _ in range(2))

    @property
    def is_cuda_graph_enabled(self):
        return False

    def reset_workspace_buffer(self, float_workspace_buffer, int_workspace_buffer):
        """Another workspace, which is not read: memory is of the device's pool."""
        for wrapper in (self._p, self._d):
            wrapper.reset_workspace_buffer(float_workspace_buffer, int_workspace_buffer)

    def plan(self, qo_indptr_p, kv_indptr_p, kv_indices_p, last_page_len_p, qo_indptr_d, kv_indptr_d, kv_indices_d, last_page_len_d, num_qo_heads, num_kv_heads, head_dim, page_size,
             pos_encoding_mode="NONE", window_left=-1, q_data_type="float16", kv_data_type=None, data_type=None, sm_scale=None, rope_scale=None, rope_theta=None, non_blocking=True):
        """Takes the tables of both and what their calls have in common."""
        where = "BatchPODWithPagedKVCacheWrapper.plan"
        refuse_variants(where, pos_encoding_mode, rope_scale, rope_theta)
        hint(where, "non_blocking", non_blocking)
        dtypes = planned_dtypes(where, q_data_type, kv_data_type, data_type)
        options_of(where, False, window_left, None, sm_scale)
        for wrapper, suffix, qo_indptr, indptr, indices, last in ((self._p, "_p", qo_indptr_p, kv_indptr_p, kv_indices_p, last_page_len_p),
                                                                  (self._d, "_d", qo_indptr_d, kv_indptr_d, kv_indices_d, last_page_len_d)):
            wrapper._tables({"kv_indptr" + suffix: indptr, "kv_indices" + suffix: indices, "last_page_len" + suffix: last}, (None,) * 3)
            wrapper._qo_indptr_buf = wrapper._keep("qo_indptr" + suffix, qo_indptr)
            *wrapper._heads, wrapper._head_dim, wrapper._page_size = wrapper._sizes(num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, page_size=page_size)
            wrapper._options(False, window_left, None, sm_scale, *dtypes, None, None, False, {})
        self._mask_counts = _counts(lambda: (qo_indptr_p[1:] - qo_indptr_p[:-1]) * self._p._lengths(kv_indptr_p, last_page_len_p, page_size), qo_indptr_p, kv_indptr_p, last_page_len_p)

    begin_forward = plan

    def run(self, q_p, paged_kv_cache_p, q_d, paged_kv_cache_d, custom_mask_p=None, packed_custom_mask_p=None, causal_p=False, q_scale=None, k_scale=None, v_scale=None, return_lse=False,
            use_fp16_qk_reduction=False, enable_pdl=None):
        """(out of the prefill, out of the decode), each [tokens, heads, head_dim]; with return_lse ((out, lse), (out, lse)). The scales are of both. A mask is
        of the prefill; where plan() had the tables on the device, its size is not looked at."""
        where = "BatchPODWithPagedKVCacheWrapper.run"
        refuse_variants(where, use_fp16_qk_reduction=use_fp16_qk_reduction)
        hint(where, "enable_pdl", enable_pdl)
        _check.boolean(f"flashinfer.{where}", "causal_p", causal_p)
        p = self._p
        mask = masks(where, custom_mask_p, packed_custom_mask_p, lambda: p._lengths_of(p._qo_indptr_buf) *
                     p._lengths(p._paged_kv_indptr_buf, p._paged_kv_last_page_len_buf, p._page_size), self._mask_counts if p._planned else (None, None),
                     ("custom_mask_p", "packed_custom_mask_p"))
        results = []
        for wrapper, suffix, q, cache, options in ((p, "_p", q_p, paged_kv_cache_p, {"causal": causal_p and not mask, **mask}), (self._d, "_d", q_d, paged_kv_cache_d, {})):
            k, v = unpack(where, cache, wrapper._kv_layout, "paged_kv_cache" + suffix)
            lse = lse_for(where, tensor(where, "q" + suffix, q, 3), None, return_lse)
            results.append(wrapper._run(where, q, k, v, wrapper._qo_indptr_buf, None, lse, None, None, q_scale, k_scale, v_scale, suffix=suffix, **options))
        return tuple(results)

    def end_forward(self):
        """Nothing is to be ended."""
