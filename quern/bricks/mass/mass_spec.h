// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Constants of the mass function (mass.cuh). All are part of the contract of docs/sampling.md.
#pragma once
#include "quern/kit/abi.h"

namespace quern {

/// log2(e) is the sum of two f32; what is left is below 2^-51.
constexpr float kLog2eHigh = 0x1.715476p+0f;
constexpr float kLog2eLow = 0x1.4ae0cp-26f;

/// 2^f for |f| <= 1/2 is the sum of kExp2Coefficients[power] f^power. A fit of the relative error with the first coefficient 1, each next
/// one rounded to f32 before those behind it were fitted: 6.7e-9, 2^-27.2, before roundings.
constexpr int kExp2Terms = 7;
QN_HOST_DEVICE constexpr float exp2_coefficient(int power) {
  constexpr float of[kExp2Terms] = {1.f, 0x1.62e432p-1f, 0x1.ebfbe6p-3f, 0x1.c6ada8p-5f, 0x1.3b21c6p-7f, 0x1.5fc2fep-10f, 0x1.4bccecp-13f};
  return of[power];
}

/// A sum with it, and less it again, is a number of less than 2^22 rounded to the nearest integer, ties to even.
constexpr float kRoundsToInteger = 0x1.8p+23f;

/// Where |logit * log2(e) / temperature| is cut.
constexpr float kLogitReach = 0x1p28f;
/// Exponent of what is cut, above that of all other logits; that of +inf is above it by more than kMassWindow.
constexpr i32 kWeightReach = 1 << 29;
constexpr i32 kInfiniteWeight = kWeightReach + 1024;
/// A weight whose exponent is more than this below the largest has mass 0. 60 is the most for which p * total, of 24 and of 24 + 60 + 20
/// bits, fits into 128 bits with a vocabulary of 2^20.
constexpr i32 kMassWindow = 60;

/// Temperatures below this choose the largest logit.
constexpr float kGreedyTemperature = 1e-5f;

}  // namespace quern
