// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/bench_case.h"

#include <algorithm>
#include <cmath>

#include "quern/bench/judge_timed.h"
#include "quern/bench/nvml.h"
#include "quern/bench/providers.h"
#include "quern/testing/check.h"

namespace quern::bench {

namespace {

bool updates_in_place(const Op& op, const void* args) {
  for (size_t i = 0; i < op.tensors.size(); ++i)
    if (op.tensors[i].role == Role::inout && op.tensor(args, i).present()) return true;
  return false;
}

/// The GPU's state while it works: an idle one lowers its clocks before NVML has answered.
void note_clocks(Device& device, BenchResult& r, const std::function<void(int)>& call) {
  if (device.info().emulated || !nvml_available()) return;
  const int queued = int(std::clamp(5000 / max_of(r.timing.median_us, 1.0), 1.0, 500.0));
  for (int i = 0; i < queued; ++i) call(i);
  const GpuState state = gpu_state(device);
  device.synchronize({});
  r.sm_clock_mhz = state.sm_mhz;
  r.clocks = text(state);
}

/// One case on one device; quern and a peer take turns on the same buffers.
class CaseBench {
 public:
  CaseBench(const Op& op, const Case& given, Device& device, const Ceilings& ceilings, const BenchOptions& options)
      : op_(op),
        given_(given),
        device_(device),
        ceilings_(ceilings),
        options_(options),
        host_(op, given, options.seed),
        run_options_(testing::options_of(op, host_.which())),
        problem_(bind(op, host_.args(), run_options_)),
        sets_(host_, device,
              sets_wanted(testing::operand_bytes(op, host_.args()), device.info(), options.timing.cold)) {
    run_options_.device = &device;
    cost_ = testing::cost_of(op, problem_, host_.args());
    if (ceilings.best_bytes_per_us() > 0 && ceilings.bandwidth_bound(cost_) && !device.info().emulated)
      copy_us_ = copy_us(device, cost_.bytes);
  }

  BenchResult quern() {
    BenchResult r = blank("quern");
    if (problem_.empty) return r.message = "nothing to do: an output has no elements", r;
    try {
      r.kernel = testing::kernels_text(make_plan(op_, problem_, device_.info()));
      measure(r, [this](int set) { run(op_, sets_.args(set), run_options_); });
      if (options_.host) r.host = host_time(op_, sets_.args(0), run_options_, device_, r.timing.median_us);
    } catch (const Error& e) {
      fail(r, e);
    }
    return r;
  }

  BenchResult peer(const Provider& provider) {
    BenchResult r = blank(provider.name);
    if (std::string why; !provider.available(&why)) return r.message = "not available: " + why, r;
    try {
      r.kernel = provider.description();
      std::vector<std::function<void()>> calls;
      for (int set = 0; set < sets_.count(); ++set) calls.push_back(provider.make(op_, sets_.args(set), device_));
      measure(r, [&](int set) { calls[size_t(set)](); });
    } catch (const Error& e) {
      fail(r, e);
      r.ok |= e.kind() == ErrorKind::unsupported;
    }
    return r;
  }

 private:
  BenchResult blank(const char* provider) {
    BenchResult r;
    r.op = op_.id;
    r.which = testing::case_text(op_, host_.given());
    r.asked = testing::case_text(op_, given_);
    r.device = std::string(device_.info().name) + (device_.info().emulated ? " (emulated)" : "");
    r.provider = provider;
    r.cold = options_.timing.cold && !device_.info().emulated;
    r.cost = cost_;
    r.floor_us = ceilings_.floor_us(cost_);
    r.copy_us = copy_us_;
    return r;
  }

  static void fail(BenchResult& r, const Error& e) {
    r.ok = false;
    r.message = std::string(name(e.kind())) + " error: " + e.what();
  }

  /// Poison, time, judge. Tensors updated in place have drifted by then (a residual stream grows with every run): those
  /// calls start again from the generated values and run once more.
  void measure(BenchResult& r, const std::function<void(int set)>& call) {
    for (int set = 0; set < sets_.count(); ++set) sets_.restore(set);
    const std::function<void(int)> in_turn = [&](int run) { call(run % sets_.count()); };
    r.timing = time_call(device_, in_turn, options_.timing);
    note_clocks(device_, r, in_turn);
    const int judged = (r.timing.runs - 1) % sets_.count();
    if (updates_in_place(op_, host_.args())) {
      sets_.restore(judged);
      call(judged);
    }
    const Verdict v = judge_timed(host_, sets_, judged, problem_);
    r.error = v.comparison.error;
    r.ok = v.comparison.ok;
    r.message = v.comparison.message;
    r.checked = v.rows_checked ? std::to_string(v.rows_checked) + " of " + std::to_string(v.rows) + " rows" : "all";
  }

  const Op& op_;
  const Case& given_;
  Device& device_;
  const Ceilings& ceilings_;
  const BenchOptions& options_;
  testing::CaseArgs host_;
  RunOptions run_options_;
  Problem problem_;
  DeviceSets sets_;
  Cost cost_;
  double copy_us_ = 0;
};

}  // namespace

std::vector<BenchResult> bench_case(const Op& op, const Case& given, Device& device, const Ceilings& ceilings,
                                    const BenchOptions& options) {
  const Provider* peer = options.peer.empty() ? nullptr : find_provider(options.peer, op);
  CaseBench bench(op, given, device, ceilings, options);
  std::vector<BenchResult> results = {bench.quern()};
  if (peer) results.push_back(bench.peer(*peer));
  return results;
}

std::vector<Case> bench_cases(const Op& op, const std::vector<std::string>& words) {
  if (words.empty() && !op.bench.empty()) return op.bench;
  std::vector<Case> cases = {{}};
  for (const CaseAxis& axis : testing::parse_words(op, words)) {
    std::vector<Case> more;
    for (const Case& c : cases)
      for (const CaseValue& value : axis.values) {
        more.push_back(c);
        more.back()[axis.name] = value.number;
      }
    cases = std::move(more);
  }
  return cases;
}

double case_bytes(const Op& op, const Case& given) {
  return testing::operand_bytes(op, testing::fake_args(op, testing::derived(op, given)).get());
}

}  // namespace quern::bench
