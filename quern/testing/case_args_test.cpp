// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/case_args.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "quern/base/host_dtype.h"

namespace quern::testing {
namespace {

struct MixArgs {
  TensorView out, x, state, picks, order, lengths, bias;
  float scale = 2.5f;
  bool flag = false;
};

/// An op of all kinds of operands, not in the registry.
const Op& mix() {
  static Op op = [] {
    Op o;
    o.id = "test.mix";
    o.args_bytes = sizeof(MixArgs);
    o.construct = [](void* p) { new (p) MixArgs(); };
    add_tensor(o, "x", offsetof(MixArgs, x), "tokens 2*hidden", Role::in, {DType::f32, DType::bf16}, "");
    add_tensor(o, "state", offsetof(MixArgs, state), "tokens 3 hidden", Role::inout, {}, "x");
    add_tensor(o, "picks", offsetof(MixArgs, picks), "tokens", Role::in, {DType::i32}, "");
    o.tensors.back().values = index_of(Axis::hidden);
    add_tensor(o, "order", offsetof(MixArgs, order), "tokens", Role::in, {DType::i64}, "");
    o.tensors.back().values = permutation_of(Axis::tokens);
    add_tensor(o, "lengths", offsetof(MixArgs, lengths), "tokens", Role::in, {DType::i32}, "");
    o.tensors.back().values = length_upto(Axis::hidden);
    add_tensor(o, "bias", offsetof(MixArgs, bias), "hidden", Role::in, {}, "x");
    o.tensors.back().optional = true;
    add_tensor(o, "out", offsetof(MixArgs, out), "tokens+1 hidden", Role::out, {}, "x");
    add_attr(o, {"scale", offsetof(MixArgs, scale), AttrDef::Kind::f32, 2.5, ""});
    add_attr(o, {"flag", offsetof(MixArgs, flag), AttrDef::Kind::boolean, 0, ""});
    o.variants = {{"portable", nullptr, nullptr}, {"other", nullptr, nullptr}};
    o.cases = {{"tokens", {4, 7}}, {"hidden", {6}}, {"x.dtype", {DType::bf16, DType::f32}}};
    return o;
  }();
  return op;
}

const MixArgs& of(CaseArgs& a) { return *static_cast<const MixArgs*>(a.args()); }

TEST(testing_case_args, shapes_dtypes_and_defaults_follow_the_schema) {
  CaseArgs a(mix(), {}, 1);
  EXPECT_EQ(shape_string(of(a).x), "[4, 12]");
  EXPECT_EQ(shape_string(of(a).state), "[4, 3, 6]");
  EXPECT_EQ(shape_string(of(a).out), "[5, 6]");
  EXPECT_EQ(of(a).out.dtype, DType::bf16);
  EXPECT_FALSE(of(a).bias.present());
  EXPECT_EQ(of(a).scale, 2.5f);
  EXPECT_NO_THROW(bind(mix(), a.args(), {}));
}

TEST(testing_case_args, parameters_shape_the_memory) {
  CaseArgs a(mix(), {{"x.pad", 5}, {"x.shift", 3}, {"state.swap", 1}, {"bias.present", 1}, {"scale", 0.5}, {"x.dtype", int(DType::f32)}},
             1);
  EXPECT_EQ(of(a).x.strides[0], 17);
  EXPECT_EQ(of(a).x.strides[1], 1);
  EXPECT_EQ(u64(of(a).x.data) % 16, 12u);
  EXPECT_EQ(of(a).state.strides[0], 6);
  EXPECT_EQ(of(a).state.strides[1], 6 * 4);  // heads outside tokens
  EXPECT_EQ(of(a).state.strides[2], 1);
  EXPECT_TRUE(of(a).bias.present());
  EXPECT_EQ(of(a).scale, 0.5f);
}

TEST(testing_case_args, contents_are_what_the_schema_says) {
  CaseArgs a(mix(), {{"tokens", 50}}, 3);
  std::set<i64> seen;
  double sum = 0, squares = 0;
  for (i64 t = 0; t < 50; ++t) {
    const i64 at[] = {t};
    const double pick = load_element(of(a).picks, at), length = load_element(of(a).lengths, at);
    EXPECT_TRUE(pick >= 0 && pick < 6) << pick;
    EXPECT_TRUE(length >= 0 && length <= 6) << length;
    seen.insert(i64(load_element(of(a).order, at)));
    for (i64 h = 0; h < 12; ++h) {
      const i64 place[] = {t, h};
      const double v = load_element(of(a).x, place);
      EXPECT_NE(v, 0);
      sum += v, squares += v * v;
    }
  }
  EXPECT_EQ(seen.size(), 50u);
  EXPECT_EQ(*seen.rbegin(), 49);
  EXPECT_NEAR(sum / 600, 0, 0.15);
  EXPECT_NEAR(squares / 600, 1, 0.2);
}

TEST(testing_case_args, seeds_decide_the_contents) {
  CaseArgs a(mix(), {}, 1), b(mix(), {}, 1), c(mix(), {}, 2);
  const auto bytes = [](CaseArgs& x) { return std::string(static_cast<char*>(of(x).x.data), 96); };
  EXPECT_EQ(bytes(a), bytes(b));
  EXPECT_NE(bytes(a), bytes(c));
}

TEST(testing_case_args, outputs_start_poisoned_and_reset_restores) {
  CaseArgs a(mix(), {}, 1);
  const i64 at[] = {0, 0};
  EXPECT_TRUE(std::isnan(load_element(of(a).out, at)));
  store_element(of(a).out, at, 1);
  EXPECT_EQ(a.damage(), "");
  a.reset();
  EXPECT_TRUE(std::isnan(load_element(of(a).out, at)));
}

/// Writes one byte `offset` bytes from a tensor's data and returns what damage() says.
std::string after_writing(const char* tensor, i64 offset) {
  CaseArgs a(mix(), {{"out.pad", 2}, {"x.pad", 3}}, 1);
  char* data = static_cast<char*>(a.tensor(size_t(mix().tensor_index(tensor))).data);
  data[offset] = char(data[offset] ^ 0x11);
  return a.damage();
}

TEST(testing_case_args, every_kind_of_damage_is_seen) {
  EXPECT_EQ(after_writing("out", 0), "");
  EXPECT_EQ(after_writing("out", 11), "");
  EXPECT_NE(after_writing("out", 12).find("`out` was overrun"), std::string::npos);  // the gap behind the first row
  EXPECT_NE(after_writing("out", -1).find("1 bytes before its start"), std::string::npos);
  EXPECT_NE(after_writing("out", (4 * 8 + 6) * 2).find("0 bytes behind its end"), std::string::npos);
  EXPECT_NE(after_writing("out", (4 * 8 + 6) * 2 + 255).find("behind its end"), std::string::npos);
  EXPECT_NE(after_writing("x", 4).find("`x` is an input"), std::string::npos);
  EXPECT_NE(after_writing("picks", 0).find("`picks` is an input"), std::string::npos);
  EXPECT_EQ(after_writing("state", 0), "");
}

TEST(testing_case_args, fake_args_bind_at_any_size) {
  const Case which = derived(mix(), {{"tokens", 1e9}, {"hidden", 1 << 20}, {"x.shift", 1}});
  const ArgsStorage args = fake_args(mix(), which);
  const Problem p = bind(mix(), args.get(), {});
  EXPECT_EQ(p[Axis::tokens], 1000000000);
  EXPECT_EQ(p.tensor(&MixArgs::x).alignment, 2);
}

TEST(testing_case_text, words_and_text_are_inverse) {
  const std::vector<std::string> words = {"flag=true", "hidden=64", "scale=0.125", "variant=other", "x.dtype=bf16"};
  const Case c = parse_case(mix(), words);
  EXPECT_EQ(c.at("x.dtype"), int(DType::bf16));
  EXPECT_EQ(case_text(mix(), c), "flag=true hidden=64 scale=0.125 variant=other x.dtype=bf16");
  EXPECT_EQ(parse_words(mix(), {"tokens=1,2,64"})[0].values.size(), 3u);
}

std::string refusal(const std::string& word) {
  try {
    parse_case(mix(), {word});
  } catch (const Error& e) { return e.kind() == ErrorKind::value ? e.what() : "another kind"; }
  return "accepted";
}

TEST(testing_case_text, bad_words_are_refused_with_what_is_known) {
  EXPECT_NE(refusal("hiden=3").find("`hidden`"), std::string::npos) << refusal("hiden=3");
  EXPECT_NE(refusal("hiden=3").find("known are tokens hidden"), std::string::npos) << refusal("hiden=3");
  EXPECT_NE(refusal("unlike=1").find("expected one of tokens hidden"), std::string::npos) << refusal("unlike=1");
  EXPECT_NE(refusal("tokens").find("parameter=value"), std::string::npos);
  EXPECT_NE(refusal("tokens=abc").find("a number"), std::string::npos);
  EXPECT_NE(refusal("tokens=1.5").find("an integer"), std::string::npos);
  EXPECT_NE(refusal("tokens=").find("a number"), std::string::npos);
  EXPECT_NE(refusal("x.dtype=bf61").find("bf16"), std::string::npos);
  EXPECT_NE(refusal("variant=third").find("one of portable, other"), std::string::npos);
}

}  // namespace
}  // namespace quern::testing
