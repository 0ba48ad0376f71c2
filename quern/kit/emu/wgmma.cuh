// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// wgmma: each thread of a warpgroup tells the runtime where its registers are; when all 128 have, the runtime gathers the
// operands and the meaning below computes the product, at a moment of the runtime's choice before the wait.
#pragma once
#include "quern/kit/emu/convert.cuh"
#include "quern/kit/matrix_descriptor.cuh"
#if defined(QN_EMU_NUMBER)
#include "quern/kit/emu/wgmma_any.cuh"
#else
#include "quern/kit/emu/wgmma_f32.cuh"
#endif

#undef QN_WITHOUT_REGISTERS
#define QN_WITHOUT_REGISTERS

namespace quern::emu {

/// D is f32 in `registers` registers, or pairs of f16.
template <class A, class B, WgmmaForm form, class D, int registers>
QN_UNWATCHED static void mean_wgmma(const WgmmaOperands& operands) {
  constexpr bool negative = form.negate_a != form.negate_b;
  f32* d[128];
  if constexpr (__is_same(D, f32)) {
    for (u32 t = 0; t < 128; ++t) d[t] = static_cast<f32*>(operands.d[t]);
    number_wgmma<A, B, negative, registers>(operands, d);
  } else {
    // Registers 2 i and 2 i + 1 of f32 for each pair; all threads' at the scratch memory's end.
    f32* wide = reinterpret_cast<f32*>(static_cast<u8*>(operands.scratch) + kWgmmaScratchBytes) - 128 * 2 * registers;
    for (u32 t = 0; t < 128; ++t) {
      d[t] = wide + t * 2 * registers;
      const u32* pairs = static_cast<const u32*>(operands.d[t]);
      for (u32 i = 0; i < registers; ++i) ptx::unpack_f16(pairs[i], d[t][2 * i], d[t][2 * i + 1]);
    }
    number_wgmma<A, B, negative, 2 * registers>(operands, d);
    for (u32 t = 0; t < 128; ++t)
      for (u32 i = 0; i < registers; ++i) static_cast<u32*>(operands.d[t])[i] = ptx::pack_f16(d[t][2 * i], d[t][2 * i + 1]);
  }
}

template <class A, class B, WgmmaForm form, class D, int registers>
QN_DEVICE void wgmma(D (&d)[registers], u64 a, u32* a_registers, u64 b, bool add, u32 line) {
  constexpr int n = __is_same(D, f32) ? 2 * registers : 4 * registers;
  static_assert(is_wgmma<A, B, form, n, !__is_same(D, f32)>());
  const WgmmaCall call{n,
                       sizeof(A),
                       form.a == Major::mn,
                       form.b == Major::mn,
                       add,
                       a,
                       b,
                       a_registers,
                       d,
                       sizeof(d),
                       line,
                       mean_wgmma<A, B, form, D, registers>};
  current()->runtime->wgmma(call);
}

}  // namespace quern::emu

namespace quern::ptx {

/// D[64][n] = A[64][k] B[k][n], plus D if `add`; 32 bytes of K. Executed by the four warps of a warpgroup. Thread t of it has
/// of D the rows 16 (t / 32) + t % 32 / 4 and + 8; d[4 i + j] is column 8 i + 2 (t % 4) + j % 2 of the first (j < 2) or the
/// second row. Until wgmma_wait the registers belong to the instruction. With u32 registers D is f16 in pairs, d[2 i + j];
/// then n is a multiple of 16.
template <class A, class B = A, WgmmaForm form = WgmmaForm{}, int registers>
QN_DEVICE void wgmma(f32 (&d)[registers], MatrixDescriptor a, MatrixDescriptor b, bool add, u32 line = __builtin_LINE()) {
  emu::wgmma<A, B, form>(d, a.bits, nullptr, b.bits, add, line);
}
template <class A, class B = A, WgmmaForm form = WgmmaForm{}, int registers>
QN_DEVICE void wgmma(u32 (&d)[registers], MatrixDescriptor a, MatrixDescriptor b, bool add, u32 line = __builtin_LINE()) {
  emu::wgmma<A, B, form>(d, a.bits, nullptr, b.bits, add, line);
}
/// A from registers: a[i] holds the 4 bytes 4 (t % 4) + 16 (i / 2) of row 16 (t / 32) + t % 32 / 4 + 8 (i % 2). They too
/// belong to the instruction until wgmma_wait, so they are an array that lives until then: here they are poison meanwhile.
template <class A, class B = A, WgmmaForm form = WgmmaForm{}, int registers>
QN_DEVICE void wgmma(f32 (&d)[registers], u32 (&a)[4], MatrixDescriptor b, bool add, u32 line = __builtin_LINE()) {
  static_assert(form.a == Major::k);
  emu::wgmma<A, B, form>(d, 0, a, b.bits, add, line);
}
template <class A, class B = A, WgmmaForm form = WgmmaForm{}, int registers>
QN_DEVICE void wgmma(u32 (&d)[registers], u32 (&a)[4], MatrixDescriptor b, bool add, u32 line = __builtin_LINE()) {
  static_assert(form.a == Major::k);
  emu::wgmma<A, B, form>(d, 0, a, b.bits, add, line);
}

/// The compiler may not move accesses of these registers over this point: before wgmma_fence, and behind the wait. Here they
/// are memory whose address the runtime has; checked mode reports an access of accumulators between the wait and the hold.
template <int registers> QN_DEVICE void wgmma_hold([[maybe_unused]] f32 (&held)[registers]) {
#if defined(QN_EMU_CHECKED)
  emu::current()->runtime->wgmma_hold(held, sizeof(held));
#endif
}
template <int registers> QN_DEVICE void wgmma_hold([[maybe_unused]] u32 (&held)[registers]) {
#if defined(QN_EMU_CHECKED)
  emu::current()->runtime->wgmma_hold(held, sizeof(held));
#endif
}

/// What the thread did with registers comes before what a later wgmma does with them. Needed before the first wgmma, and
/// before one whose registers were touched since.
QN_DEVICE void wgmma_fence(u32 line = __builtin_LINE()) { emu::current()->runtime->wgmma_fence(line); }
/// The wgmma issued since the last commit are a group.
QN_DEVICE void wgmma_commit(u32 line = __builtin_LINE()) { emu::current()->runtime->wgmma_commit(line); }
/// Waits until at most `groups_left` (0 .. 7) of the newest groups are pending.
template <int groups_left> QN_DEVICE void wgmma_wait(u32 line = __builtin_LINE()) {
  static_assert(groups_left >= 0 && groups_left <= 7);
  emu::current()->runtime->wgmma_wait(groups_left, line);
}

/// Gives registers of each thread back to the block's pool, or takes them, waiting until the pool has enough. By every warp of
/// a warpgroup.
template <int registers> QN_DEVICE void decrease_registers() {
  static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256);
  emu::current()->runtime->set_registers(false, registers);
}
template <int registers> QN_DEVICE void increase_registers() {
  static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256);
  emu::current()->runtime->set_registers(true, registers);
}

}  // namespace quern::ptx
