// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/call_memory.h"

#include <cstdio>

#include "quern/base/log.h"
#include "quern/op/kept.h"
#include "quern/op/overlap.h"

namespace quern {

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void fail_workspace(const Op& op, const Workspace& got, i64 needed) {
  if (got.bytes < needed)
    throw Error(ErrorKind::value, op.id, "workspace", "has " + std::to_string(got.bytes) + " bytes",
                std::to_string(needed) + " (256-byte aligned)");
  char address[32];
  std::snprintf(address, sizeof address, "%p", got.data);
  throw Error(ErrorKind::value, op.id, "workspace", "starts at " + std::string(address), "an address that is a multiple of 256");
}

/// Else partial results would take the place of operands, which no kernel notices.
void check_workspace_apart(const Op& op, const void* args, const Workspace& given, i64 needed) {
  const TensorView room(given.data, DType::u8, {needed});
  char* const end = static_cast<char*>(given.data) + needed;
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorView& view = op.tensor(args, i);
    if (!view.present() || view.data >= end) continue;  // most are told apart by two comparisons
    if (static_cast<char*>(view.data) + view.extent() * size_of(view.dtype) <= given.data) continue;
    if (view.numel() > 0 && share_memory(room, view))
      throw Error(ErrorKind::value, op.id, "workspace", "overlaps `" + op.tensors[i].name + "` in memory", "memory of its own");
  }
}

/// Instead of what the device says, which knows no op: nothing is allocated while the stream is capturing.
[[noreturn, gnu::cold, gnu::noinline]] void fail_capture(const Op& op, i64 needed) {
  throw Error(ErrorKind::frozen, op.id, "workspace", "is absent while the stream is capturing",
              std::to_string(needed) + " bytes (256-byte aligned) that were allocated before");
}

/// Calls visit(address, bytes of a row, rows, bytes from row to row) until all elements of the view were visited: as few calls as can be.
template <class Visit> void each_rows(const TensorView& v, const Visit& visit) {
  const i64 element = size_of(v.dtype);
  int inner = v.rank;  // dimensions from here on are dense
  i64 dense = 1;
  while (inner > 0 && (v.shape[inner - 1] == 1 || v.strides[inner - 1] == dense)) dense *= v.shape[--inner];
  char* const base = static_cast<char*>(v.data);
  if (inner == 0) return visit(base, dense * element, 1, 0);
  i64 index[kMaxRank] = {};
  for (int d = 0; d >= 0;) {
    char* at = base;
    for (int i = 0; i < inner - 1; ++i) at += index[i] * v.strides[i] * element;
    visit(at, dense * element, v.shape[inner - 1], v.strides[inner - 1] * element);
    for (d = inner - 2; d >= 0 && ++index[d] == v.shape[d]; --d) index[d] = 0;
  }
}

/// The tensor at `offset` of Args, which a fill names.
const TensorView& filled_tensor(const Op& op, const void* args, ptrdiff_t offset) {
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    if (op.tensors[i].offset != offset) continue;
    const TensorView& view = op.tensor(args, i);
    if (view.present() && op.tensors[i].role != Role::in) return view;
    throw Error(ErrorKind::internal, op.id, op.tensors[i].name,
                view.present() ? "is an input that plan fills" : "is absent and filled by plan", "an output that is present");
  }
  throw Error(ErrorKind::internal, op.id, "", "plan fills what is none of the op's tensors", "an output");
}

}  // namespace

void place_regions(const Plan& plan, char* workspace, i64 gap, char** regions) {
  for (i32 i = 0; i < plan.region_count; ++i)
    if (plan.regions[i].kind != RegionKind::kept) regions[i] = workspace ? workspace + plan.regions[i].offset + i * gap : nullptr;
}

CallMemory::CallMemory(const Op& op, const void* args, const Plan& plan, const RunOptions& options, Device& device)
    : CallMemory(device, options.stream) {
  if (plan.region_count > 0) {
    const i64 gap = device.wants_memory_ranges() && !options.workspace.data ? kCheckedGap : 0;
    place_regions(plan, take_workspace(op, args, plan.workspace, plan.workspace + gap * plan.region_count, options), gap, regions_);
    for (i32 i = 0; i < plan.region_count; ++i)
      if (plan.regions[i].kind == RegionKind::kept) regions_[i] = kept_memory(op, plan.regions[i], device, stream_);
  }
  if (device.wants_memory_ranges()) [[unlikely]]
    tell_ranges(op, args, plan);
}

/// Where nothing may be thrown, as a sink of the caller's may.
static void warn_at_end(const Error& e) noexcept {
  try {
    log(LogLevel::warning, e.what());
  } catch (...) { std::fprintf(stderr, "quern: warning: %s\n", e.what()); }
}

CallMemory::~CallMemory() {
  if (told_) device_.end_call();
  if (!pooled_) return;
  try {
    device_.release_async(pooled_, stream_);
  } catch (const Error& e) { warn_at_end(e); }
}

char* CallMemory::take_workspace(const Op& op, const void* args, i64 needed, i64 bytes, const RunOptions& options) {
  if (needed == 0) return nullptr;
  const Workspace& given = options.workspace;
  if (!given.data && given.bytes != 0)
    throw Error(ErrorKind::value, op.id, "workspace", "has no address and " + std::to_string(given.bytes) + " bytes",
                "an address, or 0 bytes");
  if (!given.data) {
    try {
      return static_cast<char*>(pooled_ = device_.allocate_async(size_t(bytes), stream_));
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::frozen) fail_capture(op, needed);
      throw;
    }
  }
  if (given.bytes < needed || u64(reinterpret_cast<uintptr_t>(given.data)) % 256) fail_workspace(op, given, needed);
  if (!options.skip_check) check_workspace_apart(op, args, given, needed);
  return static_cast<char*>(given.data);
}

void CallMemory::tell_ranges(const Op& op, const void* args, const Plan& plan) {
  using Access = MemoryRange::Access;
  std::vector<MemoryRange> ranges;
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorView& view = op.tensor(args, i);
    if (!view.present() || view.numel() == 0) continue;
    const Role role = op.tensors[i].role;
    ranges.push_back({view, op.tensors[i].name.c_str(),
                      role == Role::in    ? Access::read
                      : role == Role::out ? Access::write
                                          : Access::read_write});
  }
  for (i32 i = 0; i < plan.region_count; ++i) {
    const RegionFacts& r = plan.regions[i];
    if (r.bytes > 0)
      ranges.push_back(
          {TensorView(regions_[i], DType::u8, {r.bytes}), r.name, r.kind == RegionKind::kept ? Access::read_write : Access::scratch});
  }
  device_.begin_call(ranges, op.id.c_str());
  told_ = true;
}

bool run_fills(const Op& op, const void* args, const Plan& plan, i32 before, char* const* regions, Device& device, Stream stream) {
  bool any = false;
  for (i32 i = 0; i < plan.fill_count; ++i) {
    const Fill& f = plan.fills[i];
    if (f.before != before) continue;
    any = true;
    if (f.region) {
      if (const i64 bytes = plan.regions[f.region.index].bytes; bytes > 0)
        device.fill(regions[f.region.index], f.byte, size_t(bytes), stream);
      continue;
    }
    const TensorView& view = filled_tensor(op, args, f.output);
    if (view.numel() == 0) continue;
    each_rows(view, [&](char* at, i64 bytes, i64 rows, i64 pitch) {
      if (rows == 1) device.fill(at, f.byte, size_t(bytes), stream);
      else device.fill_rows(at, f.byte, size_t(bytes), rows, pitch, stream);
    });
  }
  return any;
}

}  // namespace quern
