// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Scales of numbers that are stored in FP8, or as integers of 8 bits: q * scale is about x. A scale is shared by a group of numbers.
#pragma once
#include "quern/kit/dtype.cuh"
#include "quern/kit/reduce.cuh"

namespace quern {

/// The largest finite value of an fp8 format, and the largest integer whose negative is stored too.
template <DType D> constexpr float kLargestFp8 = D == DType::e4m3 ? 448.f : D == DType::e5m2 ? 57344.f : 127.f;

/// The scale of a group whose largest magnitude is `amax`: max(amax, least) / largest, divided exactly, so that a group of
/// zeros has one too; on demand rounded up to a power of two. NaN and infinity stay.
template <DType D> QN_DEVICE f32 fp8_scale(f32 amax, bool power_of_two, f32 least = f32(1e-4f)) {
  static_assert(D == DType::e4m3 || D == DType::e5m2 || D == DType::i8);
  const f32 scale = ptx::div(ptx::fmax_nan(amax, least), f32(kLargestFp8<D>));
  return power_of_two ? ptx::power_of_two_above(scale) : scale;
}

/// What numbers are multiplied by before they are rounded.
QN_DEVICE f32 fp8_inverse(f32 scale) { return ptx::div(f32(1.f), scale); }

/// Accesses of `vector` columns that a lane makes to its part of a group of a row, each kFp8GroupLanes * vector columns further.
template <int vector> constexpr int kFp8Accesses = kFp8Group / kFp8GroupLanes / vector;

/// Lanes that hold a group of so many columns.
QN_HOST_DEVICE constexpr int fp8_group_lanes(int group) { return group * kFp8GroupLanes / kFp8Group; }

/// Stores rows in FP8, a Scale for each group of kGroup columns. An octet of lanes is at kFp8Group columns of a row, which are one group or
/// several. The four octets of a warp are at consecutive rows of the same columns, and again 4 rows further, `kSteps` times: the warp's
/// scales are neighbours of a column and leave in one store. A block's warps are at neighbouring columns; the grid has a block for each 4 *
/// kSteps rows and kThreads / 32 times kFp8Group columns. load(row, column, part) fills the lane's Part, of all steps first, so that the
/// loads are in flight together; its accesses are fp8_group_lanes(kGroup) * kVector columns apart. store(row, column, part) stores it and
/// returns the group's scale in all of its lanes. Both are called past the last row and column too.
template <class Part, int kVector, int kSteps, int kThreads, int kGroup = kFp8Group, class Scale = f32, class Load, class Store>
QN_DEVICE void store_fp8_groups(i64 rows, i64 columns, void* scales, const i64 (&scale_strides)[2], const Load& load, const Store& store) {
  constexpr int kOctets = 32 / kFp8GroupLanes, kRows = kOctets * kSteps, kSpans = kThreads / 32, kLanes = fp8_group_lanes(kGroup);
  static_assert(kSteps <= kLanes && kFp8Group % kGroup == 0);
  const int lane = int(threadIdx.x) % kFp8GroupLanes, octet = int(threadIdx.x) / kFp8GroupLanes % kOctets;
  const i64 across = ceil_div<i64>(ceil_div<i64>(columns, kFp8Group), kSpans), band = blockIdx.x / across;
  const i64 span = (blockIdx.x - band * across) * kSpans + threadIdx.x / 32, group = span * (kFp8Group / kGroup) + lane / kLanes;
  const int place = lane % kLanes;  // among the group's lanes
  const i64 row = band * kRows + octet, column = group * kGroup + place * kVector;
  Part parts[kSteps];
  QN_UNROLL
  for (int s = 0; s < kSteps; ++s) load(row + s * kOctets, column, parts[s]);
  f32 own = 0.f;  // in the group's lane s: the scale of its row of step s
  QN_UNROLL
  for (int s = 0; s < kSteps; ++s) {
    const f32 scale = store(row + s * kOctets, column, parts[s]);
    if (place == s) own = scale;
  }
  const i64 own_row = row + place * kOctets;
  if (place < kSteps && own_row < rows && group < ceil_div<i64>(columns, kGroup))
    static_cast<Scale*>(scales)[own_row * scale_strides[0] + group * scale_strides[1]] = from_f32<Scale>(own);
}

}  // namespace quern
