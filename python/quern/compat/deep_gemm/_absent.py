# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Names that sm_90a or quern has nothing for. Those of the package are absent, so that hasattr() is False: callers ask before they choose a kernel. Those
that programs import from deep_gemm.utils by name, and do not ask for there, are functions that say why."""

_FP4, _UE8M0 = "packed FP4 needs SM100, this is for sm_90a", "packed UE8M0 scales need SM100, sm_90a reads scales as float32"
_MEGA, _LOGITS = "mega kernels need SM100, this is for sm_90a", "quern has no op for the logits of an attention indexer"

# {name of the package: why it is absent}
ABSENT = {
    **dict.fromkeys(("fp4_gemm_nt", "m_grouped_fp4_gemm_nt_contiguous", "m_grouped_fp4_gemm_nt_masked"), _FP4),
    "k_grouped_fp8_gemm_tn_contiguous": "FP8 that is MN-major needs SM100, expected k_grouped_fp8_gemm_nt_contiguous",
    **dict.fromkeys(("mega", "SymmBuffer", "get_symm_buffer_for_mega_moe", "transform_weights_for_mega_moe", "fp8_fp4_mega_moe", "fp8_mega_moe", "bf16_mega_moe"), _MEGA),
    "fp8_gemm_nt_skip_head_mid": "quern has no GEMM that leaves a hole in each head",
    **dict.fromkeys(("fp8_fp4_mqa_logits", "fp8_mqa_logits", "fp8_fp4_paged_mqa_logits", "fp8_paged_mqa_logits", "get_paged_mqa_logits_metadata",
                     "fp8_fp4_sparse_mqa_logits", "fp8_fp4_paged_sparse_mqa_logits", "get_sparse_mqa_logits_metadata", "get_paged_sparse_mqa_logits_metadata"), _LOGITS),
    **dict.fromkeys(("mega_mhc", "bf16_mega_gate"), _MEGA),
    **dict.fromkeys(("per_token_cast_to_fp4", "transpose_packed_fp4", "cast_back_from_fp4"), _FP4),
    **dict.fromkeys(("pack_ue8m0_to_int", "unpack_ue8m0_from_int", "get_mn_major_tma_aligned_packed_ue8m0_tensor", "get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor"), _UE8M0),
    **dict.fromkeys(("einsum", "fp8_einsum"), "quern has no batched GEMM"), "tf32_hc_prenorm_gemm": "quern has no GEMM in tf32",
}


def absent(module, name):
    """Raises the AttributeError of a name that a module has not, with the reason where there is one."""
    why = f": {ABSENT[name]}" if name in ABSENT else ""
    raise AttributeError(f"module {module!r} has no attribute {name!r}{why}")


def _refusing(name):
    """The function of deep_gemm.utils by a name that the package has not."""
    reason = ABSENT[name]

    def function(*arguments, **keywords):
        raise NotImplementedError(f"deep_gemm.{name}: {reason}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises NotImplementedError: {reason}."
    return function


per_token_cast_to_fp4, transpose_packed_fp4, cast_back_from_fp4 = (_refusing(name) for name in ("per_token_cast_to_fp4", "transpose_packed_fp4", "cast_back_from_fp4"))
pack_ue8m0_to_int, unpack_ue8m0_from_int = (_refusing(name) for name in ("pack_ue8m0_to_int", "unpack_ue8m0_from_int"))
get_mn_major_tma_aligned_packed_ue8m0_tensor, get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor = (
    _refusing(name) for name in ("get_mn_major_tma_aligned_packed_ue8m0_tensor", "get_k_grouped_mn_major_tma_aligned_packed_ue8m0_tensor"))
