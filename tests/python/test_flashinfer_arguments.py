# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Wrong arguments of quern.compat.flashinfer: each parameter refuses an object that nobody knows, by its name, also those that change nothing."""
import enum
import functools
import inspect
import re

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import randn  # noqa: E402

pytestmark = pytest.mark.anywhere
BF16 = torch.bfloat16


class Thing:
    """An object of which nobody knows anything."""


def integers(*values):
    return torch.tensor(values, dtype=torch.int32, device=places.TORCH)


def entered(context):
    """A call that also enters what it gives."""
    @functools.wraps(context)
    def enter(*arguments, **keywords):
        with context(*arguments, **keywords):
            pass

    return enter


def calls(fi):
    """{name: (function, arguments of a right call)}; all other parameters have their defaults."""
    x, row = randn(3, 64, dtype=BF16), randn(64, dtype=BF16)
    heads, probs, cache = randn(3, 2, 32, dtype=BF16), torch.softmax(randn(3, 20), 1), (randn(4, 4, 2, 32, dtype=BF16), randn(4, 4, 2, 32, seed=2, dtype=BF16))
    out, table, workspace = torch.empty(3, 64, dtype=torch.float8_e4m3fn, device=places.TORCH), randn(9, 32), torch.empty(4096, dtype=torch.uint8, device=places.TORCH)
    pages = (integers(0, 1, 2, 3), integers(2, 0, 3), integers(4, 1, 3))
    decode, prefill, ragged = (getattr(fi, f"Batch{name}KVCacheWrapper")(workspace) for name in ("DecodeWithPaged", "PrefillWithPaged", "PrefillWithRagged"))
    sizes = {"num_qo_heads": 2, "num_kv_heads": 2, "page_size": 4, "q_data_type": BF16}
    planned = {"qo_indptr": integers(0, 1, 2, 3), **dict(zip(("paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len"), pages)), **sizes, "head_dim_qk": 32}
    decode.plan(*pages, 2, 2, 32, 4, q_data_type=BF16), prefill.plan(**planned)
    ragged_plan = {"qo_indptr": integers(0, 1, 2, 3), "kv_indptr": integers(0, 1, 2, 3), "num_qo_heads": 2, "num_kv_heads": 2, "head_dim_qk": 32, "q_data_type": BF16}
    ragged.plan(**ragged_plan)
    dense = {"query": heads, "kv_cache": cache, "workspace_buffer": workspace, "block_tables": integers(2, 0, 3)[:, None], "seq_lens": integers(4, 1, 3), "kv_layout": "NHD"}
    appended = {"append_key": heads, "append_value": heads, "batch_indices": integers(0, 1, 2), "positions": integers(3, 0, 2), "paged_kv_cache": cache, "kv_indices": pages[1],
                "kv_indptr": pages[0], "kv_last_page_len": pages[2]}
    of = lambda name, **arguments: (getattr(fi, name), arguments)  # noqa: E731
    sampled = {"top_k_sampling_from_probs": {"top_k": 3}, "top_p_sampling_from_probs": {"top_p": 0.5}, "min_p_sampling_from_probs": {"min_p": 0.1}, "sampling_from_probs": {},
               "top_k_top_p_sampling_from_probs": {"top_k": 3, "top_p": 0.5}, "top_k_renorm_probs": {"top_k": 3}, "top_p_renorm_probs": {"top_p": 0.5}}
    return [
        of("rmsnorm", input=x, weight=row), of("gemma_rmsnorm", input=x, weight=row), of("fused_add_rmsnorm", input=x, residual=x.clone(), weight=row),
        of("gemma_fused_add_rmsnorm", input=x, residual=x.clone(), weight=row), of("rmsnorm_quant", out=out, input=x, weight=row, scale=1.0), of("layernorm", input=x, gemma=row.float(), beta=row.float()),
        of("fused_add_rmsnorm_quant", out=out, input=x, residual=x.clone(), weight=row, scale=1.0), of("layernorm_quant", out=out, input=x, gemma=row.float(), beta=row.float(), scale=1.0),
        of("fused_add_rmsnorm_fp8_block_quant", out=randn(3, 128).to(torch.float8_e4m3fn), block_scale=torch.empty(1, 4, device=places.TORCH), normed_out=randn(3, 128, dtype=BF16),
           input=randn(3, 128, dtype=BF16), residual=randn(3, 128, dtype=BF16), weight=randn(128, dtype=BF16)),
        of("silu_and_mul", input=x), of("gelu_and_mul", input=x), of("gelu_tanh_and_mul", input=x),
        of("apply_rope", q=heads, k=heads.clone(), indptr=integers(0, 3), offsets=integers(0)), of("apply_rope_pos_ids", q=heads, k=heads.clone(), pos_ids=integers(0, 1, 2)),
        of("apply_llama31_rope", q=heads, k=heads.clone(), indptr=integers(0, 3), offsets=integers(0)), of("apply_llama31_rope_pos_ids_inplace", q=heads, k=heads.clone(), pos_ids=integers(0, 1, 2)),
        of("apply_rope_with_cos_sin_cache", positions=integers(0, 1, 2), query=x, key=x.clone(), head_size=32, cos_sin_cache=table),
        (fi.rope.rope_quantize_fp8, dict(q_rope=heads, k_rope=heads, q_nope=heads, k_nope=heads, cos_sin_cache=table, pos_ids=integers(0, 1, 2))),
        of("append_paged_kv_cache", **appended), of("get_batch_indices_positions", append_indptr=integers(0, 2), seq_lens=integers(5), nnz=2),
        of("get_seq_lens", kv_indptr=pages[0], kv_last_page_len=pages[2], page_size=4),
        *(of(name, probs=probs, **more) for name, more in sampled.items()), of("softmax", logits=probs), of("sampling_from_logits", logits=probs), of("top_k_mask_logits", logits=probs, top_k=3),
        of("top_k_top_p_sampling_from_logits", logits=probs, top_k=3, top_p=0.5), of("chain_speculative_sampling", draft_probs=probs[None, :2], draft_token_ids=integers(1, 2)[None], target_probs=probs[None]),
        of("top_k", input=probs, k=3), of("top_k_ragged_transform", input=probs, offsets=integers(0, 1, 2), lengths=integers(9, 8, 7), k=3),
        of("top_k_page_table_transform", input=probs, src_page_table=integers(*range(60)).view(3, 20), lengths=integers(9, 8, 7), k=3), of("packbits", x=probs[0] > 0.1),
        of("segment_packbits", x=probs[0] > 0.1, indptr=integers(0, 20)), of("merge_state", v_a=heads, s_a=randn(3, 2), v_b=heads, s_b=randn(3, 2)),
        of("merge_state_in_place", v=heads.clone(), s=randn(3, 2), v_other=heads, s_other=randn(3, 2)), of("merge_states", v=heads[:, None], s=randn(3, 1, 2)),
        of("mm_bf16", a=x, b=x.mT), (fi.gemm.tinygemm_bf16, dict(input=x, weight=x, out=torch.empty(3, 3, dtype=BF16, device=places.TORCH))),
        of("single_decode_with_kv_cache", q=heads[0], k=heads, v=heads), of("single_prefill_with_kv_cache", q=heads, k=heads, v=heads),
        (decode._plan_impl, dict(zip(("indptr", "indices", "last_page_len"), pages)) | sizes | {"head_dim": 32}), (decode.run, dict(q=heads, paged_kv_cache=cache)),
        (decode.workspace_size, dict(zip(("indptr", "indices", "last_page_len"), pages)) | sizes | {"head_dim": 32}), (prefill.plan, planned), (prefill.workspace_size, planned),
        (prefill.run, dict(q=heads, paged_kv_cache=cache)), (ragged.plan, ragged_plan), (ragged.run, dict(q=heads, k=heads, v=heads)),
        (fi.decode.xqa_batch_decode_with_kv_cache, dict(dense, max_seq_len=4)), (fi.decode.trtllm_batch_decode_with_kv_cache, dict(dense, max_seq_len=4)),
        (fi.prefill.trtllm_batch_context_with_kv_cache, dict(dense, max_q_len=1, max_kv_len=4, bmm1_scale=0.3, bmm2_scale=1.0, batch_size=3, cum_seq_lens_q=integers(0, 1, 2, 3),
                                                             cum_seq_lens_kv=integers(0, 4, 5, 8))),
    ]


def more_calls(fi):
    """The same of what has parts, blocks, other libraries' names and batches of products."""
    x, heads, other = randn(3, 64, dtype=BF16), randn(3, 2, 32, dtype=BF16), randn(3, 2, 32, seed=2, dtype=BF16)
    cache, workspace = (randn(4, 4, 2, 32, dtype=BF16), randn(4, 4, 2, 32, seed=2, dtype=BF16)), torch.empty(4096, dtype=torch.uint8, device=places.TORCH)
    hnd = tuple(t.transpose(1, 2) for t in cache)
    pages, ends, lengths = (integers(0, 1, 2, 3), integers(2, 0, 3), integers(4, 1, 3)), integers(0, 1, 2, 3), integers(4, 1, 3)
    sizes = {"num_qo_heads": 2, "num_kv_heads": 2, "head_dim": 32}
    pod, batch_pod, decode, prefill, blocks, variable = (getattr(fi, name)(workspace) for name in (
        "PODWithPagedKVCacheWrapper", "BatchPODWithPagedKVCacheWrapper", "BatchDecodeWithSharedPrefixPagedKVCacheWrapper", "BatchPrefillWithSharedPrefixPagedKVCacheWrapper",
        "BlockSparseAttentionWrapper", "VariableBlockSparseAttentionWrapper"))
    table = dict(zip(("indptr", "indices", "last_page_len"), pages)) | sizes | {"page_size": 4, "q_data_type": BF16}
    both = {f"{name}_{part}": t for part in "pd" for name, t in zip(("qo_indptr", "kv_indptr", "kv_indices", "last_page_len"), (ends, *pages))} | sizes | {"page_size": 4, "q_data_type": BF16}
    unique = dict(zip(("unique_kv_indptr", "unique_kv_indices", "unique_kv_last_page_len"), pages)) | sizes | {"page_size": 4, "data_type": BF16}
    own = {"qo_indptr": ends, **dict(zip(("paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len"), pages))} | sizes | {"page_size": 4}
    of_blocks = {"indptr": integers(0, 1, 2), "indices": integers(1, 0), "M": 4, "N": 8, "R": 2, "C": 4, **sizes, "q_data_type": BF16, "o_data_type": BF16}
    sized = {"block_mask_map": integers(*[1] * 8).bool().view(2, 2, 2), "block_row_sz": integers(1, 3, 2, 2).view(2, 2), "block_col_sz": integers(2, 4, 4, 2).view(2, 2), **sizes,
             "q_data_type": BF16}
    pod.plan(**table), batch_pod.plan(**both), decode.begin_forward(**unique), prefill.begin_forward(**own), blocks.plan(**of_blocks), variable.plan(**sized)
    blocked = {name: randn(n, 2, 32, dtype=BF16) for name, n in (("q", 4), ("k", 8), ("v", 8))}
    e4m3, one = [randn(1, 3, 32).to(torch.float8_e4m3fn) for _ in range(2)], torch.ones(1, device=places.TORCH)
    segments = fi.SegmentGEMMWrapper(workspace)
    dense = {"workspace_buffer": workspace, "seq_lens": lengths, "max_q_len": 1, "max_kv_len": 4, "bmm1_scale": 0.3, "bmm2_scale": 1.0, "batch_size": 3, "cum_seq_lens_q": ends,
             "cum_seq_lens_kv": ends}
    cudnn = {"q": heads, "k_cache": hnd[0], "v_cache": hnd[1], "scale": 0.3, "workspace_buffer": workspace, "max_sequence_kv": 4, "actual_seq_lens_kv": lengths,
             "block_tables": integers(2, 0, 3)[:, None]}
    fp8 = tuple(torch.zeros(4, 4, 2, 32, dtype=torch.float8_e4m3fn, device=places.TORCH) for _ in range(2))
    lp = fi.logits_processor
    return [
        (fi.PODWithPagedKVCacheWrapper, {"float_workspace_buffer": workspace}), (pod.plan, table), (pod.run, dict(q_p=heads, k_p=heads, v_p=other, q_d=heads, paged_kv_cache_d=cache)),
        (fi.BatchPODWithPagedKVCacheWrapper, {"float_workspace_buffer": workspace}), (batch_pod.plan, both),
        (batch_pod.run, dict(q_p=heads, paged_kv_cache_p=cache, q_d=heads, paged_kv_cache_d=cache)), (decode.begin_forward, unique),
        (decode.forward, dict(q=heads, k_shared=heads, v_shared=other, unique_kv_cache=cache)), (prefill.begin_forward, own),
        (prefill.forward, dict(q=heads, k_shared=heads, v_shared=other, unique_kv_cache=cache)), (fi.BlockSparseAttentionWrapper, {"float_workspace_buffer": workspace}), (blocks.plan, of_blocks),
        (blocks.run, blocked), (fi.VariableBlockSparseAttentionWrapper, {"float_workspace_buffer": workspace}), (variable.plan, sized),
        (variable.run, dict(q=randn(2, 4, 32, dtype=BF16), k=randn(2, 6, 32, dtype=BF16), v=randn(2, 6, 32, dtype=BF16))),
        (fi.xqa, dict(q=heads[:, None], k_cache=cache[0], v_cache=cache[1], page_table=integers(2, 0, 3)[:, None], seq_lens=lengths, output=torch.empty_like(heads[:, None]),
                      workspace_buffer=None, semaphores=None, num_kv_heads=2, page_size=4)),
        (fi.cudnn_batch_decode_with_kv_cache, cudnn),
        (fi.prefill.cudnn_batch_prefill_with_kv_cache, dict(cudnn, max_token_per_sequence=1, actual_seq_lens_q=integers(1, 1, 1), causal=True, return_lse=False)),
        (fi.prefill.trtllm_ragged_attention_deepseek, dict(dense, query=heads, key=heads, value=other, o_sf_scale=1.0, window_left=-1, enable_pdl=None, is_causal=True, return_lse=False)),
        (fi.trtllm_fmha_v2_prefill, dict(dense, qkv=(heads, heads, other), input_layout="SEPARATE_Q_K_V")),
        (fi.bmm_bf16, dict(A=x[None], B=x.mT[None])), (fi.bmm_fp8, dict(A=e4m3[0], B=e4m3[1].mT, A_scale=one, B_scale=one, dtype=BF16)),
        (fi.SegmentGEMMWrapper, {"float_workspace_buffer": workspace}), (segments.run, dict(x=x, weights=x[None], batch_size=1, weight_column_major=True, seg_lens=integers(3))),
        (fi.grouped_mm_bf16, dict(a=x, b=x[None], m_indptr=integers(0, 3))), (fi.grouped_mm_fp8, dict(a=e4m3[0][0], b=e4m3[1], m_indptr=integers(0, 3))),
        (fi.concat_ops.concat_mla_k, dict(k=torch.empty(3, 2, 48, dtype=BF16, device=places.TORCH), k_nope=heads, k_rope=heads[:, :1, :16])),
        (fi.quantization.per_token_group_quant_8bit, dict(x=x, group_size=32)),
        (fi.rope.rope_quantize_fp8_append_paged_kv_cache, dict(q_rope=heads, k_rope=heads, q_nope=None, k_nope=None, v=other, cos_sin_cache=randn(9, 32), pos_ids=integers(0, 1, 2),
                                                               paged_kv_cache=fp8, kv_indices=pages[1], kv_indptr=pages[0], batch_indices=integers(0, 1, 2), positions=integers(3, 0, 2), page_size=4)),
        (blocks.forward, blocked), (variable.forward, dict(q=randn(2, 4, 32, dtype=BF16), k=randn(2, 6, 32, dtype=BF16), v=randn(2, 6, 32, dtype=BF16))),
        (pod.prewarm_paged_kv_stride_variant, {}), (entered(fi.autotune), {}), (entered(fi.autotune_v2), {}), (fi.MeasurementPolicy, {}), (fi.autotuner.AutoTuner, {}), (fi.autotuner.set_autotune_process_group, {"group": None}),
        (lp.LogitsPipe([lp.Softmax()]).compile, {}), (lp.TaggedTensor.probs, {"t": x}),
        (lp.LogitsPipe, {"processors": [lp.Softmax()]}), (lp.Softmax, {}), (lp.TopK, {}), (lp.Sample, {}), (lp.TaggedTensor, {"data": x, "type": lp.TensorType.LOGITS}),
    ]


def other_calls(fi):
    """Constructors, old forms, tables of several levels, and what is left."""
    x, heads, workspace = randn(3, 64, dtype=BF16), randn(3, 2, 32, dtype=BF16), torch.empty(4096, dtype=torch.uint8, device=places.TORCH)
    cache, pages, ends = (randn(4, 4, 2, 32, dtype=BF16), randn(4, 4, 2, 32, seed=2, dtype=BF16)), (integers(0, 1, 2, 3), integers(2, 0, 3), integers(4, 1, 3)), integers(0, 1, 2, 3)
    table, lengths = randn(9, 32), integers(4, 1, 3)
    pos, buffers = {"q": heads, "k": heads.clone(), "pos_ids": integers(0, 1, 2)}, {"float_workspace_buffer": workspace}
    by_offset = {"q": heads, "k": heads.clone(), "indptr": integers(0, 3), "offsets": integers(0)}
    by_table = {"positions": integers(0, 1, 2), "query": x, "key": x.clone(), "head_size": 32, "cos_sin_cache": table}
    decode, prefill, ragged, both = (getattr(fi, f"Batch{name}Wrapper")(workspace) for name in ("DecodeWithPagedKVCache", "PrefillWithPagedKVCache", "PrefillWithRaggedKVCache", "PODWithPagedKVCache"))
    sizes = {"num_qo_heads": 2, "num_kv_heads": 2, "page_size": 4, "q_data_type": BF16}
    of_decode = dict(zip(("indptr", "indices", "last_page_len"), pages)) | sizes | {"head_dim": 32}
    of_prefill = {"qo_indptr": ends, **dict(zip(("paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len"), pages)), **sizes, "head_dim_qk": 32}
    attention, cascade = fi.BatchAttention(device=places.TORCH), fi.MultiLevelCascadeAttentionWrapper(1, workspace)
    of_attention = {"qo_indptr": ends, "kv_indptr": pages[0], "kv_indices": pages[1], "kv_len_arr": lengths, "num_qo_heads": 2, "num_kv_heads": 2, "head_dim_qk": 32, "head_dim_vo": 32, "page_size": 4}
    of_levels = {"qo_indptr_arr": [ends], **{name: [t] for name, t in zip(("paged_kv_indptr_arr", "paged_kv_indices_arr", "paged_kv_last_page_len"), pages)}, **sizes, "head_dim": 32}
    decode.plan(**of_decode), prefill.plan(**of_prefill), ragged.plan(ends, ends, 2, 2, 32, q_data_type=BF16), attention.plan(**of_attention), cascade.plan(**of_levels)
    e4m3, graph = x.to(torch.float8_e4m3fn), {"indptr_buffer": pages[0], "indices_buffer": pages[1], "last_page_len_buffer": pages[2]}
    wide = torch.ones(1, 128, device=places.TORCH).to(torch.float8_e4m3fn)
    resets = {"float_workspace_buffer": workspace, "int_workspace_buffer": workspace}
    cascade_resets = {"float_workspace_buffer": workspace, "int_workspace_buffers": [workspace]}
    return [
        *((getattr(fi, name), by_offset) for name in ("apply_rope_inplace", "apply_llama31_rope_inplace")), (fi.apply_rope_pos_ids_inplace, pos), (fi.apply_llama31_rope_pos_ids, pos),
        (fi.apply_rope_with_cos_sin_cache_inplace, by_table),
        (fi.rope.mla_rope_quantize_fp8, dict(q_rope=heads, k_rope=heads[:, 0], q_nope=heads, k_nope=heads[:, 0], cos_sin_cache=table, pos_ids=integers(0, 1, 2))),
        (fi.append_paged_mla_kv_cache, dict(append_ckv=x, append_kpe=x[:, :32], batch_indices=integers(0, 1, 2), positions=integers(3, 0, 2), ckv_cache=randn(4, 4, 64, dtype=BF16),
                                            kpe_cache=randn(4, 4, 32, dtype=BF16), kv_indices=pages[1], kv_indptr=pages[0], kv_last_page_len=pages[2])),
        *((getattr(fi, f"Batch{name}KVCacheWrapper"), buffers) for name in ("DecodeWithPaged", "PrefillWithPaged", "PrefillWithRagged")),
        (fi.CUDAGraphBatchDecodeWithPagedKVCacheWrapper, {"workspace_buffer": workspace, **graph}), (fi.BatchAttention, {"device": places.TORCH}),
        (fi.BatchAttentionWithAttentionSinkWrapper, buffers), *((getattr(fi, f"Batch{name}WithSharedPrefixPagedKVCacheWrapper"), buffers) for name in ("Decode", "Prefill")), (fi.MultiLevelCascadeAttentionWrapper, {"num_levels": 1, **buffers}),
        (decode.forward, dict(q=heads, paged_kv_cache=cache)), (prefill.forward, dict(q=heads, paged_kv_cache=cache)), (ragged.forward, dict(q=heads, k=heads, v=heads)),
        (fi.fast_decode_plan, {"self": decode, **of_decode}), (attention.plan, of_attention), (attention.run, dict(q=heads, kv_cache=cache)), (cascade.plan, of_levels),
        (cascade.run, dict(q=heads, paged_kv_cache=cache)), (cascade.prewarm_paged_kv_stride_variant, {}), (cascade.reset_workspace_buffer, cascade_resets),
        *((wrapper.reset_workspace_buffer, resets) for wrapper in (decode, both, fi.SegmentGEMMWrapper(workspace), fi.BatchDecodeWithSharedPrefixPagedKVCacheWrapper(workspace))),
        (fi.gemm.fp8_blockscale_gemm_sm90, dict(input=wide, weight=wide, input_scale=torch.ones(1, 1, device=places.TORCH), weight_scale=torch.ones(1, 1, device=places.TORCH))),
        (fi.testing.set_seed, {"random_seed": 3}), (fi.testing.bench_gpu_time, dict(fn=lambda: e4m3, dry_run_iters=1, repeat_iters=1)),
        (fi.next_positive_power_of_2, {"x": 3}),
    ]


@pytest.mark.parametrize("of, least", [(calls, 400), (more_calls, 250), (other_calls, 250)])
def test_every_parameter_refuses_a_thing(fi, of, least):
    taken, refused = [], 0
    for function, arguments in of(fi):
        function(**arguments)
        for p in inspect.signature(function).parameters.values():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                continue
            try:
                function(**{**arguments, p.name: Thing()})
            except (TypeError, NotImplementedError) as e:
                if not re.match(rf"flashinfer\.[\w.]+: `{p.name}(\[\d\])?` is a \S*Thing", str(e)):
                    taken.append(f"{function.__name__}({p.name}): {e}")
                refused += 1
            except Exception as e:
                taken.append(f"{function.__name__}({p.name}): {type(e).__name__} {e}")
            else:
                taken.append(f"{function.__name__}({p.name})")
    assert not taken, "\n".join(taken)
    assert refused > least


# Abstract, or another form of one that is called above.
ELSEWHERE = {"LogitsProcessor", "LogitsProcessor.legalize", "Op", "FusionRule", "TaggedTensor.size", "ParameterizedOp.param", "AutoTuner.save_configs", "AutoTuner.load_configs",
             "BatchDecodeWithPagedKVCacheWrapper.plan", "BatchPrefillWithSharedPrefixPagedKVCacheWrapper.prewarm_paged_kv_stride_variant", "get_compute_capability", "is_sm90a_supported",
             "is_sm100a_supported", "CompileError", "LegalizationError", "ParameterizedOp", "BatchAttentionWithAttentionSinkWrapper.plan", "BatchAttentionWithAttentionSinkWrapper.run",
             "Temperature", "TopP", "MinP"}


def test_every_function_is_among_them(fi):
    """Of what works, each function, each constructor and each method that has parameters is in the lists above."""
    from quern.compat.flashinfer import _names

    name_of = lambda f: getattr(f, "__qualname__", "")  # noqa: E731
    called = {name_of(function) for of in (calls, more_calls, other_calls) for function, _ in of(fi)} | ELSEWHERE
    missing = []
    for full, what in _names.NAMES.items():
        value = getattr(getattr(fi, full.partition(".")[0], None), full.partition(".")[2], None) if isinstance(what, _names.There) else None
        if full == "xqa.xqa" or value is None or (inspect.isclass(value) and issubclass(value, enum.Enum)):
            continue
        own = [f for name, f in vars(value).items() if inspect.isfunction(f) and not name.startswith("_") and len(inspect.signature(f).parameters) > 1] if inspect.isclass(value) else []
        takes = inspect.isclass(value) or len(inspect.signature(value).parameters) > 0
        missing += [name_of(f) for f in [value] * (takes and not isinstance(value, functools.partial)) + own if name_of(f) not in called]
    assert not missing, ", ".join(missing)


def test_the_ops_of_the_table(fi, monkeypatch):
    """A right call of a name calls no op that its row does not have; of a row of one op, that one. Of a class, what its calls do together."""
    import quern
    from quern.compat.flashinfer import _names

    seen, by = [], {}
    for op in quern.ops():
        family, name = op.id.split(".")
        function = getattr(getattr(quern, family), name)

        @functools.wraps(function)
        def recorded(*arguments, function=function, op=op.id, **keywords):
            seen.append(op)
            return function(*arguments, **keywords)

        monkeypatch.setattr(getattr(quern, family), name, recorded)
    for of in (calls, more_calls, other_calls):
        for function, arguments in of(fi):
            seen.clear()
            function(**arguments)
            by.setdefault(getattr(function, "__qualname__", "").partition(".")[0], set()).update(seen)
    rows = {full.rpartition(".")[2]: set(re.findall(r"\b[a-z_]+\.[a-z_0-9]+\b", what.by)) for full, what in _names.NAMES.items() if isinstance(what, _names.There)}
    wrong = {name: (ops, rows[name]) for name, ops in by.items() if name in rows and (ops - rows[name] or (len(rows[name]) == 1 and ops != rows[name] and not name[0].isupper() and name != "fast_decode_plan"))}
    assert not wrong
    assert sum(by.get(name) == ops != set() for name, ops in rows.items()) > 60
