# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Decode over a dense table of pages into a tensor that is given."""
import quern
from quern import _check
from quern.compat.flashinfer._attention import NAMES, attend, one_sink, scales
from quern.compat.flashinfer._base import hint, refuse, restated, tensor, torch
from quern.compat.flashinfer._names import _FP4
from quern.compat.flashinfer.page import unpack


def _tokens(where, name, value, q_seq_len):
    """[batch, 1, heads, head_dim], with q_seq_len above 1 [batch, 1, q_seq_len, heads, head_dim], as [tokens, heads, head_dim] of the same memory."""
    dims = 4 if q_seq_len == 1 else 5
    if tensor(where, name, value, dims).size(1) != 1 or (dims == 5 and value.size(2) != q_seq_len):
        raise ValueError(f"flashinfer.{where}: `{name}` has shape {list(value.shape)}, expected 1 beam at dim 1{'' if dims == 4 else f' and `q_seq_len`, {q_seq_len}, at dim 2'}")
    try:
        return value.view(value.size(0) * q_seq_len, *value.shape[-2:])
    except RuntimeError:
        raise ValueError(f"flashinfer.{where}: `{name}` has strides {list(value.stride())}, expected one stride for all tokens") from None


def xqa(q, k_cache, v_cache, page_table, seq_lens, output, workspace_buffer, semaphores, num_kv_heads, page_size, sinks=None, q_scale=1.0, kv_scale=1.0, sliding_win_size=0,
        kv_layout="NHD", sm_count=None, enable_pdl=None, rcp_out_scale=1.0, q_seq_len=1, mask=None, *, q_cu_seq_lens=None, k_sf_cache=None, v_sf_cache=None):
    """output = attention of q [batch, 1, heads, head_dim] over page_table [batch, pages] and seq_lens [batch, 1] keys; with q_seq_len above 1 q is
    [batch, 1, q_seq_len, heads, head_dim], and causal. Logits are q k * q_scale * kv_scale / sqrt(head_dim), the result is times kv_scale * rcp_out_scale; the scales of
    q and of the cache are numbers or tensors of one. sliding_win_size: keys that a query sees, its own included; 0: all. sm_count and semaphores are of other
    kernels."""
    where = "xqa"
    refuse(where, "trees of drafts are masks of the prefill wrappers", mask=mask)
    refuse(where, "xqa_batch_decode_with_kv_cache() takes requests of different numbers of tokens", q_cu_seq_lens=q_cu_seq_lens)
    refuse(where, _FP4, k_sf_cache=k_sf_cache, v_sf_cache=v_sf_cache)
    hint(where, "enable_pdl", enable_pdl)
    restated(where, (("workspace_buffer", workspace_buffer), ("semaphores", semaphores)), (("sm_count", sm_count),))
    tokens = _check.integer(f"flashinfer.{where}", "q_seq_len", q_seq_len, 1, 2**31 - 1)
    window = _check.integer(f"flashinfer.{where}", "sliding_win_size", sliding_win_size, 0, 2**31 - 1)
    for name, t in (("k_cache", k_cache), ("v_cache", v_cache)):
        tensor(where, name, t, 4)
    k, v = unpack(where, (k_cache, v_cache), kv_layout, "k_cache")
    for name, told, got in (("num_kv_heads", num_kv_heads, k.size(2)), ("page_size", page_size, k.size(1))):
        if _check.integer(f"flashinfer.{where}", name, told, 1, 2**31 - 1) != got:
            raise ValueError(f"flashinfer.{where}: `{name}` is {told}, expected {got}, as `k_cache` has in layout {kv_layout}")
    q, out = _tokens(where, "q", q, tokens), _tokens(where, "output", output, tokens)
    lengths = tensor(where, "seq_lens", seq_lens).reshape(-1)
    lengths = lengths.view(torch.int32) if lengths.dtype == torch.uint32 else lengths
    batch = lengths.numel()
    factors = scales(where, q, k.size(2), batch, None, q_scale, kv_scale, kv_scale, {"k_scale": "kv_scale", "v_scale": "kv_scale"})
    factors["out_scale"] *= _check.number(f"flashinfer.{where}", "rcp_out_scale", rcp_out_scale)
    names = {**NAMES, "out": "output", "k_cache": "k_cache", "v_cache": "v_cache", "sink": "sinks"}
    attend(where, quern.attention.paged, q, out, None, ({}, None), names, k_cache=k, v_cache=v, page_table=tensor(where, "page_table", page_table, 2), seq_lens=lengths,
           q_indptr=None if tokens == 1 else torch.arange(batch + 1, dtype=torch.int32, device=q.device) * tokens, max_seq_q=tokens, causal=tokens > 1,
           window_left=window - 1 if window else -1, sink=one_sink(where, sinks), **factors)
