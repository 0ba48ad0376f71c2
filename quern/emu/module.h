// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/device/emulated.h"
#include "quern/kit/emu/runtime.h"

namespace quern::emu {

/// A kernel compiled for the emulated device: a shared object that knows nothing of this library but the runtime table.
class Module {
 public:
  /// Throws Error{device} when it cannot be loaded, Error{internal} when it was compiled for another runtime or is not
  /// instrumented as checked mode or asan need it.
  Module(const std::string& path, const EmulatedOptions& options);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  void (*entry)(const void* params) = nullptr;
  int threads = 0;
  u32 registers = 0;  ///< of a thread, at launch
  const std::string path;

  /// Code and data of the object.
  bool holds(const void* address) const { return reinterpret_cast<u64>(address) >= low_ && reinterpret_cast<u64>(address) < high_; }
  /// Offset in the file's own numbering, as debug information counts.
  void* address_of(u64 offset) const { return reinterpret_cast<void*>(base_ + offset); }
  u64 offset_of(const void* address) const { return reinterpret_cast<u64>(address) - base_; }

 private:
  template <class Symbol>
  Symbol find(const char* name) const;
  void check_hooks() const;

  void* handle_ = nullptr;
  u64 base_ = 0, low_ = 0, high_ = 0;
};

/// Error{internal} unless each fault that the entry `canary` of an asan module makes is reported.
void require_asan_reports(void (*canary)(const void* params), const std::string& path);

}  // namespace quern::emu
