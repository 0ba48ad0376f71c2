// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What ops say to the host of the kernel norm_row_backward: plan, parameters, budget, cases. A is an op's Args; members that it lacks are
// forms that it lacks.
#pragma once
#include <cmath>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/bricks/parts/plan.h"
#include "quern/op/schema.h"
#include "quern/ops/norm/norm_row_backward/spec.h"

namespace quern::norm {

extern const jit::Kernel<NormRowBackwardConfig, NormRowBackwardParams> norm_row_backward_kernel;

template <class A> constexpr bool kHasDbias = requires(const A& a) { a.dbias; };
template <class A> constexpr bool kHasDresidual = requires(const A& a) { a.dresidual; };
/// What was normalised: x, or the sum that a fused op left in residual.
template <class A> constexpr TensorView A::* normed_input() {
  if constexpr (kHasDresidual<A>) return &A::residual;
  else return &A::x;
}

/// How rows lie over threads, from dtype, alignment class and the bucket of hidden alone, so a row's bits do not depend on how many rows
/// there are. Writes what stands behind `vector`, which it may make smaller.
void lay_rows(NormRowBackwardConfig& config, i64 hidden);
/// Blocks, each of which makes a part of dw and dbias: as many as 512 threads an SM make. By the bucket of hidden, not by alignment: that
/// leaves the order of their sums alone.
i64 backward_blocks(const NormRowBackwardConfig& config, i64 tokens, i32 sms);

/// For both launches: sums over rows, one of each block of the first.
struct RowSums {
  Region parts;
  i64 count = 0;
};
/// Elements of a block's part: dw, then dbias, as far as there are these.
template <class A> i64 row_sums_stride(const Problem& p, i32 sums) { return sums * parts::part_elements(p[Axis::hidden]); }
template <class A> bool has_dbias(const Problem& p) {
  if constexpr (kHasDbias<A>) return p.tensor(&A::dbias).present != 0;
  else return false;
}

template <class A> NormRowBackwardParams norm_backward_params(const Call<A, RowSums>& c) {
  const A& a = c.args;
  const TensorView& x = a.*normed_input<A>();
  const auto& config = c.template config<NormRowBackwardConfig>();
  NormRowBackwardParams p{};
  p.dy = a.dy.data, p.x = x.data, p.weight = a.weight.data, p.dx = a.dx.data, p.parts = c.region(c.choice.parts);
  p.dy_stride = a.dy.strides[0], p.x_stride = x.strides[0], p.dx_stride = a.dx.strides[0];
  if constexpr (kHasDresidual<A>) p.dresidual = a.dresidual.data, p.dresidual_stride = a.dresidual.strides[0];
  p.part_stride = row_sums_stride<A>(c.problem, row_sums(config));
  p.dbias_part = config.with_dw ? parts::part_elements(c.problem[Axis::hidden]) : 0;
  p.tokens = c.problem[Axis::tokens], p.hidden = c.problem[Axis::hidden], p.eps = a.eps;
  if constexpr (requires { a.weight_bias; }) p.weight_bias = a.weight_bias;
  return p;
}

template <class A> parts::SumPartsParams norm_sums_params(const Call<A, RowSums>& c) {
  const A& a = c.args;
  const i64 hidden = c.problem[Axis::hidden];
  const bool dw = a.dw.present();
  parts::SumPartsParams p{c.region(c.choice.parts), {a.dw.data, nullptr}, 0, parts::part_elements(hidden), hidden, c.choice.count};
  i32 sums = dw;
  if constexpr (kHasDbias<A>)
    if (a.dbias.present()) p.out[dw] = a.dbias.data, ++sums;
  p.part_stride = row_sums_stride<A>(c.problem, sums);
  return p;
}

template <class A> Plan plan_norm_backward(const Problem& p, const DeviceInfo& device) {
  const i64 hidden = p[Axis::hidden], tokens = p[Axis::tokens];
  NormRowBackwardConfig c{};
  c.dtype = p.dtype(&A::dy), c.weight_dtype = p.dtype(&A::weight);
  c.centred = kHasDbias<A>, c.add_gradient = kHasDresidual<A>;
  c.with_weight = p.tensor(&A::weight).present, c.with_dw = p.tensor(&A::dw).present, c.with_dbias = has_dbias<A>(p);
  c.vector = min_of(min_of(p.vector(&A::dy), p.vector(normed_input<A>())), p.vector(&A::dx));
  if constexpr (kHasDresidual<A>) c.vector = min_of(c.vector, p.vector(&A::dresidual));
  // Wider weights are read by accesses of 16 bytes, where these are aligned
  const TensorFacts& weight = p.tensor(&A::weight);
  if (c.with_weight && weight.alignment < min_of(16, c.vector * size_of(weight.dtype)))
    c.vector = max_of(1, weight.alignment / size_of(weight.dtype));
  if (!c.with_weight) c.weight_dtype = c.dtype;
  lay_rows(c, hidden);
  const i64 blocks = backward_blocks(c, tokens, device.sms);
  const i32 sums = row_sums(c);
  Plan plan;
  RowSums choice;
  if (sums && blocks > 0) choice = {plan.scratch("parts of dw and dbias", blocks * row_sums_stride<A>(p, sums) * 4), blocks};
  if (blocks > 0)
    plan.launch<norm_backward_params<A>>(norm_row_backward_kernel, c, {.x = blocks, .smem = norm_row_backward_smem(c).bytes, .pdl = p.pdl},
                                         choice);
  if (!sums) return plan;
  DType dtype = p.dtype(&A::dw);
  if constexpr (kHasDbias<A>)
    if (!c.with_dw) dtype = p.dtype(&A::dbias);
  const parts::SumPartsConfig sum = parts::sum_parts_config(dtype, hidden);
  plan.launch<norm_sums_params<A>>(parts::sum_parts_kernel, sum, parts::sum_parts_grid(sum, hidden, sums, blocks > 0, p, device), choice);
  return plan;
}

/// What a centred norm's backward ops have alike behind dx.
template <class A> Schema<A>& state_centred_gradients(Schema<A>& schema) {
  return schema.out("dw", &A::dw, "hidden", like("weight", {DType::f32}))
      .optional()
      .out("dbias", &A::dbias, "hidden", like("weight", {DType::f32}))
      .optional()
      .meaning("of dw's dtype")
      .attr("eps", &A::eps)
      .meaning("added to the mean square, from 0 to 1e30");
}
/// One dtype for both, as one kernel adds them up.
template <class A> Rejection dbias_like_dw(const Problem& p) {
  if (!p.tensor(&A::dw).present || !p.tensor(&A::dbias).present || p.dtype(&A::dw) == p.dtype(&A::dbias)) return {};
  return {"dbias", name(p.dtype(&A::dbias)), "the dtype of dw"};
}

/// One rounding of the result. Of the terms' magnitude, dx of an rms norm: r is right to 2^-19 (as in rms_norm) and enters the second term
/// three times; the mean of g * x is a tree of at most 64 roundings (2^-18), and there are fewer than 8 more; together under 2^-16.5. Where
/// centred, the mean of x is such a tree, 2^-18 of the mean of |x|, which the magnitude counts twice; so is the mean of g: under 2^-15.5.
/// dw, dbias: one r and one mean, and sums of independent roundings along the rows of a block, 32 lanes and at most a few hundred parts.
template <class A> Budget norm_backward_budget(const Problem& p) {
  return {.of_value = 0, .of_magnitude = max_of(kHasDbias<A> ? 0x1p-15 : 0x1p-16, (96 + 2 * std::sqrt(double(p[Axis::tokens]))) * 0x1p-24)};
}

/// Heeds the words of the cases.
inline void derive_norm_backward(Case& which) {
  if (which["dw_f32"] != 0) which["dw.dtype"] = which["dbias.dtype"] = int(DType::f32);
  if (which["wide_weight"] != 0) which["weight.dtype"] = int(DType::f32);
}
/// What the cases of these ops have in common.
inline std::vector<CaseAxis> norm_backward_cases(std::vector<CaseAxis> others) {
  std::vector<CaseAxis> all = {{"tokens", {3, 0, 1, 64, 301}},
                               {"hidden", {4096, 1, 7, 64, 65, 96, 127, 160, 320, 768, 1023, 2056, 8192, 12000, 20000}},
                               {"dy.dtype", {DType::bf16, DType::f16, DType::f32}},
                               {"dw.present", {true, false}},
                               {"dw_f32", {false, true}, "the sums over rows are f32"},
                               {"wide_weight", {0, 1}, "the weight is f32"},
                               {"dy.pad", {0, 8, 3}},
                               {"dx.pad", {0, 16, 1}}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}
/// Adds the case's word `offset` to what is normalised: a large mean beside small deviations.
template <class A> void generate_offset(A& args, const Case& which, Random&) {
  const auto offset = which.find("offset"), proof = which.find("proof");
  if (offset == which.end() || offset->second == 0 || (proof != which.end() && proof->second != 0)) return;
  const TensorView& x = args.*normed_input<A>();
  for (i64 t = 0; t < x.shape[0]; ++t)
    for (i64 h = 0; h < x.shape[1]; ++h) {
      const i64 at[] = {t, h};
      store_value(x.at(at), x.dtype, load_value(x.at(at), x.dtype) + double(offset->second));
    }
}
inline std::vector<Case> norm_backward_bench() {
  return {{{"tokens", 1}, {"hidden", 4096}},    {{"tokens", 64}, {"hidden", 4096}},    {{"tokens", 256}, {"hidden", 8192}},
          {{"tokens", 8192}, {"hidden", 4096}}, {{"tokens", 16384}, {"hidden", 8192}}, {{"tokens", 65536}, {"hidden", 4096}}};
}

}  // namespace quern::norm
