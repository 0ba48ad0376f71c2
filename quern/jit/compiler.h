// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <span>
#include <string>
#include <vector>

#include "quern/device/device.h"

namespace quern::jit {

/// A file that a kernel may include, handed over in memory: no path of this machine enters a compile.
struct Header {
  const char* name;  ///< as the #include writes it: "quern/kit/abi.h"
  const char* text;
};

struct CompileRequest {
  std::string name;  ///< of the kernel: errors, and debuggers as NAME.cu
  std::string source;
  std::span<const Header> headers;
  Arch arch;
  int debug = 0;  ///< 1: line information; 2: also no optimisation
  std::vector<std::string> extra_options;
  bool want_ptx = false;
};

struct CompileResult {
  std::vector<char> image;  ///< cubin
  std::string log;          ///< all that the compiler said
  std::string ptx;          ///< with want_ptx only
  std::string provenance;   ///< of the compiler that made it
  double milliseconds = 0;
  int registers = 0;                ///< of a thread
  int spill_bytes = 0;              ///< stored plus loaded, of a thread
  int stack_bytes = 0;              ///< local memory of a thread
  bool serialised_wgmma = false;    ///< ptxas C7510: wgmma instructions wait for each other
  bool ignored_setmaxnreg = false;  ///< ptxas C7508: the register split has no effect
  std::vector<std::string> warnings;
};

}  // namespace quern::jit
