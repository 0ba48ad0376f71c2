// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/stream.h"

#include <map>
#include <mutex>

#include "quern/base/error.h"
#include "quern/bench/stream_spec.h"
#include "quern/jit/kernel_table.h"

namespace quern::bench {

using StreamKernel = jit::Kernel<StreamConfig, StreamParams>;

static const StreamKernel& kernel_of(StreamPass what) {
  static const StreamKernel copy{"quern/bench/stream.cuh", "stream_copy"};
  static const StreamKernel read{"quern/bench/stream.cuh", "stream_read"};
  static const StreamKernel flush{"quern/bench/stream.cuh", "flush_l2"};
  return what == StreamPass::copy ? copy : what == StreamPass::read ? read : flush;
}

std::string text(const StreamShape& s) {
  return std::to_string(s.accesses) + " x 16 B, " + std::to_string(s.threads) + " threads, " +
         (s.blocks_an_sm ? std::to_string(s.blocks_an_sm) + " blocks an SM" : "a block a chunk");
}

jit::KernelSpec stream_kernel(StreamPass what, const StreamShape& shape) {
  return kernel_of(what)(StreamConfig{shape.accesses, shape.threads});
}

void launch_stream(Device& device, StreamPass what, const StreamShape& shape, const void* from, void* to, i64 bytes, Stream stream) {
  if (bytes <= 0 || bytes % 16) throw Error(ErrorKind::internal, "a stream over " + std::to_string(bytes) + " bytes");
  const Function function = jit::get(stream_kernel(what, shape), device, stream);
  const StreamParams params{from, to, bytes / 16};
  const i64 chunks = ceil_div<i64>(params.vectors, i64(shape.accesses) * shape.threads);
  LaunchConfig config;
  config.grid[0] =
      u32(shape.blocks_an_sm ? min_of<i64>(chunks, i64(device.info().sms) * shape.blocks_an_sm) : min_of<i64>(chunks, (i64(1) << 31) - 1));
  config.threads = u32(shape.threads);
  device.launch(function, config, &params, sizeof params, stream);
}

void flush_l2(Device& device, Stream stream) {
  if (device.info().emulated) return;
  static std::mutex mutex;
  static auto* const buffers = new std::map<u32, DeviceMemory>;  // by ordinal; never released, as devices are
  const i64 bytes = round_up<i64>(3 * device.info().l2_bytes, 1 << 20);
  const std::lock_guard lock(mutex);
  DeviceMemory& buffer = (*buffers)[device.ordinal()];
  if (!buffer.data()) {
    buffer = DeviceMemory(device, size_t(bytes) + 16, "what flushes the L2");
    device.fill(buffer.data(), 0x5A, buffer.bytes(), stream);
  }
  launch_stream(device, StreamPass::flush_l2, {.accesses = 8, .threads = 512, .blocks_an_sm = 2}, buffer.data(), buffer.data() + bytes,
                bytes, stream);
}

DeviceMemory::~DeviceMemory() {
  try {
    if (data_) device_->release(data_);
  } catch (const Error&) {  // a device that has failed; what made it fail was reported
  }
}

}  // namespace quern::bench
