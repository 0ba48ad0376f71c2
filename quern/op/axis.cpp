// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/axis.h"

#include <deque>
#include <mutex>

#include "quern/base/error.h"

namespace quern {

static std::deque<std::string>& words() {  // a deque: name() hands out pointers into it
  static std::deque<std::string> w = {"tokens", "hidden", "intermediate", "heads_q", "heads_kv", "head_dim",
                                      "batch", "seq_q", "seq_kv", "pages", "page_size", "max_pages", "page_indices",
                                      "positions", "m", "n", "k", "groups", "scale_rows_a", "scale_columns_a", "scale_rows_b", "scale_columns_b", "max_m"};
  return w;
}
static std::mutex g_mutex;

const char* name(Axis axis) {
  std::lock_guard lock(g_mutex);
  if (size_t(axis) >= words().size())
    throw Error(ErrorKind::value, "", "axis", "is " + std::to_string(int(axis)), "0 to " + std::to_string(words().size() - 1));
  return words()[size_t(axis)].c_str();
}

Axis axis_of(std::string_view word) {
  std::lock_guard lock(g_mutex);
  for (size_t i = 0; i < words().size(); ++i)
    if (words()[i] == word) return Axis(i);
  if (words().size() == kMaxAxes)
    throw Error(ErrorKind::internal, "too many axes: no room for '" + std::string(word) + "'");
  words().emplace_back(word);
  return Axis(words().size() - 1);
}

}  // namespace quern
