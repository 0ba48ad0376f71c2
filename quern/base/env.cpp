// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/env.h"

#include <cstdlib>

#include "quern/base/error.h"

namespace quern {

static const EnvInfo kTable[] = {
    {Env::device, "QN_DEVICE", "cuda, cuda:N, emu, emu:sm_80", "device used where none is named (default: the first GPU, else the emulated H200)"},
    {Env::source_dir, "QN_SOURCE_DIR", "path", "read kernel sources that lie below this folder (a checkout, or changed files alone: DIR/quern/ops/...) instead of the ones inside the library: edit and run"},
    {Env::cache_dir, "QN_CACHE_DIR", "path", "where compiled kernels are kept (default: $XDG_CACHE_HOME/quern, else ~/.cache/quern)"},
    {Env::cache_roots, "QN_CACHE_ROOTS", "path[:path]", "folders and packs of compiled kernels that are only read, looked at before QN_CACHE_DIR"},
    {Env::cache_limit_mb, "QN_CACHE_LIMIT_MB", "integer", "how much QN_CACHE_DIR may hold; what was not used for longest goes (default: 4096)"},
    {Env::jit_compiler, "QN_JIT_COMPILER", "nvrtc, nvcc", "what compiles for GPUs: NVRTC in the process (default), or nvcc as a child process"},
    {Env::jit_nvrtc, "QN_JIT_NVRTC", "path", "this libnvrtc.so and no other"},
    {Env::jit_nvcc, "QN_JIT_NVCC", "path", "this nvcc and no other, for QN_JIT_COMPILER=nvcc"},
    {Env::jit_host_compiler, "QN_JIT_HOST_COMPILER", "command", "compiler for the emulated device (default: g++, else clang++)"},
    {Env::jit_verbose, "QN_JIT_VERBOSE", "0, 1", "print each compile: kernel, options, time, registers, compiler log"},
    {Env::jit_debug, "QN_JIT_DEBUG", "0, 1, 2", "1: line information; 2: also no optimisation"},
    {Env::jit_dump, "QN_JIT_DUMP", "path", "write source, PTX, cubin and, where a disassembler is found, SASS of each compile here"},
    {Env::jit_frozen, "QN_JIT_FROZEN", "0, 1", "compile nothing: a kernel that is not in the cache is an error at once"},
    {Env::emu_async, "QN_EMU_ASYNC", "eager, lazy, random", "when asynchronous operations of the emulated device complete"},
    {Env::emu_schedule, "QN_EMU_SCHEDULE", "warp, fifo, shuffled", "order in which its ready threads go on"},
    {Env::emu_seed, "QN_EMU_SEED", "integer", "seed of its random choices"},
    {Env::emu_checked, "QN_EMU_CHECKED", "0, 1", "report races, uninitialised and out-of-bounds accesses"},
    {Env::emu_asan, "QN_EMU_ASAN", "0, 1", "report out-of-bounds accesses, also of local arrays, and undefined behaviour of C++"},
    {Env::emu_threads, "QN_EMU_THREADS", "integer", "OS threads of a launch (default: one per CPU)"},
    {Env::emu_sms, "QN_EMU_SMS", "integer", "multiprocessors of the emulated device (default: those of the GPU it stands for)"},
    {Env::load, "QN_LOAD", "paths, : between", "libraries with ops of your own that the quern command loads, as its option --load does"},
    {Env::log_level, "QN_LOG_LEVEL", "0, 1, 3, 5", "0 warnings, 1 also calls and compiles, 3 also their tensors and attributes before the launch, 5 also what the tensors hold"},
    {Env::log_dest, "QN_LOG_DEST", "stderr, stdout, path", "where the log goes; %i in a path stands for the process id"},
    {Env::trace, "QN_TRACE", "path", "record each call with its data in a folder of its own here, for `quern run --replay`"},
    {Env::trace_max, "QN_TRACE_MAX", "integer", "calls of a process that are kept, the newest ones (default: 1000)"},
    {Env::trace_max_mb, "QN_TRACE_MAX_MB", "integer", "megabytes of their data (default: 4096); 0: distinct calls, without data"},
};

std::span<const EnvInfo> env_table() { return kTable; }

static const char* raw(Env variable) {
  for (const EnvInfo& e : kTable)
    if (e.id == variable) return std::getenv(e.name);
  return nullptr;
}

std::string env(Env variable) {
  const char* value = raw(variable);
  return value ? value : "";
}

bool env_flag(Env variable) {
  const std::string value = env(variable);
  return !value.empty() && value != "0";
}

i64 env_int(Env variable, i64 otherwise) {
  const std::string value = env(variable);
  if (value.empty()) return otherwise;
  char* end = nullptr;
  const long long number = std::strtoll(value.c_str(), &end, 10);
  if (*end) {
    for (const EnvInfo& e : kTable)
      if (e.id == variable) throw Error(ErrorKind::value, "", e.name, "is '" + value + "'", "an integer");
  }
  return number;
}

}  // namespace quern
