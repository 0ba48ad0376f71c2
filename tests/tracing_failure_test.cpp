// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Failing calls: what the error says and what is on disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "cli_process.h"
#include "quern/device/cuda_driver.h"
#include "quern/op/observe.h"
#include "quern/ops/attention/paged.h"
#include "traces.h"

namespace quern::trace_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// A decode call whose page table names a page that the cache has not.
struct WrongPage {
  testing::CaseArgs c{find_op("attention.paged"),
                      {{"batch", 2}, {"heads_kv", 2}, {"head_dim", 64}, {"capacity", 40}, {"page_size", 16}, {"length", 40}},
                      1};
  attention::PagedArgs& args = *static_cast<attention::PagedArgs*>(c.args());
  explicit WrongPage(i32 page) { static_cast<i32*>(args.page_table.data)[1] = page; }
};

const char* const kWhere = "INDEX: `page_table`\\[0, 1\\] is [0-9]+, expected 0 to 7 ";

TEST(tracing, the_error_of_a_failing_call_names_op_record_and_how_to_replay_it) {
  Recording recording;
  WrongPage wrong(1 << 20);
  std::string text = "nothing thrown";
  try {
    attention::paged(wrong.args, {.device = &checked()});
  } catch (const Error& e) {
    text = e.what();
    EXPECT_EQ(e.kind(), ErrorKind::device);
    EXPECT_EQ(e.op(), "attention.paged");
  }
  EXPECT_THAT(text, ::testing::StartsWith("attention.paged: "));
  EXPECT_THAT(text, HasSubstr("quern run --replay " + recording.only()));
  EXPECT_EQ(json_of(recording.only() + "/result.json")["status"], "failed");
  EXPECT_TRUE(std::filesystem::exists(recording.only() + "/k_cache.before"));
  const ProcessResult r = command({"run", "--replay", recording.only(), "--checked"});
  EXPECT_EQ(r.status, 3) << r.output;
  EXPECT_THAT(r.output, ContainsRegex(kWhere));
}

/// Nobody is left to write anything after the launch; what it was given is on disk, and checked mode finds the entry.
TEST(tracing, a_call_that_takes_the_process_down_is_on_disk) {
  Recording recording;
  recording.stop();
  EXPECT_EXIT(
      {
        TraceOptions options;
        options.folder = recording.folder;
        set_trace(options);
        WrongPage wrong(1 << 28);
        const Problem problem = bind(wrong.c.op(), &wrong.args, {});
        const Plan plan = make_plan(wrong.c.op(), problem, emulated().info());
        observe({wrong.c.op(), &wrong.args, {}, problem, plan, emulated()}, [](const ObservedCall&) { std::_Exit(9); });
      },
      ::testing::ExitedWithCode(9), "");
  const testing::TracedCall call = testing::read_traced_call(recording.only());
  EXPECT_FALSE(call.finished);
  EXPECT_EQ(call.error, "it did not come to an end");
  const ProcessResult r = command({"run", "--replay", recording.only(), "--device", "emu", "--checked"});
  EXPECT_EQ(r.status, 3) << r.output;
  EXPECT_THAT(r.output, ContainsRegex(kWhere));
}

TEST(tracing, the_error_of_an_earlier_kernel_names_the_last_calls_or_how_to_know_them) {
  const auto text_of = [](i32 result) {
    try {
      cuda::fail(result, "cuStreamSynchronize");
    } catch (const Error& e) { return std::string(e.what()); }
  };
  // In another process nothing was remembered yet.
  EXPECT_EXIT(
      {
        std::fputs(text_of(cuda::kErrorIllegalAddress).c_str(), stderr);
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "an earlier launch of this process is at fault");
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  run_case(find_op("activation.silu_and_mul"), {{"tokens", 2}, {"intermediate", 64}});
  const std::string text = text_of(cuda::kErrorIllegalAddress);
  EXPECT_THAT(text, HasSubstr("newest first: activation.silu_and_mul: activate_row_chunk"));
  EXPECT_LT(text.find("activation.silu_and_mul"), text.find("norm.rms_norm: norm_row<"));
  EXPECT_THAT(text, HasSubstr(recording.calls()[0]));
  EXPECT_THAT(text_of(cuda::kErrorInvalidValue), Not(HasSubstr("earlier launch")));
}

}  // namespace
}  // namespace quern::trace_test
