// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Collectives of a warp. The runtime only lets the lanes meet; what then happens is the meaning given here, run once on
// the lane that arrives last. None but sync_warp orders memory.
#pragma once
#include "quern/kit/emu/number.cuh"

namespace quern::emu {

/// Every lane takes the value of the lane that `source` names. A source outside the lane's segment means its own value;
/// a source that does not take part has no defined value on a GPU: poison.
template <class Source>
inline __attribute__((always_inline)) void shuffle(void** payloads, u32 mask, Source source) {
  for (u32 lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    ShufflePayload& mine = *static_cast<ShufflePayload*>(payloads[lane]);
    const u32 first = lane & ~(mine.width - 1), position = lane & (mine.width - 1);
    const i32 wanted = source(i32(position), i32(mine.argument), i32(mine.width));
    const u32 from = wanted < 0 || wanted >= i32(mine.width) ? lane : first + u32(wanted);
    mine.from = from;
    mine.lost = !(mask >> from & 1);
    mine.result = mine.lost ? 0xffffffffu : static_cast<ShufflePayload*>(payloads[from])->value;
  }
}
QN_UNWATCHED __attribute__((unused)) static void mean_shfl_xor(void** payloads, u32 mask) {
  shuffle(payloads, mask, [](i32 position, i32 bits, i32) { return position ^ bits; });
}
QN_UNWATCHED __attribute__((unused)) static void mean_shfl_idx(void** payloads, u32 mask) {
  shuffle(payloads, mask, [](i32, i32 index, i32 width) { return index & (width - 1); });
}
QN_UNWATCHED __attribute__((unused)) static void mean_shfl_up(void** payloads, u32 mask) {
  shuffle(payloads, mask, [](i32 position, i32 delta, i32) { return position - delta; });
}
QN_UNWATCHED __attribute__((unused)) static void mean_shfl_down(void** payloads, u32 mask) {
  shuffle(payloads, mask, [](i32 position, i32 delta, i32) { return position + delta; });
}

/// Ballot: each payload is a u32 vote that becomes the mask of the lanes that voted yes.
QN_UNWATCHED __attribute__((unused)) static void mean_ballot(void** payloads, u32 mask) {
  u32 yes = 0;
  for (u32 lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) yes |= (*static_cast<u32*>(payloads[lane]) ? 1u : 0u) << lane;
  for (u32 lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) *static_cast<u32*>(payloads[lane]) = yes;
}

/// Elect: the highest lane of those that came, so that code which takes the elected one for lane 0 is found out.
QN_UNWATCHED __attribute__((unused)) static void mean_elect(void** payloads, u32 mask) {
  for (u32 lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) *static_cast<u32*>(payloads[lane]) = mask >> lane == 1;
}

QN_DEVICE u32 shuffled(u32 value, u32 argument, u32 width, u32 mask, Collective kind, Meaning meaning) {
  ShufflePayload payload{value, argument, width, 0, 0, false};
  current()->runtime->collective(mask, kind, &payload, meaning, 0);
  return payload.result;
}
QN_DEVICE u32 voted(bool vote, u32 mask, Collective kind) {
  u32 payload = vote;
  current()->runtime->collective(mask, kind, &payload, mean_ballot, 0);
  return payload;
}

}  // namespace quern::emu

namespace quern::ptx {

QN_DEVICE u32 lane_id() { return emu::current()->lane; }
QN_DEVICE u32 warp_id() { return emu::current()->warp; }

/// Value of lane (own ^ bits), of lane `source`, of lane (own - delta), of lane (own + delta), within segments of
/// `width`.
QN_DEVICE u32 shfl_xor(u32 value, int bits, int width = 32, u32 mask = kFullMask) {
  return emu::shuffled(value, u32(bits), u32(width), mask, emu::Collective::shfl_xor, emu::mean_shfl_xor);
}
QN_DEVICE u32 shfl(u32 value, int source, int width = 32, u32 mask = kFullMask) {
  return emu::shuffled(value, u32(source), u32(width), mask, emu::Collective::shfl_idx, emu::mean_shfl_idx);
}
QN_DEVICE u32 shfl_up(u32 value, int delta, int width = 32, u32 mask = kFullMask) {
  return emu::shuffled(value, u32(delta), u32(width), mask, emu::Collective::shfl_up, emu::mean_shfl_up);
}
QN_DEVICE u32 shfl_down(u32 value, int delta, int width = 32, u32 mask = kFullMask) {
  return emu::shuffled(value, u32(delta), u32(width), mask, emu::Collective::shfl_down, emu::mean_shfl_down);
}
QN_DEVICE f32 shfl_xor(f32 value, int bits, int width = 32, u32 mask = kFullMask) {
  return f32_of_bits(shfl_xor(bits_of(value), bits, width, mask));
}
QN_DEVICE f32 shfl(f32 value, int source, int width = 32, u32 mask = kFullMask) {
  return f32_of_bits(shfl(bits_of(value), source, width, mask));
}
QN_DEVICE f32 shfl_up(f32 value, int delta, int width = 32, u32 mask = kFullMask) {
  return f32_of_bits(shfl_up(bits_of(value), delta, width, mask));
}
QN_DEVICE f32 shfl_down(f32 value, int delta, int width = 32, u32 mask = kFullMask) {
  return f32_of_bits(shfl_down(bits_of(value), delta, width, mask));
}
QN_DEVICE i32 shfl_xor(i32 value, int bits, int width = 32, u32 mask = kFullMask) { return i32(shfl_xor(u32(value), bits, width, mask)); }
QN_DEVICE i32 shfl(i32 value, int source, int width = 32, u32 mask = kFullMask) { return i32(shfl(u32(value), source, width, mask)); }
QN_DEVICE i32 shfl_up(i32 value, int delta, int width = 32, u32 mask = kFullMask) { return i32(shfl_up(u32(value), delta, width, mask)); }
QN_DEVICE i32 shfl_down(i32 value, int delta, int width = 32, u32 mask = kFullMask) {
  return i32(shfl_down(u32(value), delta, width, mask));
}

/// True in one lane of those in `mask`, always the same one; which is not said.
QN_DEVICE bool elect_sync(u32 mask = kFullMask) {
  u32 payload = 0;
  emu::current()->runtime->collective(mask, emu::Collective::elect, &payload, emu::mean_elect, 0);
  return payload != 0;
}

/// Mask of the lanes that voted yes; whether any, whether all of those in `mask` did.
QN_DEVICE u32 ballot(bool vote, u32 mask = kFullMask) { return emu::voted(vote, mask, emu::Collective::ballot); }
QN_DEVICE bool any(bool vote, u32 mask = kFullMask) { return emu::voted(vote, mask, emu::Collective::any) != 0; }
QN_DEVICE bool all(bool vote, u32 mask = kFullMask) { return !emu::voted(!vote, mask, emu::Collective::all); }

}  // namespace quern::ptx
