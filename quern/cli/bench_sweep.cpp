// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// `quern bench OP --sweep ...`: an op along one of its axes, by several providers in several modes, as rows of a CSV.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "quern/base/nearest.h"
#include "quern/base/version.h"
#include "quern/bench/guests.h"
#include "quern/bench/sweep_csv.h"
#include "quern/cli/bench_output.h"
#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/cli/table.h"

namespace quern::cli {

namespace {

using bench::Field;
using bench::Metric;
using bench::Mode;
using bench::SweepPoint;
using bench::SweepResult;

/// Operands that a CPU works through in a moment: points of a sweep are many.
constexpr double kEmulatedBytes = 1 << 20;

/// The points of an op in one mode.
struct Job {
  const Op* op;
  Mode mode;
  SweepPoint point;
};

/// What a command asks for, parsed.
struct Asked {
  std::vector<const Op*> ops;
  bool one_by_name = false;  ///< each op was named, and not a family
  std::vector<Mode> modes;
  std::vector<Metric> metrics;
  std::vector<std::string> providers;
  std::vector<std::string> fixed;
  std::vector<std::pair<std::string, std::string>> filters;
  bool has(Metric metric) const { return std::find(metrics.begin(), metrics.end(), metric) != metrics.end(); }
};

[[noreturn]] void fail(const std::string& option, const std::string& got, const std::string& expected) {
  throw Error(ErrorKind::value, "bench", option, got, expected);
}

template <class T> void add_once(const std::string& option, std::vector<T>& list, const T& value, const std::string& text) {
  if (std::find(list.begin(), list.end(), value) != list.end()) fail(option, "names " + text + " twice", "each once");
  list.push_back(value);
}

Asked asked_of(const BenchSweepOptions& options) {
  Asked a;
  size_t at = 0;
  for (; at < options.words.size() && options.words[at].find('=') == std::string::npos; ++at)
    for (const Op* op : ops_named(options.words[at])) {
      a.ops.push_back(op);
      a.one_by_name |= op->id == options.words[at];
    }
  if (a.ops.empty()) fail("op", "is not given", "an op, a family or all, before parameters");
  a.fixed.assign(options.words.begin() + ptrdiff_t(at), options.words.end());
  a.fixed.insert(a.fixed.end(), options.set.begin(), options.set.end());
  for (const std::string& mode : options.modes) add_once("mode", a.modes, bench::mode_from_name(mode), mode);
  for (const std::string& metric : options.metrics) add_once("metric", a.metrics, bench::metric_from_name(metric), metric);
  for (const std::string& provider : options.providers) {
    bench::check_provider(provider);
    add_once("provider", a.providers, provider, provider);
  }
  for (const std::string& filter : options.filters) {
    const size_t equals = filter.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == filter.size())
      fail("filter", "is '" + filter + "'", "key=value, as in provider=quern");
    a.filters.emplace_back(filter.substr(0, equals), filter.substr(equals + 1));
  }
  return a;
}

/// The values that a filter can compare, of a point by a provider.
std::map<std::string, std::string> facts_of(const Job& job, const std::string& provider, Metric metric) {
  std::map<std::string, std::string> facts = job.point.config(*job.op);
  facts[job.point.x] = job.point.text(*job.op, job.point.x);
  facts["kernel"] = job.op->id, facts["mode"] = name(job.mode), facts["provider"] = provider, facts["metric"] = bench::name(metric);
  return facts;
}

bool passes(const std::vector<std::pair<std::string, std::string>>& filters, const std::map<std::string, std::string>& facts) {
  return std::all_of(filters.begin(), filters.end(), [&](const auto& filter) {
    const auto at = facts.find(filter.first);
    if (at != facts.end()) return at->second == filter.second;
    std::vector<std::string> known;
    for (const auto& [key, value] : facts) known.push_back(key);
    fail("filter", "has the key '" + filter.first + "'", fmt::format("one of {}", fmt::join(known, ", ")));
  });
}

/// Points of all ops; what was made smaller for a device is said in `notes`.
std::vector<Job> jobs_of(const Asked& asked, const BenchSweepOptions& options, bool emulated, std::vector<std::string>& notes) {
  std::vector<Job> jobs;
  for (const Op* op : asked.ops) {
    Case fixed = bench::parse_fixed(*op, asked.fixed);
    std::vector<CaseAxis> axes;
    for (const std::string& sweep : options.sweeps) axes.push_back(bench::parse_sweep(*op, sweep));
    if (axes.empty()) axes.push_back(bench::standard_sweep(*op, fixed, emulated));
    std::vector<SweepPoint> points = bench::sweep_points(*op, axes, fixed);
    for (const SweepPoint& point : points) testing::derived(*op, point.given);  // throws where the words are none
    if (emulated)
      if (const std::string made = bench::shrink(*op, points, kEmulatedBytes); !made.empty())
        notes.push_back(
            fmt::format("{}: {}: the emulated device takes operands of up to {:.0f} MB", op->id, made, kEmulatedBytes / 1048576));
    for (const Mode mode : asked.modes) {
      if (mode != Mode::forward && op->backward.empty()) {
        const std::string why = "the op's schema names no op for its gradients";
        if (asked.one_by_name) throw Error(ErrorKind::value, op->id, "mode", std::string("is ") + name(mode), "forward: " + why);
        notes.push_back(fmt::format("{}: left out in mode {}: {}", op->id, name(mode), why));
        continue;
      }
      for (const SweepPoint& point : points) jobs.push_back({op, mode, point});
    }
  }
  return jobs;
}

std::string result_text(const SweepResult& r) {
  if (!r.ok) return upper(name(r.verdict)) + ": " + r.message;
  if (!r.message.empty()) return r.message;
  return fmt::format("right ({:.2f} of its bound, {})", r.error, r.checked);
}

std::string ms_text(double us) { return us > 0 ? fmt::format("{:.4g}", us / 1e3) : "-"; }

/// A sweep and what is written of it.
class Sweep {
 public:
  Sweep(const Asked& asked, const BenchSweepOptions& options, Device& device, const bench::Ceilings& ceilings)
      : asked_(asked), options_(options), device_(device), ceilings_(ceilings), file_(options.csv), table_(header()) {
    sweep_.timing.cold = !options.hot;
    sweep_.timing.budget_ms = options.budget_ms;
    sweep_.seed = options.seed;
    sweep_.speed = asked.has(Metric::speed), sweep_.memory = asked.has(Metric::memory);
    run_ = bench::sweep_run(device, options.device, QN_VERSION, sweep_);
  }

  void run(const Job& job, Progress& progress) {
    std::vector<std::string> wanted;
    for (const std::string& provider : asked_.providers)
      if (is_wanted(job, provider)) wanted.push_back(provider);
    if (wanted.empty()) return;
    for (const SweepResult& r : bench::bench_point(*job.op, job.point, job.mode, wanted, device_, ceilings_, sweep_))
      take(job, r, progress);
  }
  /// Throws Error{value} where the filters leave nothing.
  void check_filters(const std::vector<Job>& jobs) const {
    for (const Job& job : jobs)
      for (const std::string& provider : asked_.providers)
        for (const Metric metric : asked_.metrics)
          if (chosen(job, provider, metric)) return;
    fail("filter", "leaves no row of this sweep", "values that one of its points has together");
  }
  std::string text() const { return table_.text(); }
  const std::vector<std::vector<Field>>& rows() const { return rows_; }
  int code() const { return code_; }
  int kept() const { return kept_; }
  const std::string& clocks() const { return clocks_; }

 private:
  std::vector<std::string> header() const {
    std::vector<std::string> h = {"op", "mode", "case", "by"};
    if (asked_.has(Metric::speed)) h.insert(h.end(), {"median ms", "20..80 %"});
    if (asked_.has(Metric::speed) && !device_.info().emulated) h.push_back("% of light");
    if (asked_.has(Metric::memory)) h.push_back("memory MB");
    h.push_back("result");
    return h;
  }

  std::string key_of(const Job& job, const std::string& provider, Metric metric) const {
    SweepResult blank;
    blank.op = job.op->id, blank.provider = provider, blank.mode = job.mode;
    return bench::key_of(bench::row_of(*job.op, job.point, blank, metric, run_));
  }
  bool chosen(const Job& job, const std::string& provider, Metric metric) const {
    return passes(asked_.filters, facts_of(job, provider, metric));
  }
  /// Whether a row is to be made: one that the file has stays.
  bool is_new(const Job& job, const std::string& provider, Metric metric) const {
    return options_.overwrite || !file_.has(key_of(job, provider, metric));
  }

  bool is_wanted(const Job& job, const std::string& provider) {
    bool wanted = false;
    for (const Metric metric : asked_.metrics) {
      if (!chosen(job, provider, metric)) continue;
      const bool make = is_new(job, provider, metric);
      wanted |= make, kept_ += !make;
    }
    return wanted;
  }

  void take(const Job& job, const SweepResult& r, Progress& progress) {
    for (const Metric metric : asked_.metrics) {
      if (!chosen(job, r.provider, metric) || !is_new(job, r.provider, metric)) continue;
      const bool figure = metric == Metric::speed ? r.timed() : r.memory_bytes >= 0;
      const std::vector<Field> row = bench::row_of(*job.op, job.point, r, metric, run_);
      if (figure && r.ok) file_.put(row), rows_.push_back(row);
      else if (options_.overwrite) file_.remove(bench::key_of(row));  // what it said is not so any more
    }
    add_line(job, r);
    if (!r.clocks.empty()) clocks_ = r.clocks;
    if (r.ok) return;
    code_ = r.verdict == testing::CheckResult::Verdict::wrong || code_ == kWrong ? kWrong
            : r.verdict == testing::CheckResult::Verdict::frozen                 ? kEnvironment
                                                                                 : kBadInput;
    const std::string text = fmt::format("{}: {} {} {} by {}: {}", upper(name(r.verdict)), job.op->id, name(job.mode),
                                         testing::case_text(*job.op, job.point.given), r.provider, r.message);
    if (!options_.json) progress.line(text);
    else std::fprintf(stderr, "quern: %s\n", text.c_str());
  }

  void add_line(const Job& job, const SweepResult& r) {
    std::vector<std::string> line = {job.op->id, name(job.mode), testing::case_text(*job.op, job.point.given), r.provider};
    if (asked_.has(Metric::speed))
      line.insert(line.end(), {ms_text(r.timing.median_us), r.timed() ? ms_text(r.timing.p20_us) + ".." + ms_text(r.timing.p80_us) : "-"});
    if (asked_.has(Metric::speed) && !device_.info().emulated)
      line.push_back(r.timed() && r.floor_us > 0 ? fmt::format("{:.0f}", 100 * r.floor_us / r.timing.median_us) : "-");
    if (asked_.has(Metric::memory)) line.push_back(r.memory_bytes >= 0 ? fmt::format("{:.4g}", r.memory_bytes / 1048576) : "-");
    line.push_back(result_text(r));
    table_.add(line);
  }

  const Asked& asked_;
  const BenchSweepOptions& options_;
  Device& device_;
  const bench::Ceilings& ceilings_;
  bench::SweepFile file_;
  bench::SweepOptions sweep_;
  bench::SweepRun run_;
  Table table_;
  std::vector<std::vector<Field>> rows_;
  int code_ = kRight, kept_ = 0;
  std::string clocks_;  ///< after the last timed runs
};

void print(const Sweep& sweep, const BenchSweepOptions& options, const std::vector<std::string>& notes, Device& device) {
  const bool emulated = device.info().emulated;
  fmt::print("{}on {} ({}), {}, times by {}{}\n", sweep.text(), device.info().name,
             emulated ? "emulated on this CPU" : device.info().arch.name(),
             emulated      ? "which has no L2"
             : options.hot ? "hot L2"
                           : "cold L2",
             bench::timer_name(device), sweep.clocks().empty() ? "" : ", after the last runs " + sweep.clocks());
  if (emulated) fmt::print("times of the emulated device are no speeds of a GPU: they show that the benchmark works\n");
  for (const std::string& note : notes) fmt::print("{}\n", note);
  if (sweep.kept() > 0)
    fmt::print("{} rows of {} were there before and are kept; --overwrite measures them again\n", sweep.kept(), options.csv);
  if (!options.csv.empty()) fmt::print("wrote {} rows to {}\n", sweep.rows().size(), options.csv);
}

}  // namespace

int bench_sweep(BenchSweepOptions options) {
  const Asked asked = asked_of(options);
  if (options.plot && !bench::plotter())
    throw Error(ErrorKind::unsupported, "bench", "plot", "is given to a program that does not draw",
                "the `quern` of the Python package, which `pip install '.[plot]'` makes of a checkout");
  if (options.plot && options.csv.empty()) options.csv = (asked.ops.size() == 1 ? asked.ops[0]->id : "sweep") + ".csv";
  if (options.overwrite && options.csv.empty()) fail("overwrite", "is given without a file", "--csv FILE beside it");
  Device& device = device_from_name(options.device);
  std::vector<std::string> notes;
  const bool gpu = !device.info().emulated;
  const std::vector<Job> jobs = jobs_of(asked, options, !gpu, notes);
  Progress progress(i64(jobs.size()) + gpu);
  bench::Ceilings ceilings;
  Sweep sweep(asked, options, device, ceilings);  // throws where the file is none of sweeps, before anything runs
  if (!jobs.empty()) sweep.check_filters(jobs);
  if (gpu) {
    progress.step("ceilings");
    ceilings = bench::measure_ceilings(device);
    if (!options.json) print_ceilings(ceilings);
  }
  for (const Job& job : jobs) {
    progress.step(fmt::format("{} {} {}", job.op->id, name(job.mode), testing::case_text(*job.op, job.point.given)));
    sweep.run(job, progress);
  }
  if (options.json) {
    print_json(ceilings, sweep.rows());
    for (const std::string& note : notes) std::fprintf(stderr, "quern: %s\n", note.c_str());
  } else {
    print(sweep, options, notes, device);
  }
  if (options.plot) {
    std::fflush(stdout);
    std::vector<std::string> ids;
    for (const Op* op : asked.ops) ids.push_back(op->id);
    bench::plotter()(options.csv, ids);
  }
  return sweep.code();
}

}  // namespace quern::cli
