# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Attention by FlashInfer's names of other libraries' kernels: XQA, cuDNN, TensorRT-LLM. Results beside torch in double."""
import math

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import poisoned, randn  # noqa: E402
from steps import BF16, DIM, E4M3, HEADS, KV_HEADS, LENGTHS, PAGE, QUERIES, Step, ends, integers, near, truth, workspace  # noqa: E402

pytestmark = pytest.mark.anywhere


def ragged(queries=QUERIES, lengths=LENGTHS, dim_vo=DIM, heads_kv=KV_HEADS):
    """(q, k, v, the truth) of requests whose keys follow each other."""
    q, k, v = randn(sum(queries), HEADS, DIM, dtype=BF16), randn(sum(lengths), heads_kv, DIM, seed=5, dtype=BF16), randn(sum(lengths), heads_kv, dim_vo, seed=6, dtype=BF16)
    at, kv_at = ends(queries), ends(lengths)

    def expected(**options):
        parts = [truth(q[at[b]:at[b + 1]], k[kv_at[b]:kv_at[b + 1]], v[kv_at[b]:kv_at[b + 1]], **options) for b in range(len(queries))]
        return torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])

    return q, k, v, expected


@pytest.mark.parametrize("queries", [1, 3])
def test_xqa(fi, queries):
    sink = randn(HEADS, seed=9)
    for layout, kv_dtype in (("NHD", None), ("HND", E4M3)):
        step = Step([queries] * 4, layout=layout, kv_dtype=kv_dtype)
        shape = (4, 1, HEADS, DIM) if queries == 1 else (4, 1, queries, HEADS, DIM)
        by_tensor = kv_dtype is not None
        number = lambda x: torch.full((1,), x, device=places.TORCH) if by_tensor else x  # noqa: E731
        output = poisoned(*shape, dtype=BF16)
        result = fi.xqa(q=step.q.view(shape), k_cache=step.cache[0], v_cache=step.cache[1], page_table=step.dense(), seq_lens=integers(LENGTHS)[:, None].view(torch.uint32), output=output,
                        workspace_buffer=workspace(), semaphores=integers([0]), num_kv_heads=KV_HEADS, page_size=PAGE, sinks=sink, q_scale=number(1.5), kv_scale=number(0.7),
                        sliding_win_size=5, kv_layout=layout, sm_count=132, enable_pdl=True, rcp_out_scale=2.0, q_seq_len=queries, mask=None, q_cu_seq_lens=None, k_sf_cache=None,
                        v_sf_cache=None)
        assert result is None
        near(output.view(-1, HEADS, DIM), step.truth(causal=queries > 1, window_left=4, sm_scale=1.05 / math.sqrt(DIM), v_scale=1.4, sink=sink)[0])
    for change, kind, text in (({"page_size": 8}, ValueError, "`page_size` is 8, expected 4"), ({"mask": integers([1])}, NotImplementedError, "`mask` is a torch.Tensor"),
                               ({"q": step.q}, ValueError, r"`q` has shape"), ({"q_seq_len": 2}, ValueError, "`q` has shape")):
        arguments = dict(q=step.q.view(shape), k_cache=step.cache[0], v_cache=step.cache[1], page_table=step.dense(), seq_lens=integers(LENGTHS), output=output, workspace_buffer=None,
                         semaphores=None, num_kv_heads=KV_HEADS, page_size=PAGE, kv_layout="HND", q_seq_len=queries)
        with pytest.raises(kind, match=r"^flashinfer\.xqa: " + text):
            fi.xqa(**{**arguments, **change})


def test_cudnn_decode(fi):
    step = Step([1, 1, 1, 1], layout="HND")
    out = poisoned(4, HEADS, DIM, dtype=BF16)
    keywords = {"max_sequence_kv": 14, "block_tables": step.dense(), "is_cuda_graph_compatible": True, **dict.fromkeys(f"batch_offsets_{x}" for x in "qokv")}
    for lengths in (integers(LENGTHS), torch.tensor(LENGTHS, dtype=torch.int32)[:, None, None, None]):
        got = fi.cudnn_batch_decode_with_kv_cache(q=step.q, k_cache=step.cache[0], v_cache=step.cache[1], scale=0.3, workspace_buffer=workspace(), actual_seq_lens_kv=lengths, out=out, **keywords)
        assert got is out
        near(out, step.truth(sm_scale=0.3)[0])
    several, sink = Step([3, 3, 3, 3], layout="HND"), randn(HEADS, seed=9)
    lse = poisoned(12, HEADS, dtype=torch.float32)
    expected = several.truth(causal=True, sm_scale=0.3, window_left=4, sink=sink)
    got = fi.cudnn_batch_decode_with_kv_cache(q=several.q, k_cache=several.cache[0], v_cache=several.cache[1], scale=0.3, workspace_buffer=workspace(), actual_seq_lens_kv=integers(LENGTHS), return_lse=True,
                                              lse=lse, q_len_per_req=3, window_left=4, sinks=sink, **keywords)
    near(got[0], expected[0]), near(lse, expected[1], 1e-3)
    assert got[1] is lse
    with pytest.raises(NotImplementedError, match="`batch_offsets_k` is a torch.Tensor"):
        fi.cudnn_batch_decode_with_kv_cache(step.q, *step.cache, 0.3, workspace(), actual_seq_lens_kv=integers(LENGTHS), **{**keywords, "batch_offsets_k": integers([0])})
    with pytest.raises(TypeError, match="`block_tables` is None, expected a tensor"):
        fi.cudnn_batch_decode_with_kv_cache(step.q, *step.cache, 0.3, workspace(), max_sequence_kv=14, actual_seq_lens_kv=integers(LENGTHS))


def test_cudnn_prefill(fi):
    step = Step(layout="HND")
    q, k, v, expected = ragged(dim_vo=64)
    offsets = dict.fromkeys(f"batch_offsets_{x}" for x in ("q", "o", "k", "v", "stats"))
    keywords = {"scale": 0.3, "workspace_buffer": workspace(), "max_token_per_sequence": 7, "max_sequence_kv": 14, "actual_seq_lens_q": integers(QUERIES)[:, None, None, None],
                "actual_seq_lens_kv": integers(LENGTHS), "q_scale": None, "k_scale": torch.full((1, 1, 1, 1), 0.7, device=places.TORCH), "v_scale": torch.full((1,), 2.0, device=places.TORCH),
                "batch_offsets_units": "elements", "is_cuda_graph_compatible": True, "backend": "cudnn", "o_data_type": None, **offsets}
    for causal in (True, False):
        for q_given, caches, pages, want in ((step.q, step.cache, step.dense(), step.truth), (q, (k, v), None, expected)):
            want = want(causal=causal, sm_scale=0.21, v_scale=2.0)
            buffers = {"out": poisoned(*want[0].shape, dtype=BF16), "lse": poisoned(*want[1].shape, dtype=torch.float32)}
            out, lse = fi.prefill.cudnn_batch_prefill_with_kv_cache(q=q_given, k_cache=caches[0], v_cache=caches[1], block_tables=pages, causal=causal, return_lse=True, lse_base="log2",
                                                                    **buffers, **keywords)
            assert out is buffers["out"] and lse is buffers["lse"]
            near(out, want[0]), near(lse, want[1], 1e-3)
    out, lse = fi.prefill.cudnn_batch_prefill_with_kv_cache(q, k, v, 0.3, workspace(), max_token_per_sequence=7, max_sequence_kv=14, actual_seq_lens_q=integers(QUERIES),
                                                            actual_seq_lens_kv=integers(LENGTHS), causal=True, return_lse=False)
    assert lse is None
    near(out, expected(causal=True, sm_scale=0.3)[0])
    with pytest.raises(NotImplementedError, match="`batch_offsets_q` is a torch.Tensor"):
        fi.prefill.cudnn_batch_prefill_with_kv_cache(q=q, k_cache=k, v_cache=v, causal=True, return_lse=False, **{**keywords, "batch_offsets_q": integers(ends(QUERIES))})


def test_ragged_deepseek(fi):
    """Keys and values of different widths, as MLA has them."""
    q, k, v, expected = ragged(dim_vo=64, heads_kv=HEADS)
    sink, number = randn(HEADS, seed=9), lambda x: torch.full((1,), x, device=places.TORCH)
    keywords = {"workspace_buffer": workspace(), "seq_lens": integers(LENGTHS), "max_q_len": 7, "max_kv_len": 14, "o_sf_scale": 1.0, "batch_size": 4, "cum_seq_lens_q": integers(ends(QUERIES)),
                "cum_seq_lens_kv": integers(ends(LENGTHS)), "enable_pdl": None, "skip_softmax_threshold_scale_factor": None, "sage_attn_sfs": (None,) * 4,
                "num_elts_per_sage_attn_blk": (0,) * 4, "backend": "trtllm-gen", "q_seq_lens_cpu": None, "kv_seq_lens_cpu": None, "use_fp16_softmax": None, "uses_spcompress": None}
    for causal, window, sinks, scales in ((True, -1, None, (0.3, 2.0)), (True, 4, sink, (number(0.3), number(2.0))), (False, -1, sink, (0.3, number(2.0)))):
        buffers = {"out": poisoned(sum(QUERIES), HEADS, 64, dtype=BF16), "lse": poisoned(sum(QUERIES), HEADS, dtype=torch.float32)}
        out, lse = fi.prefill.trtllm_ragged_attention_deepseek(query=q, key=k, value=v, bmm1_scale=scales[0], bmm2_scale=scales[1], window_left=window, is_causal=causal, return_lse=True,
                                                               attention_sinks=sinks, **buffers, **keywords)
        assert out is buffers["out"] and lse is buffers["lse"]
        want = expected(causal=causal, window_left=window, sink=sinks, sm_scale=0.3, v_scale=2.0)
        near(out, want[0]), near(lse, want[1], 1e-3)
    for change in ({"o_sf_scale": 2.0}, {"sage_attn_sfs": (sink, None, None, None)}, {"num_elts_per_sage_attn_blk": (1, 0, 0, 0)}, {"skip_softmax_threshold_scale_factor": 1.0}):
        with pytest.raises(NotImplementedError, match=rf"^flashinfer\.prefill\.trtllm_ragged_attention_deepseek: `{next(iter(change))}` is "):
            fi.prefill.trtllm_ragged_attention_deepseek(q, k, v, bmm1_scale=0.3, bmm2_scale=1.0, window_left=-1, is_causal=True, return_lse=False, **{**keywords, **change})


LAYOUTS = ["PACKED_QKV", "CONTIGUOUS_Q_KV", "SEPARATE_Q_K_V", "Q_PAGED_KV_NHD", "Q_PAGED_KV_HND"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fmha_v2(fi, layout):
    lengths, sink = (QUERIES if layout == "PACKED_QKV" else LENGTHS), randn(HEADS, seed=9)
    if layout.startswith("Q_PAGED"):
        step = Step(layout=layout[-3:], combined=True)
        qkv, expected, pages = (step.q, step.cache if layout.endswith("NHD") else step.cache.unbind(1)), step.truth, step.dense()
    else:
        q, k, v, expected = ragged(lengths=lengths, heads_kv=HEADS if layout == "PACKED_QKV" else KV_HEADS)
        qkv, pages = {"PACKED_QKV": torch.stack([q, k, v], 1) if layout == "PACKED_QKV" else None, "CONTIGUOUS_Q_KV": (q, torch.stack([k, v], 1)), "SEPARATE_Q_K_V": (q, k, v)}[layout], None
    keywords = {"input_layout": layout, "workspace_buffer": workspace(), "seq_lens": integers(lengths), "max_q_len": 7, "max_kv_len": 14, "bmm2_scale": 2.0, "batch_size": 4,
                "cum_seq_lens_q": integers(ends(QUERIES)), "cum_seq_lens_kv": integers(ends(lengths)), "block_tables": pages, "out_dtype": BF16, "pos_encoding_mode": None,
                "chunked_attention_size": 0, "save_softmax_stats": False, "skip_softmax_threshold_scale_factor": 0}
    for mode, window, cap, sinks in (("causal", -1, None, None), ("causal", 2, None, sink), ("padding", -1, 3.0, None), ("sliding_window", 4, None, [sink])):
        out = poisoned(sum(QUERIES), HEADS, DIM, dtype=BF16)
        got = fi.trtllm_fmha_v2_prefill(qkv=qkv, bmm1_scale=0.3, mask_mode=mode, window_left=window, logits_soft_cap_scale=cap, sinks=sinks, out=out, **keywords)
        assert got is out
        near(out, expected(causal=mode != "padding", window_left=window, soft_cap=cap or 0.0, sink=None if sinks is None else sink, sm_scale=0.3, v_scale=2.0)[0])
    for change in ({"mask_mode": "chunked"}, {"chunked_attention_size": 4}, {"save_softmax_stats": True}, {"pos_encoding_mode": "ALIBI"}, {"skip_softmax_threshold_scale_factor": 1.0}):
        with pytest.raises(NotImplementedError, match=rf"^flashinfer\.trtllm_fmha_v2_prefill: `{next(iter(change))}` is "):
            fi.trtllm_fmha_v2_prefill(qkv=qkv, bmm1_scale=0.3, **{**keywords, **change})
    for mode, window in (("padding", 4), ("sliding_window", -1)):
        with pytest.raises(ValueError, match=f"`window_left` is {window} beside `mask_mode` '{mode}'"):
            fi.trtllm_fmha_v2_prefill(qkv=qkv, bmm1_scale=0.3, mask_mode=mode, window_left=window, **keywords)
    wrong = {"PACKED_QKV": randn(11, 2, HEADS, DIM, dtype=BF16), "CONTIGUOUS_Q_KV": (qkv[0], randn(9, 3, 2, DIM, dtype=BF16)), "SEPARATE_Q_K_V": qkv[:2]}.get(
        layout, (qkv[0], randn(9, 3, 2, 2, DIM, dtype=BF16)))
    with pytest.raises(ValueError, match="`qkv` has "):
        fi.trtllm_fmha_v2_prefill(qkv=wrong, bmm1_scale=0.3, **keywords)
