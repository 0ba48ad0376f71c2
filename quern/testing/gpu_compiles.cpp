// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/gpu_compiles.h"

#include "quern/base/env.h"
#include "quern/jit/build.h"
#include "quern/jit/compiler.h"

namespace quern::testing {

/// "no NVRTC was found: .."; where there is one for other archs, "no NVRTC for sm_103a was found: ..".
static std::string no_compiler_text(Arch arch) {
  const std::string name = env_choice(Env::jit_compiler, {"nvrtc", "nvcc"}) == 1 ? "nvcc" : "NVRTC";
  return "no " + name + (jit::find_gpu_compiler(Arch{}) ? " for " + arch.name() : "") + " was found: kernels were not compiled for a GPU";
}

bool GpuCompiles::available(Arch arch) {
  if (jit::find_gpu_compiler(arch)) return true;
  const std::lock_guard lock(mutex_);
  left_out_ = no_compiler_text(arch);
  return false;
}

std::string GpuCompiles::refusal(const jit::KernelSpec& spec, Arch arch) {
  const std::string key = arch.name() + " " + spec.kernel->header + " " + jit::print(spec) + (spec.hooks ? spec.hooks->text : "");
  {
    const std::lock_guard lock(mutex_);
    if (!asked_.insert(key).second) return "";
  }
  if (!available(arch)) return "";
  try {
    jit::Target target;
    target.arch = arch;
    jit::build(spec, target);
    const std::lock_guard lock(mutex_);
    ++count_;
    return "";
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::frozen) {
      const std::lock_guard lock(mutex_);
      left_out_ = "QN_JIT_FROZEN is set: kernels that are not in the cache were not compiled for a GPU";
      return "";
    }
    if (!available(arch)) return "";  // the library was there and could not be loaded
    return std::string(name(e.kind())) + " error: " + e.what();
  }
}

}  // namespace quern::testing
