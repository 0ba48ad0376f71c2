// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/device/cuda_libraries.h"
#include "quern/device/device.h"

namespace quern::jit {

/// One libnvrtc that was found, and what came of it.
struct NvrtcCandidate {
  std::string origin;  ///< "QN_JIT_NVRTC", "loaded", "CUDA_HOME", "pip", "loader", "/usr/local/cuda"
  std::string path;
  bool accepted = false;
  std::string reason;         ///< why not; empty when accepted
  int major = 0, minor = -1;  ///< 0, -1: not known
  std::vector<int> archs;     ///< what it compiles for; filled by load only
};

/// NVRTC's entry points, from one loaded library.
struct NvrtcLibrary {
  using Program = struct ProgramOpaque*;
  int (*version)(int*, int*);
  int (*get_num_supported_archs)(int*);
  int (*get_supported_archs)(int*);
  const char* (*get_error_string)(int);
  int (*create_program)(Program*, const char* source, const char* name, int headers, const char* const* texts, const char* const* names);
  int (*destroy_program)(Program*);
  int (*compile_program)(Program, int options, const char* const*);
  int (*get_log_size)(Program, size_t*);
  int (*get_log)(Program, char*);
  int (*get_cubin_size)(Program, size_t*);
  int (*get_cubin)(Program, char*);
  int (*get_ptx_size)(Program, size_t*);
  int (*get_ptx)(Program, char*);
};

/// Places to look at, in order: QN_JIT_NVRTC alone when set, else find_cuda_library's.
std::vector<LibraryPlace> nvrtc_places(const std::string& only, const SearchPlaces& places);

/// Judges a place without loading anything, by file names: the version is that of the libnvrtc-builtins beside it.
/// Accepted means "worth loading". A bare name (origin "loader") is accepted unless its major says no.
NvrtcCandidate judge_nvrtc(const LibraryPlace& place, int driver_version);

/// Loads a candidate (once a path) and completes version and archs; nullptr with candidate.reason when it does not
/// load, is older than 12.8, has a major above the driver's (0: no driver) or lacks sm_80.
const NvrtcLibrary* load_nvrtc(NvrtcCandidate& candidate, int driver_version);

/// 40 hex digits of the build id of the library file (its content's hash when it has none), read without loading it.
std::string nvrtc_provenance(const std::string& path);

}  // namespace quern::jit
