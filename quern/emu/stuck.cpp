// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What is said when no thread can go on.
#include <map>

#include "quern/emu/table.h"
#include "quern/emu/worker.h"

namespace quern::emu {

std::string wait_text(const Fiber& fiber) {
  switch (fiber.reason) {
    case WaitReason::warp: {
      std::string text = text_of("%s with mask %08x", name(Collective(fiber.wait_id)), u32(fiber.wait_detail));
      for (const Rendezvous& meeting : fiber.warp->meetings)
        if (meeting.arrived && meeting.mask == u32(fiber.wait_detail))
          text += text_of(" [lanes %08x have not arrived]", meeting.mask & fiber.warp->alive & ~meeting.arrived);
      return text;
    }
    case WaitReason::barrier: {
      const Barrier& barrier = fiber.block->barriers[fiber.wait_id];
      return text_of("barrier %u, line %u [%u of %u threads arrived]", fiber.wait_id, fiber.wait_line, barrier.arrived,
                     barrier.expected ? barrier.expected : fiber.block->live);
    }
    case WaitReason::mbarrier: {
      const auto found = fiber.block->mbarriers.find(fiber.wait_id);
      if (found == fiber.block->mbarriers.end()) return text_of("mbarrier smem+0x%x", fiber.wait_id);
      const Mbarrier& barrier = found->second;
      return text_of("mbarrier smem+0x%x, parity %llu [phase %u, %u of %u arrivals and %lld bytes missing]", fiber.wait_id,
                     fiber.wait_detail, barrier.phase, barrier.pending, barrier.count, (long long)barrier.bytes);
    }
    case WaitReason::cluster: {
      u32 live = 0;
      for (const Block& block : fiber.block->cluster->blocks) live += block.live;
      return text_of("barrier.cluster [%u of %u threads arrived]", fiber.block->cluster->arrived, live);
    }
    case WaitReason::wgmma: {
      const Warpgroup& group = fiber.block->warpgroups[fiber.index / 128];
      const u64 at = group.arrived - group.first;
      return text_of("wgmma_wait [%u of 128 threads of the warpgroup have issued the wgmma it waits for]",
                     at < group.ops.size() ? group.ops[at].arrived : 0);
    }
    case WaitReason::registers:
      return text_of("increase_registers to %u [has %u, needs %llu of the pool, which has %u]", fiber.wait_id, fiber.warp->registers,
                     fiber.wait_detail, fiber.block->free_registers);
    case WaitReason::poll: return text_of("polling 0x%llx", fiber.wait_detail);
    case WaitReason::none: break;
  }
  return "not waiting";
}

void Worker::report_stuck(ReportKind kind) {
  if (launch_->stopped()) return;
  std::string text = kind == ReportKind::deadlock ? "no thread can go on:" : "the threads that could go on only poll:";
  std::map<std::string, u32> groups;
  const Fiber* first = nullptr;
  for (const Cluster* cluster : live_)
    for (const Block& block : cluster->blocks)
      for (const Fiber& fiber : block.fibers) {
        if (!fiber.block || fiber.done || fiber.reason == WaitReason::none) continue;
        if (fiber.index >= fiber.thread->block_size.x) continue;
        if (!first) first = &fiber;
        ++groups[text_of("block (%u,%u,%u) warp %2u: ", block.index.x, block.index.y, block.index.z, fiber.index / 32) + wait_text(fiber)];
      }
  size_t shown = 0;
  for (const auto& [reason, count] : groups) {
    if (++shown > 16) {
      text += text_of("\n    and %zu more groups", groups.size() - 16);
      break;
    }
    text += text_of("\n    %2u threads of ", count) + reason;
  }
  if (kind == ReportKind::livelock && launch_->clusters_left())
    text += text_of("\n    %llu blocks of the grid have not started: the device holds %u at once", launch_->blocks - launch_->resident,
                    launch_->request.resident_blocks);
  Report report{kind, {}, -1, 0, std::move(text), first ? first->pc : nullptr};
  launch_->add(std::move(report), true);
  launch_->stop();
}

}  // namespace quern::emu
