// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/env.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>

#include "quern/base/error.h"
#include "quern/base/log.h"
#include "quern/base/nearest.h"

extern char** environ;

namespace quern {

static const EnvInfo kTable[] = {
    {Env::device, "QN_DEVICE", "cuda, cuda:N, emu, emu:sm_80",
     "device used where none is named (default: the first GPU, else the emulated H200)"},
    {Env::source_dir, "QN_SOURCE_DIR", "path",
     "read kernel sources that lie below this folder (a checkout, or changed files alone: DIR/quern/ops/...) instead of the ones inside the library: edit and run",
     true},
    {Env::cache_dir, "QN_CACHE_DIR", "path", "where compiled kernels are kept (default: $XDG_CACHE_HOME/quern, else ~/.cache/quern)"},
    {Env::cache_roots, "QN_CACHE_ROOTS", "path[:path]",
     "folders and packs of compiled kernels that are only read, looked at before QN_CACHE_DIR"},
    {Env::cache_limit_mb, "QN_CACHE_LIMIT_MB", "0 to 1099511627776",
     "how much QN_CACHE_DIR may hold; what was not used for longest goes (default: 4096)"},
    {Env::jit_compiler, "QN_JIT_COMPILER", "nvrtc, nvcc",
     "what compiles for GPUs: NVRTC in the process (default), or nvcc as a child process", true},
    {Env::jit_nvrtc, "QN_JIT_NVRTC", "path", "this libnvrtc.so and no other", true},
    {Env::jit_nvcc, "QN_JIT_NVCC", "path", "this nvcc and no other, for QN_JIT_COMPILER=nvcc", true},
    {Env::jit_host_compiler, "QN_JIT_HOST_COMPILER", "command", "compiler for the emulated device (default: g++, else clang++)", true},
    {Env::jit_verbose, "QN_JIT_VERBOSE", "0, 1", "print each compile: kernel, options, time, registers, compiler log"},
    {Env::jit_debug, "QN_JIT_DEBUG", "0 to 2", "1: line information; 2: also no optimisation", true},
    {Env::jit_dump, "QN_JIT_DUMP", "path", "write source, PTX, cubin and, where a disassembler is found, SASS of each compile here"},
    {Env::jit_frozen, "QN_JIT_FROZEN", "0, 1", "compile nothing: a kernel that is not in the cache is an error at once", true},
    {Env::emu_async, "QN_EMU_ASYNC", "eager, lazy, random", "when asynchronous operations of the emulated device complete", true},
    {Env::emu_schedule, "QN_EMU_SCHEDULE", "warp, fifo, shuffled", "order in which its ready threads go on", true},
    {Env::emu_seed, "QN_EMU_SEED", "integer", "seed of its random choices", true},
    {Env::emu_checked, "QN_EMU_CHECKED", "0, 1", "report races, uninitialised and out-of-bounds accesses", true},
    {Env::emu_asan, "QN_EMU_ASAN", "0, 1", "report out-of-bounds accesses, also of local arrays, and undefined behaviour of C++", true},
    {Env::emu_threads, "QN_EMU_THREADS", "0 to 1024", "OS threads of a launch (0, the default: one per CPU)", true},
    {Env::emu_sms, "QN_EMU_SMS", "1 to 1024", "multiprocessors of the emulated device (default: those of the GPU it stands for)", true},
    {Env::load, "QN_LOAD", "paths, : between", "libraries with ops of your own that the quern command loads, as its option --load does",
     true},
    {Env::log_level, "QN_LOG_LEVEL", "0 to 5",
     "0 warnings, 1 also calls and compiles, 3 also their tensors and attributes before the launch, 5 also what the tensors hold"},
    {Env::log_dest, "QN_LOG_DEST", "stderr, stdout, path", "where the log goes; %i in a path stands for the process id"},
    {Env::trace, "QN_TRACE", "path", "record each call with its data in a folder of its own here, for `quern run --replay`"},
    {Env::trace_max, "QN_TRACE_MAX", "1 to 1000000000", "calls of a process that are kept, the newest ones (default: 1000)"},
    {Env::trace_max_mb, "QN_TRACE_MAX_MB", "0 to 1099511627776",
     "megabytes of their data (default: 4096); 0: distinct calls, without data"},
};

std::span<const EnvInfo> env_table() { return kTable; }

static const EnvInfo& info_of(Env variable) {
  for (const EnvInfo& e : kTable)
    if (e.id == variable) return e;
  throw Error(ErrorKind::internal, "a variable is not in the table of env.cpp");
}

[[noreturn]] static void refuse(const std::string& name, const std::string& value, const std::string& expected) {
  throw Error(ErrorKind::value, "", name, "is '" + value + "'", expected);
}

std::string env(Env variable) { return system_variable(info_of(variable).name); }

std::string system_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// As a POSIX shell reads it back.
static std::string quoted(const std::string& value) {
  if (!value.empty() &&
      value.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:,+@%=-") == std::string::npos)
    return value;
  std::string text = "'";
  for (const char c : value) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string with_environment(const std::string& command) {
  std::string text;
  for (const EnvInfo& e : kTable) {
    const std::string value = e.decides ? system_variable(e.name) : "";
    if (value.empty() || (e.id == Env::jit_host_compiler && command.find(" --host-compiler ") != std::string::npos)) continue;
    text += std::string(e.name) + "=" + quoted(value) + " ";
  }
  return text + command;
}

bool env_flag(Env variable) {
  std::string value = env(variable);
  for (char& c : value) c = char(std::tolower(static_cast<unsigned char>(c)));
  if (value.empty()) return false;
  for (const char* yes : {"1", "true", "on", "yes"})
    if (value == yes) return true;
  for (const char* no : {"0", "false", "off", "no"})
    if (value == no) return false;
  refuse(info_of(variable).name, env(variable), "0 or 1");
}

i64 env_int(Env variable, i64 otherwise) {
  const EnvInfo& info = info_of(variable);
  const std::string value = env(variable), range = info.values;
  if (value.empty()) return otherwise;
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(value.c_str(), &end, 10);
  bool good = *end == 0 && errno == 0 && !std::isspace(static_cast<unsigned char>(value[0]));
  if (const size_t to = range.find(" to "); to != std::string::npos)
    good = good && number >= std::stoll(range) && number <= std::stoll(range.substr(to + 4));
  if (!good) refuse(info.name, value, range == "integer" ? "an integer of 64 bits" : range);
  return number;
}

int env_choice(Env variable, std::initializer_list<const char*> names) {
  const std::string value = env(variable);
  if (value.empty()) return -1;
  std::string known;
  int at = 0;
  for (const char* name : names) {
    if (value == name) return at;
    known += (at++ ? ", " : "") + std::string(name);
  }
  refuse(info_of(variable).name, value, "one of " + known);
}

std::string home_folder() {
  const std::string home = system_variable("HOME");
  if (!home.empty() && home[0] != '/') refuse("HOME", home, "an absolute path");
  return home;
}

/// "~" and what begins with "~/" lie in HOME: where a shell sets no variable (a Dockerfile, a unit file) nobody else expands it.
static std::string expanded(const char* name, const std::string& path) {
  if (path.empty() || path[0] != '~') return path;
  if (path.size() > 1 && path[1] != '/') refuse(name, path, "a path; of those with ~ only ~/... is understood");
  const std::string home = home_folder();
  if (home.empty()) refuse(name, path, "a path without ~, as HOME is not set");
  return home + path.substr(1);
}

std::string env_path(Env variable) { return expanded(info_of(variable).name, env(variable)); }

std::vector<std::string> env_paths(Env variable) {
  std::vector<std::string> paths;
  std::istringstream in(env(variable));
  for (std::string path; std::getline(in, path, ':');)
    if (!path.empty()) paths.push_back(expanded(info_of(variable).name, path));
  return paths;
}

/// Of "warp, fifo, shuffled" as the table has them.
static void check_choice(const EnvInfo& e) {
  const std::string value = system_variable(e.name);
  std::istringstream names(e.values);
  for (std::string name; std::getline(names >> std::ws, name, ',');)
    if (value == name) return;
  if (!value.empty()) refuse(e.name, value, "one of " + std::string(e.values));
}

static void warn_of_other_names() {
  std::vector<std::string> known;
  for (const EnvInfo& e : kTable) known.push_back(e.name);
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string name(*variable, std::strcspn(*variable, "="));
    // QN_TEST_* are of quern's own tests
    if (!name.starts_with("QN_") || name.starts_with("QN_TEST_") || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest(name, known);
    log(LogLevel::warning, "`" + name + "` is no variable of quern, and has no effect" + (near.empty() ? "" : ", expected `" + near + "`"));
  }
}

void check_environment() {
  for (const EnvInfo& e : kTable) {
    const std::string values = e.values;
    if (e.id == Env::device || e.id == Env::log_level || e.id == Env::log_dest || values == "command") continue;
    if (values == "0, 1") env_flag(e.id);
    else if (values == "integer" || values.find(" to ") != std::string::npos) env_int(e.id, 0);
    else if (values.starts_with("path")) env_paths(e.id);
    else check_choice(e);
  }
  static std::once_flag once;
  std::call_once(once, warn_of_other_names);
}

std::string user_cache_folder() {
  if (const std::string xdg = expanded("XDG_CACHE_HOME", system_variable("XDG_CACHE_HOME")); !xdg.empty()) {
    if (xdg[0] != '/') refuse("XDG_CACHE_HOME", xdg, "an absolute path");
    return xdg + "/quern";
  }
  const std::string home = home_folder();
  return home.empty() ? home : home + "/.cache/quern";
}

}  // namespace quern
