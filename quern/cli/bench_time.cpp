// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// `quern bench OP ...`: times of ops beside what the device sustains and beside a peer, with a judgement of what was
// timed.
#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "quern/base/version.h"
#include "quern/bench/csv.h"
#include "quern/bench/providers.h"
#include "quern/cli/bench_output.h"
#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/cli/table.h"

namespace quern::cli {

namespace {

using bench::BenchResult;

/// Operands that a CPU works through in a moment: larger bench shapes are left to GPUs.
constexpr double kEmulatedBytes = 8 << 20;

struct Job {
  const Op* op;
  Case which;
};

/// Bench shapes that are too large for emulation.
struct LeftOut {
  int count = 0;
  const Op* op = nullptr;  ///< of one of them
};

/// The jobs of "norm.rms_norm tokens=3", "norm", "all" or nothing.
std::vector<Job> jobs_of(const std::vector<std::string>& words, bool emulated, LeftOut& left_out) {
  std::vector<const Op*> ops;
  size_t at = 0;
  for (; at < words.size() && words[at].find('=') == std::string::npos; ++at)
    for (const Op* op : ops_named(words[at])) ops.push_back(op);
  if (ops.empty()) ops = ops_named("all");
  const std::vector<std::string> parameters(words.begin() + ptrdiff_t(at), words.end());
  std::vector<Job> jobs;
  for (const Op* op : ops)
    for (const Case& which : bench::bench_cases(*op, parameters)) {
      testing::derived(*op, which);  // throws where the words are none
      if (emulated && parameters.empty() && bench::case_bytes(*op, which) > kEmulatedBytes) ++left_out.count, left_out.op = op;
      else jobs.push_back({op, which});
    }
  return jobs;
}

std::string share_text(double share) { return share > 0 ? fmt::format("{:.3f}", share) : "-"; }

std::string rate_text(const BenchResult& r, const bench::Ceilings& ceilings) {
  if (!r.timed()) return "-";
  const bool bytes = ceilings.bandwidth_bound(r.cost);
  const double rate = bytes ? r.gbps() : r.tflops();
  return fmt::format("{:.{}f} {}", rate, rate < 10 ? 3 : rate < 1000 ? 1 : 0, bytes ? "GB/s" : "TFLOP/s");
}

std::string remark(const BenchResult& r) {
  if (!r.ok) return upper(name(r.verdict)) + ": " + r.message;
  if (!r.timed()) return r.message;
  return fmt::format("right ({:.2f} of its bound, {})", r.error, r.checked);
}

/// Columns without any figure (floors on an emulated device, the host's time) are left out.
class ResultTable {
 public:
  ResultTable(bool gpu, bool host, bool peer) : gpu_(gpu), host_(host), peer_(peer), table_(header()) {}

  void add(const BenchResult& r, const bench::Ceilings& ceilings, double beside_us) {
    std::vector<std::string> row = {r.op, r.asked.empty() ? r.which : r.asked};
    if (peer_) row.push_back(r.provider);
    row.push_back(short_kernel(r.kernel));
    row.push_back(us_text(r.timing.median_us));
    row.push_back(r.timed() ? us_text(r.timing.p10_us) + ".." + us_text(r.timing.p90_us) : "-");
    row.push_back(rate_text(r, ceilings));
    if (gpu_) row.insert(row.end(), {us_text(r.floor_us), share_text(r.share_of_floor()), share_text(r.share_of_copy())});
    if (peer_) row.push_back(r.timed() && beside_us > 0 ? fmt::format("{:.3f}", r.timing.median_us / beside_us) : "-");
    if (host_) row.insert(row.end(), {us_text(r.host.call_us), us_text(r.host.launch_us), fmt::format("{:.2f}", r.host.own_us())});
    row.push_back(remark(r));
    table_.add(row);
  }
  std::string text() const { return table_.text(); }

 private:
  std::vector<std::string> header() const {
    std::vector<std::string> h = {"op", "case"};
    if (peer_) h.push_back("by");
    h.insert(h.end(), {"kernel", "median us", "p10..p90", "rate"});
    if (gpu_) h.insert(h.end(), {"floor us", "of floor", "of copy"});
    if (peer_) h.push_back("x quern");
    if (host_) h.insert(h.end(), {"call us", "launch us", "host us"});
    h.push_back("result");
    return h;
  }
  bool gpu_, host_, peer_;
  Table table_;
};

bench::BenchOptions bench_options(const BenchTimeOptions& options) {
  bench::BenchOptions o;
  o.timing.cold = !options.hot;
  o.timing.budget_ms = options.budget_ms;
  o.seed = options.seed;
  o.host = options.host;
  o.peer = options.peer;
  return o;
}

/// Results of one job; a case that cannot even be made becomes a result with its error.
std::vector<BenchResult> results_of(const Job& job, Device& device, const bench::Ceilings& ceilings, const bench::BenchOptions& o) {
  try {
    return bench::bench_case(*job.op, job.which, device, ceilings, o);
  } catch (const Error& e) {
    BenchResult r;
    r.op = job.op->id;
    r.which = testing::case_text(*job.op, job.which);
    r.device = device.info().name;
    r.provider = "quern";
    r.ok = false;
    r.verdict = testing::verdict_of(e.kind());
    r.message = std::string(name(e.kind())) + " error: " + e.what();
    return {r};
  }
}

/// That of a result which is not ok; a wrong one outweighs those that did not run.
int exit_code_of(const BenchResult& r, int before) {
  using Verdict = testing::CheckResult::Verdict;
  if (r.ok || before == kWrong) return before;
  if (r.verdict == Verdict::wrong) return kWrong;
  return before != kRight ? before : r.verdict == Verdict::frozen ? kEnvironment : kBadInput;
}

/// Runs the jobs one after another; the exit code.
int run_jobs(const std::vector<Job>& jobs, Device& device, const BenchTimeOptions& options) {
  const bool gpu = !device.info().emulated;
  if (!options.peer.empty()) bench::find_provider(options.peer, *jobs.at(0).op);  // a wrong name is told at once
  Progress progress(i64(jobs.size()) + gpu);
  if (gpu) progress.step("ceilings");
  const bench::Ceilings ceilings = gpu ? bench::measure_ceilings(device) : bench::Ceilings{};
  if (gpu && !options.json) print_ceilings(ceilings);
  ResultTable table(gpu, options.host, !options.peer.empty());
  CsvFile csv(options.csv);
  std::vector<std::vector<bench::Field>> results;
  int code = kRight;
  std::string clocks;
  for (const Job& job : jobs) {
    progress.step(job.op->id + " " + testing::case_text(*job.op, job.which));
    double quern_us = 0;
    for (const BenchResult& r : results_of(job, device, ceilings, bench_options(options))) {
      const std::vector<bench::Field> fields = bench::fields_of(r, QN_VERSION);
      csv.add(fields);
      results.push_back(fields);
      if (r.provider == "quern") quern_us = r.timing.median_us;
      table.add(r, ceilings, r.provider == "quern" ? 0 : quern_us);
      code = exit_code_of(r, code);
      if (!r.clocks.empty()) clocks = r.clocks;
      if (!r.ok && !options.json)
        progress.line(fmt::format("{}: {} {} by {}: {}", upper(name(r.verdict)), r.op, r.which, r.provider, r.message));
    }
  }
  if (options.json) {
    print_json(ceilings, results);
    return code;
  }
  fmt::print("{}on {} ({}), {}, times by {}{}\n", table.text(), device.info().name,
             gpu ? device.info().arch.name() : "emulated on this CPU", gpu ? options.hot ? "hot L2" : "cold L2" : "which has no L2",
             bench::timer_name(device), clocks.empty() ? "" : ", after the last case " + clocks);
  fmt::print(
      "of its bound: the largest error of an element over the error that its op allows, 1 and less is right; all elements were compared, or the rows that are named\n");
  return code;
}

}  // namespace

int bench_time(const BenchTimeOptions& options) {
  Device& device = device_from_name(options.device);
  LeftOut left_out;
  const std::vector<Job> jobs = jobs_of(options.words, device.info().emulated, left_out);
  const int code = jobs.empty() ? kRight : run_jobs(jobs, device, options);
  if (left_out.op && !options.json) {
    const CaseAxis& first = left_out.op->cases.at(0);
    fmt::print("{} bench shapes of more than {:.0f} MB are left to GPUs; parameters make others: quern bench {} {}\n", left_out.count,
               kEmulatedBytes / 1048576, left_out.op->id, testing::case_text(*left_out.op, {{first.name, first.values[0]}}));
  }
  return code;
}

}  // namespace quern::cli
