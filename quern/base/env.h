// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <span>
#include <string>

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
};
std::span<const EnvInfo> env_table();

/// The variable's value now, or empty. Reads the process's environment at each call: not for the hot path.
std::string env(Env variable);
bool env_flag(Env variable);                    ///< set and not "0"
i64 env_int(Env variable, i64 otherwise);       ///< Error{value} when it is set to something else than an integer

}  // namespace quern
