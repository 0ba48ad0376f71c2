// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/prove.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "quern/testing/exact.h"
#include "quern/testing/pairwise.h"

namespace quern::testing {

namespace {

DeviceInfo with_sms(const char* arch, i32 sms) {
  DeviceInfo info = device_info_of(Arch::parse(arch));
  if (sms > 0) info.sms = sms;
  return info;
}

ProofDevice made(const char* arch, i32 sms, EmulatedOptions how, std::string words) {
  if (sms > 0) words += fmt::format(", {} SMs", sms);
  return {make_emulated_device(with_sms(arch, sms), how), arch + words};
}

bool ends_with_one_of(const std::string& name, std::initializer_list<const char*> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](const char* end) { return name.ends_with(end); });
}

/// The case, and the case with one parameter changed that says how data lies or how it is summed, never what it is.
std::vector<Case> layouts_of(const Op& op, const Case& given) {
  std::vector<Case> all = {given};
  for (const CaseAxis& axis : op.cases) {
    if (axis.name != "batch_invariant" && !ends_with_one_of(axis.name, {".pad", ".shift", ".swap", ".transposed"})) continue;
    for (const CaseValue& value : axis.values) {
      Case changed = given;
      changed[axis.name] = value;
      if (changed != given) all.push_back(changed);
    }
  }
  return all;
}

struct Call {
  RunOptions options;
  std::string plan;  ///< kernels and grids; empty: nothing is launched
};

Call call_of(const Op& op, const CaseArgs& args, Device& device, const char* variant) {
  Call call{options_of(op, args.which()), ""};
  call.options.device = &device;
  if (variant) call.options.variant = variant;
  const Problem problem = bind(op, args.args(), call.options);
  if (problem.empty) return call;
  const Plan plan = make_plan(op, problem, device.info());
  for (i32 i = 0; i < plan.count; ++i) {
    const LaunchConfig& c = plan.launches[i].config;
    call.plan += fmt::format("{}{} grid {}x{}x{}", i ? " + " : "", jit::print(plan.launches[i].spec), c.grid[0], c.grid[1], c.grid[2]);
  }
  return call;
}

std::vector<const char*> accepted_variants(const Op& op, const CaseArgs& args, const DeviceInfo& info) {
  const RunOptions options = options_of(op, args.which());
  if (options.variant) return {nullptr};
  const Problem problem = bind(op, args.args(), options);
  if (problem.empty) return {nullptr};
  std::vector<const char*> names;
  for (const Variant& v : op.variants)
    if (v.takes(problem, info)) names.push_back(v.name);
  if (names.empty()) names.push_back(nullptr);  // run then tells why
  return names;
}

/// How a case is run: its layout, on which device, by which variant (null: plan's choice).
struct Way {
  Case which;
  const ProofDevice* on = nullptr;
  const char* variant = nullptr;
};

std::vector<Way> ways_of(const Op& op, const Case& given, u64 seed, const std::vector<ProofDevice>& devices, int most) {
  std::vector<Way> all;
  for (const Case& which : layouts_of(op, given)) {
    if (which != given && !runs(op, which, devices[0].device->info())) continue;
    const CaseArgs args(op, which, seed, Number::order_free);
    for (const ProofDevice& on : devices)
      for (const char* variant : accepted_variants(op, args, on.device->info())) all.push_back({which, &on, variant});
  }
  if (most <= 0 || size_t(most) >= all.size()) return all;
  std::vector<Way> some;
  for (int i = 0; i < most; ++i) some.push_back(all[size_t(i) * all.size() / size_t(most)]);
  return some;
}

}  // namespace

Prover::Prover(int most_ways) : most_ways_(most_ways) {
  EmulatedOptions exact;
  exact.number = Number::order_free;
  // Other counts of SMs and other shared memory split the same work in other places
  order_free_.push_back(made("sm_90a", 0, exact, ""));
  order_free_.push_back(made("sm_90a", 1, exact, ""));
  order_free_.push_back(made("sm_90a", 7, exact, ""));
  order_free_.push_back(made("sm_86", 0, exact, ""));
  EmulatedOptions tree;
  tree.number = Number::tree;
  tree_.push_back(made("sm_90a", 0, tree, ""));
  tree_.push_back(made("sm_90a", 7, tree, ""));
  tree.os_threads = 1, tree.schedule = SchedulePolicy::shuffled, tree.async = AsyncPolicy::random;
  tree_.push_back(made("sm_90a", 0, tree, ", shuffled, one OS thread"));
}

namespace {

/// Runs a case in several ways and compares the outputs, with several draws of its floating data: lengths and indices stay, so
/// that what depends on them shows each time.
class Comparer {
 public:
  Comparer(const Op& op, u64 seed, const Way& first) : op_(op), seed_(seed), first_(first) {}

  /// Why the way is wrong with the data of trial 0, 1, ..; empty when it is not.
  std::string judge(const Way& way, size_t trial) {
    if (trial == expected_.size()) expected_.push_back(expected_of(trial));
    if (!unknown_.empty()) return unknown_;
    CaseArgs args = args_of(way, trial);
    call(way, args);
    return difference(args, expected_[trial]);
  }
  int plans() const { return int(plans_.size()); }

 private:
  CaseArgs args_of(const Way& way, size_t trial) const { return CaseArgs(op_, way.which, seed_, Number::order_free, trial); }

  void call(const Way& way, CaseArgs& args) {
    const Call call = call_of(op_, args, *way.on->device, way.variant);
    run(op_, args.args(), call.options);
    plans_.insert(call.plan);
  }

  /// The meaning, or without a reference for it what the first way yields.
  std::vector<Expected> expected_of(size_t trial) {
    CaseArgs args = args_of(first_, trial);
    if (!op_.order_free) call(first_, args);
    std::vector<Expected> expected = op_.order_free ? meaning_of(args) : outputs_of(args);
    unknown_ = without_meaning(args, expected);
    return expected;
  }

  const Op& op_;
  const u64 seed_;
  const Way first_;
  std::vector<std::vector<Expected>> expected_;
  std::string unknown_;
  std::set<std::string> plans_;
};

}  // namespace

void Prover::prove_exact(const Op& op, const Case& given, u64 seed, Proof& proof) {
  constexpr size_t kTrials = 3;  // a difference must show in all of them: a sum of the field is 0 by chance
  const std::vector<Way> ways = ways_of(op, given, seed, order_free_, most_ways_);
  Comparer comparer(op, seed, ways.at(0));
  proof.by_meaning = op.order_free != nullptr;
  for (const Way& way : ways) {
    ++proof.ways;
    std::string wrong, found;
    for (size_t trial = 0; trial < kTrials; ++trial) {
      found = comparer.judge(way, trial);
      if (found.empty()) break;
      if (wrong.empty()) wrong = found;
    }
    proof.plans = comparer.plans();
    proof.coincidences += found.empty() && !wrong.empty();
    if (found.empty()) continue;
    proof.message = fmt::format("not exact on {} with {}: {}", way.on->words, case_text(op, way.which), wrong);
    return;
  }
  proof.exact = true;
}

Proof Prover::prove(const Op& op, const Case& asked, u64 seed) {
  const Case given = complete(op, asked);
  Proof proof;
  proof.op = op.id;
  proof.which = case_text(op, given);
  if (op.not_proved) return proof.skipped = op.not_proved, proof;
  const auto guarded = [&](auto step) {
    if (!proof.ok()) return;
    try {
      (this->*step)(op, given, seed, proof);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::value || e.kind() == ErrorKind::type) throw;
      proof.message = e.what();
    }
  };
  guarded(&Prover::prove_exact);
  guarded(&Prover::prove_repeatable);
  guarded(&Prover::prove_rows);
  return proof;
}

}  // namespace quern::testing
