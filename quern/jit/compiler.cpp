// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/compiler.h"

#include <filesystem>

#include "quern/base/env.h"
#include "quern/base/fs.h"
#include "quern/jit/compiler_nvcc.h"
#include "quern/jit/compiler_nvrtc.h"
#include "quern/jit/ptxas_log.h"

namespace quern::jit {

static bool nvcc_wanted() { return env_choice(Env::jit_compiler, {"nvrtc", "nvcc"}) == 1; }

GpuCompiler* find_gpu_compiler(Arch arch) {
  if (nvcc_wanted()) return NvccCompiler::get();
  return NvrtcCompiler::get(arch);
}

GpuCompiler& gpu_compiler(Arch arch) {
  if (GpuCompiler* compiler = find_gpu_compiler(arch)) return *compiler;
  throw Error(ErrorKind::compile, nvcc_wanted() ? nvcc_missing_text() : nvrtc_missing_text(arch));
}

std::vector<std::string> gpu_code_options(Arch arch, int debug) {
  return nvcc_wanted() ? nvcc_code_options(arch, debug) : nvrtc_code_options(arch, debug);
}

std::string toolkit_version_in(std::string_view bytes) {
  const size_t at = bytes.find("Cuda compilation tools, release "), v = at == bytes.npos ? at : bytes.find(", V", at);
  if (v == bytes.npos) return {};
  const std::string_view rest = bytes.substr(v + 3, 20);
  return std::string(rest.substr(0, std::min(rest.find_first_not_of("0123456789."), rest.size())));
}

Error compile_error(const std::string& phase, const std::string& reason, const std::string& log) {
  constexpr int kLines = 10;
  std::string lines = first_error_lines(log, kLines);
  if (!lines.empty()) lines = "\n" + lines;
  return Error(ErrorKind::compile,
               phase + ": " + reason + lines + "\nQN_JIT_VERBOSE=1 prints the whole log, QN_JIT_DUMP=FOLDER keeps the source");
}

void write_headers(const std::string& folder, std::span<const Header> headers) {
  for (const Header& header : headers) {
    const std::string path = folder + "/" + header.name;
    make_folders(std::filesystem::path(path).parent_path().string());
    write_file(path, header.text);
  }
}

}  // namespace quern::jit
