// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What is recorded, what is kept, what it costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "quern/jit/kernel_table.h"
#include "quern/op/observe.h"
#include "traces.h"

namespace quern::trace_test {
namespace {

using ::testing::HasSubstr;

TEST(tracing, the_newest_calls_are_kept) {
  Recording recording({.max_calls = 3});
  for (int i = 0; i < 5; ++i) run_case(find_op("norm.rms_norm"), {{"tokens", i + 1}, {"hidden", 64}});
  const std::vector<std::string> calls = recording.calls();
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(testing::read_traced_call(calls[0]).op->tensor(testing::read_traced_call(calls[0]).args.get(), 0).shape[0], 3);
}

TEST(tracing, a_new_recording_removes_nothing_of_the_one_before) {
  const auto call_five_times = [] {
    for (int i = 0; i < 5; ++i) run_case(find_op("norm.rms_norm"), {{"tokens", i + 1}, {"hidden", 64}});
  };
  Recording first({.max_calls = 10});
  call_five_times();
  Recording second({.max_calls = 2});
  call_five_times();
  EXPECT_EQ(first.calls().size(), 5u);
  EXPECT_EQ(second.calls().size(), 2u);
}

TEST(tracing, a_record_names_kernels_and_the_symbols_that_profilers_show) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 4}, {"hidden", 64}});
  const Json launch = json_of(recording.only() + "/call.json")["plan"]["launches"][0];
  EXPECT_THAT(launch["kernel"].get<std::string>(), HasSubstr("norm_row<dtype=bf16, add_residual=0, "));
  EXPECT_THAT(launch["entry"].get<std::string>(), HasSubstr("norm_row__bf16_add_residual0_"));
}

/// As the workers of a server are, which forks them after a warm-up.
TEST(tracing, a_forked_process_removes_nothing_of_its_parents) {
  Recording recording({.max_calls = 2});
  testing::CaseArgs c(find_op("norm.rms_norm"), {{"tokens", 4}, {"hidden", 64}}, 1);
  for (int i = 0; i < 2; ++i) run(c.op(), c.args(), {});
  const std::vector<std::string> of_parent = recording.calls();
  EXPECT_EXIT(
      {
        const Problem problem = bind(c.op(), c.args(), {});
        const Plan plan = make_plan(c.op(), problem, emulated().info());
        for (int i = 0; i < 3; ++i) observe({c.op(), c.args(), {}, problem, plan, emulated()}, [](const ObservedCall&) {});
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(recording.calls().size(), 4u);
  for (const std::string& folder : of_parent) EXPECT_TRUE(std::filesystem::exists(folder)) << folder;
}

TEST(tracing, data_beyond_the_bound_is_left_out_and_said_so) {
  Recording recording({.max_bytes = 1000});
  run_case(find_op("norm.rms_norm"), {{"tokens", 16}, {"hidden", 64}});
  const testing::TracedCall call = testing::read_traced_call(recording.only());
  EXPECT_THAT(call.left_out, HasSubstr("QN_TRACE_MAX_MB"));
  EXPECT_FALSE(std::filesystem::exists(recording.only() + "/x.before"));
  EXPECT_EQ(bind(*call.op, call.args.get(), call.options)[Axis::tokens], 16);
  EXPECT_THROW(testing::replay(call, emulated()), Error);
}

TEST(tracing, without_data_each_distinct_call_is_recorded_once) {
  Recording recording({.max_bytes = 0});
  testing::CaseArgs c(find_op("norm.rms_norm"), {{"tokens", 4}, {"hidden", 64}}, 1);
  for (int i = 0; i < 3; ++i) run(c.op(), c.args(), {});
  EXPECT_EQ(recording.calls().size(), 1u);
  run(c.op(), c.args(), {.pdl = true});
  EXPECT_EQ(recording.calls().size(), 2u);
}

TEST(tracing, without_data_calls_are_distinct_by_all_that_a_record_says) {
  Recording recording({.max_bytes = 0});
  const Op& op = find_op("norm.rms_norm");
  const Case base = {{"tokens", 4}, {"hidden", 64}};
  const std::pair<const char*, double> changes[] = {{"tokens", 5},       {"hidden", 72}, {"x.dtype", double(int(DType::f32))},
                                                    {"x.pad", 8},        {"out.pad", 8}, {"x.shift", 1},
                                                    {"out.in_place", 1}, {"eps", 1e-3}};
  std::vector<std::unique_ptr<testing::CaseArgs>> calls;
  calls.push_back(std::make_unique<testing::CaseArgs>(op, base, 1));
  for (const auto& [word, value] : changes) {
    Case which = base;
    which[word] = value;
    calls.push_back(std::make_unique<testing::CaseArgs>(op, which, 1));
  }
  testing::CaseArgs large(op, {{"tokens", 999}, {"hidden", 64}}, 1);
  DeviceInfo few = emulated().info();
  few.sms = 1;
  const std::unique_ptr<Device> other = make_emulated_device(few, {});
  for (int round = 0; round < 2; ++round) {
    for (const auto& c : calls) run(op, c->args(), testing::options_of(op, c->which()));
    run(op, calls[0]->args(), {.variant = op.variants[0].name});
    run(op, calls[0]->args(), {.batch_invariant = true});
    run(op, calls[0]->args(), {.skip_check = true});
    run(op, large.args(), {});
    run(op, large.args(), {.device = other.get()});  // another grid
  }
  std::set<std::string> texts;
  for (const std::string& folder : recording.calls()) texts.insert(read_file(folder + "/call.json").value());
  EXPECT_EQ(texts.size(), std::size(changes) + 6);
  EXPECT_EQ(recording.calls().size(), texts.size());
}

TEST(tracing, without_data_no_distinct_call_is_removed) {
  Recording recording({.max_calls = 3, .max_bytes = 0});
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 5; ++i) run_case(find_op("norm.rms_norm"), {{"tokens", i + 1}, {"hidden", 64}});
  std::set<i64> tokens;
  for (const std::string& folder : recording.calls()) tokens.insert(json_of(folder + "/call.json")["tensors"][0]["shape"][0].get<i64>());
  EXPECT_EQ(tokens, (std::set<i64>{1, 2, 3, 4, 5}));
}

TEST(tracing, a_call_that_could_not_be_written_is_recorded_when_it_can) {
  Recording recording({.max_bytes = 0});
  testing::CaseArgs c(find_op("norm.rms_norm"), {{"tokens", 4}, {"hidden", 64}}, 1);
  remove_folder(recording.folder);
  write_file(recording.folder, "in the way");
  run(c.op(), c.args(), {});
  ASSERT_EQ(::unlink(recording.folder.c_str()), 0);
  run(c.op(), c.args(), {});
  EXPECT_EQ(recording.calls().size(), 1u);
}

/// Another thread may look for the first time at this moment; what it saw before must not be the answer after.
TEST(tracing, a_recording_that_starts_beside_calls_is_not_lost) {
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&] {
      while (!done) calls_observed();
    });
  int lost = 0;
  for (int i = 0; i < 2000; ++i) {
    set_trace({});
    set_trace({.folder = "/nowhere"});
    lost += !calls_observed();
  }
  done = true;
  for (std::thread& t : others) t.join();
  set_trace({});
  EXPECT_EQ(lost, 0);
}

TEST(tracing, a_captured_call_is_recorded_without_data) {
  testing::CaseArgs c(find_op("norm.rms_norm"), {{"tokens", 4}, {"hidden", 64}}, 1);
  run(c.op(), c.args(), {});
  Recording recording;
  Device& device = emulated();
  const Stream stream = device.create_stream();
  device.begin_capture(stream);
  run(c.op(), c.args(), {.stream = stream});
  device.destroy_graph(device.end_capture(stream));
  device.destroy(stream);
  EXPECT_THAT(testing::read_traced_call(recording.only()).left_out, HasSubstr("capturing"));
}

// ---- what it costs -----------------------------------------------------------------------------------------------------

/// The names of a kernel's fields are read from its sources, 0.1 ms each time, and a document of a call is another.
TEST(tracing, a_call_that_was_seen_is_neither_printed_nor_written_again) {
  testing::CaseArgs c(find_op("norm.rms_norm"), {{"tokens", 4}, {"hidden", 64}}, 1);
  const Problem problem = bind(c.op(), c.args(), {});
  const Plan plan = make_plan(c.op(), problem, emulated().info());
  const auto best_us = [&](auto&& f) {
    double best = HUGE_VAL;
    for (int i = 0; i < 300; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      f();
      best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
  };
  Recording recording({.max_bytes = 0});
  setenv("QN_SOURCE_DIR", ::testing::TempDir().c_str(), 1);  // whoever prints a kernel then reads its sources, which takes ms
  const double print_us = best_us([&] { jit::print(plan.launches[0].spec); });
  const double seen_us = best_us([&] { observe({c.op(), c.args(), {}, problem, plan, emulated()}, [](const ObservedCall&) {}); });
  unsetenv("QN_SOURCE_DIR");
  EXPECT_EQ(recording.calls().size(), 1u);
  EXPECT_LT(seen_us, print_us / 4) << "one that prints takes " << print_us << " us";
}

}  // namespace
}  // namespace quern::trace_test
