// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/attention/merge_states.h"

#include <cmath>
#include <limits>

#include "quern/op/schema.h"
#include "quern/ops/attention/merge_states/ref.h"
#include "quern/ops/attention/merge_states/spec.h"

namespace quern::attention {

using A = MergeStatesArgs;

static const jit::Kernel<MergeStatesConfig, MergeStatesParams> row_kernel{"quern/ops/attention/merge_states/kernel.cuh",
                                                                          "merge_states_row"};

static Rejection both_others(const Problem& p) {
  const bool v = p.tensor(&A::v_other).present, lse = p.tensor(&A::lse_other).present;
  if (v == lse) return {};
  return {v ? "lse_other" : "v_other", "absent", v ? "a tensor, as v_other is given" : "a tensor, as lse_other is given"};
}

static MergeStatesParams params(const Call<A>& c) {
  const A& a = c.args;
  const Problem& p = c.problem;
  MergeStatesParams to{};
  to.v = a.v.data, to.lse = static_cast<const float*>(a.lse.data);
  to.v_other = a.v_other.data, to.lse_other = static_cast<const float*>(a.lse_other.data);
  to.mask = static_cast<const u8*>(a.mask.data);
  to.out = a.out.data, to.out_lse = static_cast<float*>(a.out_lse.data);
  for (int d = 0; d < 3; ++d) to.v_strides[d] = a.v.strides[d], to.lse_strides[d] = a.lse.strides[d];
  for (int d = 0; d < 2; ++d) {
    to.v_other_strides[d] = a.v_other.strides[d], to.lse_other_strides[d] = a.lse_other.strides[d];
    to.out_strides[d] = a.out.strides[d], to.out_lse_strides[d] = a.out_lse.strides[d];
  }
  to.mask_stride = a.mask.strides[0];
  to.rows = p[Axis::tokens] * p[Axis::heads_q];
  to.parts = i32(a.v.shape[0]), to.heads = i32(p[Axis::heads_q]), to.head_dim = i32(p[Axis::head_dim]);
  return to;
}

static Rejection countable(const Problem& p) {
  static const Axis parts = axis_of("parts");
  for (const Axis axis : {parts, Axis::heads_q, Axis::head_dim})
    if (p[axis] >= (i64(1) << 30)) return {name(axis), p[axis], "below 2^30", 0};
  return {};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  i32 vector = min_of(p.vector(&A::v), p.vector(&A::out));
  if (p.tensor(&A::v_other).present) vector = min_of(vector, p.vector(&A::v_other));
  while (p[Axis::head_dim] % vector) vector /= 2;
  const MergeStatesConfig config{p.dtype(&A::v), p.dtype(&A::out), vector, p.attr(&A::lse_base) == LseBase::e, 128};
  Plan plan;
  plan.launch<params>(
      row_kernel, config,
      {.x = max_of<i64>(1, min_of<i64>(ceil_div<i64>(p[Axis::tokens] * p[Axis::heads_q], config.threads / 32), i64(device.sms) * 16)),
       .pdl = p.pdl});
  return plan;
}

/// One rounding of the result. Of the terms' magnitude: ex2 in a weight and in their sum (2^-22 each), rcp (2^-23), and in a weight 2^-x
/// the roundings of x, of its product with log2(e) and of log2(e) itself: 3 * 2^-24 * x 2^-x ln 2, at most 2^-23 for a weight and its sum
/// together. A rounding of 2^-24 for each part in the sum of weights and in that of values, and two of products.
static Budget budget(const Problem& p) {
  static const Axis parts = axis_of("parts");
  const double added = double(p[parts] + 1);  // v_other too
  return {.of_value = unit_roundoff(p.dtype(&A::out)), .of_magnitude = 0x1p-21 + 0x1p-23 + 0x1p-23 + (added + 1) * 0x1p-23};
}

/// v of the parts, lse of all, and out.
static Cost cost(const Problem& p, const A& a) {
  const double rows = double(p[Axis::tokens]) * double(p[Axis::heads_q]), dim = double(p[Axis::head_dim]),
               parts = double(a.v.shape[0] + a.v_other.present());
  return {.bytes = rows * (parts * (dim * size_of(p.dtype(&A::v)) + 4) + dim * size_of(p.dtype(&A::out)) + 4 * a.out_lse.present()),
          .flops = 2 * rows * dim * parts};
}

/// Words: empty 1: parts of some rows are empty, told by -inf or inf, and their v is NaN; 2: all parts are. Lse lie within 20 of each
/// other, around the word shift.
static void generate(A& a, const Case& which, Random& random) {
  const auto at = which.find("empty");
  const auto shift = which.find("shift");
  const double middle = shift == which.end() ? 0 : double(shift->second);
  const i64 empty = at == which.end() ? 0 : i64(at->second), proof = which.contains("proof") ? i64(which.at("proof")) : 0;
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (i64 t = 0; a.mask.present() && t < a.mask.shape[0]; ++t)
    static_cast<u8*>(a.mask.data)[t * a.mask.strides[0]] = u8(random.below(2) ? 0 : 1 + random.below(255));
  if (proof != 0) return;
  for (i64 i = 0; i <= a.v.shape[0]; ++i) {
    const bool other = i == a.v.shape[0];
    if (other && !a.v_other.present()) continue;
    for (i64 t = 0; t < a.out.shape[0]; ++t)
      for (i64 h = 0; h < a.out.shape[1]; ++h) {
        const bool none = empty == 2 || (empty == 1 && random.below(3) == 0);
        const double lse = none ? (random.below(2) ? infinity : -infinity) : middle + 10 * random.uniform();
        const i64 here[] = {i, t, h}, there[] = {t, h};
        store_element(other ? a.lse_other : a.lse, other ? there : here, lse);
        for (i64 d = 0; none && d < a.out.shape[2]; ++d) {
          const i64 element[] = {i, t, h, d};
          store_element(other ? a.v_other : a.v, other ? element + 1 : element, nan);
        }
      }
  }
}

static void derive(Case& which) {
  which["v_other.present"] = which["lse_other.present"] = which["other"] != 0;
  if (which["other"] == 0) which["out.in_place"] = which["out_lse.in_place"] = 0;
  if (which["out.in_place"] != 0) which["out.dtype"] = which["v.dtype"];
  which.erase("other");
}

QN_OP(merge_states, A, "attention.merge_states")
    .doc("out = sum_i w_i v_i / sum_i w_i, w_i = base^(lse_i - max lse), out_lse = max lse + log_base(sum_i w_i)")
    .source("Ye et al., FlashInfer: Efficient and Customizable Attention Engine for LLM Inference Serving, arXiv 2501.01005")
    .in("v", &A::v, "parts tokens heads_q head_dim", {DType::f32, DType::f16, DType::bf16})
    .meaning("out of attention over each part of the keys")
    .in("lse", &A::lse, "parts tokens heads_q", {DType::f32})
    .meaning("log-sum-exp of each part; -inf and inf: the part is empty, and its v is not read")
    .strided()
    .in("v_other", &A::v_other, "tokens heads_q head_dim", like("v"))
    .optional()
    .meaning("one part more, as the result of an earlier merge; with lse_other")
    .in("lse_other", &A::lse_other, "tokens heads_q", {DType::f32})
    .optional()
    .strided()
    .in("mask", &A::mask, "tokens", {DType::u8})
    .optional()
    .strided()
    .values(generated())
    .contents(each_within("0", "255"))
    .meaning("0 leaves the token's out and out_lse as they are")
    .out("out", &A::out, "tokens heads_q head_dim", like("v", {DType::f32, DType::f16, DType::bf16}))
    .may_be("v_other")
    .out("out_lse", &A::out_lse, "tokens heads_q", {DType::f32})
    .may_be("lse_other")
    .optional()
    .strided()
    .within({.of_value = 0x1p-22, .absolute = 0x1p-19})
    .attr("lse_base", &A::lse_base)
    .words({"two", "e"})
    .meaning("what lse, lse_other and out_lse are logarithms to: that of the calls that made them")
    .rows(Axis::tokens)
    .require(both_others)
    .require(countable)
    .plan(plan)
    .reference<merge_states_ref>()
    .generate<generate>()
    .cost<cost>()
    .budget(budget)
    .cases({{"parts", {2, 1, 0, 3, 21}},
            {"tokens", {3, 1, 0, 33}},
            {"heads_q", {8, 1, 3}},
            {"head_dim", {128, 64, 80, 7, 512}},
            {"v.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"lse_base", {0, 1}},
            {"empty", {0, 1, 2}, "some parts are empty (1) or all (2), and their v is NaN"},
            {"shift", {0, 1000}, "added to every lse"},
            {"other", {false, true}, "v_other and lse_other are given"},
            {"mask.present", {false, true}},
            {"out_lse.present", {true, false}},
            {"v.pad", {0, 8, 1}},
            {"lse.transposed", {false, true}},
            {"out.pad", {0, 8, 1}}},
           derive)
    .bench({{{"parts", 2}, {"tokens", 64}, {"heads_q", 32}, {"head_dim", 128}},
            {{"parts", 2}, {"tokens", 8192}, {"heads_q", 32}, {"head_dim", 128}},
            {{"parts", 8}, {"tokens", 1024}, {"heads_q", 64}, {"head_dim", 128}}});

}  // namespace quern::attention
