// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/pairwise.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace quern::testing {
namespace {

const std::vector<CaseAxis> kParameters = {{"a", {1, 2, 3, 4}}, {"b", {1, 2, 3}}, {"c", {1, 2}}, {"d", {1, 2, 3, 4, 5}}, {"e", {1}}};

bool anything(const Case&) { return true; }

/// Pairs of values that meet in no case although some allowed case of the full product has both.
int uncovered(const std::vector<Case>& cases, const std::function<bool(const Case&)>& allowed) {
  const std::vector<Case> all = full_product(kParameters, allowed);
  int missing = 0;
  for (size_t p = 0; p < kParameters.size(); ++p)
    for (size_t q = p + 1; q < kParameters.size(); ++q)
      for (const CaseValue& i : kParameters[p].values)
        for (const CaseValue& j : kParameters[q].values) {
          const auto has = [&](const Case& c) { return c.at(kParameters[p].name) == i && c.at(kParameters[q].name) == j; };
          missing += std::any_of(all.begin(), all.end(), has) && std::none_of(cases.begin(), cases.end(), has);
        }
  return missing;
}

TEST(testing_pairwise, covers_every_pair_with_few_cases) {
  const std::vector<Case> cases = pairwise(kParameters, anything);
  EXPECT_EQ(uncovered(cases, anything), 0);
  EXPECT_GE(cases.size(), 20u);  // 4 x 5
  EXPECT_LE(cases.size(), 26u);
  EXPECT_EQ(cases[0].at("d"), 1);
}

TEST(testing_pairwise, the_measure_sees_a_missing_case) {
  std::vector<Case> cases = pairwise(kParameters, anything);
  cases.pop_back();
  EXPECT_GT(uncovered(cases, anything), 0);
}

TEST(testing_pairwise, covers_what_a_constraint_leaves) {
  const auto allowed = [](const Case& c) { return c.at("a") + c.at("d") < 7 && !(c.at("b") == 2 && c.at("c") == 2); };
  const std::vector<Case> cases = pairwise(kParameters, allowed);
  for (const Case& c : cases) EXPECT_TRUE(allowed(c));
  EXPECT_EQ(uncovered(cases, allowed), 0);
}

TEST(testing_pairwise, finds_the_one_allowed_case) {
  const auto allowed = [](const Case& c) { return c.at("a") == 4 && c.at("b") == 3 && c.at("c") == 2 && c.at("d") == 5; };
  EXPECT_EQ(pairwise(kParameters, allowed).size(), 1u);
  EXPECT_TRUE(pairwise(kParameters, [](const Case&) { return false; }).empty());
}

TEST(testing_pairwise, one_parameter_is_listed) {
  EXPECT_EQ(pairwise({{"a", {1, 2, 3}}}, anything).size(), 3u);
  EXPECT_EQ(pairwise({}, anything).size(), 1u);
}

TEST(testing_pairwise, is_deterministic) { EXPECT_EQ(pairwise(kParameters, anything), pairwise(kParameters, anything)); }

TEST(testing_pairwise, every_op_has_cases_that_run) {
  for (const auto& [id, op] : registry()) {
    const std::vector<Case> cases = pairwise(op->cases, [&op = op](const Case& c) { return runs(*op, c, device_info_of(Arch{})); });
    EXPECT_FALSE(cases.empty()) << id;
    for (const CaseAxis& axis : op->cases)
      for (const CaseValue& v : axis.values) {
        const auto has = [&](const Case& c) { return c.at(axis.name) == v; };
        EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), has)) << id << " " << axis.name << "=" << v << " is in no case that runs";
      }
    // Nor may a requirement or plan lose a combination unseen.
    for (const CaseAxis& p : op->cases)
      for (const CaseAxis& q : op->cases) {
        if (p.name >= q.name) continue;
        for (const CaseValue& v : p.values)
          for (const CaseValue& w : q.values) {
            const auto both = [&](const Case& c) { return c.at(p.name) == v && c.at(q.name) == w; };
            EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), both))
                << id << " " << p.name << "=" << v << " " << q.name << "=" << w << " is in no case that runs";
          }
      }
  }
}

}  // namespace
}  // namespace quern::testing
