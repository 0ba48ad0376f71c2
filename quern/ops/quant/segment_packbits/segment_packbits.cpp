// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/quant/segment_packbits.h"

#include <algorithm>

#include "quern/bricks/rows/plan.h"
#include "quern/op/schema.h"
#include "quern/ops/quant/segment_packbits/ref.h"
#include "quern/ops/quant/segment_packbits/spec.h"
#include "quern/ops/quant/values/values.h"

namespace quern::quant {

using A = SegmentPackbitsArgs;

static const jit::Kernel<SegmentOffsetsConfig, SegmentPackbitsParams> offsets_kernel{"quern/ops/quant/segment_packbits/kernel.cuh",
                                                                                     "segment_offsets"};
static const jit::Kernel<SegmentPackbitsConfig, SegmentPackbitsParams> chunk_kernel{"quern/ops/quant/segment_packbits/kernel.cuh",
                                                                                    "segment_packbits_chunk"};

/// A segment's bytes are summed in 32 bits.
constexpr i64 kMostBits = i64(1) << 34;

static i64 bits_of(const Problem& p) {
  static const Axis bits = axis_of("bits");
  return p[bits];
}
static i64 segments_of(const Problem& p) {
  static const Axis segments = axis_of("segments");
  return p[segments];
}

static SegmentPackbitsParams params(const Call<A>& c) {
  const A& a = c.args;
  return {.x = a.x.data,
          .indptr = a.indptr.data,
          .out = a.out.data,
          .out_indptr = a.out_indptr.data,
          .indptr_stride = a.indptr.strides[0],
          .bits = a.x.shape[0],
          .segments = a.indptr.shape[0] - 1,
          .bytes = a.out.shape[0]};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  const SegmentOffsetsConfig offsets{p.dtype(&A::indptr), 256};
  const SegmentPackbitsConfig config{p.attr(&A::bit_order), p.dtype(&A::indptr), {1, 4}, 128};
  const i64 bytes = ceil_div<i64>(bits_of(p), 8) + segments_of(p);
  Plan plan;
  plan.launch<params>(offsets_kernel, offsets, {.x = 1, .smem = segment_offsets_smem_bytes(offsets.threads), .pdl = p.pdl});
  if (bytes > 0)
    plan.launch<params>(chunk_kernel, config,
                        {.x = rows::chunk_blocks(config.chunks, config.threads, {1, bytes}, device), .pdl = device.arch.number >= 90});
  return plan;
}

static Rejection sums_fit(const Problem& p) {
  return bits_of(p) <= kMostBits ? Rejection{} : Rejection{"bits", bits_of(p), "at most {}", kMostBits};
}

/// Segments that cover x, some of them empty; with the word `gaps` 1 they begin behind the first element and end before the last. With
/// `broken` 1 bounds lie anywhere.
static void generate(A& a, const Case& which, Random& random) {
  put_bools(a.x, random);
  const auto word = [&](const char* name) {
    const auto at = which.find(name);
    return at != which.end() && at->second != 0;
  };
  const i64 bits = a.x.shape[0], segments = a.indptr.shape[0] - 1;
  std::vector<i64> bounds(size_t(segments + 1));
  for (i64& bound : bounds) bound = word("broken") ? random.below(3 * bits + 3) - bits : random.below(bits + 1);
  if (!word("broken")) {
    if (!word("gaps")) bounds.front() = 0, bounds.back() = bits;
    if (segments > 2) bounds[1] = bounds[2];
    std::sort(bounds.begin(), bounds.end());
  }
  for (i64 s = 0; s <= segments; ++s) {
    const i64 at[] = {s};
    store_integer(a.indptr.at(at), a.indptr.dtype, bounds[size_t(s)]);
  }
}

QN_OP(segment_packbits, A, "quant.segment_packbits")
    .doc(
        "the elements indptr[s] to indptr[s + 1] of x become bits of the bytes out_indptr[s] to out_indptr[s + 1] of out, as packbits orders them; bytes behind the last segment are 0")
    .in("x", &A::x, "bits", {DType::u8})
    .values(generated())
    .contents(each_within("0", "255"))
    .meaning("bools as bytes; whatever is not 0 is 1")
    .in("indptr", &A::indptr, "segments+1", {DType::i32, DType::i64})
    .values(generated())
    .strided()
    .contents(each_within("0", "bits").ascending())
    .meaning("segment s has the elements from indptr[s] to indptr[s + 1]")
    .out("out", &A::out, "ceil_div(bits,8)+segments", {DType::u8})
    .meaning("as many bytes as so many segments can need")
    .out("out_indptr", &A::out_indptr, "segments+1", like("indptr"))
    .attr("bit_order", &A::bit_order)
    .words({"big", "little"})
    .meaning("big: the first of eight elements is bit 7, as NumPy has it; little: bit 0, as masks have it")
    .require(sums_fit)
    .plan(plan)
    .reference<segment_packbits_ref>()
    .generate<generate>()
    .exact("bits are integers: other number types have none")
    .broken_contents("broken", 1)
    .cases({{"bits", {1000, 0, 1, 7, 64, 4097, 20001}},
            {"segments", {3, 0, 1, 40, 300}},
            {"bit_order", {0, 1}},
            {"gaps", {0, 1}, "elements before the first segment and behind the last (1)"},
            {"broken", {0, 1}, "bounds in any order, some outside of x (1)"},
            {"indptr.dtype", {DType::i32, DType::i64}},
            {"x.shift", {0, 1}}})
    .bench({{{"bits", 1 << 16}, {"segments", 8}}, {{"bits", 1 << 22}, {"segments", 64}}, {{"bits", 1 << 28}, {"segments", 256}}});

}  // namespace quern::quant
