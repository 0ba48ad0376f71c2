// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Recorded calls that are replayed: here, in another process, on another device, with hooks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "cli_process.h"
#include "quern/jit/kernel_table.h"
#include "quern/op/observe.h"
#include "quern/ops/attention/paged.h"
#include "traces.h"

namespace quern::trace_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(tracing, every_op_replays_bit_for_bit_and_on_another_arch) {
  for (const auto& [id, op] : registry()) {
    if (!op->reference) continue;
    Recording recording;
    run_case(*op, {});
    recording.stop();
    expect_replays(recording.only(), emulated(), true);
    expect_replays(recording.only(), device_from_name("emu:sm_80"), false);
  }
}

TEST(tracing, another_process_replays_and_sees_a_changed_input) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 3}, {"hidden", 96}, {"x.pad", 8}});
  const std::string folder = recording.only();
  ProcessResult r = command({"run", "--replay", folder});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("out: the recorded bits"));
  std::string x = read_file(folder + "/x.before").value();
  ASSERT_EQ(x.size(), 3u * 96 * 2);  // packed, whatever the strides
  x[1] = char(x[1] ^ 0x40);
  write_file(folder + "/x.before", x);
  r = command({"run", "--replay", folder});
  EXPECT_EQ(r.status, 1) << r.output;
  EXPECT_THAT(r.output, HasSubstr("elements DIFFER from the record"));
}

/// K and V in one buffer, as one layer of a cache of several has them.
TEST(tracing, tensors_that_share_memory_share_it_in_the_replay) {
  const Op& op = find_op("attention.paged");
  testing::CaseArgs c(op, {{"batch", 2}, {"heads_kv", 2}, {"head_dim", 64}, {"capacity", 40}}, 1);
  auto a = *static_cast<attention::PagedArgs*>(c.args());
  const i64 page = a.k_cache.numel() / a.k_cache.shape[0];
  std::vector<u16> cache(size_t(a.k_cache.shape[0] * page * 6), 0xFFFF);  // [pages, layer 0..2, k or v, ...]
  int half = 0;
  for (TensorView* v : {&a.k_cache, &a.v_cache}) {
    TensorView to = *v;
    to.data = cache.data() + (2 + half++) * page;
    to.strides[0] = 6 * page;
    for (i64 p = 0; p < to.shape[0]; ++p)
      for (i64 i = 0; i < page; ++i)
        std::memcpy(static_cast<u16*>(to.data) + p * 6 * page + i, static_cast<u16*>(v->data) + p * page + i, 2);
    *v = to;
  }
  Recording recording;
  attention::paged(a);
  recording.stop();
  const Json j = json_of(recording.only() + "/call.json");
  ASSERT_EQ(j["tensors"][1]["name"], "k_cache");
  EXPECT_EQ(j["tensors"][1]["memory"], j["tensors"][2]["memory"]);
  EXPECT_EQ(j["tensors"][2]["offset"].get<i64>() - j["tensors"][1]["offset"].get<i64>(), page * 2);
  EXPECT_EQ(std::filesystem::file_size(recording.only() + "/k_cache.before"), size_t(a.k_cache.numel() * 2));
  expect_replays(recording.only(), emulated(), true);
  expect_replays(recording.only(), checked(), true);
}

TEST(tracing, an_output_in_place_of_an_input_stays_there) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 3}, {"hidden", 100}, {"x.shift", 1}, {"out.in_place", 1}});
  recording.stop();
  const testing::TracedCall call = testing::read_traced_call(recording.only());
  EXPECT_EQ(call.memory.size(), 2u);
  EXPECT_EQ(call.memory[size_t(call.places[0].memory)].misalignment % 256, 2);
  EXPECT_EQ(bind(*call.op, call.args.get(), call.options).tensors[0].alignment, 2);
  expect_replays(recording.only(), emulated(), true);
}

/// Of an arch are devices with more and fewer multiprocessors, and grids depend on them.
TEST(tracing, a_device_that_plans_differently_is_judged_by_the_reference_alone) {
  Recording recording;
  run_case(find_op("attention.paged"),
           {{"batch", 1}, {"heads_kv", 1}, {"head_dim", 64}, {"page_size", 16}, {"capacity", 700}, {"length", 700}});
  recording.stop();
  DeviceInfo few = emulated().info();
  few.sms = 1;
  const std::unique_ptr<Device> smaller = make_emulated_device(few, {});
  const testing::TracedCall call = testing::read_traced_call(recording.only());
  const testing::ReplayResult result = testing::replay(call, *smaller);
  EXPECT_FALSE(result.planned_alike) << result.kernels;
  EXPECT_EQ(result.verdict(), testing::ReplayResult::Verdict::right);
  for (const testing::ReplayedOutput& o : result.outputs) EXPECT_FALSE(o.has_bits);
  EXPECT_TRUE(testing::replay(call, emulated()).planned_alike);
  Json j = json_of(recording.only() + "/call.json");
  j["plan"]["launches"][0]["grid"][1] = j["plan"]["launches"][0]["grid"][1].get<i64>() + 1;
  write_file(recording.only() + "/call.json", j.dump());
  const ProcessResult r = command({"run", "--replay", recording.only()});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, AllOf(HasSubstr("planned differently; bits not compared"), Not(HasSubstr("DIFFER"))));
}

/// What a disk does that is full after the inputs: the first output is written and the second is not.
TEST(tracing, a_call_whose_outputs_could_not_be_written_is_compared_with_the_reference_alone) {
  static std::string folder;
  Recording recording;
  testing::CaseArgs c(find_op("norm.fused_add_rms_norm"), {{"tokens", 3}, {"hidden", 64}}, 1);
  const Problem problem = bind(c.op(), c.args(), {});
  const Plan plan = make_plan(c.op(), problem, emulated().info());
  folder = recording.folder;
  observe({c.op(), c.args(), {}, problem, plan, emulated()},
          [](const ObservedCall&) { std::filesystem::create_directory(testing::traced_calls(folder)[0] + "/out.after"); });
  recording.stop();
  EXPECT_EQ(json_of(recording.only() + "/result.json")["status"], kOutputsNotRecorded);
  for (const auto& entry : std::filesystem::directory_iterator(recording.only()))
    EXPECT_NE(entry.path().extension(), ".after") << entry.path();
  const testing::ReplayResult result = testing::replay(testing::read_traced_call(recording.only()), emulated());
  EXPECT_EQ(result.verdict(), testing::ReplayResult::Verdict::right);
  EXPECT_EQ(result.compared(), 2u);
  EXPECT_FALSE(result.has_recorded);
  for (const testing::ReplayedOutput& o : result.outputs) EXPECT_FALSE(o.has_bits);
  EXPECT_THAT(command({"run", "--replay", recording.only()}).output, HasSubstr("the record has no outputs; bits not compared"));
}

TEST(tracing, a_replay_without_anything_to_compare_is_not_right) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 3}, {"hidden", 64}});
  recording.stop();
  std::filesystem::remove(recording.only() + "/result.json");
  const ProcessResult r = command({"run", "--replay", recording.only(), "--json"});
  EXPECT_EQ(r.status, 4) << r.output;
  const Json j = Json::parse(r.output)[0];
  EXPECT_EQ(j["ok"], false);
  EXPECT_EQ(j["compared"], 0);
  EXPECT_THAT(command({"run", "--replay", recording.only()}).output, HasSubstr("nothing was compared"));
}

TEST(tracing, what_lies_between_rows_is_no_part_of_a_record) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}, {"x.pad", 8}});
  recording.stop();
  EXPECT_EQ(std::filesystem::file_size(recording.only() + "/x.before"), 2u * 64 * 2);
  const testing::TracedCall call = testing::read_traced_call(recording.only());
  EXPECT_EQ(call.memory[size_t(call.places[0].memory)].bytes, (64 + 8 + 64) * 2);
}

const jit::Hooks kSlope = {"tracing_test::Slope", "slope", R"(
namespace tracing_test {
using namespace quern;
struct Slope {
  QN_DEVICE f32 logit(f32 x, const attention::HookContext& c) {
    return x - f32(*reinterpret_cast<const float*>(c.params)) * f32(float(c.query_position - c.key_position));
  }
};
}  // namespace tracing_test
)"};

TEST(tracing, hooks_and_their_parameters_are_recorded) {
  const Op& op = find_op("attention.paged");
  testing::CaseArgs c(op, {{"batch", 2}, {"heads_kv", 1}, {"head_dim", 64}, {"capacity", 40}}, 1);
  auto& a = *static_cast<attention::PagedArgs*>(c.args());
  a.hooks = &kSlope;
  const float slope = 0.5f;
  std::memcpy(a.hook_params, &slope, sizeof slope);
  Recording recording;
  attention::paged(a);
  recording.stop();
  const testing::TracedCall call = testing::read_traced_call(recording.only(), true);
  const testing::ReplayResult result = testing::replay(call, emulated());
  for (const testing::ReplayedOutput& o : result.outputs) EXPECT_EQ(o.different, 0) << o.name;
  const auto& read = *static_cast<const attention::PagedArgs*>(call.args.get());
  EXPECT_STREQ(read.hooks->text, kSlope.text);
  EXPECT_EQ(std::memcmp(read.hook_params, a.hook_params, sizeof a.hook_params), 0);
  // Another record with these hooks is of the same kernel, which a list holds once
  const testing::TracedCall again = testing::read_traced_call(recording.only(), true);
  EXPECT_EQ(static_cast<const attention::PagedArgs*>(again.args.get())->hooks, read.hooks);
  EXPECT_TRUE(make_plan(op, bind(op, again.args.get(), {}), emulated().info()).launches[0].spec ==
              make_plan(op, bind(op, call.args.get(), {}), emulated().info()).launches[0].spec);
  // The reference knows no hooks, so it disagrees: the hooks were run.
  EXPECT_FALSE(result.outputs[0].replayed.ok);
}

/// What hooks read is recorded as other tensors are.
TEST(tracing, tensors_of_hooks_are_recorded) {
  const Op& op = find_op("attention.paged");
  testing::CaseArgs c(op, {{"batch", 2}, {"heads_kv", 1}, {"gqa", 4}, {"head_dim", 64}, {"capacity", 40}}, 1);
  auto& a = *static_cast<attention::PagedArgs*>(c.args());
  a.hooks = attention::hooks_of(
      "struct Slopes { QN_DEVICE f32 logit(f32 x, const HookContext& at) { return x - real_at(at.tensors[2], at.head_q) * f32(float(at.key_position)); } };");
  float slopes[4][3] = {{0.1f}, {0.2f}, {0.3f}, {0.4f}};
  a.hook_tensors[2] = TensorView(slopes, DType::f32, {4, 3}).slice(1, 0, 1);
  a.hook_tensors[2].rank = 1;
  Recording recording;
  attention::paged(a);
  recording.stop();
  std::memset(slopes, 0, sizeof slopes);
  const testing::TracedCall call = testing::read_traced_call(recording.only(), true);
  const TensorView& read = static_cast<const attention::PagedArgs*>(call.args.get())->hook_tensors[2];
  EXPECT_EQ(shape_string(read), "[4]");
  EXPECT_EQ(read.strides[0], 3);
  const testing::ReplayResult result = testing::replay(call, emulated());
  for (const testing::ReplayedOutput& o : result.outputs) EXPECT_TRUE(o.has_bits && o.different == 0) << o.name;
}

/// The text of hooks is compiled and loaded: a folder of a stranger must not bring its own.
TEST(tracing, hooks_of_no_registered_op_are_run_only_when_trusted) {
  Op& op = const_cast<Op&>(find_op("attention.paged"));
  testing::CaseArgs c(op, {{"batch", 2}, {"heads_kv", 1}, {"head_dim", 64}, {"capacity", 40}}, 1);
  auto& a = *static_cast<attention::PagedArgs*>(c.args());
  a.hooks = &kSlope;
  const float slope = 0.5f;
  std::memcpy(a.hook_params, &slope, sizeof slope);
  Recording recording;
  attention::paged(a);
  recording.stop();
  const std::string folder = recording.only();
  ProcessResult r = command({"run", "--replay", folder});
  EXPECT_EQ(r.status, 2) << r.output;
  EXPECT_THAT(r.output, AllOf(HasSubstr("has the hooks \"slope\", code that no registered op has"), HasSubstr("--trust-hooks")));
  r = command({"run", "--replay", folder, "--trust-hooks"});
  EXPECT_EQ(r.status, 1) << r.output;  // they ran: the reference knows none
  EXPECT_THAT(r.output, HasSubstr("the recorded bits"));
  EXPECT_EQ(command({"run", "norm.rms_norm", "--trust-hooks"}).status, 2);
  // Those of a registered op are its own, whatever the record calls them; with another letter they are not
  Json j = json_of(folder + "/call.json");
  j["hooks"]["name"] = "other";
  write_file(folder + "/call.json", j.dump());
  op.hooks = &kSlope;
  const testing::TracedCall own = testing::read_traced_call(folder);
  EXPECT_EQ(static_cast<const attention::PagedArgs*>(own.args.get())->hooks, &kSlope);
  for (const char* part : {"type", "text"}) {
    Json changed = j;
    changed["hooks"][part] = j["hooks"][part].get<std::string>() + " ";
    write_file(folder + "/call.json", changed.dump());
    EXPECT_THROW(testing::read_traced_call(folder), Error) << part;
  }
  op.hooks = nullptr;
}

}  // namespace
}  // namespace quern::trace_test
