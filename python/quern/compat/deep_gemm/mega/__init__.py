# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Kernels that span GPUs, of which sm_90a has none."""
from quern.compat.deep_gemm._absent import (
    SymmBuffer, bf16_mega_moe, fp8_fp4_mega_moe, fp8_mega_moe, get_symm_buffer_for_mega_moe, transform_weights_for_mega_moe,
)

__all__ = ["SymmBuffer", "bf16_mega_moe", "fp8_fp4_mega_moe", "fp8_mega_moe", "get_symm_buffer_for_mega_moe", "transform_weights_for_mega_moe"]
