# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Parameters and defaults of FlashInfer's functions, as release 0.6.18 has them; of those that 0.7.2 adds MORE has the names. A class stands for its constructor."""

SIGNATURES = {
    "single_decode_with_kv_cache": (
        "q, k, v, kv_layout='NHD', pos_encoding_mode='NONE', use_tensor_cores=False, q_scale=None, k_scale=None, v_scale=None, window_left=-1, "
        "logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None, return_lse=False"
    ),
    "BatchDecodeWithPagedKVCacheWrapper": (
        "float_workspace_buffer, kv_layout='NHD', use_cuda_graph=False, use_tensor_cores=False, paged_kv_indptr_buffer=None, paged_kv_indices_buffer=None, "
        "paged_kv_last_page_len_buffer=None, backend='auto', jit_args=None"
    ),
    "BatchDecodeWithPagedKVCacheWrapper.plan": (
        "indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, *deprecated_positional_args, **kwargs"
    ),
    "BatchDecodeWithPagedKVCacheWrapper._plan_impl": (
        "indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, *, pos_encoding_mode='NONE', window_left=-1, window_right=0, "
        "logits_soft_cap=None, q_data_type='float16', kv_data_type=None, o_data_type=None, data_type=None, sm_scale=None, rope_scale=None, rope_theta=None, "
        "non_blocking=True, block_tables=None, seq_lens=None, fixed_split_size=None, disable_split_kv=False, q_len_per_req=1"
    ),
    "BatchDecodeWithPagedKVCacheWrapper.run": (
        "q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None, lse=None, return_lse=False, enable_pdl=None, window_left=None, "
        "sinks=None, q_len_per_req=None, skip_softmax_threshold_scale_factor=None, kv_cache_sf=None"
    ),
    "BatchDecodeWithPagedKVCacheWrapper.workspace_size": (
        "indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, pos_encoding_mode='NONE', window_left=-1, logits_soft_cap=None, "
        "q_data_type='float16', kv_data_type=None, o_data_type=None, data_type=None, sm_scale=None, rope_scale=None, rope_theta=None, block_tables=None, "
        "seq_lens=None, fixed_split_size=None, disable_split_kv=False, q_len_per_req=1"
    ),
    "BatchDecodeWithPagedKVCacheWrapper.reset_workspace_buffer": "float_workspace_buffer, int_workspace_buffer",
    "CUDAGraphBatchDecodeWithPagedKVCacheWrapper": (
        "workspace_buffer, indptr_buffer, indices_buffer, last_page_len_buffer, kv_layout='NHD', use_tensor_cores=False"
    ),
    "fast_decode_plan": (
        "indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, pos_encoding_mode='NONE', window_left=-1, logits_soft_cap=None, "
        "q_data_type=None, kv_data_type=None, data_type=None, sm_scale=None, rope_scale=None, rope_theta=None, non_blocking=True, fixed_split_size=None, "
        "disable_split_kv=False, q_len_per_req=1, global_override_indptr_cpu=None"
    ),
    "trtllm_batch_decode_with_kv_cache": (
        "query, kv_cache, workspace_buffer, block_tables, seq_lens, max_seq_len, bmm1_scale=1.0, bmm2_scale=1.0, window_left=-1, out=None, out_dtype=None, "
        "o_sf_scale=None, o_sf_vec_size=None, sinks=None, kv_layout='HND', enable_pdl=None, backend='auto', q_len_per_req=1, o_scale=1.0, mask=None, "
        "max_q_len=None, cum_seq_lens_q=None, skip_softmax_threshold_scale_factor=None, kv_cache_sf=None, uses_shared_paged_kv_idx=True, lse=None, "
        "return_lse=False, bmm1_scale_log2=None, multi_ctas_kv_counter_buffer=None, enable_block_sparse_attention=False, cp_world=1, cp_rank=0, "
        "causal_seqlens_kv_global=None, bf16q_fp8kv_transform_mode=None, request_order=None, request_order_plan=None"
    ),
    "xqa_batch_decode_with_kv_cache": (
        "query, kv_cache, workspace_buffer, block_tables, seq_lens, max_seq_len, bmm1_scale=1.0, bmm2_scale=1.0, window_left=-1, out=None, sinks=None, "
        "kv_layout='NHD', enable_pdl=None, q_len_per_req=1, o_scale=1.0, mask=None, kv_cache_sf=None, q_cu_seq_lens=None"
    ),
    "single_prefill_with_kv_cache": (
        "q, k, v, scale_q=None, scale_k=None, scale_v=None, o_dtype=None, custom_mask=None, packed_custom_mask=None, causal=False, kv_layout='NHD', "
        "pos_encoding_mode='NONE', use_fp16_qk_reduction=False, sm_scale=None, window_left=-1, logits_soft_cap=None, rope_scale=None, rope_theta=None, "
        "backend='auto', return_lse=False, kv_cache_sf=None, k_scale=None, v_scale=None"
    ),
    "BatchPrefillWithPagedKVCacheWrapper": (
        "float_workspace_buffer, kv_layout='NHD', use_cuda_graph=False, qo_indptr_buf=None, paged_kv_indptr_buf=None, paged_kv_indices_buf=None, "
        "paged_kv_last_page_len_buf=None, custom_mask_buf=None, mask_indptr_buf=None, backend='auto', jit_args=None, jit_kwargs=None, variant_owns_mask=False"
    ),
    "BatchPrefillWithPagedKVCacheWrapper.plan": (
        "qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim_qk, page_size, head_dim_vo=None, "
        "custom_mask=None, packed_custom_mask=None, causal=False, pos_encoding_mode='NONE', use_fp16_qk_reduction=False, sm_scale=None, window_left=-1, "
        "logits_soft_cap=None, rope_scale=None, rope_theta=None, q_data_type='float16', kv_data_type=None, o_data_type=None, non_blocking=True, "
        "prefix_len_ptr=None, token_pos_in_items_ptr=None, token_pos_in_items_len=0, max_item_len_ptr=None, seq_lens=None, seq_lens_q=None, block_tables=None, "
        "max_token_per_sequence=None, max_sequence_kv=None, fixed_split_size=None, disable_split_kv=False"
    ),
    "BatchPrefillWithPagedKVCacheWrapper.run": (
        "q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None, lse=None, return_lse=False, enable_pdl=None, window_left=None, "
        "sinks=None, kv_cache_sf=None, skip_softmax_threshold_scale_factor=None, use_fp16_softmax=None, uses_spcompress=None"
    ),
    "BatchPrefillWithPagedKVCacheWrapper.workspace_size": (
        "qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim_qk, page_size, head_dim_vo=None, "
        "custom_mask=None, packed_custom_mask=None, causal=False, pos_encoding_mode='NONE', use_fp16_qk_reduction=False, sm_scale=None, window_left=-1, "
        "logits_soft_cap=None, rope_scale=None, rope_theta=None, q_data_type='float16', kv_data_type=None, o_data_type=None, prefix_len_ptr=None, "
        "token_pos_in_items_ptr=None, token_pos_in_items_len=0, max_item_len_ptr=None, seq_lens=None, seq_lens_q=None, block_tables=None, "
        "max_token_per_sequence=None, max_sequence_kv=None, fixed_split_size=None, disable_split_kv=False"
    ),
    "BatchPrefillWithRaggedKVCacheWrapper": (
        "float_workspace_buffer, kv_layout='NHD', use_cuda_graph=False, qo_indptr_buf=None, kv_indptr_buf=None, custom_mask_buf=None, mask_indptr_buf=None, "
        "backend='auto', jit_args=None, jit_kwargs=None, variant_owns_mask=False"
    ),
    "BatchPrefillWithRaggedKVCacheWrapper.plan": (
        "qo_indptr, kv_indptr, num_qo_heads, num_kv_heads, head_dim_qk, head_dim_vo=None, custom_mask=None, packed_custom_mask=None, causal=False, "
        "pos_encoding_mode='NONE', use_fp16_qk_reduction=False, window_left=-1, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None, "
        "q_data_type='float16', kv_data_type=None, o_data_type=None, non_blocking=True, prefix_len_ptr=None, token_pos_in_items_ptr=None, "
        "token_pos_in_items_len=0, max_item_len_ptr=None, fixed_split_size=None, disable_split_kv=False, seq_lens=None, seq_lens_q=None, "
        "max_token_per_sequence=None, max_sequence_kv=None, v_indptr=None, o_indptr=None"
    ),
    "BatchPrefillWithRaggedKVCacheWrapper.run": (
        "q, k, v, *args, q_scale=None, k_scale=None, v_scale=None, o_scale=None, out=None, lse=None, return_lse=False, enable_pdl=None, kv_cache_sf=None"
    ),
    "trtllm_batch_context_with_kv_cache": (
        "query, kv_cache, workspace_buffer, block_tables, seq_lens, max_q_len, max_kv_len, bmm1_scale, bmm2_scale, batch_size, cum_seq_lens_q, cum_seq_lens_kv, "
        "window_left=-1, out=None, out_dtype=None, o_sf_scale=None, o_sf_vec_size=None, kv_layout='HND', enable_pdl=None, sinks=None, kv_cache_sf=None, "
        "skip_softmax_threshold_scale_factor=None, uses_shared_paged_kv_idx=True, causal=True, lse=None, return_lse=False, multi_ctas_kv_counter_buffer=None, "
        "use_fp16_softmax=None, uses_spcompress=None, backend='trtllm-gen'"
    ),
    "BatchAttention": "kv_layout='NHD', device='cuda'",
    "BatchAttention.plan": (
        "qo_indptr, kv_indptr, kv_indices, kv_len_arr, num_qo_heads, num_kv_heads, head_dim_qk, head_dim_vo, page_size, causal=False, sm_scale=None, "
        "logits_soft_cap=None, q_data_type=bfloat16, kv_data_type=bfloat16, use_profiler=False"
    ),
    "BatchAttention.run": "q, kv_cache, out=None, lse=None, k_scale=None, v_scale=None, logits_soft_cap=0.0, profiler_buffer=None, kv_cache_sf=None",
    "BatchAttentionWithAttentionSinkWrapper": (
        "float_workspace_buffer, kv_layout='NHD', use_cuda_graph=False, qo_indptr_buf=None, paged_kv_indptr_buf=None, paged_kv_indices_buf=None, "
        "paged_kv_last_page_len_buf=None, custom_mask_buf=None, mask_indptr_buf=None, backend='auto', pos_encoding_mode='NONE', use_fp16_qk_reduction=False, "
        "q_data_type=bfloat16, kv_data_type=bfloat16, head_dim_qk=128, head_dim_vo=128, window_left=-1"
    ),
    "merge_state": "v_a, s_a, v_b, s_b",
    "merge_state_in_place": "v, s, v_other, s_other, mask=None",
    "merge_states": "v, s",
    "MultiLevelCascadeAttentionWrapper": (
        "num_levels, float_workspace_buffer, kv_layout='NHD', use_cuda_graph=False, qo_indptr_buf_arr=None, paged_kv_indptr_buf_arr=None, "
        "paged_kv_indices_buf_arr=None, paged_kv_last_page_len_buf_arr=None"
    ),
    "MultiLevelCascadeAttentionWrapper.plan": (
        "qo_indptr_arr, paged_kv_indptr_arr, paged_kv_indices_arr, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, causal=False, "
        "pos_encoding_mode='NONE', use_fp16_qk_reduction=False, sm_scale=None, window_left=-1, logits_soft_cap=None, rope_scale=None, rope_theta=None, "
        "q_data_type='float16', kv_data_type=None"
    ),
    "MultiLevelCascadeAttentionWrapper.run": "q, paged_kv_cache",
    "append_paged_kv_cache": "append_key, append_value, batch_indices, positions, paged_kv_cache, kv_indices, kv_indptr, kv_last_page_len, kv_layout='NHD'",
    "append_paged_mla_kv_cache": "append_ckv, append_kpe, batch_indices, positions, ckv_cache, kpe_cache, kv_indices, kv_indptr, kv_last_page_len",
    "get_batch_indices_positions": "append_indptr, seq_lens, nnz, batch_indices=None, positions=None",
    "get_seq_lens": "kv_indptr, kv_last_page_len, page_size",
    "nvfp4_quantize_append_paged_kv_cache_with_slot_mapping": (
        "append_key, append_value, slot_mapping, paged_kv_cache, kv_cache_sf, k_scale, v_scale, kv_layout='NHD'"
    ),
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
    "xqa": (
        "q, k_cache, v_cache, page_table, seq_lens, output, workspace_buffer, semaphores, num_kv_heads, page_size, sinks=None, q_scale=1.0, "
        "kv_scale=1.0, sliding_win_size=0, kv_layout='NHD', sm_count=None, enable_pdl=None, rcp_out_scale=1.0, q_seq_len=1, mask=None, *, "
        "q_cu_seq_lens=None, k_sf_cache=None, v_sf_cache=None"
    ),
    "cudnn_batch_decode_with_kv_cache": (
        "q, k_cache, v_cache, scale, workspace_buffer, *, max_sequence_kv, actual_seq_lens_kv=None, block_tables=None, "
        "is_cuda_graph_compatible=False, batch_offsets_q=None, batch_offsets_o=None, batch_offsets_k=None, batch_offsets_v=None, out=None, return_lse=False, "
        "lse=None, q_len_per_req=1, window_left=-1, sinks=None"
    ),
    "trtllm_fmha_v2_prefill": (
        "qkv, input_layout, workspace_buffer, seq_lens, max_q_len, max_kv_len, bmm1_scale, bmm2_scale, batch_size, cum_seq_lens_q, cum_seq_lens_kv, "
        "block_tables=None, out=None, out_dtype=None, sinks=None, pos_encoding_mode=None, logits_soft_cap_scale=None, mask_mode='causal', "
        "window_left=-1, chunked_attention_size=0, save_softmax_stats=False, skip_softmax_threshold_scale_factor=0"
    ),
    "trtllm_ragged_attention_deepseek": (
        "query, key, value, workspace_buffer, seq_lens, max_q_len, max_kv_len, bmm1_scale, bmm2_scale, o_sf_scale, batch_size, window_left, "
        "cum_seq_lens_q, cum_seq_lens_kv, enable_pdl, is_causal, return_lse, attention_sinks=None, skip_softmax_threshold_scale_factor=None, "
        "out=None, lse=None, sage_attn_sfs=(None, None, None, None), num_elts_per_sage_attn_blk=(0, 0, 0, 0), backend='trtllm-gen', "
        "q_seq_lens_cpu=None, kv_seq_lens_cpu=None, use_fp16_softmax=None, uses_spcompress=None, skip_all_rows_active_check=True"
    ),
    "cudnn_batch_prefill_with_kv_cache": (
        "q, k_cache, v_cache, scale, workspace_buffer, *, max_token_per_sequence, max_sequence_kv, actual_seq_lens_q=None, actual_seq_lens_kv=None, "
        "block_tables=None, causal, return_lse, q_scale=None, k_scale=None, v_scale=None, batch_offsets_q=None, batch_offsets_o=None, "
        "batch_offsets_k=None, batch_offsets_v=None, batch_offsets_stats=None, batch_offsets_units='elements', out=None, lse=None, "
        "is_cuda_graph_compatible=False, backend=None, o_data_type=None"
    ),
    "BatchDecodeWithSharedPrefixPagedKVCacheWrapper": "float_workspace_buffer, kv_layout='NHD'",
    "BatchDecodeWithSharedPrefixPagedKVCacheWrapper.begin_forward": (
        "unique_kv_indptr, unique_kv_indices, unique_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, data_type='float16'"
    ),
    "BatchDecodeWithSharedPrefixPagedKVCacheWrapper.forward": "q, k_shared, v_shared, unique_kv_cache",
    "BatchPrefillWithSharedPrefixPagedKVCacheWrapper": "float_workspace_buffer, kv_layout='NHD'",
    "BatchPrefillWithSharedPrefixPagedKVCacheWrapper.begin_forward": "qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size",
    "BatchPrefillWithSharedPrefixPagedKVCacheWrapper.forward": (
        "q, k_shared, v_shared, unique_kv_cache, causal=False, use_fp16_qk_reduction=False, sm_scale=None, rope_scale=None, rope_theta=None"
    ),
    "PODWithPagedKVCacheWrapper": (
        "float_workspace_buffer, kv_layout='NHD', use_cuda_graph=False, paged_kv_indptr_buffer=None, paged_kv_indices_buffer=None, "
        "paged_kv_last_page_len_buffer=None, jit_args=None"
    ),
    "PODWithPagedKVCacheWrapper.plan": (
        "indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, pos_encoding_mode='NONE', window_left=-1, "
        "q_data_type='float16', kv_data_type=None, data_type=None, sm_scale=None, rope_scale=None, rope_theta=None, non_blocking=True"
    ),
    "PODWithPagedKVCacheWrapper.run": (
        "q_p, k_p, v_p, q_d, paged_kv_cache_d, custom_mask_p=None, packed_custom_mask_p=None, causal_p=False, kv_layout_p='NHD', "
        "pos_encoding_mode_p='NONE', sm_scale_p=None, window_left_p=-1, rope_scale_p=None, rope_theta_p=None, return_lse_p=False, custom_mask_d=None, "
        "packed_custom_mask_d=None, causal_d=False, kv_layout_d='NHD', pos_encoding_mode_d='NONE', sm_scale_d=None, window_left_d=-1, "
        "rope_scale_d=None, rope_theta_d=None, q_scale=None, k_scale=None, v_scale=None, return_lse_d=False, use_fp16_qk_reduction=False, "
        "enable_pdl=None, *args"
    ),
    "BatchPODWithPagedKVCacheWrapper": "float_workspace_buffer, kv_layout='NHD'",
    "BatchPODWithPagedKVCacheWrapper.plan": (
        "qo_indptr_p, kv_indptr_p, kv_indices_p, last_page_len_p, qo_indptr_d, kv_indptr_d, kv_indices_d, last_page_len_d, num_qo_heads, "
        "num_kv_heads, head_dim, page_size, pos_encoding_mode='NONE', window_left=-1, q_data_type='float16', kv_data_type=None, data_type=None, "
        "sm_scale=None, rope_scale=None, rope_theta=None, non_blocking=True"
    ),
    "BatchPODWithPagedKVCacheWrapper.run": (
        "q_p, paged_kv_cache_p, q_d, paged_kv_cache_d, custom_mask_p=None, packed_custom_mask_p=None, causal_p=False, q_scale=None, k_scale=None, "
        "v_scale=None, return_lse=False, use_fp16_qk_reduction=False, enable_pdl=None"
    ),
    "BlockSparseAttentionWrapper": "float_workspace_buffer, backend='auto'",
    "BlockSparseAttentionWrapper.plan": (
        "indptr, indices, M, N, R, C, num_qo_heads, num_kv_heads, head_dim, mask=None, packed_mask=None, causal=False, pos_encoding_mode='NONE', "
        "use_fp16_qk_reduction=False, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None, q_data_type='float16', "
        "kv_data_type=None, o_data_type='float16', non_blocking=True, block_mask=None"
    ),
    "BlockSparseAttentionWrapper.run": "q, k, v, scale_q=None, scale_k=None, scale_v=None, out=None, lse=None, return_lse=False, enable_pdl=None",
    "VariableBlockSparseAttentionWrapper": "float_workspace_buffer, backend='auto'",
    "VariableBlockSparseAttentionWrapper.plan": (
        "block_mask_map, block_row_sz, block_col_sz, num_qo_heads, num_kv_heads, head_dim, causal=False, pos_encoding_mode='NONE', "
        "use_fp16_qk_reduction=False, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None, non_blocking=True, "
        "q_data_type='float16', kv_data_type=None"
    ),
    "VariableBlockSparseAttentionWrapper.run": "q, k, v, out=None, lse=None, return_lse=False, enable_pdl=None",
    "rope_quantize_fp8_append_paged_kv_cache": (
        "q_rope, k_rope, q_nope, k_nope, v, cos_sin_cache, pos_ids, paged_kv_cache, kv_indices, kv_indptr, batch_indices, positions, is_neox=True, "
        "quantize_dtype=None, quant_scale_q=1.0, quant_scale_kv=1.0, page_size=16, kv_layout='NHD', q_rope_out=None, q_nope_out=None, "
        "enable_pdl=False"
    ),
    "LogitsPipe": "processors, compile=True, input_type=None, custom_fusion_rules=None, custom_validity_checks=None",
    "LogitsPipe.__call__": "x, **kwargs",
    "per_token_group_quant_8bit": "x, group_size, eps=1e-10, dst_dtype=None, column_major_scales=False, scale_tma_aligned=False, scale_ue8m0=False, backend='cutile'",
    "SegmentGEMMWrapper": "float_workspace_buffer, backend='auto'",
    "SegmentGEMMWrapper.run": "x, weights, batch_size, weight_column_major, out=None, seg_lens=None, seg_indptr=None, weight_indices=None",
    "bmm_fp8": "A, B, A_scale, B_scale, dtype, out=None, backend='cublas'",
    "bmm_bf16": "A, B, out=None, out_dtype=bfloat16, backend='cudnn'",
    "grouped_mm_bf16": "a, b, m_indptr, out=None, out_dtype=bfloat16, *, backend='cudnn', tactic=-1",
    "grouped_mm_fp8": "a, b, m_indptr, alpha=None, out=None, out_dtype=bfloat16, *, backend='cudnn', tactic=-1",
    "concat_mla_k": "k, k_nope, k_rope",
    "autotune": "tune_mode=True, cache=None, tuning_buckets=None, round_up=None, skip_ops=None",
    "TaggedTensor": "data, type",
    "LogitsProcessor": "**params",
    "Temperature": "**params",
    "Softmax": "enable_pdl=None, **params",
    "TopK": "joint_topk_topp=False, **params",
    "TopP": "**params",
    "MinP": "**params",
    "Sample": "deterministic=True, **params",
}

MORE = {
    "cudnn_batch_prefill_with_kv_cache": "lse_base='log2'",
    "top_k_renorm_probs": "is_deterministic=False",
    "BatchPrefillWithPagedKVCacheWrapper.plan": "uniform_q_len=None",
    "BatchPrefillWithPagedKVCacheWrapper.workspace_size": "uniform_q_len=None",
    "BatchPrefillWithPagedKVCacheWrapper.run": "lse_base='log2', lse_layout='NH'",
    "BatchPrefillWithRaggedKVCacheWrapper.plan": "uniform_q_len=None",
    "BatchPrefillWithRaggedKVCacheWrapper.run": "lse_base='log2', lse_layout='NH'",
}
