# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Names that sm_90a or quern has nothing for: each is a function that says why."""


def _absent(name, reason):
    def function(*arguments, **keywords):
        raise NotImplementedError(f"deep_gemm.{name}: {reason}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises NotImplementedError: {reason}."
    globals()[name] = function


_REASONS = {
    "packed FP4 needs SM100, this is for sm_90a": (
        "fp4_gemm_nt", "m_grouped_fp4_gemm_nt_contiguous", "m_grouped_fp4_gemm_nt_masked", "per_token_cast_to_fp4", "transpose_packed_fp4", "cast_back_from_fp4"),
    "packed UE8M0 scales need SM100, sm_90a reads scales as float32": (
        "pack_ue8m0_to_int", "unpack_ue8m0_from_int", "get_mn_major_tma_aligned_packed_ue8m0_tensor", "get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor"),
    "FP8 that is MN-major needs SM100, expected k_grouped_fp8_gemm_nt_contiguous": ("k_grouped_fp8_gemm_tn_contiguous",),
    "mega kernels need SM100, this is for sm_90a": (
        "SymmBuffer", "get_symm_buffer_for_mega_moe", "transform_weights_for_mega_moe", "fp8_fp4_mega_moe", "fp8_mega_moe", "bf16_mega_moe"),
    "quern has no GEMM that leaves a hole in each head": ("fp8_gemm_nt_skip_head_mid",),
    "quern has no op for the logits of an attention indexer": (
        "fp8_fp4_mqa_logits", "fp8_mqa_logits", "fp8_fp4_paged_mqa_logits", "fp8_paged_mqa_logits", "get_paged_mqa_logits_metadata"),
    "quern has no batched GEMM": ("einsum", "fp8_einsum"),
    "quern has no GEMM in tf32": ("tf32_hc_prenorm_gemm",),
}
for _reason, _names in _REASONS.items():
    for _name in _names:
        _absent(_name, _reason)
