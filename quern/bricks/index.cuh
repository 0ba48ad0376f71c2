// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Elements of index tensors, which are i32 or i64.
#pragma once
#include "quern/kit/kit.cuh"

namespace quern {

template <DType kDType> struct Integer {
  using type = i32;
};
template <> struct Integer<DType::i64> {
  using type = i64;
};

template <DType kDType> QN_DEVICE i64 load_index(const void* from, i64 at) {
  using T = typename Integer<kDType>::type;
  return i64(ptx::ld_global<T>(static_cast<const T*>(from) + at));
}
template <DType kDType> QN_DEVICE void store_index(void* to, i64 at, i64 value) {
  using T = typename Integer<kDType>::type;
  ptx::st_global<T>(static_cast<T*>(to) + at, T(value));
}

}  // namespace quern
