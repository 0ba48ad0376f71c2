// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/sweep_point.h"

#include <memory>
#include <utility>

#include "quern/bench/data_sheet.h"
#include "quern/bench/guests.h"
#include "quern/bench/metered_device.h"
#include "quern/bench/mode_case.h"
#include "quern/bench/nvml.h"
#include "quern/bench/providers.h"

namespace quern::bench {

namespace {

constexpr int kRounds = 4;          // in which providers take turns
constexpr int kGuestRoundings = 4;  // of results between the kernels of another library

/// quern's calls of a mode. Forward and backward together are captured as one graph a set.
class QuernCalls {
 public:
  QuernCalls(ModeCase& which, Device& device) : which_(which), device_(device) {
    if (which.mode() == Mode::full) capture();
  }
  ~QuernCalls() {
    try {
      for (void* graph : graphs_) device_.destroy_graph(graph);
      if (stream_.handle) device_.destroy(stream_);
    } catch (const Error&) {  // a device that has failed; what made it fail was reported
    }
  }
  QuernCalls(const QuernCalls&) = delete;

  void operator()(int set) {
    if (!graphs_.empty()) return device_.replay(graphs_[size_t(set)], {});
    run(set, {}, {});
  }

 private:
  void run(int set, Stream stream, Workspace workspace) {
    for (const ModeCase::Part* part : which_.timed()) {
      RunOptions options = part->options;
      options.device = &device_, options.stream = stream, options.workspace = workspace;
      quern::run(*part->op, part->sets->args(set), options);
    }
  }
  /// A capture can allocate nothing and load no kernel: both are there after a call on its stream.
  void capture() {
    const size_t bytes = size_t(which_.workspace_bytes());
    if (bytes) workspace_ = DeviceMemory(device_, bytes, "workspace");
    const Workspace workspace{workspace_.data(), i64(bytes)};
    stream_ = device_.create_stream();
    run(0, stream_, workspace);
    device_.synchronize(stream_);
    for (int set = 0; set < which_.sets(); ++set) {
      device_.begin_capture(stream_);
      run(set, stream_, workspace);
      graphs_.push_back(device_.end_capture(stream_));
    }
  }

  ModeCase& which_;
  Device& device_;
  DeviceMemory workspace_;
  Stream stream_;
  std::vector<void*> graphs_;
};

/// Who is timed, and how far that is.
struct Side {
  SweepResult r;
  std::function<void(int set)> call;     ///< null: there is nothing to time
  std::function<void(int set)> deliver;  ///< null: the call writes the outputs
  std::function<double()> memory;
  int roundings = 0;
  std::unique_ptr<CallTimer> timer;
};

class PointBench {
 public:
  PointBench(const Op& op, const SweepPoint& point, Mode mode, Device& device, const Ceilings& ceilings, const SweepOptions& options)
      : options_(options), device_(device), which_(op, point.given, mode, device, options.seed, options.timing.cold) {
    blank_.op = op.id, blank_.mode = mode, blank_.cost = which_.cost(), blank_.floor_us = which_.floor_us(ceilings);
    const double sheet = device.info().emulated ? 0 : data_sheet_bytes_per_us(device.info().name);
    if (sheet > 0 && ceilings.bandwidth_bound(blank_.cost)) blank_.sheet_us = blank_.cost.bytes / sheet;
    blank_.planned_bytes = which_.output_bytes();
  }

  std::vector<SweepResult> run(const std::vector<std::string>& providers) {
    std::vector<Side> sides;
    for (const std::string& provider : providers) sides.push_back(side_of(provider));
    for (Side& s : sides) guarded(s, [&] { check(s); });
    if (options_.memory)
      for (Side& s : sides) guarded(s, [&] { s.r.memory_bytes = s.memory(); });
    if (options_.speed) {
      for (Side& s : sides) guarded(s, [&] { warm(s); });
      for (int round = 0; round < kRounds; ++round)
        for (Side& s : sides) guarded(s, [&] { time(s, round); });
    }
    std::vector<SweepResult> results;
    for (Side& s : sides) results.push_back(std::move(s.r));
    return results;
  }

 private:
  Side side_of(const std::string& provider) {
    Side s;
    s.r = blank_;
    s.r.provider = provider;
    if (which_.empty()) return s.r.message = "nothing to do: outputs have no elements", std::move(s);
    s.call = [](int) {};
    guarded(s, [&] {
      if (provider == "quern") quern(s);
      else if (const Guest* guest = find_guest(provider)) invite(s, *guest);
      else peer(s);
    });
    return s;
  }

  void quern(Side& s) {
    s.r.spec = which_.kernels();
    s.r.planned_bytes += which_.workspace_bytes();
    s.call = [calls = std::make_shared<QuernCalls>(which_, device_)](int set) { (*calls)(set); };
    s.memory = [this] {
      MeteredDevice metered(device_);
      for (Device* device : {&device_, static_cast<Device*>(&metered)})  // regions that an op keeps are made by a stream's first call
        for (const ModeCase::Part* part : which_.timed()) {
          RunOptions options = part->options;
          options.device = device;
          quern::run(*part->op, part->sets->args(0), options);
        }
      device_.synchronize({});
      return which_.output_bytes() + double(metered.peak_bytes());
    };
  }

  void invite(Side& s, const Guest& guest) {
    const auto call = std::make_shared<GuestCall>(guest.make(guest_request(which_)));
    s.r.spec = call->description;
    s.call = [call](int set) { call->run(set); };
    s.deliver = [call](int set) { call->deliver(set); };
    s.memory = [call] { return call->memory(0); };
    s.roundings = kGuestRoundings;
  }

  /// Another library's kernel that quern itself calls (providers.h).
  void peer(Side& s) {
    const Provider* provider = which_.mode() == Mode::forward ? find_provider(s.r.provider, which_.op()) : nullptr;
    if (!provider)
      throw Error(ErrorKind::unsupported, which_.op().id, "provider", "is " + s.r.provider + " in mode " + name(which_.mode()),
                  "quern, or one of the Python package: it has no kernel for this");
    if (std::string why; !provider->available(&why))
      throw Error(ErrorKind::unsupported, which_.op().id, "provider", "is " + s.r.provider + ", which is not here: " + why, "its library");
    s.r.spec = provider->description();
    auto calls = std::make_shared<std::vector<std::function<void()>>>();
    for (int set = 0; set < which_.sets(); ++set)
      calls->push_back(provider->make(which_.op(), which_.timed()[0]->sets->args(set), device_));
    s.call = [calls](int set) { (*calls)[size_t(set)](); };
    s.memory = [this, provider] {
      MeteredDevice metered(device_);
      provider->make(which_.op(), which_.timed()[0]->sets->args(0), metered)();
      device_.synchronize({});
      return which_.output_bytes() + double(metered.peak_bytes());
    };
  }

  /// Does what may fail for a side that has not failed; then that is its result.
  template <class F> static void guarded(Side& s, F&& step) {
    if (!s.call) return;
    try {
      step();
    } catch (const Error& e) {
      s.call = nullptr;
      s.timer = nullptr;
      s.r.timing = {};
      s.r.ok = false;
      s.r.message = std::string(quern::name(e.kind())) + " error: " + e.what();
      s.r.verdict = testing::verdict_of(e.kind());
    }
  }

  void judge(Side& s, int set, const char* when) {
    if (s.deliver) s.deliver(set);
    const Verdict v = which_.judge(set, s.roundings);
    s.r.error = v.comparison.error, s.r.checked = v.checked;
    if (v.comparison.ok) return;
    s.call = nullptr;
    s.timer = nullptr;
    s.r.timing = {};
    s.r.memory_bytes = -1;
    s.r.ok = false;
    s.r.verdict = testing::CheckResult::Verdict::wrong;
    s.r.message = when + v.comparison.message;
  }

  void check(Side& s) {
    which_.restore(0);
    s.call(0);
    judge(s, 0, "");
  }

  void restore() {
    for (int set = 0; set < which_.sets(); ++set) which_.restore(set);
  }

  void warm(Side& s) {
    restore();
    s.timer = std::make_unique<CallTimer>(device_, [this, &s](int run) { s.call(run % which_.sets()); }, options_.timing);
  }

  /// A round of the timed runs. Before the last one outputs are poisoned, behind it judged; tensors updated in place have drifted by then,
  /// so those calls start again and run once more.
  void time(Side& s, int round) {
    const bool last = round + 1 == kRounds;
    if (last) restore();
    const int all = s.timer->affordable();
    s.timer->run(max_of(1, all * (round + 1) / kRounds - all * round / kRounds));
    if (!last) return;
    s.r.timing = s.timer->timing();
    if (!device_.info().emulated && nvml_available())
      s.r.clocks = text(gpu_state_at_work(device_, s.r.timing.median_us, [&](int run) { s.call(run % which_.sets()); }));
    const int judged = (s.r.timing.runs - 1) % which_.sets();
    if (which_.updates_in_place()) {
      which_.restore(judged);
      s.call(judged);
    }
    judge(s, judged, "after the timed runs: ");
  }

  const SweepOptions& options_;
  Device& device_;
  ModeCase which_;
  SweepResult blank_;
};

}  // namespace

void check_provider(const std::string& name) {
  if (name == "quern") return;
  if (const Guest* guest = find_guest(name)) {
    if (guest->missing.empty()) return;
    throw Error(ErrorKind::unsupported, "", "provider", "is " + name + ", which is not here", guest->missing);
  }
  std::string known = "quern";
  for (const Provider& p : providers()) {
    if (p.name == name) return;
    if (known.find(p.name) == std::string::npos) known += std::string(", ") + p.name;
  }
  for (const char* python : python_providers()) {
    if (python == name)
      throw Error(ErrorKind::unsupported, "", "provider", "is " + name + ", which this program does not have",
                  "the `quern` of the Python package, which `pip install '.[torch]'` makes of a checkout");
    known += std::string(", ") + python;
  }
  throw Error(ErrorKind::value, "", "provider", "is '" + name + "'", "one of " + known);
}

std::vector<SweepResult> bench_point(const Op& op, const SweepPoint& point, Mode mode, const std::vector<std::string>& providers,
                                     Device& device, const Ceilings& ceilings, const SweepOptions& options) {
  try {
    return PointBench(op, point, mode, device, ceilings, options).run(providers);
  } catch (const Error& e) {  // the case cannot even be made
    std::vector<SweepResult> results;
    for (const std::string& provider : providers) {
      SweepResult& r = results.emplace_back();
      r.op = op.id, r.provider = provider, r.mode = mode, r.ok = false;
      r.verdict = testing::verdict_of(e.kind());
      r.message = std::string(quern::name(e.kind())) + " error: " + e.what();
    }
    return results;
  }
}

}  // namespace quern::bench
