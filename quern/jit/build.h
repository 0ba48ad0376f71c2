// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <set>
#include <string>
#include <vector>

#include "quern/device/device.h"
#include "quern/jit/compile_facts.h"
#include "quern/jit/spec.h"

namespace quern::jit {

struct KernelSource;

/// What a kernel is compiled for.
struct Target {
  Arch arch;
  bool emulated = false;         ///< by a host compiler for the emulated device; else by NVRTC or nvcc
  bool checked = false;          ///< emulated only: with access hooks
  std::string host_compiler;     ///< emulated only: command; empty: the standard one
  Number number = Number::real;  ///< emulated only: what f32 is
  bool asan = false;             ///< emulated only: with the hooks of AddressSanitizer and UndefinedBehaviorSanitizer
  /// "sm_90a"; "emu" for any arch of the emulated device, whose kernels do not depend on it.
  std::string name() const { return emulated ? "emu" : arch.name(); }
};
Target target_of(const Device& device);

/// A compiled kernel and what its compiler said, now or when it made the entry.
struct Compiled : CompileFacts {
  std::string entry;        ///< symbol
  std::string folder;       ///< its cache entry, or the pack that it is from; empty: it is kept in no file
  std::string image_path;   ///< kernel.so inside it, or kernel.cubin where that is a file
  std::vector<char> image;  ///< bytes
  bool from_cache = false;
  bool kept = true;        ///< false: there was no room or no right, the files are this process's own
  std::string compiler;    ///< "NVRTC 13.0.88", "nvcc 13.0.88", "/usr/bin/g++"
  std::string provenance;  ///< 8 hex digits: which build of the compiler made it
  std::string log, ptx;    ///< ptx: with QN_JIT_DUMP only
};

/// The kernel from the disk cache, else compiled and published there. With `fresh` it is compiled even when cached.
/// Throws Error{compile}; Error{frozen} when it would be compiled after freeze().
Compiled build(const KernelSpec& spec, const Target& target, bool fresh = false);

/// For an entry that is whole but cannot be loaded here: another one of the kernel, of a later root, else a compile, which
/// takes the entry's place where that lies in the cache folder. `bad`: checksums of those images. Throws as build() does.
Compiled rebuild(const KernelSpec& spec, const Target& target, const std::set<std::string>& bad);

/// Digests of the entry that `build` would use: 16 hex digits of what decides the code, 8 of which compiler made it.
struct Digests {
  std::string key_text;    ///< everything that the identity is computed from, as text
  std::string identity;    ///< 16 hex
  std::string provenance;  ///< 8 hex; empty when no compiler is found here, and then identity alone names the entry
  std::string kernel;      ///< the function's name
  bool emulated = false;

  /// "<kernel>.<identity>.": entries of any compiler.
  std::string prefix() const { return kernel + "." + identity + "."; }
  /// Of the entry's folder: "<kernel>.<identity>.<provenance>".
  std::string folder_name() const { return prefix() + provenance; }
};
/// Digests::provenance of a compiler's own, longer one.
std::string short_provenance(const std::string& of_compiler);
Digests digests(const KernelSpec& spec, const Target& target);
/// As a library of another ABI number computes them.
Digests digests(const KernelSpec& spec, const Target& target, int abi);
/// Of sources that were read for the target.
Digests digests(const KernelSource& source, const Target& target);

class HostCompiler;
struct HostMode;
/// The compiler of an emulated target. Throws Error{compile} when there is none.
const HostCompiler& host_compiler(const Target& target);
/// How it compiles for that target.
HostMode mode_of(const Target& target);
/// QN_JIT_DEBUG.
int debug_level();

}  // namespace quern::jit
