// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/compiler_nvcc.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "quern/base/env.h"
#include "quern/base/fs.h"
#include "quern/base/hash.h"
#include "quern/base/subprocess.h"
#include "quern/device/cuda_driver.h"
#include "quern/jit/denied_compilers.h"
#include "quern/jit/ptxas_log.h"

namespace quern::jit {
namespace {

std::vector<LibraryPlace> places_of(const std::string& only, const SearchPlaces& places) {
  if (!only.empty()) return {{"QN_JIT_NVCC", only}};
  std::vector<LibraryPlace> found;
  for (const auto& toolkit : places.chosen) found.push_back({toolkit.origin, toolkit.folder + "/bin/nvcc"});
  found.push_back({"PATH", "nvcc"});
  for (const auto& toolkit : places.installed) found.push_back({toolkit.origin, toolkit.folder + "/bin/nvcc"});
  for (const std::string& root : places.pip_roots)
    for (const char* folder : {"cu13", "cuda_nvcc"}) found.push_back({"pip", root + "/nvidia/" + folder + "/bin/nvcc"});
  return found;
}

NvccCandidate judge(const LibraryPlace& place, int driver_version) {
  NvccCandidate c{place.origin, place.path, false, {}, {}, {}};
  const std::string program = find_program(place.path);
  if (program.empty()) {
    c.reason = "not found";
    return c;
  }
  c.path = std::filesystem::absolute(program).string();
  c.build = run_process({program, "--version"}).output;
  c.version = toolkit_version_in(c.build);
  c.reason = c.version.empty() ? "does not answer --version as nvcc does" : release_problem(c.version, driver_version);
  c.accepted = c.reason.empty();
  return c;
}

/// Removed with all that it holds.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::error_code error;
    const std::string parent = std::filesystem::temp_directory_path(error).string();
    path_ = make_private_folder((parent.empty() ? "/tmp" : parent) + "/quern-nvcc.");
    if (path_.empty()) throw Error(ErrorKind::device, "nvcc needs a folder for its files, and none can be made in " + parent);
  }
  ~PrivateFolder() { remove_folder(path_); }
  PrivateFolder(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::vector<NvccCandidate> nvcc_candidates(const std::string& only, const SearchPlaces& places, int driver_version) {
  std::vector<NvccCandidate> candidates;
  for (const LibraryPlace& place : places_of(only, places)) candidates.push_back(judge(place, driver_version));
  return candidates;
}

std::vector<NvccCandidate> nvcc_candidates() { return nvcc_candidates(env_path(Env::jit_nvcc), search_places(), cuda::driver_version()); }

NvccCompiler::NvccCompiler(NvccCandidate candidate) : candidate_(std::move(candidate)), provenance_(hash128_hex(candidate_.build)) {}

NvccCompiler* NvccCompiler::get() {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::unique_ptr<NvccCompiler>>;
  const std::string wanted = env_path(Env::jit_nvcc) + "\n" + system_variable("PATH");
  const std::lock_guard lock(mutex);
  if (const auto at = known->find(wanted); at != known->end()) return at->second.get();
  std::unique_ptr<NvccCompiler>& slot = (*known)[wanted];
  const std::string only = env_path(Env::jit_nvcc);
  for (const LibraryPlace& place : places_of(only, search_places())) {
    NvccCandidate candidate = judge(place, cuda::driver_version());
    if (!candidate.accepted) continue;
    slot = std::make_unique<NvccCompiler>(std::move(candidate));
    break;
  }
  return slot.get();
}

CompileResult NvccCompiler::compile(const CompileRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  const PrivateFolder folder;
  write_file(folder.path() + "/kernel.cu", request.source);
  write_headers(folder.path() + "/source", request.headers);
  // Relative names, so that messages have no path of this machine; and no options but the key's.
  std::vector<std::string> command = {"env", "-u", "NVCC_PREPEND_FLAGS", "-u", "NVCC_APPEND_FLAGS", "-C", folder.path()};
  for (const std::string& word : nvcc_code_options(request.arch, request.debug)) command.push_back(word == "nvcc" ? candidate_.path : word);
  for (const char* word : {"--ptxas-options=-v", "-Isource", "--keep", "kernel.cu", "-o", "kernel.cubin"}) command.push_back(word);
  command.insert(command.end(), request.extra_options.begin(), request.extra_options.end());
  const ProcessResult process = run_process(command);

  CompileResult result;
  result.log = process.output;
  result.compiler = "nvcc";
  result.provenance = provenance_;
  const std::string phase = "nvcc " + candidate_.version + ", " + request.arch.name() + ", kernel " + request.name;
  const std::string image = read_file(folder.path() + "/kernel.cubin").value_or("");
  if (process.status != 0 || image.empty())
    throw compile_error(phase,
                        process.status < 0 ? "it was killed or could not be started" : "it ended with " + std::to_string(process.status),
                        result.log);
  result.image.assign(image.begin(), image.end());
  if (request.want_ptx) result.ptx = read_file(folder.path() + "/kernel.ptx").value_or("");
  result.version = toolkit_version_in(image);
  if (result.version.empty()) result.version = candidate_.version;
  read_ptxas_log(result);
  result.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::vector<std::string> nvcc_code_options(Arch arch, int debug) {
  std::vector<std::string> options = {"nvcc", "-cubin", "--gpu-architecture=" + arch.name(), "-std=c++20"};
  if (debug == 1) options.push_back("-lineinfo");
  if (debug >= 2) options.push_back("-G");
  return options;
}

std::string nvcc_missing_text() {
  std::string text = "no nvcc on this machine can be used";
  for (const NvccCandidate& c : nvcc_candidates()) text += "\n  " + c.origin + ": " + c.path + " " + c.reason;
  return text +
         "\nInstall a CUDA toolkit of 12.8 or later and g++, or name one with QN_JIT_NVCC=/path/nvcc, or leave QN_JIT_COMPILER unset: NVRTC needs neither";
}

}  // namespace quern::jit
