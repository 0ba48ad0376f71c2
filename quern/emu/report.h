// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/kit/emu/runtime.h"

namespace quern::emu {

enum class ReportKind {
  deadlock,
  livelock,
  divergence,
  barrier,
  race,
  uninit,
  smem_oob,
  global_oob,
  write_to_input,
  misaligned,
  fault,
  stack,
  async,
  proxy,
  mbarrier,
  cluster,
  wgmma,
  registers,
  local_oob,
  index_oob,
  undefined,
  hook,
};
const char* name(ReportKind kind);

/// One fault of a kernel. Never thrown or printed here: reports are the result of a launch.
struct Report {
  ReportKind kind;
  Index3 block = {};
  i64 thread = -1;  ///< index in the block, or -1 when it concerns several
  u64 address = 0;
  std::string text;          ///< one sentence, without position
  void* pc = nullptr;        ///< where in the kernel, when known
  std::string location;      ///< file:line of pc, filled in when the launch has ended; until then what the kernel itself told
  void* other_pc = nullptr;  ///< of a race: where the other access was made
  std::string other_location;
  bool needs_two_places = false;  ///< a fault only if pc and other_pc belong to two places of the source
};
/// "RACE block (0,0,0) thread 33: <text> at rms_norm.cuh:21".
std::string describe(const Report& report);
std::string describe(const std::vector<Report>& reports);

/// printf into a string.
__attribute__((format(printf, 1, 2))) std::string text_of(const char* format, ...);

}  // namespace quern::emu
