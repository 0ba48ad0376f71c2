// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What Python (and any other host of TVM-FFI) gets: typed functions; state crosses as int64 handles.
#include <dlfcn.h>
#include <tvm/ffi/container/array.h>
#include <unistd.h>

#include "quern/base/log.h"
#include "quern/cli/as_json.h"
#include "quern/cli/command_line.h"
#include "quern/ffi/error.h"
#include "quern/ffi/op_call.h"
#include "quern/ffi/op_python.h"
#include "quern/ffi/tensor.h"
#include "quern/jit/freeze.h"
#include "quern/jit/hook_text.h"
#include "quern/testing/variant_runs.h"

namespace quern::ffi {

namespace {

using tvm::ffi::Any;
using tvm::ffi::Array;
using tvm::ffi::Function;
using tvm::ffi::Optional;
using tvm::ffi::Shape;
using tvm::ffi::String;
using tvm::ffi::Tensor;

std::vector<std::string> strings(const Array<String>& list) {
  std::vector<std::string> out;
  for (const String& text : list) out.emplace_back(text);
  return out;
}

/// Ids of all registered ops.
Array<String> ops() {
  return translated([] {
    Array<String> ids;
    for (const auto& [id, op] : registry()) ids.push_back(id);
    return ids;
  });
}

String op_json(const String& id) {
  return translated([&] { return String(cli::info_json(id)); });
}

Function op(const String& id) {
  return translated([&] { return op_function(find_op(std::string(id))); });
}

Function op_checked(const String& id) {
  return translated([&] { return op_check(find_op(std::string(id))); });
}

Function op_workspace_of(const String& id) {
  return translated([&] { return op_workspace(find_op(std::string(id))); });
}

Function op_timed(const String& id, int64_t batches) {
  return translated([&] { return op_host_time(find_op(std::string(id)), int(batches)); });
}

Function op_arranged(const String& id, const Shape& sources, int64_t device, const Optional<String>& variant, int64_t flags) {
  return translated([&] { return arranged(find_op(std::string(id)), sources, device, variant, flags); });
}

/// A handle of hooks for calls of the op, from their text; equal texts have the same one, which is good for as long as the process lives.
int64_t hooks(const String& id, const String& text) {
  return translated([&] {
    const Op& op = find_op(std::string(id));
    if (op.hooks_offset < 0) throw Error(ErrorKind::value, op.id, "hooks", "is given", "none, which this op does not take");
    try {
      return reinterpret_cast<int64_t>(jit::hooks_of_text(*op.hook_points, text));
    } catch (const Error& e) { throw e.in_call(op.id); }
  });
}

/// None where the process has no Python.
Any op_python(const String& id) {
  return translated([&] { return python_function(find_op(std::string(id))); });
}

/// Addresses of a class and of a function. False: the class's tensors are handed to op(), not to op_python().
bool take_python_class(int64_t type, int64_t wrote) {
  return python::take_class(reinterpret_cast<python::Object*>(type), reinterpret_cast<python::Object*>(wrote));
}

/// Flags of a call, in the order batch_invariant, pdl, skip_check.
Shape call_flags() { return Shape({kBatchInvariant, kPdl, kSkipCheck}); }

int64_t device(const String& text) {
  return translated([&] { return reinterpret_cast<int64_t>(&device_from_name(text)); });
}

/// "sm_90a" of a device; empty text: the standard device.
String device_arch(const String& text) {
  return translated([&] { return String(device_from_name(text).info().arch.name()); });
}

/// `device_type` and `device_index` are DLPack's.
Tensor tensor_at(int64_t address, const String& dtype, const Shape& shape, const Shape& strides, int64_t device_type,
                 int64_t device_index) {
  return translated([&] {
    return borrowed_tensor(reinterpret_cast<void*>(address), dtype, shape, strides,
                           DLDevice{DLDeviceType(device_type), int32_t(device_index)});
  });
}

bool variant_runs(const String& id, const String& variant, const String& arch) {
  return translated([&] { return testing::variant_runs(find_op(std::string(id)), variant, device_info_of(Arch::parse(arch))); });
}

String plan_json(const String& id, const Array<String>& words, const String& arch, const String& on) {
  return translated([&] { return String(cli::plan_json(id, strings(words), arch, on)); });
}

String doctor_json() {
  return translated([] { return String(cli::doctor_json()); });
}

/// `progress` is called as progress(kernel, done, all, seconds left) after each kernel.
String warm(const String& model, const Array<String>& limits, const Array<String>& archs, const String& on, const String& trace,
            int64_t processes, bool list_only, const Optional<Function>& progress) {
  return translated([&] {
    WarmOptions what;
    what.model = model, what.limits = strings(limits), what.processes = int(processes), what.list_only = list_only;
    WarmProgress each;
    if (progress)
      each = [&](const WarmKernel& kernel, size_t done, size_t all, double left) {
        (*progress)(kernel.kernel, int64_t(done), int64_t(all), left);
      };
    return String(cli::warm_json(what, strings(archs), on, trace, each));
  });
}

/// Ops of the user's own register as their library is loaded, as by the command's --load.
void load(const String& path) {
  translated([&] { cli::load_ops(path); });
}

void freeze(bool on) { jit::freeze(on); }
bool frozen() { return jit::frozen(); }

/// sink(level, text) gets what would be written to QN_LOG_DEST; None: nobody. Worker processes of warm() are forked without
/// the interpreter's knowledge and go on writing by themselves.
void set_log(const Optional<Function>& sink) {
  if (!sink) return set_log_sink(nullptr);
  set_log_sink([to = *sink, process = getpid()](LogLevel level, const std::string& text) {
    if (getpid() != process) return false;
    to(int64_t(level), text);
    return true;
  });
}

void log_level(int64_t level) { set_log_level(int(level)); }

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(ops, ops)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(op_json, op_json)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(op, op)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(op_check, op_checked)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(op_workspace, op_workspace_of)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(op_timed, op_timed)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(op_arranged, op_arranged)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(hooks, hooks)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(op_python, op_python)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(take_python_class, take_python_class)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(call_flags, call_flags)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(device, device)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(device_arch, device_arch)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(tensor_at, tensor_at)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(variant_runs, variant_runs)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(plan_json, plan_json)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(doctor_json, doctor_json)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(warm, warm)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(load, load)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(freeze, freeze)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(frozen, frozen)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(set_log, set_log)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(log_level, log_level)

}  // namespace quern::ffi
