// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/compiler_host.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

#include "quern/base/elf.h"
#include "quern/base/env.h"
#include "quern/base/error.h"
#include "quern/base/fs.h"
#include "quern/base/hash.h"
#include "quern/base/subprocess.h"
#include "quern/jit/ptxas_log.h"

namespace quern::jit {

HostCompiler::HostCompiler(const std::string& command) {
  path_ = find_program(command);
  if (path_.empty())
    throw Error(ErrorKind::compile, "the emulated device needs a C++ compiler and '" + command +
                                        "' was not found; install g++ or clang++, or set QN_JIT_HOST_COMPILER");
  std::error_code error;
  const std::string real = std::filesystem::canonical(path_, error).string();
  const std::string program = std::filesystem::path(real).filename().string();
  clang_ = program.find("clang") != std::string::npos;
  const bool compiler = clang_ || program.find("g++") != std::string::npos || program.find("gcc") != std::string::npos;
  if (compiler) provenance_ = elf_build_id(real);
  if (provenance_.empty()) {  // a wrapper (a script, ccache's links): ask it
    const ProcessResult version = run_process({path_, "--version"});
    clang_ = version.output.find("clang") != std::string::npos;
    provenance_ = hash128_hex(version.output);
  }
}

const HostCompiler& HostCompiler::named(const std::string& command) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<HostCompiler>> known;
  std::lock_guard lock(mutex);
  auto& slot = known[command];
  if (!slot) slot.reset(new HostCompiler(command));
  return *slot;
}

const HostCompiler& HostCompiler::standard() {
  if (const std::string wanted = env(Env::jit_host_compiler); !wanted.empty()) return named(wanted);
  return named(find_program("g++").empty() && !find_program("clang++").empty() ? "clang++" : "g++");
}

std::vector<std::string> HostCompiler::options(bool clang, const HostMode& mode) {
  // Proofs run a kernel a few times: -O1 halves the 1.8 s that -O2 takes for order-free decode_paged.
  const char* level = mode.debug >= 2 ? "-O0" : mode.number == Number::real ? "-O2" : "-O1";
  // x86-64-v3, never native: a cache may be shared by machines. No contraction: f32 sums are what the source says.
  std::vector<std::string> o = {"-std=c++20", level, "-w", "-DQN_EMU", "-fPIC",
                                "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno"};
#if defined(__x86_64__)
  o.push_back("-march=x86-64-v3");
#endif
  if (!clang) o.push_back("-fno-gnu-unique");
  if (mode.debug >= 1) o.push_back("-g");
  if (mode.number != Number::real) o.push_back("-DQN_EMU_NUMBER=" + std::to_string(int(mode.number)));
  if (mode.checked) {
    for (const char* option : {"-g1", "-DQN_EMU_CHECKED", "-fsanitize=thread"}) o.push_back(option);
    // clang instruments what its vectorisers leave, and passes over accesses of more than 16 bytes
    if (clang) o.insert(o.end(), {"-mllvm", "-tsan-instrument-func-entry-exit=0", "-mprefer-vector-width=128"});
    else o.insert(o.end(), {"--param", "tsan-instrument-func-entry-exit=0"});
  }
  return o;
}

static std::string indented(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) out += "\n  " + line;
  return out;
}

HostCompiler::Result HostCompiler::compile(const std::string& folder, const std::string& name, const HostMode& mode) const {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> command = {path_};
  for (const std::string& option : options(clang_, mode)) command.push_back(option);
  // Paths in line tables read "quern/ops/..." wherever the build folder was.
  command.insert(command.end(), {"-ffile-prefix-map=" + folder + "/source/=", "-I" + folder + "/source", "-x", "c++", "-c",
                                 folder + "/kernel.cu", "-o", folder + "/kernel.o"});
  Result result;
  const auto run = [&](const std::vector<std::string>& words, const char* phase) {
    const ProcessResult process = run_process(words);
    result.log += process.output;
    if (process.status != 0)
      throw Error(ErrorKind::compile, name + " did not " + phase + " with " + path_ + ":" + indented(first_error_lines(process.output, 12)) +
                                          "\n  (QN_JIT_DUMP=DIR keeps the source; QN_SOURCE_DIR edits and runs it)");
  };
  run(command, "compile");
  // Never -fsanitize=thread at the link: a checked kernel brings its own hooks and must not meet libtsan.
  std::vector<std::string> link = {path_, "-shared", "-o", folder + "/kernel.so", folder + "/kernel.o"};
  if (mode.checked) link.push_back("-Wl,--wrap=memcpy,--wrap=memset,--wrap=memmove");
  link.push_back("-lm");
  run(link, "link");
  result.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace quern::jit
