// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <map>
#include <mutex>

#include "quern/device/device.h"

namespace quern::bench {

/// Another device that counts what is allocated through this one: how much memory a call takes beside its tensors.
class MeteredDevice : public Device {
 public:
  explicit MeteredDevice(Device& device);
  /// The most bytes that were held at once.
  size_t peak_bytes() const { return peak_; }

  void* allocate(size_t bytes, const char* label) override { return taken(device_.allocate(bytes, label), bytes); }
  void release(void* pointer) override { given_back(pointer), device_.release(pointer); }
  void* allocate_async(size_t bytes, Stream stream) override { return taken(device_.allocate_async(bytes, stream), bytes); }
  void release_async(void* pointer, Stream stream) override { given_back(pointer), device_.release_async(pointer, stream); }
  void copy(void* destination, const void* source, size_t bytes, Stream stream) override {
    device_.copy(destination, source, bytes, stream);
  }
  void fill(void* destination, u8 byte, size_t bytes, Stream stream) override { device_.fill(destination, byte, bytes, stream); }
  void fill_rows(void* destination, u8 byte, size_t bytes, i64 rows, i64 pitch, Stream stream) override {
    device_.fill_rows(destination, byte, bytes, rows, pitch, stream);
  }
  Stream create_stream() override { return device_.create_stream(); }
  void destroy(Stream stream) override { device_.destroy(stream); }
  void synchronize(Stream stream) override { device_.synchronize(stream); }
  bool capturing(Stream stream) override { return device_.capturing(stream); }
  Event create_event() override { return device_.create_event(); }
  void destroy(Event event) override { device_.destroy(event); }
  void record(Event event, Stream stream) override { device_.record(event, stream); }
  void wait(Stream stream, Event event) override { device_.wait(stream, event); }
  double elapsed_us(Event from, Event to) override { return device_.elapsed_us(from, to); }
  void begin_capture(Stream stream) override { device_.begin_capture(stream); }
  void* end_capture(Stream stream) override { return device_.end_capture(stream); }
  void replay(void* graph, Stream stream) override { device_.replay(graph, stream); }
  void destroy_graph(void* graph) override { device_.destroy_graph(graph); }
  Function load(ImageKind kind, std::span<const char> image, const std::string& image_path, const std::string& entry, int smem) override {
    return device_.load(kind, image, image_path, entry, smem);
  }
  void unload(Function function) override { device_.unload(function); }
  void launch(Function function, const LaunchConfig& config, const void* params, size_t params_bytes, Stream stream) override {
    device_.launch(function, config, params, params_bytes, stream);
  }
  TensorMap make_tensor_map(const TensorMapSpec& spec) override { return device_.make_tensor_map(spec); }
  void begin_call(std::span<const MemoryRange> ranges, const char* op) override { device_.begin_call(ranges, op); }
  void end_call() override { device_.end_call(); }
  void judge(std::function<void()> judgement, Stream stream) override { device_.judge(std::move(judgement), stream); }
  i64 free_memory() override { return device_.free_memory(); }

 private:
  void* taken(void* pointer, size_t bytes);
  void given_back(void* pointer);

  Device& device_;
  std::mutex mutex_;
  std::map<void*, size_t> blocks_;
  size_t held_ = 0, peak_ = 0;
};

}  // namespace quern::bench
