// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Rows of sweeps as CSV: one a provider, mode, metric and point.
#pragma once
#include <string>
#include <vector>

#include "quern/bench/csv.h"
#include "quern/bench/sweep_point.h"

namespace quern::bench {

enum class Metric { speed, memory };
const char* name(Metric metric);
/// From "speed". Throws Error{value}.
Metric metric_from_name(const std::string& text);

/// What the rows of a run have in common.
struct SweepRun {
  std::string gpu_name, arch, version, timestamp;
  std::string device;  ///< as --device takes it
  bool hot = false;
  u64 seed = 1;
};
/// Of now, on a device that --device named so.
SweepRun sweep_run(const Device& device, const std::string& named, const std::string& version, const SweepOptions& options);

/// What tells a row apart from all others: the columns kernel_name, kernel_provider, kernel_operation_mode, metric_name, x_name, x_value,
/// extra_benchmark_config_str, gpu_name.
std::string key_of(const std::vector<Field>& row);
/// The row of a result. Without figures (SweepResult{} with its op, provider and mode) its key is that of the row to come. Columns:
/// kernel_name, kernel_provider, kernel_operation_mode, metric_name, metric_unit (ms, MB of 2^20 bytes), x_name, x_label, x_value,
/// y_value_50, y_value_20, y_value_80 (quantiles), extra_benchmark_config_str (JSON), gpu_name, timestamp, version, arch, dtype, spec,
/// bytes (that must move, or of a row of memory those that are planned), flops, sol_ms, pct_sol, repro, sheet_ms, timer.
std::vector<Field> row_of(const Op& op, const SweepPoint& point, const SweepResult& result, Metric metric, const SweepRun& run);

/// Whether a file's first line begins as that of a CSV of sweeps.
bool is_sweep_header(const std::string& line);

/// A CSV of sweeps. What it held stays; every change is on the disk when the call returns, and a reader never sees half of one.
class SweepFile {
 public:
  /// An empty path is no file. Throws Error{value} where the file is none of sweeps, or cannot be read; a missing one is made by the first
  /// put().
  explicit SweepFile(std::string path);
  bool has(const std::string& key) const;
  /// Adds a row, or replaces the one of its key. Throws Error{value} where the file cannot be written.
  void put(const std::vector<Field>& row);
  /// Takes the row of that key out, if there is one.
  void remove(const std::string& key);

 private:
  void write() const;
  std::string path_;
  std::vector<std::vector<Field>> rows_;
};

}  // namespace quern::bench
