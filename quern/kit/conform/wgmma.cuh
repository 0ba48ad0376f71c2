// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Warpgroups. The test lays the operands out as the PTX ISA draws them; the kernels copy that image into shared memory as it
// is and only describe it.
#pragma once
#include "quern/kit/conform/params.h"
#include "quern/kit/wgmma.cuh"

namespace quern::conform {

/// Where an operand lies in the image: arguments of its descriptor, and the distance of the next 32 bytes of K.
struct OperandPlace {
  u32 offset, swizzle, stride_mn, stride_k, base_offset, advance;
};
/// in begins with this; then the image, then C [64][n] f32, then A [64][32 steps] bytes for products with A from registers.
struct ProductHeader {
  OperandPlace a, b;
  u32 image_bytes, steps, add, unused;
};

QN_DEVICE MatrixDescriptor descriptor_of(const OperandPlace& at, Major major, u32 smem, u32 step) {
  const Swizzle swizzle = Swizzle(at.swizzle);
  const MatrixDescriptor first = major == Major::k
                                     ? k_major_descriptor(smem + at.offset, swizzle, at.stride_mn, at.stride_k, at.base_offset)
                                     : mn_major_descriptor(smem + at.offset, swizzle, at.stride_mn, at.stride_k, at.base_offset);
  return first.advanced(step * at.advance);
}

/// Every thread's bytes of the image are visible to wgmma behind this.
QN_DEVICE void copy_image(const u8* image, u32 bytes, u8* smem) {
  for (u32 i = 16 * threadIdx.x; i < bytes; i += 16 * blockDim.x) ptx::st_shared(smem + i, ptx::ld_global<u32x4>(image + i));
  ptx::fence_proxy_async_shared();
  ptx::sync_block();
}

/// Column and row of register i of f32.
QN_DEVICE u32 row_of(u32 i) { return 16 * warp_of_warpgroup() + ptx::lane_id() / 4 + i % 4 / 2 * 8; }
QN_DEVICE u32 column_of(u32 i) { return i / 4 * 8 + 2 * (ptx::lane_id() % 4) + i % 2; }

/// d = d + A B or A B over all steps. rows: A [64][32 steps] bytes, for fragments.
template <class A, class B, WgmmaForm form, bool fragments, class D>
QN_DEVICE void multiply(D& d, const ProductHeader& header, u32 smem, const u8* rows) {
  for (u32 step = 0; step < header.steps; ++step) {
    const bool add = header.add || step > 0;
    const MatrixDescriptor b = descriptor_of(header.b, form.b, smem, step);
    u32 a[4];
    if constexpr (fragments) {
      QN_UNROLL
      for (u32 i = 0; i < 4; ++i)
        a[i] = ptx::ld_global<u32>(rows + row_of(i % 2 * 2) * 32 * header.steps + 32 * step + 4 * (ptx::lane_id() % 4) + i / 2 * 16);
      ptx::wgmma_hold(a);
    }
    ptx::wgmma_hold(d);
    ptx::wgmma_fence();
    if constexpr (fragments) ptx::wgmma<A, B, form>(d, a, b, add);
    else ptx::wgmma<A, B, form>(d, descriptor_of(header.a, form.a, smem, step), b, add);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    if constexpr (fragments) ptx::wgmma_hold(a);
    ptx::wgmma_hold(d);
  }
}

/// out [64][n] f32: C + A B or A B. f16 results are widened. One warpgroup.
template <class A, class B, WgmmaForm form, int n, bool half, bool fragments>
QN_DEVICE void product(const Params& p) {
  QN_SMEM(smem);
  const ProductHeader& header = *static_cast<const ProductHeader*>(p.in);
  const u8* image = static_cast<const u8*>(p.in) + sizeof(ProductHeader);
  const f32* c = reinterpret_cast<const f32*>(image + header.image_bytes);
  const u8* rows = reinterpret_cast<const u8*>(c + 64 * n);
  copy_image(image, header.image_bytes, smem);
  f32 sums[n / 2];
  QN_UNROLL
  for (u32 i = 0; i < n / 2; ++i) sums[i] = c[row_of(i) * n + column_of(i)];
  if constexpr (half) {
    u32 pairs[n / 4];
    QN_UNROLL
    for (u32 i = 0; i < n / 4; ++i) pairs[i] = ptx::pack_f16(sums[2 * i], sums[2 * i + 1]);
    multiply<A, B, form, fragments>(pairs, header, ptx::smem_address(smem), rows);
    QN_UNROLL
    for (u32 i = 0; i < n / 4; ++i) ptx::unpack_f16(pairs[i], sums[2 * i], sums[2 * i + 1]);
  } else {
    multiply<A, B, form, fragments>(sums, header, ptx::smem_address(smem), rows);
  }
  f32* out = static_cast<f32*>(p.out);
  QN_UNROLL
  for (u32 i = 0; i < n / 2; ++i) out[row_of(i) * n + column_of(i)] = sums[i];
}

/// n is p.n.
template <class A, class B, int least, int most> QN_DEVICE void product_of_every_n(const Params& p) {
  if (p.n == least) product<A, B, WgmmaForm{}, least, false, false>(p);
  if constexpr (least < most) product_of_every_n<A, B, least + 8, most>(p);
}

/// bf16, n = 64, p.n: 0 both K-major, 1 A, 2 B, 3 both MN-major, 4 A from registers and B MN-major.
QN_DEVICE void product_of_every_major(const Params& p) {
  if (p.n == 0) product<bf16, bf16, WgmmaForm{}, 64, false, false>(p);
  if (p.n == 1) product<bf16, bf16, WgmmaForm{.a = Major::mn}, 64, false, false>(p);
  if (p.n == 2) product<bf16, bf16, WgmmaForm{.b = Major::mn}, 64, false, false>(p);
  if (p.n == 3) product<bf16, bf16, WgmmaForm{.a = Major::mn, .b = Major::mn}, 64, false, false>(p);
  if (p.n == 4) product<bf16, bf16, WgmmaForm{.b = Major::mn}, 64, false, true>(p);
}

/// p.n: 0 bf16, 1 f16, 2 f16 with f16 results, 3 to 6 pairs of 8-bit types, 7 e4m3 with f16 results.
template <int n, bool fragments, WgmmaForm form> QN_DEVICE void product_of_every_type(const Params& p) {
  if (p.n == 0) product<bf16, bf16, form, n, false, fragments>(p);
  if (p.n == 1) product<f16, f16, form, n, false, fragments>(p);
  if (p.n == 2) product<f16, f16, form, n, true, fragments>(p);
  if (p.n == 3) product<e4m3, e4m3, form, n, false, fragments>(p);
  if (p.n == 4) product<e4m3, e5m2, form, n, false, fragments>(p);
  if (p.n == 5) product<e5m2, e4m3, form, n, false, fragments>(p);
  if (p.n == 6) product<e5m2, e5m2, form, n, false, fragments>(p);
  if (p.n == 7) product<e4m3, e4m3, form, n, true, fragments>(p);
}
QN_DEVICE void product_of_every_type_shared(const Params& p) { product_of_every_type<48, false, WgmmaForm{}>(p); }
QN_DEVICE void product_of_every_type_registers(const Params& p) { product_of_every_type<80, true, WgmmaForm{}>(p); }
QN_DEVICE void product_negated(const Params& p) {
  if (p.n == 0) product<bf16, bf16, WgmmaForm{.negate_a = true}, 16, false, false>(p);
  if (p.n == 1) product<f16, f16, WgmmaForm{.negate_b = true}, 16, false, true>(p);
  if (p.n == 3) product<e4m3, e4m3, WgmmaForm{.negate_a = true, .negate_b = true}, 16, false, false>(p);
}

/// Two sums in turn, one group of each in flight: sum j of instructions j, j + 2 .. of `steps`, K-major bf16, n = 32.
/// out [2][64][32]. Two warpgroups, each with the images, write the same.
QN_DEVICE void product_pipeline(const Params& p) {
  QN_SMEM(smem);
  const ProductHeader& header = *static_cast<const ProductHeader*>(p.in);
  copy_image(static_cast<const u8*>(p.in) + sizeof(ProductHeader), header.image_bytes, smem);
  const u32 address = ptx::smem_address(smem);
  f32 d[2][16];
  const auto issue = [&](f32(&sum)[16], u32 step) {
    ptx::wgmma_hold(sum);
    ptx::wgmma_fence();
    ptx::wgmma<bf16>(sum, descriptor_of(header.a, Major::k, address, step), descriptor_of(header.b, Major::k, address, step), step >= 2);
    ptx::wgmma_commit();
  };
  issue(d[0], 0);
  for (u32 step = 1; step + 1 < header.steps; step += 2) {
    issue(d[1], step);
    ptx::wgmma_wait<1>();
    ptx::wgmma_hold(d[0]);
    issue(d[0], step + 1);
    ptx::wgmma_wait<1>();
    ptx::wgmma_hold(d[1]);
  }
  issue(d[1], header.steps - 1);
  ptx::wgmma_wait<0>();
  ptx::wgmma_hold(d[0]);
  ptx::wgmma_hold(d[1]);
  if (warpgroup_id() != u32(p.n)) return;
  QN_UNROLL
  for (u32 j = 0; j < 2; ++j) QN_UNROLL
  for (u32 i = 0; i < 16; ++i) static_cast<f32*>(p.out)[(64 * j + row_of(i)) * 32 + column_of(i)] = d[j][i];
}

/// in: A [64][16] then B [16][16] bf16, row-major. The same products by wgmma (both ways to give A) and by mma.sync, added up
/// twice: out [3][64][16] words.
QN_DEVICE void wgmma_and_mma(const Params& p) {
  QN_SMEM(smem);
  // Without swizzle: 8 rows of 16 bytes, the halves of K 1280 apart.
  const u32* in = static_cast<const u32*>(p.in);
  for (u32 i = threadIdx.x; i < 640; i += 128) ptx::st_shared(smem + i % 8 / 4 * 1280 + i / 8 * 16 + i % 4 * 4, in[i]);
  ptx::fence_proxy_async_shared();
  ptx::sync_block();
  const u32 address = ptx::smem_address(smem);
  const MatrixDescriptor of_a = k_major_descriptor(address, Swizzle::none, 128, 1280);
  const MatrixDescriptor of_b = k_major_descriptor(address + 1024, Swizzle::none, 128, 1280);
  const u32 row = row_of(0), pair = ptx::lane_id() % 4;
  u32 a[4];
  QN_UNROLL
  for (u32 i = 0; i < 4; ++i) a[i] = in[8 * (row + i % 2 * 8) + pair + i / 2 * 4];
  f32 d[2][8], e[2][4];
  QN_UNROLL
  for (u32 i = 0; i < 8; ++i) e[i / 4][i % 4] = f32(0.f);
  QN_UNROLL
  for (u32 round = 0; round < 2; ++round) {
    ptx::wgmma_hold(a);
    ptx::wgmma_hold(d[0]);
    ptx::wgmma_hold(d[1]);
    ptx::wgmma_fence();
    ptx::wgmma<bf16>(d[0], of_a, of_b, round > 0);
    ptx::wgmma<bf16>(d[1], a, of_b, round > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::wgmma_hold(a);
    ptx::wgmma_hold(d[0]);
    ptx::wgmma_hold(d[1]);
    QN_UNROLL
    for (u32 j = 0; j < 2; ++j) {
      const u32* column = in + 512 + 8 * (8 * j + ptx::lane_id() / 4) + pair;
      const u32 b[2] = {column[0], column[4]};
      ptx::mma_m16n8k16_bf16(e[j], a, b);
    }
  }
  u32* out = static_cast<u32*>(p.out);
  QN_UNROLL
  for (u32 i = 0; i < 8; ++i) {
    const u32 at = row_of(i) * 16 + column_of(i);
    out[at] = ptx::bits_of(d[0][i]);
    out[1024 + at] = ptx::bits_of(d[1][i]);
    out[2048 + at] = ptx::bits_of(e[i / 4][i % 4]);
  }
}

/// in: A [64][32 p.n], B [16][32 p.n] e4m3, K-major without swizzle in steps of 32: step s at 2560 s. out [64][16] f32.
QN_DEVICE void fp8_chain(const Params& p) {
  QN_SMEM(smem);
  const u8* in = static_cast<const u8*>(p.in);
  f32 d[8];
  for (i32 step = 0; step < p.n; ++step) {
    copy_image(in + 2560 * step, 2560, smem);
    const u32 address = ptx::smem_address(smem);
    ptx::wgmma_hold(d);
    ptx::wgmma_fence();
    ptx::wgmma<e4m3>(d, k_major_descriptor(address, Swizzle::none, 128, 1024), k_major_descriptor(address + 2048, Swizzle::none, 128, 256),
                     step > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::wgmma_hold(d);
    ptx::sync_block();
  }
  QN_UNROLL
  for (u32 i = 0; i < 8; ++i) static_cast<f32*>(p.out)[row_of(i) * 16 + column_of(i)] = d[i];
}

/// stmatrix of the six kinds, each into 512 bytes: lane l's register i is in[4 l + i]; matrix rows are 16 bytes, in turn.
QN_DEVICE void stmatrix_all(const Params& p) {
  QN_SMEM(smem);
  const u32 lane = ptx::lane_id();
  const u32* in = static_cast<const u32*>(p.in) + 4 * lane;
  const u32 a[1] = {in[0]}, b[2] = {in[0], in[1]}, c[4] = {in[0], in[1], in[2], in[3]};
  for (u32 i = 0; i < 6; ++i) ptx::st_shared(smem + 512 * i + 16 * lane, u32x4{0, 0, 0, 0});
  ptx::sync_block();
  const u32 row = ptx::smem_address(smem) + 16 * lane;
  ptx::stmatrix_x1(row, a);
  ptx::stmatrix_x2(row + 512, b);
  ptx::stmatrix_x4(row + 1024, c);
  ptx::stmatrix_x1_trans(row + 1536, a);
  ptx::stmatrix_x2_trans(row + 2048, b);
  ptx::stmatrix_x4_trans(row + 2560, c);
  ptx::sync_block();
  for (u32 i = 0; i < 6; ++i)
    ptx::st_global(static_cast<u8*>(p.out) + 512 * i + 16 * lane, ptx::ld_shared<u32x4>(smem + 512 * i + 16 * lane));
}

/// out [3][32]: who is elected among all, among all again, among lanes 8 to 23 (9: did not take part)
QN_DEVICE void elect_all(const Params& p) {
  u32* out = static_cast<u32*>(p.out) + ptx::lane_id();
  out[0] = ptx::elect_sync();
  out[32] = ptx::elect_sync();
  u32 among_some = 9;
  if (ptx::lane_id() / 8 == 1 || ptx::lane_id() / 8 == 2) among_some = ptx::elect_sync(0x00ffff00);
  out[64] = among_some;
}

/// Three warpgroups. The last gives registers to the others, which then exchange values within themselves: out [256] is what
/// thread (t + 77) % 128 of the same warpgroup wrote.
QN_DEVICE void warpgroups_all(const Params& p) {
  QN_SMEM(smem);
  u32* shared = reinterpret_cast<u32*>(smem);
  const u32 warpgroup = ptx::shfl(warpgroup_id(), 0);
  if (warpgroup == 2) {
    ptx::decrease_registers<40>();
  } else {
    ptx::increase_registers<232>();
    shared[threadIdx.x] = 1000 * warpgroup + thread_of_warpgroup() + 2 * warp_of_warpgroup();
    sync_warpgroup();
    static_cast<u32*>(p.out)[threadIdx.x] = shared[128 * warpgroup + (thread_of_warpgroup() + 77) % 128];
  }
}

}  // namespace quern::conform
