// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/ptxas_log.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace quern::jit {
namespace {

bool has(const std::string& line, const char* text) { return line.find(text) != std::string::npos; }

// The integer that stands before `unit`: 168 in "Used 168 registers" for " registers"; 0 when there is none.
int number_before(const std::string& line, const char* unit) {
  const size_t end = line.find(unit);
  if (end == std::string::npos) return 0;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  return std::atoi(line.substr(begin, end - begin).c_str());
}

}  // namespace

void read_ptxas_log(CompileResult& result) {
  std::istringstream log(result.log);
  for (std::string line; std::getline(log, line);) {
    result.registers = std::max(result.registers, number_before(line, " registers"));
    result.stack_bytes =
        std::max({result.stack_bytes, number_before(line, " bytes stack frame"), number_before(line, " bytes cumulative stack size")});
    result.spill_bytes += number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    // By number or by text: releases differ in whether they print the number.
    const bool serialised = has(line, "C7510") || (has(line, "wgmma") && has(line, "serialized"));
    const bool ignored = has(line, "C7508") || (has(line, "setmaxnreg") && has(line, "ignored"));
    result.serialised_wgmma |= serialised;
    result.ignored_setmaxnreg |= ignored;
    if (serialised || ignored || has(line, "warning")) result.warnings.push_back(line);
  }
}

std::string first_error_lines(const std::string& log, int most) {
  std::istringstream lines(log);
  const bool any = has(log, " error");
  std::string text;
  int taken = 0;
  for (std::string line; taken < most && std::getline(lines, line);) {
    if (line.empty() || (any && taken == 0 && !has(line, " error"))) continue;
    text += (taken++ ? "\n" : "") + line;
  }
  return text;
}

}  // namespace quern::jit
