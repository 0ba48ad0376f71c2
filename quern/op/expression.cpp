// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

#include "quern/base/error.h"
#include "quern/base/nearest.h"

namespace quern {

static Error wrong(const std::string& text, const std::string& what, const std::string& expected) {
  return Error(ErrorKind::value, "", "expression", "'" + text + "' " + what, expected);
}

/// Recursive descent: sum = product {(+|-) product}, product = factor {(*|/) factor}, factor = number | name | call | (sum) | -factor.
class ExpressionParser {
 public:
  using NumberOf = std::function<i64(const std::string&)>;
  ExpressionParser(Expression& into, const NumberOf& number_of) : e_(into), number_of_(number_of), text_(into.text_) {}
  void parse() {
    sum();
    if (next() != 0) throw wrong(text_, "has '" + text_.substr(at_) + "' behind its end", "an operator");
  }

 private:
  using Kind = Expression::Kind;
  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : 0;
  }
  bool take(char c) { return next() == c ? ++at_, true : false; }
  void need(char c) {
    if (!take(c)) throw wrong(text_, "lacks a '" + std::string(1, c) + "' at character " + std::to_string(at_), "it there");
  }
  /// Each level takes some of the stack.
  void deeper() {
    constexpr int kMost = 64;
    if (++depth_ > kMost)
      throw wrong(text_.substr(0, 80) + (text_.size() > 80 ? "..." : ""), "nests deeper than " + std::to_string(kMost), "at most that");
  }
  void add(Kind kind, i64 value = 0) { e_.steps_.push_back({kind, value}); }
  void sum() {
    product();
    for (;;) {
      if (take('+')) product(), add(Kind::add);
      else if (take('-')) product(), add(Kind::subtract);
      else return;
    }
  }
  void product() {
    factor();
    for (;;) {
      if (take('*')) factor(), add(Kind::multiply);
      else if (take('/')) factor(), add(Kind::divide);
      else return;
    }
  }
  void factor() {
    const char c = next();
    if (take('(')) return deeper(), sum(), need(')'), void(--depth_);
    if (take('-')) return deeper(), add(Kind::number, 0), factor(), add(Kind::subtract), void(--depth_);
    if (std::isdigit(static_cast<unsigned char>(c))) return number();
    size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_')) ++end;
    const std::string word = text_.substr(at_, end - at_);
    if (word.empty()) throw wrong(text_, "lacks a value at character " + std::to_string(at_), "a number or a name");
    at_ = end;
    if (next() == '(') return call(word);
    add(Kind::name, number_of_(word));
  }
  void number() {
    const size_t begin = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
    i64 value = 0;
    if (std::from_chars(text_.data() + begin, text_.data() + at_, value).ec != std::errc())
      throw wrong(text_, "has a number of " + std::to_string(at_ - begin) + " digits", "one below 2^63");
    add(Kind::number, value);
  }
  void call(const std::string& function) {
    static const std::pair<const char*, Kind> known[] = {{"min", Kind::min}, {"max", Kind::max}, {"ceil_div", Kind::ceil_div}};
    for (const auto& [name, kind] : known) {
      if (function != name) continue;
      deeper(), need('('), sum(), need(','), sum(), need(')');
      return --depth_, add(kind);
    }
    throw wrong(text_, "calls `" + function + "`", "min, max or ceil_div");
  }

  Expression& e_;
  const NumberOf& number_of_;
  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
};

Expression::Expression(const std::string& text, const std::function<i64(const std::string&)>& number_of) : text_(text) {
  ExpressionParser(*this, number_of).parse();
  if (steps_.size() > 64) throw wrong(text, "has " + std::to_string(steps_.size()) + " parts", "at most 64");
}

static i64 index_of(const std::string& text, const std::vector<std::string>& names, const std::string& word) {
  const auto it = std::find(names.begin(), names.end(), word);
  if (it != names.end()) return it - names.begin();
  const std::string near = nearest(word, names);
  throw wrong(text, "has the word `" + word + "`", near.empty() ? "a word of the model's geometry or limits" : "`" + near + "`");
}

Expression::Expression(const std::string& text, const std::vector<std::string>& names)
    : Expression(text, [&](const std::string& word) { return index_of(text, names, word); }) {}

bool Expression::uses(size_t name) const {
  return std::any_of(steps_.begin(), steps_.end(), [&](const Step& s) { return s.kind == Kind::name && size_t(s.value) == name; });
}

i64 Expression::operator()(const i64* values) const {
  i64 stack[64];
  int top = 0;
  for (const Step& step : steps_) {
    if (step.kind == Kind::number || step.kind == Kind::name) {
      stack[top++] = step.kind == Kind::number ? step.value : values[step.value];
      continue;
    }
    const i64 b = stack[--top];
    i64& a = stack[top - 1];
    bool overflow = false;
    if ((step.kind == Kind::divide || step.kind == Kind::ceil_div) && b <= 0)
      throw wrong(text_, "divides by " + std::to_string(b), "a positive number");
    switch (step.kind) {
      case Kind::add: overflow = __builtin_add_overflow(a, b, &a); break;
      case Kind::subtract: overflow = __builtin_sub_overflow(a, b, &a); break;
      case Kind::multiply: overflow = __builtin_mul_overflow(a, b, &a); break;
      case Kind::divide:
        if (a % b) throw wrong(text_, "divides " + std::to_string(a) + " by " + std::to_string(b), "a multiple of it");
        a /= b;
        break;
      case Kind::ceil_div: a = a / b + (a % b > 0); break;
      case Kind::min: a = std::min(a, b); break;
      default: a = std::max(a, b); break;
    }
    if (overflow) throw wrong(text_, "overflows", "a size below 2^63");
  }
  return stack[0];
}

i64 extent_value(const std::string& word, const Extents& extents) {
  std::vector<std::string> names;
  std::vector<i64> values;
  for (const auto& [name, value] : extents) names.push_back(name), values.push_back(value);
  return Expression(word, names)(values.data());
}

std::vector<i64> extent_values(const std::string& words, const Extents& extents) {
  std::istringstream in(words);
  std::vector<i64> values;
  for (std::string word; in >> word;) values.push_back(extent_value(word, extents));
  return values;
}

}  // namespace quern
