// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <new>
#include <span>
#include <type_traits>

#include "quern/device/device.h"
#include "quern/jit/spec.h"
#include "quern/op/problem.h"

namespace quern {

constexpr int kMaxSteps = 8;  ///< launches and fills of a plan
constexpr int kMaxRegions = 8;
constexpr int kMaxParamsBytes = 4096;
constexpr int kMaxChoiceBytes = 64;

/// A part of the memory that a call works in. plan gets one from the Plan and hands it on in a choice; a params function asks
/// Call::region for its address. Default-made: none.
struct Region {
  i32 index = -1;  ///< into Plan::regions
  explicit operator bool() const { return index >= 0; }
};

/// What holds of a region before a call's first launch.
enum class RegionKind : i32 {
  scratch,  ///< nothing
  zeroed,   ///< every byte is 0
  kept,     ///< what the call before it left; every byte is 0 in the first one
};
constexpr const char* name(RegionKind kind) {
  return kind == RegionKind::scratch ? "scratch" : kind == RegionKind::zeroed ? "zeroed" : "kept";
}

/// What a Plan knows of a region.
struct RegionFacts {
  const char* name;  ///< lives as long as the process
  RegionKind kind;
  i64 offset;  ///< in the workspace, a multiple of 256; kept regions lie elsewhere
  i64 bytes;
};

struct Launch;

/// What params functions without a choice are handed.
struct NoChoice {};

/// What a params function sees. `Args` is the op's, `Choice` the type of what plan gave its launch.
template <class Args, class Choice = NoChoice> struct Call;
template <class Args> struct Call<Args, NoChoice> {
  const Args& args;
  const Problem& problem;
  const Launch& launch;
  char* const* regions;
  Device& device;  ///< encodes tensor maps

  /// Address of a region, 256-byte aligned; null for none.
  char* region(Region r) const { return r ? regions[r.index] : nullptr; }
  /// The Config that plan gave this launch.
  template <class Config> const Config& config() const;
};
template <class Args, class Choice> struct Call : Call<Args> {
  const Choice& choice;
};

/// One kernel launch of a plan.
struct Launch {
  jit::KernelSpec spec;
  LaunchConfig config;
  /// Writes the kernel's Params. `regions` are the addresses of the plan's regions.
  void (*params)(void* into, const void* args, const Problem& problem, const Launch& launch, char* const* regions,
                 Device& device) = nullptr;
  alignas(16) char choice[kMaxChoiceBytes];  ///< what plan hands the params function, as bytes
};

template <class Args> template <class Config> const Config& Call<Args, NoChoice>::config() const { return launch.spec.config_as<Config>(); }

/// A fill of a plan: every byte of a region, or of an output's elements, becomes `byte`.
struct Fill {
  Region region;
  ptrdiff_t output;  ///< where `region` is none: of a TensorView in Args
  i32 before;        ///< number of the launch that it runs before; the count of launches: behind all
  u8 byte;
};

/// Sizes of a launch as plan writes them.
struct Grid {
  i64 x = 1, y = 1, z = 1;
  i32 smem = 0;  ///< dynamic shared memory, bytes
  ClusterShape cluster = {};
  i32 pdl = 0;  ///< may overlap the launch before it (the kernel has a griddepcontrol wait)
};

/// Throws Error{unsupported} where a GPU cannot launch so many blocks: 1 to 2^31 - 1 along x, 1 to 65535 along y and z. Throws
/// Error{internal} where they are not whole clusters.
[[noreturn]] QN_API void fail_grid(const jit::KernelInfo& kernel, const Grid& grid);
/// Throws Error{internal}: a plan has one `what` more than `most`.
[[noreturn]] QN_API void fail_count(const char* what, int most);

/// What a call does: launches and fills in order, and the memory that they share. A value: print it, keep it.
struct Plan {
  i32 count = 0;  ///< launches
  i32 fill_count = 0;
  i32 region_count = 0;
  i32 variant = 0;    ///< index into the op's variants
  i64 workspace = 0;  ///< bytes that scratch and zeroed regions take
  union {             ///< the first `count`; others are not made, as a plan is made on every call
    Launch launches[kMaxSteps];
  };
  Fill fills[kMaxSteps];
  RegionFacts regions[kMaxRegions];

  Plan() {}
  Plan(const Plan& other) { *this = other; }
  Plan& operator=(const Plan& other) {
    count = other.count, fill_count = other.fill_count, region_count = other.region_count, variant = other.variant,
    workspace = other.workspace;
    for (i32 i = 0; i < count; ++i) new (&launches[i]) Launch(other.launches[i]);
    for (i32 i = 0; i < fill_count; ++i) fills[i] = other.fills[i];
    for (i32 i = 0; i < region_count; ++i) regions[i] = other.regions[i];
    return *this;
  }

  /// Memory for this call alone. `name` is for reports and must be a literal; plans of one problem have the same sizes.
  Region scratch(const char* name, i64 bytes) { return add_region(name, RegionKind::scratch, bytes); }
  /// The same, of zeros when the first launch begins: run() fills it, which is a step.
  Region zeroed(const char* name, i64 bytes) {
    const Region region = add_region(name, RegionKind::zeroed, bytes);
    return add_fill({region, 0, 0, 0}), region;
  }
  /// Memory whose contents the next call finds: zeros in the first one. There is one for each op, name, size, device and stream, as long
  /// as the process lives, and captured graphs keep its address. So its size is of the device or a Config, not of the tokens, and calls
  /// of a stream that is destroyed must have ended. While a stream captures none is made: Error{frozen}.
  Region kept(const char* name, i64 bytes) { return add_region(name, RegionKind::kept, bytes); }

  /// Adds a step that fills a region of this plan. Throws Error{internal} for none.
  QN_API void fill(Region region, u8 byte);
  /// Adds a step that fills the elements of an output that is present.
  template <class Args> void fill(TensorView Args::* output, u8 byte) { add_fill({{}, member_offset(output), count, byte}); }

  /// Adds a launch whose parameters `make` makes, P being the kernel's Params: `static P make(const Call<Args>&)`, or
  /// `const Call<Args, Choice>&` where plan hands it a choice, any plain struct of at most 64 bytes.
  template <auto make, class Config, class Params, class Choice = NoChoice>
  void launch(const jit::Kernel<Config, Params>& kernel, const Config& config, const Grid& grid, const Choice& choice = {},
              const jit::Hooks* hooks = nullptr) {
    static_assert(sizeof(Params) <= kMaxParamsBytes);
    static_assert(std::is_trivially_copyable_v<Choice> && sizeof(Choice) <= kMaxChoiceBytes && alignof(Choice) <= 16,
                  "a choice is plain data of 64 bytes at most");
    if (count + fill_count >= kMaxSteps) fail_count("step", kMaxSteps);
    if (!launches_on_gpu(grid)) fail_grid(kernel.info(), grid);
    Launch& l = *new (&launches[count++]) Launch;
    l.spec = kernel(config, hooks);
    l.config.grid[0] = u32(grid.x), l.config.grid[1] = u32(grid.y), l.config.grid[2] = u32(grid.z);
    l.config.cluster = grid.cluster;
    l.config.threads = u32(config.threads);
    l.config.smem = u32(grid.smem);
    l.config.pdl = grid.pdl != 0;
    new (l.choice) Choice(choice);
    l.params = [](void* into, const void* args, const Problem& problem, const Launch& launch, char* const* regions, Device& device) {
      call_make<Choice>(make, into, args, problem, launch, regions, device);
    };
  }

 private:
  QN_API Region add_region(const char* name, RegionKind kind, i64 bytes);
  QN_API void add_fill(const Fill& fill);

  static bool launches_on_gpu(const Grid& g) {
    const ClusterShape& c = g.cluster;
    if (u64(g.x - 1) >= 0x7FFFFFFF || u64(g.y - 1) >= 65535 || u64(g.z - 1) >= 65535) return false;
    return c.blocks() == 1 || (c.blocks() != 0 && u32(g.x) % c.x == 0 && u32(g.y) % c.y == 0 && u32(g.z) % c.z == 0);
  }

  template <class Given, class Params, class Args, class Choice>
  static void call_make(Params (*make)(const Call<Args, Choice>&), void* into, const void* args, const Problem& problem,
                        const Launch& launch, char* const* regions, Device& device) {
    static_assert(std::is_same_v<Given, Choice>, "plan.launch is given the choice that the params function takes");
    const Call<Args> call{*static_cast<const Args*>(args), problem, launch, regions, device};
    if constexpr (std::is_same_v<Choice, NoChoice>) new (into) Params(make(call));
    else new (into) Params(make(Call<Args, Choice>{call, *std::launder(reinterpret_cast<const Choice*>(launch.choice))}));
  }
};

/// One kernel (or pair of kernels) of an op. plan takes the first that rejects nothing and has no reason to be left to a later one;
/// where each that can run has such a reason, the first of them.
struct Variant {
  const char* name;
  Rejection (*rejects)(const Problem& problem, const DeviceInfo& device);  ///< what it cannot run; null: runs everything
  Plan (*plan)(const Problem& problem, const DeviceInfo& device);
  /// What it runs, but another variant does better. Asked where `rejects` had nothing to say, not when the call names a variant. Null:
  /// nothing.
  Rejection (*slower)(const Problem& problem, const DeviceInfo& device) = nullptr;
  /// Names of what its plan chooses among, without ':'. A call names one as VARIANT:CANDIDATE; plan then takes Problem::candidate in the
  /// place of its own choice, and `rejects` says what that one cannot run. They are for tests, and for measuring what plan's choice is
  /// worth.
  std::span<const char* const> candidates = {};

  bool can(const Problem& problem, const DeviceInfo& device) const { return !rejects || !rejects(problem, device); }
  /// Can, and does not leave it to another variant unless the call names one.
  bool takes(const Problem& problem, const DeviceInfo& device) const {
    return can(problem, device) && (problem.variant >= 0 || !slower || !slower(problem, device));
  }
};

}  // namespace quern
