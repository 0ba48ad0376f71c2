// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/check.h"

#include <new>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "quern/base/env.h"
#include "quern/testing/call_chain.h"
#include "quern/testing/rows.h"

namespace quern::testing {

std::string kernels_text(const Plan& plan) {
  std::string text;
  for (i32 i = 0; i < plan.count; ++i) text += (i ? " + " : "") + jit::print(plan.launches[i].spec);
  return text;
}

Comparison judge(const CaseArgs& args, const std::vector<Truth>& truths, const Problem& problem) {
  Comparison worst;
  for (const Truth& truth : truths) {
    Comparison c = compare(args.tensor(truth.tensor), truth.values, truth.magnitudes, budget_of(args.op(), problem, truth.tensor));
    c.message = c.ok ? "" : "`" + args.op().tensors[truth.tensor].name + "` " + c.message;
    if ((worst.ok && !c.ok) || (worst.ok == c.ok && c.error > worst.error)) worst = c;
  }
  if (const std::string damage = args.damage(); worst.ok && !damage.empty()) {
    worst.ok = false;
    worst.error = HUGE_VAL;
    worst.message = damage;
  }
  return worst;
}

namespace {

/// The command that makes the case again, behind what the environment said.
std::string repro_of(const CheckJob& job, const std::string& which, const std::string& words) {
  return with_environment("quern check " + job.op->id + (which.empty() ? "" : " ") + which + " --seed " + std::to_string(job.seed) + words);
}

/// One variant of one case on one device.
class VariantCheck {
 public:
  VariantCheck(CaseArgs& args, const std::vector<Truth>& truths, const CheckJob& job, const CheckDevice& on, DeviceArgs& device_args)
      : op_(*job.op), args_(args), truths_(truths), job_(job), on_(on), device_args_(device_args), chain_(*on.device) {}

  CheckResult run_variant(const char* variant) {
    CheckResult r;
    r.op = op_.id;
    r.device = on_.words;
    r.which = case_text(op_, job_.given);
    r.made = made_of(op_, job_.given);
    r.variant = variant ? variant : "";
    ran_.clear();
    r.repro = repro_of(job_, r.which, " " + on_.words);
    RunOptions options = options_of(op_, args_.which());
    options.device = on_.device;
    options.variant = variant;
    try {
      judge_run(options, r);
      if (r.ok()) judge_rows(options, r);
      compile_for_gpu(r);
    } catch (const Error& e) {
      r.verdict = verdict_of(e.kind());
      r.message = (r.ok() ? "" : std::string(name(e.kind())) + " error: ") + e.what();
    } catch (const std::bad_alloc&) {
      r.verdict = CheckResult::Verdict::wrong;
      r.message = "out of host memory";
    }
    return r;
  }
  /// Kernels that the GPU's compiler refuses.
  const std::vector<CheckResult>& refused_kernels() const { return refused_kernels_; }

 private:
  void call(const void* args, const RunOptions& options) {
    args_.reset();
    const AllowBrokenContents allow(breaks_contract(op_, args_.which()));
    device_args_.upload();
    chain_.run(op_, args, options);
    device_args_.download();
    remember_kernels(args, options);
  }

  void remember_kernels(const void* args, const RunOptions& options) {
    const DeviceInfo& device = on_.device->info();
    if (!job_.compiles || !device.emulated) return;
    const Problem problem = bind(op_, args, options);
    if (problem.empty) return;
    const Plan plan = make_plan(op_, problem, device);
    for (i32 i = 0; i < plan.count; ++i) ran_.push_back(plan.launches[i].spec);
  }

  void judge_run(const RunOptions& options, CheckResult& r) {
    const Problem problem = bind(op_, args_.args(), options);
    if (!problem.empty) r.kernels = kernels_text(make_plan(op_, problem, on_.device->info()));
    const auto start = std::chrono::steady_clock::now();
    call(device_args_.args(), options);
    r.us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    const Comparison c = judge(args_, truths_, problem);
    r.error = c.error;
    if (!c.ok) r.verdict = CheckResult::Verdict::wrong, r.message = c.message;
  }

  /// What ran on an emulated device must compile for the GPU that it stands for.
  void compile_for_gpu(CheckResult& r) {
    const Arch arch = on_.device->info().arch;
    if (ran_.empty() || !job_.compiles->available(arch)) return;
    r.gpu_arch = arch.name();
    for (const jit::KernelSpec& spec : ran_) {
      const std::string refusal = job_.compiles->refusal(spec, arch);
      if (refusal.empty()) continue;
      CheckResult kernel = r;
      kernel.verdict = CheckResult::Verdict::compile;
      kernel.error = kernel.us = 0;
      kernel.kernels = jit::print(spec);
      kernel.message = refusal;
      refused_kernels_.push_back(kernel);
    }
  }

  /// Batch invariance: a row alone has the bits that it has in the batch. Not those of NaN: their sign is the compiler's choice on a CPU.
  void judge_rows(RunOptions options, CheckResult& result) {
    const i64 n = row_count(op_, args_.args());
    if (!rows_can_be_sliced(op_, args_.args()) || n < 2 || (has_invariant_mode(op_) && !options.batch_invariant)) return;
    options.batch_invariant = true;
    call(device_args_.args(), options);
    const i64 unit = row_unit(op_, args_.args()), picked[] = {n / 2 / unit * unit, (n - 1) / unit * unit};
    const std::string together[] = {output_bytes(args_, picked[0], true), output_bytes(args_, picked[1], true)};
    for (int k = picked[0] == picked[1]; k < 2; ++k) {
      ArgsStorage one(op_);
      std::memcpy(one.get(), device_args_.args(), op_.args_bytes);
      keep_rows(op_, one.get(), picked[k], picked[k] + 1);
      call(one.get(), options);
      if (output_bytes(args_, picked[k], true) == together[k]) continue;
      result.verdict = CheckResult::Verdict::wrong;
      result.message = std::string("not batch invariant: ") + name(op_.rows) + " index " + std::to_string(picked[k]) +
                       " has other bits alone than among " + std::to_string(n);
      return;
    }
  }

  const Op& op_;
  CaseArgs& args_;
  const std::vector<Truth>& truths_;
  const CheckJob& job_;
  const CheckDevice& on_;
  DeviceArgs& device_args_;
  CallChain chain_;
  std::vector<jit::KernelSpec> ran_;  ///< on an emulated device, by the variant
  std::vector<CheckResult> refused_kernels_;
};

/// Variants that accept the problem on the device; the one asked for when the case states it.
std::vector<const char*> variants_of(const Op& op, const CaseArgs& args, const DeviceInfo& device) {
  const RunOptions options = options_of(op, args.which());
  if (options.variant) return {options.variant};
  const Problem problem = bind(op, args.args(), options);
  std::vector<const char*> names;
  if (problem.empty) return {nullptr};
  for (const Variant& v : op.variants)
    if (v.takes(problem, device)) names.push_back(v.name);
  if (names.empty()) names.push_back(nullptr);  // run then tells why
  return names;
}

CheckResult failure(const CheckJob& job, CheckResult::Verdict verdict, const std::string& message) {
  CheckResult r;
  r.op = job.op->id;
  r.which = case_text(*job.op, job.given);
  r.verdict = verdict;
  r.message = message;
  r.repro = repro_of(job, r.which, "");
  return r;
}

}  // namespace

const char* name(CheckResult::Verdict verdict) {
  static const char* const names[] = {"right", "wrong", "unsupported", "refused", "frozen", "compile"};
  return names[int(verdict)];
}

CheckResult::Verdict verdict_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::unsupported: return CheckResult::Verdict::unsupported;
    case ErrorKind::value:
    case ErrorKind::type: return CheckResult::Verdict::refused;
    case ErrorKind::frozen: return CheckResult::Verdict::frozen;
    default: return CheckResult::Verdict::wrong;
  }
}

std::vector<CheckResult> check_case(const CheckJob& job) {
  std::vector<CheckResult> results;
  try {
    CaseArgs args(*job.op, job.given, job.seed);
    bind(*job.op, args.args(), options_of(*job.op, args.which()));  // before the reference trusts the shapes
    const std::vector<Truth> truths = truth_of(args);
    for (const CheckDevice& on : job.devices) {
      DeviceArgs device_args(args, *on.device);
      VariantCheck check(args, truths, job, on, device_args);
      for (const char* variant : variants_of(*job.op, args, on.device->info())) results.push_back(check.run_variant(variant));
      results.insert(results.end(), check.refused_kernels().begin(), check.refused_kernels().end());
    }
  } catch (const Error& e) { results.push_back(failure(job, verdict_of(e.kind()), std::string(name(e.kind())) + " error: " + e.what())); }
  return results;
}

void check_cases(const std::vector<CheckJob>& jobs, int threads, double seconds_an_op,
                 const std::function<void(const CheckJob&, const std::vector<CheckResult>&)>& report) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::map<const Op*, double> seconds;
  const auto work = [&] {
    for (size_t i; (i = next++) < jobs.size();) {
      const CheckJob& job = jobs[i];
      {
        std::lock_guard lock(mutex);
        if (seconds_an_op > 0 && seconds[job.op] >= seconds_an_op) {
          report(job, {});
          continue;
        }
      }
      const auto begin = std::chrono::steady_clock::now();
      const std::vector<CheckResult> results = check_case(job);
      std::lock_guard lock(mutex);
      seconds[job.op] += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      report(job, results);
    }
  };
  if (threads <= 0) threads = int(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> pool;
  for (int t = 1; t < threads && size_t(t) < jobs.size(); ++t) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
}

}  // namespace quern::testing
