// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Variants that join an op from elsewhere: their order, before or after the op is stated, and the mistakes that are told.
#include "quern/op/variants.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>

#include "quern/op/registration.h"

namespace quern::joining {

struct Args {
  TensorView out, x;
};
static Plan plan(const Problem&, const DeviceInfo&) { return {}; }
static Rejection rejects(const Problem&, const DeviceInfo&) { return {"arch", 80, "another"}; }
static void reference(const Args&, const Args&) {}

// In this order: two join before the op is stated, one behind it.
static constexpr const char* kCandidates[] = {"wide", "tall"};
static const JoinVariant late("joining.op", 30, {"late", rejects, plan, nullptr, kCandidates});
static const JoinVariant second("joining.op", 20, {"second", rejects, plan});
QN_OP(op, Args, "joining.op")
    .doc("nothing")
    .in("x", &Args::x, "tokens", {DType::f32})
    .out("out", &Args::out, "tokens", {DType::f32})
    .plan(plan)
    .reference<reference>();
static const JoinVariant first("joining.op", 20, {"first", rejects, plan});

namespace {

using ::testing::ElementsAre;

std::vector<std::string> names(const Op& op) {
  std::vector<std::string> all;
  for (const Variant& v : op.variants) all.push_back(v.name);
  return all;
}

TEST(op_variants, they_are_asked_by_rank_and_name_and_the_ops_own_behind) {
  EXPECT_THAT(names(find_op("joining.op")), ElementsAre("first", "second", "late", "portable"));
}

TEST(op_variants, are_known_by_name) {
  EXPECT_EQ(variant_index("joining.op", "second"), 1);
  EXPECT_EQ(variant_index("joining.op", "portable"), 3);
  try {
    variant_index("joining.op", "secund");
    FAIL();
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "joining.op: `variant` is 'secund', expected one of first, second, late, portable"); }
  Problem problem{};
  problem.op = &find_op("joining.op");
  problem.variant = 1;
  EXPECT_TRUE(is_of_variant(problem, "second"));
  EXPECT_FALSE(is_of_variant(problem, "first"));
  problem.variant = -1;
  EXPECT_FALSE(is_of_variant(problem, "first")) << "none is asked for";
}

TEST(op_variants, candidates_are_known_by_the_variants_name_and_theirs) {
  const Op& op = find_op("joining.op");
  EXPECT_EQ(named_variant(op, "late:tall").variant, 2);
  EXPECT_EQ(named_variant(op, "late:tall").candidate, 1);
  EXPECT_EQ(named_variant(op, "late").candidate, -1);
  for (const char* none : {"late:", "late:talk", "late:tall:", "first:tall", ":tall", ""})
    EXPECT_EQ(named_variant(op, none).variant, -1) << none;
  for (const char* name : {"first", "late", "late:wide", "late:tall"}) EXPECT_STREQ(variant_name(op, variant_index(op, name)), name);
  EXPECT_EQ(variant_name(op, 2 + 3 * kVariantCodes), nullptr) << "two candidates";
  EXPECT_EQ(variant_name(op, 1 + kVariantCodes), nullptr) << "none";
  EXPECT_EQ(variant_name(op, -1), nullptr);
  EXPECT_EQ(variant_name(op, 0.5), nullptr);
  EXPECT_EQ(variants_text(op, "late:talk"), "one of late:wide, late:tall");
  EXPECT_EQ(variants_text(op, "first:tall"), "first, which has no candidates");
  TensorView x(nullptr, DType::f32, {0});
  const Args args{x, x};
  EXPECT_EQ(bind(op, &args, {.variant = "late:tall"}).candidate, 1);
  EXPECT_EQ(bind(op, &args, {.variant = "late"}).candidate, -1);
  EXPECT_EQ(bind(op, &args, {}).candidate, -1);
}

/// In a process of its own: what is registered stays.
void say_fault_after(const char* op, const char* name) {
  join_variant(op, 5, {name, rejects, plan}, kHeaders);
  std::string said;
  try {
    registry();
  } catch (const Error& e) { said = e.what(); }
  std::fprintf(stderr, "%s", said.c_str());
  std::_Exit(0);
}

TEST(op_variants, mistakes_are_told) {
  EXPECT_EQ(variants_fault(), "");
  EXPECT_EXIT(say_fault_after("joining.nowhere", "lost"), ::testing::ExitedWithCode(0),
              "joining.nowhere, which the variant lost joins, is not there");
  EXPECT_EXIT(say_fault_after("joining.op", "second"), ::testing::ExitedWithCode(0), "joining.op, which has two variants second");
}

/// The layout word has the size of Device's table of virtual functions: one that comes behind them has this place.
struct Behind : Device {
  virtual void behind() {}
};
TEST(op_variants, headers_know_the_virtual_functions_of_a_device) {
  void (Behind::* const last)() = &Behind::behind;
  i64 place;  // of the Itanium ABI: an offset in the table; where code has odd addresses, as on x86, 1 more
  std::memcpy(&place, &last, sizeof place);
  EXPECT_EQ(place / i64(sizeof(void*)), kDeviceSlots) << "kDeviceSlots of device.h";
}

TEST(op_variants, one_built_with_other_headers_is_refused) {
  const auto join = [] {
    Headers other = kHeaders;
    other.layout ^= 1;
    join_variant("joining.op", 5, {"foreign", rejects, plan}, other);
    std::string said;
    try {
      registry();
    } catch (const Error& e) { said = e.what(); }
    std::fprintf(stderr, "%zu %s", find_op("joining.op").variants.size(), said.c_str());
    std::_Exit(0);
  };
  EXPECT_EXIT(join(), ::testing::ExitedWithCode(0), "4 .*with the variant foreign, built against other headers");
}

}  // namespace
}  // namespace quern::joining
