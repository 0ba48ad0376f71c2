// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/nvrtc_library.h"

#define XXH_INLINE_ALL
#include <dlfcn.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>

#include "quern/base/elf.h"
#include "quern/jit/denied_compilers.h"

namespace quern::jit {
namespace {

namespace fs = std::filesystem;

const CudaLibraryName& library_name() {
  static const CudaLibraryName name = {"libnvrtc", {"cu13", "cuda_nvrtc"}};
  return name;
}

// "libnvrtc-builtins.so.13.0" beside the library: it carries the minor version, which libnvrtc.so.13 does not.
fs::path builtins_beside(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::weakly_canonical(path, error).parent_path();
  const std::string prefix = "libnvrtc-builtins.so.";
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string file = it->path().filename().string();
    int major = 0, minor = 0, used = 0;
    if (file.rfind(prefix, 0) == 0 && std::sscanf(file.c_str() + prefix.size(), "%d.%d%n", &major, &minor, &used) == 2 &&
        file.size() == prefix.size() + size_t(used))
      return it->path();
  }
  return {};
}

void read_version_from_names(NvrtcCandidate& c) {
  const std::string builtins = builtins_beside(c.path).filename().string();
  if (!builtins.empty()) {
    std::sscanf(builtins.c_str(), "libnvrtc-builtins.so.%d.%d", &c.major, &c.minor);
    return;
  }
  std::error_code error;
  const std::string file = fs::weakly_canonical(c.path, error).filename().string();
  int patch = 0;
  if (std::sscanf(file.c_str(), "libnvrtc.so.%d.%d.%d", &c.major, &c.minor, &patch) < 2) c.minor = -1;
}

// The reason why that version is of no use, or empty. An unknown part passes: load_nvrtc looks again.
std::string version_problem(const NvrtcCandidate& c, int driver_version) {
  if (c.major == 0) return {};
  return release_problem(std::to_string(c.major) + (c.minor >= 0 ? "." + std::to_string(c.minor) : ""), driver_version);
}

void reject(NvrtcCandidate& c, const std::string& reason) {
  c.accepted = false;
  c.reason = reason;
}

// NVRTC opens "libnvrtc-builtins.so.13.0" by that bare name, so that it would find one on the loader's path (of another
// build, perhaps) or none at all rather than its own; loaded first, its own is the one that the name means.
void load_builtins(const std::string& path) {
  const fs::path builtins = builtins_beside(path);
  if (!builtins.empty()) dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
}

template <class F>
bool take(void* handle, const char* symbol, F& slot) {
  slot = reinterpret_cast<F>(dlsym(handle, symbol));
  return slot != nullptr;
}

bool take_all(void* handle, NvrtcLibrary& l) {
  return take(handle, "nvrtcVersion", l.version) && take(handle, "nvrtcGetErrorString", l.get_error_string) &&
         take(handle, "nvrtcGetNumSupportedArchs", l.get_num_supported_archs) &&
         take(handle, "nvrtcGetSupportedArchs", l.get_supported_archs) && take(handle, "nvrtcCreateProgram", l.create_program) &&
         take(handle, "nvrtcDestroyProgram", l.destroy_program) && take(handle, "nvrtcCompileProgram", l.compile_program) &&
         take(handle, "nvrtcGetProgramLogSize", l.get_log_size) && take(handle, "nvrtcGetProgramLog", l.get_log) &&
         take(handle, "nvrtcGetCUBINSize", l.get_cubin_size) && take(handle, "nvrtcGetCUBIN", l.get_cubin) &&
         take(handle, "nvrtcGetPTXSize", l.get_ptx_size) && take(handle, "nvrtcGetPTX", l.get_ptx);
}

// A bare name stays a bare name until it is loaded: only the loader knows its path.
void resolve_path(NvrtcCandidate& c, const NvrtcLibrary& library) {
  Dl_info info = {};
  if (c.path.find('/') == std::string::npos && dladdr(reinterpret_cast<void*>(library.version), &info) && info.dli_fname)
    c.path = info.dli_fname;
}

const NvrtcLibrary* open_nvrtc(NvrtcCandidate& c) {
  static std::mutex mutex;
  static auto* const opened = new std::map<std::string, NvrtcLibrary>;
  const std::lock_guard lock(mutex);
  if (const auto it = opened->find(c.path); it != opened->end()) return &it->second;
  load_builtins(c.path);
  void* handle = dlopen(c.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    reject(c, std::string("does not load: ") + (reason ? reason : "?"));
    return nullptr;
  }
  NvrtcLibrary library;
  if (!take_all(handle, library)) {
    reject(c, "does not load: it lacks functions of NVRTC 12.8");
    return nullptr;
  }
  resolve_path(c, library);
  return &opened->emplace(c.path, library).first->second;
}

}  // namespace

std::vector<LibraryPlace> nvrtc_places(const std::string& only, const SearchPlaces& places) {
  if (!only.empty()) return {{"QN_JIT_NVRTC", only}};
  return find_cuda_library(library_name(), places);
}

NvrtcCandidate judge_nvrtc(const LibraryPlace& place, int driver_version) {
  NvrtcCandidate c{place.origin, place.path, true, {}, 0, -1, {}};
  const bool bare = place.path.find('/') == std::string::npos;
  std::error_code error;
  if (!bare && !fs::is_regular_file(place.path, error)) {
    reject(c, "not found");
    return c;
  }
  if (bare) std::sscanf(place.path.c_str(), "libnvrtc.so.%d", &c.major);
  else read_version_from_names(c);
  if (const std::string problem = version_problem(c, driver_version); !problem.empty()) reject(c, problem);
  return c;
}

const NvrtcLibrary* load_nvrtc(NvrtcCandidate& c, int driver_version) {
  const NvrtcLibrary* library = open_nvrtc(c);
  if (!library) return nullptr;
  int archs = 0;
  if (library->version(&c.major, &c.minor) != 0 || library->get_num_supported_archs(&archs) != 0 || archs <= 0) {
    reject(c, "does not answer nvrtcVersion and nvrtcGetNumSupportedArchs");
    return nullptr;
  }
  c.archs.resize(size_t(archs));
  library->get_supported_archs(c.archs.data());
  c.accepted = true;
  c.reason.clear();
  if (const std::string problem = version_problem(c, driver_version); !problem.empty()) reject(c, problem);
  if (c.accepted && std::find(c.archs.begin(), c.archs.end(), 80) == c.archs.end()) reject(c, "lacks sm_80");
  return c.accepted ? library : nullptr;
}

std::string nvrtc_provenance(const std::string& path) {
  if (std::string id = elf_build_id(path); id.size() >= 16) return id;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) return {};
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  std::vector<char> buffer(1 << 20);
  for (size_t bytes; (bytes = std::fread(buffer.data(), 1, buffer.size(), file)) > 0;) XXH3_128bits_update(state, buffer.data(), bytes);
  std::fclose(file);
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", u64(hash.high64), u64(hash.low64));
  return text;
}

}  // namespace quern::jit
