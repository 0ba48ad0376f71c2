// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Random calls of random ops, valid and broken ones: each must be right against the reference or a quern::Error.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "quern/op/schema.h"

namespace quern::testing {

struct FuzzOptions {
  i64 calls = 1000;
  u64 seed = 1;  ///< call i depends on seed + i alone
  std::vector<const Op*> ops;
  Device* device = nullptr;       ///< one that computes in host memory, or a GPU
  std::string words;              ///< of the device and ops, for repro commands
  double most_bytes = 256 << 10;  ///< operands of a call that is run
};
struct FuzzFailure {
  std::string what, repro;
};
struct FuzzReport {
  i64 calls = 0;
  std::map<std::string, i64> outcomes;  ///< "right", "planned", "value error", ... and how often
  std::map<std::string, i64> breaks;    ///< kind of the damage done to the arguments and how often
  std::vector<FuzzFailure> failures;
};
/// Command that repeats the call of that seed.
std::string fuzz_repro(const FuzzOptions& options, u64 seed);
/// `progress` is called after each call with the number done.
FuzzReport fuzz(const FuzzOptions& options, const std::function<void(i64)>& progress = {});

}  // namespace quern::testing
