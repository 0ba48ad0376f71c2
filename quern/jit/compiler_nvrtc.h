// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "quern/base/api.h"
#include "quern/jit/compiler.h"
#include "quern/jit/nvrtc_library.h"

namespace quern::jit {

/// Compiles CUDA C++ to cubins in this process. Several threads may compile at once and do gain from it.
class NvrtcCompiler : public GpuCompiler {
 public:
  /// The first candidate that is usable for the arch, or nullptr. Judged by file names at first (see judge_nvrtc), so
  /// that a process which finds its kernels in the cache never loads the library (13 ms, 150 ms when it is not in the
  /// page cache); the first compile loads it, and a candidate that then fails gives way to the next.
  static NvrtcCompiler* get(Arch arch = {});

  CompileResult compile(const CompileRequest& request) override;

  /// 32 or more hex digits that stand for the library's build, read from the file without loading it.
  const std::string& provenance() const override { return provenance_; }
  /// "NVRTC 13.0 (CUDA_HOME: /usr/local/cuda/lib64/libnvrtc.so.13)".
  std::string description() const;

 private:
  explicit NvrtcCompiler(NvrtcCandidate candidate);
  static std::vector<NvrtcCompiler*>& all();
  bool usable_for(Arch arch) const;
  const NvrtcLibrary* library();

  mutable std::mutex mutex_;  // guards candidate_ and library_; never held while compiling
  NvrtcCandidate candidate_;
  const NvrtcLibrary* library_ = nullptr;
  std::string provenance_;
};

/// Every place looked at, each loaded and accepted or rejected with its reason; for `quern doctor`.
std::vector<NvrtcCandidate> nvrtc_candidates();

/// Options that decide the code, for every release of NVRTC the same; part of the identity digest.
std::vector<std::string> nvrtc_code_options(Arch arch, int debug);

/// What to tell a user for whom NvrtcCompiler::get(arch) is nullptr: each candidate's reason, and the remedy.
std::string nvrtc_missing_text(Arch arch);

}  // namespace quern::jit
