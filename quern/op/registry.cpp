// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "quern/base/nearest.h"
#include "quern/op/registration.h"

namespace quern {

Registry& registered_ops() {
  static Registry r;
  return r;
}
static Registry& ops() { return registered_ops(); }

struct RegistrationError {
  std::string got, expected;
};
static RegistrationError& registration_error() {
  static RegistrationError error;
  return error;
}
void refuse_registration(std::string got, std::string expected) {
  // The first tells what is wrong; later ones may follow from it
  if (RegistrationError& e = registration_error(); e.got.empty()) e = {std::move(got), std::move(expected)};
}

const Registry& registry() {
  const RegistrationError& e = registration_error();
  if (!e.got.empty()) throw Error(ErrorKind::value, "", "op", e.got, e.expected);
  if (const std::string fault = variants_fault(); !fault.empty())
    throw Error(ErrorKind::value, "", "op", "is " + fault, "variants with a name of their own and an op to join");
  return ops();
}

static std::string text(const Headers& h) { return fmt::format("version {}, layout {:016x}", h.version, h.layout); }

bool register_op(const char* id, const Op* op, const Headers& built_with) {
  if (!built_with.agree_with(kHeaders)) {
    refuse_registration(fmt::format("is {}, built against quern's headers of {}", id, text(built_with)),
                        text(kHeaders) + ", those of this libquern: build it again");
    return false;
  }
  if (!ops().emplace(id, op).second) refuse_registration(std::string("is registered twice: ") + id, "ops that can be told apart");
  return true;
}

void register_glossary(const char* id, const GlossaryWord* words, size_t count) {
  if (const std::string fault = join_glossary(words, count); !fault.empty())
    refuse_registration(fmt::format("is {}, built with {}", id, fault), "words of a glossary that grows at its end: build it again");
}

void refuse_op(Op& op, const Error& e) {
  if (!op.fault.empty()) return;
  op.fault = e.what();
  refuse_registration("is " + op.id + ": " + op.fault, "a schema that says what can be");
}

const Op& find_op(std::string_view wanted) {
  if (const auto it = ops().find(wanted); it != ops().end()) {
    if (!it->second->fault.empty()) throw Error(ErrorKind::internal, it->second->fault);
    return *it->second;
  }
  const std::string id(wanted);
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
    return refuse_op(op, Error(ErrorKind::internal,
                               op.id + " is based on " + base +
                                   ", which is not there, has other Args or takes no hooks, expected an op that is registered before it"));
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
  op.backward.clear();  // the base's knows nothing of the hooks
}

void add_hook_tensors(Op& op, ptrdiff_t offset, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string name = "hook_tensors[" + std::to_string(i) + "]";
    state_tensor(op, name.c_str(), offset + i * ptrdiff_t(sizeof(TensorView)), "", Role::in,
                 {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}, "");
    TensorDef& t = op.tensors.back();
    t.optional = t.strided = true;
    t.extents_text = "1 to " + std::to_string(kMaxHookRank) + " dims";
  }
}

void name_hook_tensor(Op& op, int index, const char* name, const char* axes, std::vector<DType> dtypes) {
  const ptrdiff_t offset = op.hook_tensors_offset + index * ptrdiff_t(sizeof(TensorView));
  const auto at =
      std::find_if(op.tensors.begin(), op.tensors.end(), [&](const TensorDef& t) { return t.any_shape() && t.offset == offset; });
  if (at == op.tensors.end()) {
    refuse_op(op, Error(ErrorKind::internal, op.id + ": hook tensor " + std::to_string(index) +
                                                 " is not there or named twice, expected an index of the base's hook_tensors, once"));
    return op.tensors.push_back({});  // what the schema says next is of this one
  }
  op.tensors.erase(at);
  for (size_t i = 0; i < op.tensors.size() && i < size_t(kMaxTensors); ++i) op.tensor_offsets[i] = i32(op.tensors[i].offset);
  state_tensor(op, name, offset, axes, Role::in, std::move(dtypes), "");
  op.tensors.back().strided = true;
}

void set_hook_params(Op& op, i32 bytes) {
  if (bytes > op.hook_params_bytes)
    return refuse_op(op, Error(ErrorKind::internal, op.id + ": hooks read " + std::to_string(bytes) +
                                                        " bytes of params, expected at most " + std::to_string(op.hook_params_bytes)));
  op.hook_params_used = bytes;
}

/// What is wrong with tensor `t` of the backward op `b`; `of`: the op's tensor of which it is the gradient, or null.
static std::string backward_tensor_fault(const Op& op, const TensorDef& t, const std::string* of) {
  const int at = op.tensor_index(of ? *of : t.name);
  if (at < 0)
    return "`" + t.name + "` is " +
           (of ? "the gradient of `" + *of + "`, which is no tensor of this op" : "neither a tensor of this op nor a gradient");
  const TensorDef& ours = op.tensors[size_t(at)];
  if (ours.role == Role::inout || t.role == Role::inout) return "`" + t.name + "` is updated in place";
  if (of && (ours.role == Role::in) != (t.role == Role::out))
    return "`" + t.name + "` is the gradient of `" + *of + "`: inputs are gradients of outputs, outputs of inputs";
  if (!of && t.role == Role::out) return "`" + t.name + "` is an output and no gradient";
  if (ours.extents_text != t.extents_text) return "`" + t.name + "` is [" + t.extents_text + "] beside [" + ours.extents_text + "]";
  return "";
}

/// What is wrong with one of the ops that compute gradients of `op`.
static std::string backward_fault(const Op& op, const Backward& backward) {
  const auto found = ops().find(backward.op);
  if (found == ops().end()) return backward.op + " is not there";
  const Op& b = *found->second;
  const auto fault = [&](const std::string& text) { return b.id + ": " + text; };
  for (const auto& [name, of] : backward.gradients)
    if (b.tensor_index(name) < 0) return fault("`" + name + "` is no tensor of it");
  for (const TensorDef& t : b.tensors) {
    const auto gradient = backward.gradients.find(t.name);
    const std::string text = backward_tensor_fault(op, t, gradient == backward.gradients.end() ? nullptr : &gradient->second);
    if (!text.empty()) return fault(text);
  }
  for (const AttrDef& a : b.attrs) {
    const int at = op.attr_index(a.name);
    if (at < 0 || op.attrs[size_t(at)].kind != a.kind) return fault("`" + a.name + "` is no attribute of this op of its type");
  }
  return "";
}

std::string backward_fault(const Op& op) {
  std::map<std::string, std::string> computed;  // tensor of the op -> who computes its gradient
  for (const Backward& backward : op.backward) {
    if (const std::string text = backward_fault(op, backward); !text.empty()) return text;
    for (const auto& [name, of] : backward.gradients) {
      if (op.tensors[size_t(op.tensor_index(of))].role != Role::in) continue;
      if (const auto [at, is_new] = computed.emplace(of, backward.op); !is_new)
        return backward.op + ": `" + name + "` is the gradient of `" + of + "`, which " + at->second + " computes too";
    }
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

bool Op::uses(const Extent& e, Axis axis) const {
  if (e.formula < 0) return e.factor != 0 && e.axis == axis;
  const u8 slot = axis_slots[size_t(axis)];
  return slot < kMaxAxes && formulas[size_t(e.formula)].uses(slot);
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

}  // namespace quern
