// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Benchmark results as CSV: one column list for files, JSON and plots.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "quern/bench/bench_case.h"

namespace quern::bench {

/// One figure or word of a result; `number` tells which.
struct Field {
  std::string column;
  std::string text;  ///< empty when there is no figure
  bool number = false;
};
/// A result's fields in the order of the columns: op, case, kernel, device, timer, cold, runs, median_us, p10_us,
/// p90_us, bytes, flops, floor_us, share_of_floor, copy_us, share_of_copy, tflops, gbps, error, provider, sm_clock_mhz,
/// version, ok, checked, host_us, launch_us, message.
std::vector<Field> fields_of(const BenchResult& result, const std::string& version);

/// The fields of each line, quoted ones as they were before. Throws Error{value} for a quote that does not end; `path` is named.
std::vector<std::vector<std::string>> parse_csv(const std::string& text, const std::string& path);

/// Lines that end in a newline. Fields with commas, quotes or newlines are quoted as RFC 4180 does.
std::string csv_header(const std::vector<Field>& fields);
std::string csv_line(const std::vector<Field>& fields);

}  // namespace quern::bench
