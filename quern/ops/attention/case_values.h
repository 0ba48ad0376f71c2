// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What cases of attention.ragged and attention.paged share: words, and contents of tensors.
#pragma once
#include "quern/op/schema.h"

namespace quern::attention {

/// Most query tokens and keys of a request in cases that do not say how many.
constexpr i64 kCaseQueries = 40, kCaseKeys = 90;
/// Tokens before the first request and behind the last, which no call may touch.
constexpr i64 kSpareTokens = 3;

/// A word of the case as an integer.
i64 case_word(const Case& which, const char* name, i64 otherwise);
void set_entry(const TensorView& view, i64 at, i64 value);
/// `fixed`, or where that is negative a number from 0 to most, often one of its ends.
i64 drawn_count(i64 fixed, i64 most, Random& random);

/// Words fp8, scales, bits and causal become dtypes, presence and windows. `k`, `v`: names of the tensors; `most_bits`: of the masks of all
/// requests.
void derive_options(Case& which, const char* k, const char* v, i64 most_bits);
/// Bits of the mask, some of whose bytes are 0.
void fill_mask(const TensorView& mask, Random& random);
/// Scales near 1, none where the case is a proof's.
void fill_scales(const Case& which, std::initializer_list<const TensorView*> scales, Random& random);
/// Every element at index `at` of the first dimensions becomes NaN; two more dimensions follow.
void poison_rows(const TensorView& view, std::initializer_list<i64> at);

}  // namespace quern::attention
