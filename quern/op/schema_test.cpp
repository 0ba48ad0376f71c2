// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a schema can say, on ops of this file's own: axes outside the glossary, extents of several axes and attributes,
// exact attributes, and what is refused.
#include "quern/op/schema.h"

#include <gmock/gmock.h>

#include "quern/op/call_words.h"

namespace quern::expert {

struct RouteArgs {
  TensorView out, packed, half, blocks, x, indices;
  i64 seed = 0;
  i32 topk = 2;
  i32 group_size = 32;
};
static Plan plan(const Problem&, const DeviceInfo&) { return {}; }
static void reference(const RouteArgs&, const RouteArgs&) {}

static Rejection few_tokens(const Problem& p) {
  if (p.attr(&RouteArgs::seed) == 77) return {"seed", p.attr(&RouteArgs::seed), "another with tokens={}", p[Axis::tokens]};
  return {};
}

/// Attributes come before the dims that they are in, outputs before the inputs that tell their axes.
QN_OP(route, RouteArgs, "expert.route")
    .doc("nothing")
    .attr("seed", &RouteArgs::seed)
    .attr("topk", &RouteArgs::topk)
    .attr("group_size", &RouteArgs::group_size)
    .out("out", &RouteArgs::out, "tokens*topk lanes", {DType::f32})
    .out("packed", &RouteArgs::packed, "tokens heads_q*head_dim+2*heads_kv*head_dim", {DType::f32})
    .optional()
    .out("half", &RouteArgs::half, "tokens/2", {DType::f32})
    .optional()
    .out("blocks", &RouteArgs::blocks, "tokens ceil_div(lanes,group_size)", {DType::f32})
    .optional()
    .in("x", &RouteArgs::x, "tokens lanes", {DType::f32})
    .in("indices", &RouteArgs::indices, "heads_q heads_kv head_dim", {DType::i32, DType::i64})
    .optional()
    .require(few_tokens)
    .plan(plan)
    .reference<reference>();

namespace {

using ::testing::HasSubstr;

const TensorDef& tensor(const char* name) {
  const Op& op = find_op("expert.route");
  return op.tensors[size_t(op.tensor_index(name))];
}

class op_schema : public ::testing::Test {
 protected:
  std::vector<float> memory = std::vector<float>(4096);
  i64 taken = 0;
  /// Memory of its own.
  TensorView f32(std::initializer_list<i64> shape) {
    const TensorView view(memory.data() + taken, DType::f32, shape);
    taken += 256;
    return view;
  }
  RouteArgs args() { return {.out = f32({6, 8}), .x = f32({3, 8})}; }
  static Problem bound(const RouteArgs& args) { return bind(find_op("expert.route"), &args, {}); }
  static std::string refusal(const RouteArgs& args, ErrorKind kind = ErrorKind::value) {
    try {
      bound(args);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind);
      return e.what();
    }
    return "";
  }
};

/// `out` [6, 8] has tokens*topk and comes first, but does not tell tokens.
TEST_F(op_schema, a_requirement_names_the_tensor_that_told_the_axis) {
  RouteArgs a = args();
  a.seed = 77;
  EXPECT_EQ(refusal(a), "expert.route: `seed` is 77, expected another with tokens=3 (tokens was set by `x` [3, 8])");
}

TEST_F(op_schema, an_op_has_axes_of_its_own_words) {
  const Problem p = bound(args());
  EXPECT_EQ(p[axis_of("lanes")], 8);
  EXPECT_EQ(p[Axis::tokens], 3);
  EXPECT_EQ(p[Axis::intermediate], 0) << "an axis that the op does not have";
  EXPECT_GE(int(axis_of("lanes")), kGlossaryRoom);
  EXPECT_STREQ(name(axis_of("lanes")), "lanes");
}

TEST_F(op_schema, an_output_is_as_long_as_axes_and_attributes_say) {
  EXPECT_EQ(refusal(args()), "");
  RouteArgs a = args();
  a.out = f32({7, 8});
  EXPECT_EQ(refusal(a), "expert.route: `out` has shape [7, 8], expected tokens*topk=6 at dim 0 (tokens was set by `x` [3, 8]; topk is 2)");
  a.out = f32({12, 8}), a.topk = 4;
  EXPECT_EQ(refusal(a), "");
  a.blocks = f32({3, 2});
  EXPECT_EQ(
      refusal(a),
      "expert.route: `blocks` has shape [3, 2], expected ceil_div(lanes,group_size)=1 at dim 1 (lanes was set by `out` [12, 8]; group_size is 32)");
  a.group_size = 4;
  EXPECT_EQ(refusal(a), "");
}

TEST_F(op_schema, an_extent_of_several_axes) {
  RouteArgs a = args();
  a.indices = TensorView(memory.data() + 2048, DType::i64, {4, 2, 16});
  a.packed = f32({3, 128});
  EXPECT_EQ(refusal(a), "");
  a.packed = f32({3, 96});
  EXPECT_EQ(
      refusal(a),
      "expert.route: `packed` has shape [3, 96], expected heads_q*head_dim+2*heads_kv*head_dim=128 at dim 1 "
      "(heads_q was set by `indices` [4, 2, 16]; head_dim was set by `indices` [4, 2, 16]; heads_kv was set by `indices` [4, 2, 16])");
  a.indices = {};
  EXPECT_EQ(
      refusal(a),
      "expert.route: `packed` has shape [3, 96], expected heads_q*head_dim+2*heads_kv*head_dim at dim 1, but no tensor that is given tells `heads_q`");
}

TEST_F(op_schema, an_extent_without_a_value_is_told) {
  RouteArgs a = args();
  a.half = f32({1});
  EXPECT_EQ(
      refusal(a),
      "expert.route: `half` has shape [1], expected tokens/2 at dim 0, but it 'tokens/2' divides 3 by 2 (tokens was set by `x` [3, 8])");
  a.group_size = 0, a.half = {}, a.blocks = f32({3, 2});
  EXPECT_THAT(refusal(a), HasSubstr("divides by 0"));
  a.blocks = {}, a.topk = -1;
  EXPECT_EQ(refusal(a),
            "expert.route: `out` has shape [6, 8], expected tokens*topk=-3 at dim 0 (tokens was set by `x` [3, 8]; topk is -1)");
}

TEST_F(op_schema, attributes_are_exact) {
  RouteArgs a = args();
  for (const i64 seed : std::initializer_list<i64>{(i64(1) << 53) + 1, INT64_MAX, INT64_MIN}) {
    a.seed = seed;
    EXPECT_EQ(bound(a).attr(&RouteArgs::seed), seed);
    EXPECT_THAT(call_words(find_op("expert.route"), &a, {}), HasSubstr(" seed=" + std::to_string(seed)));
    const Op& op = find_op("expert.route");
    RouteArgs b;
    set_attr(op.attrs[0], &b, attr_value(op.attrs[0], &a));
    EXPECT_EQ(b.seed, seed);
  }
}

TEST_F(op_schema, a_value_that_an_attribute_cannot_hold_is_refused) {
  const Op& op = find_op("expert.route");
  RouteArgs a;
  const auto refusal_of = [&](size_t attr, const Scalar& value) {
    try {
      set_attr(op.attrs[attr], &a, value);
    } catch (const Error& e) { return std::string(e.what()); }
    return std::string();
  };
  EXPECT_EQ(refusal_of(0, 0.5), "`seed` is 0.5, expected an integer of 64 bits");
  EXPECT_EQ(refusal_of(0, 0x1p63), "`seed` is 9.223372036854776e+18, expected an integer of 64 bits");
  EXPECT_EQ(refusal_of(1, i64(1) << 31), "`topk` is 2147483648, expected an integer of 32 bits");
  EXPECT_EQ(refusal_of(1, 3.0), "");
  EXPECT_EQ(a.topk, 3);
}

TEST(op_extent, of_one_axis_needs_no_formula) {
  struct {
    const char* word;
    i32 factor, divisor;
    i64 offset;
  } const plain[] = {{"tokens", 1, 1, 0},    {"7", 0, 1, 7},
                     {"2*tokens", 2, 1, 0},  {"tokens*2+1", 2, 1, 1},
                     {"1+tokens", 1, 1, 1},  {"2*(tokens+3)", 2, 1, 6},
                     {"tokens-1", 1, 1, -1}, {"ceil_div(2*tokens,128)+1", 2, 128, 1},
                     {"4*32", 0, 1, 128}};
  for (const auto& [word, factor, divisor, offset] : plain) {
    Op op;
    add_tensor(op, "x", 0, word, Role::in, {DType::f32}, "");
    const Extent& e = op.tensors[0].extents[0];
    EXPECT_EQ(e.formula, -1) << word;
    EXPECT_EQ(std::tuple(e.factor, e.divisor, e.offset), std::tuple(factor, divisor, offset)) << word;
    EXPECT_EQ(e.late, divisor != 1) << word;
  }
  for (const char* word : {"tokens*hidden", "5-tokens", "ceil_div(tokens+1,2)", "2*ceil_div(tokens,2)", "tokens/2", "max(tokens,1)",
                           "0*tokens", "1000*tokens"}) {
    Op op;
    add_tensor(op, "x", 0, word, Role::in, {DType::f32}, "");
    EXPECT_EQ(op.tensors[0].extents[0].formula, 0) << word;
  }
  EXPECT_TRUE(tensor("x").extents[0].is(Axis::tokens));
}

/// The error of an op whose schema is stated by `state`.
std::string fault_of(void (*state)(Op& op)) {
  Op op;
  op.id = "a.b";
  try {
    state(op);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::internal);
    return e.what();
  }
  return "";
}
void add(Op& op, const std::string& name, const char* dims = "tokens") {
  add_tensor(op, name.c_str(), 104 * ptrdiff_t(op.tensors.size()), dims, Role::in, {DType::f32}, "");
}
AttrDef attr(const std::string& name, AttrDef::Kind kind = AttrDef::Kind::i32) {
  return {.name = name, .offset = 0, .kind = kind, .standard = 0, .doc = ""};
}

TEST(op_limits, are_checked) {
  EXPECT_EQ(fault_of([](Op& op) {
              for (int i = 0; i < 32; ++i) add(op, "t" + std::to_string(i));
            }),
            "");
  EXPECT_EQ(fault_of([](Op& op) {
              for (int i = 0; i < 33; ++i) add(op, "t" + std::to_string(i));
            }),
            "a.b has more than 32 tensors");
  EXPECT_EQ(fault_of([](Op& op) {
              for (int i = 0; i < 24; ++i) add_attr(op, attr("a" + std::to_string(i)));
            }),
            "");
  EXPECT_EQ(fault_of([](Op& op) {
              for (int i = 0; i < 25; ++i) add_attr(op, attr("a" + std::to_string(i)));
            }),
            "a.b has more than 24 attributes");
  EXPECT_EQ(fault_of([](Op& op) { add(op, "x", "1 2 3 4 5 6"); }), "a.b: `x` has more than 5 dims");
  EXPECT_THAT(fault_of([](Op& op) {
                for (int i = 0; i < 9; ++i)
                  add(op, "t" + std::to_string(i),
                      ("a" + std::to_string(i) + "*b" + std::to_string(i) + " c" + std::to_string(i) + " d" + std::to_string(i)).c_str());
              }),
              HasSubstr("a.b has more than 32 axes"));
}

TEST(op_limits, what_cannot_be_meant_is_told) {
  EXPECT_EQ(fault_of([](Op& op) { add(op, "x", "tokens*"); }),
            "a.b: `x` has the dim tokens*: `expression` 'tokens*' lacks a value at character 7, expected a number or a name");
  EXPECT_EQ(fault_of([](Op& op) { add_attr(op, attr("eps", AttrDef::Kind::f32)), add(op, "x", "tokens*eps"); }),
            "a.b: `x` has the dim tokens*eps: the attribute `eps` is no integer");
  EXPECT_THAT(fault_of([](Op& op) { add(op, "x", "tokens*topk"), add_attr(op, attr("topk")); }),
              HasSubstr("a.b: `topk` is an axis of the tensors before it"));
}

/// In a process of its own: states an op that cannot be, as a library does while it is loaded, and prints what a call and the registry say.
template <class State> void say_refusals(const State& state) {
  static Op op;
  state(op);
  const auto say = [](const auto& ask) {
    try {
      ask();
      std::fprintf(stderr, "nothing;");
    } catch (const Error& e) { std::fprintf(stderr, "%s;", e.what()); }
  };
  RouteArgs args;
  say([&] { run(op, &args, {}); });
  say([&] { registry(); });
  std::exit(0);
}

TEST(op_limits, an_op_beyond_them_is_refused) {
  EXPECT_EXIT(
      say_refusals([](Op& op) { Schema<RouteArgs>(op, "a.b").in("x", &RouteArgs::x, "tokens*", {DType::f32}).optional().meaning("?"); }),
      testing::ExitedWithCode(0), "^a.b: `x` has the dim tokens[*]: .*;.*is a.b: a.b: `x` has the dim .*;$");
  EXPECT_EXIT(say_refusals([](Op& op) {
                Schema<RouteArgs>(op, "a.b")
                    .in("x", &RouteArgs::x, "tokens", {DType::f32})
                    .out("y", &RouteArgs::out, "topk", {DType::f32})
                    .may_be("x");
              }),
              testing::ExitedWithCode(0), "^a.b: `y` may be `x`, but.*;.*is a.b: a.b: `y` may be.*;$");
  EXPECT_EXIT(
      say_refusals([](Op& op) {
        Schema<RouteArgs>(op, "a.b").based_on("a.nothing", nullptr).hook_params<int>().hook_tensor(0, "slopes", "heads_q", {DType::f32});
      }),
      testing::ExitedWithCode(0), "^a.b is based on a.nothing, which is not there.*;.*is a.b: a.b is based on a.nothing.*;$");
}

struct ManyArgs {
  TensorView t[20];
};

TEST(op_limits, twenty_tensors_are_bound) {
  Op op;
  op.id = "a.many";
  std::vector<float> memory(20 * 64);
  ManyArgs args;
  for (size_t i = 0; i < 20; ++i) {
    add_tensor(op, ("t" + std::to_string(i)).c_str(), ptrdiff_t(offsetof(ManyArgs, t) + i * sizeof(TensorView)), "tokens hidden",
               i < 4 ? Role::out : Role::in, {DType::f32}, "");
    args.t[i] = TensorView(memory.data() + i * 64, DType::f32, {4, 16});
  }
  const Problem p = bind(op, &args, {});
  EXPECT_EQ(p[Axis::hidden], 16);
  EXPECT_EQ(p.tensors[19].present, 1);
  args.t[19].data = args.t[3].data;
  EXPECT_THROW(bind(op, &args, {}), Error) << "an output in the place of the last input";
}

TEST(op_glossary, has_each_word_once) {
  for (size_t i = 0; i < std::size(kGlossary); ++i) {
    EXPECT_EQ(size_t(axis_of(kGlossary[i].word)), i);
    EXPECT_STREQ(meaning(Axis(i)), kGlossary[i].meaning);
  }
}

/// Libraries that were compiled with a shorter or a longer glossary.
TEST(op_glossary, of_a_library_is_joined_by_words) {
  EXPECT_EQ(join_glossary(kGlossary, 5), "");
  std::vector<GlossaryWord> longer(std::begin(kGlossary), std::end(kGlossary));
  longer.push_back({"joined_later", "a word that this libquern does not know"});
  EXPECT_EQ(join_glossary(longer.data(), longer.size()), "");
  EXPECT_EQ(size_t(axis_of("joined_later")), std::size(kGlossary));
  EXPECT_STREQ(meaning(axis_of("joined_later")), longer.back().meaning);
  std::swap(longer[1], longer[2]);
  EXPECT_EQ(join_glossary(longer.data(), longer.size()), "the axis intermediate by number 1, which is hidden here");
  std::swap(longer[1], longer[2]);
  longer.push_back({"lanes", ""});  // known already, as a word outside the glossary
  EXPECT_EQ(join_glossary(longer.data(), longer.size()), "the axis lanes by number " + std::to_string(longer.size() - 1) +
                                                             ", which has number " + std::to_string(int(axis_of("lanes"))) + " here");
}

TEST(op_registry, finds_ops_by_any_text) {
  const std::string_view words = "expert.route and more";
  EXPECT_EQ(find_op(words.substr(0, 12)).id, "expert.route");
}

}  // namespace
}  // namespace quern::expert
