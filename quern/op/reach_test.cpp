// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The walk finds the kernels of an op whose plan hides them well. Whether it finds those of the ops that there are is judged
// in tests/coverage_test.cpp.
#include <gtest/gtest.h>

#include "quern/op/reach.h"
#include "quern/op/schema.h"

namespace quern::hidden {

struct KeysArgs {
  TensorView out, x, y, table;
  i32 mode = 0;
};
struct KeysConfig {
  DType dtype;
  i32 bucket, vector, odd, corner, mode;
  i32 threads;
};
struct KeysParams {
  void* out;
};

static const jit::Kernel<KeysConfig, KeysParams> kernel{"quern/ops/hidden/keys.cuh", "keys"};
static KeysParams params(const Call<KeysArgs>& c) { return {c.args.out.data}; }

/// Kernels by: buckets of tokens, the smaller alignment of x and y, a bucket of one size, a column count that 16 does not
/// divide (a real case: 1921 columns), a corner of three conditions, and a mode.
static Plan plan(const Problem& p, const DeviceInfo&) {
  using A = KeysArgs;
  const i64 tokens = p[Axis::tokens], columns = p[Axis::max_pages];
  const i32 vector = min_of(p.vector(&A::x), p.vector(&A::y));
  const i32 bucket = tokens == 777 ? 3 : tokens <= 16 ? 0 : tokens <= 1000 ? 1 : 2;
  const i32 corner = tokens > 1000 && columns > 50 && vector == 1;
  const KeysConfig config{p.dtype(&A::x), bucket, vector, columns % 16 != 0, corner, p.attr(&A::mode), 32};
  Plan plan;
  plan.launch<params>(kernel, config, {.x = tokens});
  return plan;
}

static void reference(const KeysArgs&, const KeysArgs&) {}

QN_OP(keys, KeysArgs, "hidden.keys")
    .doc("nothing")
    .in("x", &KeysArgs::x, "tokens hidden", {DType::bf16})
    .in("y", &KeysArgs::y, "tokens hidden", like("x"))
    .in("table", &KeysArgs::table, "tokens max_pages", {DType::i32})
    .out("out", &KeysArgs::out, "tokens hidden", like("x"))
    .attr("mode", &KeysArgs::mode)
    .plan(plan)
    .reference<reference>();

}  // namespace quern::hidden

namespace quern {
namespace {

Model hidden_model() {
  Model m;
  m.name = "hidden";
  m.geometry = {{"hidden", 64}};
  m.limits = {{"tokens", true, {1, 1500}}, {"length", true, {1, 400}}, {"page_size", false, {1, 16}}};
  m.calls = {{"call",
              "hidden.keys",
              false,
              {{"tokens", {"tokens"}}, {"hidden", {"hidden"}}, {"max_pages", {"ceil_div(length, page_size)"}}, {"mode", {"0", "5"}}}}};
  return m;
}

/// bucket 0..3, vector 8 4 2 1, odd 0 1, mode 0 5; and a corner in bucket 2 with vector 1.
TEST(reach, finds_the_kernels_of_one_size_of_a_corner_and_of_odd_columns) {
  const Reach r = reach(hidden_model(), DeviceInfo{});
  EXPECT_EQ(r.kernels.size(), size_t(4 * 4 * 2 * 2 + 2 * 2));
  EXPECT_EQ(r.calls[0].refused, 0);
}

TEST(reach, promised_alignment_leaves_kernels_out) {
  Model m = hidden_model();
  set_limit(m, "alignment=16");
  set_limit(m, "tokens=1..16");
  const Reach r = reach(m, DeviceInfo{});
  EXPECT_EQ(r.kernels.size(), size_t(2 * 2));
  for (const ReachedKernel& k : r.kernels) EXPECT_TRUE(k.aligned);
}

TEST(reach, says_what_is_wrong_in_a_model_file) {
  const auto error_of = [](auto change) -> std::string {
    Model m = hidden_model();
    change(m);
    try {
      reach(m, DeviceInfo{});
    } catch (const Error& e) { return e.what(); }
    return "";
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(error_of([](Model& m) { m.calls[0].words[0].name = "tokns"; }),
                  "hidden, call: hidden.keys: `tokns` is no word of a model file's case, expected `tokens`"));
  EXPECT_TRUE(has(error_of([](Model& m) { m.calls[0].words[0].values = {"token"}; }), "has the word `token`, expected `tokens`"));
  EXPECT_TRUE(has(error_of([](Model& m) { m.calls[0].words[1].values = {"hidden / 5"}; }), "divides 64 by 5"));
  EXPECT_TRUE(has(error_of([](Model& m) { m.calls[0].words.pop_back(), m.calls[0].words.pop_back(); }),
                  "`max_pages` is not given by the model file"));
  EXPECT_TRUE(has(error_of([](Model& m) { m.calls[0].op = "hidden.kys"; }), "the nearest is hidden.keys"));
  EXPECT_TRUE(has(error_of([](Model& m) { m.calls[0].missing = true; }), "is marked as missing"));
  EXPECT_TRUE(has(error_of([](Model& m) { set_limit(m, "alignment=1"); }), "leaves none for `x`"));
}

TEST(expression, nests_64_deep_and_no_deeper) {
  const auto nested = [](const std::string& open, const std::string& close, int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += open;
    text += "1";
    for (int i = 0; i < depth; ++i) text += close;
    return text;
  };
  EXPECT_EQ(extent_value(nested("(", ")", 64), {}), 1);
  EXPECT_EQ(extent_value(nested("max(0, ", ")", 30) + " + ((1))", {}), 2);  // depth is of what is open
  for (const int depth : {65, 300000}) {
    EXPECT_THROW(extent_value(nested("(", ")", depth), {}), Error);
    EXPECT_THROW(extent_value(nested("max(0, ", ")", depth), {}), Error);
  }
  EXPECT_THROW(extent_value(std::string(300000, '('), {}), Error);
  EXPECT_THROW(extent_value(std::string(300000, '-') + "1", {}), Error);
}

TEST(expression, computes_and_refuses) {
  const Extents extents = {{"heads", 8}, {"tp", 16}, {"dim", 128}};
  EXPECT_EQ(extent_value("2*dim", extents), 256);
  EXPECT_EQ(extent_value("(heads + 2 * max(heads, tp)) * dim / tp", extents), 320);
  EXPECT_EQ(extent_value("ceil_div(dim + 1, tp) - 1 - 2", extents), 6);
  EXPECT_EQ(extent_value("min(heads,tp)", extents), 8);
  EXPECT_EQ(extent_value("-heads * 2 + dim - -1", extents), 113);
  EXPECT_EQ(extent_value("max(-(heads - 9), -2)", extents), 1);
  for (const char* wrong : {"", "heads /", "heads / tp", "dim / (heads - 8)", "(heads", "heads)", "max(heads)", "pow(2, 3)", "head",
                            "9*9999999999999999*9999", "1e3", "-"})
    EXPECT_THROW(extent_value(wrong, extents), Error) << wrong;
}

}  // namespace
}  // namespace quern
