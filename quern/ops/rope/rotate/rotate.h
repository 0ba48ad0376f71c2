// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the ops of the family say to the host of angles and positions: Configs, parameters, conditions, contracts, contents of cases. A is
// an op's Args; members that it lacks are forms that it lacks.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/op/ref.h"
#include "quern/op/schema.h"
#include "quern/ops/rope/rotate/spec.h"

namespace quern::rope {

template <class A> constexpr bool kHasTables = requires(const A& a) { a.cos; };
template <class A> constexpr bool kHasRequests = requires(const A& a) { a.indptr; };

/// Positions are exact in f32 below it.
constexpr i64 kPositions = i64(1) << 24;

/// Pairs of the caller's table; 0: none.
template <class A> i64 table_pairs(const Problem& p) {
  if constexpr (kHasTables<A>) {
    static const Axis pairs = axis_of("pairs");
    return p[pairs];
  }
  return 0;
}
template <class A> i64 rotary_dim_of(const Problem& p) {
  if (const i32 wanted = p.attr(&A::rotary_dim)) return wanted;
  const i64 pairs = table_pairs<A>(p);
  return pairs ? 2 * pairs : p[Axis::head_dim];
}

template <class A> AngleConfig angle_config(const Problem& p) {
  AngleConfig c{Angles::theta, DType::f32, PositionsOf::tokens, p.dtype(&A::positions)};
  if constexpr (kHasTables<A>) {
    if (p.tensor(&A::cos).present) c.angles = Angles::table, c.table_dtype = p.dtype(&A::cos);
    else if (p.tensor(&A::frequencies).present) c.angles = Angles::frequencies;
    if (p.tensor(&A::mrope_positions).present) c.positions_of = PositionsOf::sections, c.index_dtype = p.dtype(&A::mrope_positions);
  }
  if constexpr (kHasRequests<A>)
    if (p.tensor(&A::indptr).present) c.positions_of = PositionsOf::requests, c.index_dtype = p.dtype(&A::indptr);
  return c;
}

/// What decides the table of turns.
struct TurnsKey {
  i64 rotary_dim;
  float theta, scale, factor, low, high, original_max;
  friend bool operator==(const TurnsKey&, const TurnsKey&) = default;
};
/// Writes turns_high and turns_low.
void write_turns(const TurnsKey& key, AngleParams& params);

template <class A> AngleParams angle_params(const A& a, const Problem& problem) {
  const AngleConfig c = angle_config<A>(problem);
  AngleParams p{};
  p.half = i32(rotary_dim_of<A>(problem) / 2), p.cos_sin_scale = 1, p.limit = kPositions;
  p.positions = a.positions.data;
  if (c.angles == Angles::theta)
    write_turns({rotary_dim_of<A>(problem), a.theta, a.scale, a.llama31_factor, a.low_freq_factor, a.high_freq_factor, a.original_max}, p);
  if constexpr (kHasTables<A>) {
    p.cos_sin_scale = a.cos_sin_scale;
    if (c.positions_of == PositionsOf::sections) p.positions = a.mrope_positions.data, p.position_stride = a.mrope_positions.strides[0];
    p.sections[0] = a.mrope_section_t, p.sections[1] = a.mrope_section_h, p.sections[2] = a.mrope_section_w,
    p.sections_interleaved = a.mrope_interleaved;
    if (c.angles == Angles::frequencies)
      p.frequencies = static_cast<const float*>(a.frequencies.data), p.frequency_stride = a.frequencies.strides[0];
    if (c.angles == Angles::table) {
      p.cos = a.cos.data, p.sin = a.sin.data, p.limit = a.cos.shape[0];
      p.cos_row_stride = a.cos.strides[0], p.cos_pair_stride = a.cos.strides[1], p.sin_row_stride = a.sin.strides[0],
      p.sin_pair_stride = a.sin.strides[1];
      const bool dense = p.half == 1 || (p.cos_pair_stride == 1 && p.sin_pair_stride == 1);
      p.dense_table = dense && problem.tensor(&A::cos).alignment == 16 && problem.tensor(&A::sin).alignment == 16;
    }
  }
  if constexpr (kHasRequests<A>)
    if (c.positions_of == PositionsOf::requests) p.positions = a.indptr.data, p.offsets = a.offsets.data, p.batch = a.offsets.shape[0];
  return p;
}

/// How heads lie over lanes, where an access may have `widest` elements of every tensor. `rest`: what lies behind rotary_dim is moved too.
HeadConfig head_config(DType dtype, bool interleaved, i32 widest, i64 rotary_dim, i64 head_dim, bool rest);
/// Heads of a token that a lane has in flight: one while the device is not full, else up to four, which share their sines and cosines.
i32 heads_in_flight(i64 tokens, i64 heads, i32 lanes, const DeviceInfo& device);
/// Blocks of a kernel whose lanes walk over parts of tokens.
i64 part_blocks(i64 parts, i32 lanes, i32 threads, const DeviceInfo& device);

RotateConfig rotate_config(const AngleConfig& angles, const HeadConfig& head, i64 tokens, i64 heads, const DeviceInfo& device);
extern const jit::Kernel<RotateConfig, RotateParams> rotate_kernel;

template <class A> Rejection rotary_dim_fits(const Problem& p) {
  const i64 d = rotary_dim_of<A>(p), pairs = table_pairs<A>(p);
  if (d > p[Axis::head_dim]) return {"rotary_dim", d, "at most head_dim={}", p[Axis::head_dim]};
  if (d <= 0 || d % 2) return {"rotary_dim", d, "a positive even number", 0};
  if (d > 2 * kMaxPairs) return {"rotary_dim", d, "at most {}", 2 * kMaxPairs};
  if (pairs && d != 2 * pairs) return {"rotary_dim", d, "twice the pairs of the table: {}", 2 * pairs};
  return {};
}

/// Parts of the schemas, for Schema::with: the numbers that make angles of theta.
template <class A> Schema<A>& state_theta(Schema<A>& schema) {
  return schema.attr("theta", &A::theta)
      .meaning("from 1 to 1e30")
      .attr("scale", &A::scale)
      .meaning("positions are divided by it, from 0.125 to 1e30")
      .attr("llama31_factor", &A::llama31_factor)
      .meaning("Llama 3.1 frequency scaling, from 1 to 1e30; 1: off")
      .attr("low_freq_factor", &A::low_freq_factor)
      .meaning("from 1e-30 to 1e30")
      .attr("high_freq_factor", &A::high_freq_factor)
      .meaning("more than low_freq_factor, up to 1e30")
      .attr("original_max", &A::original_max)
      .meaning("context length that Llama 3.1 scaling starts from, from 1 to 1e30");
}
/// Tensors in the place of theta.
template <class A> Schema<A>& state_tables(Schema<A>& schema) {
  const char* const rotated = requires(const A& a) { a.q_rope; } ? "q_rope" : "q";
  return schema.in("cos", &A::cos, "rows pairs", like(rotated, {DType::f32}))
      .optional()
      .strided()
      .meaning("of each position and pair, in the place of theta")
      .in("sin", &A::sin, "rows pairs", like("cos"))
      .optional()
      .strided()
      .in("frequencies", &A::frequencies, "pairs 2", {DType::f32})
      .optional()
      .meaning("turns per position of each pair, as the sum of two numbers, in the place of theta; at most 1.28 (8 / 2 pi)");
}
/// The numbers of tables and of M-RoPE.
template <class A> Schema<A>& state_tables_and_sections(Schema<A>& schema) {
  return schema.attr("cos_sin_scale", &A::cos_sin_scale)
      .meaning("sines and cosines of theta and of frequencies are multiplied by it, from 1e-30 to 1e30")
      .attr("mrope_section_t", &A::mrope_section_t)
      .meaning("pairs that turn by time; with those by height and width rotary_dim / 2, beside mrope_positions")
      .attr("mrope_section_h", &A::mrope_section_h)
      .meaning("pairs that turn by height")
      .attr("mrope_section_w", &A::mrope_section_w)
      .meaning("pairs that turn by width")
      .attr("mrope_interleaved", &A::mrope_interleaved)
      .meaning(
          "pair i turns by height where i % 3 = 1 and i < 3 h, by width where i % 3 = 2 and i < 3 w; else the sections follow each other");
}

/// f_i <= 1 / scale <= 8: a pair that turns faster has an angle whose second float is too coarse for the budget at position 2^24.
template <class A> Rejection theta_fits(const Problem& p) {
  const auto within = [&](float A::* attr, float least) { return p.attr(attr) >= least && p.attr(attr) <= 1e30f; };
  if (!within(&A::theta, 1)) return {"theta", p.attr(&A::theta), "a number from 1 to 1e30", 0};
  if (!within(&A::scale, 0.125f)) return {"scale", p.attr(&A::scale), "a number from 0.125 to 1e30", 0};
  if (!within(&A::llama31_factor, 1)) return {"llama31_factor", p.attr(&A::llama31_factor), "a number from 1 to 1e30", 0};
  if (p.attr(&A::llama31_factor) == 1.f) return {};
  if (!within(&A::original_max, 1)) return {"original_max", p.attr(&A::original_max), "a number from 1 to 1e30", 0};
  if (!within(&A::low_freq_factor, 1e-30f)) return {"low_freq_factor", p.attr(&A::low_freq_factor), "a number from 1e-30 to 1e30", 0};
  if (!(p.attr(&A::high_freq_factor) > p.attr(&A::low_freq_factor)) || !within(&A::high_freq_factor, 0))
    return {"high_freq_factor", p.attr(&A::high_freq_factor), "more than low_freq_factor, up to 1e30", 0};
  return {};
}

/// theta, frequencies, or cos and sin; what another one would read is left at its default.
template <class A> Rejection one_source_of_angles(const Problem& p) {
  const bool cos = p.tensor(&A::cos).present, sin = p.tensor(&A::sin).present, frequencies = p.tensor(&A::frequencies).present;
  if (cos && !sin) return {"sin", "absent", "a tensor, as cos is given"};
  if (sin && !cos) return {"cos", "absent", "a tensor, as sin is given"};
  if (cos && frequencies) return {"frequencies", "given", "none beside cos and sin"};
  const float scale = p.attr(&A::cos_sin_scale);
  if (cos && scale != 1) return {"cos_sin_scale", scale, "1 beside cos and sin, which have it in them"};
  if (!(scale >= 1e-30f && scale <= 1e30f)) return {"cos_sin_scale", scale, "a number from 1e-30 to 1e30"};
  if (!cos && !frequencies) return {};
  const A standard;
  for (const auto& [word, attr] : {std::pair{"theta", &A::theta}, {"scale", &A::scale}, {"llama31_factor", &A::llama31_factor}})
    if (p.attr(attr) != standard.*attr)
      return {word, p.attr(attr), cos ? "its default beside cos and sin" : "its default beside frequencies"};
  return {};
}

/// Three positions of each token come with sections that cover all pairs, and no sections without them.
template <class A> Rejection sections_fit(const Problem& p) {
  const i32 t = p.attr(&A::mrope_section_t), h = p.attr(&A::mrope_section_h), w = p.attr(&A::mrope_section_w);
  const bool given = p.tensor(&A::mrope_positions).present;
  for (const auto& [word, pairs] : {std::pair{"mrope_section_t", t}, {"mrope_section_h", h}, {"mrope_section_w", w}}) {
    if (!given && pairs != 0) return {word, pairs, "0 without mrope_positions"};
    if (pairs < 0) return {word, pairs, "a number of pairs"};
  }
  if (!given && p.attr(&A::mrope_interleaved)) return {"mrope_interleaved", "given", "none without mrope_positions"};
  const i64 left = rotary_dim_of<A>(p) / 2 - h - w;
  if (given && t != left) return {"mrope_section_t", t, "what the other sections leave of rotary_dim / 2: {}", left};
  return {};
}

template <class A> Rejection one_source_of_positions(const Problem& p) {
  const bool positions = p.tensor(&A::positions).present, sections = p.tensor(&A::mrope_positions).present,
             indptr = p.tensor(&A::indptr).present, offsets = p.tensor(&A::offsets).present;
  if (indptr != offsets)
    return {indptr ? "offsets" : "indptr", "absent", indptr ? "a tensor, as indptr is given" : "a tensor, as offsets is given"};
  if (sections && positions) return {"mrope_positions", "given", "none beside positions"};
  if (indptr && (positions || sections)) return {"indptr", "given", positions ? "none beside positions" : "none beside mrope_positions"};
  if (!positions && !sections && !indptr) return {"positions", "absent", "positions, mrope_positions, or indptr with offsets"};
  return {};
}

/// Positions that contents cannot say: below the rows of cos, or those of requests.
template <class A> Breach positions_contract(const A& a, const Problem& p) {
  const bool table = a.cos.present();
  const i64 limit = table ? a.cos.shape[0] : kPositions;
  const std::string expected = range_text(0, limit - 1) + (table ? ", the rows of `cos`" : "");
  for (const auto& [word, view] : {std::pair{"positions", &a.positions}, {"mrope_positions", &a.mrope_positions}}) {
    if (!view->present()) continue;
    const Ref<> positions(*view);
    for (i64 r = 0; r < (view->rank == 2 ? view->shape[0] : 1); ++r)
      for (i64 t = 0; t < p[Axis::tokens]; ++t) {
        const i64 at = view->rank == 2 ? positions.index(r, t) : positions.index(t);
        if (at >= 0 && at < limit) continue;
        return {word, view->rank == 2 ? std::vector<i64>{r, t} : std::vector<i64>{t}, at, expected};
      }
  }
  if constexpr (kHasRequests<A>) {
    if (!a.indptr.present()) return {};
    const Ref<> indptr(a.indptr), offsets(a.offsets);
    for (i64 b = 0; b < a.offsets.shape[0]; ++b) {
      const i64 length = indptr.index(b + 1) - indptr.index(b), last = offsets.index(b) + length - 1;
      if (length > 0 && last >= limit)
        return {"offsets",
                {b},
                offsets.index(b),
                range_text(0, limit - length) + ": the request has " + std::to_string(length) + " tokens, and positions are " + expected};
    }
  }
  return {};
}

/// One rounding. Of computed angles, of (|a| + |b|) cos_sin_scale: the approximate sine and cosine of |angle| <= pi are within 2^-20.5, the
/// angle is within 2^-20.2 (of 2^24 turns, the most there are, three roundings leave 2^-23 of a turn; the factor 2 pi is rounded), three
/// roundings are 2^-22.4, and that of the scale 2^-24: below 2^-19. Of given ones: two products and a sum, of which one is fused, of |a
/// cos| + |b sin|.
template <class A> Budget rotation_budget(const Problem& p) {
  return {.of_value = unit_roundoff(p.tensors[0].dtype), .of_magnitude = angle_config<A>(p).angles == Angles::table ? 0x1p-23 : 0x1p-19};
}

/// Bytes of positions and angles.
template <class A> double angle_bytes(const Problem& p) {
  const AngleConfig c = angle_config<A>(p);
  const double tokens = double(p[Axis::tokens]), index = size_of(c.index_dtype);
  double bytes = index * (c.positions_of == PositionsOf::tokens     ? tokens
                          : c.positions_of == PositionsOf::sections ? 3 * tokens
                                                                    : 2 * double(p[Axis::batch]) + 1);
  static const Axis rows = axis_of("rows");
  if (c.angles == Angles::frequencies) bytes += 8 * double(table_pairs<A>(p));
  if (c.angles == Angles::table) bytes += 2 * std::min(tokens, double(p[rows])) * double(table_pairs<A>(p)) * size_of(c.table_dtype);
  return bytes;
}

/// What cases are told by words: `angles` (theta, frequencies, tables of f32 or of q's dtype) and `places` (positions, sections,
/// interleaved sections, requests).
inline void derive_angles(Case& c) {
  const i64 angles = i64(c["angles"]), places = i64(c["places"]);
  const i64 wanted = i64(c["rotary_dim"]), rotary_dim = wanted ? wanted : i64(c["head_dim"]);
  c["frequencies.present"] = angles == 1, c["cos.present"] = c["sin.present"] = angles >= 2;
  c["cos.dtype"] = angles == 3 ? c["q.dtype"] : Scalar(i64(DType::f32));
  if (angles != 0)
    for (const char* word : {"theta", "scale", "llama31_factor"}) c.erase(word);
  if (angles >= 2) c["cos_sin_scale"] = 1.0;
  c["pairs"] = rotary_dim / 2;
  c["rows"] = c.contains("positions") ? min_of<i64>(300, i64(c["positions"]) + 1) : i64(300);
  c["mrope_positions.present"] = places == 1 || places == 2, c["indptr.present"] = c["offsets.present"] = places == 3;
  c["positions.present"] = places == 0;
  c["mrope_positions.dtype"] = c["indptr.dtype"] = c["positions.dtype"];
  if (places == 1 || places == 2) {
    const i64 third = rotary_dim / 6;
    c["mrope_section_h"] = third, c["mrope_section_w"] = third, c["mrope_section_t"] = rotary_dim / 2 - 2 * third,
    c["mrope_interleaved"] = places == 2;
  }
  for (const char* word : {"angles", "places"}) c.erase(word);
}

/// Positions below the rows of cos, of some tokens beyond them where the word `beyond` says so; turns as a model has them.
template <class A> void generate_angles(A& a, const Case& which, Random& random) {
  const i64 limit = a.cos.present() ? a.cos.shape[0] : kPositions;
  const auto beyond_at = which.find("beyond");
  const bool beyond = beyond_at != which.end() && beyond_at->second != 0;
  for (const TensorView* view : {&a.positions, &a.mrope_positions})
    for (i64 r = 0; view->present() && r < (view->rank == 2 ? view->shape[0] : 1); ++r)
      for (i64 t = 0; t < view->shape[view->rank - 1]; ++t) {
        const i64 lead[] = {view->rank == 2 ? r : t, t};
        const i64 broken = t % 2 ? limit + t : -1 - t, was = load_integer(view->at(lead), view->dtype) % max_of<i64>(limit, 1);
        store_integer(view->at(lead), view->dtype, beyond && t % 5 < 2 ? broken : was);
      }
  if constexpr (kHasRequests<A>)
    if (a.indptr.present()) {
      const i64 batch = a.offsets.shape[0], tokens = a.q.shape[0];
      i64 from = tokens > 2 ? 1 : 0;  // the first token and the last belong to no request
      for (i64 b = 0; b <= batch; ++b) {
        const i64 at[] = {b}, most = max_of<i64>(tokens - from - (tokens > 2), 0);
        store_integer(a.indptr.at(at), a.indptr.dtype, from);
        if (b == batch) break;
        const i64 length = b + 1 == batch ? most : random.below(most + 1);
        store_integer(a.offsets.at(at), a.offsets.dtype, random.below(max_of<i64>(limit - length, 0) + 1));
        from += length;
      }
    }
  if (!a.frequencies.present() || which.at("proof") != 0) return;
  for (i64 i = 0; i < a.frequencies.shape[0]; ++i) {
    const double turns = 1.2 * random.uniform() * std::pow(0.9, double(i));
    const i64 high[] = {i, 0}, low[] = {i, 1};
    store_element(a.frequencies, high, float(turns));
    store_element(a.frequencies, low, turns - double(float(turns)));
  }
}

}  // namespace quern::rope
