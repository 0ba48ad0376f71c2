// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/bench_case.h"

#include <algorithm>
#include <cmath>
#include <memory>

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

void note_clocks(Device& device, BenchResult& r, const std::function<void(int)>& call) {
  if (device.info().emulated || !nvml_available()) return;
  const GpuState state = gpu_state_at_work(device, r.timing.median_us, call);
  r.sm_clock_mhz = state.sm_mhz;
  r.clocks = text(state);
}

/// One case on one device; quern and a peer are timed in turns on the same buffers.
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
        sets_(host_, device, sets_wanted(testing::operand_bytes(op, host_.args()), device.info(), options.timing.cold)) {
    run_options_.device = &device;
    cost_ = testing::cost_of(op, problem_, host_.args());
    if (ceilings.best_bytes_per_us() > 0 && ceilings.bandwidth_bound(cost_) && !device.info().emulated)
      copy_us_ = copy_us(device, cost_.bytes);
  }

  std::vector<BenchResult> run(const Provider* peer) {
    std::vector<Side> sides;
    sides.push_back(quern());
    if (peer) sides.push_back(other(*peer));
    for (Side& s : sides) guarded(s, [&] { warm(s); });
    const int rounds = sides.size() > 1 ? kRounds : 1;
    for (int round = 0; round < rounds; ++round)
      for (Side& s : sides) guarded(s, [&] { time(s, round, rounds); });
    for (Side& s : sides)
      if (s.r.provider == std::string("quern") && s.r.timed() && options_.host)
        guarded(s, [&] { s.r.host = host_time(op_, sets_.args(0), run_options_, device_, s.r.timing.median_us); });
    std::vector<BenchResult> results;
    for (Side& s : sides) results.push_back(std::move(s.r));
    return results;
  }

 private:
  /// Who is timed, and how far that is.
  struct Side {
    BenchResult r;
    std::function<void(int set)> call;  ///< null: there is nothing to time
    std::unique_ptr<CallTimer> timer;
  };
  static constexpr int kRounds = 4;

  Side quern() {
    Side s{blank("quern"), nullptr, nullptr};
    if (problem_.empty) return s.r.message = "nothing to do: an output has no elements", std::move(s);
    s.call = [this](int set) { quern::run(op_, sets_.args(set), run_options_); };
    guarded(s, [&] { s.r.kernel = testing::kernels_text(make_plan(op_, problem_, device_.info())); });
    return s;
  }

  Side other(const Provider& provider) {
    Side s{blank(provider.name), nullptr, nullptr};
    if (std::string why; !provider.available(&why)) return s.r.message = "not available: " + why, std::move(s);
    std::vector<std::function<void()>> calls;
    s.call = [](int) {};
    guarded(s, [&] {
      s.r.kernel = provider.description();
      for (int set = 0; set < sets_.count(); ++set) calls.push_back(provider.make(op_, sets_.args(set), device_));
    });
    if (s.call) s.call = [calls](int set) { calls[size_t(set)](); };
    return s;
  }

  /// Does what may fail for a side that has not failed; then that is its result.
  template <class F> static void guarded(Side& s, F&& step) {
    if (!s.call) return;
    try {
      step();
    } catch (const Error& e) {
      s.call = nullptr;
      s.r.timing = {};
      s.r.message = std::string(name(e.kind())) + " error: " + e.what();
      s.r.ok = s.r.provider != "quern" && e.kind() == ErrorKind::unsupported;
      s.r.verdict = testing::verdict_of(e.kind());
    }
  }

  void restore() {
    for (int set = 0; set < sets_.count(); ++set) sets_.restore(set);
  }

  void warm(Side& s) {
    restore();
    s.timer = std::make_unique<CallTimer>(device_, [this, &s](int run) { s.call(run % sets_.count()); }, options_.timing);
  }

  /// A round of the timed runs. Before the last one outputs are poisoned, behind it judged. Tensors updated in place have
  /// drifted by then (a residual stream grows with every run): those calls start again from the generated values and run once
  /// more.
  void time(Side& s, int round, int rounds) {
    const bool last = round + 1 == rounds;
    if (last) restore();
    const int all = s.timer->affordable();
    s.timer->run(max_of(1, all * (round + 1) / rounds - all * round / rounds));
    if (!last) return;
    s.r.timing = s.timer->timing();
    note_clocks(device_, s.r, [&](int run) { s.call(run % sets_.count()); });
    const int judged = (s.r.timing.runs - 1) % sets_.count();
    if (updates_in_place(op_, host_.args())) {
      sets_.restore(judged);
      s.call(judged);
    }
    const Verdict v = judge_timed(host_, sets_, judged, problem_);
    s.r.error = v.comparison.error;
    s.r.ok = v.comparison.ok;
    s.r.message = v.comparison.message;
    s.r.checked = v.checked;
  }

  BenchResult blank(const char* provider) {
    BenchResult r;
    r.op = op_.id;
    r.which = testing::case_text(op_, host_.given());
    r.asked = testing::case_text(op_, given_);
    if (const std::string made = testing::made_of(op_, given_); !made.empty())
      for (std::string* text : {&r.which, &r.asked}) *text += " (runs as " + made + ")";
    r.device = std::string(device_.info().name) + (device_.info().emulated ? " (emulated)" : "");
    r.provider = provider;
    r.cold = options_.timing.cold && !device_.info().emulated;
    r.cost = cost_;
    r.floor_us = ceilings_.floor_us(cost_);
    r.copy_us = copy_us_;
    return r;
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
  return CaseBench(op, given, device, ceilings, options).run(peer);
}

std::vector<Case> bench_cases(const Op& op, const std::vector<std::string>& words) {
  if (words.empty() && !op.bench.empty()) return op.bench;
  std::vector<Case> cases = {{}};
  for (const CaseAxis& axis : testing::parse_words(op, words)) {
    std::vector<Case> more;
    for (const Case& c : cases)
      for (const CaseValue& value : axis.values) {
        more.push_back(c);
        more.back()[axis.name] = value;
      }
    cases = std::move(more);
  }
  return cases;
}

double case_bytes(const Op& op, const Case& given) {
  return testing::operand_bytes(op, testing::fake_args(op, testing::derived(op, given)).get());
}

}  // namespace quern::bench
