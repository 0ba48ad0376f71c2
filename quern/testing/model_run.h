// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "quern/testing/check.h"
#include "quern/testing/model_calls.h"

namespace quern::testing {

struct ModelRunOptions {
  i64 calls = 500;
  u64 seed = 1;
  CheckDevice on;
  double most_bytes = 0;  ///< of a call's operands; 0: 64 MB on the emulated device, 512 MB on a GPU
  double most_flops = 0;  ///< 0: 1e9 on the emulated device, else any
};
/// A call whose result is wrong, or that has none.
struct ModelFailure {
  CheckResult::Verdict verdict;
  std::string text;  ///< with the words that make it again
};
struct ModelRunReport {
  i64 calls = 0, compared = 0;      ///< made; and of these compared with their references, which cost too much for large ones
  i64 compiled = 0, from_disk = 0;  ///< kernels
  std::vector<ModelFailure> failures;
  std::map<std::string, std::string> left_out;  ///< calls of the model that no draw made small enough, with one of the draws
};

/// Makes random calls within the model's limits on a device, as a server would after its warm-up, and counts what was compiled.
ModelRunReport run_model(const Model& model, const ModelRunOptions& options, const std::function<void(const ModelDraw&)>& progress);

}  // namespace quern::testing
