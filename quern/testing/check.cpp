// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/check.h"

#include <new>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <thread>

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

int rows_dim(const Op& op, const TensorDef& t) {
  int found = -1;
  for (int d = 0; d < t.rank; ++d) {
    const Extent& e = t.extents[d];
    if (e.factor == 0 || e.axis != op.rows) continue;
    found = d == 0 && e.factor == 1 && e.offset == 0 ? 0 : -2;
  }
  return found;
}

bool has_row_offsets(const Op& op, const TensorDef& t) {
  const Extent& e = t.extents[0];
  return t.rank == 1 && e.factor == 1 && e.axis == op.rows && e.offset == 1;
}

void keep_row(const Op& op, void* args, i64 row) {
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    TensorView& v = op.tensor(args, i);
    if (!v.present()) continue;
    if (rows_dim(op, op.tensors[i]) == 0) v = v.slice(0, row, row + 1);
    if (has_row_offsets(op, op.tensors[i])) v = v.slice(0, row, row + 2);
  }
}

/// Tensors of generated contents may point at rows, which a cut moves; not those that row offsets point at.
bool rows_can_be_sliced(const Op& op, const void* args) {
  if (!op.has_rows) return false;
  const auto absent = [&](size_t i) { return args && !op.tensor(args, i).present(); };
  bool offsets = false;
  for (size_t i = 0; i < op.tensors.size(); ++i) offsets |= !absent(i) && has_row_offsets(op, op.tensors[i]);
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorDef& t = op.tensors[i];
    if (absent(i) || has_row_offsets(op, t)) continue;
    const int dim = rows_dim(op, t);
    const bool generated = t.values.kind == Values::Kind::generated;
    const bool indexes_rows = (t.values.kind == Values::Kind::index || t.values.kind == Values::Kind::permutation) && t.values.axis == op.rows;
    if (dim == -2 || indexes_rows || (generated && dim != 0 && !offsets)) return false;
  }
  return true;
}

namespace {

/// One variant of one case on one device.
class VariantCheck {
 public:
  VariantCheck(CaseArgs& args, const std::vector<Truth>& truths, const CheckJob& job, const CheckDevice& on,
               DeviceArgs& device_args)
      : op_(*job.op), args_(args), truths_(truths), job_(job), on_(on), device_args_(device_args) {}

  CheckResult run_variant(const char* variant) {
    CheckResult r;
    r.op = op_.id;
    r.device = on_.words;
    r.which = case_text(op_, job_.given);
    r.variant = variant ? variant : "";
    r.repro = "quern check " + op_.id + (r.which.empty() ? "" : " ") + r.which + " --seed " +
              std::to_string(job_.seed) + " " + on_.words;
    RunOptions options = options_of(op_, args_.which());
    options.device = on_.device;
    options.variant = variant;
    try {
      judge_run(options, r);
      if (r.ok()) judge_rows(options, r);
    } catch (const Error& e) {
      r.verdict = e.kind() == ErrorKind::unsupported ? CheckResult::Verdict::rejected : CheckResult::Verdict::wrong;
      r.message = (r.ok() ? "" : std::string(name(e.kind())) + " error: ") + e.what();
    } catch (const std::bad_alloc&) {
      r.verdict = CheckResult::Verdict::wrong;
      r.message = "out of host memory";
    }
    return r;
  }

 private:
  void call(const void* args, const RunOptions& options) {
    args_.reset();
    device_args_.upload();
    run(op_, args, options);
    device_args_.download();
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

  i64 rows() const {
    for (size_t i = 0; i < op_.tensors.size(); ++i)
      if (rows_dim(op_, op_.tensors[i]) == 0 && args_.tensor(i).present()) return args_.tensor(i).shape[0];
    return 0;
  }

  /// Bytes of row r of every output, in order.
  std::string row_bits(i64 r) const {
    std::string bits;
    for (const Truth& t : truths_) {
      if (rows_dim(op_, op_.tensors[t.tensor]) != 0) continue;
      const TensorView v = args_.tensor(t.tensor).slice(0, r, r + 1);
      const i64 size = size_of(v.dtype);
      each_row(v, [&](char* row, const i64*) {
        for (i64 j = 0; j < v.shape[v.rank - 1]; ++j) bits.append(row + j * v.strides[v.rank - 1] * size, size_t(size));
      });
    }
    return bits;
  }

  /// Batch invariance: a row alone has the bits that it has in the batch.
  void judge_rows(RunOptions options, CheckResult& result) {
    const i64 n = rows();
    const auto& cases = op_.cases;
    const bool has_mode =
        std::any_of(cases.begin(), cases.end(), [](const CaseAxis& c) { return c.name == "batch_invariant"; });
    if (!rows_can_be_sliced(op_, args_.args()) || n < 2 || (has_mode && !options.batch_invariant)) return;
    options.batch_invariant = true;
    call(device_args_.args(), options);
    const i64 picked[] = {n / 2, n - 1};
    const std::string together[] = {row_bits(picked[0]), row_bits(picked[1])};
    for (int k = picked[0] == picked[1]; k < 2; ++k) {
      ArgsStorage one(op_);
      std::memcpy(one.get(), device_args_.args(), op_.args_bytes);
      keep_row(op_, one.get(), picked[k]);
      call(one.get(), options);
      if (row_bits(picked[k]) == together[k]) continue;
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
};

/// Variants that accept the problem on the device; the one asked for when the case states it.
std::vector<const char*> variants_of(const Op& op, const CaseArgs& args, const DeviceInfo& device) {
  const RunOptions options = options_of(op, args.which());
  if (options.variant) return {options.variant};
  const Problem problem = bind(op, args.args(), options);
  std::vector<const char*> names;
  if (problem.empty) return {nullptr};
  for (const Variant& v : op.variants)
    if (!v.rejects || !v.rejects(problem, device)) names.push_back(v.name);
  if (names.empty()) names.push_back(nullptr);  // run then tells why
  return names;
}

CheckResult failure(const CheckJob& job, const std::string& message) {
  CheckResult r;
  r.op = job.op->id;
  r.which = case_text(*job.op, job.given);
  r.verdict = CheckResult::Verdict::wrong;
  r.message = message;
  r.repro = "quern check " + r.op + " " + r.which + " --seed " + std::to_string(job.seed);
  return r;
}

}  // namespace

std::vector<CheckResult> check_case(const CheckJob& job) {
  std::vector<CheckResult> results;
  try {
    CaseArgs args(*job.op, job.given, job.seed);
    bind(*job.op, args.args(), options_of(*job.op, args.which()));  // before the reference trusts the shapes
    const std::vector<Truth> truths = truth_of(args);
    for (const CheckDevice& on : job.devices) {
      DeviceArgs device_args(args, *on.device);
      VariantCheck check(args, truths, job, on, device_args);
      for (const char* variant : variants_of(*job.op, args, on.device->info()))
        results.push_back(check.run_variant(variant));
    }
  } catch (const Error& e) {
    results.push_back(failure(job, std::string(name(e.kind())) + " error: " + e.what()));
  }
  return results;
}

void check_cases(const std::vector<CheckJob>& jobs, int threads,
                 const std::function<void(const CheckJob&, const std::vector<CheckResult>&)>& report) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  const auto work = [&] {
    for (size_t i; (i = next++) < jobs.size();) {
      const std::vector<CheckResult> results = check_case(jobs[i]);
      std::lock_guard lock(mutex);
      report(jobs[i], results);
    }
  };
  if (threads <= 0) threads = int(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> pool;
  for (int t = 1; t < threads && size_t(t) < jobs.size(); ++t) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
}

}  // namespace quern::testing
