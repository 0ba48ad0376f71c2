// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// How an op of the family plans prefill_sm90.
#pragma once
#include "quern/bricks/paged/boxes.h"
#include "quern/ops/attention/prefill/plan.h"
#include "quern/ops/attention/prefill_sm90/spec.h"

namespace quern::attention {

inline const jit::Kernel<PrefillSm90Config, PrefillSm90Params> prefill_sm90_kernel{"quern/ops/attention/prefill_sm90/kernel.cuh",
                                                                                   "prefill_sm90", &kHookPoints};

/// What the kernel cannot run of a shape. `k` and `v` are what is known of their tensors.
Rejection prefill_sm90_rejects(const PrefillShape& shape, const DeviceInfo& device, const TensorFacts& k, const TensorFacts& v);

/// Handed to the params functions.
struct PrefillSm90Work {
  Region counters, parts;
  i32 part_slots;
};
struct PrefillSm90Launch {
  PrefillSm90Config config;
  Grid grid;
  PrefillSm90Work work;
};
/// Takes the memory for a shape that is not rejected; page_size: 0 of contiguous keys. The launch may come later, behind that of another
/// kernel.
PrefillSm90Launch begin_prefill_sm90(Plan& plan, const PrefillShape& shape, const DeviceInfo& device, i64 page_size);
/// The launch. `params` makes PrefillSm90Params of a Call<Args, PrefillSm90Work>.
template <auto params> void add_prefill_sm90(Plan& plan, const PrefillSm90Launch& launch, i32 pdl, const jit::Hooks* hooks) {
  Grid grid = launch.grid;
  grid.pdl = pdl;
  plan.launch<params>(prefill_sm90_kernel, launch.config, grid, launch.work, hooks);
}

/// Tensor maps of keys and values: pages where page_size is not 0, else contiguous rows. None where the kernel gathers.
paged::BoxParams prefill_sm90_boxes(Device& device, const PrefillSm90Config& config, const TensorView& k, const TensorView& v,
                                    i64 page_size);
/// The tensor map of queries, where they come by TMA.
TensorMap prefill_sm90_queries(Device& device, const PrefillSm90Config& config, const TensorView& q, i64 group);
/// What a params function sets beside AttendParams.
template <class Args> void set_prefill_sm90_params(const Call<Args, PrefillSm90Work>& c, const TensorView& k, const TensorView& v,
                                                   i64 page_size, PrefillSm90Params& to) {
  const auto& config = c.template config<PrefillSm90Config>();
  to.boxes = prefill_sm90_boxes(c.device, config, k, v, page_size);
  to.queries = prefill_sm90_queries(c.device, config, c.args.q, group_of(c.problem[Axis::heads_q], c.problem[Axis::heads_kv]));
  u32* const counters = reinterpret_cast<u32*>(c.region(c.choice.counters));
  to.next_item = counters, to.parts_done = counters == nullptr ? nullptr : counters + 1;
  to.parts = reinterpret_cast<float*>(c.region(c.choice.parts)), to.part_slots = c.choice.part_slots;
}

}  // namespace quern::attention
