// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Steps 2 to 5: plan, kernel, parameters, launch.
#include <array>
#include <cstdio>

#include "quern/base/log.h"
#include "quern/jit/kernel_table.h"
#include "quern/op/call_device.h"
#include "quern/op/call_words.h"
#include "quern/op/observe.h"

namespace quern {

[[noreturn, gnu::cold, gnu::noinline]] static void fail_no_variant(const Op& op, const Problem& p, const DeviceInfo& device) {
  std::string why;
  for (size_t i = 0; i < op.variants.size(); ++i) {
    if (p.variant >= 0 && size_t(p.variant) != i) continue;
    const Variant& v = op.variants[i];
    const Rejection r = v.rejects ? v.rejects(p, device) : Rejection{};
    why += std::string(why.empty() ? "" : "; ") + v.name + ": " + to_string(r);
  }
  throw Error(ErrorKind::unsupported, op.id, "", "no variant runs this on " + device.arch.name() + " (" + why + ")", "");
}

[[gnu::cold, gnu::noinline]] void fail_grid(const jit::KernelInfo& kernel, const Grid& grid) {
  throw Error(ErrorKind::unsupported, kernel.name + " would need a grid of " + std::to_string(grid.x) + " x " + std::to_string(grid.y) +
                                          " x " + std::to_string(grid.z) + " blocks, a GPU launches 1 to 2147483647 x 65535 x 65535");
}

Plan make_plan(const Op& op, const Problem& problem, const DeviceInfo& device) {
  for (size_t i = 0; i < op.variants.size(); ++i) {
    if (problem.variant >= 0 && size_t(problem.variant) != i) continue;
    const Variant& v = op.variants[i];
    if (v.rejects && v.rejects(problem, device)) continue;
    Plan plan = v.plan(problem, device, Knobs{});
    plan.variant = i32(i);
    return plan;
  }
  fail_no_variant(op, problem, device);
}

[[noreturn, gnu::cold, gnu::noinline]] static void fail_device(const Op& op, const Problem& p, const Device& device) {
  throw Error(ErrorKind::value, op.id, "device", "is on " + place_name(device.id()), place_name(p.device) + ", where the tensors lie");
}

Device& device_of_call(const Op& op, const Problem& problem, const RunOptions& options) {
  Device& device = options.device ? *options.device : device_of(problem.device);
  if (!(device.id() == problem.device)) fail_device(op, problem, device);
  return device;
}

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void fail_workspace(const Op& op, const Workspace& got, i64 needed) {
  if (got.bytes < needed) throw Error(ErrorKind::value, op.id, "workspace", "has " + std::to_string(got.bytes) + " bytes", std::to_string(needed) + " (256-byte aligned)");
  char address[32];
  std::snprintf(address, sizeof address, "%p", got.data);
  throw Error(ErrorKind::value, op.id, "workspace", "starts at " + std::string(address), "an address that is a multiple of 256");
}

/// The call's workspace: the caller's, or one from the device's pool for the time of the call.
class WorkspaceScope {
 public:
  WorkspaceScope(const Op& op, const Plan& plan, const RunOptions& options, Device& device) : device_(device), stream_(options.stream) {
    if (plan.workspace == 0) return;
    if (options.workspace.data) {
      if (options.workspace.bytes < plan.workspace || u64(reinterpret_cast<uintptr_t>(options.workspace.data)) % 256)
        fail_workspace(op, options.workspace, plan.workspace);
      data_ = options.workspace.data;
    } else {
      data_ = pooled_ = device.allocate_async(size_t(plan.workspace), stream_);
    }
  }
  ~WorkspaceScope() {
    if (!pooled_) return;
    try {
      device_.release_async(pooled_, stream_);
    } catch (const Error& e) {
      log(LogLevel::warning, e.what());
    }
  }
  WorkspaceScope(const WorkspaceScope&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  Device& device_;
  Stream stream_;
  void* data_ = nullptr;
  void* pooled_ = nullptr;
};

/// Tells a checked device which memory the call may touch.
class MemoryScope {
 public:
  MemoryScope(const Op& op, const void* args, const Plan& plan, char* workspace, Device& device) : device_(device) {
    if (!device.wants_memory_ranges()) return;
    std::vector<MemoryRange> ranges;
    for (size_t i = 0; i < op.tensors.size(); ++i) {
      const TensorView& view = op.tensor(args, i);
      if (!view.present() || view.numel() == 0) continue;
      const Role role = op.tensors[i].role;
      const auto access = role == Role::in ? MemoryRange::Access::read : role == Role::out ? MemoryRange::Access::write : MemoryRange::Access::read_write;
      ranges.push_back({view, op.tensors[i].name.c_str(), access});
    }
    if (plan.workspace) ranges.push_back({TensorView(workspace, DType::u8, {plan.workspace}), "workspace", MemoryRange::Access::scratch});
    device.begin_call(ranges, op.id.c_str());
    active_ = true;
  }
  ~MemoryScope() {
    if (active_) device_.end_call();
  }
  MemoryScope(const MemoryScope&) = delete;

 private:
  Device& device_;
  bool active_ = false;
};

/// How the kernels of a call are compiled ahead of time. A command line cannot state a caller's hooks, a recorded call has them.
std::string compile_ahead(const ObservedCall& call) {
  const DeviceInfo& device = call.device.info();
  const std::string target = (device.emulated ? " --device emu:" : " --arch ") + device.arch.name();
  if (call.problem.hooks == call.op.hooks)
    return "its kernels are compiled ahead of time by: quern plan --compile " + call.op.id + " " + call_words(call.op, call.args, call.options) + target;
  return "its kernels with the hooks " + std::string(call.problem.hooks->name) + " are compiled ahead of time by: quern warm --trace FOLDER" + target +
         " --trust-hooks, where QN_TRACE=FOLDER QN_TRACE_MAX_MB=0 had the call recorded";
}

/// Says of a refused compile, load or allocation which call needed it, and what would have made it unnecessary.
[[noreturn, gnu::cold, gnu::noinline]] void fail_frozen(const ObservedCall& call, const Error& e) {
  const bool capturing = call.device.capturing(call.options.stream);
  std::string expected = "the op to be called once";
  if (capturing && call.plan.workspace > 0 && !call.options.workspace.data)
    expected += " and RunOptions::workspace of " + std::to_string(call.plan.workspace) + " bytes";
  expected += capturing ? " before the capture" : " before freeze()";
  throw Error(ErrorKind::frozen, call.op.id, "", e.what(), expected + "; " + compile_ahead(call));
}

void launch_kernels(const ObservedCall& call) {
  const auto& [op, args, options, problem, plan, device, capturing] = call;
  const WorkspaceScope workspace(op, plan, options, device);
  const MemoryScope memory(op, args, plan, workspace.data(), device);
  // All kernels are resolved before the first launch: a compile error leaves nothing half done.
  std::array<Function, kMaxLaunches> functions;
  for (i32 i = 0; i < plan.count; ++i) functions[size_t(i)] = jit::get(plan.launches[i].spec, device, options.stream);
  for (i32 i = 0; i < plan.count; ++i) {
    const Launch& l = plan.launches[i];
    alignas(64) char params[kMaxParamsBytes];
    l.params(params, args, problem, plan, workspace.data(), device);
    device.launch(functions[size_t(i)], l.config, params, l.spec.kernel->params_bytes, options.stream);
  }
}

/// Devices and compilers know no ops: their errors are named here.
void launch_all(const ObservedCall& call) {
  try {
    launch_kernels(call);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::frozen) fail_frozen(call, e);
    if (!e.op().empty()) throw;
    throw e.in_call(call.op.id);
  }
}

}  // namespace

void run(const Op& op, const void* args, const RunOptions& options) {
  const Problem problem = bind(op, args, options);
  Device& device = device_of_call(op, problem, options);
  if (problem.empty) return;
  const Plan plan = make_plan(op, problem, device.info());
  ObservedCall call{op, args, options, problem, plan, device};
  if (!calls_observed()) [[likely]]
    return launch_all(call);
  call.capturing = device.capturing(options.stream);
  observe(call, launch_all);
}

}  // namespace quern
