// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Macros of a kernel in the emulated world: the entry that the runtime calls once per thread, indices, shared memory.
#pragma once
#include "quern/kit/emu/runtime.h"

#if defined(QN_EMU_CHECKED) || defined(QN_EMU_ASAN)
// All of a kernel in one function, as on a GPU: then every access has the kernel's line among its inlined frames.
#define QN_DEVICE static inline __attribute__((unused, always_inline))
#else
#define QN_DEVICE static inline __attribute__((unused))
#endif
/// Of a function that belongs to the emulator: its accesses are none of the kernel's.
#if defined(__clang__)
#define QN_UNWATCHED __attribute__((no_sanitize("thread", "address", "coverage")))
#else
#define QN_UNWATCHED __attribute__((no_sanitize("thread", "address")))
#endif
/// Of the entry: kit/emu/wgmma.cuh takes it away, since only registers of a wgmma need the second kind of hooks.
#if defined(__clang__)
#define QN_WITHOUT_REGISTERS __attribute__((no_sanitize("coverage")))
#else
#define QN_WITHOUT_REGISTERS
#endif
#define QN_UNROLL
#define QN_NO_UNROLL
#define threadIdx (::quern::emu::current()->thread)
#define blockIdx (::quern::emu::current()->block)
#define blockDim (::quern::emu::current()->block_size)
#define gridDim (::quern::emu::current()->grid_size)

#define QN_SMEM(name) ::quern::u8* const name = ::quern::emu::current()->smem
#define QN_PRINT(...) ::quern::emu::current()->runtime->print(__VA_ARGS__)
/// A read that has no meaning ends the launch with a report; `what` is one of emu::BadRead.
#define QN_JUDGES_READS true
#define QN_BAD_READ(what, tensor, got, expected, dim) \
  ::quern::emu::current()->runtime->bad_read(::quern::emu::BadRead::what, tensor, got, expected, dim)

/// The one kernel of the file, called with parameters `p`. The symbol NAME is the device's; here all have fixed names.
#define QN_ENTRY(NAME, PARAMS, THREADS, MIN_BLOCKS, ...) \
  extern "C" __attribute__((visibility("default"))) QN_WITHOUT_REGISTERS void quern_entry(const void* params) { \
    const PARAMS& p = *static_cast<const PARAMS*>(params); \
    __VA_ARGS__; \
  } \
  extern "C" __attribute__((visibility("default"))) const int quern_entry_threads = THREADS; \
  extern "C" __attribute__((visibility("default"))) const ::quern::u32 quern_entry_registers = \
      ::quern::emu::launch_registers(THREADS, MIN_BLOCKS); \
  extern "C" __attribute__((visibility("default"))) const ::quern::u32 quern_runtime_bytes = sizeof(::quern::emu::Runtime); \
  extern "C" __attribute__((visibility("default"))) QN_UNWATCHED void quern_bind(const ::quern::emu::Runtime* runtime) { \
    ::quern::emu::bound_runtime = runtime; \
  }

namespace quern::emu {
/// Set once when the module is loaded; each thread also has it in its context.
static const Runtime* bound_runtime __attribute__((unused)) = nullptr;
}  // namespace quern::emu
