// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/cli/sample.h"
#include "quern/cli/source_note.h"
#include "quern/cli/table.h"
#include "quern/jit/kernel_table.h"
#include "quern/testing/hostile.h"
#include "quern/testing/pairwise.h"

namespace quern::cli {

using testing::CheckJob;
using testing::CheckResult;

namespace {

/// Ops and parameters of "norm.rms_norm tokens=3", "norm", "all" or nothing.
struct Wanted {
  std::vector<const Op*> ops;
  std::vector<std::string> words;
};

Wanted parse(const std::vector<std::string>& words) {
  Wanted w;
  size_t at = 0;
  for (; at < words.size() && words[at].find('=') == std::string::npos; ++at)
    for (const Op* op : ops_named(words[at])) w.ops.push_back(op);
  w.words.assign(words.begin() + ptrdiff_t(at), words.end());
  if (w.ops.empty()) w.ops = ops_named("all");
  return w;
}

/// The first case that reaches each kernel.
std::vector<Case> each_kernel(const Op& op, const std::vector<Case>& cases, const DeviceInfo& device) {
  std::set<std::string> seen;
  std::vector<Case> some;
  for (const Case& c : cases) {
    const Case which = testing::derived(op, c);
    const testing::ArgsStorage args = testing::fake_args(op, which);
    const Problem problem = bind(op, args.get(), testing::options_of(op, which));
    if (problem.empty) continue;
    const Plan plan = make_plan(op, problem, device);
    bool first = false;
    for (i32 i = 0; i < plan.count; ++i) first |= seen.insert(jit::print(plan.launches[i].spec)).second;
    if (first) some.push_back(c);
  }
  return some;
}

void plan_case(const Op& op, const Case& given, const DeviceInfo& device) {
  const Case which = testing::derived(op, given);
  const testing::ArgsStorage args = testing::fake_args(op, which);
  const Problem problem = bind(op, args.get(), testing::options_of(op, which));
  if (!problem.empty) make_plan(op, problem, device);
}

/// Throws what the first case is refused for where that is a word of the user's and no other value of another parameter helps: the
/// search for allowed cases would try them all.
void refuse_word(const Op& op, const std::vector<CaseAxis>& fixed, const std::vector<CaseAxis>& parameters, const DeviceInfo& device) {
  Case first;
  for (const CaseAxis& p : parameters) first[p.name] = p.values[0];
  try {
    return plan_case(op, first, device);
  } catch (const Error& e) {
    if (std::none_of(fixed.begin(), fixed.end(), [&](const CaseAxis& f) { return f.name == e.argument(); })) return;
    for (const CaseAxis& p : parameters)
      for (const CaseValue& value : p.values) {
        Case changed = first;
        changed[p.name] = value;
        if (testing::runs(op, changed, device)) return;
      }
    throw;
  }
}

std::vector<CheckJob> jobs_of(const CheckCommandOptions& options, const Wanted& wanted, const Devices& devices,
                              testing::GpuCompiles& compiles) {
  std::vector<CheckJob> jobs;
  const DeviceInfo& judge = devices.list()[0].device->info();
  for (const Op* op : wanted.ops) {
    const std::vector<CaseAxis> fixed = testing::parse_words(*op, wanted.words);
    const std::vector<CaseAxis> parameters = testing::parameters_of(*op, fixed);
    const auto allowed = [&](const Case& c) { return testing::runs(*op, c, judge); };
    refuse_word(*op, fixed, parameters, judge);
    std::vector<Case> cases = options.full ? testing::full_product(parameters, allowed) : testing::pairwise(parameters, allowed);
    if (cases.empty()) {  // say why: bind and plan the first case without a net
      Case first;
      for (const CaseAxis& p : parameters) first[p.name] = p.values[0];
      const testing::CaseArgs args(*op, first, 1);
      make_plan(*op, bind(*op, args.args(), testing::options_of(*op, args.which())), judge);
    }
    testing::add_hostility(*op, cases, options.rotate, fixed);
    if (options.each_kernel) cases = each_kernel(*op, cases, judge);
    for (const size_t i : sample_of(cases.size(), size_t(options.sample), options.rotate))
      for (int s = 0; s < options.seeds; ++s)
        jobs.push_back({op, cases[i], options.seed + u64(s), devices.list(), options.no_nvrtc ? nullptr : &compiles});
  }
  return jobs;
}

std::string counted(size_t count, const char* what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

/// "on 1 device"; or "in 3 ways: ..": an emulated device counts once for each policy, and which they are is said.
std::string devices_text(const Devices& devices) {
  if (devices.list().size() == 1) return "on 1 device";
  std::string text;
  for (const testing::CheckDevice& on : devices.list()) text += (text.empty() ? "" : ", ") + on.words;
  return fmt::format("in {} ways: {}", devices.list().size(), text);
}

struct Tally {
  i64 of[CheckResult::kVerdicts] = {};  ///< by verdict
  double error = 0;

  i64 operator[](CheckResult::Verdict v) const { return of[int(v)]; }
};

/// A wrong result and a kernel that does not compile outweigh a refused call, that one what was frozen or ran nowhere.
int exit_code_of(const std::map<std::string, Tally>& tallies) {
  using Verdict = CheckResult::Verdict;
  Tally all;
  for (const auto& [op, t] : tallies)
    for (int v = 0; v < CheckResult::kVerdicts; ++v) all.of[v] += t.of[v];
  if (all[Verdict::wrong] || all[Verdict::compile]) return kWrong;
  if (all[Verdict::refused]) return kBadInput;
  return all[Verdict::frozen] || !all[Verdict::right] ? kEnvironment : kRight;
}

nlohmann::ordered_json to_json(const CheckResult& r) {
  return {{"op", r.op},
          {"case", r.which},
          {"runs_as", r.made},
          {"device", r.device},
          {"variant", r.variant},
          {"kernels", r.kernels},
          {"verdict", name(r.verdict)},
          {"ok", r.ok()},
          {"error", std::isfinite(r.error) ? nlohmann::ordered_json(r.error) : "infinite"},
          {"us", r.us},
          {"message", r.message},
          {"repro", r.repro},
          {"gpu_arch", r.gpu_arch}};
}

/// What a call was refused with, without the kernel and the place: of a compiler the lines that say "error:", from there on. Empty: it was
/// not refused, its result is wrong.
std::string refusal_of(const CheckResult& r) {
  if (r.message.starts_with("value error: ")) return r.message;
  if (!r.message.starts_with("compile error: ")) return "";
  std::string said;
  std::istringstream lines(r.message.substr(r.message.find(':') + 1));
  for (std::string line; std::getline(lines, line);)
    if (const size_t at = line.find("error: "); at != std::string::npos) said += line.substr(at) + "\n";
  return said.empty() ? r.message : said;
}

std::string runs_as(const CheckResult& r) { return r.made.empty() ? "" : " (runs as " + r.made + ")"; }

/// Failures as they come. Hooks that do not compile are refused in each case of an op: it is said once, then counted.
class Failures {
 public:
  void print(Progress& progress, const CheckResult& r) {
    const std::string refusal = refusal_of(r);
    if (!refusal.empty() && times_[{r.op, refusal}]++ > 0) return;
    progress.line(fmt::format("{} {}{}{} {}{}\n  {}\n  {}\n  {}", upper(name(r.verdict)), r.op, r.variant.empty() ? "" : " ", r.variant,
                              r.which, runs_as(r), r.message, r.kernels.empty() ? "no kernel" : r.kernels, r.repro));
  }
  void print_counts() const {
    for (const auto& [said, times] : times_)
      if (times > 1)
        fmt::print("{}: {} with the same text: {}\n", said.first, counted(size_t(times - 1), "more failure"),
                   said.second.substr(0, said.second.find('\n')));
  }

 private:
  std::map<std::pair<std::string, std::string>, int> times_;  ///< by op and refusal
};

void print_summary(const std::map<std::string, Tally>& tallies, const testing::GpuCompiles& compiles, double seconds) {
  Table table({"op", "right", "wrong", "unsupported", "refused", "frozen", "compile", "worst error/tolerance"});
  for (const auto& [op, t] : tallies) {
    std::vector<std::string> row = {op};
    for (const i64 count : t.of) row.push_back(std::to_string(count));
    row.push_back(fmt::format("{:.3g}", t.error));
    table.add(row);
  }
  const jit::Counters c = jit::counters();
  const std::string for_gpu =
      compiles.count() ? fmt::format("; {} also compiled for a GPU", counted(size_t(compiles.count()), "kernel")) : "";
  fmt::print("{}{:.1f} s, {} kernels compiled, {} from the cache{}\n", table.text(), seconds, c.compiled, c.from_disk, for_gpu);
  if (!compiles.left_out().empty()) fmt::print(stderr, "{}\n", compiles.left_out());
  for (const auto& [op, t] : tallies)
    if (t[CheckResult::Verdict::unsupported])
      return fmt::print("unsupported: no kernel of the op runs the case there, and it says why; neither right nor wrong\n");
}

void print_left_out(FILE* to, const std::map<std::string, size_t>& cases, double seconds) {
  std::string text;
  for (const auto& [op, count] : cases) text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", count, op);
  if (!text.empty()) fmt::print(to, "cases left out after {} s of an op: {}\n", seconds, text);
}

}  // namespace

int check(const CheckCommandOptions& options) {
  if (!options.json) print_source_note();
  const Wanted wanted = parse(options.words);
  DeviceOptions on = options.on;
  if (on.device.empty()) on.device = "all";
  const bool one_at_a_time = options.threads == 1;
  const Devices devices(on, one_at_a_time ? 0 : 1);
  testing::GpuCompiles compiles;
  const std::vector<CheckJob> jobs = jobs_of(options, wanted, devices, compiles);
  std::map<std::string, Tally> tallies;
  auto results_json = nlohmann::ordered_json::array();
  Failures failures;
  std::map<std::string, size_t> left_out;  // cases by op
  const auto start = std::chrono::steady_clock::now();
  {
    if (!options.json)
      fmt::print(stderr, "{} of {} {}\n", counted(jobs.size(), "case"), counted(wanted.ops.size(), "op"), devices_text(devices));
    Progress progress(i64(jobs.size()));
    testing::check_cases(jobs, options.threads, options.seconds, [&](const CheckJob& job, const std::vector<CheckResult>& results) {
      if (results.empty()) ++left_out[job.op->id];
      for (const CheckResult& r : results) {
        Tally& t = tallies[r.op];
        ++t.of[int(r.verdict)];
        t.error = std::fmax(t.error, r.error);
        if (options.json) results_json.push_back(to_json(r));
        else if (!r.ok()) failures.print(progress, r);
        else if (wanted.ops.size() == 1 && !options.quiet && jobs.size() <= 100)
          progress.line(fmt::format("{} {} {} {}{} {} error {:.3g}{}", r.verdict == CheckResult::Verdict::right ? "right" : "UNSUPPORTED",
                                    r.op, r.variant, r.which, runs_as(r), r.device, r.error, r.message.empty() ? "" : ": " + r.message));
      }
      progress.step(job.op->id);
    });
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.json) std::puts(results_json.dump(2).c_str());
  else failures.print_counts(), print_summary(tallies, compiles, seconds);
  print_left_out(options.json ? stderr : stdout, left_out, options.seconds);
  return exit_code_of(tallies);
}

}  // namespace quern::cli
