// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Macros of a kernel on a GPU: function qualifiers, the entry, shared memory.
#pragma once
#include "quern/kit/types.cuh"

#define QN_DEVICE static __device__ __forceinline__
#define QN_UNROLL _Pragma("unroll")
#define QN_NO_UNROLL _Pragma("unroll 1")
#define QN_SMEM(name) \
  extern __shared__ __align__(1024) unsigned char quern_dynamic_smem[]; \
  ::quern::u8* const name = quern_dynamic_smem
#define QN_PRINT(...) printf(__VA_ARGS__)
/// A read that has no meaning is reported by the emulated device alone: nothing slows a kernel down for it.
#define QN_JUDGES_READS false
#define QN_BAD_READ(what, tensor, got, expected, dim) ((void)0)

/// The one kernel of the file: symbol, parameter struct, threads of a block, least resident blocks, body with `p`.
#define QN_ENTRY(NAME, PARAMS, THREADS, MIN_BLOCKS, ...) \
  extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) NAME(const __grid_constant__ PARAMS p) { __VA_ARGS__; }
