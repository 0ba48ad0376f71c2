// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/rows.h"

#include <algorithm>
#include <cmath>

namespace quern::testing {

namespace {

/// True for the offsets of a CSR form: one more than rows, of which row r has entries r and r + 1.
bool has_row_offsets(const Op& op, const TensorDef& t) {
  const Extent& e = t.extents[0];
  return t.rank == 1 && e.tells_axis() && e.factor == 1 && e.axis == op.rows && e.offset == 1;
}

/// Whether the tensor's first dimension counts tokens, of which a row may have several.
bool by_tokens(const Op& op, const TensorDef& t) { return op.row_offsets >= 0 && t.rank > 0 && t.extents[0].is(op.row_tokens); }

/// The tensor that says which tokens a row has; not present: token r of row r.
const TensorView& row_offsets(const Op& op, const void* args) {
  static const TensorView none;
  return op.row_offsets < 0 ? none : *reinterpret_cast<const TensorView*>(static_cast<const char*>(args) + op.row_offsets);
}

}  // namespace

int rows_dim(const Op& op, const TensorDef& t) {
  int found = -1;
  for (int d = 0; d < t.rank; ++d) {
    const Extent& e = t.extents[d];
    if (!op.uses(e, op.rows) && !op.uses(e, op.rows_or_one)) continue;
    found = d == 0 && (e.is(op.rows) || e.is(op.rows_or_one)) ? 0 : -2;
  }
  return found;
}

void keep_rows(const Op& op, void* args, i64 begin, i64 end) {
  const bool offsets = row_offsets(op, args).present();
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    TensorView& v = op.tensor(args, i);
    if (!v.present()) continue;
    const bool shared = op.rows_or_one != op.rows && op.tensors[i].extents[0].is(op.rows_or_one) && v.shape[0] == 1;
    const bool tokens = by_tokens(op, op.tensors[i]) && !offsets;
    if ((rows_dim(op, op.tensors[i]) == 0 && !shared) || tokens) v = v.slice(0, begin, end);
    if (has_row_offsets(op, op.tensors[i])) v = v.slice(0, begin, end + 1);
  }
}

i64 row_unit(const Op& op, const void* args) {
  i64 unit = 1;
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorView& v = op.tensor(args, i);
    if (v.present() && v.rank == 2 && rows_dim(op, op.tensors[i]) == 0 && lies_transposed(op.tensors[i], v))
      unit = max_of<i64>(unit, 16 / size_of(v.dtype));
  }
  return unit;
}

/// Tensors of generated contents may point at rows, which a cut moves; not those that row offsets point at.
bool rows_can_be_sliced(const Op& op, const void* args) {
  if (!op.has_rows) return false;
  const auto absent = [&](size_t i) { return args && !op.tensor(args, i).present(); };
  bool offsets = false;
  for (size_t i = 0; i < op.tensors.size(); ++i) offsets |= !absent(i) && has_row_offsets(op, op.tensors[i]);
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorDef& t = op.tensors[i];
    if (absent(i) || has_row_offsets(op, t)) continue;
    const int dim = rows_dim(op, t);
    const bool generated = t.values.kind == Values::Kind::generated;
    const bool indexes_rows =
        (t.values.kind == Values::Kind::index || t.values.kind == Values::Kind::permutation) && t.values.axis == op.rows;
    if (dim == -2 || indexes_rows || (generated && dim != 0 && !offsets && !by_tokens(op, t))) return false;
  }
  return true;
}

bool outputs_can_be_sliced(const Op& op, const void* args) {
  const bool offsets = row_offsets(op, args).present();
  for (size_t i = 0; i < op.tensors.size(); ++i)
    if (op.tensors[i].role != Role::in && op.tensor(args, i).present() && rows_dim(op, op.tensors[i]) != 0 &&
        (offsets || !by_tokens(op, op.tensors[i])))
      return false;
  return rows_can_be_sliced(op, args);
}

i64 row_count(const Op& op, const void* args) {
  for (size_t i = 0; i < op.tensors.size(); ++i)
    if (rows_dim(op, op.tensors[i]) == 0 && op.tensor(args, i).present()) return op.tensor(args, i).shape[0];
  const TensorView& offsets = row_offsets(op, args);
  return offsets.present() ? offsets.shape[0] - 1 : 0;
}

TensorView column_of(const Op& op, size_t tensor, const TensorView& view, i64 at) {
  for (int d = 0; d < view.rank; ++d) {
    const Extent& e = op.tensors[tensor].extents[d];
    if (e.formula < 0 && e.factor == 1 && e.axis == op.columns && e.offset == 0) return view.slice(d, at / e.divisor, at / e.divisor + 1);
  }
  return view;
}

i64 column_count(const Op& op, const void* args) {
  if (op.columns_unless >= 0 && *reinterpret_cast<const bool*>(static_cast<const char*>(args) + op.columns_unless)) return 0;
  for (size_t i = 0; op.has_columns && i < op.tensors.size(); ++i)
    for (int d = 0; d < op.tensors[i].rank; ++d) {
      const Extent& e = op.tensors[i].extents[d];
      if (e.is(op.columns)) return op.tensor(args, i).shape[d];
    }
  return 0;
}

std::string output_bytes(const CaseArgs& args, i64 r, bool one_nan) {
  std::string bytes;
  const TensorView& offsets = row_offsets(args.op(), args.args());
  const auto offset = [&](i64 at) { return load_integer(offsets.at(&at), offsets.dtype); };
  for (size_t i = 0; i < args.op().tensors.size(); ++i) {
    TensorView v = args.tensor(i);
    if (args.op().tensors[i].role == Role::in || !v.present()) continue;
    if (r >= 0) {
      const bool tokens = by_tokens(args.op(), args.op().tensors[i]);
      if (!tokens && rows_dim(args.op(), args.op().tensors[i]) != 0) continue;
      v = tokens && offsets.present() ? v.slice(0, offset(r), offset(r + 1)) : v.slice(0, r, r + 1);
    }
    const i64 size = size_of(v.dtype);
    each_row(v, [&](char* row, const i64*) {
      for (i64 j = 0; j < v.shape[v.rank - 1]; ++j) {
        char* const element = row + j * v.strides[v.rank - 1] * size;
        const i64 first = 0;
        if (one_nan && std::isnan(load_element(TensorView(element, v.dtype, {1}), &first))) bytes.append(size_t(size), '\xff');
        else bytes.append(element, size_t(size));
      }
    });
  }
  return bytes;
}

bool has_invariant_mode(const Op& op) {
  return std::any_of(op.cases.begin(), op.cases.end(), [](const CaseAxis& c) { return c.name == "batch_invariant"; });
}

}  // namespace quern::testing
