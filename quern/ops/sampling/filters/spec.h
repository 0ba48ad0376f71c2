// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/bricks/select/spec.h"
#include "quern/ops/sampling/filters_spec.h"

namespace quern::sampling {

/// What the rows hold.
enum class RowKind : i32 { logits, probs };

/// How a team filters a row: part of a Config.
struct FilterLayout {
  RowLayout row;
  RowKind kind;
};

/// Which shares the logits of a row have.
enum class ShareState : i32 {
  none,  ///< NaN, all of them
  one,   ///< 1 at the largest logit, else 0
  all,   ///< by weights
};
/// What is kept of a row between two launches, so that the second can tell the share of any element.
struct StoredShares {
  ShareState state;
  i32 first;     // index of the largest logit
  u32 key;       // of the largest logit
  i32 top;       // exponent of its weight
  u32 mantissa;  // bits of the sum of masses: mantissa * 2^power
  i32 power;
};

/// Temperature and filters: of each row, or a number for all.
struct FilterParams {
  const float* temperatures;  // [rows] or null
  const i32* top_ks;          // [rows] or null
  const float* top_ps;        // [rows] or null
  const float* min_ps;        // [rows] or null
  float temperature, top_p, min_p;
  i32 top_k;
  FilterOrder order;
  i32 min_p_first;
  FilterTies ties;
};

}  // namespace quern::sampling
