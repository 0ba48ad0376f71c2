// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/locate.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "quern/base/subprocess.h"

namespace quern::emu {
namespace {

/// "quern/kit/reduce.cuh:40" of "/some/where/quern/kit/reduce.cuh:40 (discriminator 2)"; empty when unknown.
std::string shortened(std::string line) {
  if (const size_t space = line.find(" ("); space != std::string::npos) line.resize(space);
  if (line.compare(0, 2, "??") == 0 || line.size() < 2 || line.compare(line.size() - 2, 2, ":?") == 0) return {};
  const size_t root = line.rfind("quern/ops/") != std::string::npos ? line.rfind("quern/ops/") : line.rfind("quern/kit/");
  if (root != std::string::npos) return line.substr(root);
  return line.starts_with("./") ? line.substr(2) : line;  // "." is what jit/compiler_host.cpp calls the folder of the compiler
}

/// The place to report. `frames` were inlined into each other, innermost first. It is the first frame that is no instruction (kit/emu); if
/// that frame is in the kit, also the first one outside the kit, which is the kernel that uses it.
std::string chosen(const std::vector<std::string>& frames) {
  std::string place;
  for (const std::string& frame : frames) {
    if (frame.empty() || frame.find("kit/emu/") != std::string::npos) continue;
    if (place.empty()) {
      place = frame;
      if (frame.find("quern/kit/") == std::string::npos) break;
    } else if (frame.find("quern/kit/") == std::string::npos) {
      return place + ", used at " + frame;
    }
  }
  return place;
}

}  // namespace

void locate(std::vector<Report>& reports, const Module& module) {
  std::vector<std::string> command = {"addr2line", "-a", "-i", "-e", module.path};
  std::map<u64, std::string> places;
  for (const Report& report : reports)
    for (const void* pc : {report.pc, report.other_pc})
      if (pc && module.holds(pc)) places[module.offset_of(pc) - 1];  // a return address: the call lies before
  if (places.empty()) return;
  for (const auto& [offset, place] : places) command.push_back(text_of("0x%llx", offset));
  std::string output;
  try {
    output = run_process(command).output;
  } catch (...) {
    // Without binutils reports have no lines
    std::erase_if(reports, [](const Report& report) { return report.needs_two_places; });
    return;
  }
  std::istringstream lines(output);
  std::map<u64, std::vector<std::string>> frames;
  std::vector<std::string>* current = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, 2, "0x") == 0) {
      current = &frames[std::stoull(line, nullptr, 16)];
    } else if (current) {
      current->push_back(shortened(line));
    }
  }
  std::erase_if(reports, [&](const Report& report) {
    return report.needs_two_places && module.holds(report.pc) && module.holds(report.other_pc) &&
           frames[module.offset_of(report.pc) - 1] == frames[module.offset_of(report.other_pc) - 1];
  });
  for (auto& [offset, place] : places) place = chosen(frames[offset]);
  for (Report& report : reports) {
    report.location = shortened(report.location);
    if (report.pc && module.holds(report.pc)) {
      // What the kernel told of the place is right; the compiler may have made one call of several.
      const std::vector<std::string>& around = frames[module.offset_of(report.pc) - 1];
      const bool agree = report.location.empty() || std::find(around.begin(), around.end(), report.location) != around.end();
      if (agree) report.location = places[module.offset_of(report.pc) - 1];
    }
    if (report.other_pc) report.other_location = places[module.offset_of(report.other_pc) - 1];
  }
}

}  // namespace quern::emu
