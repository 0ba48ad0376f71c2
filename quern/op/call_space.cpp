// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/call_space.h"

#include <algorithm>
#include <cstdlib>

#include "quern/base/nearest.h"

namespace quern {

namespace {

/// All of a range of at most 2^15 sizes, else its first 2^12, then 64 an octave, and the last.
std::vector<i64> sizes_of(i64 least, i64 most) {
  constexpr i64 kAll = i64(1) << 15, kDense = i64(1) << 12;
  std::vector<i64> values;
  if (most - least < kAll) {
    for (i64 v = least; v <= most; ++v) values.push_back(v);
    return values;
  }
  for (i64 v = least; v < least + kDense; ++v) values.push_back(v);
  for (i64 v = least + kDense; v < most; v += max_of<i64>(1, (v - least) / 64)) values.push_back(v);
  values.push_back(most);
  return values;
}

[[noreturn]] void fail_word(const Op& op, const std::string& word) {
  std::vector<std::string> known;
  for (const TensorDef& t : op.tensors) {
    if (t.any_shape()) continue;
    known.push_back(t.name + ".dtype");
    if (t.optional) known.push_back(t.name + ".present");
    if (t.either_major) known.push_back(t.name + ".transposed");
  }
  for (const Axis axis : op.axes) known.push_back(name(axis));
  for (const AttrDef& a : op.attrs) known.push_back(a.name);
  const std::string near = nearest(word, known);
  throw Error(
      ErrorKind::value, op.id, word, "is no word of a model file's case",
      (near.empty() ? "" : "`" + near + "`, or ") +
          std::string("an axis, TENSOR.dtype, TENSOR.present of an optional one, TENSOR.transposed of one that may be, or an attribute"));
}

/// Index of the axis of that name in the op's list; -1: it has none.
int slot_of(const Op& op, const std::string& word) {
  for (size_t slot = 0; slot < op.axes.size(); ++slot)
    if (word == name(op.axes[slot])) return int(slot);
  return -1;
}

double parse_number(const Op& op, const std::string& word, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end) throw Error(ErrorKind::value, op.id, word, "is '" + text + "'", "a number");
  return value;
}

}  // namespace

CallSpace::CallSpace(const Model& model, const ModelCall& call, const Extents& chosen, const std::vector<size_t>& alternative)
    : op_(find_op(call.op)), problem_{} {
  for (const auto& [name, value] : model.geometry) names_.push_back(name), slots_.push_back(value);
  for (const Limit& l : model.limits) {
    const auto at = chosen.find(l.name);
    names_.push_back(l.name), slots_.push_back(at == chosen.end() ? l.values.front() : at->second);
  }
  problem_.op = &op_;
  problem_.axis_slots = op_.axis_slots;
  problem_.hooks = op_.hooks;
  problem_.variant = problem_.candidate = -1;
  const auto invariant = chosen.find("batch_invariant");
  problem_.batch_invariant = invariant != chosen.end() && invariant->second;
  for (size_t i = 0; i < op_.attrs.size(); ++i) problem_.attrs[i] = attr_word(op_.attrs[i], op_.attrs[i].standard);
  for (size_t i = 0; i < op_.tensors.size(); ++i) problem_.tensors[i] = {DType::f32, !op_.tensors[i].optional, 16, 1, 0};
  // dtypes first: the like of a tensor stands before it
  const auto text_of = [&](const std::string& name) -> const std::string* {
    for (size_t w = 0; w < call.words.size(); ++w)
      if (call.words[w].name == name) return &call.words[w].values[alternative[w]];
    return nullptr;
  };
  for (size_t i = 0; i < op_.tensors.size(); ++i) {
    const TensorDef& t = op_.tensors[i];
    DType& dtype = problem_.tensors[i].dtype;
    if (const std::string* text = text_of(t.name + ".dtype")) dtype = dtype_from_name(*text);
    else if (t.like >= 0) dtype = problem_.tensors[t.like].dtype;
    else if (!t.dtypes.empty()) dtype = t.dtypes[0];
    const bool allowed = (t.like >= 0 && dtype == problem_.tensors[t.like].dtype) || std::count(t.dtypes.begin(), t.dtypes.end(), dtype);
    if (!allowed)
      throw Error(ErrorKind::type, op_.id, t.name, std::string("is ") + name(dtype), "a dtype that `quern info " + op_.id + "` shows");
  }
  for (size_t w = 0; w < call.words.size(); ++w) set_word(call.words[w].name, call.words[w].values[alternative[w]]);

  for (size_t n = 0; n < names_.size(); ++n) {
    const Limit* limit = model.limit(names_[n]);
    if (!limit || !limit->range || std::none_of(terms_.begin(), terms_.end(), [&](const Term& t) { return t.expression.uses(n); }))
      continue;
    variables_.push_back({names_[n], sizes_of(limit->values[0], limit->values[1]), false, n, false});
  }
  const Limit* alignment = model.limit("alignment");
  set_facts(alignment ? alignment->values : std::vector<i64>{1, 2, 4, 8, 16});
}

void CallSpace::set_word(const std::string& word, const std::string& text) {
  const size_t dot = word.find('.');
  if (dot != std::string::npos) {
    const int i = op_.tensor_index(word.substr(0, dot));
    const std::string what = word.substr(dot + 1);
    const TensorDef* t = i < 0 || op_.tensors[size_t(i)].any_shape() ? nullptr : &op_.tensors[size_t(i)];
    const bool present = t && what == "present" && t->optional, transposed = t && what == "transposed" && t->either_major;
    if (!present && !transposed && !(t && what == "dtype")) fail_word(op_, word);
    if (present) problem_.tensors[i].present = parse_number(op_, word, text) != 0;
    if (transposed) problem_.tensors[i].transposed = parse_number(op_, word, text) != 0;
    return;
  }
  const int attr = op_.attr_index(word);
  if (attr >= 0 && op_.attrs[size_t(attr)].kind == AttrDef::Kind::f32) {
    problem_.attrs[attr] = attr_word(op_.attrs[size_t(attr)], parse_number(op_, word, text));
    return;
  }
  if (const int value = attr < 0 ? -1 : op_.attrs[size_t(attr)].value_named(text); value >= 0) {
    problem_.attrs[attr].integer = value;
    return;
  }
  if (attr >= 0) terms_.push_back({Expression(text, names_), false, size_t(attr)});
  else if (const int slot = slot_of(op_, word); slot >= 0) terms_.push_back({Expression(text, names_), true, size_t(slot)});
  else fail_word(op_, word);
}

/// Alignment and contiguity of each present tensor; and every axis of theirs has a value.
void CallSpace::set_facts(const std::vector<i64>& alignments) {
  for (size_t i = 0; i < op_.tensors.size(); ++i) {
    const TensorDef& t = op_.tensors[i];
    if (!problem_.tensors[i].present) continue;
    for (size_t slot = 0; slot < op_.axes.size(); ++slot) {
      const bool has = std::any_of(t.extents, t.extents + t.rank, [&](const Extent& e) { return op_.uses(e, op_.axes[slot]); });
      if (!has || std::any_of(terms_.begin(), terms_.end(), [&](const Term& x) { return x.axis && x.target == slot; })) continue;
      throw Error(ErrorKind::value, op_.id, name(op_.axes[slot]), "is not given by the model file",
                  "a word for it, `" + t.name + "` has it");
    }
    Variable v{t.name + ".alignment", {}, true, i, true};
    for (i64 a = 16; a >= size_of(problem_.tensors[i].dtype); a /= 2)
      if (std::count(alignments.begin(), alignments.end(), a)) v.values.push_back(a);
    if (v.values.empty())
      throw Error(ErrorKind::value, op_.id, "alignment", "leaves none for `" + t.name + "`", "powers of two from its element's size to 16");
    variables_.push_back(std::move(v));
    if (problem_.tensors[i].transposed) problem_.tensors[i].contiguous = 0;
    else if (t.rank > 1 || t.strided) variables_.push_back({t.name + ".contiguous", {1, 0}, true, i, false});
  }
}

std::vector<std::vector<size_t>> alternatives_of(const ModelCall& call) {
  std::vector<std::vector<size_t>> all;
  std::vector<size_t> at(call.words.size(), 0);
  for (;;) {
    all.push_back(at);
    size_t w = at.size();
    while (w > 0 && ++at[w - 1] == call.words[w - 1].values.size()) at[--w] = 0;
    if (w == 0) return all;
  }
}

Error in_model(const Error& error, const Model& model, const ModelCall& call) {
  return Error(error.kind(), model.name + ", " + call.does + ": " + error.what());
}

bool CallSpace::outputs_are_empty() const {
  for (size_t i = 0; i < op_.tensors.size(); ++i) {
    const TensorDef& t = op_.tensors[i];
    if (t.role == Role::in || !problem_.tensors[i].present) continue;
    bool empty = false;
    for (i32 d = 0; d < t.rank; ++d) empty |= extent_of(op_, t.extents[d], problem_) <= 0;
    if (!empty) return false;
  }
  return true;
}

CallSpace::At CallSpace::plan_at(const Point& point, i32 variant, const DeviceInfo& device, Plan& plan, std::string& why) {
  for (size_t v = 0; v < variables_.size(); ++v) {
    const Variable& x = variables_[v];
    const i64 value = x.values[size_t(point[v])];
    if (!x.fact) slots_[x.slot] = value;
    else (x.alignment ? problem_.tensors[x.slot].alignment : problem_.tensors[x.slot].contiguous) = i32(value);
  }
  for (const Term& t : terms_) {
    const i64 value = t.expression(slots_.data());
    if (t.axis) problem_.axes[t.target] = value;
    else problem_.attrs[t.target] = attr_word(op_.attrs[t.target], value);
  }
  problem_.variant = variant;
  try {
    if (outputs_are_empty()) return why = "its outputs are empty", At::empty;
    for (const auto check : op_.requirements)
      if (const Rejection r = check(problem_)) return why = to_string(r), At::refused;
    plan = make_plan(op_, problem_, device);
    return At::planned;
  } catch (const Error& e) { return why = e.what(), At::refused; }
}

}  // namespace quern
