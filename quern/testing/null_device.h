// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <atomic>
#include <memory>

#include "quern/device/device.h"

namespace quern::testing {

/// A device that plans like the GPU it is given, takes host tensors, loads nothing and launches nothing: what remains
/// of a call is the host's part. Kernels are still built once, by the host compiler.
class NullDevice : public Device {
 public:
  explicit NullDevice(const DeviceInfo& info);
  i64 launches() const { return launches_.load(std::memory_order_relaxed); }
  const LaunchConfig& last() const { return last_; }

  void* allocate(size_t bytes, const char* label) override;
  void release(void* pointer) override;
  void* allocate_async(size_t bytes, Stream stream) override;
  void release_async(void* pointer, Stream stream) override;
  void copy(void* destination, const void* source, size_t bytes, Stream stream) override;
  void fill(void* destination, u8 byte, size_t bytes, Stream stream) override;
  Stream create_stream() override { return {}; }
  void destroy(Stream) override {}
  void synchronize(Stream) override {}
  bool capturing(Stream) override { return capturing_; }
  Event create_event() override { return {}; }
  void destroy(Event) override {}
  void record(Event, Stream) override {}
  void wait(Stream, Event) override {}
  double elapsed_us(Event, Event) override { return 0; }
  void begin_capture(Stream) override { capturing_ = true; }
  void* end_capture(Stream) override;
  void replay(void*, Stream) override {}
  void destroy_graph(void*) override {}
  Function load(ImageKind, std::span<const char>, const std::string&, const std::string&, int) override;
  void unload(Function) override {}
  void launch(Function, const LaunchConfig& config, const void*, size_t, Stream) override {
    launches_.fetch_add(1, std::memory_order_relaxed);
    last_ = config;
  }
  TensorMap make_tensor_map(const TensorMapSpec&) override { return {}; }

 private:
  std::atomic<i64> launches_ = 0;
  LaunchConfig last_;
  bool capturing_ = false;
  std::unique_ptr<char, void (*)(void*)> pool_{nullptr, nullptr};
  size_t pool_bytes_ = 0;
};

}  // namespace quern::testing
