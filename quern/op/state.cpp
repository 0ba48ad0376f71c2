// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a schema states: tensors with their dims, and attributes.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <sstream>

#include "quern/op/schema.h"

namespace quern {

/// Index of a word in the op's own list of axes, to which it is added.
static int slot_of(Op& op, const std::string& word) {
  const Axis axis = axis_of(word);
  u8& slot = op.axis_slots[size_t(axis)];
  if (slot < kMaxAxes) return slot;
  if (op.axes.size() == size_t(kMaxAxes)) throw Error(ErrorKind::internal, op.id + " has more than " + std::to_string(kMaxAxes) + " axes");
  op.axes.push_back(axis);
  return slot = u8(op.axes.size() - 1);
}

/// Number of a word of dims in formulas: an attribute that was stated, else an axis.
static i64 name_of_dims(Op& op, const std::string& word) {
  const int attr = op.attr_index(word);
  if (attr < 0) return slot_of(op, word);
  if (op.attrs[size_t(attr)].kind == AttrDef::Kind::f32) throw Error(ErrorKind::internal, "the attribute `" + word + "` is no integer");
  return kMaxAxes + attr;
}

/// Factors and divisors of extents without a formula: kMaxExtent of bind times one does not overflow.
constexpr i64 kMostFactor = 64, kMostDivisor = i64(1) << 30;

/// The sum of two parts of which one is a number. False: it has a formula.
static bool add_parts(const Extent& a, const Extent& b, i64 sign, Extent& sum) {
  if (!b.is_number() && !(a.is_number() && sign > 0)) return false;
  sum = b.is_number() ? a : b;
  return !__builtin_add_overflow(b.is_number() ? a.offset : b.offset, sign * (b.is_number() ? b.offset : a.offset), &sum.offset);
}

static bool multiply_parts(const Extent& a, const Extent& b, Extent& product) {
  if (!a.is_number() && !b.is_number()) return false;
  const i64 number = a.is_number() ? a.offset : b.offset;
  product = a.is_number() ? b : a;
  if (__builtin_mul_overflow(product.offset, number, &product.offset)) return false;
  if (product.is_number()) return true;
  if (product.divisor != 1 || number < 1 || number * product.factor > kMostFactor || number > kMostFactor) return false;
  product.factor *= i32(number);
  return true;
}

static bool divide_parts(const Extent& a, const Extent& b, Extent& quotient) {
  quotient = a;
  quotient.divisor = i32(b.offset);
  return a.tells_axis() && a.offset == 0 && b.is_number() && b.offset >= 1 && b.offset <= kMostDivisor;
}

/// What the expression is where it needs no formula.
static std::optional<Extent> plain_extent(const Op& op, const Expression& expression) {
  std::vector<Extent> stack;
  for (const Expression::Step& step : expression.steps()) {
    using Kind = Expression::Kind;
    if (step.kind == Kind::number || step.kind == Kind::name) {
      if (step.kind == Kind::name && step.value >= kMaxAxes) return std::nullopt;
      Extent& e = stack.emplace_back();
      if (step.kind == Kind::number) e.factor = 0, e.offset = step.value;
      else e.slot = u8(step.value), e.axis = op.axes[size_t(step.value)];
      continue;
    }
    const Extent b = stack.back();
    stack.pop_back();
    const Extent a = stack.back();
    const bool plain = step.kind == Kind::add        ? add_parts(a, b, 1, stack.back())
                       : step.kind == Kind::subtract ? add_parts(a, b, -1, stack.back())
                       : step.kind == Kind::multiply ? multiply_parts(a, b, stack.back())
                       : step.kind == Kind::ceil_div ? divide_parts(a, b, stack.back())
                                                     : false;
    if (!plain) return std::nullopt;
  }
  constexpr i64 kMostOffset = i64(1) << 56;
  const i64 offset = stack.back().offset;
  return offset >= -kMostOffset && offset <= kMostOffset ? std::optional(stack.back()) : std::nullopt;
}

/// Whether bind knows the axis before it looks at the next tensor.
static bool knows(const Op& op, Axis axis) {
  for (const TensorDef& t : op.tensors)
    for (int d = 0; d < t.rank && !t.optional; ++d)
      if (t.extents[d].tells_axis() && t.extents[d].axis == axis) return true;
  return false;
}

static Extent parse_extent(Op& op, const std::string& word) {
  const Expression expression(word, [&](const std::string& name) { return name_of_dims(op, name); });
  if (std::optional<Extent> plain = plain_extent(op, expression)) {
    plain->late = plain->divisor != 1 && !knows(op, plain->axis);
    return *plain;
  }
  Extent e;
  e.late = true;
  e.formula = i32(op.formulas.size());
  op.formulas.push_back(expression);
  return e;
}

void add_tensor(Op& op, const char* name, ptrdiff_t offset, const char* dims, Role role, std::vector<DType> dtypes,
                const std::string& like_name) {
  const auto fail = [&](const std::string& text) { return Error(ErrorKind::internal, op.id + ": `" + name + "` " + text); };
  if (op.tensors.size() == size_t(kMaxTensors))
    throw Error(ErrorKind::internal, op.id + " has more than " + std::to_string(kMaxTensors) + " tensors");
  TensorDef t;
  t.name = name;
  t.offset = offset;
  t.role = role;
  t.dtypes = std::move(dtypes);
  t.extents_text = dims;
  if (!like_name.empty()) {
    t.like = op.tensor_index(like_name);
    if (t.like < 0) throw fail("is like `" + like_name + "`, which is not stated before it");
  }
  std::istringstream words(dims);
  for (std::string word; words >> word; ++t.rank) {
    if (t.rank == kMaxRank) throw fail("has more than " + std::to_string(kMaxRank) + " dims");
    try {
      t.extents[t.rank] = parse_extent(op, word);
    } catch (const Error& e) { throw fail("has the dim " + word + ": " + e.what()); }
    op.late_extents |= t.extents[t.rank].late;
  }
  op.tensor_offsets[op.tensors.size()] = i32(offset);
  op.tensors.push_back(std::move(t));
}

void add_attr(Op& op, const AttrDef& attr) {
  if (op.attrs.size() == size_t(kMaxAttrs))
    throw Error(ErrorKind::internal, op.id + " has more than " + std::to_string(kMaxAttrs) + " attributes");
  for (const Axis axis : op.axes)
    if (attr.name == name(axis))
      throw Error(
          ErrorKind::internal,
          op.id + ": `" + attr.name +
              "` is an axis of the tensors before it, expected an attribute of another name, or stated before the dims that mean it");
  op.attr_offsets[op.attrs.size()] = i32(attr.offset);
  op.attrs.push_back(attr);
}

void set_may_be(Op& op, const char* input) {
  TensorDef& t = op.tensors.back();
  t.may_be = op.tensor_index(input);
  if (t.may_be < 0 || t.role != Role::out || op.tensors[size_t(t.may_be)].role != Role::in ||
      op.tensors[size_t(t.may_be)].extents_text != t.extents_text)
    throw Error(ErrorKind::internal,
                op.id + ": `" + t.name + "` may be `" + input + "`, but an output may be an input of its dims that is stated before it");
}

void state_tensor(Op& op, const char* name, ptrdiff_t offset, const char* dims, Role role, std::vector<DType> dtypes,
                  const std::string& like_name) {
  try {
    add_tensor(op, name, offset, dims, role, std::move(dtypes), like_name);
  } catch (const Error& e) {
    refuse_op(op, e);
    op.tensors.emplace_back();  // of which the rest of the chain speaks
  }
}

void state_attr(Op& op, const AttrDef& attr) {
  try {
    add_attr(op, attr);
  } catch (const Error& e) {
    refuse_op(op, e);
    op.attrs.push_back(attr);
  }
}

void state_may_be(Op& op, const char* input) {
  try {
    set_may_be(op, input);
  } catch (const Error& e) { refuse_op(op, e); }
}

i64 extent_of(const Op& op, const Extent& e, const i64* values) {
  return e.formula >= 0 ? op.formulas[size_t(e.formula)](values) : e.is_number() ? e.offset : e.size(values[e.slot]);
}

i64 extent_of(const Op& op, const Extent& e, const Problem& p) {
  if (e.formula < 0) return e.is_number() ? e.offset : e.size(p.axes[e.slot]);
  i64 values[kMaxAxes + kMaxAttrs];
  std::memcpy(values, p.axes, sizeof(i64) * op.axes.size());
  for (size_t i = 0; i < op.attrs.size(); ++i) values[size_t(kMaxAxes) + i] = p.attrs[i].integer;  // a formula has none of f32
  return op.formulas[size_t(e.formula)](values);
}

Scalar attr_value(const AttrDef& attr, const void* args) {
  const char* at = static_cast<const char*>(args) + attr.offset;
  switch (attr.kind) {
    case AttrDef::Kind::f32: return *reinterpret_cast<const float*>(at);
    case AttrDef::Kind::i32: return *reinterpret_cast<const i32*>(at);
    case AttrDef::Kind::i64: return *reinterpret_cast<const i64*>(at);
    case AttrDef::Kind::boolean: return *reinterpret_cast<const bool*>(at);
  }
  return 0;
}

static i64 integer_of(const AttrDef& attr, const Scalar& value) {
  const bool narrow = attr.kind == AttrDef::Kind::i32;
  if (!value.is_integral() || (narrow && value.integer() != i64(i32(value.integer()))))
    throw Error(ErrorKind::value, "", attr.name, "is " + to_string(value), narrow ? "an integer of 32 bits" : "an integer of 64 bits");
  return value.integer();
}

static float real_of(const AttrDef& attr, const Scalar& value) {
  const float real = float(value);
  if (std::isinf(real) && std::isfinite(double(value)))
    throw Error(ErrorKind::value, "", attr.name, "is " + to_string(value), "a number that an f32 holds");
  return real;
}

static bool boolean_of(const AttrDef& attr, const Scalar& value) {
  if (value != 0 && value != 1) throw Error(ErrorKind::value, "", attr.name, "is " + to_string(value), "0 or 1");
  return value != 0;
}

void set_attr(const AttrDef& attr, void* args, const Scalar& value) {
  char* at = static_cast<char*>(args) + attr.offset;
  switch (attr.kind) {
    case AttrDef::Kind::f32: *reinterpret_cast<float*>(at) = real_of(attr, value); break;
    case AttrDef::Kind::i32: *reinterpret_cast<i32*>(at) = i32(integer_of(attr, value)); break;
    case AttrDef::Kind::i64: *reinterpret_cast<i64*>(at) = integer_of(attr, value); break;
    case AttrDef::Kind::boolean: *reinterpret_cast<bool*>(at) = boolean_of(attr, value); break;
  }
}

AttrWord attr_word(const AttrDef& attr, const Scalar& value) {
  AttrWord word{0};
  if (attr.kind == AttrDef::Kind::f32) word.real = double(real_of(attr, value));
  else word.integer = attr.kind == AttrDef::Kind::boolean ? i64(boolean_of(attr, value)) : integer_of(attr, value);
  return word;
}

std::string to_string(const Scalar& value) { return value.is_real() ? fmt::format("{}", double(value)) : std::to_string(value.integer()); }

}  // namespace quern
