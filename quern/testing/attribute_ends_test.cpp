// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The ends of every attribute of every op: what is accepted there is right, and what lies beyond is refused by name. The ends are
// found, not listed: bind is asked over the whole range of the attribute's type, and each change of its answer is cornered.
#include <gtest/gtest.h>

#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>

#include "quern/testing/check.h"
#include "quern/testing/pairwise.h"

namespace quern::testing {
namespace {

/// An attribute of an op in a small case.
struct Subject {
  const Op* op;
  const AttrDef* attr;
  Case which;
};

/// Empty when bind and plan take the value, else the error.
std::string refusal(const Subject& s, double value) {
  const Case full = derived(*s.op, s.which);
  ArgsStorage args = fake_args(*s.op, full);
  set_attr(*s.attr, args.get(), value);
  try {
    const Problem problem = bind(*s.op, args.get(), options_of(*s.op, full));
    if (!problem.empty) make_plan(*s.op, problem, device_info_of(Arch{}));
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value) << e.what();
    EXPECT_GE(s.op->attr_index(e.argument()), 0) << e.what();
    return e.what();
  }
}

/// From the least to the greatest value of the type, each size once with either sign.
std::vector<double> probes(AttrDef::Kind kind) {
  std::vector<double> sizes = {0};
  if (kind == AttrDef::Kind::f32) {
    for (int power = -149; power <= 127; ++power) sizes.push_back(std::ldexp(1.0, power));
    sizes.push_back(std::numeric_limits<float>::max());
  } else {
    const int bits = kind == AttrDef::Kind::i32 ? 31 : 53;
    for (int power = 0; power < bits; ++power) sizes.push_back(std::ldexp(1.0, power));
    sizes.push_back(std::ldexp(1.0, bits) - 1);
  }
  std::vector<double> all;
  for (size_t i = sizes.size(); i-- > 1;) all.push_back(-sizes[i]);
  all.insert(all.end(), sizes.begin(), sizes.end());
  return all;
}

double between(AttrDef::Kind kind, double low, double high) {
  if (kind != AttrDef::Kind::f32) return std::floor((low + high) / 2);
  const auto rank = [](double x) {  // neighbouring floats have neighbouring ranks
    const i32 bits = std::bit_cast<i32>(float(x));
    return i64(bits < 0 ? i64(INT32_MIN) - bits : bits);
  };
  const i64 middle = rank(low) + (rank(high) - rank(low)) / 2;
  return std::bit_cast<float>(i32(middle < 0 ? i64(INT32_MIN) - middle : middle));
}

/// The accepted values that have a refused neighbour, and the least and the greatest value of the type where they are accepted.
std::vector<double> ends_of(const Subject& s) {
  const std::vector<double> all = probes(s.attr->kind);
  std::vector<double> ends;
  bool before = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool taken = refusal(s, all[i]).empty();
    if ((i == 0 || i + 1 == all.size()) && taken) ends.push_back(all[i]);
    if (i > 0 && taken != before) {
      double low = all[i - 1], high = all[i];
      for (double middle; middle = between(s.attr->kind, low, high), middle != low && middle != high;)
        (refusal(s, middle).empty() == before ? low : high) = middle;
      ends.push_back(before ? low : high);
    }
    before = taken;
  }
  return ends;
}

/// The first case of the op that the device runs and whose outputs have elements.
Case small_case(const Op& op) {
  for (Case& c : pairwise(op.cases, [&](const Case& c) { return runs(op, c, device_info_of(Arch{})); })) {
    const Case full = derived(op, c);
    ArgsStorage args = fake_args(op, full);
    if (!bind(op, args.get(), options_of(op, full)).empty) return c;
  }
  return {};
}

/// Whether a dim is an expression of the attribute: each of its values asks for tensors of other shapes.
bool sizes_a_dim(const Op& op, const AttrDef& attr) {
  for (const TensorDef& t : op.tensors) {
    std::string word;
    for (const char c : t.extents_text + " ") {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') word += c;
      else if (word == attr.name) return true;
      else word.clear();
    }
  }
  return false;
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const auto& [id, op] : registry()) {
    if (id.starts_with("planted.")) continue;  // wrong on purpose
    const Case which = small_case(*op);
    for (const AttrDef& attr : op->attrs)
      if (attr.words.empty() && attr.kind != AttrDef::Kind::boolean && !sizes_a_dim(*op, attr)) all.push_back({op, &attr, which});
  }
  return all;
}

TEST(attribute_ends, what_is_no_number_is_refused) {
  for (const Subject& s : subjects()) {
    if (s.attr->kind != AttrDef::Kind::f32) continue;
    for (const double value : {double(NAN), double(INFINITY), -double(INFINITY)})
      EXPECT_NE(refusal(s, value), "") << s.op->id << " takes " << s.attr->name << " = " << value;
  }
}

TEST(attribute_ends, an_accepted_end_is_right) {
  int ends = 0;
  for (const Subject& s : subjects()) {
    for (const double end : ends_of(s)) {
      CheckJob job{s.op, s.which, 1, {{&device_from_name("emu"), "--device emu"}}};
      job.given[s.attr->name] = end;
      for (const CheckResult& r : check_case(job))
        EXPECT_EQ(r.verdict, CheckResult::Verdict::right) << s.op->id << " at " << s.attr->name << " = " << end << ": " << r.message;
      ++ends;
    }
  }
  EXPECT_GT(ends, 20);
}

}  // namespace
}  // namespace quern::testing
