// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Every kernel that a call within a model file's limits can reach is in its warm-up list. Calls are drawn at random and walked
// along each range, bound from tensors, without anything of the enumeration that made the list.
#include <gtest/gtest.h>

#include <map>

#include "full_sweep.h"
#include "quern/jit/sources.h"
#include "quern/op/reach.h"
#include "quern/testing/case_args.h"
#include "quern/testing/model_calls.h"

namespace quern {
namespace {

class ModelCoverage : public ::testing::TestWithParam<std::string> {
 protected:
  ModelCoverage()
      : model(load_model(GetParam())), device(device_info_of(Arch{})), reached(list_of(GetParam())), seen(reached.kernels.size()) {}

  /// Made once for both tests.
  const Reach& list_of(const std::string& name) {
    static std::map<std::string, Reach> lists;
    const auto at = lists.find(name);
    return at != lists.end() ? at->second : lists[name] = reach(model, device);
  }

  /// Plans the call and looks each kernel up. False when it is not in the list, with a failure that shows the call.
  bool covered(const testing::ModelDraw& draw) {
    const testing::ArgsStorage args = testing::fake_args(*draw.op, draw.which);
    const Problem problem = bind(*draw.op, args.get(), testing::options_of(*draw.op, draw.which));
    if (problem.empty) return true;
    const Plan plan = make_plan(*draw.op, problem, device);
    ++plans;
    for (i32 i = 0; i < plan.count; ++i) {
      size_t k = 0;
      while (k < reached.kernels.size() && !(reached.kernels[k].spec == plan.launches[i].spec)) ++k;
      if (k == reached.kernels.size()) {
        ADD_FAILURE() << model.name << ", " << draw.call->does << ": " << jit::print(plan.launches[i].spec)
                      << " is not in the list; reached by quern plan " << draw.op->id << " " << testing::case_text(*draw.op, draw.which);
        return false;
      }
      ++seen[k];
    }
    return true;
  }

  Model model;
  DeviceInfo device;
  const Reach& reached;
  std::vector<i64> seen;  ///< how often each kernel of the list was reached
  i64 plans = 0;
};

TEST_P(ModelCoverage, random_calls_reach_the_list_and_nothing_else) {
  testing::ModelCalls calls(model, 20260701);
  const i64 count = full_sweep() ? 800000 : 200000;  // the rarest kernel of llama-3.1-8b is one of some 100000 draws
  for (i64 i = 0; i < count; ++i)
    if (!covered(calls.draw())) return;
  for (size_t k = 0; k < seen.size(); ++k)
    EXPECT_GT(seen[k], 0) << "no random call reached " << jit::print(reached.kernels[k].spec) << " for " << reached.kernels[k].calls[0];
  std::printf("%s: %lld random calls reach %zu of %zu kernels\n", model.name.c_str(), static_cast<long long>(plans), seen.size(),
              reached.kernels.size());
}

/// --arch plans for one well-known GPU; others of the arch have more or fewer multiprocessors.
TEST_P(ModelCoverage, other_gpus_of_the_arch_reach_no_other_kernels) {
  testing::ModelCalls calls(model, 3);
  for (const i32 sms : {66, 78, 114, 144}) {
    device.sms = sms;
    for (i64 i = 0; i < (full_sweep() ? 100000 : 2000); ++i)
      if (!covered(calls.draw())) return;
  }
}

/// A size that entered a Config would be seen here first, as hundreds of kernels. The LM head of Qwen3-30B-A3B has the most, 54. Its
/// vocabulary is split over 1, 2, 4 or 8 GPUs: these four widths meet eight of the nine tiles for many rows, and up to two narrow
/// tiles each. Operands that are not aligned have kernels of their own.
TEST_P(ModelCoverage, a_call_has_few_kernels) {
  for (const ReachedCall& call : reached.calls) EXPECT_LE(call.kernels.size(), 56u) << call.does;
}

TEST_P(ModelCoverage, every_size_along_each_range_stays_in_the_list) {
  testing::ModelCalls calls(model, 7);
  for (const Limit& l : model.limits) {
    if (!l.range) continue;
    // Up to 2^18 sizes, all of them in the tests' full form; else all at first and then every 61st, a prime: all remainders occur.
    const i64 most = std::min(l.values[1], l.values[0] + (i64(1) << 18));
    for (i64 size = l.values[0]; size <= most; size += full_sweep() || size < 600 ? 1 : 61 * (1 + size / 40000)) {
      for (size_t c = 0; c < calls.size(); ++c) {
        bool uses = false;
        for (const ModelWord& w : calls.call(c).words)
          for (const std::string& text : w.values) uses |= text.find(l.name) != std::string::npos;
        if (uses && !covered(calls.draw(c, {{l.name, size}}))) return;
      }
    }
  }
  std::printf("%s: %lld calls\n", model.name.c_str(), static_cast<long long>(plans));
}

std::vector<std::string> models() {
  std::vector<std::string> names;
  for (const std::string& name : jit::source_names()) {
    if (name.starts_with("models/")) names.push_back(name.substr(7, name.size() - 12));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(models, ModelCoverage, ::testing::ValuesIn(models()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace quern
