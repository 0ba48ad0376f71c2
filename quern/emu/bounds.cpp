// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/bounds.h"

#include <cstring>

#include "quern/emu/module.h"

namespace quern::emu {
namespace {

/// How many of the eight bytes at an address may be used (see kAsanShadow).
i32 usable_of_eight(u64 address) { return *reinterpret_cast<const i8*>(kAsanShadow + address / 8); }

/// Marks that both compilers write; the values are AddressSanitizer's.
constexpr u8 kBeforeFirstLocal = 0xf1, kAfterScope = 0xf8;

}  // namespace

/// From the description that a compiler puts in front of a function's local variables: two words, 0x41b58ab3 and a pointer to
/// "COUNT OFFSET SIZE LENGTH NAME[:LINE] OFFSET SIZE LENGTH NAME ...".
std::string nearest_local(u64 address, u64 stack) {
  u64 frame = address & ~u64(7);
  const auto mark = [](u64 at) { return u8(usable_of_eight(at)); };
  while (frame > stack && mark(frame) != kBeforeFirstLocal) frame -= 8;
  while (frame > stack && mark(frame - 8) == kBeforeFirstLocal) frame -= 8;
  constexpr u64 kFrameMagic = 0x41b58ab3;
  const u64* words = reinterpret_cast<const u64*>(frame);
  if (frame <= stack || words[0] != kFrameMagic) return {};
  const char* text = reinterpret_cast<const char*>(words[1]);
  char* rest = nullptr;
  u64 nearest = ~u64(0);
  std::string found;
  for (u64 left = std::strtoull(text, &rest, 10); left; --left) {
    const u64 offset = std::strtoull(rest, &rest, 10), size = std::strtoull(rest, &rest, 10);
    const u64 length = std::strtoull(rest, &rest, 10);
    if (*rest != ' ') break;
    std::string name(rest + 1, strnlen(rest + 1, length));
    rest += 1 + name.size();
    name.resize(std::min(name.find_first_of(":."), name.size()));  // clang appends ".i" and a number to what was inlined
    const u64 low = frame + offset, high = low + size;
    const u64 away = address < low ? low - address : address >= high ? address - high + 1 : 0;
    if (away >= nearest) continue;
    nearest = away;
    const std::string variable = "'" + name + "' (" + std::to_string(size) + " bytes)";
    found = away == 0       ? "in " + variable
            : address < low ? text_of("%llu bytes before ", away) + variable
                            : text_of("%llu bytes past the end of ", away - 1) + variable;
  }
  return found;
}

Bounds::Bounds(Worker& worker) : worker_(worker), request_(worker.launch().request) {}

/// False when the bytes are not shared memory of any block.
bool Bounds::judge_shared(Fiber& fiber, u64 address, u64 bytes, const char* what, Place& place) {
  Block* block = fiber.block;
  u64 low = reinterpret_cast<u64>(block->smem);
  if (address - low >= request_.smem) {
    if (!worker_.arena().holds_smem(reinterpret_cast<void*>(address))) return false;
    for (Block& other : block->cluster->blocks)
      if (address - reinterpret_cast<u64>(other.smem) < request_.smem) block = &other;
    low = reinterpret_cast<u64>(block->smem);
  }
  if (block != fiber.block && block->live == 0)
    worker_.fatal(ReportKind::cluster, fiber, text_of("%s to the shared memory of block rank %u, which has exited", what, block->rank),
                  address);
  const i64 offset = i64(address - low);
  if (offset < 0 || u64(offset) + bytes > request_.smem)
    worker_.fatal(ReportKind::smem_oob, fiber,
                  text_of("%s of %llu bytes at smem%+lld; the block has %u bytes", what, bytes, offset, request_.smem), address);
  place.block = block;
  place.offset = u32(offset);
  return true;
}

/// With asan: a thread may use what is no gap between its local variables, nor one whose scope has ended.
void Bounds::judge_local(Fiber& fiber, u64 address, u64 bytes, const char* what) {
  for (u64 at = address; at < address + bytes;) {
    const u64 end = min_of(address + bytes, (at | 7) + 1);
    const i32 usable = usable_of_eight(at);
    if (usable == 0 || i32((end - 1) & 7) < usable) {
      at = end;
      continue;
    }
    if (usable > 0) at = max_of(at, (at & ~u64(7)) + u64(usable));
    const std::string where = nearest_local(at, reinterpret_cast<u64>(fiber.stack));
    std::string text = text_of("%s of %llu bytes ", what, bytes);
    if (u8(usable) == kAfterScope) {
      text += (where.empty() ? "to a local variable" : where) + ", whose scope has ended";
    } else {
      text += where.empty() ? "outside every local variable" : where;
    }
    worker_.fatal(ReportKind::local_oob, fiber, std::move(text), address);
  }
}

/// False when the address is in no stack.
bool Bounds::judge_stack(Fiber& fiber, u64 address, u64 bytes, const char* what, Place& place) {
  if (!worker_.arena().holds_stack(reinterpret_cast<void*>(address))) return false;
  if (address - reinterpret_cast<u64>(fiber.stack) < kStackBytes) {
    place.own_stack = true;
    if (request_.options.asan) judge_local(fiber, address, bytes, what);
  } else {
    worker_.report(ReportKind::stack, fiber, text_of("%s of %llu bytes in another thread's stack", what, bytes), address);
  }
  return true;
}

MemoryMap::Region* Bounds::judge_global(Fiber& fiber, u64 address, u64 bytes, bool write, const char* what) {
  MemoryMap& memory = *request_.memory;
  if (!last_ || address < last_->low || address >= last_->high) last_ = memory.find(address);
  u64 inside = 0;
  if (last_)
    while (inside < bytes && address + inside < last_->high && last_->states[address + inside - last_->low] & kInside) ++inside;
  if (inside < bytes)
    worker_.fatal(ReportKind::global_oob, fiber,
                  text_of("%s of %llu bytes at 0x%llx: ", what, bytes, address) + memory.describe(address + inside) +
                      (last_ && address + inside < last_->high ? ", between its elements" : ""),
                  address);
  for (u64 i = 0; write && i < bytes; ++i)
    if (!(last_->states[address + i - last_->low] & kWritable))
      worker_.fatal(ReportKind::write_to_input, fiber, std::string(what) + " writes the input " + memory.describe(address + i), address);
  return last_;
}

Bounds::Place Bounds::judge(Fiber& fiber, const void* pointer, u64 bytes, bool write, const char* what) {
  Place place;
  const u64 address = reinterpret_cast<u64>(pointer);
  if (bytes == 0 || judge_shared(fiber, address, bytes, what, place) || judge_stack(fiber, address, bytes, what, place)) return place;
  if (request_.module && request_.module->holds(pointer)) return place;  // constants
  constexpr u64 kMostParams = 4096;
  if (address - reinterpret_cast<u64>(request_.params) < kMostParams && !write) return place;
  constexpr u64 kNullPage = 4096;
  if (address < kNullPage)
    worker_.fatal(ReportKind::fault, fiber, text_of("%s of %llu bytes through a null pointer, at 0x%llx", what, bytes, address), address);
  if (request_.memory) place.region = judge_global(fiber, address, bytes, write, what);
  return place;
}

}  // namespace quern::emu
