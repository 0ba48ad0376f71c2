# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""FlashInfer's public names: which op is behind each, or why there is none. The table of docs/flashinfer.md is made from this one:

    python -m quern.compat.flashinfer

It imports nothing."""
from typing import NamedTuple


class There(NamedTuple):
    """A name that works: by which op, and the test that compares it with a computation of its own."""
    by: str
    test: str


class Raising(NamedTuple):
    """A name that programs import, and that raises NotImplementedError when it is called."""
    reason: str


class ForSglang(NamedTuple):
    """A name that is absent after install(), and that raises after install(engine="sglang"): SGLang imports it where it starts."""
    reason: str


class Absent(NamedTuple):
    """A name that is not there."""
    reason: str


def _of(module, what, names):
    return {f"{module}.{name}" if module else name: what for name in names.split()}


# Reasons that functions give too.
_FP4, _SM100 = "packed FP4 needs SM100, this is for sm_90a", "it needs SM100, this is for sm_90a"
_MXFP8 = "scales of MXFP8 need SM100, this is for sm_90a"
_JIT, _MOE, _COMM, _MLA = "kernels are compiled by quern's own JIT (docs/jit.md)", "quern has no MoE", "quern has no communication", "quern has no MLA"
_HOOKS = "variants are hooks of quern's ops (docs/own_ops.md)"


_ROWS, _ROPE, _PAGE, _SAMPLING = "test_flashinfer_rows.py", "test_flashinfer_rope.py", "test_flashinfer_page.py", "test_flashinfer_sampling.py"
_SELECT, _OTHER, _ATTENTION = "test_flashinfer_select.py", "test_flashinfer_names.py", "test_flashinfer_attention.py"
_PARTS, _PIPE, _TABLES = "test_flashinfer_parts.py", "test_flashinfer_pipe.py", "test_flashinfer_tables.py"

# Modules of FlashInfer that are here.
MODULES = ("norm", "activation", "rope", "page", "sampling", "topk", "quantization", "decode", "prefill", "attention", "cascade", "pod", "sparse", "xqa", "gemm",
           "grouped_mm", "concat_ops", "logits_processor", "autotuner", "autotune_cache", "utils", "testing")

NAMES = {
    **_of("norm", There("norm.rms_norm, norm.rms_norm_heads", f"{_ROWS}::test_norms"), "rmsnorm gemma_rmsnorm"),
    **_of("norm", There("norm.fused_add_rms_norm", f"{_ROWS}::test_fused_norms"), "fused_add_rmsnorm gemma_fused_add_rmsnorm"),
    **_of("norm", There("norm.layer_norm", f"{_ROWS}::test_layer_norm"), "layernorm"),
    "norm.rmsnorm_quant": There("norm.rms_norm", f"{_ROWS}::test_norms_to_fp8"),
    "norm.fused_add_rmsnorm_quant": There("norm.fused_add_rms_norm", f"{_ROWS}::test_norms_to_fp8"),
    "norm.fused_add_rmsnorm_fp8_block_quant": There("norm.fused_add_rms_norm, quant.per_token_group", f"{_ROWS}::test_fused_norm_to_blocks"),
    "norm.layernorm_quant": There("norm.layer_norm", f"{_ROWS}::test_norms_to_fp8"),
    **{f"activation.{name}": There(f"activation.{name}", f"{_ROWS}::test_activations") for name in ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul")},
    **_of("rope", There("rope.rope", f"{_ROPE}::test_theta"), "apply_rope apply_rope_inplace apply_rope_pos_ids apply_rope_pos_ids_inplace"),
    **_of("rope", There("rope.rope", f"{_ROPE}::test_llama31"), "apply_llama31_rope apply_llama31_rope_inplace apply_llama31_rope_pos_ids apply_llama31_rope_pos_ids_inplace"),
    **_of("rope", There("rope.rope", f"{_ROPE}::test_table"), "apply_rope_with_cos_sin_cache apply_rope_with_cos_sin_cache_inplace"),
    **_of("rope", There("rope.rope_quantise_fp8", f"{_ROPE}::test_quantised"), "rope_quantize_fp8 mla_rope_quantize_fp8"),
    "rope.rope_quantize_fp8_append_paged_kv_cache": There("rope.rope_quantise_fp8, kv_cache.append_paged, twice", f"{_ROPE}::test_quantised_append"),
    "page.append_paged_kv_cache": There("kv_cache.append_paged", f"{_PAGE}::test_append"),
    "page.append_paged_mla_kv_cache": There("kv_cache.append_paged, twice", f"{_PAGE}::test_append_of_mla"),
    "page.get_batch_indices_positions": There("kv_cache.batch_indices_positions", f"{_PAGE}::test_indices"),
    "page.get_seq_lens": There("torch", f"{_PAGE}::test_indices"),
    "sampling.softmax": There("sampling.softmax", f"{_SAMPLING}::test_softmax"),
    **_of("sampling", There("sampling.sample", f"{_SAMPLING}::test_distribution"), "sampling_from_logits sampling_from_probs min_p_sampling_from_probs top_p_sampling_from_probs "
          "top_k_sampling_from_probs top_k_top_p_sampling_from_probs top_k_top_p_sampling_from_logits"),
    **_of("sampling", There("sampling.renorm", f"{_SAMPLING}::test_renorm"), "top_p_renorm_probs top_k_renorm_probs top_p_renorm_prob top_k_renorm_prob"),
    "sampling.top_k_mask_logits": There("sampling.mask", f"{_SAMPLING}::test_mask"),
    "sampling.chain_speculative_sampling": There("sampling.verify_chain", f"{_SAMPLING}::test_chain"),
    **_of("logits_processor", There("sampling.softmax, sampling.mask, sampling.renorm, sampling.sample, torch", f"{_PIPE}::test_pipes"),
          "LogitsPipe Temperature Softmax TopK TopP MinP Sample TensorType"),
    **_of("logits_processor", There("Python", f"{_PIPE}::test_what_is_refused"), "CompileError LegalizationError TaggedTensor"),
    **_of("logits_processor", There("Python", f"{_PIPE}::test_own_steps"), "LogitsProcessor Op ParameterizedOp FusionRule"),
    "topk.top_k": There("topk.select", f"{_SELECT}::test_top_k"),
    "topk.TopKTieBreak": There("Python", f"{_SELECT}::test_top_k"),
    "topk.top_k_ragged_transform": There("topk.ragged_transform", f"{_SELECT}::test_ragged_transform"),
    "topk.top_k_page_table_transform": There("topk.page_table_transform", f"{_SELECT}::test_page_table_transform"),
    "quantization.packbits": There("quant.packbits", f"{_SELECT}::test_packbits"),
    "quantization.segment_packbits": There("quant.segment_packbits", f"{_SELECT}::test_packbits"),
    "quantization.per_token_group_quant_8bit": There("quant.per_token_group", f"{_SELECT}::test_groups_of_8_bits"),
    **_of("cascade", There("attention.merge_states", f"{_SELECT}::test_merges"), "merge_state merge_state_in_place merge_states"),
    "decode.single_decode_with_kv_cache": There("attention.paged, attention.ragged", f"{_ATTENTION}::test_single_decode"),
    **_of("decode", There("attention.paged", f"{_ATTENTION}::test_batch_decode"), "BatchDecodeWithPagedKVCacheWrapper fast_decode_plan"),
    "decode.CUDAGraphBatchDecodeWithPagedKVCacheWrapper": There("attention.paged", f"{_ATTENTION}::test_graph_mode"),
    **_of("decode", There("attention.paged", f"{_ATTENTION}::test_dense_tables"), "trtllm_batch_decode_with_kv_cache xqa_batch_decode_with_kv_cache"),
    **_of("prefill", There("attention.ragged", f"{_ATTENTION}::test_single_prefill"), "single_prefill_with_kv_cache single_prefill_with_kv_cache_return_lse"),
    "prefill.BatchPrefillWithPagedKVCacheWrapper": There("attention.paged", f"{_ATTENTION}::test_paged_prefill"),
    "prefill.BatchPrefillWithRaggedKVCacheWrapper": There("attention.ragged", f"{_ATTENTION}::test_ragged_prefill"),
    "prefill.trtllm_batch_context_with_kv_cache": There("attention.paged", f"{_ATTENTION}::test_dense_tables"),
    "attention.BatchAttention": There("attention.paged", f"{_ATTENTION}::test_batch_attention"),
    "attention.BatchAttentionWithAttentionSinkWrapper": There("attention.paged", f"{_ATTENTION}::test_sinks"),
    "cascade.MultiLevelCascadeAttentionWrapper": There("attention.paged, attention.merge_states", f"{_ATTENTION}::test_cascade"),
    **_of("cascade", There("attention.ragged, attention.paged, attention.merge_states", f"{_PARTS}::test_shared_prefix"),
          "BatchDecodeWithSharedPrefixPagedKVCacheWrapper BatchPrefillWithSharedPrefixPagedKVCacheWrapper"),
    "pod.PODWithPagedKVCacheWrapper": There("attention.ragged, attention.paged", f"{_PARTS}::test_pod"),
    "pod.BatchPODWithPagedKVCacheWrapper": There("attention.paged, twice", f"{_PARTS}::test_batch_pod"),
    "sparse.BlockSparseAttentionWrapper": There("attention.paged", f"{_PARTS}::test_block_sparse"),
    "sparse.VariableBlockSparseAttentionWrapper": There("attention.paged", f"{_PARTS}::test_variable_blocks"),
    "xqa.xqa": There("attention.paged", f"{_TABLES}::test_xqa"),
    "decode.cudnn_batch_decode_with_kv_cache": There("attention.paged", f"{_TABLES}::test_cudnn_decode"),
    "prefill.cudnn_batch_prefill_with_kv_cache": There("attention.paged, attention.ragged", f"{_TABLES}::test_cudnn_prefill"),
    "prefill.trtllm_ragged_attention_deepseek": There("attention.ragged", f"{_TABLES}::test_ragged_deepseek"),
    "prefill.trtllm_fmha_v2_prefill": There("attention.paged, attention.ragged", f"{_TABLES}::test_fmha_v2"),
    "gemm.fp8_blockscale_gemm_sm90": There("quant.per_token_group, gemm.scaled", f"{_SELECT}::test_block_scales"),
    **_of("gemm", There("gemm.dense", f"{_SELECT}::test_products"), "mm_bf16 tinygemm_bf16"),
    "gemm.bmm_bf16": There("gemm.dense, gemm.grouped_masked", f"{_SELECT}::test_batches"),
    "gemm.bmm_fp8": There("gemm.scaled", f"{_SELECT}::test_batches_of_fp8"),
    "gemm.SegmentGEMMWrapper": There("gemm.grouped_contiguous, torch", f"{_SELECT}::test_segments"),
    **_of("grouped_mm", There("gemm.grouped_contiguous", f"{_SELECT}::test_groups"), "grouped_mm_bf16 grouped_mm_fp8"),
    "concat_ops.concat_mla_k": There("torch", f"{_SELECT}::test_concat"),
    **_of("autotuner", There("Python", f"{_OTHER}::test_autotuner"), "autotune AutoTuner set_autotune_process_group get_autotune_process_group"),
    **_of("autotune_cache", There("Python", f"{_OTHER}::test_autotune_v2"), "autotune_v2 autotune_v2_reload MeasurementPolicy"),
    **_of("utils", There("Python", f"{_OTHER}::test_utils"), "PosEncodingMode MaskMode TensorLayout next_positive_power_of_2 get_compute_capability is_sm90a_supported is_sm100a_supported "
          "is_sm110a_supported is_sm120a_supported is_sm121a_supported"),
    "__version__": There("Python", f"{_OTHER}::test_modules_are_one"),
    "utils.FP4Tensor": Raising(_FP4),
    "page.nvfp4_quantize_append_paged_kv_cache_with_slot_mapping": Raising(_FP4),
    **_of("testing", There("torch", f"{_OTHER}::test_testing"), "set_seed bench_gpu_time"),
    # What SGLang imports where it starts.
    "nvfp4_block_scale_interleave": ForSglang(_FP4),
    "fp4_quantization.block_scale_interleave": ForSglang(_FP4),
    **_of("fused_moe", ForSglang(_MOE), "convert_to_block_layout trtllm_mxint4_block_scale_moe"),
    **_of("fused_moe.core", ForSglang(_MOE), "get_w2_permute_indices_with_cache _maybe_get_cached_w3_w1_permute_indices"),
    "comm.mnnvl.CommBackend": ForSglang(_COMM),
    "jit.core.logger": ForSglang(_JIT),
    # Modules, and names of the package.
    **_of("", Absent(_JIT), "jit aot compilation_context artifacts"),
    **_of("", Absent(_COMM), "comm get_dcp_spec_counter_bytes get_dcp_spec_workspace_size_bytes"),
    **_of("", Absent(_MOE), "fused_moe moe_ep cutlass_fused_moe reorder_rows_for_gated_act_gemm trtllm_bf16_moe trtllm_bf16_routed_moe trtllm_fp4_block_scale_moe "
          "trtllm_fp4_block_scale_routed_moe trtllm_fp8_block_scale_moe trtllm_fp8_block_scale_routed_moe trtllm_fp8_per_tensor_scale_moe trtllm_fp8_per_tensor_scale_routed_moe "
          "ActivationType RoutingMethodType is_gated_activation cute_dsl_fused_moe cute_dsl_fused_moe_bf16 cute_dsl_fused_moe_nvfp4 cute_dsl_fused_moe_mxfp8_mxfp4 CuteDslMoEWrapper "
          "CuteDslBf16MoEWrapper CuteDslMxfp8Mxfp4MoEWrapper b12x_fused_moe B12xMoEWrapper cudnn_frost_grouped_gemm1_swiglu cudnn_frost_grouped_gemm1_swiglu_workspace_size "
          "prims_ts_bf16_moe prims_ts_bf16_routed_moe prims_ts_fp4_block_scale_moe prims_ts_fp4_block_scale_routed_moe prims_ts_fp8_block_scale_moe "
          "prims_ts_fp8_block_scale_routed_moe prims_ts_fp8_per_tensor_scale_moe"),
    **_of("", Absent(_MLA), "mla BatchMLAPagedAttentionWrapper xqa_mla"),
    **_of("", Absent("quern has no linear attention or state space models"), "mamba gdn_prefill gdn_decode kda kda_decode chunk_gated_delta_rule chunk_gated_delta_rule2 "
          "chunk_gated_delta_product gdn_fused_decode_step gdn_fused_decode_step_supported RecurrentKDAPrefillWorkspace RecurrentKDAPrefillWrapper KDAPrefillPlanCache recurrent_kda "
          "fused_kda_decode packed_kda_decode packed_fused_kda_decode prepare_tf32_kda_prefill prepare_bf16_kda_prefill kda_prefill_supports_fp32_checkpoints"),
    **_of("", Absent("quern has no scores of sparse attention"), "compute_paged_mqa_logits_schedule fp4_paged_mqa_logits fp8_paged_mqa_logits precompile_paged_mqa_logits min_block_table_width "
          "padded_seq_len"),
    **_of("", Absent(_FP4), "fp4_quantization fp4_quantize nvfp4_quantize nvfp4_batched_quantize nvfp4_quantize_paged_kv_cache nvfp4_kv_quantize nvfp4_kv_dequantize nvfp4_kv_dequantize_paged "
          "mxfp4_quantize mxfp4_dequantize mxfp4_dequantize_host block_scale_interleave e2m1_and_ufp8sf_scale_to_float shuffle_matrix_a shuffle_matrix_sf_a "
          "scaled_fp4_grouped_quantize silu_and_mul_nvfp4_quantize silu_and_mul_scaled_nvfp4_experts_quantize get_fp4_quantization_module nvfp4_quantize_append_paged_kv_cache "
          "nvfp4_quantize_append_paged_mla_kv_cache nvfp4_attention_sm120 nvfp4_attention_sm120_fwd nvfp4_attention_sm120_quantize_qkv mm_fp4 mm_bf16_fp4 prepare_bf16_fp4_weights "
          "mm_nvfp4_svdquant nvfp4_quantize_smooth svdquant_linear grouped_mm_fp4 SfLayout rmsnorm_fp4quant add_rmsnorm_fp4quant NVFP44Over6Config NVFP44Over6ErrMode "
          "make_nvfp4_global_scale resolve_nvfp4_4over6"),
    **_of("", Absent(_MXFP8), "mxfp8_quantize mxfp8_grouped_quantize mxfp8_dequantize_host bmm_mxfp8 mm_mxfp8 grouped_mm_mxfp8 silu_and_mul_mxfp8_quantize "
          "silu_and_mul_mxfp8_quantize_backward"),
    **_of("", Absent(_SM100), "tgv_gemm_sm100 prepare_low_latency_gemm_weights msa_ops trtllm_sage_attention_quantize cake_batch_context_with_kv_cache cake_batch_decode_with_kv_cache "
          "cake_fmha_manifest CakeFmhaRequestOrderedDecodePlan plan_cake_fmha_request_ordered_paged_decode prepare_balanced_batch_decode_with_kv_cache sm110_gqa_decode "
          "prepare_sm110_gqa_decode launch_sm110_gqa_decode_prepared MiniMaxH3Mxfp8PreAttention MiniMaxH3Nvfp4PreAttention MiniMaxH3QkvQuantizePack CakeRMSNormFunction cake_rmsnorm "
          "cake_rmsnorm_train_backward cake_rmsnorm_train_backward_workspace_bytes cake_rmsnorm_train_forward"),
    **_of("", Absent("its default takes weights that are shuffled for SM100; bmm_fp8 and gemm.fp8_blockscale_gemm_sm90 are there"), "mm_fp8"),
    **_of("", Absent("it keeps exactly k of equal values; top_k_top_p_sampling_from_probs is there, and keeps them all"),
          "cake_top_k_top_p_sampling_from_probs"),
    **_of("", Absent("quern has no fused norm of that kind"), "fused_rmsnorm_silu fused_dit_residual_layernorm_scale_shift fused_dit_gate_residual_layernorm_scale_shift "
          "fused_dit_gate_residual_layernorm_gamma_beta"),
    **_of("", Absent("it is a norm and RoPE of a video's frames, rows and columns, which no op of quern has"), "fused_qk_rmsnorm_rope"),
    **_of("", Absent("quern has no hyper-connections"), "mhc"),
    **_of("", Absent("quern's recorded calls are another thing (docs/tracing.md)"), "fi_trace trace profiler"),
    **_of("", Absent("it is a kernel of another library"), "cudnn cute_dsl"),
    **_of("", Absent("quern's log and commands are its own"), "green_ctx api_logging"),
    **_of("", Absent("it is no name of a release"), "__git_version__ __git_commit__"),
    **_of("", Absent("its spans come with each run(), and quern's mask of them would be a bit for each query and key, made anew each time; a custom mask of plan() says the same"),
          "BatchPrefillWithCausalBidirectionalRangesWrapper"),
    "decode.single_decode_with_kv_cache_with_jit_module": Absent(_HOOKS),
    "prefill.single_prefill_with_kv_cache_with_jit_module": Absent(_HOOKS),
    **_of("decode", Absent(_MLA), "trtllm_batch_decode_with_kv_cache_mla trtllm_batch_decode_sparse_mla_dsv4"),
    "topk.top_k_varlen": Absent("quern has no top-k of compressed rows"),
}

# Names of FlashInfer's modules that `import flashinfer` has too.
TOP_LEVEL = frozenset("""
    gelu_and_mul gelu_tanh_and_mul silu_and_mul
    append_paged_kv_cache append_paged_mla_kv_cache get_batch_indices_positions get_seq_lens nvfp4_quantize_append_paged_kv_cache_with_slot_mapping
    apply_rope apply_rope_inplace apply_rope_pos_ids apply_rope_pos_ids_inplace apply_llama31_rope apply_llama31_rope_inplace apply_llama31_rope_pos_ids
    apply_llama31_rope_pos_ids_inplace apply_rope_with_cos_sin_cache apply_rope_with_cos_sin_cache_inplace
    rmsnorm rmsnorm_quant fused_add_rmsnorm fused_add_rmsnorm_quant fused_add_rmsnorm_fp8_block_quant gemma_rmsnorm gemma_fused_add_rmsnorm layernorm layernorm_quant
    softmax sampling_from_logits sampling_from_probs top_p_sampling_from_probs top_k_sampling_from_probs min_p_sampling_from_probs top_k_top_p_sampling_from_logits
    top_k_top_p_sampling_from_probs top_p_renorm_probs top_k_renorm_probs top_k_mask_logits chain_speculative_sampling
    top_k top_k_page_table_transform top_k_ragged_transform TopKTieBreak
    packbits segment_packbits
    merge_state merge_state_in_place merge_states MultiLevelCascadeAttentionWrapper
    single_decode_with_kv_cache BatchDecodeWithPagedKVCacheWrapper CUDAGraphBatchDecodeWithPagedKVCacheWrapper fast_decode_plan
    single_prefill_with_kv_cache single_prefill_with_kv_cache_return_lse BatchPrefillWithPagedKVCacheWrapper BatchPrefillWithRaggedKVCacheWrapper
    BatchAttention BatchAttentionWithAttentionSinkWrapper
    BatchDecodeWithSharedPrefixPagedKVCacheWrapper BatchPrefillWithSharedPrefixPagedKVCacheWrapper PODWithPagedKVCacheWrapper BatchPODWithPagedKVCacheWrapper
    BlockSparseAttentionWrapper VariableBlockSparseAttentionWrapper xqa cudnn_batch_decode_with_kv_cache trtllm_fmha_v2_prefill
    bmm_bf16 bmm_fp8 SegmentGEMMWrapper grouped_mm_bf16 grouped_mm_fp8 autotune autotune_v2 autotune_v2_reload MeasurementPolicy
    mm_bf16 next_positive_power_of_2
""".split())


def reason_of(module, name):
    """Why a module has not that name; empty where FlashInfer has none either, or nothing is known."""
    for full in (f"{module}.{name}" if module else name, name, module.partition(".")[0]):
        if isinstance(NAMES.get(full), (Absent, ForSglang)):
            return NAMES[full].reason
    return next((what.reason for full, what in NAMES.items() if not module and isinstance(what, Absent) and full.rpartition(".")[2] == name), "")


def absent(module, name):
    """Raises the AttributeError of a name that a module has not."""
    why = reason_of(module.removeprefix("quern.compat.").removeprefix("flashinfer").removeprefix("."), name)
    raise AttributeError(f"module {module!r} has no attribute {name!r}{': ' + why if why else ''}")


def counts():
    """How many names work, raise and are absent."""
    return {kind: sum(isinstance(what, kind) for what in NAMES.values()) for kind in (There, Raising, ForSglang, Absent)}


def tables():
    """The tables of docs/flashinfer.md: names that share an answer share a row."""
    n = counts()
    text = f'{n[There]} names work, {n[Raising]} raise, {n[ForSglang]} are of `install(engine="sglang")`, {n[Absent]} are absent.\n\n'
    for kind, header in ((There, ("names", "by", "tested by")), (Raising, ("there, and raising NotImplementedError", "reason")),
                         (ForSglang, ('the same after `install(engine="sglang")`, else absent', "reason")), (Absent, ("absent", "reason"))):
        together = {}
        for full, what in NAMES.items():
            if isinstance(what, kind):
                module, _, name = full.rpartition(".")
                together.setdefault((module, what), []).append(f"`{name}`")
        text += "| " + " | ".join(header) + " |\n" + "|" + "---|" * len(header) + "\n"
        for (module, what), names in together.items():
            text += "| " + " | ".join([(f"{module}: " if module else "") + ", ".join(names), *(f"`{w}`" if i and kind is There else w for i, w in enumerate(what))]) + " |\n"
        text += "\n"
    return text.rstrip() + "\n"
