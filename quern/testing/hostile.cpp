// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/hostile.h"

#include <algorithm>
#include <iterator>

#include "quern/testing/case_text.h"

namespace quern::testing {

void add_hostility(const Op& op, std::vector<Case>& cases, u64 rotate, const std::vector<CaseAxis>& fixed) {
  std::vector<DataKind> kinds;
  for (int k = 1; k < int(std::size(kDataKinds)); ++k)
    if (!op.unfit.has(DataKind(k))) kinds.push_back(DataKind(k));
  const auto given = [&](const char* name) {
    return std::any_of(fixed.begin(), fixed.end(), [&](const CaseAxis& axis) { return axis.name == name; });
  };
  const bool pdl = !given("pdl"), data = !given("fill") && !kinds.empty();
  for (size_t i = 1; i < cases.size(); ++i) {
    Random random(rotate * 1000003 + i);
    const bool dependent = random.below(2) != 0, normal = random.below(2) != 0;
    const i64 kind = random.below(i64(kinds.size()) + kinds.empty());
    if (pdl && dependent) cases[i]["pdl"] = 1;
    if (data && !normal) cases[i]["fill"] = int(kinds[size_t(kind)]);
  }
}

}  // namespace quern::testing
