// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/topk/ragged_transform.h"

#include "quern/ops/topk/ragged_transform/ref.h"
#include "quern/ops/topk/select_row/select_row.h"

namespace quern::topk {

using A = RaggedTransformArgs;

static SelectParams params(const Call<A>& c) {
  const A& a = c.args;
  SelectParams p = row_params(a);
  p.out = static_cast<i32*>(a.out.data), p.out_stride = a.out.strides[0];
  p.offsets = integers(a.offsets);
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) { return plan_rows<params, A>(p, device, Ending::ragged); }

/// The largest offset of a row of so many elements.
static i64 largest_offset(i64 length) { return i64(2147483647) - max_of<i64>(0, length - 1); }

/// A row's part lies in x, and i32 holds its places.
static Breach contract(const A& a, const Problem&) {
  if (const Breach breach = rows_contract(a)) return breach;
  for (i64 row = 0; row < a.x.shape[0]; ++row) {
    const i64 length = length_of(a, row), offset = Ref(a.offsets).index(row);
    if (offset > largest_offset(length))
      return {"offsets", {row}, offset, range_text(0, largest_offset(length)) + ", as the row has " + std::to_string(length) + " elements"};
  }
  return {};
}

/// Offsets up to the largest. With the word `beyond` some are negative or so large that i32 does not hold all sums.
static void generate(A& a, const Case& which, Random& random) {
  generate_rows(a.x, a.lengths, a.row_starts, random);
  const auto word = which.find("beyond");
  const bool beyond = word != which.end() && word->second != 0;
  for (i64 row = 0; row < a.x.shape[0]; ++row) {
    const i64 largest = largest_offset(length_of(a, row)), none[] = {-1, -500, 2147483647, 2147483647 - a.x.shape[1] / 2}, at[] = {row};
    i64 offset = random.below(3) ? random.below(100000) : random.below(2) ? largest : random.below(largest);
    if (beyond && random.below(2)) offset = none[random.below(4)];
    store_integer(a.offsets.at(at), DType::i32, offset);
  }
}

static Cost cost(const Problem& p, const A& a) { return rows_cost(p, a, 4); }

QN_OP(ragged_transform, A, "topk.ragged_transform")
    .doc("out = index + offsets[row] of the k largest of each row, by ascending index; -1 where a row has fewer")
    .with(state_rows<A>)
    .in("offsets", &A::offsets, "rows", {DType::i32})
    .values(generated())
    .contents(each_within("0", "2147483647"))
    .meaning("what is added to the indices of each row; i32 holds the sums")
    .with(state_k<A>)
    .out("out", &A::out, "rows k", {DType::i32})
    .meaning("-1 also of a sum that is negative or beyond i32")
    .rows(axis_of("rows"))
    .require(sizes_fit<A>)
    .plan(plan)
    .reference<ragged_transform_ref>()
    .generate<generate>()
    .contract<contract>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .exact(kWhyExact)
    .cases(rows_cases({{"beyond", {0, 1}, "some offsets are negative or too large (1)"}, {"out.pad", {0, 1}}}))
    .bench({{{"rows", 1}, {"length", 131072}, {"k", 2048}, {"lengths.present", 0}},
            {{"rows", 64}, {"length", 131072}, {"k", 2048}, {"lengths.present", 0}},
            {{"rows", 256}, {"length", 131072}, {"k", 2048}, {"lengths.present", 0}}});

}  // namespace quern::topk
