// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Streams through memory by quern's own kernels: copies and reads for the ceilings, reads that empty the L2.
#pragma once
#include <string>
#include <utility>

#include "quern/device/device.h"
#include "quern/jit/spec.h"

namespace quern::bench {

enum class StreamPass { copy, read, flush_l2 };

/// How a stream kernel is laid over the device.
struct StreamShape {
  i32 accesses = 4;  ///< of 16 bytes in flight in a thread: 1, 2, 4, 8
  i32 threads = 512;
  i32 blocks_an_sm = 0;  ///< blocks that walk over the chunks; 0: one block a chunk
};
/// "4 x 16 B, 512 threads, a block a chunk".
std::string text(const StreamShape& shape);

/// The kernel of a pass.
jit::KernelSpec stream_kernel(StreamPass what, const StreamShape& shape);

/// Launches one pass over `bytes` (a multiple of 16). `to` holds as many bytes for a copy and 16 otherwise.
void launch_stream(Device& device, StreamPass what, const StreamShape& shape, const void* from, void* to, i64 bytes, Stream stream);

/// Replaces what lies in the L2 by three times its size of clean lines, so that the next kernel neither finds its
/// operands nor pays for writing back somebody else's. The buffer is made once for each device and kept. Does nothing
/// on an emulated device, which has no L2.
void flush_l2(Device& device, Stream stream);
/// Begins the symbol of the kernel that flush_l2 launches.
constexpr const char* kFlushSymbol = "flush_l2__";

/// Device memory that is released with the object.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, size_t bytes, const char* label) : device_(&device), data_(device.allocate(bytes, label)), bytes_(bytes) {}
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_), std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  char* data() const { return static_cast<char*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace quern::bench
