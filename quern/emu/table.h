// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The functions behind the runtime table; each runs on the stack of the CUDA thread that calls it.
#pragma once
#include "quern/kit/emu/runtime.h"

namespace quern::emu {

const char* name(Collective kind);

void run_collective(u32 mask, Collective kind, void* payload, Meaning meaning, u32 line);
u32 run_barrier(u32 id, u32 threads, bool arrive_only, u32 vote, u32 line);
void run_cp_async(u32 destination, const void* source, u32 bytes, u32 source_bytes);
void run_cp_async_commit();
void run_cp_async_wait(u32 groups_left);
u64 run_atomic(const AtomicCall& call);
void run_fence(Scope scope);
void run_read_only(const void* address, u32 bytes);
void run_proxy_fence(ProxyFence fence, const void* address);
bool run_mbarrier(const MbarrierCall& call);
void run_bulk(const BulkCall& call);
void run_bulk_commit();
void run_bulk_wait(u32 groups_left, bool read);
void run_cluster_arrive(bool release, u32 line);
void run_cluster_wait(u32 line);
void run_cluster_access(u32 rank, const char* what);
void run_tensormap_replace(u32 map, TensorMapField field, u32 dim, u64 value);
void run_wgmma(const WgmmaCall& call);
void run_wgmma_fence(u32 line);
void run_wgmma_commit(u32 line);
void run_wgmma_wait(u32 groups_left, u32 line);
void run_wgmma_hold(const void* registers, u32 bytes);
void run_set_registers(bool increase, u32 registers);

}  // namespace quern::emu
