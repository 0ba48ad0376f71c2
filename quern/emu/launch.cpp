// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/launch.h"

#include <algorithm>
#include <cfenv>
#include <numeric>

#include "quern/emu/crew.h"
#include "quern/emu/locate.h"
#include "quern/emu/worker.h"

namespace quern::emu {

Launch::Launch(const LaunchRequest& r) : request(r), blocks(u64(r.grid.x) * r.grid.y * r.grid.z), clusters(blocks / r.cluster.blocks()) {
  if (clusters < 2) return;
  if (mixes_clusters()) {
    const u64 random = (r.options.seed + 1) * 0x9e3779b97f4a7c15u;
    first_ = (random >> 32) % clusters;
    step_ = (random >> 8) % clusters;
    while (std::gcd(step_, clusters) != 1) ++step_;
  } else if (r.options.async == AsyncPolicy::lazy) {
    first_ = step_ = clusters - 1;  // the last one first
  }
}

i64 Launch::take_cluster() {
  // Checked without changing first: the counter must not run away while workers ask again and again.
  if (!clusters_left()) return -1;
  const u64 taken = next_cluster_.fetch_add(1, std::memory_order_relaxed);
  return taken < clusters ? i64((first_ + taken * step_) % clusters) : -1;
}

void Launch::add(Report report, bool last) {
  constexpr std::ptrdiff_t kMostReports = 20;
  std::lock_guard<std::mutex> lock(mutex_);
  // One fault is met by many threads: what happens at one place in the code is reported once.
  for (const Report& known : reports_)
    if (known.kind == report.kind && known.pc && known.pc == report.pc && known.other_pc == report.other_pc) return;
  const auto alike = std::count_if(reports_.begin(), reports_.end(),
                                   [&](const Report& known) { return known.needs_two_places == report.needs_two_places; });
  if (last || alike < kMostReports) reports_.push_back(std::move(report));
}

/// Numbers as a kernel expects them, for as long as a thread runs one: rounding to nearest, subnormals kept. The thread may come with
/// something else; those of XLA flush.
class PlainNumbers {
 public:
  PlainNumbers() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~PlainNumbers() { std::fesetenv(&before_); }
  PlainNumbers(const PlainNumbers&) = delete;

 private:
  std::fenv_t before_;
};

std::vector<Report> run_launch(const LaunchRequest& request, LaunchStats* stats) {
  Launch launch(request);
  const int workers = request.options.checked ? 1 : std::max(1, request.options.os_threads);
  run_crew(int(std::min<u64>(workers, launch.clusters)), [&] {
    const PlainNumbers numbers;
    WorkerLease()->run(launch);
  });
  if (stats) {
    stats->switches = launch.switches;
    stats->waited = launch.waited;
  }
  std::vector<Report> reports = launch.take_reports();
  if (request.module) locate(reports, *request.module);
  return reports;
}

}  // namespace quern::emu
