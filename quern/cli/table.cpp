// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/cli/table.h"

#include <algorithm>
#include <cctype>

namespace quern::cli {

static bool is_number(const std::string& s) {
  return s.empty() || s == "-" || std::isdigit(static_cast<unsigned char>(s[0])) ||
         ((s[0] == '-' || s[0] == '.') && s.size() > 1 && std::isdigit(static_cast<unsigned char>(s[1])));
}

std::string Table::text() const {
  std::vector<size_t> width;
  std::vector<bool> right;
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) {
      if (c == width.size()) width.push_back(0), right.push_back(rows_.size() > 1);
      width[c] = std::max(width[c], row[c].size());
      if (&row != &rows_[0] && !is_number(row[c])) right[c] = false;
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string gap(width[c] - row[c].size(), ' ');
      line += (c ? "  " : "") + (right[c] ? gap + row[c] : row[c] + gap);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

}  // namespace quern::cli
