// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/kv_cache/batch_indices_positions.h"

#include "quern/base/host_dtype.h"
#include "quern/op/schema.h"
#include "quern/ops/kv_cache/batch_indices_positions/ref.h"
#include "quern/ops/kv_cache/batch_indices_positions/spec.h"

namespace quern::kv_cache {

using A = BatchIndicesPositionsArgs;

static const jit::Kernel<BatchIndicesPositionsConfig, BatchIndicesPositionsParams> token_kernel{
    "quern/ops/kv_cache/batch_indices_positions/kernel.cuh", "batch_indices_positions_token"};

static BatchIndicesPositionsParams params(const Call<A>& c) {
  const A& a = c.args;
  return {a.batch_indices.data,   a.positions.data,    a.indptr.data,         a.seq_lens.data, a.batch_indices.strides[0],
          a.positions.strides[0], a.indptr.strides[0], a.seq_lens.strides[0], a.nnz,           c.problem[Axis::batch]};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const BatchIndicesPositionsConfig config{p.dtype(&A::batch_indices), p.dtype(&A::indptr), p.dtype(&A::seq_lens), 128};
  Plan plan;
  plan.launch<params>(
      token_kernel, config,
      {.x = max_of<i64>(1, min_of<i64>(ceil_div<i64>(p.attr(&A::nnz), config.threads), i64(device.sms) * 16)), .pdl = p.pdl});
  return plan;
}

static Budget budget(const Problem&) { return {.exact = true}; }

static Cost cost(const Problem& p, const A&) {
  return {.bytes = double(p.attr(&A::nnz)) * 2 * size_of(p.dtype(&A::batch_indices)) +
                   double(p[Axis::batch]) * (size_of(p.dtype(&A::indptr)) + size_of(p.dtype(&A::seq_lens))),
          .flops = 0};
}

/// Requests of 0 tokens among others; a batch that begins behind token 0 and ends before the last one (word `padded`).
static void generate(A& a, const Case& which, Random& random) {
  const auto at = which.find("padded");
  const bool padded = at != which.end() && i64(at->second) != 0;
  const i64 tokens = a.batch_indices.shape[0], batch = a.seq_lens.shape[0];
  i64 begin = padded ? random.below(tokens / 2 + 1) : 0;
  const i64 end = padded ? begin + random.below(tokens - begin + 1) : tokens;
  for (i64 b = 0; b <= batch; ++b) {
    const i64 here[] = {b};
    store_integer(a.indptr.at(here), a.indptr.dtype, begin);
    if (b == batch) break;
    const i64 count = b + 1 == batch ? end - begin : random.below(3) == 0 ? 0 : random.below(end - begin + 1);
    store_integer(a.seq_lens.at(here), a.seq_lens.dtype, count + random.below(1000));
    begin += count;
  }
}

static Rejection countable(const Problem& p) {
  if (p.attr(&A::nnz) < 0) return {"nnz", p.attr(&A::nnz), "0 or more"};
  return {};
}

QN_OP(batch_indices_positions, A, "kv_cache.batch_indices_positions")
    .doc("batch_indices[t] = b, positions[t] = seq_lens[b] - (indptr[b + 1] - t) for the tokens t of request b; -1 and 0 for those of none")
    .attr("nnz", &A::nnz)
    .meaning("tokens: the elements of batch_indices and positions")
    .in("indptr", &A::indptr, "batch+1", {DType::i32, DType::i64})
    .values(generated())
    .strided()
    .contents(each_within("0", "nnz").ascending())
    .meaning("request b has the tokens from indptr[b] to indptr[b + 1]")
    .in("seq_lens", &A::seq_lens, "batch", {DType::i32, DType::i64})
    .values(generated())
    .strided()
    .contents(each_within("0", "2147483647"))
    .meaning("tokens of each request in the cache, those of this step included")
    .out("batch_indices", &A::batch_indices, "nnz", {DType::i32, DType::i64})
    .meaning("what append_paged reads; -1: of no request")
    .out("positions", &A::positions, "nnz", like("batch_indices"))
    .require(countable)
    .plan(plan)
    .reference<batch_indices_positions_ref>()
    .generate<generate>()
    .cost<cost>()
    .budget(budget)
    .cases({{"nnz", {33, 1, 0, 300}},
            {"batch", {4, 1, 0, 67}},
            {"padded", {0, 1}, "tokens before the first request and behind the last (1)"},
            {"indptr.dtype", {DType::i32, DType::i64}},
            {"seq_lens.dtype", {DType::i32, DType::i64}},
            {"batch_indices.dtype", {DType::i32, DType::i64}}})
    .bench({{{"nnz", 64}, {"batch", 64}}, {{"nnz", 8192}, {"batch", 64}}, {{"nnz", 65536}, {"batch", 1024}}});

}  // namespace quern::kv_cache
