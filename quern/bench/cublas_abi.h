// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The part of cuBLASLt's ABI that quern uses; bench/cublas_abi_test.cpp compares it with the headers where present.
#pragma once
#include <cstddef>

#include "quern/kit/abi.h"

namespace quern::cublas {

constexpr i32 kSuccess = 0;

enum DataType : i32 { kR32F = 0, kR16F = 2, kR16BF = 14, kR8FE4M3 = 28, kR8FE5M2 = 29 };
constexpr i32 kCompute32F = 68;
constexpr i32 kOpTranspose = 1;

enum MatmulAttribute : i32 { kDescTransA = 3, kDescTransB = 4, kDescFastAccumulation = 25 };
enum PreferenceAttribute : i32 { kPreferenceMaxWorkspaceBytes = 1 };

/// cublasLtMatmulHeuristicResult_t.
struct HeuristicResult {
  u64 algorithm[8];
  size_t workspace_bytes;
  i32 state;
  float waves;
  i32 reserved[4];
};

}  // namespace quern::cublas
