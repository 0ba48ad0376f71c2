// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the kinds of `quern bench` print alike.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

#include "quern/bench/csv.h"

namespace quern::cli {

/// Three digits or more; "-" where nothing was measured.
std::string us_text(double us);
/// "dense_mma_ring + dense_sum_splits": kernels without their Configs.
std::string short_kernel(const std::string& kernels);
void print_ceilings(const bench::Ceilings& ceilings);
void print_json(const bench::Ceilings& ceilings, const std::vector<std::vector<bench::Field>>& results);

/// The CSV file, written line by line so that an interrupted run leaves what it measured.
class CsvFile {
 public:
  /// Throws Error{value} when it cannot be written; an empty path is no file.
  explicit CsvFile(const std::string& path);
  ~CsvFile();
  CsvFile(const CsvFile&) = delete;
  void add(const std::vector<bench::Field>& fields);

 private:
  std::FILE* file_ = nullptr;
  int lines_ = 0;
};

}  // namespace quern::cli
