// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/truth.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "quern/op/ref.h"

namespace quern::testing {

static TensorView wide_view(const TensorView& like, std::vector<double>& storage) {
  storage.resize(size_t(std::max<i64>(1, like.numel())));
  std::memset(storage.data(), 0xFF, storage.size() * sizeof(double));
  return TensorView(storage.data(), DType::f64, like.shape, like.rank);
}

static void read_all(const TensorView& view, double* out) {
  const int last = view.rank - 1;
  each_row(view, [&](char* row, const i64*) {
    read_row(row, view.dtype, view.shape[last], view.strides[last], out);
    out += view.shape[last];
  });
}

/// Of an output in the place of an input, what the reference leaves alone is that input's.
static void keep_in_place(const Op& op, const void* args, Truth& t) {
  const TensorDef& def = op.tensors[t.tensor];
  const TensorView v = op.tensor(args, t.tensor);
  if (def.may_be < 0 || v.numel() == 0 || v.data != op.tensor(args, size_t(def.may_be)).data) return;
  std::vector<double> before(t.values.size());
  read_all(v, before.data());
  for (size_t i = 0; i < before.size(); ++i)
    if (std::bit_cast<u64>(t.values[i]) == kUnwrittenBits) t.values[i] = before[i];
}

std::vector<Truth> truth_of(const CaseArgs& args) { return truth_of(args.op(), args.args()); }

std::vector<Truth> truth_of(const Op& op, const void* args) {
  if (!op.reference) throw Error(ErrorKind::internal, op.id + " has no reference");
  ArgsStorage wide(op), magnitudes(op);
  std::memcpy(wide.get(), args, op.args_bytes);
  std::vector<Truth> truths;
  truths.reserve(op.tensors.size());
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorView v = op.tensor(args, i);
    if (op.tensors[i].role == Role::in || !v.present()) continue;
    Truth& t = truths.emplace_back();
    t.tensor = i;
    op.tensor(wide.get(), i) = wide_view(v, t.values);
    op.tensor(magnitudes.get(), i) = wide_view(v, t.magnitudes);
    if (op.tensors[i].role == Role::inout) read_all(v, t.values.data());
  }
  op.reference(wide.get(), magnitudes.get(), args);
  for (Truth& t : truths) keep_in_place(op, args, t);
  return truths;
}

Budget budget_of(const Op& op, const Problem& problem, size_t tensor) {
  if (op.tensors[tensor].budget) return *op.tensors[tensor].budget;
  if (op.budget) return op.budget(problem);
  return {.of_value = 0, .of_magnitude = 8 * 0x1p-24, .absolute = 0};
}

Cost cost_of(const Op& op, const Problem& problem, const void* args) {
  if (op.cost) return op.cost(problem, args);
  Cost cost;
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorView& v = op.tensor(args, i);
    if (v.present()) cost.bytes += double(v.numel()) * size_of(v.dtype) * (op.tensors[i].role == Role::inout ? 2 : 1);
  }
  return cost;
}

}  // namespace quern::testing
