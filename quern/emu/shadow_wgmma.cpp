// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Checked mode of wgmma. Registers: arrays on the threads' stacks, whose words are marked as a kernel's loads and stores
// touch them and as instructions take them. Shared memory: read by an agent of the warpgroup, whose moments are the numbers
// of its wgmma; who has waited for one knows that moment.
#include <cstring>

#include "quern/emu/shadow.h"

namespace quern::emu {
namespace {

template <class Visit> void each_word(u64 address, u64 bytes, Visit visit) {
  const u64 first = (address & (kStackBytes - 1)) / 4, last = ((address + bytes - 1) & (kStackBytes - 1)) / 4;
  for (u64 word = first; word <= last; ++word) visit(word / 64, u64(1) << word % 64);
}

bool overlaps(const HeldRegisters& held, u64 address, u64 bytes) {
  const u64 low = reinterpret_cast<u64>(held.first);
  return address < low + held.bytes && low < address + bytes;
}

RegisterWatch& watch_of(Fiber& fiber) {
  if (!fiber.wgmma.watch) {
    fiber.wgmma.watch = std::make_unique<RegisterWatch>();
    fiber.thread->watch = fiber.wgmma.watch.get();
  }
  return *fiber.wgmma.watch;
}

}  // namespace

void Shadow::judge_registers(Fiber& fiber, u64 address, u64 bytes, bool write, const char* what) {
  if (!fiber.wgmma.watch) return;
  each_word(address, bytes, [&](u64 word, u64 bit) { fiber.wgmma.watch->touched[word] |= bit; });
  for (const HeldRegisters& held : fiber.wgmma.held) {
    if (!overlaps(held, address, bytes)) continue;
    Report report{ReportKind::wgmma,
                  fiber.block->index,
                  i64(fiber.index),
                  address,
                  std::string(what) + (write ? " writes " : " reads ") + (held.n ? "an accumulator" : "a register of A") +
                      " of a wgmma that the thread has not waited for",
                  fiber.pc};
    report.other_pc = held.pc;
    worker_.launch().add(std::move(report));
    return;
  }
  for (const HeldRegisters& held : fiber.wgmma.waited_for) {
    if (!overlaps(held, address, bytes)) continue;
    Report report{
        ReportKind::wgmma,
        fiber.block->index,
        i64(fiber.index),
        address,
        std::string(what) + (write ? " writes " : " reads ") + "an accumulator, and no wgmma_hold lies behind the wait for its wgmma",
        fiber.pc};
    report.other_pc = held.pc;
    worker_.launch().add(std::move(report));
    return;
  }
}

void Shadow::wgmma_fence(Fiber& fiber) { std::memset(watch_of(fiber).touched, 0, sizeof(RegisterWatch::touched)); }

void Shadow::wgmma_takes_registers(Fiber& fiber, const WgmmaCall& call) {
  RegisterWatch& watch = watch_of(fiber);
  const auto check = [&](void* first, u32 bytes, u32 n) {
    const u64 address = reinterpret_cast<u64>(first);
    bool touched = false;
    each_word(address, bytes, [&](u64 word, u64 bit) { touched |= (watch.touched[word] & bit) != 0; });
    const char* const name = n ? "accumulators" : "registers of A";
    if (touched) worker_.report(ReportKind::wgmma, fiber, text_of("the thread accessed %s since its last wgmma_fence", name));
    for (const HeldRegisters& held : fiber.wgmma.held) {
      const bool shared = n ? held.n == n && held.first == first : held.n == 0;
      if (overlaps(held, address, bytes) && !shared)
        worker_.report(ReportKind::wgmma, fiber,
                       text_of("%s that another wgmma has, which is of another shape and has not been waited for", name));
    }
  };
  if (!fiber.wgmma.fenced) worker_.report(ReportKind::wgmma, fiber, "no wgmma_fence before the first wgmma");
  check(call.d, call.d_bytes, call.n);
  if (call.a_registers) check(call.a_registers, 16, 0);
}

void Shadow::wgmma_holds(Fiber& fiber, const WgmmaCall& call, u64 number) {
  RegisterWatch& watch = watch_of(fiber);
  std::erase_if(fiber.wgmma.waited_for,
                [&](const HeldRegisters& held) { return overlaps(held, reinterpret_cast<u64>(call.d), call.d_bytes); });
  const auto take = [&](u64 word, u64 bit) { watch.in_flight[word] |= bit; };
  each_word(reinterpret_cast<u64>(call.d), call.d_bytes, take);
  if (call.a_registers) each_word(reinterpret_cast<u64>(call.a_registers), 16, take);
  for (HeldRegisters& held : fiber.wgmma.held)
    if (held.n == call.n && held.first == call.d) {
      held.until = number;
      return;
    }
  fiber.wgmma.held.push_back({static_cast<u8*>(call.d), call.d_bytes, number, call.n, {}, fiber.pc});
}

void Shadow::wgmma_waited(Fiber& fiber, Warpgroup& group) {
  ThreadClock& clock = fiber.clock;
  const u64 waited = fiber.wgmma.waited;
  if (group.agent) clock.known.learn(group.agent, u32(waited));
  RegisterWatch& watch = watch_of(fiber);
  std::vector<HeldRegisters>& behind = fiber.wgmma.waited_for;
  for (const HeldRegisters& held : fiber.wgmma.held)
    if (held.until < waited)
      each_word(reinterpret_cast<u64>(held.first), held.bytes, [&](u64 word, u64 bit) { watch.in_flight[word] &= ~bit; });
  for (const HeldRegisters& held : fiber.wgmma.held)  // two may overlap, as a fault
    if (held.until >= waited)
      each_word(reinterpret_cast<u64>(held.first), held.bytes, [&](u64 word, u64 bit) { watch.in_flight[word] |= bit; });
  for (const HeldRegisters& held : fiber.wgmma.held) {
    if (held.until >= waited || held.n == 0) continue;
    std::erase_if(behind, [&](const HeldRegisters& other) { return overlaps(other, reinterpret_cast<u64>(held.first), held.bytes); });
    behind.push_back(held);
  }
  watch_waited_for(fiber);
}

/// Accesses of what was waited for and not held are looked at too.
void Shadow::watch_waited_for(Fiber& fiber) {
  RegisterWatch& watch = watch_of(fiber);
  for (const HeldRegisters& held : fiber.wgmma.waited_for)
    each_word(reinterpret_cast<u64>(held.first), held.bytes, [&](u64 word, u64 bit) { watch.in_flight[word] |= bit; });
}

void Shadow::wgmma_hold(Fiber& fiber, const void* registers, u64 bytes) {
  if (fiber.wgmma.waited_for.empty()) return;
  RegisterWatch& watch = watch_of(fiber);
  const u64 low = reinterpret_cast<u64>(registers), high = low + bytes;
  std::vector<HeldRegisters> left;
  for (const HeldRegisters& held : fiber.wgmma.waited_for) {
    if (!overlaps(held, low, bytes)) {
      left.push_back(held);
      continue;
    }
    each_word(reinterpret_cast<u64>(held.first), held.bytes, [&](u64 word, u64 bit) { watch.in_flight[word] &= ~bit; });
    const u64 first = reinterpret_cast<u64>(held.first), end = first + held.bytes;  // a hold of a part leaves the rest
    HeldRegisters part = held;
    if (first < low) part.bytes = u32(low - first), left.push_back(part);
    if (high < end) part.first = reinterpret_cast<u8*>(high), part.bytes = u32(end - high), left.push_back(part);
  }
  fiber.wgmma.waited_for = std::move(left);
  for (const HeldRegisters& held : fiber.wgmma.held)
    each_word(reinterpret_cast<u64>(held.first), held.bytes, [&](u64 word, u64 bit) { watch.in_flight[word] |= bit; });
  watch_waited_for(fiber);
}

u32 Shadow::wgmma_agent(Fiber& fiber, Warpgroup& group) {
  if (!group.agent) group.agent = new_agent(*fiber.block, text_of("a wgmma of warpgroup %u", fiber.index / 128)).number;
  return group.agent;
}

/// Whether what this warp knows has to be judged. Two warps that know the same may read the same memory, except for what one of them wrote
/// itself. So the first two warps of a product are judged; of the others, those that know something else than the warp that was judged
/// last.
bool Shadow::wgmma_view_is_new(Fiber& fiber, WgmmaOp& op) {
  const Knowledge& known = fiber.clock.known;
  const bool second = op.checked && !(op.checked & (op.checked - 1));
  const bool news = !op.checked || second || !(known.base == op.judged.base) || !(known.recent == op.judged.recent) ||
                    !(known.foreign == op.judged.foreign) || !(known.proxies == op.judged.proxies);
  op.checked |= 1u << fiber.index % 128 / 32;
  if (news) op.judged = known;
  return news;
}

}  // namespace quern::emu
