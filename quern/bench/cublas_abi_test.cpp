// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/cublas_abi.h"

#include <gtest/gtest.h>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

#if __has_include(<cublasLt.h>)
namespace quern::cublas {
namespace {

TEST(bench_cublas_abi, agrees_with_cublaslt_h) {
  EXPECT_EQ(sizeof(HeuristicResult), sizeof(cublasLtMatmulHeuristicResult_t));
  EXPECT_EQ(sizeof(HeuristicResult::algorithm), sizeof(cublasLtMatmulAlgo_t));
  EXPECT_EQ(offsetof(HeuristicResult, workspace_bytes), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
  EXPECT_EQ(offsetof(HeuristicResult, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
  EXPECT_EQ(offsetof(HeuristicResult, waves), offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
  EXPECT_EQ(int(kSuccess), int(CUBLAS_STATUS_SUCCESS));
  EXPECT_EQ(int(kR32F), int(CUDA_R_32F));
  EXPECT_EQ(int(kR16F), int(CUDA_R_16F));
  EXPECT_EQ(int(kR16BF), int(CUDA_R_16BF));
  EXPECT_EQ(int(kR8FE4M3), int(CUDA_R_8F_E4M3));
  EXPECT_EQ(int(kR8FE5M2), int(CUDA_R_8F_E5M2));
  EXPECT_EQ(int(kCompute32F), int(CUBLAS_COMPUTE_32F));
  EXPECT_EQ(int(kOpTranspose), int(CUBLAS_OP_T));
  EXPECT_EQ(int(kDescTransA), int(CUBLASLT_MATMUL_DESC_TRANSA));
  EXPECT_EQ(int(kDescTransB), int(CUBLASLT_MATMUL_DESC_TRANSB));
  EXPECT_EQ(int(kDescFastAccumulation), int(CUBLASLT_MATMUL_DESC_FAST_ACCUM));
  EXPECT_EQ(int(kPreferenceMaxWorkspaceBytes), int(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
}

}  // namespace
}  // namespace quern::cublas
#else
TEST(bench_cublas_abi, agrees_with_cublaslt_h) { GTEST_SKIP() << "needs CUDA's headers"; }
#endif
