// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/observe.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <type_traits>
#include <unordered_map>

#include "quern/base/hash.h"
#include "quern/base/host_dtype.h"
#include "quern/base/log.h"
#include "quern/jit/spec.h"
#include "quern/op/tensor_bytes.h"
#include "quern/op/trace.h"

namespace quern {

namespace {

std::atomic<int> g_observed = -1;  // -1: nobody looked yet

struct SpecHash {
  size_t operator()(const jit::KernelSpec& spec) const {
    static_assert(std::has_unique_object_representations_v<jit::KernelSpec>);
    return hash64(&spec, sizeof spec);
  }
};

/// "norm.rms_norm: norm_row<...>".
std::string call_name(const ObservedCall& call) {
  std::string text = call.op.id + ":";
  for (i32 i = 0; i < call.plan.count; ++i) text += (i ? " + " : " ") + kernel_names(call.plan.launches[i].spec).printed;
  return text;
}

std::string tensor_line(const TensorDef& t, const TensorView& v) {
  std::string strides;
  for (int d = 0; d < v.rank; ++d) strides += (d ? ", " : "") + std::to_string(v.strides[d]);
  return fmt::format("\n  {} {} {} strides [{}] at {} on {}", t.name, name(v.dtype), shape_string(v), strides, fmt::ptr(v.data),
                     place_name(v.device));
}

std::string attributes_line(const ObservedCall& call) {
  std::string text;
  for (const AttrDef& a : call.op.attrs) {
    const Scalar value = attr_value(a, call.args);
    text += value.is_real() ? fmt::format(" {}={:.7g}", a.name, double(value)) : fmt::format(" {}={}", a.name, value.integer());
  }
  if (call.options.batch_invariant) text += " batch_invariant=1";
  if (call.options.pdl) text += " pdl=1";
  if (call.options.skip_check) text += " skip_check=1";
  if (call.options.variant) text += fmt::format(" variant={}", call.options.variant);
  if (call.problem.hooks) text += fmt::format(" hooks={}", call.problem.hooks->name);
  return text.empty() ? text : "\n " + text;
}

/// "min -1.2 max 3.1 mean 0.02 nan 0 inf 0" of packed elements.
std::string statistics(const char* bytes, DType dtype, i64 count) {
  double least = HUGE_VAL, most = -HUGE_VAL, sum = 0;
  i64 nans = 0, infinities = 0;
  for (i64 i = 0; i < count; ++i) {
    const double x = load_value(bytes + i * size_of(dtype), dtype);
    if (std::isnan(x)) ++nans;
    else if (std::isinf(x)) ++infinities;
    else least = std::fmin(least, x), most = std::fmax(most, x), sum += x;
  }
  const i64 finite = count - nans - infinities;
  const std::string range =
      finite ? fmt::format("min {:.6g} max {:.6g} mean {:.6g}", least, most, sum / double(finite)) : "no finite element";
  return range + fmt::format(" nan {} inf {}", nans, infinities);
}

std::string statistics_line(const ObservedCall& call, size_t i) {
  constexpr i64 kMost = i64(1) << 30;
  const TensorView& v = call.op.tensor(call.args, i);
  const i64 bytes = packed_bytes(v);
  if (bytes == 0) return "empty";
  if (bytes > kMost) return fmt::format("not read: {} MB, at most {} are", bytes >> 20, kMost >> 20);
  return statistics(packed_elements(v, call.device, call.options.stream).get(), v.dtype, v.numel());
}

void log_before(const ObservedCall& call, const std::string& called) {
  std::string text = called;
  if (log_enabled(LogLevel::tensors)) {
    text += attributes_line(call);
    for (size_t i = 0; i < call.op.tensors.size(); ++i) {
      const TensorView& v = call.op.tensor(call.args, i);
      if (!v.present()) continue;
      text += tensor_line(call.op.tensors[i], v);
      if (log_enabled(LogLevel::statistics) && !call.capturing && call.op.tensors[i].role != Role::out)
        text += ": " + statistics_line(call, i);
    }
    if (log_enabled(LogLevel::statistics) && call.capturing) text += "\n  the stream is capturing: its tensors are not read";
  }
  log(LogLevel::call, text);
}

void log_after(const ObservedCall& call) {
  std::string text = call.op.id + " done";
  for (size_t i = 0; i < call.op.tensors.size(); ++i) {
    if (call.op.tensors[i].role == Role::in || !call.op.tensor(call.args, i).present()) continue;
    text += "\n  " + call.op.tensors[i].name + ": " + statistics_line(call, i);
  }
  log(LogLevel::statistics, text);
}

}  // namespace

bool calls_observed() {
  const int observed = g_observed.load(std::memory_order_relaxed);
  if (observed >= 0) [[likely]]
    return observed != 0;
  look_for_tracing();
  return g_observed.load(std::memory_order_relaxed) != 0;
}

const KernelNames& kernel_names(const jit::KernelSpec& spec) {
  static std::mutex& mutex = *new std::mutex;
  static auto& names = *new std::unordered_map<jit::KernelSpec, KernelNames, SpecHash>;  // nodes stay where they are
  const std::lock_guard lock(mutex);
  const auto at = names.find(spec);
  return at != names.end() ? at->second : names.emplace(spec, KernelNames{jit::print(spec), jit::entry_name(spec)}).first->second;
}

void set_observed(bool tracing) { g_observed.store(tracing || log_enabled(LogLevel::call), std::memory_order_relaxed); }

void observe(const ObservedCall& call, void (*launch)(const ObservedCall&)) {
  const std::string called = call_name(call);
  std::string folder;
  try {
    if (log_enabled(LogLevel::call)) log_before(call, called);
    if (tracing()) folder = record_inputs(call);
    remember_call(folder.empty() ? called : called + " (" + folder + ")");
    launch(call);
    if (call.capturing) return;
    if (!folder.empty() && trace_left_out(call).empty()) record_outputs(call, folder);
    if (log_enabled(LogLevel::statistics)) log_after(call);
  } catch (const Error& e) {
    if (folder.empty()) throw;
    record_failure(folder, e);
    std::string note = "\nthe call is recorded in " + folder;
    const char* trust = call.problem.hooks == call.op.hooks ? "" : " --trust-hooks";
    if (e.kind() == ErrorKind::device)
      note += "; to find the thread and line: quern run --replay " + folder + " --device emu --checked" + trust;
    throw e.in_call(call.op.id, note);
  }
}

}  // namespace quern
