// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/break_args.h"

#include <algorithm>

namespace quern::testing {

namespace {

bool allowed_dtype(const Op& op, const void* args, const TensorDef& t, DType dtype) {
  const auto has = [dtype](const std::vector<DType>& known) { return std::find(known.begin(), known.end(), dtype) != known.end(); };
  if (has(t.dtypes)) return true;
  if (t.like < 0) return false;
  const TensorView& other = op.tensor(args, size_t(t.like));
  return other.present() ? other.dtype == dtype : has(op.tensors[size_t(t.like)].dtypes);
}

void wrong_rank(TensorView& v, Random& random, Broken& b) {
  b.kind = "rank";
  b.must_fail = true;
  if (v.rank < kMaxRank && random.below(2)) v.shape[v.rank] = 1, v.strides[v.rank] = 1, ++v.rank;
  else if (v.rank > 1) --v.rank;
  else v.shape[1] = 2, v.strides[1] = 1, v.rank = 2;
}

void wrong_dtype(const Op& op, const void* args, const TensorDef& t, TensorView& v, Random& random, Broken& b) {
  const DType dtype = DType(random.below(kDTypeCount));
  b.kind = "dtype";
  if (dtype == v.dtype) return;
  b.may_run = false;
  b.must_fail = !allowed_dtype(op, args, t, dtype);
  v.dtype = dtype;
}

void wrong_extent(const TensorDef& t, TensorView& v, Random& random, Broken& b) {
  const int d = int(random.below(v.rank));
  b.kind = "extent";
  b.may_run = false;
  const i64 change[] = {-1, 1, -v.shape[d] - 1, i64(1) << 40, (i64(1) << 62) + 1};
  v.shape[d] += change[random.below(5)];
  b.must_fail = !t.extents[d].tells_axis() || v.shape[d] < 0;
}

void wrong_stride(const TensorDef& t, TensorView& v, Random& random, Broken& b) {
  const int d = int(random.below(v.rank));
  const bool seen = v.numel() > 0 && v.shape[d] > 1;
  if (random.below(2)) {
    b.kind = "negative stride";
    v.strides[d] = -v.strides[d];
    b.must_fail = seen;
  } else {
    b.kind = "zero stride";
    v.strides[d] = 0;
    const auto dense = [&](int at) { return v.shape[at] == 1 || v.strides[at] == 1; };
    const bool dense_rows = dense(v.rank - 1) || (t.either_major && dense(v.rank - 2));
    b.must_fail = seen && (t.role != Role::in || (!dense_rows && !t.strided));
  }
}

void wrong_pointer(TensorView& v, Random& random, Broken& b) {
  if (random.below(2)) {
    b.kind = "null data";
    v.data = nullptr;
    b.must_fail = v.numel() > 0;
  } else {
    b.kind = "misaligned pointer";
    b.must_fail = v.numel() > 0 && size_of(v.dtype) > 1;
    b.may_run = false;
    v.data = static_cast<char*>(v.data) + 1;
  }
}

void wrong_place(const Op& op, const void* args, const std::string& name, TensorView& v, Broken& b) {
  b.kind = "device";
  b.may_run = false;
  for (size_t i = 0; i < op.tensors.size(); ++i) b.must_fail |= op.tensors[i].name != name && op.tensor(args, i).present();
  v.device = {DeviceType::cuda, 7};
}

}  // namespace

Broken break_args(const Op& op, void* args, RunOptions& options, Random& random) {
  Broken b;
  std::vector<size_t> present;
  for (size_t i = 0; i < op.tensors.size(); ++i)
    if (op.tensor(args, i).present()) present.push_back(i);
  if (present.empty()) return b;
  const size_t i = present[size_t(random.below(i64(present.size())))];
  const TensorDef& t = op.tensors[i];
  TensorView& v = op.tensor(args, i);
  b.tensor = t.name;
  // Of two views of one memory (out in the place of x) only one is broken: what the call computes then is anybody's guess.
  bool shared = false;
  for (const size_t j : present) shared |= j != i && op.tensor(args, j).data == v.data;
  switch (random.below(9)) {
    case 0: wrong_rank(v, random, b); break;
    case 1: wrong_dtype(op, args, t, v, random, b); break;
    case 2: wrong_extent(t, v, random, b); break;
    case 3: wrong_stride(t, v, random, b); break;
    case 4: wrong_pointer(v, random, b); break;
    case 5: wrong_place(op, args, t.name, v, b); break;
    case 6:
      b.kind = "missing tensor";
      b.must_fail = !t.optional;
      b.may_run = false;  // others may belong to it
      v = TensorView();
      break;
    case 7:
      b.kind = "unknown variant";
      b.must_fail = true;
      options.variant = "no such variant";
      break;
    default: b.kind = "small workspace"; b.small_workspace = true;
  }
  if (shared) b.may_run = false;
  return b;
}

}  // namespace quern::testing
