// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What all variants of attention.paged read from a call.
#pragma once
#include "quern/ops/attention/paged.h"
#include "quern/ops/attention/prefill/plan.h"
#include "quern/ops/attention/prefill_sm90/plan.h"

namespace quern::attention {

/// a * b, or the largest number.
inline i64 product(i64 a, i64 b) {
  i64 c;
  return __builtin_mul_overflow(a, b, &c) ? INT64_MAX : c;
}

inline i64 group_of(const Problem& p) { return group_of(p[Axis::heads_q], p[Axis::heads_kv]); }
/// The table is dense; else CSR.
inline bool dense(const Problem& p) { return p.tensor(&PagedArgs::page_table).present != 0; }
/// Requests have q_indptr's query tokens; else one each.
inline bool several(const Problem& p) { return p.tensor(&PagedArgs::q_indptr).present != 0; }
inline KeyPlaces places_of(const Problem& p) { return dense(p) ? KeyPlaces::page_table : KeyPlaces::page_indices; }
inline DType lens_dtype(const Problem& p) { return dense(p) ? p.dtype(&PagedArgs::seq_lens) : DType::i32; }
inline i32 cache_alignment(const Problem& p) {
  return min_of(p.tensor(&PagedArgs::k_cache).alignment, p.tensor(&PagedArgs::v_cache).alignment);
}

/// Tokens that the whole page table can name.
i64 table_tokens(const Problem& p);
/// Most keys of a request that are read.
i64 capacity(const Problem& p);
/// Most keys that the queries of a request of up to `few_rows` rows can see, at least 1.
i64 visible_tokens(const Problem& p, i32 few_rows);

/// Parameters of all kernels of the op.
void set_paged_params(const PagedArgs& a, const Problem& p, AttendParams& to);

/// The kernel for requests of many rows, which leaves those of up to `few_rows` to another; 0: none.
PrefillShape paged_prefill_shape(const Problem& p, i32 few_rows);
/// Why it cannot be prefill_sm90.
Rejection paged_prefill_sm90_rejects(const Problem& p, const DeviceInfo& device, i32 few_rows);

/// How it is launched. Its memory is taken before the plan's first launch, lest a fill of zeros stand between two.
struct PagedPrefill {
  PrefillShape shape;
  bool native;  ///< prefill_sm90; else prefill_mma
  PrefillSm90Launch sm90;
};
/// `native`: prefill_sm90 where it can be.
PagedPrefill begin_prefill(Plan& plan, const Problem& p, const DeviceInfo& device, i32 few_rows, bool native);
/// Its launch, behind that of the other kernel where there is one.
void add_prefill(Plan& plan, const Problem& p, const DeviceInfo& device, const PagedPrefill& prefill);

}  // namespace quern::attention
