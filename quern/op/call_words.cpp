// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/call_words.h"

#include <fmt/format.h>

#include <cmath>

namespace quern {

namespace {

class Words {
 public:
  void add(const std::string& name, const std::string& value) { text_ += (text_.empty() ? "" : " ") + name + "=" + value; }
  void add(const std::string& name, i64 value) { add(name, std::to_string(value)); }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

void add_axes(const Op& op, const void* args, Words& words) {
  u64 seen = 0;
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorDef& t = op.tensors[i];
    const TensorView& view = op.tensor(args, i);
    for (int d = 0; d < t.rank && view.present(); ++d) {
      const Extent& e = t.extents[d];
      if (!e.tells_axis() || seen >> e.slot & 1) continue;
      seen |= u64(1) << e.slot;
      words.add(name(e.axis), (view.shape[d] - e.offset) / e.factor);
    }
  }
}

/// What the case language can say of strides and address: the innermost dims swapped, rows padded, the start shifted.
void add_layout(const TensorDef& t, const TensorView& view, Words& words) {
  const int last = view.rank - 1;
  const auto swapped = [&](int outer, int inner) {
    return view.shape[outer] > 1 && view.shape[inner] > 1 && view.strides[outer] < view.strides[inner];
  };
  if (view.rank > 2 && swapped(last - 2, last - 1)) words.add(t.name + ".swap", "true");
  const bool one_row = view.rank > 1 && view.shape[last - 1] <= 1 && view.shape[last] > 1 && view.strides[last] > 1;
  if (view.rank > 1 && (t.strided ? one_row || swapped(last - 1, last) : lies_transposed(t, view))) {
    words.add(t.name + ".transposed", "true");
    if (const i64 pad = view.strides[last] - max_of<i64>(1, view.shape[last - 1]); pad > 0) words.add(t.name + ".pad", pad);
  } else {
    i64 row = 0;  // from one innermost row to the next; extents of 1 have strides of no meaning
    for (int d = 0; d < last; ++d)
      if (view.shape[d] > 1 && (row == 0 || view.strides[d] < row)) row = view.strides[d];
    if (row > view.shape[last]) words.add(t.name + ".pad", row - view.shape[last]);
  }
  if (const u64 shift = u64(reinterpret_cast<uintptr_t>(view.data)) % 16 / u64(size_of(view.dtype)))
    words.add(t.name + ".shift", i64(shift));
}

void add_tensors(const Op& op, const void* args, Words& words) {
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorDef& t = op.tensors[i];
    const TensorView& view = op.tensor(args, i);
    if (t.any_shape()) continue;
    if (t.optional) words.add(t.name + ".present", view.present() ? "true" : "false");
    if (!view.present()) continue;
    if (t.dtypes.size() + size_t(t.like >= 0) > 1) words.add(t.name + ".dtype", name(view.dtype));
    add_layout(t, view, words);
  }
}

}  // namespace

std::string call_words(const Op& op, const void* args, const RunOptions& options) {
  Words words;
  add_axes(op, args, words);
  add_tensors(op, args, words);
  for (const AttrDef& a : op.attrs) {
    const Scalar value = attr_value(a, args);
    if (value >= 0 && value < double(a.words.size())) words.add(a.name, a.words[size_t(value)]);
    else if (a.kind == AttrDef::Kind::f32) words.add(a.name, fmt::format("{}", float(value)));
    else words.add(a.name, i64(value));
  }
  if (options.batch_invariant) words.add("batch_invariant", "true");
  if (options.pdl) words.add("pdl", "true");
  if (options.variant) words.add("variant", options.variant);
  return std::move(words).text();
}

}  // namespace quern
