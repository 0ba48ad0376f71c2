// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Every instruction as inline PTX. The only folder of quern with asm.
#pragma once
#include "quern/kit/ptx/atomic.cuh"
#include "quern/kit/ptx/bulk.cuh"
#include "quern/kit/ptx/cluster.cuh"
#include "quern/kit/ptx/convert.cuh"
#include "quern/kit/ptx/cp_async.cuh"
#include "quern/kit/ptx/entry.cuh"
#include "quern/kit/ptx/fence.cuh"
#include "quern/kit/ptx/math.cuh"
#include "quern/kit/ptx/mbarrier.cuh"
#include "quern/kit/ptx/memory.cuh"
#include "quern/kit/ptx/mma.cuh"
#include "quern/kit/ptx/number.cuh"
#include "quern/kit/ptx/sync.cuh"
#include "quern/kit/ptx/tensormap.cuh"
#include "quern/kit/ptx/tma.cuh"
#include "quern/kit/ptx/warp.cuh"
