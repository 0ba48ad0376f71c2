// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/device/device.h"
#include "quern/jit/sources.h"

namespace quern::jit {

/// How a kernel is compiled for the emulated device.
struct HostMode {
  bool checked = false;  ///< with access hooks
  bool asan = false;     ///< with the hooks of AddressSanitizer and UndefinedBehaviorSanitizer; not together with checked
  int debug = 0;         ///< QN_JIT_DEBUG
  Number number = Number::real;
};

/// A C++ compiler found at run time: compiles kernels for the emulated device.
class HostCompiler {
 public:
  /// QN_JIT_HOST_COMPILER, else g++, else clang++. Throws Error{compile} with the remedy when there is none.
  static const HostCompiler& standard();
  /// A compiler by command or path. Throws Error{compile} when it cannot be run.
  static const HostCompiler& named(const std::string& command);

  struct Result {
    std::string log;
    double milliseconds = 0;
  };
  /// Options that decide the code; part of the identity digest.
  static std::vector<std::string> options(bool clang, const HostMode& mode);
  /// Compiles folder/kernel.cu with its headers below folder/source into folder/kernel.so. Throws Error{compile}.
  Result compile(const std::string& folder, const std::string& name, const HostMode& mode) const;
  /// Build id of the compiler's program: tells versions apart without running it.
  const std::string& provenance() const { return provenance_; }
  const std::string& path() const { return path_; }
  bool is_clang() const { return clang_; }

 private:
  explicit HostCompiler(const std::string& command);
  std::string path_, provenance_;
  bool clang_ = false;
};

}  // namespace quern::jit
