// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Times the decoder layer of a model file as a whole: as a CUDA graph and call by call, with programmatic dependent launch
// between its kernels and without. A wrong layer is not timed.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "quern/bench/ceiling.h"
#include "quern/bench/host_time.h"
#include "quern/bench/nvml.h"
#include "quern/bench/stream.h"
#include "quern/bench/time_call.h"
#include "quern/testing/layer_run.h"

namespace quern::bench {

/// One way of running the layer, and its times. Figures that were not measured are 0.
struct LayerWay {
  bool graph = false;  ///< replays of a graph that was captured from the calls; else the calls
  bool pdl = false;    ///< RunOptions::pdl of every call
  void* captured = nullptr;
  Timing alone;        ///< one layer between two events, from a cold L2
  Timing in_a_row;     ///< of a layer, events around many that follow each other
  double wall_us = 0;  ///< of such a layer by the host's clock, until the device has ended
  double host_us = 0;  ///< of such a layer in the calling thread, which waits for nothing
};
/// "graph, PDL", "eager".
std::string name_of(const LayerWay& way);

/// One call of the layer by itself.
struct LayerCallTime {
  std::string does, op, kernels;
  int launches = 0;
  Cost cost;                ///< by the op's definition
  double memory_bytes = 0;  ///< of them those that have to come from memory: without what other calls of the layer make
  double error = 0;         ///< in units of the tolerance
  Timing timing;            ///< from a cold L2, without PDL
  HostTime host;
};

class TimedLayer {
 public:
  /// Makes weights, activations and the cache. `timing` as for calls; its stream is set here.
  TimedLayer(const Model& model, const testing::LayerSizes& sizes, Device& device, const TimingOptions& timing);
  ~TimedLayer();
  TimedLayer(const TimedLayer&) = delete;

  /// Judges each call on its actual inputs, the layer against one reference in double, then runs all ways: each must give the
  /// bits of the calls judged, and after 16 layers those of eager calls. Returns what is wrong, or nothing. `step` is told
  /// what is done. On an emulated device eager ways are timed by the way, by the wall clock.
  std::string judge(const std::function<void(const std::string&)>& step);
  /// Times the ways on a GPU, in turns, and compares their bits again. After judge, which found nothing wrong; returns as it
  /// does.
  std::string time_ways();
  /// Times each call alone, by kernel records where there are some, and on the host. After time_ways.
  void time_calls();

  /// The GPU's clocks and power while it replays the layer.
  GpuState state_at_work();

  const std::vector<LayerWay>& ways() const { return ways_; }
  const std::vector<LayerCallTime>& calls() const { return calls_; }
  int launches() const;
  /// The shortest time of the layer's bytes and operations; what calls hand to each other need not leave the L2.
  double floor_us(const Ceilings& ceilings) const;
  /// Bytes that have to come from memory, and operations.
  Cost cost() const;

 private:
  void prepare();
  void run(const LayerWay& way);
  std::string judge_calls(const std::function<void(const std::string&)>& step);
  std::string judge_way(LayerWay& way);
  std::string judge_often(const LayerWay& way);
  using Hashes = std::vector<std::pair<std::string, u64>>;
  std::string difference(const Hashes& expected, const char* than);
  void time_row(LayerWay& way, int layers, std::vector<double> (&us)[3]);

  Device& device_;
  testing::LayerRun layer_;
  TimingOptions timing_;
  RunOptions options_;
  DeviceMemory workspace_;
  std::vector<LayerCallTime> calls_;
  std::vector<const Op*> ops_;
  std::vector<testing::ArgsStorage> args_;
  std::vector<LayerWay> ways_;
  Hashes once_, often_;  ///< of what one layer writes, and several
};

}  // namespace quern::bench
