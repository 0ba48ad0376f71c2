// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Every instruction with its meaning on a CPU.
#pragma once
#include "quern/kit/emu/atomic.cuh"
#include "quern/kit/emu/bulk.cuh"
#include "quern/kit/emu/cluster.cuh"
#include "quern/kit/emu/convert.cuh"
#include "quern/kit/emu/cp_async.cuh"
#include "quern/kit/emu/entry.cuh"
#include "quern/kit/emu/fence.cuh"
#include "quern/kit/emu/math.cuh"
#include "quern/kit/emu/mbarrier.cuh"
#include "quern/kit/emu/memory.cuh"
#include "quern/kit/emu/mma.cuh"
#include "quern/kit/emu/number.cuh"
#include "quern/kit/emu/sync.cuh"
#include "quern/kit/emu/tensormap.cuh"
#include "quern/kit/emu/tma.cuh"
#include "quern/kit/emu/warp.cuh"
#if defined(QN_EMU_CHECKED)
#include "quern/kit/emu/hooks.cuh"
#elif defined(QN_EMU_ASAN)
#include "quern/kit/emu/hooks_asan.cuh"
#endif
