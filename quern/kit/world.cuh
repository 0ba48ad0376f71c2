// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Chooses the world that a kernel is compiled for: a GPU (instructions in kit/ptx) or the emulated device (kit/emu).
// Both define the same macros and, in quern::ptx, the same functions.
#pragma once
#include "quern/kit/abi.h"
#include "quern/kit/types.cuh"

#if defined(QN_EMU)
#include "quern/kit/emu/world.cuh"
#else
#include "quern/kit/ptx/world.cuh"
#endif

#include "quern/kit/cuda_names.cuh"
