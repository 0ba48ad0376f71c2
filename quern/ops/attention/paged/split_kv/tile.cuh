// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A warp's tile of 16 tokens: copied from its pages into the warp's ring, multiplied with the queries of a group.
#pragma once
#include "quern/kit/mma_tile.cuh"
#include "quern/ops/attention/paged/split_kv/parts.cuh"

namespace quern::attention {

/// Where a warp reads an item's keys and values.
struct TokenSource {
  const i32* pages;  // the request's row of the page table
  const u8* k;       // page 0, token 0 of the head
  const u8* v;
  i32 end;  // tokens from here on are not read
};

/// Pages of the 4 tokens that a lane copies of a tile: rows lane / 8 + 4 * i, so that 8 lanes read 128 neighbouring bytes.
struct TilePages {
  i32 page[4];
};

QN_DEVICE TilePages find_pages(const SplitKvParams& p, const TokenSource& from, i32 first) {
  TilePages found;
  QN_UNROLL
  for (int i = 0; i < 4; ++i) {
    const i32 token = first + i32(ptx::lane_id() / 8) + 4 * i;
    found.page[i] = token < from.end ? page_at(p, from.pages, token) : 0;
  }
  return found;
}

/// What a lane has of a tile that comes by registers: rows lane / 8 + 4 * i of K and V. Wide heads have registers for one of the two.
template <SplitKvConfig C> struct TileOnItsWay {
  static constexpr bool kHeld = comes_by_registers(C.kv_dtype, C.copy_bytes);
  static constexpr int kParts = kHeld && C.head_dim > 128 ? 1 : 2;
  static constexpr bool kStoredAtOnce = C.head_dim > 192 && C.group_rows > 8;  // beside 128 sums there are registers for two rows
  RowOnItsWay<C.head_dim> rows[kHeld ? kParts : 1][!kHeld ? 1 : kStoredAtOnce ? 2 : 4];
};

/// Starts the copies of K (kPart 0) or V (1) of a tile into a stage of the ring. Tokens past the end become zeros: a probability of 0
/// times what memory happens to hold could be NaN.
template <SplitKvConfig C, int kPart>
QN_DEVICE void copy_part(const SplitKvParams& p, const TokenSource& from, const TilePages& at, i32 first, u8* stage,
                         TileOnItsWay<C>& coming) {
  using Stored = dtype_t<C.kv_dtype>;
  constexpr u32 kTileBytes = kWarpTokens * C.head_dim * 2;
  QN_UNROLL
  for (int i = 0; i < 4; ++i) {
    const u32 row = ptx::lane_id() / 8 + 4 * i;
    const i32 token = first + i32(row);
    const bool read = token < from.end;
    const i32 slot = read ? token - i32(quotient(u32(token), p.page_size) * p.page_size.value) : 0;
    const u8* const head =
        kPart == 0 ? from.k + at.page[i] * p.k_page + slot * p.k_token : from.v + at.page[i] * p.v_page + slot * p.v_token;
    if constexpr (TileOnItsWay<C>::kHeld) {
      RowOnItsWay<C.head_dim>(&rows)[TileOnItsWay<C>::kStoredAtOnce ? 2 : 4] = coming.rows[kPart % TileOnItsWay<C>::kParts];
      read_row<C.head_dim>(rows[TileOnItsWay<C>::kStoredAtOnce ? i % 2 : i], head, read);
      if (!TileOnItsWay<C>::kStoredAtOnce || i % 2 == 0) continue;
      QN_UNROLL
      for (u32 k = 0; k < 2; ++k) store_row<Stored, dtype_t<C.dtype>, C.head_dim>(stage + kPart * kTileBytes, row - 4 + 4 * k, rows[k]);
    } else {
      copy_row<Stored, dtype_t<C.dtype>, unit_bytes(C.kv_dtype, C.copy_bytes), C.head_dim>(stage + kPart * kTileBytes, row, head, read);
    }
  }
}
/// Ends those that come by registers.
template <SplitKvConfig C, int kPart> QN_DEVICE void store_part(u8* stage, const TileOnItsWay<C>& coming) {
  if constexpr (TileOnItsWay<C>::kHeld && !TileOnItsWay<C>::kStoredAtOnce) {
    QN_UNROLL
    for (int i = 0; i < 4; ++i)
      store_row<dtype_t<C.kv_dtype>, dtype_t<C.dtype>, C.head_dim>(stage + kPart * kWarpTokens * C.head_dim * 2, ptx::lane_id() / 8 + 4 * i,
                                                                   coming.rows[kPart % TileOnItsWay<C>::kParts][i]);
  }
}

/// A run of keys of one item that this block sums.
struct Segment {
  i64 request;
  i64 slot;  // where the part goes; -1: the item is complete, its output is written
  i32 head_kv, head_tile;
  i32 begin, end;  // keys
  i32 rows;
  QueryTokens queries;
  Keys keys;
};

/// Two neighbours of a row of q, as the products read them.
template <SplitKvConfig C> QN_DEVICE u32 load_query_pair(const SplitKvParams& p, const u8* from) {
  if constexpr (C.q_dtype == C.dtype) {
    if (p.q_pairs) return ptx::ld_global_nc<u32>(from);
    return ptx::ld_global_nc<u16>(from) | u32(ptx::ld_global_nc<u16>(from + 2)) << 16;
  } else {
    using T = dtype_t<C.q_dtype>;
    return pack_word(to_f32(T{ptx::ld_global_nc<u8>(from)}), to_f32(T{ptx::ld_global_nc<u8>(from + 1)}), dtype_t<C.dtype>{});
  }
}

/// The queries of an item as rows of a tile in shared memory; rows beyond its own are zero. By the whole block.
template <SplitKvConfig C>
QN_DEVICE void store_queries(const SplitKvParams& p, const Segment& s, u8* tile) {
  constexpr u32 kPairs = C.head_dim / 2, kAll = C.group_rows * kPairs;
  QN_NO_UNROLL
  for (u32 first = threadIdx.x; first < kAll; first += 4 * C.threads) {
    u32 pairs[4];  // 4 loads in flight; all at once would be 24 for head_dim 192 and 64 threads
    QN_UNROLL
    for (u32 j = 0; j < 4; ++j) {
      const u32 i = first + j * C.threads, row = i / kPairs;
      pairs[j] = 0;
      if (i >= kAll || i32(row) >= s.rows) continue;
      const RowPlace place = row_place<C>(p, s.head_kv, s.head_tile, i32(row));
      pairs[j] = load_query_pair<C>(
          p, p.q + (s.queries.begin + place.query) * p.q_token + i64(place.head_q) * p.q_head + i % kPairs * 2 * u32(size_of(C.q_dtype)));
    }
    QN_UNROLL
    for (u32 j = 0; j < 4; ++j) {
      const u32 i = first + j * C.threads, column = i % kPairs * 2;
      if (i < kAll) ptx::st_shared<u32>(tile + chunk_offset<C.head_dim>(i / kPairs, column / 8) + column % 8 * 2, pairs[j]);
    }
  }
}

/// The A operand of k-step `step`: heads lane / 4 and + 8.
template <SplitKvConfig C> QN_DEVICE void load_queries(u32 tile, int step, u32 (&fragment)[4]) {
  const u32 lane = ptx::lane_id();
  if constexpr (C.group_rows == 16) {
    ptx::ldmatrix_x4(fragment, tile + chunk_offset<C.head_dim>(lane % 16, u32(2 * step) + lane / 16));
  } else {
    u32 rows[2];
    ptx::ldmatrix_x2(rows, tile + chunk_offset<C.head_dim>(lane % 8, u32(2 * step) + lane / 8 % 2));
    fragment[0] = rows[0], fragment[1] = 0, fragment[2] = rows[1], fragment[3] = 0;
  }
}

/// Query fragments: kept in registers while they leave room for head_dim / 2 sums, else read for each tile.
template <SplitKvConfig C> struct Queries {
  static constexpr bool kKept = C.head_dim <= 128;
  u32 tile;
  u32 kept[kKept ? C.head_dim / 16 : 1][4];
};

/// s[n][e] = q . k of token 8 * n + 2 * (lane % 4) + e % 2 and head lane / 4 + 8 * (e / 2).
template <SplitKvConfig C>
QN_DEVICE void multiply_keys(const Queries<C>& queries, u32 tile, f32 (&s)[2][4]) {
  const u32 lane = ptx::lane_id();
  const u32 row = lane / 16 * 8 + lane % 8;
  QN_UNROLL
  for (int step = 0; step < C.head_dim / 16; ++step) {
    u32 k[4];
    ptx::ldmatrix_x4(k, tile + chunk_offset<C.head_dim>(row, u32(2 * step) + lane / 8 % 2));
    u32 q[4];
    if constexpr (Queries<C>::kKept)
      for (int i = 0; i < 4; ++i) q[i] = queries.kept[step][i];
    else load_queries<C>(queries.tile, step, q);
    mma_k16<dtype_t<C.dtype>>(s[0], q, {k[0], k[1]});
    mma_k16<dtype_t<C.dtype>>(s[1], q, {k[2], k[3]});
  }
}

/// o[j][e] += sum of p times v for dim 8 * j + 2 * (lane % 4) + e % 2 and head lane / 4 + 8 * (e / 2).
template <SplitKvConfig C>
QN_DEVICE void multiply_values(const u32 (&p)[4], u32 tile, f32 (&o)[C.head_dim / 8][4]) {
  const u32 lane = ptx::lane_id();
  const u32 row = lane / 8 % 2 * 8 + lane % 8;
  QN_UNROLL
  for (int j = 0; j < C.head_dim / 16; ++j) {
    u32 v[4];
    ptx::ldmatrix_x4_trans(v, tile + chunk_offset<C.head_dim>(row, u32(2 * j) + lane / 16));
    mma_k16<dtype_t<C.dtype>>(o[2 * j], p, {v[0], v[1]});
    mma_k16<dtype_t<C.dtype>>(o[2 * j + 1], p, {v[2], v[3]});
  }
}

}  // namespace quern::attention
