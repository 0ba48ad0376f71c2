// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Kernels that ran on the emulated device, compiled for the GPU that it stands for: a host compiler takes what a GPU's compiler
// refuses, as a function that is constexpr and not QN_HOST_DEVICE.
#pragma once
#include <mutex>
#include <set>
#include <string>

#include "quern/device/device.h"
#include "quern/jit/spec.h"

namespace quern::testing {

/// Of one run; several threads may ask. Each kernel is compiled once, by who asks first, or found in the cache.
class GpuCompiles {
 public:
  /// Whether a compiler for the arch is here.
  bool available(Arch arch);
  /// What the compiler says of a kernel that it refuses. Empty: it compiles, was asked for before, or could not be compiled here.
  std::string refusal(const jit::KernelSpec& spec, Arch arch);

  /// How many kernels compile.
  i64 count() const { return count_; }
  /// Why kernels were not compiled, one line; empty: all were.
  const std::string& left_out() const { return left_out_; }

 private:
  std::mutex mutex_;
  std::set<std::string> asked_;
  std::string left_out_;
  i64 count_ = 0;
};

}  // namespace quern::testing
