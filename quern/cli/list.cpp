// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <cstdio>
#include <nlohmann/json.hpp>

#include "quern/cli/commands.h"
#include "quern/cli/table.h"

namespace quern::cli {

int list(const ListOptions& options) {
  if (options.json) {
    nlohmann::ordered_json ops = nlohmann::ordered_json::array();
    for (const auto& [id, op] : registry()) ops.push_back({{"op", id}, {"formula", op->doc.substr(0, op->doc.find('\n'))}});
    std::puts(ops.dump(2).c_str());
    return kRight;
  }
  Table table({"op", "formula"});
  for (const auto& [id, op] : registry()) table.add({id, op->doc.substr(0, op->doc.find('\n'))});
  std::fputs(table.text().c_str(), stdout);
  return kRight;
}

}  // namespace quern::cli
