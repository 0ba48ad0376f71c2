// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What is known of hooks before they are compiled.
#include "quern/jit/hook_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

#include "quern/base/error.h"

namespace quern::jit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr HookPoint kPoints[] = {{"logit", "f32 logit(f32 x)"}, {"visible", "bool visible(int at)"}};
constexpr HookPoints kFamily = {"quern::family", "quern::family::None", kPoints};

std::string refusal(const std::string& text, const char* type = nullptr) {
  try {
    if (type) check_hooks({type, "mine", text.c_str()}, kFamily, {});
    else hooks_of_text(kFamily, text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value);
    EXPECT_EQ(e.argument(), "hooks");
    return e.what();
  }
  return "";
}

TEST(jit_hook_text, types_and_their_members_are_found) {
  const auto types = hook_types_of(R"x(
#include "kit.cuh"
#define ROW struct NotHere { void none(); }; \
  struct NorHere {};
// struct InComment { void none(); };
/* struct InComment { void none(); }; */
namespace a::b {
using namespace quern;
struct Forward;
enum class E { one, two };
template <class T, int n = 3> T twice(T x) { struct Local { void none(); }; return x + x; }
const char* text = "struct InText { void none(); };"; const char* raw = R"(struct Raw { void none(); };)";
template <class T> struct Outer final : Base<T> {
  static constexpr int kMany = helper(1'000);
  T value{7};
  QN_DEVICE f32 logit(f32 x, const Context& at) { return exp(x) + call(at.params); }
  struct Inner { bool visible(int at) const; };
  QN_DEVICE f32 last() { return 1.f; }
};
}  // namespace a::b
namespace { class Hidden { public: void member(); }; }
struct Global { [[nodiscard]] static bool visible(int) { return true; } };
)x");
  ASSERT_EQ(types.size(), 4u);
  EXPECT_EQ(types[0].name, "a::b::Outer::Inner");
  EXPECT_THAT(types[0].members, ElementsAre("visible"));
  EXPECT_EQ(types[1].name, "a::b::Outer");
  EXPECT_TRUE(types[1].derived);
  EXPECT_THAT(types[1].members, ElementsAre("logit", "last"));
  EXPECT_EQ(types[2].name, "Hidden");
  EXPECT_EQ(types[3].name, "Global");
  EXPECT_THAT(types[3].members, ElementsAre("visible"));
  for (const char* broken :
       {"struct A { void f(", "namespace x { struct A {", "}}}", "struct", "/* struct A {", "\"abc", "R\"(", "= {", "#"})
    hook_types_of(broken);
}

TEST(jit_hook_text, a_misspelt_member_is_refused_beside_a_right_one) {
  const std::string right = "f32 logit(f32 x) { return x; } ";
  for (const char* wrong : {"visble", "Visible", "visibel", "visible_"})
    EXPECT_THAT(refusal("struct Mine { " + right + "bool " + wrong + "(int at); };", "Mine"),
                AllOf(HasSubstr(std::string("`hooks` has the member `") + wrong + "` in Mine, which no kernel calls, expected `visible`"),
                      HasSubstr("`f32 logit(f32 x)` or `bool visible(int at)`")));
  for (const char* wrong : {"logits", "lgoit", "loggit"})
    EXPECT_THAT(refusal("struct Mine { bool visible(int); f32 " + std::string(wrong) + "(f32); };", "Mine"), HasSubstr("expected `logit`"));
  for (const char* fine : {"slope", "distance", "block_of", "log2", "is_near"})
    EXPECT_EQ(refusal("struct Mine { " + right + "bool " + fine + "(int at); };", "Mine"), "") << fine;
}

TEST(jit_hook_text, a_type_without_a_point_is_refused) {
  EXPECT_THAT(refusal("namespace my { struct Mine { f32 bias(f32 x); }; }", "my::Mine"),
              HasSubstr("`hooks` is the type my::Mine, which has none of the points that kernels call, expected `f32 "
                        "logit(f32 x)` or `bool visible(int at)`"));
  EXPECT_EQ(refusal("namespace my { struct Mine { f32 bias(f32 x); }; }", "my::Other"), "") << "a type that is not seen is the compiler's";
  EXPECT_EQ(refusal("struct Mine : Base { f32 bias(f32 x); };", "Mine"), "") << "a base may have it";
  const std::vector<Source> headers = {{"mine/hooks.cuh", "namespace my { struct Mine { f32 bias(f32 x); }; }"}};
  EXPECT_THROW(check_hooks({"::my::Mine", "mine", "#include \"mine/hooks.cuh\""}, kFamily, headers), Error);
}

TEST(jit_hook_text, a_text_alone_says_which_type_is_meant) {
  const Hooks* hooks = hooks_of_text(kFamily, "#include \"other.cuh\"\nstruct Helper { f32 value; };\nstruct Mine { f32 logit(f32 x); };");
  EXPECT_STREQ(hooks->type, "quern::family::own::Mine");
  EXPECT_STREQ(hooks->name, "Mine");
  EXPECT_STREQ(hooks->text,
               "#include \"other.cuh\"\nnamespace quern::family::own {\n#line 1 \"hooks\"\n\nstruct Helper { f32 "
               "value; };\nstruct Mine { f32 logit(f32 x); };\n}\n");
  EXPECT_EQ(hooks, hooks_of_text(kFamily,
                                 std::string("#include \"other.cuh\"\nstruct Helper { f32 value; };\nstruct Mine { f32 logit(f32 x); };")))
      << "equal texts are one object";
  EXPECT_STREQ(hooks_of_text(kFamily, "namespace my { struct Mine { f32 logit(f32 x); }; }")->type, "my::Mine");
  EXPECT_THAT(refusal("int x;"), HasSubstr("`hooks` has no struct or class, expected the text of one struct"));
  EXPECT_THAT(refusal("struct A { int x; }; struct B {};"), HasSubstr("has A, B, without a member that kernels call"));
  EXPECT_THAT(refusal("struct A { f32 logit(f32 x); }; struct B { bool visible(int); };"),
              HasSubstr("has 2 types with such members: A, B"));
  EXPECT_THAT(refusal("struct A { f32 logti(f32 x); };"), HasSubstr("has the member `logti` in A"));
}

TEST(jit_hook_text, what_hooks_read_is_seen) {
  const auto use = [](const char* text) { return use_of({"Mine", "mine", text}); };
  EXPECT_TRUE(use("f(at.params)").params);
  EXPECT_TRUE(use("f(at->params)").params);
  EXPECT_FALSE(use("f(params); // at.params").params);
  EXPECT_EQ(use("real_at(at.tensors[0], 1) + integer_at(at.tensors[2], 0)").tensors, 5u);
  EXPECT_EQ(use("is_given(at.tensors[1]) ? real_at(at.tensors[1], 1) : real_at(at.tensors[3], 0)").tensors, 8u)
      << "one that is asked for may be missing";
  EXPECT_EQ(use("at.tensors[i]; tensors[2];").tensors, 0u);
  EXPECT_EQ(use("at.tensors[i]").last_tensor, -1);
  EXPECT_EQ(use("is_given(at.tensors[5])").last_tensor, 5);
}

TEST(jit_hook_text, how_tensors_are_read_is_seen) {
  const auto use = [](const char* text) { return use_of({"Mine", "mine", text}); };
  EXPECT_EQ(use("real_at(at.tensors[0], at.head_q, f(at, 1))").dims[0], 1 << 2);
  EXPECT_EQ(use("real_at(at.tensors[0], 1) + attention::integer_at(at.tensors[0], a[1, 2], (b, c), 3)").dims[0], 1 << 1 | 1 << 3);
  EXPECT_EQ(use("real_at(at.tensors[1], 1) * f32(at.tensors[1].sizes[0])").dims[1], 1 << 1);
  for (const char* unclear : {"real_at(at.tensors[0], min_of<i32, i32>(1, 2))", "real_at(at.tensors[0], 1) + f(at.tensors[0])",
                              "const auto& t = at.tensors[0]; real_at(at.tensors[0], 1)",
                              "at.tensors[0].rank == 1 ? real_at(at.tensors[0], 1) : real_at(at.tensors[0], 1, 2)",
                              "real_at(at.tensors[0], i...)", "real_at(at.tensors[0]"})
    EXPECT_EQ(use(unclear).dims[0], 0) << unclear;
  EXPECT_EQ(use("integer_at(at.tensors[1], 0) + real_at(at.tensors[0], 0)").integer, 2u);
  EXPECT_EQ(use("integer_at(at.tensors[0], 0) + real_at(at.tensors[0], 0)").integer, 0u);
  EXPECT_EQ(use("at.tensors[0].dtype == DType::f32 ? 0 : integer_at(at.tensors[0], 0)").integer, 0u);
}

TEST(jit_hook_text, how_many_bytes_of_params_are_read_is_seen) {
  std::list<std::string> texts;  // hooks are known by their addresses, so their texts live on
  const auto bytes = [&](const std::string& text) { return use_of({"Mine", "mine", texts.emplace_back(text).c_str()}).params_bytes; };
  EXPECT_EQ(bytes("f32(*reinterpret_cast<const float*>(at.params))"), 4);
  EXPECT_EQ(bytes("reinterpret_cast<const i64*>(at.params)[2]"), 24);
  EXPECT_EQ(bytes("reinterpret_cast<const i64*>(at.params)[at.head_q]"), 8);
  EXPECT_EQ(bytes("at.params[5] + at.params[3]"), 6);
  const std::string read = " const P& p = *reinterpret_cast<const P*>(at.params);";
  EXPECT_EQ(bytes("struct P { f32 slope, floor = -1; i32 near = 3; };" + read), 12);
  EXPECT_EQ(bytes("struct P { u8 first; double second; f32 last[2]; };" + read), 24);
  EXPECT_EQ(bytes("struct P { double first; float last; };" + read), 12) << "without what is padded behind it";
  EXPECT_EQ(bytes("struct P { f32 x; }; struct Q { P p; };  f32 x = reinterpret_cast<const P*>(at.params)->x;"), 4);
  for (const char* unclear : {"f(at.params)", "struct P { f32 x; f32 f() { return x; } };", "struct P { Other x; };",
                              "using f32 = double; struct P { f32 x; };", "struct P : Q { f32 x; };", ""})
    EXPECT_EQ(bytes(unclear + read), 0) << unclear;
  EXPECT_EQ(bytes("keep(reinterpret_cast<const float*>(at.params))"), 0) << "a pointer that is kept";
}

}  // namespace
}  // namespace quern::jit
