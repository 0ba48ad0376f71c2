// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/time_layer.h"

#include <algorithm>
#include <chrono>

#include "quern/base/log.h"
#include "quern/testing/check.h"

namespace quern::bench {

namespace {

constexpr int kOften = 16;    // layers behind each other whose bits are compared
constexpr int kRounds = 4;    // in which ways take turns: a GPU at its power limit favours whoever comes first
constexpr int kQueued = 300;  // launches that the host may be ahead; a queue is about 1000 long
constexpr int kBatches = 4;   // of layers in a row, a round

double now_us() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

std::string name_of(const LayerWay& way) { return std::string(way.graph ? "graph" : "eager") + (way.pdl ? ", PDL" : ""); }

TimedLayer::TimedLayer(const Model& model, const testing::LayerSizes& sizes, Device& device, const TimingOptions& timing)
    : device_(device), layer_(model, sizes, device), timing_(timing) {
  options_.device = &device;
  options_.stream = timing_.stream = device.create_stream();
  timing_.events = true;
  prepare();
}

TimedLayer::~TimedLayer() {
  try {
    for (const LayerWay& way : ways_) device_.destroy_graph(way.captured);
    device_.destroy(options_.stream);
  } catch (const Error& e) {  // the GPU has faulted: the error that unwinds says why
    log(LogLevel::call, e.what());
  }
}

/// Arguments, costs and the workspace, which a capture cannot allocate: as large as the largest of a call, as calls take turns.
void TimedLayer::prepare() {
  i64 workspace = 0;
  for (size_t i = 0; i < layer_.layer().repeated(); ++i) {
    const LayerCall& call = layer_.layer().calls[i];
    const Op& op = find_op(call.op);
    ops_.push_back(&op);
    args_.push_back(layer_.device_args(i));
    const Problem problem = bind(op, args_[i].get(), options_);
    const Plan plan = make_plan(op, problem, device_.info());
    workspace = max_of(workspace, plan.workspace);
    LayerCallTime& c = calls_.emplace_back();
    c.does = call.does, c.op = call.op, c.kernels = testing::kernels_text(plan), c.launches = plan.count;
    c.cost = testing::cost_of(op, problem, layer_.host_args(i).get());
    c.memory_bytes = max_of(0.0, c.cost.bytes - layer_.intermediate_bytes(i));
  }
  if (calls_.empty()) throw Error(ErrorKind::value, "", "decode_layer", "has no calls that every layer makes", "some without `once`");
  if (workspace == 0) return;
  workspace_ = DeviceMemory(device_, size_t(workspace), "workspace");
  options_.workspace = {workspace_.data(), workspace};
}

int TimedLayer::launches() const {
  int all = 0;
  for (const LayerCallTime& c : calls_) all += c.launches;
  return all;
}

Cost TimedLayer::cost() const {
  Cost all;
  for (const LayerCallTime& c : calls_) all.bytes += c.memory_bytes, all.flops += c.cost.flops;
  return all;
}

double TimedLayer::floor_us(const Ceilings& ceilings) const {
  double us = 0;
  for (const LayerCallTime& c : calls_) us += ceilings.floor_us({c.memory_bytes, c.cost.flops});
  return us;
}

void TimedLayer::run(const LayerWay& way) {
  if (way.captured) return device_.replay(way.captured, options_.stream);
  RunOptions options = options_;
  options.pdl = way.pdl;
  for (size_t i = 0; i < ops_.size(); ++i) quern::run(*ops_[i], args_[i].get(), options);
}

// -------------------------------------------------------------------------------------------------------------- judging

std::string TimedLayer::judge_calls(const std::function<void(const std::string&)>& step) {
  for (size_t i = 0; i < layer_.steps(); ++i) {
    step(layer_.layer().calls[i].does);
    const testing::LayerStep s = layer_.step(i, {});
    if (!s.comparison.ok) return s.does + ": " + s.comparison.message;
    if (i < calls_.size()) calls_[i].error = s.comparison.error;
    if (i + 1 == calls_.size()) once_ = layer_.hashes(calls_.size());
  }
  for (const testing::LayerOutput& output : layer_.outputs())
    if (!output.ok())
      return output.tensor + " of the layer is " + std::to_string(output.relative_error) + " off, expected at most " +
             std::to_string(output.bound);
  return "";
}

std::string TimedLayer::difference(const Hashes& expected, const char* than) {
  const Hashes got = layer_.hashes(calls_.size());
  for (size_t i = 0; i < got.size(); ++i)  // the first to differ is where it began
    if (got[i] != expected[i]) return "`" + got[i].first + "` has other bits than " + than;
  return "";
}

/// What several layers behind each other leave, in the residual stream above all.
std::string TimedLayer::judge_often(const LayerWay& way) {
  layer_.restore();
  for (int i = 0; i < kOften; ++i) run(way);
  device_.synchronize(options_.stream);
  if (often_.empty()) often_ = layer_.hashes(calls_.size());
  const std::string d = difference(often_, "16 layers of eager calls without PDL leave");
  return d.empty() ? "" : name_of(way) + ": " + d;
}

std::string TimedLayer::judge_way(LayerWay& way) {
  if (way.graph) {
    device_.begin_capture(options_.stream);
    run({.pdl = way.pdl});
    way.captured = device_.end_capture(options_.stream);
  }
  layer_.restore();
  const double start = now_us();
  run(way);
  device_.synchronize(options_.stream);
  const bool emulated = device_.info().emulated;
  if (emulated && !way.graph) way.alone = timing_of({now_us() - start}, timer_name(device_));
  const std::string d = difference(once_, "the calls that were judged");
  return !d.empty() ? name_of(way) + ": " + d : emulated ? "" : judge_often(way);
}

std::string TimedLayer::judge(const std::function<void(const std::string&)>& step) {
  if (const std::string wrong = judge_calls(step); !wrong.empty()) return wrong;
  // Eager calls without PDL come first: the others are compared with what they leave, and kernels are loaded before a capture
  for (const bool graph : {false, true})
    for (const bool pdl : {false, true}) ways_.push_back({.graph = graph, .pdl = pdl});
  for (LayerWay& way : ways_) {
    step(name_of(way));
    if (const std::string wrong = judge_way(way); !wrong.empty()) return wrong;
  }
  return "";
}

// --------------------------------------------------------------------------------------------------------------- timing

/// `us`: of a layer by events, by the host's clock until the device has ended, and of the calls alone.
void TimedLayer::time_row(LayerWay& way, int layers, std::vector<double> (&us)[3]) {
  const Event from = device_.create_event(), to = device_.create_event();
  device_.synchronize(options_.stream);
  const double start = now_us();
  device_.record(from, options_.stream);
  for (int i = 0; i < layers; ++i) run(way);
  device_.record(to, options_.stream);
  const double called = now_us();
  device_.synchronize(options_.stream);
  const double ended = now_us();
  us[0].push_back(device_.elapsed_us(from, to) / layers);
  us[1].push_back((ended - start) / layers);
  us[2].push_back((called - start) / layers);
  device_.destroy(from);
  device_.destroy(to);
}

std::string TimedLayer::time_ways() {
  if (device_.info().emulated) return "";
  layer_.restore();
  const int layers = max_of(1, kQueued / launches());
  std::vector<std::unique_ptr<CallTimer>> timers;
  std::vector<std::vector<double>[3]> rows(ways_.size());
  for (LayerWay& way : ways_) timers.push_back(std::make_unique<CallTimer>(device_, [this, &way](int) { run(way); }, timing_));
  for (int round = 0; round < kRounds; ++round)
    for (size_t w = 0; w < ways_.size(); ++w) {
      const int all = timers[w]->affordable();
      timers[w]->run(max_of(1, all * (round + 1) / kRounds - all * round / kRounds));
      for (int batch = 0; batch < kBatches; ++batch) time_row(ways_[w], layers, rows[w]);
    }
  for (size_t w = 0; w < ways_.size(); ++w) {
    ways_[w].alone = timers[w]->timing();
    ways_[w].in_a_row = timing_of(rows[w][0], ways_[w].alone.timer);
    ways_[w].wall_us = timing_of(rows[w][1], "").median_us;
    ways_[w].host_us = timing_of(rows[w][2], "").median_us;
  }
  std::string wrong;
  for (const LayerWay& way : ways_)
    if (wrong.empty()) wrong = judge_often(way);
  return wrong.empty() ? "" : "after the timed runs, " + wrong;
}

GpuState TimedLayer::state_at_work() {
  for (int i = 0; i < 50; ++i) run(ways_.back());  // 5 ms: an idle GPU lowers its clocks before NVML has answered
  const GpuState state = gpu_state(device_);
  device_.synchronize(options_.stream);
  return state;
}

void TimedLayer::time_calls() {
  if (device_.info().emulated) return;
  layer_.restore();
  for (const LayerWay& way : ways_)
    if (!way.graph && !way.pdl) run(way);  // so that every call finds sound operands
  TimingOptions timing = timing_;
  timing.events = false;
  for (size_t i = 0; i < calls_.size(); ++i) {
    calls_[i].timing = time_call(device_, [&] { quern::run(*ops_[i], args_[i].get(), options_); }, timing);
    calls_[i].host = host_time(*ops_[i], args_[i].get(), options_, device_, calls_[i].timing.median_us);
  }
}

}  // namespace quern::bench
