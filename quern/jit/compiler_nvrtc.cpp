// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/compiler_nvrtc.h"

#include <algorithm>
#include <chrono>

#include "quern/base/env.h"
#include "quern/base/error.h"
#include "quern/device/cuda_driver.h"
#include "quern/jit/ptxas_log.h"

namespace quern::jit {
namespace {

// sm_103 and sm_121 came with 12.9, all others that quern knows with 12.8 or earlier.
bool release_knows(const NvrtcCandidate& c, int arch) {
  if (arch != 103 && arch != 121) return true;
  return c.major != 12 || c.minor < 0 || c.minor >= 9;
}

std::vector<LibraryPlace> places_now() { return nvrtc_places(env_path(Env::jit_nvrtc), search_places()); }

std::string version_number(const NvrtcCandidate& c) {
  return std::to_string(c.major) + (c.minor >= 0 ? "." + std::to_string(c.minor) : "");
}
std::string version_text(const NvrtcCandidate& c) { return c.major == 0 ? "NVRTC" : "NVRTC " + version_number(c); }

std::vector<std::string> options_of(const CompileRequest& request, const NvrtcCandidate& c) {
  std::vector<std::string> options = nvrtc_code_options(request.arch, request.debug);
  options.push_back("--ptxas-options=-v");
  // From 12.9 on NVRTC keeps a cache of its own under the user's home through the driver; a hit there has no log, so
  // registers and spills would read 0, and quern has its own cache above.
  if (c.major > 12 || (c.major == 12 && c.minor >= 9)) options.push_back("--no-cache");
  options.insert(options.end(), request.extra_options.begin(), request.extra_options.end());
  return options;
}

/// One program; destroyed on every way out.
class Program {
 public:
  Program(const NvrtcLibrary& library, const CompileRequest& request) : library_(library) {
    std::vector<const char*> names, texts;
    for (const Header& header : request.headers) {
      names.push_back(header.name);
      texts.push_back(header.text);
    }
    created_ = library_.create_program(&program_, request.source.c_str(), (request.name + ".cu").c_str(), int(names.size()), texts.data(),
                                       names.data());
  }
  ~Program() {
    if (program_) library_.destroy_program(&program_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int compile(const std::vector<std::string>& options) {
    if (created_ != 0) return created_;
    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());
    return library_.compile_program(program_, int(texts.size()), texts.data());
  }
  template <class Text>
  int fetch(Text& text, int (*size)(NvrtcLibrary::Program, size_t*), int (*get)(NvrtcLibrary::Program, char*)) {
    size_t bytes = 0;
    if (!program_) return created_;
    if (const int result = size(program_, &bytes); result != 0) return result;
    text.resize(bytes);
    return bytes ? get(program_, text.data()) : 0;
  }

 private:
  const NvrtcLibrary& library_;
  NvrtcLibrary::Program program_ = nullptr;
  int created_ = 0;
};

// NVRTC counts the terminating zero, and writes one more before each message of ptxas.
void drop_zeros(std::string& text) { std::erase(text, '\0'); }

[[noreturn]] void fail(const NvrtcLibrary& library, const std::string& phase, int result, const std::string& log) {
  throw compile_error(phase, library.get_error_string(result), log);
}

}  // namespace

std::vector<std::string> nvrtc_code_options(Arch arch, int debug) {
  std::vector<std::string> options = {
      "--gpu-architecture=" + arch.name(), "-std=c++20",
      "--no-source-include",  // else NVRTC prefers files of the current folder to the headers in memory
  };
  if (debug == 1) options.push_back("-lineinfo");
  if (debug >= 2) options.push_back("-G");
  return options;
}

NvrtcCompiler::NvrtcCompiler(NvrtcCandidate candidate) : candidate_(std::move(candidate)) {
  // A bare name has no file to read; this last resort is loaded now.
  if (candidate_.path.find('/') == std::string::npos) library_ = load_nvrtc(candidate_, cuda::driver_version());
  if (candidate_.accepted) provenance_ = nvrtc_provenance(candidate_.path);
}

std::vector<NvrtcCompiler*>& NvrtcCompiler::all() {
  static auto* const compilers = new std::vector<NvrtcCompiler*>;
  return *compilers;
}

bool NvrtcCompiler::usable_for(Arch arch) const {
  const std::lock_guard lock(mutex_);
  if (!candidate_.accepted) return false;
  if (candidate_.archs.empty()) return release_knows(candidate_, arch.number);
  return std::find(candidate_.archs.begin(), candidate_.archs.end(), arch.number) != candidate_.archs.end();
}

NvrtcCompiler* NvrtcCompiler::get(Arch arch) {
  static std::mutex mutex;
  static auto* const places = new std::vector<LibraryPlace>(places_now());
  static size_t next = 0;  // places before it have a compiler in all(), or were rejected
  const std::lock_guard lock(mutex);
  for (NvrtcCompiler* compiler : all())
    if (compiler->usable_for(arch)) return compiler;
  while (next < places->size()) {
    NvrtcCandidate candidate = judge_nvrtc((*places)[next++], cuda::driver_version());
    if (!candidate.accepted) continue;
    all().push_back(new NvrtcCompiler(std::move(candidate)));
    if (all().back()->usable_for(arch)) return all().back();
  }
  return nullptr;
}

const NvrtcLibrary* NvrtcCompiler::library() {
  const std::lock_guard lock(mutex_);
  if (!library_ && candidate_.accepted) library_ = load_nvrtc(candidate_, cuda::driver_version());
  return candidate_.accepted ? library_ : nullptr;
}

std::string NvrtcCompiler::description() const {
  const std::lock_guard lock(mutex_);
  return version_text(candidate_) + " (" + candidate_.origin + ": " + candidate_.path + ")";
}

CompileResult NvrtcCompiler::compile(const CompileRequest& request) {
  const NvrtcLibrary* library = this->library();
  if (!library || !usable_for(request.arch)) {
    NvrtcCompiler* other = get(request.arch);
    if (!other || other == this) throw Error(ErrorKind::compile, nvrtc_missing_text(request.arch));
    return other->compile(request);
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::string phase = version_text(candidate_) + ", " + request.arch.name() + ", kernel " + request.name;
  CompileResult result;
  result.provenance = provenance_;
  Program program(*library, request);
  const int compiled = program.compile(options_of(request, candidate_));
  program.fetch(result.log, library->get_log_size, library->get_log);
  drop_zeros(result.log);
  if (compiled != 0) fail(*library, phase, compiled, result.log);
  if (const int fetched = program.fetch(result.image, library->get_cubin_size, library->get_cubin); fetched != 0 || result.image.empty())
    fail(*library, phase + ", reading the cubin", fetched, result.log);
  if (request.want_ptx) {
    if (const int fetched = program.fetch(result.ptx, library->get_ptx_size, library->get_ptx); fetched != 0)
      fail(*library, phase + ", reading the PTX", fetched, result.log);
    drop_zeros(result.ptx);
  }
  read_ptxas_log(result);
  result.compiler = "NVRTC";
  result.version = toolkit_version_in({result.image.data(), result.image.size()});
  if (result.version.empty()) result.version = version_number(candidate_);
  result.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::vector<NvrtcCandidate> nvrtc_candidates() {
  std::vector<NvrtcCandidate> candidates;
  for (const LibraryPlace& place : places_now()) {
    NvrtcCandidate candidate = judge_nvrtc(place, cuda::driver_version());
    if (candidate.accepted) load_nvrtc(candidate, cuda::driver_version());
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

std::string nvrtc_missing_text(Arch arch) {
  std::string text = "no NVRTC on this machine compiles for " + arch.name();
  for (const NvrtcCandidate& c : nvrtc_candidates())
    text += "\n  " + c.origin + ": " + c.path + " " + (c.accepted ? "does not know this arch" : c.reason);
  return text +
         "\nInstall a CUDA toolkit of 12.8 or later, or `pip install nvidia-cuda-nvrtc`, or name a library with "
         "QN_JIT_NVRTC=/path/libnvrtc.so.13";
}

}  // namespace quern::jit
