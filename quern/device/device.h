// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quern/base/tensor_view.h"

namespace quern {

/// A GPU architecture as a compile target: compute capability and the `a` (arch-specific) suffix.
struct QN_API Arch {
  i32 number = 90;   ///< 80, 86, 89, 90, 100, 103, 120, 121
  i32 specific = 1;  ///< 1: "sm_90a", arch-specific instructions may be used; 0: "sm_90"
  friend bool operator==(const Arch&, const Arch&) = default;
  std::string name() const { return "sm_" + std::to_string(number) + (specific ? "a" : ""); }
  /// From "sm_90a", "90a", "sm_80". Throws Error{value} listing the known ones.
  static Arch parse(const std::string& text);
};
/// The archs that every kernel is compiled for in tests.
QN_API std::span<const Arch> known_archs();

/// What f32 is in kernels of an emulated device. real: float. order_free: exact arithmetic modulo primes, equal in every
/// order of sums (kit/order_free.h). tree: a hash of the expression, equal only in the same order. graph: the number of a
/// node of the expression's graph (emu/graph.h).
enum class Number : i32 { real, order_free, tree, graph };

/// What a GPU does in a nanosecond, for plans that compare times. A row an arch, of a well-known GPU; only ratios of times matter for a
/// choice, so all GPUs of an arch choose alike. 0: not known.
struct Rates {
  double memory = 0;    ///< bytes from memory
  double l2 = 0;        ///< bytes from the L2, to all multiprocessors
  double flops_16 = 0;  ///< of dense products of 16 bits, summed in f32
  double flops_8 = 0;   ///< of 8 bits
  double launch = 0;    ///< nanoseconds that a launch behind another one adds
  double tma_l2 = 0;    ///< bytes from the L2 by TMA, to all multiprocessors
  double tma_sm = 0;    ///< bytes that one multiprocessor takes by TMA
  i32 sms = 0;          ///< multiprocessors that share the rates but memory's
};
/// Of the arch with that number, or of the one before it where there is none.
QN_API const Rates& rates_of(i32 arch_number);

/// What plan may know of a device. A plain value: tests and `quern plan --arch` use ones without a device behind them.
struct DeviceInfo {
  Arch arch;
  i32 sms = 132;            ///< multiprocessors
  i32 smem_block = 232448;  ///< shared memory a block may opt in to, bytes
  i32 smem_sm = 233472;     ///< shared memory of a multiprocessor, bytes
  i32 threads_sm = 2048;    ///< resident threads of a multiprocessor
  i64 l2_bytes = 60 << 20;
  i64 memory_bytes = i64(141) << 30;
  i32 emulated = 0;  ///< 1: kernels run on the CPU
  Rates rates = rates_of(90);
  char name[64] = "NVIDIA H200";
};
/// DeviceInfo of a well-known GPU of that arch (sm_90a: H200, sm_80: A100, ...).
QN_API DeviceInfo device_info_of(Arch arch);

/// A stream of the device; the default-made one is the device's default stream. On CUDA the handle is a CUstream.
struct Stream {
  void* handle = nullptr;
};
struct Event {
  void* handle = nullptr;
};
/// A loaded module's one kernel.
struct Function {
  void* handle = nullptr;
};

/// A region that a launch may touch, for checked mode: the elements of one bound tensor, or a workspace.
struct MemoryRange {
  enum class Access { read, write, read_write, scratch };
  TensorView view;
  const char* name;
  Access access;
};

/// Blocks of a cluster along each axis; a number alone is along x.
struct ClusterShape {
  u32 x = 1, y = 1, z = 1;
  constexpr ClusterShape(u32 along_x = 1, u32 along_y = 1, u32 along_z = 1) : x(along_x), y(along_y), z(along_z) {}
  constexpr u32 blocks() const { return x * y * z; }
  friend bool operator==(const ClusterShape&, const ClusterShape&) = default;
};
/// "2", or "2x2x1" where it has blocks along y or z.
QN_API std::string to_string(const ClusterShape& cluster);

struct LaunchConfig {
  u32 grid[3] = {1, 1, 1};
  ClusterShape cluster = {};
  u32 threads = 1;
  u32 smem = 0;      ///< dynamic shared memory, bytes
  bool pdl = false;  ///< programmatic dependent launch: may start before its predecessor ends
};

struct TensorMapSpec {
  DType dtype;
  int rank;
  void* base;
  i64 shape[5];         ///< innermost first
  i64 stride_bytes[4];  ///< of dims 1..rank-1
  i32 box[5];
  Swizzle swizzle;
  i32 fetched = 128;  ///< bytes that the L2 fetches for a miss: 128 or 256
};

enum class ImageKind { cubin, shared_object };

/// One device: CUDA through the driver, or emulated on the CPU. All members are thread-safe and throw Error{device}.
/// CUDA calls make the device's primary context current for their duration and restore the caller's.
class QN_API Device {
 public:
  virtual ~Device() = default;
  const DeviceInfo& info() const { return info_; }
  DeviceId id() const { return id_; }
  /// Tells apart devices of one id (emulated ones are many); part of the in-memory kernel key.
  u32 ordinal() const { return ordinal_; }

  // Memory. `label` names the buffer in fault reports.
  virtual void* allocate(size_t bytes, const char* label) = 0;
  virtual void release(void* pointer) = 0;
  /// Stream-ordered scratch memory. Error{frozen} while the stream captures.
  virtual void* allocate_async(size_t bytes, Stream stream) = 0;
  virtual void release_async(void* pointer, Stream stream) = 0;
  /// Copy in either direction or within the device, ordered on the stream; returns when `source` may be reused.
  virtual void copy(void* destination, const void* source, size_t bytes, Stream stream) = 0;
  virtual void fill(void* destination, u8 byte, size_t bytes, Stream stream) = 0;
  /// The same of `rows` rows of `bytes` bytes each, which begin `pitch` bytes apart.
  virtual void fill_rows(void* destination, u8 byte, size_t bytes, i64 rows, i64 pitch, Stream stream);

  // Streams and events.
  virtual Stream create_stream() = 0;
  virtual void destroy(Stream stream) = 0;
  virtual void synchronize(Stream stream) = 0;
  virtual bool capturing(Stream stream) = 0;
  virtual Event create_event() = 0;
  virtual void destroy(Event event) = 0;
  virtual void record(Event event, Stream stream) = 0;
  virtual void wait(Stream stream, Event event) = 0;
  /// Microseconds between two recorded events; waits for the second.
  virtual double elapsed_us(Event from, Event to) = 0;

  // Graph capture. begin_capture .. end_capture yields a graph that `replay` launches.
  virtual void begin_capture(Stream stream) = 0;
  virtual void* end_capture(Stream stream) = 0;
  virtual void replay(void* graph, Stream stream) = 0;
  virtual void destroy_graph(void* graph) = 0;

  // Kernels.
  /// Loads a compiled image (cubin bytes, or for the emulated device the path of a shared object in `image_path`).
  /// `entry` is the kernel's symbol, `smem` the most dynamic shared memory it will be launched with. Error{frozen} while capturing;
  /// Error{unsupported} when the image is not one for this device, Error{device} when the device fails.
  virtual Function load(ImageKind kind, std::span<const char> image, const std::string& image_path, const std::string& entry, int smem) = 0;
  virtual void unload(Function function) = 0;
  /// `params` is copied before the call returns.
  virtual void launch(Function function, const LaunchConfig& config, const void* params, size_t params_bytes, Stream stream) = 0;
  virtual TensorMap make_tensor_map(const TensorMapSpec& spec) = 0;

  /// Checked emulated devices return true and then get the memory of each call between begin_call and end_call.
  bool wants_memory_ranges() const { return wants_memory_ranges_; }
  /// Number::real but for emulated devices that were made for proofs.
  Number number() const { return number_; }
  virtual void begin_call(std::span<const MemoryRange>, const char* /*op*/) {}
  virtual void end_call() {}
  /// Checked emulated devices do `judgement` on the host when the stream comes to it, on each replay of a graph again; it throws what it
  /// finds.
  virtual void judge(std::function<void()> /*judgement*/, Stream) {}

  /// Bytes that allocate() could get now, of all processes; of an emulated device what the host's kernel calls available. What others take
  /// meanwhile is not known, so leave some.
  virtual i64 free_memory();

 protected:
  DeviceInfo info_;
  DeviceId id_;
  u32 ordinal_ = 0;
  bool wants_memory_ranges_ = false;
  Number number_ = Number::real;
};

/// Entries of Device's table of virtual functions, two of them the destructor's. A library that calls them was compiled for that table
/// (kHeaders); a test counts them.
constexpr int kDeviceSlots = 30;

/// The device that a tensor lies on: cpu is the process's emulated device, cuda:N the N-th GPU. Made on first use; never destroyed.
QN_API Device& device_of(DeviceId id);
/// From "cuda:1", "cuda", "emu", "emu:sm_80"; empty: QN_DEVICE if set, else the first GPU if one is usable, else emulated.
QN_API Device& device_from_name(const std::string& text = {});
/// True when QN_DEVICE names the emulated device.
QN_API bool emulation_chosen();
/// Number of usable CUDA GPUs; 0 with the reason in *why.
QN_API int cuda_device_count(std::string* why = nullptr);

}  // namespace quern
