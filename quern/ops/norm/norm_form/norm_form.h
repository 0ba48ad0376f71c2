// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What ops say to the host of the kernel norm_row_form: plan, parameters, conditions, cases. A is an op's Args; members that it lacks are
// forms that it lacks.
#pragma once
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/bricks/rows/plan.h"
#include "quern/op/fp8_output.h"
#include "quern/op/schema.h"
#include "quern/ops/norm/norm_form/spec.h"
#include "quern/ops/norm/norm_row/norm_row.h"

namespace quern::norm {

extern const jit::Kernel<NormFormConfig, NormFormParams> norm_form_kernel;

template <class A> constexpr bool kHasResidual = requires(const A& a) { a.residual; };
template <class A> constexpr bool kHasBias = requires(const A& a) { a.bias; };
template <class A> constexpr bool kHasFp8 = requires(const A& a) { a.static_scale; };
template <class A> constexpr bool kHasWeightBias = requires(const A& a) { a.weight_bias; };

template <class A> Fp8Scales fp8_scales_of(const Problem& p) {
  if constexpr (kHasFp8<A>) {
    if (p.tensor(&A::static_scale).present) return Fp8Scales::tensor;
    if (p.tensor(&A::token_scales).present) return Fp8Scales::token;
    if (p.tensor(&A::scales).present) return Fp8Scales::group;
  }
  return Fp8Scales::none;
}

/// An out that is e4m3 comes with one kind of scale, and no other does.
template <class A> Rejection one_kind_of_scales(const Problem& p) {
  const bool group = p.tensor(&A::scales).present, token = p.tensor(&A::token_scales).present, tensor = p.tensor(&A::static_scale).present;
  if (p.dtype(&A::out) != DType::e4m3) {
    if (group) return {"scales", "given", "none: `out` is not e4m3"};
    if (token) return {"token_scales", "given", "none: `out` is not e4m3"};
    if (tensor) return {"static_scale", "given", "none: `out` is not e4m3"};
    return {};
  }
  if (!group && !token && !tensor) return {"scales", "absent", "a tensor: `out` is e4m3"};
  if (tensor && group) return {"scales", "given", "none beside static_scale"};
  if (tensor && token) return {"token_scales", "given", "none beside static_scale"};
  if (group && token) return {"token_scales", "given", "none beside scales"};
  return {};
}

/// One dtype for both, by which the kernel reads them.
template <class A> Rejection bias_like_weight(const Problem& p) {
  if (!p.tensor(&A::weight).present || !p.tensor(&A::bias).present || p.dtype(&A::weight) == p.dtype(&A::bias)) return {};
  return {"bias", name(p.dtype(&A::bias)), "the dtype of weight"};
}

/// Results are then finite where weights are.
template <class A> Rejection weight_bias_fits(const Problem& p) {
  const float bias = p.attr(&A::weight_bias);
  return bias >= -1e30f && bias <= 1e30f ? Rejection{} : Rejection{"weight_bias", bias, "a number from -1e30 to 1e30"};
}

template <class A> NormFormParams norm_form_params(const Call<A>& c) {
  const A& a = c.args;
  const int last = a.x.rank - 1;
  NormFormParams p{};
  p.x = a.x.data, p.weight = a.weight.data, p.out = a.out.data;
  p.x_stride = a.x.strides[0], p.out_stride = a.out.strides[0];
  p.rows = a.x.shape[0], p.heads = 1, p.hidden = a.x.shape[last];
  if (last == 2) p.rows *= a.x.shape[1], p.heads = a.x.shape[1], p.x_head_stride = a.x.strides[1], p.out_head_stride = a.out.strides[1];
  if constexpr (kHasResidual<A>) p.residual = a.residual.data, p.residual_stride = a.residual.strides[0];
  if constexpr (kHasBias<A>) p.bias = a.bias.data;
  if constexpr (kHasWeightBias<A>) p.weight_bias = a.weight_bias;
  if constexpr (kHasFp8<A>) {
    const TensorView& scales = a.static_scale.present() ? a.static_scale : a.token_scales.present() ? a.token_scales : a.scales;
    p.scales = scales.data, p.scale_strides[0] = scales.strides[0], p.scale_strides[1] = scales.strides[1];
    p.amax_floor = a.amax_floor;
  }
  p.eps = a.eps;
  return p;
}

/// `hidden` is the extent of the dimension that is normalised; rows are those of all others.
template <class A> Plan plan_norm_form(const Problem& p, const DeviceInfo& device, bool centred, i64 rows, i64 hidden, bool heads = false) {
  NormFormConfig c{};
  c.dtype = p.dtype(&A::x), c.out_dtype = p.dtype(&A::out), c.weight_dtype = c.dtype;
  c.centred = centred, c.heads = heads, c.scales = fp8_scales_of<A>(p);
  i32 widest = min_of(p.vector(&A::x), p.vector(&A::out));
  // Wider dtypes are read by accesses of 16 bytes, where these are aligned
  const auto narrow = [&](const TensorFacts& t) {
    if (t.alignment < min_of(16, widest * size_of(t.dtype))) widest = max_of(1, t.alignment / size_of(t.dtype));
  };
  if (p.tensor(&A::weight).present) c.weight = Weight::plain, c.weight_dtype = p.dtype(&A::weight), narrow(p.tensor(&A::weight));
  if constexpr (kHasWeightBias<A>)
    if (c.weight == Weight::plain && p.attr(&A::weight_bias) != 0) c.weight = Weight::biased;
  if constexpr (kHasBias<A>)
    if (p.tensor(&A::bias).present) c.bias = 1, c.weight_dtype = p.dtype(&A::bias), narrow(p.tensor(&A::bias));
  if constexpr (kHasResidual<A>) c.add_residual = 1, narrow(p.tensor(&A::residual));
  const rows::RowShape shape = rows::row_shape(c.dtype, widest, hidden);
  c.units = shape.units, c.threads = shape.threads;
  Plan plan;
  plan.launch<norm_form_params<A>>(
      norm_form_kernel, c, {.x = rows::row_blocks(shape, rows, device), .smem = rows::row_reducer_bytes(c.units, c.threads), .pdl = p.pdl});
  return plan;
}

/// Heeds the words of the cases: fp8 (3: a scale a token, 4: one static scale), and wide_weight.
inline void derive_norm(Case& which) {
  const i64 fp8 = i64(which["fp8"]);
  if (fp8 <= 2) {
    derive_fp8_output(which);
  } else {
    which["out.dtype"] = int(DType::e4m3), which["out.in_place"] = 0;
    which[fp8 == 3 ? "token_scales.present" : "static_scale.present"] = 1;
  }
  if (which["wide_weight"] != 0) which["weight.dtype"] = int(DType::f32);
}
/// The same, and the word affine of layer_norm_cases.
inline void derive_layer_norm(Case& which) {
  derive_norm(which);
  const i64 affine = i64(which["affine"]);
  which["weight.present"] = affine <= 1, which["bias.present"] = affine == 0 || affine == 2;
  if (which["wide_weight"] != 0) which["bias.dtype"] = int(DType::f32);
}
inline std::vector<CaseAxis> layer_norm_cases(std::vector<CaseAxis> others = {}) {
  std::vector<CaseAxis> all = {
      {"tokens", {3, 0, 1, 64}},
      {"hidden", {4096, 1, 7, 64, 96, 127, 768, 1023, 2056, 8192, 20000}},
      {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
      {"affine", {0, 1, 2, 3}, "weight and bias (0), the weight alone (1), the bias alone (2) or none (3)"},
      {"wide_weight", {0, 1}, "weight and bias are f32"},
      {"x.pad", {0, 8, 3}},
      {"out.pad", {0, 16, 1}},
      {"fp8",
       {0, 1, 2, 3, 4},
       "out is e4m3, with scales as the FP8 GEMM reads them (1), row-major (2), a scale a row (3) or one static scale (4)"}};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}
/// A static scale with which some results saturate.
template <class A> void generate_norm(A& args, const Case& which, Random& random) {
  const auto proof = which.find("proof");
  if (args.static_scale.present() && (proof == which.end() || proof->second == 0))
    store_value(args.static_scale.data, DType::f32, 0.004 + 0.002 * random.uniform());
}

/// One rounding of the result; the f32 sum of squares, a tree of at most 64 roundings of positive terms, and the approximate rsqrt
/// (2^-22.4) stay below 2^-19, as in norm_row; weight + weight_bias and the products round relative to the result. The sum of x and
/// residual is rounded to f32.
inline Budget norm_form_budget(const Problem& p) {
  return {.of_value = unit_roundoff(p.tensors[0].dtype) + 0x1p-19 + 0x1p-22, .of_magnitude = 0x1p-24};
}
/// One rounding of the result. Of (|x| + mean |x|) r |weight| + |bias|: the mean is a tree of at most 64 roundings (2^-18), r is right to
/// 2^-19, and there are fewer than 6 more roundings: below 2^-17.
inline Budget layer_norm_budget(const Problem& p) { return {.of_value = unit_roundoff(p.tensors[0].dtype), .of_magnitude = 0x1p-17}; }
constexpr Budget kRmsScales = {.of_value = 0x1p-18, .of_magnitude = 0x1p-23};
constexpr Budget kLayerNormScales = {.of_value = 0x1p-23, .of_magnitude = 0x1p-16};

/// The three kinds of scales of an out that is e4m3, for Schema::with.
template <class A> Schema<A>& state_scales(Schema<A>& schema) {
  constexpr Budget kScales = kHasBias<A> ? kLayerNormScales : kRmsScales;
  return state_group_scales(schema, "tokens ceil_div(hidden,128)")
      .within(kScales)
      .out("token_scales", &A::token_scales, "tokens", {DType::f32})
      .optional()
      .meaning("of an out that is e4m3, one for each row, in the place of scales")
      .strided()
      .within(kScales)
      .in("static_scale", &A::static_scale, "1", {DType::f32})
      .optional()
      .meaning("positive; of an out that is e4m3, the scale of all, in the place of computed ones");
}

}  // namespace quern::norm
