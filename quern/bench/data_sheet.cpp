// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/data_sheet.h"

namespace quern::bench {

namespace {

struct Sheet {
  std::string_view name;
  double gbps;
};
/// Whole names: a card with other memory has another one.
constexpr Sheet kSheets[] = {
    {"NVIDIA A100-SXM4-40GB", 1555},
    {"NVIDIA A100-PCIE-40GB", 1555},
    {"NVIDIA A100-SXM4-80GB", 2039},
    {"NVIDIA A100 80GB PCIe", 1935},
    {"NVIDIA H100 PCIe", 2000},
    {"NVIDIA H100 80GB HBM3", 3350},
    {"NVIDIA H200", 4800},
    {"NVIDIA L4", 300},
    {"NVIDIA L40S", 864},
    {"NVIDIA B200", 8000},
    {"NVIDIA GeForce RTX 3090", 936},
    {"NVIDIA GeForce RTX 4090", 1008},
};

}  // namespace

double data_sheet_bytes_per_us(std::string_view name) {
  for (const Sheet& sheet : kSheets)
    if (sheet.name == name) return sheet.gbps * 1e3;
  return 0;
}

}  // namespace quern::bench
