// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/case_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "quern/base/nearest.h"
#include "quern/op/variants.h"

namespace quern::testing {

static bool ends_with(const std::string& s, const char* end) { return s.ends_with(end); }

std::vector<std::string> parameter_names(const Op& op) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& n) {
    if (std::find(names.begin(), names.end(), n) == names.end()) names.push_back(n);
  };
  for (const CaseAxis& c : op.cases) add(c.name);
  for (const Case& shape : op.bench)  // `derive` may know words that no case uses
    for (const auto& [name, value] : shape) add(name);
  for (const Axis a : op.axes) add(name(a));
  for (const TensorDef& t : op.tensors) {
    if (t.any_shape()) continue;
    if (t.dtypes.size() > 1) add(t.name + ".dtype");
    if (t.optional) add(t.name + ".present");
  }
  for (const AttrDef& a : op.attrs) add(a.name);
  for (const TensorDef& t : op.tensors) {
    if (t.any_shape()) continue;
    if (t.rank > 1) add(t.name + ".pad");
    add(t.name + ".shift");
    if (t.rank > 2) add(t.name + ".swap");
    if (t.rank > 1 && (t.strided || t.either_major)) add(t.name + ".transposed");
    if (t.dtypes.size() <= 1) add(t.name + ".dtype");
  }
  add("batch_invariant");
  add("pdl");
  add("fill");
  add("variant");
  return names;
}

static bool is_switch(const Op& op, const std::string& name) {
  if (ends_with(name, ".present") || name == "batch_invariant" || name == "pdl" || ends_with(name, ".transposed") ||
      ends_with(name, ".swap") || ends_with(name, ".in_place"))
    return true;
  const int attr = op.attr_index(name);
  return attr >= 0 && op.attrs[size_t(attr)].kind == AttrDef::Kind::boolean;
}

static void check_name(const Op& op, const std::string& name) {
  const std::vector<std::string> known = parameter_names(op);
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::string near = nearest(name, known), all = fmt::format("{}", fmt::join(known, " "));
  throw Error(ErrorKind::value, op.id, name, "is no parameter of this op",
              near.empty() ? "one of " + all : "`" + near + "`; known are " + all);
}

/// "4096", "4k" and "2m": an integer of 64 bits, which a double may not hold. False: no such text.
static bool parse_integer(const std::string& text, i64& value) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc()) return false;
  if (rest == end) return true;
  const char unit = char(std::tolower(static_cast<unsigned char>(*rest)));
  return rest + 1 == end && (unit == 'k' || unit == 'm') &&
         !__builtin_mul_overflow(value, unit == 'k' ? i64(1) << 10 : i64(1) << 20, &value);
}

/// The same of other numbers: "0.5", "1e3", "0.5k". False: no number.
static bool parse_real(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return false;
  if (*end && !end[1]) {
    const char unit = char(std::tolower(static_cast<unsigned char>(*end)));
    if (unit == 'k') value *= 1024, ++end;
    else if (unit == 'm') value *= 1 << 20, ++end;
  }
  return *end == 0;
}

static const char* range_text(AttrDef::Kind kind) { return kind == AttrDef::Kind::i32 ? "within 32 bits" : "within 64 bits"; }

Scalar parse_value(const Op& op, const std::string& name, const std::string& text) {
  const auto fail = [&](const std::string& expected) { return Error(ErrorKind::value, op.id, name, "is '" + text + "'", expected); };
  if (ends_with(name, ".dtype")) return int(dtype_from_name(text));
  if (name == "variant") {
    for (size_t i = 0; i < op.variants.size(); ++i)
      if (text == std::to_string(i)) return double(i);
    if (named_variant(op, text).variant < 0) throw fail(variants_text(op, text));
    return variant_index(op, text);
  }
  if (name == "fill") {
    const auto* kind = std::find(std::begin(kDataKinds), std::end(kDataKinds), text);
    if (kind == std::end(kDataKinds)) throw fail(fmt::format("one of {}", fmt::join(kDataKinds, ", ")));
    return double(kind - kDataKinds);
  }
  const int attr = op.attr_index(name);
  if (attr >= 0 && !op.attrs[size_t(attr)].words.empty()) {
    const int value = op.attrs[size_t(attr)].value_named(text);
    if (value < 0) throw fail(op.attrs[size_t(attr)].words_text());
    return value;
  }
  if (text == "true" || text == "yes") return 1;
  if (text == "false" || text == "no") return 0;
  for (int t = 0; t < kDTypeCount; ++t)
    if (text == quern::name(DType(t))) return t;
  double real = 0;
  if (!parse_real(text, real)) throw fail("a number");
  const AttrDef::Kind* kind = attr >= 0 ? &op.attrs[size_t(attr)].kind : nullptr;
  if (kind && *kind == AttrDef::Kind::f32) return real;
  if (!std::isfinite(real) || real != std::floor(real)) throw fail("an integer");
  i64 value = 0;
  if (!parse_integer(text, value)) {
    if (!Scalar(real).is_integral()) throw fail(kind ? range_text(*kind) : "within 2^56");
    value = i64(real);
  }
  if (kind && *kind == AttrDef::Kind::i32 && value != i64(i32(value))) throw fail(range_text(*kind));
  if (!kind && (value > i64(1) << 56 || value < -(i64(1) << 56))) throw fail("within 2^56");
  if ((ends_with(name, ".pad") || ends_with(name, ".shift")) && !(value >= 0 && value <= 1 << 20)) throw fail("in [0, 2^20]");
  return value;
}

std::vector<CaseAxis> parse_words(const Op& op, const std::vector<std::string>& words) {
  std::vector<CaseAxis> axes;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(ErrorKind::value, op.id, "", "'" + word + "' is not understood", "parameter=value");
    CaseAxis axis;
    axis.name = word.substr(0, equals);
    check_name(op, axis.name);
    for (const CaseAxis& other : axes)
      if (other.name == axis.name) throw Error(ErrorKind::value, op.id, axis.name, "is given twice", "one word");
    std::string rest = word.substr(equals + 1);
    for (size_t comma; (comma = rest.find(',')) != std::string::npos; rest = rest.substr(comma + 1))
      axis.values.push_back(parse_value(op, axis.name, rest.substr(0, comma)));
    axis.values.push_back(parse_value(op, axis.name, rest));
    axes.push_back(std::move(axis));
  }
  return axes;
}

Case parse_case(const Op& op, const std::vector<std::string>& words) {
  Case which;
  for (const CaseAxis& axis : parse_words(op, words)) {
    if (axis.values.size() != 1) throw Error(ErrorKind::value, op.id, axis.name, "has several values", "one");
    which[axis.name] = axis.values[0];
  }
  return which;
}

std::string case_text(const Op& op, const Case& which) {
  std::string text;
  for (const auto& [key, value] : which) {
    text += (text.empty() ? "" : " ") + key + "=";
    if (ends_with(key, ".dtype")) text += value >= 0 && value < kDTypeCount ? name(DType(int(value))) : "?";
    else if (key == "fill") text += kDataKinds[size_t(data_kind_of(which))];
    else if (const char* variant = key == "variant" ? variant_name(op, value) : nullptr) text += variant;
    else if (const int attr = op.attr_index(key); attr >= 0 && value >= 0 && value < double(op.attrs[size_t(attr)].words.size()))
      text += op.attrs[size_t(attr)].words[size_t(value)];
    else if (is_switch(op, key)) text += value != 0 ? "true" : "false";
    else if (value == std::floor(value) && std::fabs(value) < 1e15) text += std::to_string(i64(value));
    else text += to_string(value);
  }
  return text;
}

Case complete(const Op& op, Case given) {
  for (const CaseAxis& axis : op.cases)
    if (!axis.values.empty()) given.emplace(axis.name, axis.values[0]);
  return given;
}

/// The op's derive may divide by sizes: what its cases never set to zero or below must not be that.
static void check_sizes(const Op& op, const Case& which) {
  for (const CaseAxis& axis : op.cases) {
    const bool size = axis.name.find('.') == std::string::npos && op.attr_index(axis.name) < 0;
    const auto positive = [](const CaseValue& v) { return v > 0; };
    if (!size || axis.values.empty() || !std::all_of(axis.values.begin(), axis.values.end(), positive) || which.at(axis.name) > 0) continue;
    throw Error(ErrorKind::value, op.id, axis.name, "is " + to_string(which.at(axis.name)), "at least 1");
  }
}

Case derived(const Op& op, const Case& given) {
  Case which = complete(op, given);
  if (!op.derive) return which;
  check_sizes(op, which);
  op.derive(which);
  // A size or switch that was given is not one to derive, unless it is a word of the cases, which derive may translate.
  for (const auto& [name, value] : given) {
    const auto same = [&, name = name](const CaseAxis& axis) { return axis.name == name; };
    if (std::none_of(op.cases.begin(), op.cases.end(), same)) which[name] = value;
  }
  return which;
}

std::string made_of(const Op& op, const Case& given) {
  Case made;
  const Case which = derived(op, given);
  for (const auto& [name, value] : complete(op, given))
    if (const auto at = which.find(name); at != which.end() && at->second != value) made[name] = at->second;
  return case_text(op, made);
}

bool breaks_contract(const Op& op, const Case& which) {
  const auto at = which.find(op.broken.name);
  return !op.broken.name.empty() && at != which.end() && at->second == op.broken.values.front();
}

DataKind data_kind_of(const Case& which) {
  const i64 kind = i64(value_or(which, "fill", 0));
  return kind > 0 && kind < i64(std::size(kDataKinds)) ? DataKind(kind) : DataKind::normal;
}

double value_or(const Case& which, const std::string& name, double otherwise) {
  const auto at = which.find(name);
  return at == which.end() ? otherwise : double(at->second);
}

}  // namespace quern::testing
