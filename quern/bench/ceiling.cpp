// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/ceiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "quern/bench/cublas.h"
#include "quern/bench/stream.h"
#include "quern/bench/time_call.h"
#include "quern/testing/fill.h"
#include "quern/testing/parallel.h"

namespace quern::bench {

namespace {

constexpr double kMost = double(i64(4) << 30);  // moved by one measured copy

/// What may be the best copy: few bytes want many threads, many bytes deep loads; whether walking blocks or a block a
/// chunk is ahead differs by size and GPU.
constexpr StreamShape kShapes[] = {{1, 256, 0}, {4, 256, 0}, {4, 512, 4}, {8, 512, 2}};

struct Best {
  double us = 0;
  std::string source;
  void take(double other, const std::string& from) {
    if (us == 0 || other < us) us = other, source = from;
  }
};

/// Source and destination, filled with random bytes once and kept: a copy of zeros may be faster than one of data.
struct CopyBuffers {
  DeviceMemory from, to;
};

void fill_random(Device& device, char* data, size_t bytes) {
  const size_t block = std::min(bytes, size_t(64) << 20);
  std::vector<u64> words(block / 8 + 1);
  testing::in_parallel(i64(words.size()), 1 << 16, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) words[size_t(i)] = Random(u64(i)).next();
  });
  for (size_t at = 0; at < bytes; at += block) device.copy(data + at, words.data(), std::min(block, bytes - at), {});
  device.synchronize({});
}

CopyBuffers& copy_buffers(Device& device, size_t bytes) {
  static auto* const all = new std::map<u32, CopyBuffers>;
  CopyBuffers& b = (*all)[device.ordinal()];
  if (b.from.bytes() >= bytes) return b;
  b = {};
  b = {DeviceMemory(device, bytes, "copied from"), DeviceMemory(device, bytes, "copied to")};
  fill_random(device, b.from.data(), bytes);
  return b;
}

TimingOptions short_timing(bool cold) { return {.cold = cold, .budget_ms = 40, .min_runs = 15, .max_runs = 100}; }

/// The driver's copies leave no kernel records: some back to back between two events. The best of 5.
double driver_copy_us(Device& device, const CopyBuffers& b, size_t bytes) {
  constexpr int kCopies = 8;
  const Event from = device.create_event(), to = device.create_event();
  std::vector<double> us;
  for (int i = 0; i < 6; ++i) {
    device.record(from, {});
    for (int c = 0; c < kCopies; ++c) device.copy(b.to.data(), b.from.data(), bytes, {});
    device.record(to, {});
    if (const double t = device.elapsed_us(from, to) / kCopies; i > 0) us.push_back(t);
  }
  device.destroy(from);
  device.destroy(to);
  std::sort(us.begin(), us.end());
  return quantile(us, 0.5);
}

/// The fastest copy of `bytes` bytes. Events and what L2 keeps falsify the driver's copies of less than 64 MB.
Best best_copy(Device& device, size_t bytes) {
  Best best;
  const CopyBuffers& b = copy_buffers(device, bytes);
  if (device.info().emulated) {
    best.take(time_call(device, [&] { device.copy(b.to.data(), b.from.data(), bytes, {}); }, short_timing(false)).median_us, "memmove");
    return best;
  }
  for (const StreamShape& shape : kShapes) {
    const Timing t = time_call(
        device, [&] { launch_stream(device, StreamPass::copy, shape, b.from.data(), b.to.data(), i64(bytes), {}); }, short_timing(true));
    best.take(t.median_us, fmt::format("stream_copy ({}), {}", text(shape), t.timer));
  }
  if (bytes >= size_t(64) << 20) best.take(driver_copy_us(device, b, bytes), "the driver's copy, CUDA events");
  return best;
}

Best best_read(Device& device, size_t bytes) {
  Best best;
  const CopyBuffers& b = copy_buffers(device, bytes);
  for (const StreamShape& shape : kShapes) {
    const Timing t = time_call(
        device, [&] { launch_stream(device, StreamPass::read, shape, b.from.data(), b.to.data(), i64(bytes), {}); }, short_timing(true));
    best.take(t.median_us, fmt::format("stream_read ({}), {}", text(shape), t.timer));
  }
  return best;
}

/// A device matrix of near-normal bf16.
DeviceMemory random_matrix(Device& device, i64 rows, i64 columns, u64 seed) {
  std::vector<u16> host(size_t(rows * columns));
  Random random(seed);
  testing::fill_tensor(TensorView(host.data(), DType::bf16, {rows, columns}), Values::Kind::data, 0, random);
  DeviceMemory memory(device, host.size() * 2, "a random matrix");
  device.copy(memory.data(), host.data(), host.size() * 2, {});
  return memory;
}

void measure_products(Device& device, Ceilings& c) {
  std::string why;
  if (!cublaslt_available(&why)) {
    c.flops_source = "not measured: " + why;
    return;
  }
  try {
    constexpr i64 n = 8192;
    const DeviceMemory a = random_matrix(device, n, n, 1), b = random_matrix(device, n, n, 2);
    const DeviceMemory d(device, size_t(n * n * 2), "the product");
    const DeviceMemory workspace(device, CublasLtMatmul::kWorkspaceBytes, "cuBLASLt's workspace");
    CublasLtMatmul matmul(device, n, n, n, DType::bf16, DType::bf16);
    const Timing t = time_call(device, [&] { matmul.run(a.data(), b.data(), d.data(), workspace.data(), {}); }, {.cold = false});
    c.flops_per_us = 2.0 * n * n * n / t.median_us;
    c.flops_source = CublasLtMatmul::description() + ", bf16 8192^3, random data, " + t.timer;
  } catch (const Error& e) { c.flops_source = std::string("not measured: ") + e.what(); }
}

}  // namespace

double Ceilings::floor_us(const Cost& cost) const {
  const double bytes = best_bytes_per_us() > 0 ? cost.bytes / best_bytes_per_us() : 0;
  const double flops = flops_per_us > 0 ? cost.flops / flops_per_us : 0;
  return max_of(bytes, flops);
}

bool Ceilings::bandwidth_bound(const Cost& cost) const {
  // Without rates: 160 operations a byte is where an H200's meet.
  const bool known = best_bytes_per_us() > 0 && flops_per_us > 0;
  const double flops_a_byte = known ? flops_per_us / best_bytes_per_us() : 160;
  return cost.flops <= flops_a_byte * cost.bytes;
}

Ceilings measure_ceilings(Device& device) {
  Ceilings c;
  const bool emulated = device.info().emulated;
  const size_t bytes = emulated ? size_t(32) << 20 : size_t(2) << 30;
  copy_buffers(device, bytes);  // the reads' size: made once
  const Best copy = best_copy(device, bytes / (emulated ? 1 : 2));
  c.bytes_per_us = double(bytes) * (emulated ? 2 : 1) / copy.us;
  c.copy_source = copy.source;
  if (emulated) {
    c.flops_source = "not measured: the device is emulated";
    return c;
  }
  const Best read = best_read(device, bytes);
  c.read_bytes_per_us = double(bytes) / read.us;
  c.read_source = read.source;
  measure_products(device, c);
  return c;
}

double copy_us(Device& device, double bytes) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::pair<u32, i64>, double>;
  const i64 half = round_up<i64>(max_of<i64>(1, i64(std::min(bytes, kMost) / 2)), 16);
  const std::lock_guard lock(mutex);
  double& us = (*known)[{device.ordinal(), half}];
  if (us == 0) us = best_copy(device, size_t(half)).us;
  return us * bytes / (2.0 * double(half));
}

}  // namespace quern::bench
