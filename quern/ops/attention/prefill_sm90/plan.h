// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// How an op of the family plans prefill_sm90.
#pragma once
#include "quern/bricks/paged/boxes.h"
#include "quern/ops/attention/prefill/plan.h"
#include "quern/ops/attention/prefill_sm90/spec.h"

namespace quern::attention {

inline const jit::Kernel<PrefillSm90Config, PrefillSm90Params> prefill_sm90_kernel{"quern/ops/attention/prefill_sm90/kernel.cuh", "prefill_sm90", &kHookPoints};

/// What the kernel cannot run of a shape. `k` and `v` are what is known of their tensors.
Rejection prefill_sm90_rejects(const PrefillShape& shape, const DeviceInfo& device, const char* k_name, const TensorFacts& k, const char* v_name, const TensorFacts& v);
/// The kernel for a shape that is not rejected; page_size: 0 of contiguous keys.
PrefillSm90Config prefill_sm90_config(const PrefillShape& shape, const DeviceInfo& device, i64 page_size);
/// Handed to the params functions.
struct PrefillSm90Work {
  Region counters, parts;
  i32 part_slots;
};
/// The launch's grid, and the memory that it works in.
Grid prefill_sm90_grid(const PrefillShape& shape, const PrefillSm90Config& config, const DeviceInfo& device);
PrefillSm90Work prefill_sm90_work(Plan& plan, const PrefillShape& shape, const PrefillSm90Config& config, const DeviceInfo& device);
/// What a params function says of it.
template <class Args> void set_prefill_sm90_work(const Call<Args, PrefillSm90Work>& c, PrefillSm90Params& to) {
  u32* const counters = reinterpret_cast<u32*>(c.region(c.choice.counters));
  to.next_item = counters, to.parts_done = counters == nullptr ? nullptr : counters + 1;
  to.parts = reinterpret_cast<float*>(c.region(c.choice.parts)), to.part_slots = c.choice.part_slots;
}
/// Tensor maps of keys and values: pages where page_size is not 0, else contiguous rows. None where the kernel gathers.
paged::BoxParams prefill_sm90_boxes(Device& device, const PrefillSm90Config& config, const TensorView& k, const TensorView& v, i64 page_size);
/// The tensor map of queries, where they come by TMA.
TensorMap prefill_sm90_queries(Device& device, const PrefillSm90Config& config, const TensorView& q, i64 group);

}  // namespace quern::attention
