// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <type_traits>

#include "quern/device/device.h"
#include "quern/jit/spec.h"
#include "quern/op/problem.h"

namespace quern {

struct Plan;

/// What a params function sees. `Args` is the op's.
template <class Args> struct Call {
  const Args& args;
  const Problem& problem;
  const Plan& plan;
  char* workspace;  ///< of plan.workspace bytes, 256-byte aligned
  Device& device;   ///< encodes tensor maps
};

/// One kernel launch of a plan.
struct Launch {
  jit::KernelSpec spec;
  LaunchConfig config;
  void (*params)(void* into, const void* args, const Problem& problem, const Plan& plan, char* workspace, Device& device) = nullptr;
};

/// Sizes of a launch as plan writes them.
struct Grid {
  i64 x = 1, y = 1, z = 1;
  i32 smem = 0;      ///< dynamic shared memory, bytes
  i32 cluster = 1;
  i32 pdl = 0;       ///< may overlap the launch before it (the kernel has a griddepcontrol wait)
};

/// Throws Error{unsupported}: a GPU launches 1 to 2^31 - 1 blocks along x, 1 to 65535 along y and z.
[[noreturn]] QN_API void fail_grid(const jit::KernelInfo& kernel, const Grid& grid);

constexpr int kMaxLaunches = 3;
constexpr int kMaxParamsBytes = 2048;

/// What a call does: launches in order and the workspace that they share. A value: print it, compare it, keep it.
struct Plan {
  i32 count = 0;
  i32 variant = 0;     ///< index into the op's variants
  i64 workspace = 0;   ///< bytes; contents need not survive the call and need no initialisation
  Launch launches[kMaxLaunches];

  /// Adds a launch whose parameters `fill` makes: `static P fill(const Call<Args>&)`, P being the kernel's Params.
  template <auto fill, class Config, class Params>
  void launch(const jit::Kernel<Config, Params>& kernel, const Config& config, const Grid& grid,
              const jit::Hooks* hooks = nullptr) {
    static_assert(sizeof(Params) <= kMaxParamsBytes);
    Launch& l = launches[count++];
    l.spec = kernel(config, hooks);
    if (u64(grid.x - 1) >= 0x7FFFFFFF || u64(grid.y - 1) >= 65535 || u64(grid.z - 1) >= 65535) fail_grid(kernel.info(), grid);
    l.config.grid[0] = u32(grid.x), l.config.grid[1] = u32(grid.y), l.config.grid[2] = u32(grid.z);
    l.config.cluster = u32(grid.cluster);
    l.config.threads = u32(config.threads);
    l.config.smem = u32(grid.smem);
    l.config.pdl = grid.pdl != 0;
    l.params = [](void* into, const void* args, const Problem& problem, const Plan& plan, char* workspace, Device& device) {
      call_fill<Params>(fill, into, args, problem, plan, workspace, device);
    };
  }

 private:
  template <class Params, class Args>
  static void call_fill(Params (*fill)(const Call<Args>&), void* into, const void* args, const Problem& problem,
                        const Plan& plan, char* workspace, Device& device) {
    new (into) Params(fill(Call<Args>{*static_cast<const Args*>(args), problem, plan, workspace, device}));
  }
};

/// Tuned choices that plan may read; offline tuning writes them.
struct Knobs {};

/// One kernel (or pair of kernels) of an op. The first variant that rejects nothing is taken.
struct Variant {
  const char* name;
  Rejection (*rejects)(const Problem& problem, const DeviceInfo& device);  ///< null: runs everything
  Plan (*plan)(const Problem& problem, const DeviceInfo& device, const Knobs& knobs);
};

}  // namespace quern
