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

/// Accesses as calls (outlined), marks around local variables in a shadow at an offset of ours, no marks around globals;
/// undefined behaviour as calls that return. kit/emu/hooks_asan.cuh is the other side.
static void add_asan_options(std::vector<std::string>& o, bool clang) {
  const std::string shadow = "0x100000000000";
  // Not in `undefined`: float-cast-overflow. Left out of it: what needs type information that kernels lack.
  o.insert(o.end(), {"-g1", "-DQN_EMU_ASAN=" + shadow, "-fsanitize=undefined,float-cast-overflow", "-fno-sanitize=vptr"});
  // DWARF 4: of clang's DWARF 5, addr2line 2.40 finds no inlined frames here, where a constructor has a section of its own.
  if (clang)
    o.insert(o.end(), {"-gdwarf-4", "-fno-sanitize=function", "-fsanitize=address", "-fsanitize-address-outline-instrumentation",
                       "-fsanitize-address-use-after-return=never", "-mllvm", "-asan-globals=0", "-mllvm",
                       "-asan-instrument-dynamic-allocas=0", "-mllvm", "-asan-mapping-offset=" + shadow});
  else
    o.insert(o.end(), {"-fstrict-enums", "-fsanitize=kernel-address", "-fsanitize-address-use-after-scope", "--param=asan-stack=1",
                       "--param=asan-globals=0", "--param=asan-instrumentation-with-call-threshold=0", "-fasan-shadow-offset=" + shadow});
}

std::vector<std::string> HostCompiler::options(bool clang, const HostMode& mode) {
  // Most of a checked run's time is the compiler's and the hooks': g++'s -Og takes 0.5 to 0.85 of -O2's time. Proofs run a kernel a
  // few times: -O1 halves the 1.8 s that -O2 takes for the order-free paged_split_kv.
  const char* level = mode.debug >= 2 ? "-O0" : mode.checked && !clang ? "-Og" : mode.number == Number::real && !mode.asan ? "-O2" : "-O1";
  // x86-64-v3, never native: a cache may be shared by machines. No contraction: f32 sums are what the source says.
  std::vector<std::string> o = {"-std=c++20",     level, "-w", "-DQN_EMU", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off",
                                "-fno-math-errno"};
#if defined(__x86_64__)
  o.push_back("-march=x86-64-v3");
#endif
  if (!clang) o.push_back("-fno-gnu-unique");
  // What a kernel does not initialise is neither zero nor what the last call left there: accumulators become -1.7e38 or NaN.
  o.push_back("-ftrivial-auto-var-init=pattern");
  if (mode.debug >= 1) o.push_back("-g");
  if (mode.number != Number::real) o.push_back("-DQN_EMU_NUMBER=" + std::to_string(int(mode.number)));
  if (mode.checked) {
    for (const char* option : {"-g1", "-DQN_EMU_CHECKED", "-fsanitize=thread"}) o.push_back(option);
    // What a function that is not inlined stores into memory for its result g++ does not instrument: -Og leaves out this kind of inlining.
    if (!clang) o.push_back("-finline-functions-called-once");
    // clang instruments what its vectorisers leave, and passes over accesses of more than 16 bytes, and over those of a local
    // array at a constant index, as registers of a wgmma are: the second kind of hooks is for these. A load in front of a store
    // to the same place races where the store does, so clang leaves it out; but it may be of what nobody has written.
    if (clang)
      o.insert(o.end(), {"-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-instrument-read-before-write", "-fno-vectorize",
                         "-fno-slp-vectorize", "-fsanitize-coverage=func,trace-loads,trace-stores"});
    else o.insert(o.end(), {"--param", "tsan-instrument-func-entry-exit=0"});
  }
  if (mode.asan) add_asan_options(o, clang);
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
  // Paths in line tables read "quern/ops/..." or "mine/..." wherever the build folder was and the compiler ran.
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  if (!error && here.size() > 1) command.push_back("-ffile-prefix-map=" + here + "=.");
  command.insert(command.end(), {"-ffile-prefix-map=" + folder + "/source/=", "-I" + folder + "/source", "-x", "c++", "-c",
                                 folder + "/kernel.cu", "-o", folder + "/kernel.o"});
  Result result;
  const auto run = [&](const std::vector<std::string>& words, const char* phase) {
    const ProcessResult process = run_process(words);
    result.log += process.output;
    if (process.status != 0)
      throw Error(ErrorKind::compile, name + " did not " + phase + " with " + path_ + ":" +
                                          indented(first_error_lines(process.output, 12)) +
                                          "\n  (QN_JIT_DUMP=DIR keeps the source; QN_SOURCE_DIR edits and runs it)");
  };
  run(command, "compile");
  // Never -fsanitize at the link: a kernel with hooks brings its own and must not meet libtsan or libasan.
  std::vector<std::string> link = {path_, "-shared", "-o", folder + "/kernel.so", folder + "/kernel.o"};
  if (mode.checked || mode.asan) link.push_back("-Wl,--wrap=memcpy,--wrap=memset,--wrap=memmove");
  if (mode.asan) link.push_back("-Wl,--no-undefined");  // a hook that another release of the compiler calls is named here
  link.push_back("-lm");
  run(link, "link");
  result.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace quern::jit
