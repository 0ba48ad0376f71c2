// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/denied_compilers.h"

#include <array>
#include <cstdio>
#include <vector>

namespace quern::jit {

namespace {

/// Empty so far: no release since 12.8 is known to break a kernel of quern.
const std::vector<DeniedCompiler> kDenied = {};
std::span<const DeniedCompiler> g_for_test;

/// Parts that a version does not state are `otherwise`.
std::array<int, 3> parts(const std::string& version, int otherwise) {
  std::array<int, 3> p = {otherwise, otherwise, otherwise};
  std::sscanf(version.c_str(), "%d.%d.%d", &p[0], &p[1], &p[2]);
  return p;
}

}  // namespace

std::span<const DeniedCompiler> denied_compilers() { return g_for_test.empty() ? std::span(kDenied) : g_for_test; }
void deny_compilers_for_test(std::span<const DeniedCompiler> table) { g_for_test = table; }

std::string denial_of(const std::string& version, std::span<const DeniedCompiler> table) {
  constexpr int kAny = 1 << 30;
  if (version.empty() || parts(version, -1)[0] < 0) return {};
  for (const DeniedCompiler& d : table)
    if (parts(version, 0) >= parts(d.first, 0) && parts(version, 0) <= parts(d.last, kAny)) return std::string("is denied: ") + d.reason;
  return {};
}

std::string release_problem(const std::string& version, int driver_version) {
  constexpr std::array<int, 2> kOldest = {12, 8};  // the first release with sm_100a, sm_120a and their PTX
  const std::array<int, 3> p = parts(version, kOldest[1]);
  if (std::array<int, 2>{p[0], p[1]} < kOldest) return "is " + version + ", older than 12.8";
  if (const std::string why = denial_of(version); !why.empty()) return "is " + version + ", which " + why;
  if (driver_version > 0 && p[0] > driver_version / 1000)
    return "is " + version + ", the driver supports CUDA " + std::to_string(driver_version / 1000) + "." +
           std::to_string(driver_version % 1000 / 10) + " and would not load its kernels";
  return {};
}

}  // namespace quern::jit
