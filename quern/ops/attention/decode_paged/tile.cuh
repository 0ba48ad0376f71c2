// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A warp's tile of 16 tokens: copied from its pages into the warp's ring, multiplied with the queries of a group.
//
// Shared memory holds rows of head_dim elements without padding. The 16-byte chunk c of row r lies at c ^ x(r): ldmatrix
// reads one chunk of 8 rows, and they hit 8 different banks of 16 bytes. With n = head_dim / 8 chunks a row and g the largest
// power of two <= 8 that divides n, row r starts at bank n * r mod 8, which takes 8 / g values; x(r) = (r / (8 / g)) % g
// supplies the other g. Bits below g are exchanged only, so that a row stays in place for every n.
#pragma once
#include "quern/ops/attention/decode_paged/parts.cuh"

namespace quern::attention {

/// Byte offset of a 16-byte chunk in a tile.
template <int kHeadDim> QN_DEVICE u32 chunk_offset(u32 row, u32 chunk) {
  constexpr u32 kChunks = kHeadDim / 8;
  constexpr u32 kGroup = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : kChunks % 2 == 0 ? 2 : 1;
  return row * (kHeadDim * 2) + ((chunk ^ ((row / (8 / kGroup)) & (kGroup - 1))) * 16);
}

/// Where a warp reads an item's keys and values.
struct TokenSource {
  const i32* pages;     // the request's row of the page table
  const u8* k;          // page 0, token 0 of the head
  const u8* v;
  i32 end;              // tokens from here on are not read
};

/// Pages of the 4 tokens that a lane copies of a tile: rows lane / 8 + 4 * i, so that 8 lanes read 128 neighbouring bytes.
struct TilePages {
  i32 page[4];
};

QN_DEVICE TilePages find_pages(const DecodePagedParams& p, const TokenSource& from, i32 first) {
  TilePages found;
  QN_UNROLL
  for (int i = 0; i < 4; ++i) {
    const i32 token = first + i32(ptx::lane_id() / 8) + 4 * i;
    found.page[i] = token < from.end ? ptx::ld_global_nc<i32>(from.pages + quotient(u32(token), p.page_size)) : 0;
  }
  return found;
}


/// One copy of kBytes, zeros where the token is not read.
template <int kBytes> QN_DEVICE void copy_bytes(u8* to, const u8* from, bool read) {
  if constexpr (kBytes == 16) {
    ptx::cp_async_cg(ptx::smem_address(to), from, read ? 16 : 0);
  } else if constexpr (kBytes >= 4) {
    ptx::cp_async<kBytes>(ptx::smem_address(to), from, read ? kBytes : 0);
  } else {  // cp.async moves at least 4 bytes
    ptx::st_shared<u16>(to, read ? ptx::ld_global_nc<u16>(from) : u16(0));
  }
}

/// Starts the copies of K and V of a tile into a stage of the ring. Tokens past the end become zeros: a probability of 0
/// times what memory happens to hold could be NaN.
template <DecodePagedConfig C>
QN_DEVICE void copy_tile(const DecodePagedParams& p, const TokenSource& from, const TilePages& at, i32 first, u8* stage) {
  constexpr u32 kUnits = C.head_dim * 2 / C.copy_bytes;
  constexpr u32 kTileBytes = kWarpTokens * C.head_dim * 2;
  const u32 lane = ptx::lane_id() % 8;
  QN_UNROLL
  for (int i = 0; i < 4; ++i) {
    const u32 row = ptx::lane_id() / 8 + 4 * i;
    const i32 token = first + i32(row);
    const bool read = token < from.end;
    const i32 slot = read ? token - i32(quotient(u32(token), p.page_size) * p.page_size.value) : 0;
    const u8* k = from.k + at.page[i] * p.k_page + slot * p.k_token;
    const u8* v = from.v + at.page[i] * p.v_page + slot * p.v_token;
    const auto copy = [&](u32 unit) {
      const u32 byte = unit * C.copy_bytes;
      u8* to = stage + chunk_offset<C.head_dim>(row, byte / 16) + byte % 16;
      copy_bytes<C.copy_bytes>(to, k + byte, read);
      copy_bytes<C.copy_bytes>(to + kTileBytes, v + byte, read);
    };
    if constexpr (C.copy_bytes >= 8) {
      QN_UNROLL
      for (u32 pass = 0; pass < ceil_div(kUnits, 8u); ++pass)
        if (kUnits % 8 == 0 || lane + 8 * pass < kUnits) copy(lane + 8 * pass);
    } else {  // unrolled, head_dim 256 would be 256 copies in a row: they take registers and 2 s to compile
      for (u32 unit = lane; unit < kUnits; unit += 8) copy(unit);
    }
  }
}

template <DecodePagedConfig C> QN_DEVICE void multiply(f32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  const u32 b[2] = {b0, b1};
  if constexpr (C.dtype == DType::bf16) ptx::mma_m16n8k16_bf16(d, a, b);
  else ptx::mma_m16n8k16_f16(d, a, b);
}

/// The queries of an item as rows of a tile in shared memory; rows without a head are zero. By the whole block.
template <DecodePagedConfig C>
QN_DEVICE void store_queries(const DecodePagedParams& p, const u16* q, i32 heads, u8* tile) {
  constexpr u32 kPairs = C.head_dim / 2, kAll = C.group_rows * kPairs;
  QN_NO_UNROLL
  for (u32 first = threadIdx.x; first < kAll; first += 4 * C.threads) {
    u32 pairs[4];  // 4 loads in flight; all at once would be 24 for head_dim 192 and 64 threads
    QN_UNROLL
    for (u32 j = 0; j < 4; ++j) {
      const u32 i = first + j * C.threads, head = i / kPairs;
      const u16* from = q + head * p.q_head + i % kPairs * 2;
      pairs[j] = 0;
      if (i >= kAll || i32(head) >= heads) continue;
      if (p.q_pairs) pairs[j] = ptx::ld_global_nc<u32>(from);
      else pairs[j] = ptx::ld_global_nc<u16>(from) | u32(ptx::ld_global_nc<u16>(from + 1)) << 16;
    }
    QN_UNROLL
    for (u32 j = 0; j < 4; ++j) {
      const u32 i = first + j * C.threads, column = i % kPairs * 2;
      if (i < kAll) ptx::st_shared<u32>(tile + chunk_offset<C.head_dim>(i / kPairs, column / 8) + column % 8 * 2, pairs[j]);
    }
  }
}

/// The A operand of k-step `step`: heads lane / 4 and + 8.
template <DecodePagedConfig C> QN_DEVICE void load_queries(u32 tile, int step, u32 (&fragment)[4]) {
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
template <DecodePagedConfig C> struct Queries {
  static constexpr bool kKept = C.head_dim <= 128;
  u32 tile;
  u32 kept[kKept ? C.head_dim / 16 : 1][4];
};

/// s[n][e] = q . k of token 8 * n + 2 * (lane % 4) + e % 2 and head lane / 4 + 8 * (e / 2).
template <DecodePagedConfig C>
QN_DEVICE void multiply_keys(const Queries<C>& queries, u32 tile, f32 (&s)[2][4]) {
  const u32 lane = ptx::lane_id();
  const u32 row = lane / 16 * 8 + lane % 8;
  QN_UNROLL
  for (int step = 0; step < C.head_dim / 16; ++step) {
    u32 k[4];
    ptx::ldmatrix_x4(k, tile + chunk_offset<C.head_dim>(row, u32(2 * step) + lane / 8 % 2));
    u32 q[4];
    if constexpr (Queries<C>::kKept) for (int i = 0; i < 4; ++i) q[i] = queries.kept[step][i];
    else load_queries<C>(queries.tile, step, q);
    multiply<C>(s[0], q, k[0], k[1]);
    multiply<C>(s[1], q, k[2], k[3]);
  }
}

/// o[j][e] += sum of p times v for dim 8 * j + 2 * (lane % 4) + e % 2 and head lane / 4 + 8 * (e / 2).
template <DecodePagedConfig C>
QN_DEVICE void multiply_values(const u32 (&p)[4], u32 tile, f32 (&o)[C.head_dim / 8][4]) {
  const u32 lane = ptx::lane_id();
  const u32 row = lane / 8 % 2 * 8 + lane % 8;
  QN_UNROLL
  for (int j = 0; j < C.head_dim / 16; ++j) {
    u32 v[4];
    ptx::ldmatrix_x4_trans(v, tile + chunk_offset<C.head_dim>(row, u32(2 * j) + lane / 16));
    multiply<C>(o[2 * j], p, v[0], v[1]);
    multiply<C>(o[2 * j + 1], p, v[2], v[3]);
  }
}

}  // namespace quern::attention
