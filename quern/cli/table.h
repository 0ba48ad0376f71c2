// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

namespace quern::cli {

/// Text in aligned columns: left-aligned words, right-aligned numbers.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  size_t size() const { return rows_.size() - 1; }
  /// Lines with the header first; columns are two spaces apart and no line ends in spaces.
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace quern::cli
