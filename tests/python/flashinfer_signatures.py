# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Parameters and defaults of FlashInfer's functions, as release 0.6.18 has them, or 0.7.2 where that is the first; of parameters that 0.7.2 adds MORE has the names. A class stands for
its constructor."""

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
    "autotune_v2": "mode='tune', persistent_cache=True, cache_root=None, measurement_policy=None, *, tuning_buckets=None, round_up=None, skip_ops=None",
    "autotune_v2_reload": "",
    "MeasurementPolicy": "execution_mode='auto', cold_l2=None",
    "AutoTuner": "warmup=3, repeat=10, stream_delay_micro_secs=5000",
    "set_autotune_process_group": "group",
    "get_autotune_process_group": "",
    "fused_add_rmsnorm_fp8_block_quant": "out, block_scale, normed_out, input, residual, weight, eps=1e-06, enable_pdl=None",
    "BlockSparseAttentionWrapper.forward": (
        "q, k, v, scale_q=None, scale_k=None, scale_v=None, pos_encoding_mode='NONE', use_fp16_qk_reduction=False, logits_soft_cap=None, sm_scale=None, "
        "rope_scale=None, rope_theta=None"
    ),
    "VariableBlockSparseAttentionWrapper.forward": (
        "q, k, v, pos_encoding_mode='NONE', use_fp16_qk_reduction=False, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None"
    ),
    **{f"{name}.prewarm_paged_kv_stride_variant": "variant='independent'" for name in (
        "BatchDecodeWithPagedKVCacheWrapper", "BatchPrefillWithPagedKVCacheWrapper", "BatchAttention", "MultiLevelCascadeAttentionWrapper",
        "BatchPrefillWithSharedPrefixPagedKVCacheWrapper")},
    "LogitsPipe.compile": "custom_fusion_rules=None, custom_validity_checks=None",
    "TaggedTensor.logits": "t",
    "TaggedTensor.probs": "t",
    "TaggedTensor.indices": "t",
    "TaggedTensor.size": "dim=None",
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
    "mm_bf16": "*, skip_check=False",
    "tinygemm_bf16": "*, skip_check=False",
    "bmm_bf16": "*, skip_check=False",
    "bmm_fp8": "*, skip_check=False",
    "grouped_mm_bf16": "skip_check=False",
    "grouped_mm_fp8": "skip_check=False",
    "concat_mla_k": "*, backend='default'",
    "autotune": "cuda_graph_profile_replays=None",
    "BlockSparseAttentionWrapper.plan": "kv_block_lens=None, q2k_indices=None, q2k_num=None, kv_splits=None, use_clc=None, q_scale=None, k_scale=None, v_scale=None",
}

# What `import flashinfer` has in release 0.7.2, but for modules that it loads by the way.
PUBLIC = """
    __git_commit__ __git_version__ __version__ ActivationType add_rmsnorm_fp4quant append_paged_kv_cache append_paged_mla_kv_cache apply_llama31_rope
    apply_llama31_rope_inplace apply_llama31_rope_pos_ids apply_llama31_rope_pos_ids_inplace apply_rope apply_rope_inplace apply_rope_pos_ids
    apply_rope_pos_ids_inplace apply_rope_with_cos_sin_cache apply_rope_with_cos_sin_cache_inplace autotune autotune_v2 autotune_v2_reload
    b12x_fused_moe B12xMoEWrapper BatchAttention BatchAttentionWithAttentionSinkWrapper BatchDecodeWithPagedKVCacheWrapper
    BatchDecodeWithSharedPrefixPagedKVCacheWrapper BatchMLAPagedAttentionWrapper BatchPODWithPagedKVCacheWrapper
    BatchPrefillWithCausalBidirectionalRangesWrapper BatchPrefillWithPagedKVCacheWrapper BatchPrefillWithRaggedKVCacheWrapper
    BatchPrefillWithSharedPrefixPagedKVCacheWrapper block_scale_interleave BlockSparseAttentionWrapper bmm_bf16 bmm_fp8 bmm_mxfp8
    cake_batch_context_with_kv_cache cake_batch_decode_with_kv_cache cake_fmha_manifest cake_rmsnorm cake_rmsnorm_train_backward
    cake_rmsnorm_train_backward_workspace_bytes cake_rmsnorm_train_forward cake_top_k_top_p_sampling_from_probs CakeFmhaRequestOrderedDecodePlan
    CakeRMSNormFunction chain_speculative_sampling chunk_gated_delta_product chunk_gated_delta_rule chunk_gated_delta_rule2
    compute_paged_mqa_logits_schedule CUDAGraphBatchDecodeWithPagedKVCacheWrapper cudnn_batch_decode_with_kv_cache cudnn_frost_grouped_gemm1_swiglu
    cudnn_frost_grouped_gemm1_swiglu_workspace_size cute_dsl_fused_moe cute_dsl_fused_moe_bf16 cute_dsl_fused_moe_mxfp8_mxfp4 cute_dsl_fused_moe_nvfp4
    CuteDslBf16MoEWrapper CuteDslMoEWrapper CuteDslMxfp8Mxfp4MoEWrapper cutlass_fused_moe e2m1_and_ufp8sf_scale_to_float fast_decode_plan fi_trace
    fp4_paged_mqa_logits fp4_quantize fp8_paged_mqa_logits fused_add_rmsnorm fused_add_rmsnorm_fp8_block_quant fused_add_rmsnorm_quant
    fused_dit_gate_residual_layernorm_gamma_beta fused_dit_gate_residual_layernorm_scale_shift fused_dit_residual_layernorm_scale_shift
    fused_kda_decode fused_qk_rmsnorm_rope fused_rmsnorm_silu gdn_fused_decode_step gdn_fused_decode_step_supported gelu_and_mul gelu_tanh_and_mul
    gemma_fused_add_rmsnorm gemma_rmsnorm get_batch_indices_positions get_dcp_spec_counter_bytes get_dcp_spec_workspace_size_bytes
    get_fp4_quantization_module get_seq_lens grouped_mm_bf16 grouped_mm_fp4 grouped_mm_fp8 grouped_mm_mxfp8 is_gated_activation jit
    kda_prefill_supports_fp32_checkpoints KDAPrefillPlanCache launch_sm110_gqa_decode_prepared layernorm layernorm_quant make_nvfp4_global_scale mamba
    MeasurementPolicy merge_state merge_state_in_place merge_states mhc min_block_table_width min_p_sampling_from_probs MiniMaxH3Mxfp8PreAttention
    MiniMaxH3Nvfp4PreAttention MiniMaxH3QkvQuantizePack mm_bf16 mm_bf16_fp4 mm_fp4 mm_fp8 mm_mxfp8 mm_nvfp4_svdquant msa_ops
    MultiLevelCascadeAttentionWrapper mxfp4_dequantize mxfp4_dequantize_host mxfp4_quantize mxfp8_dequantize_host mxfp8_grouped_quantize
    mxfp8_quantize next_positive_power_of_2 NVFP44Over6Config NVFP44Over6ErrMode nvfp4_attention_sm120 nvfp4_attention_sm120_fwd
    nvfp4_attention_sm120_quantize_qkv nvfp4_batched_quantize nvfp4_block_scale_interleave nvfp4_kv_dequantize nvfp4_kv_dequantize_paged
    nvfp4_kv_quantize nvfp4_quantize nvfp4_quantize_append_paged_kv_cache nvfp4_quantize_append_paged_kv_cache_with_slot_mapping
    nvfp4_quantize_append_paged_mla_kv_cache nvfp4_quantize_paged_kv_cache nvfp4_quantize_smooth packbits packed_fused_kda_decode packed_kda_decode
    padded_seq_len plan_cake_fmha_request_ordered_paged_decode PODWithPagedKVCacheWrapper precompile_paged_mqa_logits
    prepare_balanced_batch_decode_with_kv_cache prepare_bf16_fp4_weights prepare_bf16_kda_prefill prepare_low_latency_gemm_weights
    prepare_sm110_gqa_decode prepare_tf32_kda_prefill prims_ts_bf16_moe prims_ts_bf16_routed_moe prims_ts_fp4_block_scale_moe
    prims_ts_fp4_block_scale_routed_moe prims_ts_fp8_block_scale_moe prims_ts_fp8_block_scale_routed_moe prims_ts_fp8_per_tensor_scale_moe
    recurrent_kda RecurrentKDAPrefillWorkspace RecurrentKDAPrefillWrapper reorder_rows_for_gated_act_gemm resolve_nvfp4_4over6 rmsnorm
    rmsnorm_fp4quant rmsnorm_quant RoutingMethodType sampling_from_logits sampling_from_probs scaled_fp4_grouped_quantize segment_packbits
    SegmentGEMMWrapper SfLayout shuffle_matrix_a shuffle_matrix_sf_a silu_and_mul silu_and_mul_mxfp8_quantize silu_and_mul_mxfp8_quantize_backward
    silu_and_mul_nvfp4_quantize silu_and_mul_scaled_nvfp4_experts_quantize single_decode_with_kv_cache single_prefill_with_kv_cache
    single_prefill_with_kv_cache_return_lse sm110_gqa_decode softmax svdquant_linear tgv_gemm_sm100 top_k top_k_mask_logits top_k_page_table_transform
    top_k_ragged_transform top_k_renorm_probs top_k_sampling_from_probs top_k_top_p_sampling_from_logits top_k_top_p_sampling_from_probs top_k_varlen
    top_p_renorm_probs top_p_sampling_from_probs topk TopKTieBreak trtllm_bf16_moe trtllm_bf16_routed_moe trtllm_fmha_v2_prefill
    trtllm_fp4_block_scale_moe trtllm_fp4_block_scale_routed_moe trtllm_fp8_block_scale_moe trtllm_fp8_block_scale_routed_moe
    trtllm_fp8_per_tensor_scale_moe trtllm_fp8_per_tensor_scale_routed_moe trtllm_sage_attention_quantize VariableBlockSparseAttentionWrapper xqa
    xqa_mla
""".split()

# {module of vLLM's question: names that it looks for}, by which vLLM 0.32 learns whether FlashInfer has MoE, MLA, FP4, linear attention and communication. Without names: it
# looks for the module.
PROBES = {
    "comm": "", "comm.trtllm_moe_alltoall": "", "comm.trtllm_alltoall": "MnnvlMoe MoEAlltoallInfo", "comm.mnnvl": "MnnvlMemory", "fused_moe": "", "cute_dsl": "", "mla": "BatchMLAPagedAttentionWrapper",
    "": "packed_fused_kda_decode fp4_quantize nvfp4_block_scale_interleave scaled_fp4_grouped_quantize silu_and_mul_scaled_nvfp4_experts_quantize cute_dsl_fused_moe_nvfp4 "
        "add_rmsnorm_fp4quant mxfp4_quantize nvfp4_batched_quantize trtllm_fp4_block_scale_moe",
    "decode": "trtllm_batch_decode_with_kv_cache_mla trtllm_batch_decode_sparse_mla_dsv4", "gemm": "mm_bf16_fp4 prepare_bf16_fp4_weights", "kda": "recurrent_kda", "kda_decode": "fused_kda_decode",
    "fp4_quantization": "block_scale_interleave", "cute_dsl.blockscaled_gemm": "grouped_gemm_nt_masked",
}

# What SGLang 0.5.23 imports on its way to a server, outside of any `try`, from a FlashInfer on Hopper.
SGLANG = {
    "": "BatchDecodeWithPagedKVCacheWrapper BatchPrefillWithPagedKVCacheWrapper BatchPrefillWithRaggedKVCacheWrapper fast_decode_plan bmm_fp8 nvfp4_block_scale_interleave autotune_v2",
    "cascade": "merge_state", "fp4_quantization": "block_scale_interleave", "fused_moe": "convert_to_block_layout trtllm_mxint4_block_scale_moe",
    "fused_moe.core": "_maybe_get_cached_w3_w1_permute_indices get_w2_permute_indices_with_cache", "comm.mnnvl": "CommBackend", "gemm": "fp8_blockscale_gemm_sm90", "jit.core": "logger",
    "autotuner": "AutoTuner _collect_metadata autotune get_autotune_process_group set_autotune_process_group",
}
