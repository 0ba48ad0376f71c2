// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/report.h"

#include <cstdarg>
#include <cstdio>

namespace quern::emu {

const char* name(ReportKind kind) {
  switch (kind) {
    case ReportKind::deadlock: return "DEADLOCK";
    case ReportKind::livelock: return "LIVELOCK";
    case ReportKind::divergence: return "DIVERGENCE";
    case ReportKind::barrier: return "BARRIER";
    case ReportKind::race: return "RACE";
    case ReportKind::uninit: return "UNINIT";
    case ReportKind::smem_oob: return "SMEM-OOB";
    case ReportKind::global_oob: return "GLOBAL-OOB";
    case ReportKind::write_to_input: return "WRITE-TO-INPUT";
    case ReportKind::misaligned: return "MISALIGNED";
    case ReportKind::fault: return "FAULT";
    case ReportKind::stack: return "STACK";
    case ReportKind::async: return "ASYNC";
    case ReportKind::proxy: return "PROXY";
    case ReportKind::mbarrier: return "MBARRIER";
    case ReportKind::cluster: return "CLUSTER";
    case ReportKind::wgmma: return "WGMMA";
    case ReportKind::registers: return "REGISTERS";
    case ReportKind::local_oob: return "LOCAL-OOB";
    case ReportKind::index_oob: return "INDEX-OOB";
    case ReportKind::undefined: return "UNDEFINED";
    case ReportKind::hook: return "HOOK";
  }
  return "?";
}

std::string text_of(const char* format, ...) {
  char buffer[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  return buffer;
}

std::string describe(const Report& report) {
  std::string line = name(report.kind);
  if (report.thread >= 0) {
    line += text_of(" block (%u,%u,%u) thread %lld (warp %lld lane %lld): ", report.block.x, report.block.y, report.block.z,
                    (long long)report.thread, (long long)report.thread / 32, (long long)report.thread % 32);
  } else {
    line += ": ";
  }
  line += report.text;
  if (!report.location.empty()) line += ", at " + report.location;
  if (!report.other_location.empty()) line += "; the other access at " + report.other_location;
  return line;
}

std::string describe(const std::vector<Report>& reports) {
  std::string lines;
  for (const Report& report : reports) lines += (lines.empty() ? "" : "\n") + describe(report);
  return lines;
}

}  // namespace quern::emu
