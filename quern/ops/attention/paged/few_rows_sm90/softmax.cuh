// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// From products to probabilities, by one warpgroup, and how what was summed in parts comes together.
#pragma once
#include "quern/kit/tanh.cuh"
#include "quern/ops/attention/paged/few_rows_sm90/tile.cuh"

namespace quern::attention {

/// What a thread holds of an item: states[2 i + e] is that of row 8 i + 2 (lane % 4) + e, with the sum of the thread's own tokens.
template <FewRowsConfig C> struct ItemState {
  SoftmaxState rows[C.group_rows / 4];
  f32 out[value_tiles(C)][C.group_rows / 2];
};
template <FewRowsConfig C> QN_DEVICE void clear(ItemState<C>& sums) {
  for (SoftmaxState& row : sums.rows) row = empty_softmax();
  zero(sums.out);
}

/// Of the lanes that hold the same rows: lane % 4 alike.
QN_DEVICE f32 max_of_tokens(f32 x) {
  QN_UNROLL
  for (int bits = 4; bits < 32; bits *= 2) x = ptx::fmax(x, ptx::shfl_xor(x, bits));
  return x;
}
QN_DEVICE f32 sum_of_tokens(f32 x) {
  QN_UNROLL
  for (int bits = 4; bits < 32; bits *= 2) x = x + ptx::shfl_xor(x, bits);
  return x;
}

/// Of the calling thread: its warpgroup's four arrays of a number for each row, one a warp.
template <FewRowsConfig C> QN_DEVICE f32* row_numbers(u8* smem, u32 warp) {
  return reinterpret_cast<f32*>(smem + few_rows_smem(C).maxima) + (warpgroup_id() * 4 + warp) * C.group_rows;
}

/// Logits in units of log2; -inf where a row does not see the token. `first`: the tile's token 0. `masked`: some row does not see some
/// token.
template <FewRowsConfig C> QN_DEVICE void make_logits(const FewRowsParams& p, const Segment& s, const u8* smem, i32 first, bool masked,
                                                      f32 (&x)[C.group_rows / 2]) {
  constexpr bool kOfRows = C.scales != 0 || (C.q_dtype == DType::bf16 && C.dtype == DType::f16);
  const RowFacts* facts = reinterpret_cast<const RowFacts*>(smem + few_rows_smem(C).rows);
  const i32 lane = i32(ptx::lane_id()), token = first + 16 * i32(warp_of_warpgroup()) + lane / 4;
  QN_UNROLL
  for (int i = 0; i < C.group_rows / 8; ++i) {
    if (8 * i >= s.rows) continue;
    QN_UNROLL
    for (int e = 0; e < 2; ++e) {
      const RowFacts& row = facts[8 * i + 2 * (lane % 4) + e];
      f32 scale = p.scale;
      if constexpr (kOfRows) scale = ptx::f32_of_bits(ptx::ld_shared<u32>(&row.scale));
      QN_UNROLL
      for (int half = 0; half < 2; ++half) {
        f32& logit = x[4 * i + 2 * half + e];
        if constexpr (C.soft_cap != 0) logit = f32(p.soft_cap) * accurate_tanh(logit * scale) * f32(kLog2E);
        else logit = logit * (scale * f32(kLog2E));
        if (masked && (token + 8 * half < row.first || token + 8 * half > row.last)) logit = negative_infinity();
      }
    }
  }
}

/// Online softmax over a tile: logits become probabilities, the B operand of the second product at `probabilities`; sums move to the new
/// maximum. Two barriers of the warpgroup: between them maxima are read and probabilities written, behind the second both may be read and
/// written again.
template <FewRowsConfig C> QN_DEVICE void make_probabilities(const Segment& s, u8* smem, u32 probabilities, f32 (&x)[C.group_rows / 2],
                                                             ItemState<C>& sums) {
  using T = dtype_t<C.dtype>;
  const u32 lane = ptx::lane_id(), warp = warp_of_warpgroup();
  QN_UNROLL
  for (int i = 0; i < C.group_rows / 8; ++i) {
    if (8 * i >= s.rows) continue;
    f32 most[2];
    QN_UNROLL
    for (int e = 0; e < 2; ++e) most[e] = max_of_tokens(ptx::fmax(x[4 * i + e], x[4 * i + 2 + e]));
    if (lane < 4) ptx::st_shared<u32x2>(row_numbers<C>(smem, warp) + 8 * i + 2 * lane, {ptx::bits_of(most[0]), ptx::bits_of(most[1])});
  }
  sync_warpgroup();
  u32 packed[C.group_rows / 4];  // [i][half]
  QN_UNROLL
  for (int i = 0; i < C.group_rows / 8; ++i) {
    packed[2 * i] = packed[2 * i + 1] = 0;
    if (8 * i >= s.rows) continue;
    f32 most[2] = {negative_infinity(), negative_infinity()};
    QN_UNROLL
    for (u32 w = 0; w < 4; ++w) {
      const u32x2 of_warp = ptx::ld_shared<u32x2>(row_numbers<C>(smem, w) + 8 * i + 2 * (lane % 4));
      most[0] = ptx::fmax(most[0], ptx::f32_of_bits(of_warp.x)), most[1] = ptx::fmax(most[1], ptx::f32_of_bits(of_warp.y));
    }
    f32 factor[2];
    QN_UNROLL
    for (int e = 0; e < 2; ++e) {
      SoftmaxState& state = sums.rows[2 * i + e];
      factor[e] = raise_max(state, most[e]);
      const f32 base = state.max == negative_infinity() ? f32(0.f) : state.max;
      QN_UNROLL
      for (int half = 0; half < 2; ++half) {
        f32& value = x[4 * i + 2 * half + e];
        value = probability_of<C.dtype>(value, base);
        state.sum = state.sum + value;
      }
    }
    QN_UNROLL
    for (int half = 0; half < 2; ++half) packed[2 * i + half] = pack_word(x[4 * i + 2 * half], x[4 * i + 2 * half + 1], T{});
    QN_UNROLL
    for (int m = 0; m < value_tiles(C); ++m) {
      QN_UNROLL
      for (int j = 0; j < 4; ++j) sums.out[m][4 * i + j] = sums.out[m][4 * i + j] * factor[j % 2];
    }
  }
  // Row n of the operand is 64 tokens: 128 bytes. A matrix of stmatrix is eight rows and eight tokens.
  const auto place = [&](i32 i, u32 half) {
    return swizzled(Swizzle::b128, probabilities + (8 * u32(i) + lane % 8) * 128 + (2 * warp + half) * 16);
  };
  QN_UNROLL
  for (int i = 0; i < C.group_rows / 8; i += 2) {
    if (8 * i >= s.rows) continue;
    if (i + 1 < C.group_rows / 8)
      ptx::stmatrix_x4_trans(place(i + int(lane / 16), lane / 8 % 2),
                             {packed[2 * i], packed[2 * i + 1], packed[2 * i + 2], packed[2 * i + 3]});
    else ptx::stmatrix_x2_trans(place(i, lane / 8 % 2), {packed[2 * i], packed[2 * i + 1]});
  }
  ptx::fence_proxy_async_shared();
  sync_warpgroup();
}

/// The rows' sums over all tokens of the warpgroup: lanes by a butterfly, then warps in order.
template <FewRowsConfig C> QN_DEVICE void add_tokens(const Segment& s, u8* smem, ItemState<C>& sums) {
  const u32 lane = ptx::lane_id();
  QN_UNROLL
  for (int i = 0; i < C.group_rows / 8; ++i) {
    if (8 * i >= s.rows) continue;
    f32 sum[2];
    QN_UNROLL
    for (int e = 0; e < 2; ++e) sum[e] = sum_of_tokens(sums.rows[2 * i + e].sum);
    if (lane < 4)
      ptx::st_shared<u32x2>(row_numbers<C>(smem, warp_of_warpgroup()) + 8 * i + 2 * lane, {ptx::bits_of(sum[0]), ptx::bits_of(sum[1])});
  }
  sync_warpgroup();
  QN_UNROLL
  for (int i = 0; i < C.group_rows / 8; ++i) {
    if (8 * i >= s.rows) continue;
    QN_UNROLL
    for (int e = 0; e < 2; ++e) {
      f32 sum = 0.f;
      QN_UNROLL
      for (u32 w = 0; w < 4; ++w) sum = sum + ptx::f32_of_bits(ptx::ld_shared<u32>(row_numbers<C>(smem, w) + 8 * i + 2 * (lane % 4) + e));
      sums.rows[2 * i + e].sum = sum;
    }
  }
}

// ---- sums that leave their threads ----
//
// They are kept as their threads hold them: four sums of a thread are 16 bytes, those of the 128 threads lie side by side.

/// Where a thread's four sums of rows 8 i .. and 64 columns m are.
template <FewRowsConfig C> QN_DEVICE i32 place_of_sums(i32 m, i32 i) {
  return ((m * (C.group_rows / 8) + i) * 128 + i32(thread_of_warpgroup())) * 4;
}
/// Rows of which a state is [row][2] f32. By all threads; lane / 4 = 0 of the first warp has every row.
template <FewRowsConfig C, class Store> QN_DEVICE void store_state(const Segment& s, const ItemState<C>& sums, f32* to_sums, f32* to_states,
                                                                   const Store& store) {
  QN_UNROLL
  for (int i = 0; i < C.group_rows / 8; ++i) {
    if (8 * i >= s.rows) continue;
    QN_UNROLL
    for (int m = 0; m < value_tiles(C); ++m) {
      const f32* four = &sums.out[m][4 * i];
      store(to_sums + place_of_sums<C>(m, i), {ptx::bits_of(four[0]), ptx::bits_of(four[1]), ptx::bits_of(four[2]), ptx::bits_of(four[3])});
    }
    if (thread_of_warpgroup() < 4) {
      const SoftmaxState &low = sums.rows[2 * i], &high = sums.rows[2 * i + 1];
      store(to_states + 2 * (8 * i + 2 * i32(ptx::lane_id() % 4)),
            {ptx::bits_of(low.max), ptx::bits_of(low.sum), ptx::bits_of(high.max), ptx::bits_of(high.sum)});
    }
  }
}
/// How sums of a row, and those of other tokens that join it, come under one maximum.
struct JoinFactors {
  f32 of_sums, of_others;
  bool had, have;  // false: the row saw nothing there, where 0 times what others saw was summed. That is left out
};
/// `state` takes in that of the others.
QN_DEVICE JoinFactors join_state(SoftmaxState& state, const SoftmaxState& others) {
  JoinFactors f;
  f.had = state.sum != f32(0.f), f.have = others.sum != f32(0.f);
  f.of_sums = raise_max(state, others.max);
  f.of_others = softmax_weight(others.max, state.max);
  state.sum = ptx::fma(others.sum, f.of_others, state.sum);
  return f;
}
QN_DEVICE f32 join_sums(const JoinFactors& f, f32 sum, f32 others) {
  sum = f.had ? sum * f.of_sums : f32(0.f);
  return f.have ? ptx::fma(others, f.of_others, sum) : sum;
}

/// What a thread holds of eight rows, or finds where store_state() put it: two rows' states and four sums of each 64 columns.
template <FewRowsConfig C> struct EightRows {
  SoftmaxState rows[2];
  f32 out[value_tiles(C)][4];
};
template <FewRowsConfig C, class Load> QN_DEVICE EightRows<C> load_eight_rows(i32 i, const f32* sums, const f32* states, const Load& load) {
  EightRows<C> found;
  const u32x4 two = load(states + 2 * (8 * i + 2 * i32(ptx::lane_id() % 4)));
  found.rows[0] = {ptx::f32_of_bits(two.x), ptx::f32_of_bits(two.y)}, found.rows[1] = {ptx::f32_of_bits(two.z), ptx::f32_of_bits(two.w)};
  QN_UNROLL
  for (int m = 0; m < value_tiles(C); ++m) {
    u32x4 four = load(sums + place_of_sums<C>(m, i));
    QN_UNROLL
    for (int j = 0; j < 4; ++j) found.out[m][j] = ptx::f32_of_bits(word(four, j));
  }
  return found;
}

/// What another warpgroup summed of the item joins.
template <FewRowsConfig C> QN_DEVICE void join(const Segment& s, ItemState<C>& sums, const f32* other_sums, const f32* other_states) {
  QN_UNROLL
  for (int i = 0; i < C.group_rows / 8; ++i) {
    if (8 * i >= s.rows) continue;
    const EightRows<C> other = load_eight_rows<C>(i, other_sums, other_states, [](const f32* from) { return ptx::ld_shared<u32x4>(from); });
    const JoinFactors factors[2] = {join_state(sums.rows[2 * i], other.rows[0]), join_state(sums.rows[2 * i + 1], other.rows[1])};
    QN_UNROLL
    for (int m = 0; m < value_tiles(C); ++m) {
      QN_UNROLL
      for (int j = 0; j < 4; ++j) sums.out[m][4 * i + j] = join_sums(factors[j % 2], sums.out[m][4 * i + j], other.out[m][j]);
    }
  }
}

/// Eight rows of an item that was cut: its parts in order.
template <FewRowsConfig C> QN_DEVICE EightRows<C> add_parts(const FewRowsParams& p, const Segment& s, i32 i) {
  constexpr i32 kAtOnce = max_of(
      2, 16 / value_tiles(
                  C));  // so that the reads of 128 threads are 32 KB and more: the L2 answers after about 700 clocks, with 64 bytes a clock
  EightRows<C> sums;
  sums.rows[0] = sums.rows[1] = empty_softmax();
  zero(sums.out);
  QN_NO_UNROLL
  for (i32 first = 0; first < s.parts; first += kAtOnce) {
    EightRows<C> parts[kAtOnce];
    QN_UNROLL
    for (i32 k = 0; k < kAtOnce; ++k) {
      const i64 slot = part_slot<C>(s, min_of(first + k, s.parts - 1));
      parts[k] = load_eight_rows<C>(i, reinterpret_cast<const f32*>(p.part_sums) + slot * part_floats(C),
                                    reinterpret_cast<const f32*>(p.part_states) + slot * C.group_rows * 2,
                                    [](const f32* from) { return ptx::ld_global<u32x4>(from); });
    }
    QN_UNROLL
    for (i32 k = 0; k < kAtOnce; ++k) {
      if (first + k >= s.parts) continue;
      const JoinFactors factors[2] = {join_state(sums.rows[0], parts[k].rows[0]), join_state(sums.rows[1], parts[k].rows[1])};
      QN_UNROLL
      for (int m = 0; m < value_tiles(C); ++m) {
        QN_UNROLL
        for (int j = 0; j < 4; ++j) sums.out[m][j] = join_sums(factors[j % 2], sums.out[m][j], parts[k].out[m][j]);
      }
    }
  }
  return sums;
}

}  // namespace quern::attention
