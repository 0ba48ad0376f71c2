// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Steps 2 to 5: plan, kernel, parameters, launch.
#include <array>

#include "quern/jit/kernel_table.h"
#include "quern/op/call_device.h"
#include "quern/op/call_memory.h"
#include "quern/op/call_words.h"
#include "quern/op/contents.h"
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

/// Number of the variant that plans the problem; -1: none can.
static i32 choose_variant(const Op& op, const Problem& problem, const DeviceInfo& device) {
  for (size_t i = 0; i < op.variants.size(); ++i) {
    if (problem.variant >= 0 && size_t(problem.variant) != i) continue;
    if (op.variants[i].takes(problem, device)) return i32(i);
  }
  for (size_t i = 0; i < op.variants.size() && problem.variant < 0; ++i)
    if (op.variants[i].can(problem, device)) return i32(i);
  return -1;
}

Plan make_plan(const Op& op, const Problem& problem, const DeviceInfo& device) {
  const i32 chosen = choose_variant(op, problem, device);
  if (chosen < 0) fail_no_variant(op, problem, device);
  try {
    Plan plan = op.variants[size_t(chosen)].plan(problem, device);
    plan.variant = chosen;
    return plan;
  } catch (const Error& e) {
    if (!e.op().empty()) throw;
    throw e.in_call(op.id);
  }
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

/// How the kernels of a call are compiled ahead of time. A command line cannot state a caller's hooks, a recorded call has them.
std::string compile_ahead(const ObservedCall& call) {
  const DeviceInfo& device = call.device.info();
  const std::string target = (device.emulated ? " --device emu:" : " --arch ") + device.arch.name();
  if (call.problem.hooks == call.op.hooks)
    return "its kernels are compiled ahead of time by: quern plan --compile " + call.op.id + " " +
           call_words(call.op, call.args, call.options) + target;
  return "its kernels with the hooks " + std::string(call.problem.hooks->name) +
         " are compiled ahead of time by: quern warm --trace FOLDER" + target +
         " --trust-hooks, where QN_TRACE=FOLDER QN_TRACE_MAX_MB=0 had the call recorded";
}

/// Says of a refused compile or load which call needed it, and what would have made it unnecessary.
[[noreturn, gnu::cold, gnu::noinline]] void fail_frozen(const ObservedCall& call, const Error& e) {
  const char* const when = call.device.capturing(call.options.stream) ? "the capture" : "freeze()";
  throw Error(ErrorKind::frozen, call.op.id, "", e.what(),
              "the op to be called once before " + std::string(when) + "; " + compile_ahead(call));
}

void launch_kernels(const ObservedCall& call) {
  const auto& [op, args, options, problem, plan, device, capturing] = call;
  const CallMemory memory(op, args, plan, options, device);
  if (device.wants_memory_ranges()) [[unlikely]]
    judge_contents(op, args, problem, device, options.stream);
  // All kernels are resolved before the first launch: a compile error leaves nothing half done.
  std::array<Function, kMaxSteps> functions;
  for (i32 i = 0; i < plan.count; ++i) functions[size_t(i)] = jit::get(plan.launches[i].spec, device, options.stream);
  const auto fill = [&call, &memory](i32 before) {
    return call.plan.fill_count > 0 && run_fills(call.op, call.args, call.plan, before, memory.regions(), call.device, call.options.stream);
  };
  for (i32 i = 0; i < plan.count; ++i) {
    const Launch& l = plan.launches[i];
    alignas(64) char params[kMaxParamsBytes];
    l.params(params, args, problem, l, memory.regions(), device);
    LaunchConfig config = l.config;
    if (fill(i)) config.pdl = false;  // what a fill writes is there when a launch begins, not when it waits
    device.launch(functions[size_t(i)], config, params, l.spec.kernel->params_bytes, options.stream);
  }
  fill(plan.count);
}

/// Devices and compilers know no ops: their errors are named here. Memory that is missing in a capture has a name already.
void launch_all(const ObservedCall& call) {
  try {
    launch_kernels(call);
  } catch (const Error& e) {
    if (!e.op().empty()) throw;
    if (e.kind() == ErrorKind::frozen) fail_frozen(call, e);
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
