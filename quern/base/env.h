// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "quern/kit/abi.h"

namespace quern {

/// Every environment variable that quern reads; the reference table in docs/ is generated from it.
enum class Env {
  device,
  source_dir,
  cache_dir,
  cache_roots,
  cache_limit_mb,
  jit_compiler,
  jit_nvrtc,
  jit_nvcc,
  jit_host_compiler,
  jit_verbose,
  jit_debug,
  jit_dump,
  jit_frozen,
  emu_async,
  emu_schedule,
  emu_seed,
  emu_checked,
  emu_asan,
  emu_threads,
  emu_sms,
  log_level,
  load,
  log_dest,
  trace,
  trace_max,
  trace_max_mb,
};
struct EnvInfo {
  Env id;
  const char* name;
  const char* values;
  const char* meaning;
  bool decides = false;  ///< what a call computes, or whether it can: a command that makes a failure again needs it
};
std::span<const EnvInfo> env_table();

// Each reads the process's environment at each call: not for the hot path. What a variable may not be is Error{value} with the
// variable's name, its value and what is allowed. Nothing else of quern calls getenv.

/// The variable's value now, or empty.
std::string env(Env variable);
/// 1, true, on, yes; or 0, false, off, no, nothing; in any case of letters.
bool env_flag(Env variable);
/// Within the range that the table states, "1 to 1024", or any of 64 bits.
i64 env_int(Env variable, i64 otherwise);
/// Which of the names it is; -1: it is not set.
int env_choice(Env variable, std::initializer_list<const char*> names);
/// A path; "~" and "~/..." are in the user's home.
std::string env_path(Env variable);
/// Paths with ':' between them, the empty ones left out.
std::vector<std::string> env_paths(Env variable);

/// Judges every variable of the table, whoever reads it and when: what would be read only when a cache is full, or a kernel is not in it,
/// is wrong at once. Error{value} for the first one that is set to what it may not be; but what QN_DEVICE and the log's variables may be is
/// told where they are read. A variable that begins with QN_ and is not in the table is a warning, once in a process.
void check_environment();

/// The command as a shell takes it, behind those variables that are set and decide what it does:
/// "QN_EMU_SMS=1 QN_SOURCE_DIR=. quern check ...". One that an option in `command` states is left out.
std::string with_environment(const std::string& command);

/// A variable that is not quern's own (PATH, CUDA_HOME), or empty.
std::string system_variable(const char* name);
/// HOME, or empty. Error{value} where it is no absolute path.
std::string home_folder();
/// $XDG_CACHE_HOME/quern, else ~/.cache/quern, else empty. Error{value} where the variable is no absolute path.
std::string user_cache_folder();

}  // namespace quern
