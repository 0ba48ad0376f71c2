// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// 9.7.15 asynchronous warpgroup matrix instructions. sm_90a.
//
// The operands of an asm statement are fixed in its text, the accumulators' number varies with N. So there is one list with
// all that there can be, 128; it is cut behind the last accumulator by a comment that swallows the rest, and for what does
// not exist stands a register that nobody reads. The varying text comes from "C" operands, arrays of characters. Beside a
// list of the exact length that costs the compiler nothing at N = 256 and 2 ms an instruction at N = 16, of which a kernel has
// up to 20; so there is a second list for up to 28 registers, 56 columns of f32. A statement for each N would cost every kernel 10 to 20 ms
// of reading.
#pragma once
#include "quern/kit/matrix_descriptor.cuh"
#include "quern/kit/ptx/number.cuh"

namespace quern::ptx {

template <char... characters> struct WgmmaText {
  static constexpr const char text[] = {characters..., 0};
};
template <int n> struct WgmmaDigits : WgmmaText<char('0' + n / 100), char('0' + n / 10 % 10), char('0' + n % 10)> {};
template <int n>
  requires(n < 100 && n >= 10)
struct WgmmaDigits<n> : WgmmaText<char('0' + n / 10), char('0' + n % 10)> {};
template <int n>
  requires(n < 10)
struct WgmmaDigits<n> : WgmmaText<char('0' + n)> {};
template <class T> struct WgmmaName;
template <> struct WgmmaName<bf16> : WgmmaText<'b', 'f', '1', '6'> {};
template <> struct WgmmaName<f16> : WgmmaText<'f', '1', '6'> {};
template <> struct WgmmaName<e4m3> : WgmmaText<'e', '4', 'm', '3'> {};
template <> struct WgmmaName<e5m2> : WgmmaText<'e', '5', 'm', '2'> {};
template <bool negative> struct WgmmaSign : WgmmaText<',', ' ', '1'> {};
template <> struct WgmmaSign<true> : WgmmaText<',', ' ', '-', '1'> {};
/// The operand that transposes exists for 16 bits only.
template <int element_bytes, Major major> struct WgmmaTranspose : WgmmaText<> {};
template <Major major> struct WgmmaTranspose<2, major> : WgmmaText<',', ' ', major == Major::mn ? '1' : '0'> {};
template <bool here> struct WgmmaCut : WgmmaText<> {};
template <> struct WgmmaCut<true> : WgmmaText<'/', '*'> {};
template <bool here> struct WgmmaCutEnd : WgmmaText<> {};
template <> struct WgmmaCutEnd<true> : WgmmaText<'*', '/'> {};

// Operands 0 to 127: d[0 .. registers - 1], then `spare`. Up to 28 registers have a list of 28, and what follows has numbers that are 100
// less: R is their first digit.
#define QN_WGMMA_1(C, I) C((registers > (I) ? d : spare)[registers > (I) ? (I) : 0])
#define QN_WGMMA_4(C, I) QN_WGMMA_1(C, I), QN_WGMMA_1(C, I + 1), QN_WGMMA_1(C, I + 2), QN_WGMMA_1(C, I + 3)
#define QN_WGMMA_20(C, I) QN_WGMMA_4(C, I), QN_WGMMA_4(C, I + 4), QN_WGMMA_4(C, I + 8), QN_WGMMA_4(C, I + 12), QN_WGMMA_4(C, I + 16)
#define QN_WGMMA_REGISTERS_28(C) QN_WGMMA_20(C, 0), QN_WGMMA_4(C, 20), QN_WGMMA_4(C, 24)
#define QN_WGMMA_REGISTERS_128(C) \
  QN_WGMMA_REGISTERS_28(C), QN_WGMMA_20(C, 28), QN_WGMMA_20(C, 48), QN_WGMMA_20(C, 68), QN_WGMMA_20(C, 88), QN_WGMMA_20(C, 108)
// Operands 128 to 159: where the list may be cut, and where the cut ends.
#define QN_WGMMA_CUT(I) "C"(WgmmaCut < registers == (I) > ::text)
#define QN_WGMMA_CUT_4(I) QN_WGMMA_CUT(I), QN_WGMMA_CUT(I + 4), QN_WGMMA_CUT(I + 8), QN_WGMMA_CUT(I + 12)
#define QN_WGMMA_CUTS(COUNT) \
  QN_WGMMA_CUT_4(4), QN_WGMMA_CUT_4(20), QN_WGMMA_CUT_4(36), QN_WGMMA_CUT_4(52), QN_WGMMA_CUT_4(68), QN_WGMMA_CUT_4(84), \
      QN_WGMMA_CUT_4(100), QN_WGMMA_CUT(116), QN_WGMMA_CUT(120), QN_WGMMA_CUT(124), "C"(WgmmaCutEnd<(registers < COUNT)>::text)
#define QN_WGMMA_FIRST(R) \
  "%0, %1, %2, %3%" R "28, %4, %5, %6, %7%" R "29, %8, %9, %10, %11%" R \
  "30, %12, %13, %14, %15" \
  "%" R "31, %16, %17, %18, %19%" R "32, %20, %21, %22, %23%" R "33, %24, %25, %26, %27"
#define QN_WGMMA_LIST_28 QN_WGMMA_FIRST("") "%59"
#define QN_WGMMA_LIST_128 \
  QN_WGMMA_FIRST("1") \
  "%134, %28, %29, %30, %31" \
  "%135, %32, %33, %34, %35%136, %36, %37, %38, %39%137, %40, %41, %42, %43%138, %44, %45, %46, %47" \
  "%139, %48, %49, %50, %51%140, %52, %53, %54, %55%141, %56, %57, %58, %59%142, %60, %61, %62, %63" \
  "%143, %64, %65, %66, %67%144, %68, %69, %70, %71%145, %72, %73, %74, %75%146, %76, %77, %78, %79" \
  "%147, %80, %81, %82, %83%148, %84, %85, %86, %87%149, %88, %89, %90, %91%150, %92, %93, %94, %95" \
  "%151, %96, %97, %98, %99%152, %100, %101, %102, %103%153, %104, %105, %106, %107" \
  "%154, %108, %109, %110, %111%155, %112, %113, %114, %115%156, %116, %117, %118, %119" \
  "%157, %120, %121, %122, %123%158, %124, %125, %126, %127%159"
// Operands 160 to 166 make the name and its constants; then come the matrices.
#define QN_WGMMA_OPTIONS \
  "r"(u32(add)), "C"(WgmmaDigits<n>::text), "C"(WgmmaDigits<32 / sizeof(A)>::text), "C"(WgmmaName<A>::text), "C"(WgmmaName<B>::text), \
      "C"(WgmmaSign<form.negate_a>::text), "C"(WgmmaSign<form.negate_b>::text)
#define QN_WGMMA_WITH(COUNT, R, C, TYPE, MATRICES, ...) \
  asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %" R "60, 0;\nwgmma.mma_async.sync.aligned.m64n%" R "61k%" R "62." TYPE ".%" R "63.%" R \
               "64 {" QN_WGMMA_LIST_##COUNT "}, " MATRICES(R) ";\n}" \
               : QN_WGMMA_REGISTERS_##COUNT(C) \
               : QN_WGMMA_CUTS(COUNT), QN_WGMMA_OPTIONS, __VA_ARGS__ \
               : "memory")
#define QN_WGMMA(...) \
  if constexpr (registers <= 28) QN_WGMMA_WITH(28, "", __VA_ARGS__); \
  else QN_WGMMA_WITH(128, "1", __VA_ARGS__)
#define QN_WGMMA_SHARED_TEXT(R) "%" R "67, %" R "68, p%" R "65%" R "66%" R "69%" R "70"
#define QN_WGMMA_SHARED(C, TYPE) \
  QN_WGMMA(C, TYPE, QN_WGMMA_SHARED_TEXT, "l"(a.bits), "l"(b.bits), "C"(WgmmaTranspose<sizeof(A), form.a>::text), \
           "C"(WgmmaTranspose<sizeof(B), form.b>::text))
#define QN_WGMMA_FRAGMENT_TEXT(R) "{%" R "67, %" R "68, %" R "69, %" R "70}, %" R "71, p%" R "65%" R "66%" R "72"
#define QN_WGMMA_FRAGMENT(C, TYPE) \
  QN_WGMMA(C, TYPE, QN_WGMMA_FRAGMENT_TEXT, "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits), \
           "C"(WgmmaTranspose<sizeof(B), form.b>::text))

// 9.7.15.5 wgmma.mma_async: D[64][n] = A[64][k] B[k][n], plus D if `add`; 32 bytes of K. Executed by the four warps of a
// warpgroup. Thread t of it has of D the rows 16 (t / 32) + t % 32 / 4 and + 8; d[4 i + j] is column
// 8 i + 2 (t % 4) + j % 2 of the first (j < 2) or the second row. Until wgmma_wait the registers belong to the instruction.
// With u32 registers D is f16 in pairs, d[2 i + j]; then n is a multiple of 16.

/// Both operands from shared memory.
template <class A, class B = A, WgmmaForm form = WgmmaForm{}, int registers>
QN_DEVICE void wgmma(f32 (&d)[registers], MatrixDescriptor a, MatrixDescriptor b, bool add) {
  constexpr int n = 2 * registers;
  static_assert(is_wgmma<A, B, form, n, false>());
  f32 spare[1] = {0};
  QN_WGMMA_SHARED("+f", "f32");
}
template <class A, class B = A, WgmmaForm form = WgmmaForm{}, int registers>
QN_DEVICE void wgmma(u32 (&d)[registers], MatrixDescriptor a, MatrixDescriptor b, bool add) {
  constexpr int n = 4 * registers;
  static_assert(is_wgmma<A, B, form, n, true>());
  u32 spare[1] = {0};
  QN_WGMMA_SHARED("+r", "f16");
}
/// A from registers: a[i] holds the 4 bytes 4 (t % 4) + 16 (i / 2) of row 16 (t / 32) + t % 32 / 4 + 8 (i % 2). They too
/// belong to the instruction until wgmma_wait, so they are an array that lives until then.
template <class A, class B = A, WgmmaForm form = WgmmaForm{}, int registers>
QN_DEVICE void wgmma(f32 (&d)[registers], u32 (&a)[4], MatrixDescriptor b, bool add) {
  constexpr int n = 2 * registers;
  static_assert(is_wgmma<A, B, form, n, false>() && form.a == Major::k);
  f32 spare[1] = {0};
  QN_WGMMA_FRAGMENT("+f", "f32");
}
template <class A, class B = A, WgmmaForm form = WgmmaForm{}, int registers>
QN_DEVICE void wgmma(u32 (&d)[registers], u32 (&a)[4], MatrixDescriptor b, bool add) {
  constexpr int n = 4 * registers;
  static_assert(is_wgmma<A, B, form, n, true>() && form.a == Major::k);
  u32 spare[1] = {0};
  QN_WGMMA_FRAGMENT("+r", "f16");
}

/// The compiler may not move accesses of these registers over this point: before wgmma_fence, and behind the wait. One
/// statement for all: 128 statements cost 250 ms of compile time.
template <int registers> QN_DEVICE void wgmma_hold(f32 (&d)[registers]) {
  static_assert(registers <= 128);
  f32 spare[1] = {0};
  if constexpr (registers <= 28) asm volatile("" : QN_WGMMA_REGISTERS_28("+f")::"memory");
  else asm volatile("" : QN_WGMMA_REGISTERS_128("+f")::"memory");
}
template <int registers> QN_DEVICE void wgmma_hold(u32 (&d)[registers]) {
  QN_UNROLL
  for (int i = 0; i < registers; ++i) asm volatile("" : "+r"(d[i])::"memory");
}
#undef QN_WGMMA_1
#undef QN_WGMMA_4
#undef QN_WGMMA_20
#undef QN_WGMMA_REGISTERS_28
#undef QN_WGMMA_REGISTERS_128
#undef QN_WGMMA_CUT
#undef QN_WGMMA_CUT_4
#undef QN_WGMMA_CUTS
#undef QN_WGMMA_FIRST
#undef QN_WGMMA_LIST_28
#undef QN_WGMMA_LIST_128
#undef QN_WGMMA_OPTIONS
#undef QN_WGMMA_WITH
#undef QN_WGMMA
#undef QN_WGMMA_SHARED_TEXT
#undef QN_WGMMA_SHARED
#undef QN_WGMMA_FRAGMENT_TEXT
#undef QN_WGMMA_FRAGMENT

/// 9.7.15.7.1: what the thread did with registers comes before what a later wgmma does with them. Needed before the first
/// wgmma, and before one whose registers were touched since.
QN_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// 9.7.15.7.2: the wgmma issued since the last commit are a group.
QN_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// 9.7.15.7.3: waits until at most `groups_left` (0 .. 7) of the newest groups are pending.
template <int groups_left> QN_DEVICE void wgmma_wait() {
  static_assert(groups_left >= 0 && groups_left <= 7);
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups_left) : "memory");
}

/// 9.7.19.5 setmaxnreg: gives registers of each thread back to the block's pool, or takes them, waiting until the pool has
/// enough. By every warp of a warpgroup.
template <int registers> QN_DEVICE void decrease_registers() {
  static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers> QN_DEVICE void increase_registers() {
  static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace quern::ptx
