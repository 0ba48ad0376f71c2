// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/memory_map.h"

#include <sys/mman.h>

#include <algorithm>

#include "quern/base/error.h"
#include "quern/emu/report.h"

namespace quern::emu {
namespace {

/// Calls visit(address, bytes) for each contiguous run of the view's elements.
template <class Visit>
void for_each_run(const TensorView& view, int dim, u64 address, const Visit& visit) {
  const i64 element = size_of(view.dtype);
  i64 dense = element;  // bytes of one step of `dim` if all inner dimensions are contiguous
  bool contiguous = true;
  for (int d = view.rank - 1; d >= dim; --d) {
    if (view.shape[d] != 1 && view.strides[d] * element != dense) contiguous = false;
    dense *= view.shape[d];
  }
  if (contiguous) return visit(address, u64(dense));
  for (i64 i = 0; i < view.shape[dim]; ++i) for_each_run(view, dim + 1, address + u64(i * view.strides[dim] * element), visit);
}

/// Address space for so many cells: only the pages that are touched become memory. `bytes` is for munmap.
Cell* reserve_cells(u64 count, u64& bytes) {
  bytes = count * sizeof(Cell);
  void* cells = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (cells == MAP_FAILED) throw Error(ErrorKind::device, "emulated device: no address space for checked mode");
  return static_cast<Cell*>(cells);
}

}  // namespace

MemoryMap::MemoryMap(std::span<const MemoryRange> ranges, const char* op, bool with_history) : op_(op ? op : "") {
  for (const MemoryRange& range : ranges) {
    const TensorView& view = range.view;
    if (!view.data || view.numel() == 0) continue;
    i64 before = 0, after = size_of(view.dtype);
    for (int d = 0; d < view.rank; ++d) {
      const i64 reach = (view.shape[d] - 1) * view.strides[d] * size_of(view.dtype);
      (reach < 0 ? before : after) += reach;
    }
    const u64 base = reinterpret_cast<u64>(view.data);
    ranges_.push_back({range, range.name ? range.name : "?", base + u64(before), base + u64(after)});
  }
  std::sort(ranges_.begin(), ranges_.end(), [](const Named& a, const Named& b) { return a.low < b.low; });
  for (const Named& named : ranges_) add_region(named.low, named.high);
  for (Region& region : regions_) region.states.assign(region.high - region.low, 0);
  for (const Named& named : ranges_) mark(named);
  for (Region& region : regions_) {
    if (!with_history) break;
    const bool writable = std::any_of(region.states.begin(), region.states.end(), [](u8 s) { return s & kWritable; });
    if (!writable) continue;
    region.cells = reserve_cells(region.states.size(), region.cell_bytes);
    region.groups = reserve_cells(region.states.size() / kGroup + 1, region.group_bytes);
  }
}

MemoryMap::~MemoryMap() {
  for (Region& region : regions_)
    if (region.cells) {
      munmap(region.cells, region.cell_bytes);
      munmap(region.groups, region.group_bytes);
    }
}

/// Called in order of `low`.
void MemoryMap::add_region(u64 low, u64 high) {
  if (!regions_.empty() && low < regions_.back().high) {
    regions_.back().high = max_of(regions_.back().high, high);
    return;
  }
  Region region;
  region.low = low;
  region.high = high;
  regions_.push_back(std::move(region));
}

void MemoryMap::mark(const Named& named) {
  using Access = MemoryRange::Access;
  u8 bits = kInside;
  if (named.range.access != Access::read) bits |= kWritable;
  if (named.range.access == Access::read || named.range.access == Access::read_write) bits |= kInitialised;
  Region& region = *find(named.low);
  const TensorView& view = named.range.view;
  for_each_run(view, 0, reinterpret_cast<u64>(view.data), [&](u64 address, u64 bytes) {
    u8* states = region.states.data() + (address - region.low);
    for (u64 i = 0; i < bytes; ++i) states[i] |= bits;
  });
}

MemoryMap::Region* MemoryMap::find(u64 address) {
  const auto after =
      std::upper_bound(regions_.begin(), regions_.end(), address, [](u64 a, const Region& region) { return a < region.low; });
  if (after == regions_.begin()) return nullptr;
  Region& region = *(after - 1);
  return address < region.high ? &region : nullptr;
}

void MemoryMap::begin_launch() {
  for (Region& region : regions_)
    if (region.cells) change(region.states.data(), region.states.size(), 0, kTouched | kOneCell | kReadOnly);
}

void MemoryMap::mark_initialised(const void* address, u64 bytes) {
  const u64 low = reinterpret_cast<u64>(address), high = low + bytes;
  for (Region& region : regions_)
    for (u64 at = max_of(low, region.low); at < min_of(high, region.high); ++at) region.states[at - region.low] |= kInitialised;
}

std::string MemoryMap::describe(u64 address) const {
  const Named* nearest = nullptr;
  u64 distance = ~u64(0);
  for (const Named& named : ranges_) {
    const u64 away = address < named.low ? named.low - address : address >= named.high ? address - named.high + 1 : 0;
    if (away < distance) {
      distance = away;
      nearest = &named;
    }
  }
  if (!nearest) return text_of("0x%llx (the call has no tensors)", address);
  const TensorView& view = nearest->range.view;
  const std::string tensor = "'" + nearest->name + "' " + quern::name(view.dtype) + " " + shape_string(view);
  if (address < nearest->low) return text_of("%llu bytes before ", distance) + tensor;
  if (address >= nearest->high) return text_of("%llu bytes past the end of ", distance - 1) + tensor;
  return tensor + text_of(" + 0x%llx", address - nearest->low);
}

}  // namespace quern::emu
