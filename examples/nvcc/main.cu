// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// quern's kernels and kit in a .cu of one's own, compiled by nvcc without quern's JIT or library:
//   nvcc -std=c++20 -arch=sm_90a -I PREFIX/include main.cu -o nvcc_demo
#include <cmath>
#include <cstdio>
#include <vector>

#include "quern/ops/norm/norm_row/kernel.cuh"

using namespace quern;

// One of quern's kernels with a Config chosen here: rows of 4096 floats, 4 elements an access, a block of 256 threads a row.
constexpr norm::NormRowConfig kConfig{.dtype = DType::f32, .add_residual = 0, .vector = 4, .held = 4, .row_threads = 256, .threads = 256, .min_blocks = 1};
__global__ void __launch_bounds__(256) norm_rows(const __grid_constant__ norm::NormRowParams p) { norm::norm_row<kConfig>(p); }

// A kernel of one's own from kit's bricks: the sum of each row, block_sum over 8 warps.
__global__ void __launch_bounds__(256) sum_squares(const float* x, float* sums, int hidden) {
  __shared__ f32 scratch[8];
  f32 sum = 0.f;
  for (int h = int(threadIdx.x); h < hidden; h += 256) {
    const f32 v = ptx::ld_global_nc<f32>(x + i64(blockIdx.x) * hidden + h);
    sum = ptx::fma(v, v, sum);
  }
  sum = block_sum<256>(sum, scratch);
  if (threadIdx.x == 0) ptx::st_global<f32>(sums + blockIdx.x, sum);
}

int main() {
  const int tokens = 64, hidden = 4096;
  std::vector<float> x(size_t(tokens) * hidden), weight(hidden, 1.0f), sums(tokens);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 17) - 8;
  float *x_dev, *weight_dev, *out_dev, *sums_dev;
  cudaMalloc(&x_dev, x.size() * 4), cudaMalloc(&out_dev, x.size() * 4);
  cudaMalloc(&weight_dev, weight.size() * 4), cudaMalloc(&sums_dev, sums.size() * 4);
  cudaMemcpy(x_dev, x.data(), x.size() * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(weight_dev, weight.data(), weight.size() * 4, cudaMemcpyHostToDevice);

  norm::NormRowParams p{};
  p.x = x_dev, p.weight = weight_dev, p.out = out_dev;
  p.tokens = tokens, p.hidden = hidden, p.x_stride = hidden, p.out_stride = hidden;
  p.eps = 0;
  norm_rows<<<tokens, 256, norm::norm_row_smem(kConfig).bytes>>>(p);
  sum_squares<<<tokens, 256>>>(out_dev, sums_dev, hidden);
  if (cudaMemcpy(sums.data(), sums_dev, sums.size() * 4, cudaMemcpyDeviceToHost) != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    return 1;
  }
  for (float sum : sums)
    if (!(std::fabs(sum / float(hidden) - 1) < 1e-4f)) return std::printf("a normed row has mean square %g\n", sum / float(hidden)), 1;
  std::printf("%d rows, each of mean square 1\n", tokens);
  return 0;
}
