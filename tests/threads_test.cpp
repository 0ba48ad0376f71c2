// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Ops are called by several host threads at once, as docs/calls.md says they may be: other ops and the same one, kernels that nobody has
// loaded yet among them, while other threads ask for workspaces and set what is logged.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "quern/base/log.h"
#include "quern/op/schema.h"
#include "quern/op/workspace.h"
#include "quern/testing/check.h"

namespace quern {
namespace {

struct Work {
  const char* op;
  std::vector<std::string> words;
};

const Work kWork[] = {
    {"norm.rms_norm", {"tokens=5", "hidden=200"}},
    {"norm.fused_add_rms_norm", {"tokens=3", "hidden=96"}},
    {"activation.silu_and_mul", {"tokens=4", "intermediate=72"}},
    {"gemm.dense", {"m=9", "n=24", "k=72"}},
    {"attention.paged", {"batch=2", "capacity=700"}},  // parts in a workspace
    {"kv_cache.append_paged", {"tokens=5"}},
    {"quant.per_token_group", {"m=3"}},
};
constexpr int kThreads = 6, kRounds = 4;

TEST(threads, call_ops_at_once) {
  std::atomic<bool> working{true};
  std::mutex mutex;
  std::string wrong;
  const auto call = [&](int thread) {
    for (int round = 0; round < kRounds; ++round)
      for (size_t i = 0; i < std::size(kWork); ++i) {
        const Work& work =
            kWork[(i + size_t(thread)) % std::size(kWork)];  // each begins with another op; from the second round on several meet
        const Op& op = find_op(work.op);
        testing::CaseArgs args(op, testing::parse_case(op, work.words), u64(1 + thread));
        const RunOptions options = testing::options_of(op, args.which());
        const Problem problem = bind(op, args.args(), options);
        const std::vector<testing::Truth> truths = testing::truth_of(args);
        run(op, args.args(), options);
        const testing::Comparison c = testing::judge(args, truths, problem);
        const std::lock_guard lock(mutex);
        if (!c.ok) wrong += op.id + " in thread " + std::to_string(thread) + ": " + c.message + "\n";
      }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      try {
        call(t);
      } catch (const std::exception& e) {
        const std::lock_guard lock(mutex);
        wrong += e.what() + std::string("\n");
      }
    });
  std::thread beside([&] {
    const Op& op = find_op("attention.paged");
    testing::CaseArgs args(op, testing::parse_case(op, {"batch=2", "capacity=700"}), 1);
    const RunOptions options = testing::options_of(op, args.which());
    const i64 bytes = workspace_bytes(op, args.args(), options);
    while (working) {
      set_log_level(0);
      if (workspace_bytes(op, args.args(), options) != bytes) {
        const std::lock_guard lock(mutex);
        wrong += "workspace_bytes differs\n";
      }
      std::this_thread::yield();
    }
  });
  for (std::thread& t : threads) t.join();
  working = false;
  beside.join();
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace quern
