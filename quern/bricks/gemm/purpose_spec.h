// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the symbols of the family's kernels say in a profiler: a kernel that multiplies has one of three words, in which users
// of GEMM libraries search, and no other kernel of a call has any of them.
#pragma once
#include "quern/kit/abi.h"

namespace quern::gemm {

/// Of a product of operands of 8 bits, of bf16 or of f16. None of the words is a part of another, as "f16_gemm" would be.
QN_HOST_DEVICE constexpr const char* product_word(DType operands) {
  return size_of(operands) == 1 ? "fp8_gemm" : operands == DType::bf16 ? "bf16_gemm" : "fp16_gemm";
}

/// Configs of kernels that multiply say what: both operands have one dtype, or each has its own of 8 bits. Those on Hopper nest it.
template <class Config>
  requires requires { &Config::dtype; }
QN_HOST_DEVICE constexpr const char* purpose_of(const Config& c) {
  return product_word(c.dtype);
}
template <class Config>
  requires requires { &Config::a_dtype; }
QN_HOST_DEVICE constexpr const char* purpose_of(const Config& c) {
  return product_word(c.a_dtype);
}
template <class Config>
  requires requires(const Config& c) { c.block.ending.dtype; }
QN_HOST_DEVICE constexpr const char* purpose_of(const Config& c) {
  return product_word(c.block.ending.dtype);
}
template <class Config>
  requires requires(const Config& c) { c.product.a_dtype; }
QN_HOST_DEVICE constexpr const char* purpose_of(const Config& c) {
  return product_word(c.product.a_dtype);
}

}  // namespace quern::gemm
