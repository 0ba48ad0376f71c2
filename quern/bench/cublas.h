// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/device/device.h"

namespace quern {

/// True when a cuBLASLt loads and there is a GPU for it; else the reason in *why.
bool cublaslt_available(std::string* why = nullptr);

/// d[m, n] = a[m, k] * b[n, k]^T, contiguous, d row-major and a and b as their majors say, summed in f32, by cuBLASLt with the
/// algorithm that its own heuristic ranks first: the peer of quern's GEMMs and the measure of the matrix rate that a GPU sustains.
class CublasLtMatmul {
 public:
  static constexpr size_t kWorkspaceBytes = size_t(32) << 20;

  /// `in` is bf16, f16, e4m3 or e5m2, `out` bf16, f16 or f32; fp8 operands are summed in cuBLASLt's fast mode, as its
  /// users do. Throws Error{device} when cuBLASLt is missing or has no algorithm.
  CublasLtMatmul(Device& device, i64 m, i64 n, i64 k, DType in, DType out, Major a_major = Major::k, Major b_major = Major::k);
  ~CublasLtMatmul();
  CublasLtMatmul(const CublasLtMatmul&) = delete;
  CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

  /// `workspace` holds kWorkspaceBytes.
  void run(const void* a, const void* b, void* d, void* workspace, Stream stream);
  /// "cuBLASLt 13.1.0 (/usr/local/cuda/lib64/libcublasLt.so.13)".
  static std::string description();

 private:
  void choose_algorithm();
  void destroy();

  Device& device_;
  i64 m_, n_, k_;
  void* description_ = nullptr;  // cublasLtMatmulDesc_t
  void* layout_a_ = nullptr;     // cublasLtMatrixLayout_t of cuBLAS's A, B and D: column-major, so ours swapped
  void* layout_b_ = nullptr;
  void* layout_d_ = nullptr;
  u64 algorithm_[8] = {};  // cublasLtMatmulAlgo_t
};

}  // namespace quern
