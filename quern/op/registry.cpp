// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "quern/base/nearest.h"
#include "quern/op/schema.h"

namespace quern {

static std::map<std::string, const Op*>& ops() {
  static std::map<std::string, const Op*> r;
  return r;
}

/// Ops are registered while a library is loaded, where an exception would end the process: it is kept for the first that asks.
struct RegistrationError {
  std::string got, expected;
};
static RegistrationError& registration_error() {
  static RegistrationError error;
  return error;
}

const std::map<std::string, const Op*>& registry() {
  const RegistrationError& e = registration_error();
  if (!e.got.empty()) throw Error(ErrorKind::value, "", "op", e.got, e.expected);
  return ops();
}

static std::string text(const Headers& h) { return fmt::format("version {}, layout {:016x}", h.version, h.layout); }

bool register_op(const char* id, const Op* op, const Headers& built_with) {
  if (!built_with.agree_with(kHeaders)) {
    registration_error() = {fmt::format("is {}, built against quern's headers of {}", id, text(built_with)), text(kHeaders) + ", those of this libquern: build it again"};
    return false;
  }
  if (!ops().emplace(id, op).second) registration_error() = {std::string("is registered twice: ") + id, "ops that can be told apart"};
  return true;
}

const Op& find_op(const std::string& id) {
  if (const auto it = ops().find(id); it != ops().end()) return *it->second;
  std::string nearest;
  size_t best = ~size_t(0);
  for (const auto& [known, op] : ops()) {
    // Also by the part behind the dot: "rms_norm" is understood to mean norm.rms_norm.
    const size_t d = std::min(edit_distance(id, known), edit_distance(id, known.substr(known.find('.') + 1)));
    if (d < best) best = d, nearest = known;
  }
  throw Error(ErrorKind::value, "", "op", "is '" + id + "'",
              "one of those that `quern list` shows" + (nearest.empty() ? "" : "; the nearest is " + nearest));
}

void base_on(Op& op, const char* base, const jit::Hooks* hooks) {
  const auto found = ops().find(base);
  if (found == ops().end() || std::strcmp(found->second->args_type, op.args_type) != 0 || found->second->hooks_offset < 0) {
    registration_error() = {"is " + op.id + ", based on " + base + ", which is not there, has other Args or takes no hooks", "an op whose base is registered before it"};
    return;
  }
  const Op& from = *found->second;
  const std::string id = op.id;
  op = from;
  op.id = id;
  op.base = &from;
  op.hooks = hooks;
  op.generate = nullptr;
  op.reference = nullptr;
  op.order_free = nullptr;
  op.backward = {};  // the base's knows nothing of the hooks
}

void add_hook_tensors(Op& op, ptrdiff_t offset, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string name = "hook_tensors[" + std::to_string(i) + "]";
    add_tensor(op, name.c_str(), offset + i * ptrdiff_t(sizeof(TensorView)), "", Role::in, {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}, "");
    TensorDef& t = op.tensors.back();
    t.optional = t.strided = true;
    t.extents_text = "1 to " + std::to_string(kMaxHookRank) + " dims";
  }
}

void name_hook_tensor(Op& op, int index, const char* name, const char* axes, std::vector<DType> dtypes) {
  const ptrdiff_t offset = op.hook_tensors_offset + index * ptrdiff_t(sizeof(TensorView));
  const auto at = std::find_if(op.tensors.begin(), op.tensors.end(), [&](const TensorDef& t) { return t.any_shape() && t.offset == offset; });
  if (at == op.tensors.end()) {
    registration_error() = {"is " + op.id + ", whose hook tensor " + std::to_string(index) + " is not there or named twice", "an index of the base's hook_tensors, once"};
    return op.tensors.push_back({});  // what the schema says next is of this one
  }
  op.tensors.erase(at);
  for (size_t i = 0; i < op.tensors.size(); ++i) op.tensor_offsets[i] = i32(op.tensors[i].offset);
  add_tensor(op, name, offset, axes, Role::in, std::move(dtypes), "");
  op.tensors.back().strided = true;
}

void set_hook_params(Op& op, i32 bytes) {
  if (bytes > op.hook_params_bytes)
    registration_error() = {"is " + op.id + ", whose hooks read " + std::to_string(bytes) + " bytes of params", "at most " + std::to_string(op.hook_params_bytes)};
  op.hook_params_used = bytes;
}

/// What is wrong with tensor `t` of the backward op `b`; `of`: the op's tensor of which it is the gradient, or null.
static std::string backward_tensor_fault(const Op& op, const TensorDef& t, const std::string* of) {
  const int at = op.tensor_index(of ? *of : t.name);
  if (at < 0) return "`" + t.name + "` is " + (of ? "the gradient of `" + *of + "`, which is no tensor of this op" : "neither a tensor of this op nor a gradient");
  const TensorDef& ours = op.tensors[size_t(at)];
  if (ours.role == Role::inout || t.role == Role::inout) return "`" + t.name + "` is updated in place";
  if (of && (ours.role == Role::in) != (t.role == Role::out)) return "`" + t.name + "` is the gradient of `" + *of + "`: inputs are gradients of outputs, outputs of inputs";
  if (!of && t.role == Role::out) return "`" + t.name + "` is an output and no gradient";
  if (ours.extents_text != t.extents_text) return "`" + t.name + "` is [" + t.extents_text + "] beside [" + ours.extents_text + "]";
  return "";
}

std::string backward_fault(const Op& op) {
  if (op.backward.op.empty()) return "";
  const auto found = ops().find(op.backward.op);
  if (found == ops().end()) return op.backward.op + " is not there";
  const Op& b = *found->second;
  const auto fault = [&](const std::string& text) { return b.id + ": " + text; };
  for (const auto& [name, of] : op.backward.gradients)
    if (b.tensor_index(name) < 0) return fault("`" + name + "` is no tensor of it");
  for (const TensorDef& t : b.tensors) {
    const auto gradient = op.backward.gradients.find(t.name);
    const std::string text = backward_tensor_fault(op, t, gradient == op.backward.gradients.end() ? nullptr : &gradient->second);
    if (!text.empty()) return fault(text);
  }
  for (const AttrDef& a : b.attrs) {
    const int at = op.attr_index(a.name);
    if (at < 0 || op.attrs[size_t(at)].kind != a.kind) return fault("`" + a.name + "` is no attribute of this op of its type");
  }
  return "";
}

int Op::tensor_index(const std::string& name) const {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name) return int(i);
  return -1;
}

int Op::attr_index(const std::string& name) const {
  for (size_t i = 0; i < attrs.size(); ++i)
    if (attrs[i].name == name) return int(i);
  return -1;
}

int AttrDef::value_named(const std::string& word) const {
  const auto at = std::find(words.begin(), words.end(), word);
  return at == words.end() ? -1 : int(at - words.begin());
}

std::string AttrDef::words_text() const {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

/// "ceil_div(2*k,128)".
static Extent parse_quotient(const std::string& word);

static Extent parse_extent(const std::string& word) {
  if (word.starts_with("ceil_div(")) return parse_quotient(word);
  Extent e;
  std::string rest = word;
  if (std::isdigit(rest[0])) {
    const size_t star = rest.find('*');
    if (star == std::string::npos) {
      e.factor = 0;
      e.offset = std::atoll(rest.c_str());
      return e;
    }
    e.factor = std::atoi(rest.c_str());
    rest = rest.substr(star + 1);
  }
  if (const size_t plus = rest.find('+'); plus != std::string::npos) {
    e.offset = std::atoll(rest.c_str() + plus + 1);
    rest = rest.substr(0, plus);
  }
  e.axis = axis_of(rest);
  return e;
}

static Extent parse_quotient(const std::string& word) {
  const size_t open = word.find('('), comma = word.find(',');
  Extent e;
  if (comma != std::string::npos) e = parse_extent(word.substr(open + 1, comma - open - 1));
  e.divisor = comma == std::string::npos ? 0 : std::atoi(word.c_str() + comma + 1);
  if (e.divisor < 1 || e.factor == 0 || e.offset != 0 || word.back() != ')')
    throw Error(ErrorKind::internal, "the extent " + word + " is not understood, expected ceil_div(2*axis,128)");
  return e;
}

/// Whether bind knows the axis before it looks at the next tensor.
static bool knows(const Op& op, Axis axis) {
  for (const TensorDef& t : op.tensors)
    for (int d = 0; d < t.rank && !t.optional; ++d)
      if (t.extents[d].factor != 0 && t.extents[d].divisor == 1 && t.extents[d].axis == axis) return true;
  return false;
}

void add_tensor(Op& op, const char* name, ptrdiff_t offset, const char* axes, Role role, std::vector<DType> dtypes,
                const std::string& like_name) {
  TensorDef t;
  t.name = name;
  t.offset = offset;
  t.role = role;
  t.dtypes = std::move(dtypes);
  t.extents_text = axes;
  if (!like_name.empty()) {
    t.like = op.tensor_index(like_name);
    if (t.like < 0) throw Error(ErrorKind::internal, op.id + ": `" + name + "` is like `" + like_name + "`, which is not stated before it");
  }
  std::istringstream words(axes);
  for (std::string word; words >> word;) {
    if (t.rank == kMaxRank) throw Error(ErrorKind::internal, op.id + ": `" + name + "` has more dims than kMaxRank");
    const Extent e = t.extents[t.rank++] = parse_extent(word);
    if (e.divisor != 1 && !knows(op, e.axis))
      throw Error(ErrorKind::internal, op.id + ": `" + name + "` has " + word + ", but no tensor before it has " + quern::name(e.axis));
  }
  if (op.tensors.size() == kMaxTensors) throw Error(ErrorKind::internal, op.id + " has more than kMaxTensors tensors");
  op.tensor_offsets[op.tensors.size()] = i32(offset);
  op.tensors.push_back(std::move(t));
}

void add_attr(Op& op, const AttrDef& attr) {
  if (op.attrs.size() == kMaxAttrs) throw Error(ErrorKind::internal, op.id + " has more than kMaxAttrs attributes");
  op.attr_offsets[op.attrs.size()] = i32(attr.offset);
  op.attrs.push_back(attr);
}

void set_may_be(Op& op, const char* input) {
  TensorDef& t = op.tensors.back();
  t.may_be = op.tensor_index(input);
  if (t.may_be < 0 || t.role != Role::out || op.tensors[size_t(t.may_be)].role != Role::in || op.tensors[size_t(t.may_be)].extents_text != t.extents_text)
    throw Error(ErrorKind::internal, op.id + ": `" + t.name + "` may be `" + input + "`, but an output may be an input of its dims that is stated before it");
}

double attr_value(const AttrDef& attr, const void* args) {
  const char* at = static_cast<const char*>(args) + attr.offset;
  switch (attr.kind) {
    case AttrDef::Kind::f32: return *reinterpret_cast<const float*>(at);
    case AttrDef::Kind::i32: return *reinterpret_cast<const i32*>(at);
    case AttrDef::Kind::i64: return double(*reinterpret_cast<const i64*>(at));
    case AttrDef::Kind::boolean: return *reinterpret_cast<const bool*>(at);
  }
  return 0;
}

void set_attr(const AttrDef& attr, void* args, double value) {
  char* at = static_cast<char*>(args) + attr.offset;
  switch (attr.kind) {
    case AttrDef::Kind::f32: *reinterpret_cast<float*>(at) = float(value); break;
    case AttrDef::Kind::i32: *reinterpret_cast<i32*>(at) = i32(value); break;
    case AttrDef::Kind::i64: *reinterpret_cast<i64*>(at) = i64(value); break;
    case AttrDef::Kind::boolean: *reinterpret_cast<bool*>(at) = value != 0; break;
  }
}

}  // namespace quern
