// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/fuzz.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "quern/base/env.h"
#include "quern/testing/break_args.h"
#include "quern/testing/check.h"
#include "quern/testing/pairwise.h"

namespace quern::testing {

std::string fuzz_repro(const FuzzOptions& options, u64 seed) {
  return with_environment("quern fuzz 1 --seed " + std::to_string(seed) + (options.words.empty() ? "" : " " + options.words));
}

namespace {

class Fuzzer {
 public:
  Fuzzer(const FuzzOptions& options, FuzzReport& report) : options_(options), report_(report) {}

  void call(u64 seed) {
    Random random(seed);
    const Op& op = *options_.ops[size_t(random.below(i64(options_.ops.size())))];
    std::string doing = op.id;
    bool sound = false;  ///< a call that nothing was done to: no error is right
    try {
      const Case given = random_case(op, random);
      doing += " " + case_text(op, given);
      const i64 way = random.below(8);
      sound = way >= 4;
      const std::string outcome = way == 0 ? plan_huge(op, given, random, doing) : run_one(op, given, seed, way < 4, random, doing);
      ++report_.outcomes[outcome];
    } catch (const Error& e) {
      if (sound || e.kind() == ErrorKind::internal || e.kind() == ErrorKind::device || e.kind() == ErrorKind::compile)
        fail(seed, doing + ": " + name(e.kind()) + " error: " + e.what());
      ++report_.outcomes[std::string(name(e.kind())) + " error"];
    } catch (const std::exception& e) { fail(seed, doing + ": not a quern::Error: " + e.what()); }
    ++report_.calls;
  }

 private:
  void fail(u64 seed, const std::string& what) { report_.failures.push_back({what, fuzz_repro(options_, seed)}); }

  /// Kernels that the op's own cases reach: sizes are free as long as they need no other kernel.
  const std::vector<jit::KernelSpec>& kernels(const Op& op) {
    auto& known = kernels_[&op];
    if (known) return *known;
    known = std::make_unique<std::vector<jit::KernelSpec>>();
    const DeviceInfo& device = options_.device->info();
    for (const Case& c : pairwise(op.cases, [&](const Case& c) { return runs(op, c, device); })) {
      const Plan plan = plan_of(op, c);
      for (i32 i = 0; i < plan.count; ++i) known->push_back(plan.launches[i].spec);
    }
    return *known;
  }

  Plan plan_of(const Op& op, const Case& given) {
    const Case which = derived(op, given);
    const ArgsStorage args = fake_args(op, which);
    const Problem problem = bind(op, args.get(), options_of(op, which));
    return problem.empty ? Plan() : make_plan(op, problem, options_.device->info());
  }

  bool suits(const Op& op, const Case& given) {
    if (!runs(op, given, options_.device->info())) return false;
    const Case which = derived(op, given);
    const ArgsStorage args = fake_args(op, which);
    if (operand_bytes(op, args.get()) > options_.most_bytes) return false;
    const Plan plan = plan_of(op, given);
    for (i32 i = 0; i < plan.count; ++i)
      if (std::find(kernels(op).begin(), kernels(op).end(), plan.launches[i].spec) == kernels(op).end()) return false;
    return true;
  }

  static i64 random_size(i64 listed, Random& random) {
    const i64 near[] = {1, 2, 3, listed - 1, listed + 1, listed, 1 + random.below(40), 1 + random.below(2 * listed + 8)};
    return std::max<i64>(0, near[random.below(8)]);
  }

  /// Values of the op's cases, sizes at will; falls back to the first case's when nothing small enough is found.
  Case random_case(const Op& op, Random& random) {
    Case best;
    for (int attempt = 0; attempt < 40; ++attempt) {
      Case c;
      for (const CaseAxis& axis : op.cases)
        if (!axis.values.empty()) c[axis.name] = axis.values[size_t(random.below(i64(axis.values.size())))];
      for (const Axis axis : op.axes)
        if (const auto at = c.find(name(axis)); at != c.end() && random.below(3)) at->second = random_size(i64(at->second), random);
      if (!suits(op, c)) continue;
      const DataKind kind = DataKind(random.below(i64(std::size(kDataKinds))));
      if (random.below(4) == 0 && !op.unfit.has(kind)) c["fill"] = int(kind);
      return c;
    }
    return best;
  }

  /// Extents far beyond any memory, without memory: a typed refusal or a plan that makes sense.
  std::string plan_huge(const Op& op, Case given, Random& random, std::string& doing) {
    ++report_.breaks["huge extent"];
    Case which = derived(op, given);
    const std::vector<Axis>& axes = op.axes;
    for (int k = 0; k < 2 && !axes.empty(); ++k)
      which[name(axes[size_t(random.below(i64(axes.size())))])] = i64(1) << (20 + random.below(20));
    doing = op.id + " planned at " + case_text(op, which);
    const ArgsStorage args = fake_args(op, which);
    const Problem problem = bind(op, args.get(), options_of(op, which));
    if (problem.empty) return "planned";
    const Plan plan = make_plan(op, problem, options_.device->info());
    if (plan.workspace < 0) throw Error(ErrorKind::internal, "the workspace has " + std::to_string(plan.workspace) + " bytes");
    for (i32 i = 0; i < plan.count; ++i) {
      const u32* grid = plan.launches[i].config.grid;
      if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > 0x7FFFFFFF || grid[1] > 65535 || grid[2] > 65535)
        throw Error(ErrorKind::internal,
                    "the grid is " + std::to_string(grid[0]) + " x " + std::to_string(grid[1]) + " x " + std::to_string(grid[2]));
    }
    return "planned";
  }

  std::string run_one(const Op& op, const Case& given, u64 seed, bool damaged, Random& random, std::string& doing) {
    CaseArgs args(op, given, seed);
    RunOptions options = options_of(op, args.which());
    Broken broken;
    if (damaged) broken = break_args(op, args.args(), options, random);
    if (damaged) ++report_.breaks[broken.kind], doing += std::string(", ") + broken.kind + " of `" + broken.tensor + "`";
    const Problem problem = bind(op, args.args(), options);
    options.device = options_.device;
    if (broken.must_fail) throw Error(ErrorKind::internal, "was accepted");
    if (problem.empty || !broken.may_run) {
      if (!problem.empty) make_plan(op, problem, options_.device->info());
      return "planned";
    }
    const Plan plan = make_plan(op, problem, options_.device->info());
    alignas(256) char little[256];
    const bool must_refuse = broken.small_workspace && plan.workspace > 1;
    if (must_refuse) options.workspace = {little, std::min<i64>(plan.workspace - 1, 255)};
    const std::vector<Truth> truths = truth_of(args);
    DeviceArgs device_args(args, *options_.device);
    const AllowBrokenContents allow(breaks_contract(op, args.which()));
    run(op, device_args.args(), options);
    device_args.download();
    if (must_refuse)
      throw Error(ErrorKind::internal, "a workspace of " + std::to_string(options.workspace.bytes) + " bytes was accepted, " +
                                           std::to_string(plan.workspace) + " are needed");
    const Comparison c = judge(args, truths, problem);
    if (!c.ok) throw Error(ErrorKind::internal, "wrong: " + c.message);
    return "right";
  }

  const FuzzOptions& options_;
  FuzzReport& report_;
  std::map<const Op*, std::unique_ptr<std::vector<jit::KernelSpec>>> kernels_;
};

}  // namespace

FuzzReport fuzz(const FuzzOptions& options, const std::function<void(i64)>& progress) {
  FuzzReport report;
  if (options.ops.empty()) return report;
  Fuzzer fuzzer(options, report);
  for (i64 i = 0; i < options.calls; ++i) {
    fuzzer.call(options.seed + u64(i));
    if (progress) progress(i + 1);
  }
  return report;
}

}  // namespace quern::testing
