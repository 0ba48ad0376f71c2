# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Parameters and defaults of FlashInfer's functions, as release 0.6.18 has them; of those that 0.7.2 adds MORE has the names. A class stands for its constructor."""

SIGNATURES = {
    "merge_state": "v_a, s_a, v_b, s_b",
    "merge_state_in_place": "v, s, v_other, s_other, mask=None",
    "merge_states": "v, s",
    "append_paged_kv_cache": "append_key, append_value, batch_indices, positions, paged_kv_cache, kv_indices, kv_indptr, kv_last_page_len, kv_layout='NHD'",
    "append_paged_mla_kv_cache": "append_ckv, append_kpe, batch_indices, positions, ckv_cache, kpe_cache, kv_indices, kv_indptr, kv_last_page_len",
    "get_batch_indices_positions": "append_indptr, seq_lens, nnz, batch_indices=None, positions=None",
    "get_seq_lens": "kv_indptr, kv_last_page_len, page_size",
    "apply_rope": "q, k, indptr, offsets, rotary_dim=None, interleave=False, rope_scale=1, rope_theta=10000.0",
    "apply_rope_inplace": "q, k, indptr, offsets, rotary_dim=None, interleave=False, rope_scale=1, rope_theta=10000.0",
    "apply_rope_pos_ids": "q, k, pos_ids, rotary_dim=None, interleave=False, rope_scale=1, rope_theta=10000.0",
    "apply_rope_pos_ids_inplace": "q, k, pos_ids, rotary_dim=None, interleave=False, rope_scale=1, rope_theta=10000.0",
    "apply_llama31_rope": (
        "q, k, indptr, offsets, rotary_dim=None, interleave=False, rope_scale=8, rope_theta=500000.0, low_freq_factor=1, high_freq_factor=4, "
        "old_context_len=8192"
    ),
    "apply_llama31_rope_inplace": (
        "q, k, indptr, offsets, rotary_dim=None, interleave=False, rope_scale=8, rope_theta=500000.0, low_freq_factor=1, high_freq_factor=4, "
        "old_context_len=8192"
    ),
    "apply_llama31_rope_pos_ids": (
        "q, k, pos_ids, rotary_dim=None, interleave=False, rope_scale=8, rope_theta=500000.0, low_freq_factor=1, high_freq_factor=4, old_context_len=8192"
    ),
    "apply_llama31_rope_pos_ids_inplace": (
        "q, k, pos_ids, rotary_dim=None, interleave=False, rope_scale=8, rope_theta=500000.0, low_freq_factor=1, high_freq_factor=4, old_context_len=8192"
    ),
    "apply_rope_with_cos_sin_cache": "positions, query, key, head_size, cos_sin_cache, is_neox=True",
    "apply_rope_with_cos_sin_cache_inplace": "positions, query, key, head_size, cos_sin_cache, is_neox=True",
    "mla_rope_quantize_fp8": (
        "q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids, is_neox=True, quantize_dtype=None, quant_scale_q=1.0, quant_scale_kv=1.0, q_rope_out=None, "
        "k_rope_out=None, q_nope_out=None, k_nope_out=None, enable_pdl=False"
    ),
    "rope_quantize_fp8": (
        "q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids, is_neox=True, quantize_dtype=None, quant_scale_q=1.0, quant_scale_kv=1.0, q_rope_out=None, "
        "k_rope_out=None, q_nope_out=None, k_nope_out=None, enable_pdl=False, backend='cuda'"
    ),
    "rmsnorm": "input, weight, eps=1e-06, out=None, enable_pdl=None",
    "rmsnorm_quant": "out, input, weight, scale, eps=1e-06, enable_pdl=None",
    "fused_add_rmsnorm": "input, residual, weight, eps=1e-06, enable_pdl=None",
    "fused_add_rmsnorm_quant": "out, input, residual, weight, scale, eps=1e-06, enable_pdl=None",
    "gemma_rmsnorm": "input, weight, eps=1e-06, out=None, enable_pdl=None",
    "gemma_fused_add_rmsnorm": "input, residual, weight, eps=1e-06, enable_pdl=None",
    "layernorm": "input, gemma, beta, eps=1e-06",
    "layernorm_quant": "out, input, gemma, beta, scale, eps=1e-06",
    "silu_and_mul": "input, out=None, enable_pdl=None",
    "gelu_tanh_and_mul": "input, out=None, enable_pdl=None",
    "gelu_and_mul": "input, out=None, enable_pdl=None",
    "softmax": "logits, temperature=None, enable_pdl=None",
    "sampling_from_logits": "logits, indices=None, deterministic=True, generator=None, check_nan=False, seed=None, offset=None",
    "sampling_from_probs": "probs, indices=None, deterministic=True, generator=None, check_nan=False, seed=None, offset=None, return_valid=False",
    "top_p_sampling_from_probs": "probs, top_p, indices=None, deterministic=True, generator=None, check_nan=False, seed=None, offset=None, return_valid=False",
    "top_k_sampling_from_probs": "probs, top_k, indices=None, deterministic=True, generator=None, check_nan=False, seed=None, offset=None, return_valid=False",
    "min_p_sampling_from_probs": "probs, min_p, indices=None, deterministic=True, generator=None, check_nan=False, seed=None, offset=None, return_valid=False",
    "top_k_top_p_sampling_from_logits": (
        "logits, top_k, top_p, indices=None, filter_apply_order='top_k_first', deterministic=True, generator=None, check_nan=False, seed=None, offset=None"
    ),
    "top_k_top_p_sampling_from_probs": (
        "probs, top_k, top_p, indices=None, filter_apply_order='top_k_first', deterministic=True, generator=None, check_nan=False, seed=None, offset=None, "
        "return_valid=False"
    ),
    "top_p_renorm_probs": "probs, top_p, is_deterministic=False",
    "top_k_renorm_probs": "probs, top_k",
    "top_k_mask_logits": "logits, top_k",
    "chain_speculative_sampling": (
        "draft_probs, draft_token_ids, target_probs, maybe_output_accepted_token_num=None, maybe_output_emitted_draft_token_num=None, deterministic=True, "
        "generator=None, seed=None, offset=None"
    ),
    "top_k": "input, k, sorted=False, deterministic=False, tie_break=TopKTieBreak.NONE, dsa_graph_safe=False",
    "top_k_page_table_transform": (
        "input, src_page_table, lengths, k, row_to_batch=None, deterministic=False, tie_break=TopKTieBreak.NONE, dsa_graph_safe=False, row_starts=None, "
        "page_table_row_starts=None, *, page_size=1, out=None, out_raw_indices=None"
    ),
    "top_k_ragged_transform": "input, offsets, lengths, k, deterministic=False, tie_break=TopKTieBreak.NONE, dsa_graph_safe=False, row_starts=None",
    "packbits": "x, bitorder='big'",
    "segment_packbits": "x, indptr, bitorder='big'",
    "fp8_blockscale_gemm_sm90": "input, weight, input_scale=None, weight_scale=None, out=None, out_dtype=None",
    "mm_bf16": "a, b, bias=None, pdl=False, out=None, out_dtype=bfloat16, backend='cudnn'",
    "tinygemm_bf16": "input, weight, out, bias=None, use_pdl=False",
}

MORE = {
    "top_k_renorm_probs": "is_deterministic=False",
    "BatchPrefillWithPagedKVCacheWrapper.plan": "uniform_q_len=None",
    "BatchPrefillWithPagedKVCacheWrapper.workspace_size": "uniform_q_len=None",
    "BatchPrefillWithPagedKVCacheWrapper.run": "lse_base='log2', lse_layout='NH'",
    "BatchPrefillWithRaggedKVCacheWrapper.plan": "uniform_q_len=None",
    "BatchPrefillWithRaggedKVCacheWrapper.run": "lse_base='log2', lse_layout='NH'",
}
