// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Freeze and capture: what must not compile, load or allocate says so at once, and says what to do.
#include "quern/jit/freeze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "cache_processes.h"
#include "quern/base/fs.h"
#include "quern/base/subprocess.h"
#include "quern/device/emulated.h"
#include "quern/jit/kernel_table.h"
#include "quern/op/call_words.h"
#include "quern/op/observe.h"
#include "quern/ops/attention/paged.h"
#include "quern/testing/case_args.h"
#include "quern/testing/pairwise.h"

namespace quern {
namespace {

using ::testing::AllOf;
using testing::CaseArgs;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<Device> emulated() { return make_emulated_device(device_info_of(Arch::parse("sm_90a")), {}); }

std::vector<std::string> split(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

class jit_freeze : public cache_test::PrivateCache {
 protected:
  /// The error of a call, which must be one of kind frozen.
  static std::string frozen_text(const Op& op, CaseArgs& args, const RunOptions& options) {
    try {
      run(op, args.args(), options);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::frozen) << e.what();
      EXPECT_EQ(e.op(), op.id);
      return e.what();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
};

TEST_F(jit_freeze, refuses_a_compile_and_names_op_kernel_and_command) {
  const Op& op = find_op("norm.rms_norm");
  CaseArgs args(op, {{"tokens", 3}, {"hidden", 96}, {"x.pad", 8}}, 1);
  const auto device = emulated();
  const RunOptions options{.device = device.get()};
  const auto refused =
      AllOf(HasSubstr("norm.rms_norm: norm_row<dtype="), HasSubstr("which is frozen"),
            HasSubstr("quern plan --compile norm.rms_norm tokens=3 hidden=96"), HasSubstr("x.pad=8"), HasSubstr("--device emu:sm_90a"));
  jit::freeze();
  EXPECT_TRUE(jit::frozen());
  const i64 before = jit::counters().compiled;
  EXPECT_THAT(frozen_text(op, args, options), refused);
  jit::freeze(false);
  setenv("QN_JIT_FROZEN", "1", 1);
  EXPECT_THAT(frozen_text(op, args, options), refused);
  EXPECT_EQ(jit::counters().compiled, before);
  // The command, as the error states it, makes the call possible.
  const std::string text = frozen_text(op, args, options);
  std::vector<std::string> command = split(text.substr(text.find("quern plan")));
  command[0] = QN_CLI;
  unsetenv("QN_JIT_FROZEN");
  const ProcessResult compiled = run_process(command);
  EXPECT_EQ(compiled.status, 0) << compiled.output;
  setenv("QN_JIT_FROZEN", "1", 1);
  run(op, args.args(), options);
  EXPECT_EQ(jit::counters().compiled, before);
}

const jit::Hooks kHalf = {"freeze_test::Half", "half_logits", R"(
namespace freeze_test {
using namespace quern;
struct Half {
  QN_DEVICE f32 logit(f32 x, const attention::HookContext&) { return x * f32(0.5f); }
};
}  // namespace freeze_test
)"};

/// No command line states hooks, so the error names the way that has them; taken, it makes the call possible.
TEST_F(jit_freeze, a_call_with_hooks_is_sent_to_a_trace) {
  const Op& op = find_op("attention.paged");
  CaseArgs args(op, {{"batch", 2}, {"heads_kv", 1}, {"head_dim", 64}, {"capacity", 40}}, 1);
  static_cast<attention::PagedArgs*>(args.args())->hooks = &kHalf;
  const std::string trace = folder_ + "/trace", cold = folder_ + "/cold";
  set_trace({.folder = trace, .max_bytes = 0});
  const auto first = emulated(), second = emulated();
  run(op, args.args(), {.device = first.get()});
  set_trace({});
  setenv("QN_CACHE_DIR", cold.c_str(), 1);
  jit::freeze();
  EXPECT_THAT(frozen_text(op, args, {.device = second.get()}),
              AllOf(HasSubstr("with the hooks half_logits"), HasSubstr("quern warm --trace FOLDER --device emu:sm_90a --trust-hooks"),
                    Not(HasSubstr("plan --compile"))));
  const ProcessResult refused = run_process({QN_CLI, "warm", "--trace", trace, "--device", "emu:sm_90a"});
  EXPECT_EQ(refused.status, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("--trust-hooks"));
  const ProcessResult warmed = run_process({QN_CLI, "warm", "--trace", trace, "--device", "emu:sm_90a", "--trust-hooks"});
  EXPECT_EQ(warmed.status, 0) << warmed.output;
  EXPECT_NO_THROW(run(op, args.args(), {.device = second.get()}));
}

TEST_F(jit_freeze, loads_from_disk_but_not_while_capturing) {
  const Op& op = find_op("norm.rms_norm");
  CaseArgs args(op, {{"tokens", 3}, {"hidden", 96}}, 1);
  const auto first = emulated(), second = emulated();
  run(op, args.args(), {.device = first.get()});
  jit::freeze();
  const i64 before = jit::counters().from_disk;
  // A second device finds the kernel on disk: while a stream of it captures it may not load it.
  const RunOptions capturing{.device = second.get(), .stream = second->create_stream()};
  second->begin_capture(capturing.stream);
  EXPECT_THAT(frozen_text(op, args, capturing),
              AllOf(HasSubstr("is not loaded yet"), HasSubstr("before the capture"), HasSubstr("quern plan --compile norm.rms_norm")));
  EXPECT_EQ(jit::counters().from_disk, before);
  second->destroy_graph(second->end_capture(capturing.stream));
  run(op, args.args(), {.device = second.get()});
  EXPECT_EQ(jit::counters().from_disk, before + 1);
  // What is loaded may be captured.
  second->begin_capture(capturing.stream);
  run(op, args.args(), capturing);
  second->destroy_graph(second->end_capture(capturing.stream));
  second->destroy(capturing.stream);
}

/// What would be read only when a kernel is not in the cache, or the cache is full, is wrong already when a kernel comes from it.
TEST_F(jit_freeze, a_wrong_variable_is_told_although_the_kernel_is_in_the_cache) {
  const Op& op = find_op("norm.rms_norm");
  CaseArgs args(op, {{"tokens", 3}, {"hidden", 96}}, 1);
  const auto first = emulated(), second = emulated();
  run(op, args.args(), {.device = first.get()});
  for (const auto& [name, value, expected] : {std::tuple{"QN_JIT_FROZEN", "fals", "0 or 1"},
                                              {"QN_CACHE_LIMIT_MB", "99999999999999999999", "0 to 1099511627776"},
                                              {"QN_JIT_COMPILER", "nvrtcc", "one of nvrtc, nvcc"}}) {
    setenv(name, value, 1);
    try {
      run(op, args.args(), {.device = second.get()});
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::value);
      EXPECT_THAT(e.what(), HasSubstr("`" + std::string(name) + "` is '" + value + "', expected " + expected));
    }
    unsetenv(name);
  }
  run(op, args.args(), {.device = second.get()});
}

TEST_F(jit_freeze, a_workspace_is_not_allocated_while_capturing) {
  const Op& op = find_op("gemm.dense");
  CaseArgs args(op, {{"m", 1}, {"n", 128}, {"k", 4104}}, 1);
  const auto device = emulated();
  RunOptions options{.device = device.get(), .stream = device->create_stream(), .variant = "portable"};
  const Plan plan = make_plan(op, bind(op, args.args(), options), device->info());
  ASSERT_GT(plan.workspace, 0) << "this case shall split k";
  run(op, args.args(), options);
  device->begin_capture(options.stream);
  EXPECT_EQ(frozen_text(op, args, options), "gemm.dense: `workspace` is absent while the stream is capturing, expected " +
                                                std::to_string(plan.workspace) + " bytes (256-byte aligned) that were allocated before");
  void* const memory = device->allocate(size_t(plan.workspace), "workspace");
  options.workspace = {memory, plan.workspace};
  run(op, args.args(), options);
  device->destroy_graph(device->end_capture(options.stream));
  device->release(memory);
  device->destroy(options.stream);
}

TEST_F(jit_freeze, the_default_stream_cannot_be_captured) {
  const auto device = emulated();
  try {
    device->begin_capture({});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::device);
    EXPECT_THAT(e.what(), HasSubstr("the default stream cannot be captured"));
  }
  EXPECT_FALSE(device->capturing({}));
}

/// The command that the error names makes the kernels that the call lacked, for every op and layout that cases reach.
TEST(jit_frozen_command, plans_the_kernels_of_the_call) {
  const DeviceInfo h200 = device_info_of(Arch::parse("sm_90a"));
  for (const auto& [id, op] : registry())
    for (const Case& given : testing::pairwise(op->cases, [&, op = op](const Case& c) { return testing::runs(*op, c, h200); })) {
      const auto plan_of = [&, op = op](const Case& which, std::string& words) {
        const Case full = testing::derived(*op, which);
        const testing::ArgsStorage args = testing::fake_args(*op, full);
        const RunOptions options = testing::options_of(*op, full);
        words = call_words(*op, args.get(), options);
        const Problem problem = bind(*op, args.get(), options);
        return problem.empty ? Plan{} : make_plan(*op, problem, h200);
      };
      std::string words, again;
      const Plan wanted = plan_of(given, words), got = plan_of(testing::parse_case(*op, split(words)), again);
      ASSERT_EQ(wanted.count, got.count) << id << " " << words;
      for (i32 i = 0; i < wanted.count; ++i)
        EXPECT_EQ(jit::print(wanted.launches[i].spec), jit::print(got.launches[i].spec)) << id << " " << words;
    }
}

}  // namespace
}  // namespace quern
