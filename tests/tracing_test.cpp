// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Records of calls and their replay, and the log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <tuple>

#include "cli_process.h"
#include "quern/base/fs.h"
#include "quern/base/log.h"
#include "quern/device/cuda_driver.h"
#include "quern/device/emulated.h"
#include "quern/jit/kernel_table.h"
#include "quern/op/observe.h"
#include "quern/op/trace.h"
#include "quern/ops/attention/decode_paged.h"
#include "quern/ops/kv_cache/append_paged.h"
#include "quern/testing/replay.h"

namespace quern {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

/// A folder that calls are recorded to while it lives.
class Recording {
 public:
  explicit Recording(TraceOptions options = {}) : folder(make_private_folder((std::filesystem::temp_directory_path() / "quern-trace-").string())) {
    options.folder = folder;
    set_trace(options);
  }
  ~Recording() {
    stop();
    remove_folder(folder);
  }
  void stop() { set_trace({}); }
  std::vector<std::string> calls() const { return testing::traced_calls(folder); }
  std::string only() const { return calls().size() == 1 ? calls()[0] : "recorded " + std::to_string(calls().size()); }

  const std::string folder;
};

Json json_of(const std::string& path) { return Json::parse(read_file(path).value_or("{}")); }

/// The command with variables set.
void run_case(const Op& op, const Case& which, u64 seed = 1) {
  testing::CaseArgs args(op, which, seed);
  run(op, args.args(), testing::options_of(op, args.which()));
}

void expect_replays(const std::string& folder, Device& device, bool bits) {
  const testing::TracedCall call = testing::read_traced_call(folder);
  const testing::ReplayResult result = testing::replay(call, device);
  EXPECT_EQ(result.verdict(), testing::ReplayResult::Verdict::right) << folder;
  EXPECT_EQ(result.compared(), result.outputs.size());
  EXPECT_FALSE(result.outputs.empty());
  for (const testing::ReplayedOutput& o : result.outputs) {
    EXPECT_EQ(o.has_bits, bits);
    EXPECT_EQ(o.different, 0) << call.op->id << " " << o.name << " " << o.first;
    EXPECT_TRUE(o.replayed.ok) << o.replayed.message;
    EXPECT_TRUE(o.recorded.ok) << o.recorded.message;
  }
}

Device& emulated() { return device_of(DeviceId{}); }
Device& checked() {
  static const std::unique_ptr<Device> device = make_emulated_device(emulated().info(), {.checked = true});
  return *device;
}

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
  const Op& op = find_op("attention.decode_paged");
  testing::CaseArgs c(op, {{"batch", 2}, {"heads_kv", 2}, {"head_dim", 64}, {"capacity", 40}}, 1);
  auto a = *static_cast<attention::DecodePagedArgs*>(c.args());
  const i64 page = a.k_cache.numel() / a.k_cache.shape[0];
  std::vector<u16> cache(size_t(a.k_cache.shape[0] * page * 6), 0xFFFF);  // [pages, layer 0..2, k or v, ...]
  int half = 0;
  for (TensorView* v : {&a.k_cache, &a.v_cache}) {
    TensorView to = *v;
    to.data = cache.data() + (2 + half++) * page;
    to.strides[0] = 6 * page;
    for (i64 p = 0; p < to.shape[0]; ++p)
      for (i64 i = 0; i < page; ++i) std::memcpy(static_cast<u16*>(to.data) + p * 6 * page + i, static_cast<u16*>(v->data) + p * page + i, 2);
    *v = to;
  }
  Recording recording;
  attention::decode_paged(a);
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
  run_case(find_op("attention.decode_paged"), {{"batch", 1}, {"heads_kv", 1}, {"head_dim", 64}, {"page_size", 16}, {"capacity", 700}, {"length", 700}});
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
  observe({c.op(), c.args(), {}, problem, plan, emulated()}, [](const ObservedCall&) {
    std::filesystem::create_directory(testing::traced_calls(folder)[0] + "/out.after");
  });
  recording.stop();
  EXPECT_EQ(json_of(recording.only() + "/result.json")["status"], kOutputsNotRecorded);
  for (const auto& entry : std::filesystem::directory_iterator(recording.only())) EXPECT_NE(entry.path().extension(), ".after") << entry.path();
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
    return x - f32(*reinterpret_cast<const float*>(c.params)) * f32(float(c.seq_len - 1 - c.position));
  }
};
}  // namespace tracing_test
)"};

TEST(tracing, hooks_and_their_parameters_are_recorded) {
  const Op& op = find_op("attention.decode_paged");
  testing::CaseArgs c(op, {{"batch", 2}, {"heads_kv", 1}, {"head_dim", 64}, {"capacity", 40}}, 1);
  auto& a = *static_cast<attention::DecodePagedArgs*>(c.args());
  a.hooks = &kSlope;
  const float slope = 0.5f;
  std::memcpy(a.hook_params, &slope, sizeof slope);
  Recording recording;
  attention::decode_paged(a);
  recording.stop();
  const testing::TracedCall call = testing::read_traced_call(recording.only(), true);
  const testing::ReplayResult result = testing::replay(call, emulated());
  for (const testing::ReplayedOutput& o : result.outputs) EXPECT_EQ(o.different, 0) << o.name;
  const auto& read = *static_cast<const attention::DecodePagedArgs*>(call.args.get());
  EXPECT_STREQ(read.hooks->text, kSlope.text);
  EXPECT_EQ(std::memcmp(read.hook_params, a.hook_params, sizeof a.hook_params), 0);
  // Another record with these hooks is of the same kernel, which a list holds once
  const testing::TracedCall again = testing::read_traced_call(recording.only(), true);
  EXPECT_EQ(static_cast<const attention::DecodePagedArgs*>(again.args.get())->hooks, read.hooks);
  EXPECT_TRUE(make_plan(op, bind(op, again.args.get(), {}), emulated().info()).launches[0].spec == make_plan(op, bind(op, call.args.get(), {}), emulated().info()).launches[0].spec);
  // The reference knows no hooks, so it disagrees: the hooks were run.
  EXPECT_FALSE(result.outputs[0].replayed.ok);
}

/// The text of hooks is compiled and loaded: a folder of a stranger must not bring its own.
TEST(tracing, hooks_of_no_registered_op_are_run_only_when_trusted) {
  Op& op = const_cast<Op&>(find_op("attention.decode_paged"));
  testing::CaseArgs c(op, {{"batch", 2}, {"heads_kv", 1}, {"head_dim", 64}, {"capacity", 40}}, 1);
  auto& a = *static_cast<attention::DecodePagedArgs*>(c.args());
  a.hooks = &kSlope;
  const float slope = 0.5f;
  std::memcpy(a.hook_params, &slope, sizeof slope);
  Recording recording;
  attention::decode_paged(a);
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
  EXPECT_EQ(static_cast<const attention::DecodePagedArgs*>(own.args.get())->hooks, &kSlope);
  for (const char* part : {"type", "text"}) {
    Json changed = j;
    changed["hooks"][part] = j["hooks"][part].get<std::string>() + " ";
    write_file(folder + "/call.json", changed.dump());
    EXPECT_THROW(testing::read_traced_call(folder), Error) << part;
  }
  op.hooks = nullptr;
}

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
  const std::pair<const char*, double> changes[] = {{"tokens", 5}, {"hidden", 72}, {"x.dtype", double(int(DType::f32))}, {"x.pad", 8}, {"out.pad", 8}, {"x.shift", 1}, {"out.in_place", 1}, {"eps", 1e-3}};
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
  for (int i = 0; i < 3; ++i) others.emplace_back([&] { while (!done) calls_observed(); });
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

TEST(tracing, a_record_that_was_damaged_or_is_of_another_format_is_refused) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  const std::string folder = recording.only(), text = read_file(folder + "/call.json").value();
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    write_file(folder + "/call.json", changed);
    try {
      testing::read_traced_call(folder);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing thrown");
  };
  EXPECT_THAT(error_with("\"format\": 1", "\"format\": 99"), HasSubstr("is of format 99, expected format 1"));
  EXPECT_THAT(error_with("\"eps\"", "\"epsilon\""), HasSubstr("has the attribute epsilon"));
  EXPECT_THAT(error_with("\"bytes\": 256", "\"bytes\": 255"), HasSubstr("outside its memory"));
  EXPECT_THAT(error_with("\"op\"", "\"o\""), HasSubstr("cannot be read"));
  EXPECT_THAT(error_with("norm.rms_norm", "norm.rms_norn"), HasSubstr("the nearest is norm.rms_norm"));
}

/// The reader's error of a record whose call.json was changed by a JSON patch.
std::string error_of_patched(const std::string& folder, const Json& original, const Json& patch) {
  write_file(folder + "/call.json", original.patch(patch).dump());
  try {
    testing::read_traced_call(folder);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value);
    return e.what();
  }
  return "nothing thrown";
}

TEST(tracing, each_value_of_a_record_is_checked_before_it_is_used) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  const std::string folder = recording.only();
  const Json original = json_of(folder + "/call.json");
  const i64 most = std::numeric_limits<i64>::max();
  const auto replaced = [](const char* path, Json value) { return Json{{{"op", "replace"}, {"path", path}, {"value", std::move(value)}}}; };
  const std::tuple<Json, const char*, const char*> wrong[] = {
      {replaced("/tensors/0/shape", {-2, -64}), "the extent of dim 0 of x -2", "integer in [0, "},
      {replaced("/tensors/0/shape", {2.5, 64}), "the extent of dim 0 of x 2.5", "integer"},
      {replaced("/tensors/0/shape", Json::array()), "the shape [] of x", "1 to 5 extents"},
      {replaced("/tensors/0/shape", {i64(1) << 62, 4}), "the tensor x of shape", "inside the 256 bytes"},
      {replaced("/tensors/0/strides", {-64, 1}), "the stride of dim 0 of x -64", "integer in [0, "},
      {replaced("/tensors/0/strides", {0, 0, 0}), "the strides [0,0,0] of x", "one a dim"},
      {replaced("/tensors/0/offset", most), "the offset of x 9223372036854775807", "integer in [0, "},
      {replaced("/tensors/0/offset", 2), "the tensor x of shape [2,64] and strides [64,1] at offset 2 outside its memory", "256 bytes"},
      {replaced("/tensors/0/memory", i64(1) << 40), "the memory of x 1099511627776", "integer in [0, 2]"},
      {replaced("/tensors/0/memory", -1), "the memory of x -1", "integer in [0, 2]"},
      {replaced("/tensors/1", original["tensors"][0]), "the tensor x twice", "once"},
      {Json{{{"op", "remove"}, {"path", "/tensors/2"}}}, "lacks the tensor out", "all that norm.rms_norm needs"},
      {replaced("/attributes", Json::object()), "lacks the attribute eps", "all of norm.rms_norm"},
      {replaced("/attributes/eps", "hello"), "the attribute eps of \"hello\"", "a number of f32"},
      {replaced("/attributes/eps", 1e300), "the attribute eps of 1e+300", "a number of f32"},
      {replaced("/attributes/eps", true), "the attribute eps of true", "a number of f32"},
      {replaced("/memory/0/misalignment", -100000000), "the misalignment of memory 0 -100000000", "integer in [0, 255]"},
      {replaced("/memory/0/misalignment", 256), "the misalignment of memory 0 256", "integer in [0, 255]"},
      {replaced("/memory/0/bytes", -5), "the bytes of memory 0 -5", "integer in [0, "},
      {replaced("/memory/0/bytes", most), "the bytes of memory 0 9223372036854775807", "integer in [0, "},
      {replaced("/memory/0/bytes", ~u64(0)), "the bytes of memory 0 18446744073709551615", "integer in [0, "},
  };
  for (const auto& [patch, got, expected] : wrong)
    EXPECT_THAT(error_of_patched(folder, original, patch), AllOf(HasSubstr(folder + "/call.json"), HasSubstr(got), HasSubstr(expected)));
  for (const char* word : {"nan", "inf", "-inf"}) EXPECT_EQ(error_of_patched(folder, original, replaced("/attributes/eps", word)), "nothing thrown");
  std::string twice = original.dump();
  twice.replace(twice.find("\"eps\""), 5, "\"eps\": 1, \"eps\"");
  write_file(folder + "/call.json", twice);
  EXPECT_THAT(command({"run", "--replay", folder}).output, HasSubstr("has the key \"eps\" twice"));
}

/// Values of a record are printed in errors, by recursion.
TEST(tracing, a_record_that_nests_too_deep_is_refused) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  const std::string folder = recording.only(), deep = std::string(200000, '[') + std::string(200000, ']');
  for (const auto& [file, from] : {std::pair{"result.json", "\"finished\""}, std::pair{"call.json", "9.999999974752427e-07"}}) {
    std::string text = read_file(folder + "/" + file).value();
    ASSERT_NE(text.find(from), std::string::npos) << text;
    write_file(folder + "/" + file, text.replace(text.find(from), std::strlen(from), deep));
    const ProcessResult r = command({"run", "--replay", folder});
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_THAT(r.output, AllOf(HasSubstr(file), HasSubstr("is nested deeper than 64")));
  }
}

TEST(tracing, a_replay_that_needs_more_memory_than_there_is_is_refused) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  Json j = json_of(recording.only() + "/call.json");
  j["memory"][0]["bytes"] = i64(1) << 46;
  write_file(recording.only() + "/call.json", j.dump());
  const ProcessResult r = command({"run", "--replay", recording.only()});
  EXPECT_EQ(r.status, 3) << r.output;
  EXPECT_THAT(r.output, HasSubstr("the host has no 1407374883"));  // once more for the reference
}

/// x and out of n elements take 4 n bytes, with those of the reference 8 n, with its doubles and the packed outputs 28 n.
TEST(tracing, the_memory_of_what_a_replay_is_compared_with_is_counted) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  Json j = json_of(recording.only() + "/call.json");
  const i64 rows = i64(::sysconf(_SC_PHYS_PAGES)) * i64(::sysconf(_SC_PAGESIZE)) / 16 / 64;
  for (Json& t : j["tensors"]) {
    if (t["name"] == "weight") continue;
    t["shape"] = {rows, 64};
    j["memory"][t["memory"].get<size_t>()]["bytes"] = rows * 64 * 2;
  }
  write_file(recording.only() + "/call.json", j.dump());
  const ProcessResult r = command({"run", "--replay", recording.only()});
  EXPECT_EQ(r.status, 3) << r.output;
  EXPECT_THAT(r.output, HasSubstr("the host has no "));
}

TEST(tracing, files_that_are_no_files_or_far_too_large_are_refused_unread) {
  Recording recording;
  run_case(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}});
  recording.stop();
  const std::string folder = recording.only();
  const auto replayed = [&] { return run_process({"timeout", "60", QN_CLI, "run", "--replay", folder}); };
  for (const char* name : {"x.before", "out.after", "result.json", "call.json"}) {
    const std::string path = folder + "/" + name, text = read_file(path).value();
    std::filesystem::resize_file(path, size_t(1) << 40);  // sparse
    ProcessResult r = replayed();
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_THAT(r.output, HasSubstr(name));
    ASSERT_EQ(::unlink(path.c_str()), 0);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    r = replayed();
    EXPECT_EQ(r.status, 2) << r.output;
    EXPECT_THAT(r.output, HasSubstr(name));
    ASSERT_EQ(::unlink(path.c_str()), 0);
    write_file(path, text);
  }
  EXPECT_EQ(replayed().status, 0);
}

// ---- failing calls --------------------------------------------------------------------------------------------------

/// A decode call whose page table names a page that the cache has not.
struct WrongPage {
  testing::CaseArgs c{find_op("attention.decode_paged"), {{"batch", 2}, {"heads_kv", 2}, {"head_dim", 64}, {"capacity", 40}, {"page_size", 16}, {"length", 40}}, 1};
  attention::DecodePagedArgs& args = *static_cast<attention::DecodePagedArgs*>(c.args());
  explicit WrongPage(i32 page) { static_cast<i32*>(args.page_table.data)[1] = page; }
};

const char* const kWhere = "GLOBAL-OOB block \\([0-9]+,[0-9]+,[0-9]+\\) thread [0-9]+ .* at quern/ops/attention/[a-z_]+\\.cuh:[0-9]+";

TEST(tracing, the_error_of_a_failing_call_names_op_record_and_how_to_replay_it) {
  Recording recording;
  WrongPage wrong(1 << 20);
  std::string text = "nothing thrown";
  try {
    attention::decode_paged(wrong.args, {.device = &checked()});
  } catch (const Error& e) {
    text = e.what();
    EXPECT_EQ(e.kind(), ErrorKind::device);
    EXPECT_EQ(e.op(), "attention.decode_paged");
  }
  EXPECT_THAT(text, ::testing::StartsWith("attention.decode_paged: "));
  EXPECT_THAT(text, HasSubstr("quern run --replay " + recording.only()));
  EXPECT_EQ(json_of(recording.only() + "/result.json")["status"], "failed");
  EXPECT_TRUE(std::filesystem::exists(recording.only() + "/k_cache.before"));
  const ProcessResult r = command({"run", "--replay", recording.only(), "--checked"});
  EXPECT_EQ(r.status, 3) << r.output;
  EXPECT_THAT(r.output, ContainsRegex(kWhere));
}

/// Nobody is left to write anything after the launch; what it was given is on disk, and checked mode finds the thread and the line.
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
    } catch (const Error& e) {
      return std::string(e.what());
    }
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
  EXPECT_THAT(text, HasSubstr("newest first: activation.silu_and_mul: silu_and_mul"));
  EXPECT_LT(text.find("activation.silu_and_mul"), text.find("norm.rms_norm: norm_row<"));
  EXPECT_THAT(text, HasSubstr(recording.calls()[0]));
  EXPECT_THAT(text_of(cuda::kErrorInvalidValue), Not(HasSubstr("earlier launch")));
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
  const double print_us = best_us([&] { jit::print(plan.launches[0].spec); });
  const double seen_us = best_us([&] { observe({c.op(), c.args(), {}, problem, plan, emulated()}, [](const ObservedCall&) {}); });
  EXPECT_EQ(recording.calls().size(), 1u);
  EXPECT_LT(seen_us, print_us / 4) << "one that prints takes " << print_us << " us";
}

// ---- the log --------------------------------------------------------------------------------------------------------

const std::vector<std::string> kRun = {"run", "norm.rms_norm", "tokens=2", "hidden=96", "x.dtype=f32", "x.pad=3", "--device", "emu"};

std::string logged(const std::string& level) {
  const std::string file = (std::filesystem::temp_directory_path() / ("quern-log-" + std::to_string(getpid()))).string();
  command(kRun);  // compiled
  command(kRun, {"QN_LOG_LEVEL=" + level, "QN_LOG_DEST=" + file});
  const std::string text = read_file(file).value_or("");
  std::filesystem::remove(file);
  return text;
}

TEST(log, says_as_much_as_its_level) {
  EXPECT_EQ(logged("0"), "");
  const std::string names = logged("1"), tensors = logged("3"), statistics = logged("5");
  EXPECT_THAT(names, HasSubstr("norm.rms_norm: norm_row<dtype=f32"));
  EXPECT_THAT(names, Not(HasSubstr("strides")));
  EXPECT_THAT(tensors, HasSubstr("x f32 [2, 96] strides [99, 1] at 0x"));
  EXPECT_THAT(tensors, HasSubstr("eps=1e-06"));
  EXPECT_THAT(tensors, Not(HasSubstr("mean")));
  EXPECT_THAT(statistics, ContainsRegex("x f32 .*: min -[0-9.]+ max [0-9.]+ mean -?[0-9.e-]+ nan 0 inf 0"));
  EXPECT_THAT(statistics, ContainsRegex("norm.rms_norm done\n  out: min -[0-9.]+ max [0-9.]+ mean"));
}

TEST(log, counts_nan_and_infinities_without_spoiling_the_range) {
  Recording recording;
  testing::CaseArgs c(find_op("activation.silu_and_mul"), {{"tokens", 1}, {"intermediate", 4}, {"x.dtype", double(int(DType::f32))}}, 1);
  const float values[] = {1, 2, 3, NAN, 5, INFINITY, -INFINITY, -8};
  std::memcpy(c.tensor(0).data, values, sizeof values);
  run(c.op(), c.args(), {});
  recording.stop();
  const std::string text = command({"run", "--replay", recording.only()}, {"QN_LOG_LEVEL=5"}).output;
  EXPECT_THAT(text, ContainsRegex("x f32 .*: min -8 max 5 mean 0.6 nan 1 inf 2"));
}

TEST(log, goes_where_it_is_sent) {
  const std::string folder = make_private_folder((std::filesystem::temp_directory_path() / "quern-log-").string());
  command(kRun, {"QN_LOG_LEVEL=1", "QN_LOG_DEST=" + folder + "/%i.log"});
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().filename().string());
  ASSERT_EQ(files.size(), 1u);
  EXPECT_THAT(files[0], ContainsRegex("^[0-9]+\\.log$"));
  EXPECT_THAT(read_file(folder + "/" + files[0]).value(), HasSubstr(" " + files[0].substr(0, files[0].size() - 4) + "] norm.rms_norm"));
  EXPECT_THAT(command(kRun, {"QN_LOG_LEVEL=1", "QN_LOG_DEST=" + folder + "/no/such/folder"}).output, HasSubstr("warning: QN_LOG_DEST: cannot write"));
  remove_folder(folder);
}

/// Runs in a process of its own, because the level is read once.
TEST(log, a_capturing_stream_is_not_read) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("QN_LOG_LEVEL", "5", 1);
        testing::CaseArgs c(find_op("norm.rms_norm"), {{"tokens", 4}, {"hidden", 64}}, 1);
        jit::get(make_plan(c.op(), bind(c.op(), c.args(), {}), emulated().info()).launches[0].spec, emulated(), {});
        const Stream stream = emulated().create_stream();
        emulated().begin_capture(stream);
        run(c.op(), c.args(), {.stream = stream});
        emulated().end_capture(stream);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "eps=.*\n  x bf16 .* on the host\n.*\n.*\n  the stream is capturing: its tensors are not read\n$");
}

}  // namespace
}  // namespace quern
