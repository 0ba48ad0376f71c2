// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/device/cuda_libraries.h"
#include "quern/jit/compiler.h"

namespace quern::jit {

/// One place where an nvcc was looked for, and what came of it.
struct NvccCandidate {
  std::string origin;  ///< "QN_JIT_NVCC", "CUDA_HOME", "PATH", "/usr/local/cuda", "pip"
  std::string path;
  bool accepted = false;
  std::string reason;   ///< why not; empty when accepted
  std::string version;  ///< "13.0.88"
  std::string build;    ///< all that nvcc --version says: it names the build of the compiler
};

/// Every place that is looked at, in order: QN_JIT_NVCC alone when set; else CUDA_HOME and CUDA_PATH, PATH, installed
/// toolkits, pip's `nvidia` trees. An nvcc that is there is asked for its version (5 ms). Accepted is one of 12.8 or
/// later that is not denied and not newer than the driver (0: no driver).
std::vector<NvccCandidate> nvcc_candidates(const std::string& only, const SearchPlaces& places, int driver_version);
/// Those of this machine and process.
std::vector<NvccCandidate> nvcc_candidates();

/// nvcc as a child process: compiles in a private folder that holds the kernel and its headers.
class NvccCompiler : public GpuCompiler {
 public:
  explicit NvccCompiler(NvccCandidate candidate);
  /// The first accepted candidate, or nullptr. Found once for each value of QN_JIT_NVCC and PATH.
  static NvccCompiler* get();

  CompileResult compile(const CompileRequest& request) override;
  const std::string& provenance() const override { return provenance_; }

 private:
  const NvccCandidate candidate_;
  const std::string provenance_;
};

/// Options that decide the code; part of the identity digest.
std::vector<std::string> nvcc_code_options(Arch arch, int debug);

/// What to tell a user for whom NvccCompiler::get() is nullptr: each place with its reason, and the remedy.
std::string nvcc_missing_text();

}  // namespace quern::jit
