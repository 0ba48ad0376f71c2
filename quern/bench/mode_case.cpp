// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/mode_case.h"

#include <cstring>
#include <utility>

#include "quern/testing/check.h"

namespace quern::bench {

namespace {

/// Of a tensor of an op of gradients, by its name: the tensor of the op that it is, or is the gradient of; -1: none.
int source_of(const Op& op, const std::map<std::string, std::string>& gradients, const std::string& name) {
  const auto gradient = gradients.find(name);
  return op.tensor_index(gradient == gradients.end() ? name : gradient->second);
}

/// The case of an op of gradients that belongs to a call of the op: its axes, dtypes, attributes and options.
Case case_of_gradients(const ModeCase::Part& forward, const Op& to, const std::map<std::string, std::string>& gradients) {
  const Op& op = *forward.op;
  Case given;
  for (const Axis axis : to.axes)
    if (op.axis_slots[size_t(axis)] < kMaxAxes) given[quern::name(axis)] = forward.problem[axis];
  for (const TensorDef& t : to.tensors) {
    const int source = t.any_shape() ? -1 : source_of(op, gradients, t.name);
    if (source < 0) continue;
    const TensorView view = forward.host.tensor(size_t(source));
    if (t.optional) given[t.name + ".present"] = view.present();
    if (view.present()) given[t.name + ".dtype"] = int(view.dtype);
  }
  for (const AttrDef& a : to.attrs)
    if (const int at = op.attr_index(a.name); at >= 0) given[a.name] = attr_value(op.attrs[size_t(at)], forward.host.args());
  for (const char* option : {"batch_invariant", "pdl"})
    if (const auto at = forward.host.which().find(option); at != forward.host.which().end()) given[option] = at->second;
  return given;
}

/// Element by element, whatever the strides; shapes and dtypes are equal.
void copy_elements(const TensorView& from, const TensorView& to) {
  std::vector<char*> rows;
  testing::each_row(from, [&](char* row, const i64*) { rows.push_back(row); });
  const i64 size = size_of(from.dtype), columns = from.shape[from.rank - 1];
  const i64 from_step = from.strides[from.rank - 1] * size, to_step = to.strides[to.rank - 1] * size;
  size_t r = 0;
  testing::each_row(to, [&](char* row, const i64*) {
    const char* source = rows[r++];
    if (from_step == size && to_step == size) std::memcpy(row, source, size_t(columns * size));
    else
      for (i64 i = 0; i < columns; ++i) std::memcpy(row + i * to_step, source + i * from_step, size_t(size));
  });
}

bool same_shape(const TensorView& a, const TensorView& b) {
  bool same = a.rank == b.rank && a.dtype == b.dtype;
  for (int d = 0; same && d < a.rank; ++d) same = a.shape[d] == b.shape[d];
  return same;
}

}  // namespace

ModeCase::ModeCase(const Op& op, const Case& given, Mode mode, Device& device, u64 seed, bool cold)
    : mode_(mode), device_(device), seed_(seed) {
  if (mode != Mode::forward && op.backward.empty())
    throw Error(ErrorKind::unsupported, op.id, "mode", std::string("is ") + name(mode),
                "forward: the op's schema names no op for its gradients");
  add(op, given, {});
  if (mode != Mode::forward && !parts_[0]->problem.empty)
    for (const Backward& b : op.backward) add(find_op(b.op), case_of_gradients(*parts_[0], find_op(b.op), b.gradients), b.gradients);
  double bytes = 0;
  for (const auto& part : parts_) bytes += testing::operand_bytes(*part->op, part->host.args());
  const int count = sets_wanted(bytes, device.info(), cold);
  bool reads_results = false;
  for (const auto& part : parts_) {
    part->sets = std::make_unique<DeviceSets>(part->host, device, count);
    share(*part);
    for (const Part::Shared& s : part->shared) part->reads_results |= op.tensors[s.there].role != Role::in;
    reads_results |= part->reads_results;
    if (mode != Mode::backward || part != parts_[0]) timed_.push_back(part.get());
  }
  if (mode == Mode::backward && reads_results)
    for (int set = 0; set < count; ++set) quern::run(op, parts_[0]->sets->args(set), parts_[0]->options);
}

void ModeCase::add(const Op& op, const Case& given, std::map<std::string, std::string> gradients) {
  testing::CaseArgs host(op, given, seed_);
  RunOptions options = testing::options_of(op, host.which());
  const Problem problem = bind(op, host.args(), options);
  options.device = &device_;
  parts_.push_back(std::make_unique<Part>(Part{&op, std::move(gradients), std::move(host), options, problem, nullptr, {}, false, {}}));
}

/// Inputs by the names of the op's tensors become these.
void ModeCase::share(Part& part) {
  const Part& forward = *parts_[0];
  if (&part == &forward) return;
  for (size_t here = 0; here < part.op->tensors.size(); ++here) {
    const TensorDef& t = part.op->tensors[here];
    const int there = t.role == Role::in && !t.any_shape() && part.gradients.count(t.name) == 0 ? forward.op->tensor_index(t.name) : -1;
    if (there < 0 || !part.host.tensor(here).present()) continue;
    const TensorView of_op = forward.host.tensor(size_t(there));
    if (!same_shape(of_op, part.host.tensor(here)))
      throw Error(ErrorKind::unsupported, part.op->id, t.name,
                  "is " + shape_string(part.host.tensor(here)) + " " + quern::name(part.host.tensor(here).dtype) + " in this case",
                  "that of " + forward.op->id + ", " + shape_string(of_op) + " " + quern::name(of_op.dtype));
    part.shared.push_back({here, size_t(there)});
    if (forward.op->tensors[size_t(there)].role == Role::in) copy_elements(of_op, part.host.tensor(here));
    for (int set = 0; set < part.sets->count(); ++set)
      part.op->tensor(part.sets->args(set), here) = forward.op->tensor(forward.sets->args(set), size_t(there));
  }
}

/// Brings what the op has written to where the reference of its gradients reads it.
void ModeCase::read_results(Part& part, int set) {
  for (const Part::Shared& s : part.shared)
    if (op().tensors[s.there].role != Role::in) copy_elements(parts_[0]->sets->download(set, s.there).view, part.host.tensor(s.here));
}

bool ModeCase::empty() const {
  for (const Part* part : timed_)
    if (!part->problem.empty) return false;
  return true;
}

bool ModeCase::updates_in_place() const {
  for (const Part* part : timed_)
    for (size_t i = 0; i < part->op->tensors.size(); ++i)
      if (part->op->tensors[i].role == Role::inout && part->host.tensor(i).present()) return true;
  return false;
}

void ModeCase::restore(int set) {
  for (Part* part : timed_) part->sets->restore(set);
}

Verdict ModeCase::judge(int set, int roundings) {
  Verdict worst;
  for (Part* part : timed_) {
    read_results(*part, set);
    Verdict v =
        judge_timed(part->host, *part->sets, set, part->problem, kWorkOfASecond, roundings, part->reads_results ? nullptr : &part->truths);
    if (!v.comparison.ok && timed_.size() > 1) v.comparison.message = part->op->id + ": " + v.comparison.message;
    const bool first = part == timed_.front();
    if (first || (worst.comparison.ok && (!v.comparison.ok || v.comparison.error > worst.comparison.error))) worst = v;
  }
  return worst;
}

Cost ModeCase::cost() const {
  Cost all;
  for (const Part* part : timed_) {
    const Cost cost = testing::cost_of(*part->op, part->problem, part->host.args());
    all.bytes += cost.bytes, all.flops += cost.flops;
  }
  return all;
}

double ModeCase::floor_us(const Ceilings& ceilings) const {
  double us = 0;
  for (const Part* part : timed_) us += ceilings.floor_us(testing::cost_of(*part->op, part->problem, part->host.args()));
  return us;
}

double ModeCase::output_bytes() const {
  double bytes = 0;
  for (const Part* part : timed_)
    for (size_t i = 0; i < part->op->tensors.size(); ++i)
      if (const TensorView v = part->host.tensor(i); part->op->tensors[i].role == Role::out && v.present())
        bytes += double(v.numel()) * size_of(v.dtype);
  return bytes;
}

std::string ModeCase::kernels() const {
  std::string text;
  for (const Part* part : timed_)
    text += (text.empty() ? "" : " + ") + testing::kernels_text(make_plan(*part->op, part->problem, device_.info()));
  return text;
}

double ModeCase::workspace_bytes() const {
  i64 most = 0;
  for (const Part* part : timed_) most = max_of(most, make_plan(*part->op, part->problem, device_.info()).workspace);
  return double(most);
}

}  // namespace quern::bench
