// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/base/error.h"
#include "quern/device/device.h"
#include "quern/jit/compile_facts.h"

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

struct CompileResult : CompileFacts {
  std::vector<char> image;  ///< cubin
  std::string log;          ///< all that the compiler said
  std::string ptx;          ///< with want_ptx only
  std::string provenance;   ///< of the compiler that made it
  std::string compiler;     ///< "NVRTC", "nvcc"
  std::string version;      ///< of its ptxas, as the cubin states it: "13.0.88"; else the compiler's own
  std::vector<std::string> warnings;
};

/// Compiles CUDA C++ to cubins. Several threads may compile at once.
class GpuCompiler {
 public:
  virtual ~GpuCompiler() = default;
  /// Throws Error{compile} with the phase, the first errors and what to do.
  virtual CompileResult compile(const CompileRequest& request) = 0;
  /// Stands for the compiler's build.
  virtual const std::string& provenance() const = 0;
};

/// What QN_JIT_COMPILER names, for the arch; nullptr when this machine has none. Error{value} for another name.
GpuCompiler* find_gpu_compiler(Arch arch);
/// The same; Error{compile} with the places that were looked at when there is none.
GpuCompiler& gpu_compiler(Arch arch);
/// Its options that decide the code, for every release the same; part of the identity digest.
std::vector<std::string> gpu_code_options(Arch arch, int debug);

/// "13.0.88" from the note "Cuda compilation tools, release 13.0, V13.0.88" that ptxas leaves in what it makes, and nvcc
/// in its --version; empty when there is none.
std::string toolkit_version_in(std::string_view bytes);
/// Error{compile}: "PHASE: REASON", the first errors of the log, the remedy.
Error compile_error(const std::string& phase, const std::string& reason, const std::string& log);
/// Writes headers below a folder, by their names.
void write_headers(const std::string& folder, std::span<const Header> headers);

}  // namespace quern::jit
