# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""FlashInfer's attention, each function called with its exact keywords; results beside torch in double."""
import copy
import functools
import math

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import poisoned, randn  # noqa: E402
from steps import BF16, DIM, E4M3, HEADS, KV_HEADS, LENGTHS, PAGE, QUERIES, Step, ends, integers, masks_of, near, packed, truth, workspace  # noqa: E402

pytestmark = pytest.mark.anywhere
OPTIONS = [{}, {"window_left": 4}, {"logits_soft_cap": 3.0, "sm_scale": 0.4}]


def of_truth(options):
    return {"soft_cap" if name == "logits_soft_cap" else name: value for name, value in options.items()}


def runs_plainly(wrapper, expected, q, *keys):
    """run() without options, which goes a shorter way: right, into `out` and without it; what does not fit plan() is an error that says so."""
    out = poisoned(*expected.shape, dtype=BF16)
    assert wrapper.run(q, *keys, out=out) is out and wrapper._quick is not None
    near(out, expected), near(wrapper.run(q, *keys), expected)
    for wrong, told in ((q.half(), "`q` is float16"), (q[:, 1:], "query heads"), (q[..., :16], "head_dim 16")):
        with pytest.raises(ValueError, match=told):
            wrapper.run(wrong, *keys)
    with pytest.raises(ValueError, match="flashinfer.*`out` has"):
        wrapper.run(q, *keys, out=out[:-1])


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_single_decode(fi, layout):
    q, k, v = randn(HEADS, DIM, dtype=BF16), randn(9, KV_HEADS, DIM, seed=2, dtype=BF16), randn(9, KV_HEADS, DIM, seed=3, dtype=BF16)
    shown = [t if layout == "NHD" else t.transpose(0, 1).contiguous() for t in (k, v)]
    for options in OPTIONS:
        keywords = {"pos_encoding_mode": "NONE", "use_tensor_cores": True, "window_left": -1, "logits_soft_cap": None, "sm_scale": None, "rope_scale": None, "rope_theta": None, **options}
        expected = [t[0] for t in truth(q[None], k, v, v_scale=2.0, **{**of_truth(options), "sm_scale": 1.5 * options.get("sm_scale", 1 / math.sqrt(DIM))})]
        out, lse = fi.single_decode_with_kv_cache(q=q, k=shown[0], v=shown[1], kv_layout=layout, q_scale=3.0, k_scale=0.5, v_scale=2.0, return_lse=True, **keywords)
        near(out, expected[0]), near(lse, expected[1], 1e-3)
    near(fi.single_decode_with_kv_cache(q, *shown, layout), truth(q[None], k, v)[0][0])
    wide = randn(9, KV_HEADS, 64, seed=5, dtype=BF16)
    near(fi.single_decode_with_kv_cache(q, k, wide), truth(q[None], k, wide)[0][0])
    out, lse = fi.single_decode_with_kv_cache(q, k[:0], v[:0], return_lse=True)
    assert (out == 0).all() and (lse == -torch.inf).all()


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_single_prefill(fi, layout):
    q, k, v = randn(5, HEADS, DIM, dtype=BF16), randn(9, KV_HEADS, DIM, seed=2, dtype=BF16), randn(9, KV_HEADS, DIM, seed=3, dtype=BF16)
    k_shown, v_shown = (t if layout == "NHD" else t.transpose(0, 1).contiguous() for t in (k, v))
    mask, = masks_of([5], [9])
    cases = [(options, causal, None) for options in OPTIONS for causal in (True, False)] + [({}, True, "custom"), ({"window_left": 4}, False, "packed")]
    for options, causal, kind in cases:
        keywords = {"o_dtype": None, "pos_encoding_mode": "NONE", "use_fp16_qk_reduction": False, "sm_scale": None, "window_left": -1, "logits_soft_cap": None, "rope_scale": None,
                    "rope_theta": None, "backend": "auto", "kv_cache_sf": None, "scale_q": None, "scale_k": None, "scale_v": None, "k_scale": None, "v_scale": 0.5, **options}
        given = {"custom_mask": mask.to(places.TORCH) if kind == "custom" else None, "packed_custom_mask": packed([mask]) if kind == "packed" else None}
        out, lse = fi.single_prefill_with_kv_cache(q=q, k=k_shown, v=v_shown, causal=causal, kv_layout=layout, return_lse=True, **given, **keywords)
        expected = truth(q, k, v, causal, mask=mask if kind else None, v_scale=0.5, **of_truth(options))
        near(out, expected[0]), near(lse, expected[1], 1e-3)
    assert not torch.equal(truth(q, k, v, True, mask=mask)[0], truth(q, k, v, True, mask=mask & (torch.arange(9)[None] <= torch.arange(4, 9)[:, None]))[0]), "the mask must break causality"
    out, lse = fi.single_prefill_with_kv_cache_return_lse(q, k_shown, v_shown, kv_layout=layout)
    near(out, truth(q, k, v)[0]), near(lse, truth(q, k, v)[1], 1e-3)
    scales = [torch.rand(n, generator=torch.Generator().manual_seed(n)).to(places.TORCH) + 0.5 for n in (HEADS, KV_HEADS, KV_HEADS)]
    got = fi.single_prefill_with_kv_cache(q, k_shown, v_shown, *scales, kv_layout=layout)
    near(got, truth(q.float() * scales[0][:, None], k.float() * scales[1][:, None], v.float() * scales[2][:, None])[0])
    fp8 = [t.to(E4M3) for t in (q, k, v)]
    got = fi.single_prefill_with_kv_cache(fp8[0], *(t if layout == "NHD" else t.transpose(0, 1) for t in fp8[1:]), *scales, o_dtype=BF16, kv_layout=layout)
    assert got.dtype == BF16
    near(got, truth(fp8[0].float() * scales[0][:, None], fp8[1].float() * scales[1][:, None], fp8[2].float() * scales[2][:, None])[0], 2**-4)


DECODE_OPTIONS = {"pos_encoding_mode": "NONE", "window_left": -1, "logits_soft_cap": None, "q_data_type": BF16, "kv_data_type": None, "o_data_type": None, "data_type": None, "sm_scale": None,
                  "rope_scale": None, "rope_theta": None, "non_blocking": True, "block_tables": None, "seq_lens": None, "fixed_split_size": None, "disable_split_kv": False}


@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_batch_decode(fi, layout, combined):
    step = Step([1, 1, 1, 1], layout=layout, combined=combined)
    wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(float_workspace_buffer=workspace(), kv_layout=layout, use_cuda_graph=False, use_tensor_cores=True, paged_kv_indptr_buffer=None,
                                                    paged_kv_indices_buffer=None, paged_kv_last_page_len_buffer=None, backend="auto", jit_args=None)
    indptr, indices, last = step.tables()
    sizes = {"num_qo_heads": HEADS, "num_kv_heads": KV_HEADS, "head_dim": DIM, "page_size": PAGE}
    for options in OPTIONS:
        wrapper.plan(indptr=indptr.cpu(), indices=indices, last_page_len=last, **sizes, **{**DECODE_OPTIONS, **options}, window_right=0, q_len_per_req=1)
        expected = step.truth(v_scale=2.0, **{**of_truth(options), "sm_scale": 1.5 * options.get("sm_scale", 1 / math.sqrt(DIM))})
        buffers = {"out": poisoned(4, HEADS, DIM, dtype=BF16), "lse": poisoned(4, HEADS, dtype=torch.float32)}
        out, lse = wrapper.run(q=step.q, paged_kv_cache=step.cache, q_scale=3.0, k_scale=0.5, v_scale=2.0, return_lse=True, enable_pdl=None, window_left=None, sinks=None, q_len_per_req=1,
                               skip_softmax_threshold_scale_factor=None, kv_cache_sf=None, **buffers)
        assert out is buffers["out"] and lse is buffers["lse"]
        near(out, expected[0]), near(lse, expected[1], 1e-3)
        runs_plainly(wrapper, step.truth(**of_truth(options))[0], step.q, step.cache)
    near(wrapper.forward(step.q, step.cache, window_left=2, sm_scale=0.3), step.truth(window_left=2, sm_scale=0.3)[0])
    wrapper.begin_forward(indptr, indices, last, *sizes.values(), data_type=BF16)
    near(wrapper.forward(step.q, step.cache), step.truth()[0])
    near(wrapper.forward_return_lse(step.q, step.cache)[1], step.truth()[1], 1e-3)
    wrapper.begin_forward(indptr, indices, last, HEADS, KV_HEADS, DIM, PAGE, data_type=BF16, q_data_type=BF16)
    near(wrapper.run(step.q, step.cache, window_left=3), step.truth(window_left=3)[0])
    sink = randn(HEADS, seed=9)
    out, lse = wrapper.run_return_lse(step.q, step.cache, sinks=sink)
    near(out, step.truth(sink=sink)[0]), near(lse, step.truth(sink=sink)[1], 1e-3)
    fi.fast_decode_plan(wrapper, indptr, indices, last, **sizes, **{name: DECODE_OPTIONS[name] for name in DECODE_OPTIONS if name not in ("o_data_type", "block_tables", "seq_lens")},
                        q_len_per_req=1, global_override_indptr_cpu=indptr.cpu())
    near(wrapper.run(step.q, step.cache), step.truth()[0])
    wrapper.end_forward()


def test_batch_decode_of_several_tokens_and_of_fp8(fi):
    for queries, kv_dtype in ((3, None), (1, E4M3)):
        step = Step([queries] * 4, kv_dtype=kv_dtype)
        wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(workspace())
        wrapper.plan(*step.tables(), HEADS, KV_HEADS, DIM, PAGE, q_data_type="bfloat16", kv_data_type=kv_dtype, q_len_per_req=queries, disable_split_kv=True)
        near(wrapper.run(step.q, step.cache, q_len_per_req=queries), step.truth(causal=True)[0])
        scale = torch.full((1,), 0.7, device=places.TORCH)
        near(wrapper.run(step.q, step.cache, k_scale=scale, v_scale=scale), step.truth(causal=True, sm_scale=0.7 / math.sqrt(DIM), v_scale=0.7)[0])
    for plan in (wrapper.begin_forward, functools.partial(fi.fast_decode_plan, wrapper)):  # SGLang: of keys, then of queries
        plan(*step.tables(), HEADS, KV_HEADS, DIM, PAGE, data_type=E4M3, q_data_type=BF16)
        near(wrapper.forward(step.q, step.cache, q_scale=0.5, k_scale=3.0, v_scale=0.7), step.truth(sm_scale=1.5 / math.sqrt(DIM), v_scale=0.7)[0])
    with pytest.deprecated_call():
        wrapper.plan(*step.tables(), HEADS, KV_HEADS, DIM, PAGE, "NONE", 4, None, BF16, E4M3)
    near(wrapper.run(step.q, step.cache), step.truth(window_left=4)[0])


def test_copies_and_plans_that_fail(fi):
    """A copy of a wrapper computes with its own tables and options; after a plan() that fails the one before stands; buffers of a graph are there before a plan; `out` is what `o_data_type` says."""
    step = Step([1, 1, 1, 1])
    wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(workspace())
    sizes = (HEADS, KV_HEADS, DIM, PAGE)
    wrapper.plan(*step.tables(), *sizes, q_data_type=None, data_type=BF16)
    near(wrapper.run(step.q, step.cache), step.truth()[0])
    twin = copy.copy(wrapper)
    indptr, indices, last = step.tables()
    wrapper.plan(indptr, indices.flip(0), last, *sizes, q_data_type=BF16, window_left=2)
    near(twin.run(step.q, step.cache), step.truth()[0])
    planned = wrapper.run(step.q, step.cache)
    assert (planned - twin.run(step.q, step.cache)).abs().max() > 0.1, "tables of its own"
    near(twin.forward(step.q, step.cache, window_left=3), step.truth(window_left=3)[0])
    with pytest.raises(TypeError):
        wrapper.plan(*step.tables(), *sizes, q_data_type=BF16, window_left="x")
    assert torch.equal(wrapper.run(step.q, step.cache), planned)
    with pytest.raises(TypeError, match="q_data_type"):
        wrapper.plan(*step.tables(), *sizes, q_data_type=None)
    wrapper.plan(*step.tables(), *sizes, q_data_type=BF16, o_data_type=BF16)
    fi.fast_decode_plan(wrapper, *step.tables(), *sizes, q_data_type=BF16)
    with pytest.raises(ValueError, match="`out` is float16, expected bfloat16"):
        wrapper.run(step.q, step.cache, out=poisoned(4, HEADS, DIM, dtype=torch.float16))
    graph = fi.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(workspace(), indptr, indices, last)
    assert graph._paged_kv_indptr_buf is indptr and graph._paged_kv_indices_buf is indices and graph._paged_kv_last_page_len_buf is last
    assert fi.BatchPrefillWithPagedKVCacheWrapper(workspace())._custom_mask_buf is None


PREFILL_OPTIONS = {"pos_encoding_mode": "NONE", "use_fp16_qk_reduction": False, "sm_scale": None, "window_left": -1, "logits_soft_cap": None, "rope_scale": None, "rope_theta": None,
                   "q_data_type": BF16, "kv_data_type": None, "o_data_type": None, "non_blocking": True, "prefix_len_ptr": None, "token_pos_in_items_ptr": None, "token_pos_in_items_len": 0,
                   "max_item_len_ptr": None, "seq_lens": None, "seq_lens_q": None, "max_token_per_sequence": None, "max_sequence_kv": None, "fixed_split_size": -1,
                   "disable_split_kv": False, "uniform_q_len": None}


def prefill_cases(queries, lengths):
    """(options, causal, masks, how they are given)."""
    masks = masks_of(queries, lengths)
    return [(options, causal, None, {}) for options in OPTIONS for causal in (True, False)] + [
        ({}, True, masks, {"custom_mask": torch.cat([m.flatten() for m in masks]).to(places.TORCH)}), ({"window_left": 4}, False, masks, {"packed_custom_mask": packed(masks)})]


@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_paged_prefill(fi, layout, combined):
    step = Step(layout=layout, combined=combined)
    wrapper = fi.BatchPrefillWithPagedKVCacheWrapper(float_workspace_buffer=workspace(), kv_layout=layout, use_cuda_graph=False, qo_indptr_buf=None, paged_kv_indptr_buf=None,
                                                     paged_kv_indices_buf=None, paged_kv_last_page_len_buf=None, custom_mask_buf=None, mask_indptr_buf=None, backend="fa2", jit_args=None,
                                                     jit_kwargs=None)
    indptr, indices, last = step.tables()
    tables = {"qo_indptr": integers(step.qo_indptr), "paged_kv_indptr": indptr, "paged_kv_indices": indices, "paged_kv_last_page_len": last, "num_qo_heads": HEADS,
              "num_kv_heads": KV_HEADS, "head_dim_qk": DIM, "head_dim_vo": DIM, "page_size": PAGE}
    for options, causal, masks, given in prefill_cases(QUERIES, LENGTHS):
        wrapper.plan(**tables, causal=causal, block_tables=None, **{"custom_mask": None, "packed_custom_mask": None, **given}, **{**PREFILL_OPTIONS, **options})
        buffers = {"out": poisoned(sum(QUERIES), HEADS, DIM, dtype=BF16), "lse": poisoned(sum(QUERIES), HEADS, dtype=torch.float32)}
        out, lse = wrapper.run(q=step.q, paged_kv_cache=step.cache, q_scale=None, k_scale=None, v_scale=2.0, return_lse=True, enable_pdl=True, window_left=None, sinks=None, kv_cache_sf=None,
                               skip_softmax_threshold_scale_factor=None, use_fp16_softmax=None, uses_spcompress=None, lse_base="log2", lse_layout="NH", **buffers)
        assert out is buffers["out"] and lse is buffers["lse"]
        expected = step.truth(masks, causal=causal, v_scale=2.0, **of_truth(options))
        near(out, expected[0]), near(lse, expected[1], 1e-3)
        runs_plainly(wrapper, expected[0] / 2, step.q, step.cache)
    assert (wrapper._window_left, wrapper._logits_soft_cap, wrapper._sm_scale, wrapper._causal) == (4, 0.0, None, False), "vLLM reads these"
    wrapper.begin_forward(integers(step.qo_indptr), indptr, indices, last, HEADS, KV_HEADS, DIM, PAGE, q_data_type=BF16, kv_data_type=BF16, non_blocking=True)
    near(wrapper.forward(step.q, step.cache, causal=True, sm_scale=0.3, window_left=5, logits_soft_cap=0.0, k_scale=None, v_scale=None),
         step.truth(causal=True, sm_scale=0.3, window_left=5)[0])
    out, lse = wrapper.forward_return_lse(step.q, step.cache, causal=False, logits_soft_cap=3.0)
    near(out, step.truth(soft_cap=3.0)[0]), near(lse, step.truth(soft_cap=3.0)[1], 1e-3)
    near(wrapper.run_return_lse(step.q, step.cache, lse_base="ln", lse_layout="HN")[1], step.truth(soft_cap=3.0)[1].T * math.log(2), 1e-3)
    sink = randn(HEADS, seed=9)
    near(wrapper.run(step.q, step.cache, sinks=sink), step.truth(soft_cap=3.0, sink=sink)[0])
    wrapper.end_forward()


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_ragged_prefill(fi, layout):
    step, dim_vo = Step(), 64
    q, k, v = step.q, randn(sum(LENGTHS), KV_HEADS, DIM, seed=5, dtype=BF16), randn(sum(LENGTHS), KV_HEADS, dim_vo, seed=6, dtype=BF16)
    k_shown, v_shown = (t if layout == "NHD" else t.transpose(0, 1).contiguous() for t in (k, v))
    at, kv_at = ends(QUERIES), ends(LENGTHS)

    def expected(masks=None, **options):
        parts = [truth(q[at[b]:at[b + 1]], k[kv_at[b]:kv_at[b + 1]], v[kv_at[b]:kv_at[b + 1]], mask=None if masks is None else masks[b], **options) for b in range(4)]
        return torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])

    wrapper = fi.BatchPrefillWithRaggedKVCacheWrapper(float_workspace_buffer=workspace(), kv_layout=layout, use_cuda_graph=False, qo_indptr_buf=None, kv_indptr_buf=None,
                                                      custom_mask_buf=None, mask_indptr_buf=None, backend="fa3", jit_args=None, jit_kwargs=None)
    tables = {"qo_indptr": integers(at), "kv_indptr": integers(kv_at), "num_qo_heads": HEADS, "num_kv_heads": KV_HEADS, "head_dim_qk": DIM, "head_dim_vo": dim_vo}
    for options, causal, masks, given in prefill_cases(QUERIES, LENGTHS):
        wrapper.plan(**tables, causal=causal, v_indptr=None, o_indptr=None, **{"custom_mask": None, "packed_custom_mask": None, **given}, **{**PREFILL_OPTIONS, **options})
        buffers = {"out": poisoned(sum(QUERIES), HEADS, dim_vo, dtype=BF16), "lse": poisoned(sum(QUERIES), HEADS, dtype=torch.float32)}
        out, lse = wrapper.run(q=q, k=k_shown, v=v_shown, q_scale=None, k_scale=None, v_scale=2.0, o_scale=None, return_lse=True, enable_pdl=None, kv_cache_sf=None, lse_base="log2",
                               lse_layout="NH", **buffers)
        assert out is buffers["out"] and lse is buffers["lse"]
        want = expected(masks, causal=causal, v_scale=2.0, **of_truth(options))
        near(out, want[0]), near(lse, want[1], 1e-3)
        runs_plainly(wrapper, want[0] / 2, q, k_shown, v_shown)
    wrapper.begin_forward(**tables, q_data_type=BF16)
    near(wrapper.forward(q, k_shown, v_shown, causal=True, sm_scale=0.3), expected(causal=True, sm_scale=0.3)[0])
    near(wrapper.forward_return_lse(q, k_shown, v_shown, window_left=2)[1], expected(window_left=2)[1], 1e-3)
    near(wrapper.run_return_lse(q, k_shown, v_shown)[1], expected(window_left=2)[1], 1e-3)
    scale = lambda x: torch.full((1,), x, device=places.TORCH)  # noqa: E731
    near(wrapper.run(q, k_shown, v_shown, scale(0.5), scale(3.0), scale(2.0)), expected(window_left=2, sm_scale=1.5 / math.sqrt(DIM), v_scale=2.0)[0])
    wrapper.end_forward()


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_pages_of_one_token(fi, layout):
    """SGLang's pools have no dim of pages: [tokens, heads, head_dim]."""
    cache, slots, q = randn(20, 2, KV_HEADS, DIM, seed=2, dtype=BF16), [7, 3, 12, 5, 19], randn(2, HEADS, DIM, dtype=BF16)
    for given in (cache, cache.unbind(1), cache.unsqueeze(2 if layout == "NHD" else 3)):
        decode, prefill = fi.BatchDecodeWithPagedKVCacheWrapper(workspace(), layout), fi.BatchPrefillWithPagedKVCacheWrapper(workspace(), layout)
        decode.begin_forward(integers([0, 3, 5]), integers(slots), integers([1, 1]), HEADS, KV_HEADS, DIM, 1, q_data_type=BF16)
        expected = [truth(q[b:b + 1], *(cache[s, i] for i in (0, 1)))[0] for b, s in ((0, slots[:3]), (1, slots[3:]))]
        near(decode.forward(q, given), torch.cat(expected))
        prefill.begin_forward(integers([0, 2]), integers([0, 5]), integers(slots), integers([1]), HEADS, KV_HEADS, DIM, 1, q_data_type=BF16)
        near(prefill.forward(q, given, causal=True), truth(q, cache[slots, 0], cache[slots, 1], causal=True)[0])


def test_graph_mode(fi):
    """plan() writes into the buffers, and run() reads what they hold then: that is what a captured call does."""
    step = Step([1, 1, 1, 1])
    indptr, indices, last = step.tables()
    buffers = [torch.zeros_like(indptr), torch.zeros(20, dtype=torch.int32, device=places.TORCH), torch.ones_like(last)]
    graph = fi.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(workspace_buffer=workspace(), indptr_buffer=buffers[0], indices_buffer=buffers[1], last_page_len_buffer=buffers[2], kv_layout="NHD",
                                                           use_tensor_cores=False)
    assert graph.is_cuda_graph_enabled and not fi.BatchDecodeWithPagedKVCacheWrapper(workspace()).is_cuda_graph_enabled
    graph.plan(indptr, indices, last, HEADS, KV_HEADS, DIM, PAGE, q_data_type=BF16)
    near(graph.run(step.q, step.cache), step.truth()[0])
    assert torch.equal(buffers[0], indptr) and torch.equal(buffers[1][:len(indices)], indices) and torch.equal(buffers[2], last)
    buffers[0].copy_(integers([0, 1, 1, 1, 1])), buffers[2].copy_(integers([2, 1, 1, 1]))
    got = graph.run(step.q, step.cache)
    assert (got[1:] == 0).all()
    near(got[:1], truth(step.q[:1], *(t[:2] for t in step.request(0)[1:]))[0])
    with pytest.raises(ValueError, match=r"`indptr` has 4 elements, its buffer 5: a graph has one batch size"):
        graph.plan(indptr[:4], indices, last[:3], HEADS, KV_HEADS, DIM, PAGE, q_data_type=BF16)
    step, masks = Step(), masks_of(QUERIES, LENGTHS)
    more = {"custom_mask_buf": torch.zeros(100, dtype=torch.uint8, device=places.TORCH), "mask_indptr_buf": torch.zeros_like(indptr)}
    names = ("paged_kv_indptr_buf", "paged_kv_indices_buf", "paged_kv_last_page_len_buf")
    prefill = fi.BatchPrefillWithPagedKVCacheWrapper(workspace(), "NHD", True, torch.zeros_like(indptr), **dict(zip(names, buffers)), **more)
    prefill.plan(integers(step.qo_indptr), indptr, indices, last, HEADS, KV_HEADS, DIM, PAGE, custom_mask=torch.cat([m.flatten() for m in masks]).to(places.TORCH), q_data_type=BF16)
    near(prefill.run(step.q, step.cache), step.truth(masks)[0])
    assert prefill._mask["mask"] is more["custom_mask_buf"] and more["mask_indptr_buf"][-1] > 0
    k, v = (torch.cat([step.request(b)[i] for b in range(4)]).to(BF16) for i in (1, 2))
    ragged = fi.BatchPrefillWithRaggedKVCacheWrapper(workspace(), "NHD", True, torch.zeros_like(indptr), torch.zeros_like(indptr))
    ragged.plan(integers(step.qo_indptr), integers(ends(LENGTHS)), HEADS, KV_HEADS, DIM, causal=True, q_data_type=BF16)
    near(ragged.run(step.q, k, v), step.truth(causal=True)[0])
    assert ragged._kv_indptr_buf is ragged._buffers["kv_indptr_buf"]
    with pytest.raises(ValueError, match="`custom_mask_buf` is None"):
        fi.BatchPrefillWithPagedKVCacheWrapper(workspace(), "NHD", True, torch.zeros_like(indptr), **dict(zip(names, buffers))).plan(
            integers(step.qo_indptr), indptr, indices, last, HEADS, KV_HEADS, DIM, PAGE, packed_custom_mask=packed(masks), q_data_type=BF16)
    with pytest.raises(TypeError, match="`paged_kv_indptr_buffer` is None, expected a tensor"):
        fi.BatchDecodeWithPagedKVCacheWrapper(workspace(), use_cuda_graph=True)


def test_graph_that_is_planned_by_hand(fi):
    """SGLang fills the buffers of a captured wrapper by itself, and calls the plan() of what FlashInfer keeps there: run() has what the buffers hold."""
    step, masks = Step(), masks_of(QUERIES, LENGTHS)
    names = ("qo_indptr_buf", "paged_kv_indptr_buf", "paged_kv_indices_buf", "paged_kv_last_page_len_buf", "custom_mask_buf", "mask_indptr_buf")
    buffers = dict(zip(names, (integers([0] * 5), integers([0] * 5), integers([0] * 40), integers([0] * 4), torch.zeros(400, dtype=torch.uint8, device=places.TORCH), integers([0] * 5))))
    for masked in (False, True):
        wrapper = fi.BatchPrefillWithPagedKVCacheWrapper(workspace(), "NHD", True, **(buffers if masked else {name: buffers[name] for name in names[:4]}), backend="fa2")
        assert wrapper._cached_module is None and wrapper._backend == "fa2" and wrapper.is_cuda_graph_enabled and wrapper._max_total_num_rows is None
        given = {"custom_mask": torch.cat([m.flatten() for m in masks_of([1] * 4, [2] * 4)]).to(places.TORCH)} if masked else {}
        wrapper.begin_forward(integers([0, 1, 2, 3, 4]), integers([0, 1, 2, 3, 4]), integers([3, 2, 1, 0]), integers([2] * 4), HEADS, KV_HEADS, DIM, PAGE, q_data_type=BF16, causal=False, **given)
        indptr, indices, last = step.tables()
        wrapper._qo_indptr_buf.copy_(integers(step.qo_indptr)), wrapper._paged_kv_indptr_buf.copy_(indptr), wrapper._paged_kv_last_page_len_buf.copy_(last)
        wrapper._paged_kv_indices_buf[:len(indices)].copy_(indices)
        if masked:
            bits = packed(masks)
            wrapper._custom_mask_buf[:len(bits)].copy_(bits), wrapper._mask_indptr_buf.copy_(integers(ends([(m.numel() + 7) // 8 for m in masks])))
        host = [t.cpu() for t in (integers(step.qo_indptr), indptr, last)]
        arguments = [wrapper._float_workspace_buffer, wrapper._int_workspace_buffer, wrapper._pin_memory_int_workspace_buffer, *host, step.qo_indptr[-1], 4, HEADS, KV_HEADS, PAGE, True, DIM, DIM, False, -1,
                     -1, False, 0, 0]
        wrapper._plan_info = wrapper._cached_module.plan(*arguments)
        near(wrapper.run(step.q, step.cache), step.truth(masks)[0] if masked else step.truth()[0])
        near(wrapper.forward(step.q, step.cache, causal=True), step.truth(masks)[0] if masked else step.truth(causal=True)[0])
        for at, name in ((7, "batch_size"), (8, "num_qo_heads"), (9, "num_kv_heads"), (10, "page_size"), (12, "head_dim_qk"), (13, "head_dim_vo")):
            with pytest.raises(ValueError, match=rf"^flashinfer\.BatchPrefillWithPagedKVCacheWrapper\.plan: `{name}` is 99, expected "):
                wrapper._cached_module.plan(*arguments[:at], 99, *arguments[at + 1:])


def test_small_methods(fi):
    """What asks or prepares, and changes nothing."""
    decode, prefill, cascade = fi.BatchDecodeWithPagedKVCacheWrapper(workspace(), backend="fa2"), fi.BatchPrefillWithPagedKVCacheWrapper(workspace()), fi.MultiLevelCascadeAttentionWrapper(2, workspace())
    assert decode.resolved_backend == "fa2" and fi.BatchDecodeWithPagedKVCacheWrapper(workspace()).resolved_backend == "auto"
    assert not cascade.is_cuda_graph_enabled and not fi.BatchPODWithPagedKVCacheWrapper(workspace()).is_cuda_graph_enabled
    prefix = fi.BatchPrefillWithSharedPrefixPagedKVCacheWrapper(workspace())
    for wrapper in (decode, prefill, cascade, prefix, fi.BatchAttention(device=places.TORCH)):
        with pytest.raises(RuntimeError, match=r"prewarm_paged_kv_stride_variant: plan\(\) was not called"):
            wrapper.prewarm_paged_kv_stride_variant()
    step = Step([1, 1, 1, 1])
    decode.plan(*step.tables(), HEADS, KV_HEADS, DIM, PAGE, q_data_type=BF16)
    assert decode.prewarm_paged_kv_stride_variant(variant="independent") is None
    with pytest.raises(ValueError, match="`variant` is 'equal', expected 'independent'"):
        decode.prewarm_paged_kv_stride_variant("equal")


def test_workspace_size(fi):
    step = Step()
    decode, prefill = fi.BatchDecodeWithPagedKVCacheWrapper(workspace()), fi.BatchPrefillWithPagedKVCacheWrapper(workspace())
    sizes = [decode.workspace_size(*step.tables(), HEADS, KV_HEADS, DIM, PAGE, q_data_type=BF16, disable_split_kv=split) for split in (False, True)]
    sizes.append(prefill.workspace_size(integers(step.qo_indptr), *step.tables(), HEADS, KV_HEADS, DIM, PAGE, causal=True, q_data_type=BF16))
    assert all(isinstance(n, int) and n >= 0 and other == 0 for n, other in sizes)
    tables = integers([0, 300]), integers(range(300)), integers([PAGE])
    buffers, cache = [integers([0, 0]), torch.zeros(900, dtype=torch.int32, device=places.TORCH), integers([1])], randn(300, 2, PAGE, KV_HEADS, DIM, dtype=BF16)
    of = lambda size: fi.CUDAGraphBatchDecodeWithPagedKVCacheWrapper(torch.empty(size, dtype=torch.uint8, device=places.TORCH), *buffers)  # noqa: E731
    size, _ = of(0).workspace_size(*tables, HEADS, KV_HEADS, DIM, PAGE, q_data_type=BF16)
    assert size > fi.BatchDecodeWithPagedKVCacheWrapper(workspace()).workspace_size(*tables, HEADS, KV_HEADS, DIM, PAGE, q_data_type=BF16)[0], "a graph serves whatever its buffers hold"
    enough, short = of(size), of(size // 2)
    for wrapper in (enough, short):
        wrapper.plan(*tables, HEADS, KV_HEADS, DIM, PAGE, q_data_type=BF16)
    near(enough.run(step.q[:1], cache), truth(step.q[:1], *(cache[:, i].reshape(-1, KV_HEADS, DIM) for i in (0, 1)))[0])
    with pytest.raises(ValueError, match=r"^flashinfer\.BatchDecodeWithPagedKVCacheWrapper\.run: `float_workspace_buffer` has \d+ bytes, expected"):
        short.run(step.q[:1], cache)
    with pytest.raises(RuntimeError, match=r"plan\(\) was not called"):
        prefill.run(step.q, step.cache)


def test_dense_tables(fi):
    sink = randn(HEADS, seed=9)
    for queries in ([1, 1, 1, 1], [2, 2, 2, 2]):
        step = Step(queries, layout="HND", combined=True)
        common = {"workspace_buffer": workspace(), "block_tables": step.dense(), "seq_lens": integers(LENGTHS), "bmm1_scale": 0.3, "bmm2_scale": 2.0, "enable_pdl": None}
        expected = step.truth(causal=True, sm_scale=0.3, v_scale=2.0, window_left=5, sink=sink)
        out, lse = fi.decode.trtllm_batch_decode_with_kv_cache(
            query=step.q, kv_cache=step.cache, max_seq_len=14, window_left=5, out=None, out_dtype=None, o_sf_scale=None, o_sf_vec_size=None, sinks=[sink], kv_layout="HND", backend="auto",
            q_len_per_req=queries[0], o_scale=1.0, mask=None, max_q_len=None, cum_seq_lens_q=None, skip_softmax_threshold_scale_factor=None, kv_cache_sf=None,
            uses_shared_paged_kv_idx=True, lse=None, return_lse=True, bmm1_scale_log2=None, multi_ctas_kv_counter_buffer=None, enable_block_sparse_attention=False,
            bf16q_fp8kv_transform_mode=None, **common)
        near(out, expected[0]), near(lse, expected[1], 1e-3)
        step = Step(queries)
        out = poisoned(sum(queries), HEADS, DIM, dtype=BF16)
        assert fi.decode.xqa_batch_decode_with_kv_cache(query=step.q, kv_cache=step.cache, max_seq_len=16, window_left=5, out=out, sinks=sink, kv_layout="NHD", q_len_per_req=queries[0],
                                                        o_scale=1.0, mask=None, kv_cache_sf=None, q_cu_seq_lens=None, **common) is out
        near(out, expected[0])
    step = Step()
    for causal in (True, False):
        out, lse = fi.prefill.trtllm_batch_context_with_kv_cache(
            query=step.q, kv_cache=step.cache, max_q_len=7, max_kv_len=14, batch_size=4, cum_seq_lens_q=integers(step.qo_indptr), cum_seq_lens_kv=integers(ends(LENGTHS)), window_left=-1,
            out=None, out_dtype="bfloat16", o_sf_scale=None, o_sf_vec_size=None, kv_layout="NHD", sinks=None, kv_cache_sf=None, skip_softmax_threshold_scale_factor=None,
            uses_shared_paged_kv_idx=True, causal=causal, lse=None, return_lse=True, multi_ctas_kv_counter_buffer=None, use_fp16_softmax=None, uses_spcompress=None,
            **{**common, "bmm1_scale": torch.full((1,), 0.3, device=places.TORCH), "bmm2_scale": torch.full((1,), 2.0, device=places.TORCH)})
        expected = step.truth(causal=causal, sm_scale=0.3, v_scale=2.0)
        near(out, expected[0]), near(lse, expected[1], 1e-3)


def test_batch_attention(fi):
    step = Step()
    indptr, indices, last = step.tables()
    for options, causal in ((OPTIONS[0], True), (OPTIONS[2], False)):
        wrapper = fi.BatchAttention(kv_layout="NHD", device=places.TORCH)
        wrapper.plan(qo_indptr=integers(step.qo_indptr), kv_indptr=indptr, kv_indices=indices, kv_len_arr=integers(LENGTHS), num_qo_heads=HEADS, num_kv_heads=KV_HEADS, head_dim_qk=DIM,
                     head_dim_vo=DIM, page_size=PAGE, causal=causal, q_data_type=BF16, kv_data_type=BF16, use_profiler=False, **{"sm_scale": None, "logits_soft_cap": None, **options})
        out, lse = wrapper.run(q=step.q, kv_cache=step.cache, out=None, lse=None, k_scale=None, v_scale=None, logits_soft_cap=0.0, profiler_buffer=None, kv_cache_sf=None)
        expected = step.truth(causal=causal, **of_truth(options))
        near(out, expected[0]), near(lse, expected[1], 1e-3)


def test_sinks(fi):
    step, sink = Step(), randn(HEADS, seed=9)
    wrapper = fi.BatchAttentionWithAttentionSinkWrapper(workspace(), "NHD", q_data_type=BF16, kv_data_type=BF16, head_dim_qk=DIM, head_dim_vo=DIM, window_left=5)
    wrapper.plan(integers(step.qo_indptr), *step.tables(), HEADS, KV_HEADS, DIM, PAGE, causal=True, window_left=5, q_data_type=BF16, kv_data_type=BF16)
    near(wrapper.run(step.q, step.cache, sink, 0.3), step.truth(causal=True, window_left=5, sink=sink, sm_scale=0.3)[0])
    for got, want in zip(wrapper.run_return_lse(step.q, step.cache, sink, 0.3), step.truth(causal=True, window_left=5, sink=sink, sm_scale=0.3)):
        near(got, want)
    with pytest.raises(ValueError, match="`args` are 0, expected 2: sinks and sm_scale"):
        wrapper.run(step.q, step.cache)
    with pytest.raises(ValueError, match="expected a window in both or in none"):
        wrapper.plan(integers(step.qo_indptr), *step.tables(), HEADS, KV_HEADS, DIM, PAGE, q_data_type=BF16)


def test_cascade(fi):
    """A page that all requests share, and what is their own: as one request each over both."""
    step = Step([3, 0, 5, 1])
    indptr, indices, last = step.tables()
    wrapper = fi.MultiLevelCascadeAttentionWrapper(num_levels=2, float_workspace_buffer=workspace(), kv_layout="NHD", use_cuda_graph=False, qo_indptr_buf_arr=None,
                                                   paged_kv_indptr_buf_arr=None, paged_kv_indices_buf_arr=None, paged_kv_last_page_len_buf_arr=None)
    keywords = {"pos_encoding_mode": "NONE", "use_fp16_qk_reduction": False, "sm_scale": 0.3, "window_left": -1, "logits_soft_cap": None, "rope_scale": None, "rope_theta": None,
                "q_data_type": BF16, "kv_data_type": BF16}
    wrapper.plan(qo_indptr_arr=[integers([0, 9]), integers(step.qo_indptr)], paged_kv_indptr_arr=[integers([0, 2]), indptr], paged_kv_indices_arr=[integers([7, 2]), indices],
                 paged_kv_last_page_len=[integers([3]), last], num_qo_heads=HEADS, num_kv_heads=KV_HEADS, head_dim=DIM, page_size=PAGE, causal=True, **keywords)
    shared = [step.values[[7, 2], i].reshape(-1, KV_HEADS, DIM)[:PAGE + 3] for i in (0, 1)]
    parts = [truth(q, *(torch.cat(t) for t in zip(shared, (k, v))), causal=True, sm_scale=0.3)[0] for q, k, v in map(step.request, range(4))]
    near(wrapper.run(q=step.q, paged_kv_cache=step.cache), torch.cat(parts))
    with pytest.raises(NotImplementedError, match="`window_left` is 4, expected -1"):
        wrapper.plan([None] * 2, [None] * 2, [None] * 2, [None] * 2, HEADS, KV_HEADS, DIM, PAGE, window_left=4)


def test_what_is_refused(fi):
    """No option is accepted and ignored: each that no op has says why."""
    step = Step()
    decode, prefill, ragged = (getattr(fi, name)(workspace()) for name in ("BatchDecodeWithPagedKVCacheWrapper", "BatchPrefillWithPagedKVCacheWrapper", "BatchPrefillWithRaggedKVCacheWrapper"))
    tables, sizes, some = step.tables(), (HEADS, KV_HEADS, DIM, PAGE), integers([0])
    decode.plan(*tables, *sizes, q_data_type=BF16)
    plan_decode = lambda **k: decode._plan_impl(*tables, *sizes, **k)  # noqa: E731
    plan_prefill = lambda **k: prefill.plan(integers(step.qo_indptr), *tables, *sizes, **k)  # noqa: E731
    plan_ragged = lambda **k: ragged.plan(integers(step.qo_indptr), integers(ends(LENGTHS)), *sizes[:3], **k)  # noqa: E731
    q, k = randn(HEADS, DIM, dtype=BF16), randn(9, KV_HEADS, DIM, dtype=BF16)
    single = lambda **o: fi.single_prefill_with_kv_cache(q[None], k, k, **o)  # noqa: E731
    xqa = lambda **o: fi.decode.xqa_batch_decode_with_kv_cache(step.q[:4], step.cache, workspace(), step.dense(), integers(LENGTHS), 14, **o)  # noqa: E731
    for call, keywords in (
        *((f, {"pos_encoding_mode": mode}) for f in (plan_decode, plan_prefill, plan_ragged, single) for mode in ("ROPE_LLAMA", "ALIBI")),
        *((f, {"rope_theta": 1e4}) for f in (plan_decode, plan_prefill, plan_ragged, single)), *((f, {"use_fp16_qk_reduction": True}) for f in (plan_prefill, plan_ragged, single)),
        (plan_decode, {"window_right": 3}), *((f, {name: some}) for f in (plan_prefill, plan_ragged) for name in ("prefix_len_ptr", "token_pos_in_items_ptr", "max_item_len_ptr")),
        (plan_prefill, {"token_pos_in_items_len": 5}), (plan_ragged, {"v_indptr": some}), (plan_ragged, {"o_indptr": some}), (plan_prefill, {"head_dim_vo": 64}),
        (single, {"backend": "trtllm-gen"}), (single, {"kv_cache_sf": (some, some)}),
        *((lambda **o: decode.run(step.q[:4], step.cache, **o), o) for o in ({"skip_softmax_threshold_scale_factor": 1.0}, {"kv_cache_sf": some}, {"lse": some})),
        *((lambda **o: prefill.run(step.q, step.cache, **o), o) for o in ({"use_fp16_softmax": True}, {"uses_spcompress": True}, {"kv_cache_sf": some})),
        (lambda **o: ragged.run(step.q, k, k, **o), {"o_scale": 2.0}), (xqa, {"mask": some}), (xqa, {"o_scale": 2.0}), (xqa, {"kv_cache_sf": some}),
        (lambda **o: fi.BatchDecodeWithPagedKVCacheWrapper(workspace(), **o), {"jit_args": ["a"]}), (lambda **o: fi.BatchPrefillWithPagedKVCacheWrapper(workspace(), **o), {"backend": "cudnn"}),
    ):
        with pytest.raises(NotImplementedError, match=rf"^flashinfer\.[\w.]+: `{next(iter(keywords))}` is .+: .*\w"):
            call(**keywords)
    for call, kind, text in (
        (lambda: decode.run(step.q[:4].half(), step.cache), ValueError, r"`q` is float16, expected bfloat16, as plan\(\) was told"),
        (lambda: decode.run(step.q[:3], step.cache), ValueError, r"`q` has 3 tokens, expected 4"),
        (lambda: decode.run(step.q[:4, :2], step.cache), ValueError, r"there are 2 query heads, 2 of keys and head_dim 32, expected 4, 2 and 32"),
        (lambda: decode.run(step.q[:4], tuple(c[:, :2] for c in step.cache)), ValueError, r"`paged_kv_cache` has pages of 2, expected 4"),
        (lambda: decode.plan(*tables, *sizes, q_data_typ=BF16), TypeError, r"unexpected keyword argument 'q_data_typ'"),
        (lambda: plan_decode(q_data_type="bf17"), TypeError, r"`q_data_type` is 'bf17' \(str\), expected a dtype of torch"),
        (lambda: single(sm_scale=0.0), ValueError, r"`sm_scale` times the scales of q and k is 0"),
        (lambda: single(custom_mask=torch.ones(8, dtype=torch.bool, device=places.TORCH)), ValueError, r"`custom_mask` has 8 elements, expected 9"),
        (lambda: single(custom_mask=torch.ones(9, dtype=torch.int32, device=places.TORCH)), TypeError, r"`custom_mask` is int32, expected bool"),
        (lambda: fi.BatchPrefillWithPagedKVCacheWrapper(workspace(), kv_layout="NDH"), ValueError, r"`kv_layout` is 'NDH'"),
    ):
        with pytest.raises(kind, match=text):
            call()
