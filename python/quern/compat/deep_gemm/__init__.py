# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""DeepGEMM's public names and keyword arguments over quern's ops, for what it has on sm_90a (docs/deep_gemm.md):

    import sys, quern.compat.deep_gemm
    sys.modules["deep_gemm"] = quern.compat.deep_gemm

Tensors are of torch; with QN_DEVICE=emu also those of the host. Names for other GPUs, and those that quern has no op for, are absent: hasattr() is
False, and the AttributeError has the reason. Contents of modules are imported by their full names: a program that imports
deep_gemm.utils has a second module, with the same functions and the same settings."""
from quern.compat.deep_gemm._absent import ABSENT as _ABSENT, absent as _absent
from quern.compat.deep_gemm._dense import (  # noqa: F401
    bf16_gemm_nn, bf16_gemm_nt, bf16_gemm_tn, bf16_gemm_tt, cublaslt_gemm_nn, cublaslt_gemm_nt, cublaslt_gemm_tn, cublaslt_gemm_tt,
    fp8_fp4_gemm_nn, fp8_fp4_gemm_nt, fp8_fp4_gemm_tn, fp8_fp4_gemm_tt,
)
from quern.compat.deep_gemm._grouped import (  # noqa: F401
    k_grouped_bf16_gemm_tn_contiguous, k_grouped_fp8_gemm_nt_contiguous, m_grouped_bf16_gemm_nn_contiguous, m_grouped_bf16_gemm_nt_contiguous,
    m_grouped_bf16_gemm_nt_masked, m_grouped_fp8_fp4_gemm_nn_contiguous, m_grouped_fp8_fp4_gemm_nt_contiguous, m_grouped_fp8_fp4_gemm_nt_masked,
)
from quern.compat.deep_gemm._settings import (  # noqa: F401
    get_compile_mode, get_num_sms, get_pdl, get_tc_util, init, set_block_size_multiple_of, set_compile_mode, set_ignore_compile_dims, set_num_sms, set_pdl,
    set_tc_util, use_deterministic_algorithms,
)
from quern.compat.deep_gemm import legacy, testing, utils  # noqa: F401
from quern.compat.deep_gemm.utils import *  # noqa: F401, F403

for _name in _ABSENT:  # the package is asked for what deep_gemm.utils has as a function that says why not
    globals().pop(_name, None)

fp8_gemm_nt, fp8_gemm_nn, fp8_gemm_tn, fp8_gemm_tt = fp8_fp4_gemm_nt, fp8_fp4_gemm_nn, fp8_fp4_gemm_tn, fp8_fp4_gemm_tt
m_grouped_fp8_gemm_nt_contiguous, m_grouped_fp8_gemm_nn_contiguous = m_grouped_fp8_fp4_gemm_nt_contiguous, m_grouped_fp8_fp4_gemm_nn_contiguous
m_grouped_fp8_gemm_nt_masked = fp8_m_grouped_gemm_nt_masked = m_grouped_fp8_fp4_gemm_nt_masked
bf16_m_grouped_gemm_nt_masked = m_grouped_bf16_gemm_nt_masked

__version__ = "2.6.1"  # the release whose names these are


def __getattr__(name):
    _absent(__name__, name)
