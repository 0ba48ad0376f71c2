// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <mutex>
#include <string>

#include "quern/device/cuda_driver.h"
#include "quern/device/device.h"

namespace quern {

/// A GPU through the CUDA driver. Works in the device's primary context, which it shares with the CUDA runtime and with
/// PyTorch, so streams and pointers pass either way.
class CudaDevice final : public Device {
 public:
  /// Retains the primary context of GPU `index`. Throws Error{device}. Use device_of(), which makes each device once.
  explicit CudaDevice(int index);

  void* allocate(size_t bytes, const char* label) override;
  void release(void* pointer) override;
  void* allocate_async(size_t bytes, Stream stream) override;
  void release_async(void* pointer, Stream stream) override;
  void copy(void* destination, const void* source, size_t bytes, Stream stream) override;
  void fill(void* destination, u8 byte, size_t bytes, Stream stream) override;
  i64 free_memory() override;
  void fill_rows(void* destination, u8 byte, size_t bytes, i64 rows, i64 pitch, Stream stream) override;

  Stream create_stream() override;
  void destroy(Stream stream) override;
  void synchronize(Stream stream) override;
  /// Also true for the default stream while another stream captures in global mode: work on it would break that
  /// capture.
  bool capturing(Stream stream) override;
  Event create_event() override;
  void destroy(Event event) override;
  void record(Event event, Stream stream) override;
  void wait(Stream stream, Event event) override;
  double elapsed_us(Event from, Event to) override;

  /// Thread-local mode: other threads may go on loading and allocating; a stray allocation of this thread is an error.
  void begin_capture(Stream stream) override;
  void* end_capture(Stream stream) override;
  void replay(void* graph, Stream stream) override;
  void destroy_graph(void* graph) override;

  /// A load has no stream, so whether it is allowed is for the caller to say (capturing(), freeze); done while some
  /// stream captures, it leaves that capture valid.
  Function load(ImageKind kind, std::span<const char> image, const std::string& image_path, const std::string& entry, int smem) override;
  void unload(Function function) override;
  /// Neither allocates nor locks.
  void launch(Function function, const LaunchConfig& config, const void* params, size_t params_bytes, Stream stream) override;
  TensorMap make_tensor_map(const TensorMapSpec& spec) override;

  /// Waits for all work of the device.
  void synchronize_all();
  /// "00000000:0A:00.0", by which NVML finds the same GPU.
  std::string pci_bus_id() const;

  /// Makes the primary context current while it lives and then restores the caller's; where it is current already, as
  /// in a process that uses the CUDA runtime, that costs one cuCtxGetCurrent.
  class ContextGuard {
   public:
    explicit ContextGuard(const CudaDevice& device);
    ~ContextGuard();
    ContextGuard(const ContextGuard&) = delete;
    ContextGuard& operator=(const ContextGuard&) = delete;

   private:
    const cuda::Driver& driver_;
    bool pushed_ = false;
  };

 private:
  void check(cuda::Result result, const char* call) const {
    if (result != cuda::kSuccess) [[unlikely]]
      fail(result, call);
  }
  [[noreturn]] void fail(cuda::Result result, const std::string& what) const;
  void keep_pool_memory();

  const cuda::Driver& driver_;
  cuda::Device device_ = 0;
  cuda::Context context_ = nullptr;
  std::once_flag pool_once_;
};

/// The CudaDevice behind a device; Error{unsupported}, naming `user`, when it is emulated.
CudaDevice& cuda_device(Device& device, const char* user);

}  // namespace quern
