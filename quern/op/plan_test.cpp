// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a plan may hold: regions, fills, choices, clusters; and what run() makes of it on the emulated device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "quern/device/emulated.h"
#include "quern/jit/sources.h"
#include "quern/op/schema.h"

namespace quern::steps {

// The same text for the host and for the kernel.
#define QN_STEPS_SPEC(...) \
  __VA_ARGS__ \
  static const char kSpecText[] = #__VA_ARGS__;
QN_STEPS_SPEC(
    struct StepsConfig { i32 threads; }; struct StepsParams {
      i32* out;
      i32* read;
      i32* write;
      i64 write_at;
      i32 value;
      i32 count;
    };)

/// Thread t: out[t] = read[t]; write[write_at + t] = value + read[t]. What is null is left out.
static const std::string kSpecFile =
    "#pragma once\n#include \"quern/kit/abi.h\"\nnamespace quern::steps {\n" + std::string(kSpecText) + "\n}\n";
static const char kKernelFile[] =
    "#include \"quern/kit/kit.cuh\"\n#include \"quern/ops/steps/steps_spec.h\"\n"
    R"(
namespace quern::steps {
template <StepsConfig C> QN_DEVICE void steps_move(const StepsParams& p) {
  const i32 t = i32(threadIdx.x);
  if (t >= p.count) return;
  const i32 v = p.read != nullptr ? p.read[t] : 0;
  if (p.out != nullptr) p.out[t] = v;
  if (p.write != nullptr) p.write[p.write_at + t] = p.value + v;
}
}  // namespace quern::steps
)";
static const bool registered = [] {
  static const jit::EmbeddedSource sources[] = {{"quern/ops/steps/steps_spec.h", kSpecFile.c_str()},
                                                {"quern/ops/steps/steps.cuh", kKernelFile}};
  return jit::register_sources(sources, 2), true;
}();
static const jit::Kernel<StepsConfig, StepsParams> kernel{"quern/ops/steps/steps.cuh", "steps_move"};

/// What a case of the test does.
enum class Mode : i32 {
  zeroed,
  kept,
  overrun,
  fill_output,
  fill_between,
  fill_input,
  nine,
  nine_fills,
  nine_regions,
  choice,
  cluster,
  negative
};

struct StepsArgs {
  TensorView out, x;
  Mode mode = Mode::zeroed;
};

/// More than 4 bytes, and of several types: bytes that are not copied whole are seen.
struct Moves {
  Region read = {}, write = {};
  i64 write_at = 0;
  double value = 0;
  i32 to_out = 0;
};
static StepsParams params(const Call<StepsArgs, Moves>& c) {
  const Moves& m = c.choice;
  return {m.to_out ? static_cast<i32*>(c.args.out.data) : nullptr,
          reinterpret_cast<i32*>(c.region(m.read)),
          reinterpret_cast<i32*>(c.region(m.write)),
          m.write_at,
          i32(m.value),
          i32(c.problem[Axis::hidden])};
}
static StepsParams nothing(const Call<StepsArgs>& c) { return {nullptr, nullptr, nullptr, 0, 0, c.config<StepsConfig>().threads}; }

static Plan plan_regions(Plan plan, Mode mode, i64 bytes) {
  if (mode == Mode::zeroed) {
    plan.scratch("before", 4);
    const Region zeros = plan.zeroed("zeros", bytes);
    plan.launch<params>(kernel, StepsConfig{32}, {}, Moves{.read = zeros, .write = zeros, .value = 7, .to_out = 1});
  }
  if (mode == Mode::kept) {
    const Region state = plan.kept("state", bytes);
    plan.launch<params>(kernel, StepsConfig{32}, {}, Moves{.read = state, .write = state, .value = 1, .to_out = 1});
  }
  if (mode == Mode::overrun) {  // whole 256 bytes: the next region begins where this one ends
    const Region first = plan.scratch("first", 1024);
    plan.scratch("second", 1024);
    plan.launch<params>(kernel, StepsConfig{32}, {}, Moves{.write = first, .write_at = 256});
  }
  if (mode == Mode::fill_between) {
    const Region part = plan.scratch("part", bytes);
    plan.launch<params>(kernel, StepsConfig{32}, {}, Moves{.write = part, .value = 5});
    plan.fill(part, 1);
    plan.launch<params>(kernel, StepsConfig{32}, {.pdl = 1}, Moves{.read = part, .to_out = 1});
    plan.fill(part, 2);
  }
  if (mode == Mode::nine_regions)
    for (int i = 0; i < 9; ++i) plan.scratch("part", 4);
  if (mode == Mode::negative) plan.scratch("part", -1);
  return plan;
}

static Plan plan(const Problem& p, const DeviceInfo&) {
  const Mode mode = p.attr(&StepsArgs::mode);
  Plan plan;
  switch (mode) {
    case Mode::fill_output: plan.fill(&StepsArgs::out, 0x11); break;
    case Mode::fill_input: plan.fill(&StepsArgs::x, 0); break;
    case Mode::nine:
      for (int i = 0; i < 9; ++i) plan.launch<nothing>(kernel, StepsConfig{32}, {});
      break;
    case Mode::nine_fills:
      for (int i = 0; i < 8; ++i) plan.launch<nothing>(kernel, StepsConfig{32}, {});
      plan.fill(&StepsArgs::out, 0);
      break;
    case Mode::choice: {
      const Region part = plan.scratch("part", 1 << 16);
      plan.launch<params>(kernel, StepsConfig{32}, {}, Moves{.write = part, .write_at = 1000, .value = -1234});
      plan.launch<params>(kernel, StepsConfig{32}, {}, Moves{.read = part, .write = part, .write_at = 2000, .to_out = 1});
      break;
    }
    case Mode::cluster: plan.launch<nothing>(kernel, StepsConfig{32}, {.x = 4, .y = 6, .cluster = {2, 4}}); break;
    default: return plan_regions(plan, mode, 4 * p[Axis::hidden]);
  }
  return plan;
}

static Rejection many_tokens(const Problem& p, const DeviceInfo&) {
  return p[Axis::tokens] > 100 ? Rejection{"tokens", p[Axis::tokens], "at most {}", 100} : Rejection{};
}
static Rejection some_tokens(const Problem& p, const DeviceInfo&) {
  return p[Axis::tokens] > 10 ? Rejection{"tokens", p[Axis::tokens], "at most {} to be fast", 10} : Rejection{};
}
static Rejection any_tokens(const Problem& p, const DeviceInfo&) { return {"tokens", p[Axis::tokens], "none", 0}; }
static void reference(const StepsArgs&, const StepsArgs&) {}

QN_OP(move, StepsArgs, "steps.move")
    .doc("nothing")
    .in("x", &StepsArgs::x, "hidden", {DType::i32})
    .optional()
    .out("out", &StepsArgs::out, "tokens hidden", {DType::i32})
    .attr("mode", &StepsArgs::mode)
    .variants({{"few", many_tokens, plan, some_tokens}, {"portable", nullptr, plan, nullptr}})
    .reference<reference>();
QN_OP(move_slowly, StepsArgs, "steps.move_slowly")
    .doc("nothing")
    .in("x", &StepsArgs::x, "hidden", {DType::i32})
    .optional()
    .out("out", &StepsArgs::out, "tokens hidden", {DType::i32})
    .attr("mode", &StepsArgs::mode)
    .variants({{"unable", [](const Problem&, const DeviceInfo&) { return Rejection{"arch", 0, "another", 0}; }, plan, any_tokens},
               {"first", nullptr, plan, any_tokens},
               {"second", nullptr, plan, any_tokens}})
    .reference<reference>();

namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

/// A call on a device of its own; out is one row of 16 numbers, -1 before.
struct Steps {
  explicit Steps(Mode mode, bool checked = false) : device(make_emulated_device(emulated_device_info(Arch{}), {.checked = checked})) {
    args.mode = mode;
    args.out = TensorView(out.data(), DType::i32, {1, 16});
    options.device = device.get();
  }
  void run() { quern::run(find_op("steps.move"), &args, options); }
  /// The error of a call.
  Error error() {
    try {
      run();
    } catch (const Error& e) { return e; }
    ADD_FAILURE() << "no error";
    return Error(ErrorKind::internal, "");
  }
  Plan plan() {
    const Op& op = find_op("steps.move");
    return make_plan(op, bind(op, &args, options), device->info());
  }
  std::unique_ptr<Device> device;
  std::vector<i32> out = std::vector<i32>(16, -1);
  StepsArgs args;
  RunOptions options;
};

TEST(op_plan, a_zeroed_region_is_zero_in_each_call_on_a_dirty_workspace) {
  for (const bool checked : {false, true}) {
    Steps steps(Mode::zeroed, checked);
    std::vector<char> memory(2048, 0x55);
    char* const aligned = reinterpret_cast<char*>(round_up<u64>(reinterpret_cast<u64>(memory.data()), 256));
    EXPECT_EQ(steps.plan().workspace, 256 + 64);
    steps.options.workspace = {aligned, 256 + 64};
    for (int call = 0; call < 2; ++call) {
      std::fill(steps.out.begin(), steps.out.end(), -1);
      steps.run();
      EXPECT_THAT(steps.out, Each(0)) << call;  // the kernel leaves 7
    }
    EXPECT_EQ(reinterpret_cast<i32*>(aligned + 256)[15], 7);
    EXPECT_EQ(aligned[4], 0x55) << "what is not of the region is left alone";
    EXPECT_EQ(aligned[256 + 64], 0x55);
  }
}

TEST(op_plan, a_kept_region_has_what_the_last_call_left_on_that_stream_and_device) {
  for (const bool checked : {false, true}) {
    Steps steps(Mode::kept, checked);
    for (i32 call = 0; call < 3; ++call) {
      steps.run();
      EXPECT_THAT(steps.out, Each(call));
    }
    EXPECT_EQ(steps.plan().workspace, 0);
    const Stream other = steps.device->create_stream();
    steps.options.stream = other;
    steps.run();
    EXPECT_THAT(steps.out, Each(0)) << "another stream";
    steps.options.stream = {};
    steps.args.out.shape[1] = 15;
    steps.args.out.strides[0] = 15;
    steps.run();
    EXPECT_EQ(steps.out[0], 0) << "another size";
    Steps again(Mode::kept);
    again.run();
    EXPECT_THAT(again.out, Each(0)) << "another device";
    steps.device->destroy(other);
  }
}

TEST(op_plan, a_kept_region_must_be_there_before_a_capture) {
  Steps steps(Mode::kept);
  steps.run();  // compiles, and makes the region of the default stream
  const Stream stream = steps.options.stream = steps.device->create_stream();
  steps.device->begin_capture(stream);
  const Error refused = steps.error();
  steps.device->destroy_graph(steps.device->end_capture(stream));
  EXPECT_EQ(refused.kind(), ErrorKind::frozen);
  EXPECT_EQ(refused.op(), "steps.move");
  EXPECT_THAT(refused.what(), AllOf(HasSubstr("the kept region `state` of 64 bytes"),
                                    HasSubstr("the op to be called once before the capture, with this size and on this stream"),
                                    Not(HasSubstr("compiled ahead"))));

  steps.run();
  steps.device->begin_capture(stream);
  steps.run();
  void* const graph = steps.device->end_capture(stream);
  for (i32 replay = 1; replay <= 3; ++replay) {
    steps.device->replay(graph, stream);
    EXPECT_THAT(steps.out, Each(replay));
  }
  steps.run();
  EXPECT_THAT(steps.out, Each(4)) << "a call finds what replays left";
  steps.device->destroy_graph(graph);
  steps.device->destroy(stream);
}

TEST(op_plan, fills_are_captured_with_the_launches) {
  Steps steps(Mode::zeroed);
  steps.run();
  alignas(256) static char memory[1024];
  steps.options.workspace = {memory, 1024};
  const Stream stream = steps.options.stream = steps.device->create_stream();
  steps.device->begin_capture(stream);
  steps.run();
  void* const graph = steps.device->end_capture(stream);
  for (int replay = 0; replay < 2; ++replay) {
    std::memset(memory, 0x55, sizeof memory);
    std::fill(steps.out.begin(), steps.out.end(), -1);
    steps.device->replay(graph, stream);
    EXPECT_THAT(steps.out, Each(0));
  }
  steps.device->destroy_graph(graph);
  steps.device->destroy(stream);
}

TEST(op_plan, checked_mode_reports_a_region_that_overruns_into_the_next) {
  Steps steps(Mode::overrun, true);
  EXPECT_THAT(steps.error().what(), AllOf(HasSubstr("GLOBAL-OOB"), HasSubstr("0 bytes past the end of 'first' u8 [1024]")));
}

TEST(op_plan, fills_run_between_the_launches_that_plan_puts_them_between) {
  for (const bool checked : {false, true}) {
    Steps steps(Mode::fill_between, checked);
    steps.run();
    EXPECT_THAT(steps.out, Each(0x01010101));
  }
}

TEST(op_plan, a_fill_takes_the_elements_of_an_output_alone) {
  Steps steps(Mode::fill_output);
  for (const i64 wider : {0, 1}) {
    std::vector<i32> memory(64, -1);
    steps.args.out = TensorView(memory.data() + 1, DType::i32, {4, 3});
    steps.args.out.strides[0] = 7 + wider;
    steps.run();
    for (i64 i = 0; i < 64; ++i) {
      const i64 at = i - 1, row = at / (7 + wider), column = at % (7 + wider);
      EXPECT_EQ(memory[size_t(i)], at >= 0 && row < 4 && column < 3 ? 0x11111111 : -1) << i;
    }
  }
  steps.args.out = TensorView(steps.out.data(), DType::i32, {1, 16});
  steps.run();
  EXPECT_THAT(steps.out, Each(0x11111111));
}

TEST(op_plan, a_fill_of_an_input_is_a_bug_of_the_op) {
  Steps steps(Mode::fill_input);
  const Error absent = steps.error();
  EXPECT_EQ(absent.kind(), ErrorKind::internal);
  EXPECT_THAT(absent.what(), HasSubstr("steps.move: `x` is absent and filled by plan"));
  std::vector<i32> x(16, 3);
  steps.args.x = TensorView(x.data(), DType::i32, {16});
  EXPECT_THAT(steps.error().what(), HasSubstr("steps.move: `x` is an input that plan fills, expected an output"));
  EXPECT_THAT(x, Each(3));
}

TEST(op_plan, a_fill_of_no_region_is_a_bug_of_the_op) {
  Plan plan;
  EXPECT_THROW(plan.fill(Region{}, 0), Error) << "it would be one of the first output";
}

TEST(op_plan, what_is_one_too_many_is_an_error_that_names_the_op) {
  const auto text = [](Mode mode) {
    const Error e = Steps(mode).error();
    EXPECT_EQ(e.kind(), ErrorKind::internal);
    EXPECT_EQ(e.op(), "steps.move");
    return std::string(e.what());
  };
  EXPECT_THAT(text(Mode::nine), HasSubstr("steps.move: plan adds step 9, expected at most 8"));
  EXPECT_THAT(text(Mode::nine_fills), HasSubstr("plan adds step 9, expected at most 8"));
  EXPECT_THAT(text(Mode::nine_regions), HasSubstr("plan adds region 9, expected at most 8"));
  EXPECT_THAT(text(Mode::negative), HasSubstr("plan's region `part` has -1 bytes"));
  EXPECT_THAT(text(Mode::cluster), HasSubstr("steps_move would need a grid of 4 x 6 x 1 blocks in clusters of 2 x 4 x 1"));
}

TEST(op_plan, a_params_function_has_the_choice_that_plan_gave_its_launch) {
  Steps steps(Mode::choice);
  steps.run();
  std::vector<char> memory(1 << 17);
  char* const aligned = reinterpret_cast<char*>(round_up<u64>(reinterpret_cast<u64>(memory.data()), 256));
  steps.options.workspace = {aligned, 1 << 16};
  steps.run();
  const i32* numbers = reinterpret_cast<i32*>(aligned);
  EXPECT_EQ(numbers[1015], -1234);
  EXPECT_EQ(numbers[2015], steps.out[15]);
}

TEST(op_plan, a_plan_is_a_value) {
  Steps steps(Mode::fill_between);
  const Plan made = steps.plan();
  Plan copy = made;
  EXPECT_EQ(copy.count, 2);
  EXPECT_EQ(copy.fill_count, 2);
  EXPECT_EQ(copy.fills[1].before, 2);
  EXPECT_STREQ(copy.regions[0].name, "part");
  EXPECT_TRUE(copy.launches[1].spec == made.launches[1].spec);
  EXPECT_EQ(std::memcmp(copy.launches[1].choice, made.launches[1].choice, sizeof(Moves)), 0);
  copy = Steps(Mode::kept).plan();
  EXPECT_EQ(copy.count, 1);
  EXPECT_EQ(copy.regions[0].kind, RegionKind::kept);
}

/// Name of the variant that is planned.
std::string variant_of(const char* id, i64 tokens, const char* variant = nullptr) {
  const Op& op = find_op(id);
  std::vector<i32> out(size_t(tokens) * 4);
  StepsArgs args;
  args.out = TensorView(out.data(), DType::i32, {tokens, 4});
  RunOptions options;
  options.variant = variant;
  return op.variants[size_t(make_plan(op, bind(op, &args, options), device_info_of(Arch{})).variant)].name;
}

TEST(op_plan, a_variant_that_would_be_slower_is_taken_when_it_is_named) {
  EXPECT_EQ(variant_of("steps.move", 10), "few");
  EXPECT_EQ(variant_of("steps.move", 11), "portable");
  EXPECT_EQ(variant_of("steps.move", 11, "few"), "few");
  EXPECT_THROW(variant_of("steps.move", 101, "few"), Error);
}

TEST(op_plan, where_each_variant_would_be_slower_the_first_that_can_is_taken) {
  EXPECT_EQ(variant_of("steps.move_slowly", 1), "first");
  EXPECT_EQ(variant_of("steps.move_slowly", 1, "second"), "second");
}

}  // namespace
}  // namespace quern::steps
