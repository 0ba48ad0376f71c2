// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The key of a kernel: all that decides its code, and nothing of the machine, the process or the call.
#include "quern/base/env.h"
#include "quern/base/error.h"
#include "quern/base/hash.h"
#include "quern/device/emulated.h"
#include "quern/jit/build.h"
#include "quern/jit/compiler.h"
#include "quern/jit/compiler_host.h"
#include "quern/jit/kernel_source.h"

namespace quern::jit {

/// Raised when the rendered file, the function table of the emulated device or the entry's meaning changes.
static constexpr int kAbi = 5;

Target target_of(const Device& device) {
  Target target;
  target.arch = device.info().arch;
  target.emulated = device.info().emulated;
  if (const EmulatedOptions* how = emulated_options_of(device)) {
    target.checked = how->checked;
    target.asan = how->asan;
  }
  target.number = device.number();
  return target;
}

int debug_level() { return int(env_int(Env::jit_debug, 0)); }

HostMode mode_of(const Target& target) { return {target.checked, target.asan, debug_level(), target.number}; }

const HostCompiler& host_compiler(const Target& target) {
  return target.host_compiler.empty() ? HostCompiler::standard() : HostCompiler::named(target.host_compiler);
}

/// Nullptr when there is none: kernels may still come from a pack.
static const HostCompiler* host_compiler_if_any(const Target& target) {
  try {
    return &host_compiler(target);
  } catch (const Error&) { return nullptr; }
}

std::string short_provenance(const std::string& of_compiler) { return hash128_hex(of_compiler).substr(0, 8); }

static std::vector<std::string> options_for(const Target& target, Digests& d) {
  if (!target.emulated) {
    if (const GpuCompiler* compiler = find_gpu_compiler(target.arch)) d.provenance = short_provenance(compiler->provenance());
    return gpu_code_options(target.arch, debug_level());
  }
  // The kernel's code does not depend on the arch there, but plan's choices for it may: one entry serves all archs.
  const HostCompiler* compiler = host_compiler_if_any(target);
  if (compiler) d.provenance = short_provenance(compiler->provenance());
  const bool clang = compiler ? compiler->is_clang() : target.host_compiler.find("clang") != std::string::npos;
  return HostCompiler::options(clang, mode_of(target));
}

static Digests digests(const KernelSource& source, const Target& target, int abi) {
  Digests d;
  d.kernel = function_of(source.name);
  d.emulated = target.emulated;
  d.key_text = "abi " + std::to_string(abi) + "\nkernel " + source.name + "\noptions";
  for (const std::string& option : options_for(target, d)) d.key_text += " " + option;
  d.key_text += "\nkernel.cu " + hash128_hex(source.text) + "\n";
  for (const Source& header : source.headers) d.key_text += header.name + " " + hash128_hex(header.text) + "\n";
  d.identity = hash128_hex(d.key_text).substr(0, 16);
  return d;
}

Digests digests(const KernelSource& source, const Target& target) { return digests(source, target, kAbi); }
Digests digests(const KernelSpec& spec, const Target& target) { return digests(read_source(spec, target.emulated), target); }
Digests digests(const KernelSpec& spec, const Target& target, int abi) { return digests(read_source(spec, target.emulated), target, abi); }

}  // namespace quern::jit
