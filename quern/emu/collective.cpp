// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Lanes of a warp meet. What a collective computes is compiled into the kernel; here it is only run, once, by the lane
// that arrives last.
#include "quern/emu/shadow.h"
#include "quern/emu/table.h"
#include "quern/emu/worker.h"

namespace quern::emu {

const char* name(Collective kind) {
  static const char* const kNames[] = {
      "sync_warp",
      "shfl_xor",
      "shfl",
      "shfl_up",
      "shfl_down",
      "ballot",
      "any",
      "all",
      "elect_sync",
      "ldmatrix_x1",
      "ldmatrix_x2",
      "ldmatrix_x4",
      "ldmatrix_x1_trans",
      "ldmatrix_x2_trans",
      "ldmatrix_x4_trans",
      "mma_m16n8k16_bf16",
      "mma_m16n8k16_f16",
      "mma_m16n8k8_bf16",
      "mma_m16n8k8_f16",
      "tensormap_publish",
      "stmatrix_x1",
      "stmatrix_x2",
      "stmatrix_x4",
      "stmatrix_x1_trans",
      "stmatrix_x2_trans",
      "stmatrix_x4_trans",
      "increase_registers",
      "decrease_registers",
  };
  return kNames[u32(kind)];
}

/// Lanes that have left have no values.
static void judge_shuffle(Worker& worker, Warp& warp, const Rendezvous& meeting) {
  if (meeting.kind < Collective::shfl_xor || meeting.kind > Collective::shfl_down) return;
  for (u32 lane = 0; lane < 32; ++lane) {
    if (!(meeting.arrived >> lane & 1)) continue;
    const ShufflePayload& mine = *static_cast<const ShufflePayload*>(meeting.payloads[lane]);
    if (mine.lost && meeting.mask >> mine.from & 1)
      return worker.report(
          ReportKind::divergence, warp.fibers[lane],
          text_of("%s with mask %08x takes the value of lane %u, which has exited", name(meeting.kind), meeting.mask, mine.from));
  }
}

static void complete(Worker& worker, Warp& warp, Rendezvous& meeting, u32 last_lane) {
  const u32 lanes = meeting.arrived;
  if (meeting.meaning) {
    // Matrix operations read a payload of every lane.
    if (meeting.kind >= Collective::ldmatrix_x1 && lanes != kFullWarp)
      worker.fatal(ReportKind::divergence, Worker::me(),
                   text_of("%s needs all 32 lanes; only %08x are left in the warp", name(meeting.kind), lanes));
    meeting.meaning(meeting.payloads, lanes);
    if (worker.shadow() && lanes != meeting.mask) judge_shuffle(worker, warp, meeting);
  }
  if (worker.shadow() && meeting.kind == Collective::sync_warp) worker.shadow()->join_lanes(warp, lanes);
  meeting.arrived = 0;
  worker.wake(warp, lanes & ~(1u << last_lane));
}

/// The meeting of that mask, or a free one. Null if all are under way, which takes masks that overlap.
static Rendezvous* find_meeting(Warp& warp, u32 mask) {
  Rendezvous* free = nullptr;
  for (Rendezvous& meeting : warp.meetings) {
    if (meeting.arrived && meeting.mask == mask) return &meeting;
    if (!meeting.arrived && !free) free = &meeting;
  }
  return free;
}

void run_collective(u32 mask, Collective kind, void* payload, Meaning meaning, u32 line) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  Warp& warp = *me.warp;
  const u32 bit = 1u << me.lane;
  if (!(mask & bit)) worker.fatal(ReportKind::divergence, me, text_of("%s with mask %08x, which lacks the calling lane", name(kind), mask));
  Rendezvous* meeting = find_meeting(warp, mask);
  if (!meeting) worker.fatal(ReportKind::divergence, me, text_of("%s: more than 16 masks meet in one warp", name(kind)));
  if (kind >= Collective::ldmatrix_x1) execute_aligned(me, name(kind), line);
  if (meeting->arrived == 0) {
    meeting->mask = mask;
    meeting->kind = kind;
    meeting->meaning = meaning;
  } else if (meeting->kind != kind) {
    worker.fatal(ReportKind::divergence, me,
                 text_of("%s meets %s of lanes %08x in one warp", name(kind), name(meeting->kind), meeting->arrived));
  }
  meeting->payloads[me.lane] = payload;
  meeting->arrived |= bit;
  if (meeting->arrived == (mask & warp.alive)) {
    complete(worker, warp, *meeting, me.lane);
  } else {
    worker.wait(me, WaitReason::warp, u32(kind), mask);
  }
}

void execute_aligned(Fiber& me, const char* what, u32 line) {
  Worker& worker = *me.worker;
  Warp& warp = *me.warp;
  if (!worker.shadow()) return;
  const u64 number = me.aligned_steps++ - warp.first_aligned;
  if (number == warp.aligned.size()) {
    if (warp.alive != warp.lanes)
      worker.report(ReportKind::divergence, me, text_of("%s needs all lanes; only %08x are left in the warp", what, warp.alive));
    warp.aligned.push_back({what, me.pc, line, 0});
  }
  Warp::Aligned& step = warp.aligned[number];
  if (step.what != what)
    worker.fatal(
        ReportKind::divergence, me,
        text_of("executes %s where lanes %08x of the warp execute %s: each takes all 32 lanes at once", what, step.lanes, step.what));
  if (step.pc != me.pc || step.line != line) {
    Report report{ReportKind::divergence,
                  me.block->index,
                  i64(me.index),
                  0,
                  text_of("executes %s in another place than lanes %08x of the warp: it takes all 32 lanes at once", what, step.lanes),
                  me.pc};
    report.other_pc = step.pc;
    report.needs_two_places = step.line == line;  // the compiler may have made two copies of one call, or one call of two
    worker.launch().add(std::move(report));
  }
  step.lanes |= 1u << me.lane;
  while (!warp.aligned.empty() && warp.aligned.front().lanes == warp.lanes) {
    warp.aligned.pop_front();
    ++warp.first_aligned;
  }
}

void leave_warp(Fiber& me) {
  for (Rendezvous& meeting : me.warp->meetings)
    if (meeting.arrived && meeting.arrived == (meeting.mask & me.warp->alive)) complete(*me.worker, *me.warp, meeting, me.lane);
}

}  // namespace quern::emu
