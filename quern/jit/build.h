// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/device/device.h"
#include "quern/jit/spec.h"

namespace quern::jit {

/// What a kernel is compiled for.
struct Target {
  Arch arch;
  bool emulated = false;       ///< by a host compiler for the emulated device; else by NVRTC
  bool checked = false;        ///< emulated only: with access hooks
  std::string host_compiler;   ///< emulated only: command; empty: the standard one
};
Target target_of(const Device& device);

/// A compiled kernel and what its compiler said.
struct Compiled {
  std::string entry;           ///< symbol
  std::string folder;          ///< its cache entry
  std::string image_path;      ///< kernel.cubin or kernel.so inside it
  std::vector<char> image;     ///< bytes, for cubins
  bool from_cache = false;
  double compile_ms = 0;       ///< of the compile that made it, now or earlier
  int registers = 0, spill_bytes = 0, stack_bytes = 0;
  bool serialised_wgmma = false, ignored_setmaxnreg = false;  ///< ptxas C7510, C7508
  std::string provenance;      ///< of the compiler that made it now; empty from the cache
  std::string log, ptx;                                       ///< ptx: with QN_JIT_DUMP only
};

/// The kernel from the disk cache, else compiled and published there. With `fresh` it is compiled even when cached.
/// Throws Error{compile}.
Compiled build(const KernelSpec& spec, const Target& target, bool fresh = false);

/// Digests of the entry that `build` would use: 16 hex digits of what decides the code, 8 of which compiler made it.
struct Digests {
  std::string key_text;    ///< everything that the identity is computed from, as text
  std::string identity;    ///< 16 hex
  std::string provenance;  ///< 8 hex
};
Digests digests(const KernelSpec& spec, const Target& target);

}  // namespace quern::jit
