// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/gpu_timer.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "quern/base/error.h"
#include "quern/bench/cupti_abi.h"
#include "quern/device/cuda_device.h"
#include "quern/device/cuda_libraries.h"

namespace quern {
namespace {

constexpr size_t kBufferBytes = size_t(4) << 20;  // a kernel record takes under 256 B: 16,000 kernels a buffer

struct Cupti {
  cupti::Result (*register_callbacks)(cupti::BufferRequested, cupti::BufferCompleted) = nullptr;
  cupti::Result (*enable)(cupti::ActivityKind) = nullptr;
  cupti::Result (*disable)(cupti::ActivityKind) = nullptr;
  cupti::Result (*flush_all)(u32) = nullptr;
  cupti::Result (*get_next_record)(u8*, size_t, void**) = nullptr;
  cupti::Result (*get_dropped)(void*, u32, size_t*) = nullptr;
  cupti::Result (*get_result_string)(cupti::Result, const char**) = nullptr;
};

// Constant-initialised and filled once; CUPTI's callbacks read it, perhaps while it is being tried out.
constinit Cupti table;

/// What the buffers held; filled on CUPTI's thread.
struct Collected {
  std::mutex mutex;
  std::vector<KernelRecord> records;
  size_t dropped = 0;
};
Collected& collected() {
  static Collected* const all = new Collected;
  return *all;
}
std::atomic<bool> collecting = false;

std::string text_of(cupti::Result result) {
  const char* text = nullptr;
  if (table.get_result_string && table.get_result_string(result, &text) == cupti::kSuccess && text) return text;
  return "CUPTI error " + std::to_string(result);
}

// CUPTI asks for 8-byte alignment. On failure it drops records and counts them.
void buffer_requested(u8** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<u8*>(std::aligned_alloc(64, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *max_records = 0;  // as many as fit
}

// No exception may leave it: CUPTI's own frames are below.
void buffer_completed(void* context, u32 stream, u8* buffer, size_t, size_t valid_bytes) try {
  Collected& to = collected();
  const std::lock_guard lock(to.mutex);
  void* record = nullptr;
  while (valid_bytes > 0 && table.get_next_record(buffer, valid_bytes, &record) == cupti::kSuccess) {
    const auto kind = cupti::field<i32>(record, cupti::kKindOffset);
    if (kind != cupti::kConcurrentKernel && kind != cupti::kKernel) continue;
    const char* name = cupti::field<const char*>(record, cupti::kNameOffset);
    to.records.push_back({name ? name : "?", cupti::field<u64>(record, cupti::kStartOffset), cupti::field<u64>(record, cupti::kEndOffset)});
  }
  size_t dropped = 0;
  if (table.get_dropped(context, stream, &dropped) == cupti::kSuccess) to.dropped += dropped;
  std::free(buffer);
} catch (...) { std::free(buffer); }

template <class F>
bool take(void* handle, const char* symbol, F& slot) {
  slot = reinterpret_cast<F>(dlsym(handle, symbol));
  return slot != nullptr;
}

// Fills the table; returns why CUPTI is of no use, or nothing.
std::string open_cupti() {
  Cupti& c = table;
  std::string why, path;
  if (cuda_device_count(&why) == 0) return why;
  void* handle = open_cuda_library({"libcupti", {"cu13", "cuda_cupti"}}, &path, &why);
  if (!handle) return why;
  const bool complete =
      take(handle, "cuptiActivityRegisterCallbacks", c.register_callbacks) && take(handle, "cuptiActivityEnable", c.enable) &&
      take(handle, "cuptiActivityDisable", c.disable) && take(handle, "cuptiActivityFlushAll", c.flush_all) &&
      take(handle, "cuptiActivityGetNextRecord", c.get_next_record) && take(handle, "cuptiActivityGetNumDroppedRecords", c.get_dropped) &&
      take(handle, "cuptiGetResultString", c.get_result_string);
  if (!complete) return path + " lacks functions of CUPTI 12";
  // Refusals (another profiler is attached, a container without the right) show here, not in the middle of a run.
  cupti::Result result = c.register_callbacks(buffer_requested, buffer_completed);
  if (result == cupti::kSuccess) result = c.enable(cupti::kConcurrentKernel);
  if (result == cupti::kSuccess) result = c.disable(cupti::kConcurrentKernel);
  return result == cupti::kSuccess ? "" : path + ": " + text_of(result);
}

void check(cupti::Result result, const char* call) {
  if (result != cupti::kSuccess) throw Error(ErrorKind::device, std::string(call) + " failed: " + text_of(result));
}

}  // namespace

bool cupti_available(std::string* why) {
  static const std::string* const problem = new std::string(open_cupti());
  if (why) *why = *problem;
  return problem->empty();
}

const char* KernelTimer::name() { return cupti_available() ? "CUPTI activity" : "CUDA events"; }

KernelTimer::KernelTimer(Device& device, Stream stream) : device_(device), stream_(stream) {
  cuda_device(device, "KernelTimer");
  if (cupti_available()) return;
  from_ = device.create_event();
  to_ = device.create_event();
}

KernelTimer::~KernelTimer() {
  try {
    if (running_) stop();
    device_.destroy(from_);
    device_.destroy(to_);
  } catch (const Error&) {
    // A device that failed in the timed region has thrown there already.
  }
}

void KernelTimer::start() {
  if (running_ || collecting.exchange(true)) throw Error(ErrorKind::internal, "another KernelTimer is running");
  running_ = true;
  device_.synchronize(stream_);
  if (!cupti_available()) return device_.record(from_, stream_);
  const CudaDevice::ContextGuard guard(cuda_device(device_, "KernelTimer"));
  check(table.enable(cupti::kConcurrentKernel), "cuptiActivityEnable");
  check(table.flush_all(cupti::kFlushForced), "cuptiActivityFlushAll");
  const std::lock_guard lock(collected().mutex);
  collected().records.clear();
  collected().dropped = 0;
}

std::vector<KernelRecord> KernelTimer::stop() {
  if (!running_) throw Error(ErrorKind::internal, "KernelTimer::stop without start");
  running_ = false;
  collecting = false;
  if (!cupti_available()) {
    device_.record(to_, stream_);
    return {{"whole region, by events", 0, u64(1000 * device_.elapsed_us(from_, to_))}};
  }
  CudaDevice& device = cuda_device(device_, "KernelTimer");
  const CudaDevice::ContextGuard guard(device);
  device.synchronize(stream_);
  const cupti::Result flushed = table.flush_all(cupti::kFlushForced);
  const cupti::Result disabled = table.disable(cupti::kConcurrentKernel);
  check(flushed, "cuptiActivityFlushAll");
  check(disabled, "cuptiActivityDisable");
  const std::lock_guard lock(collected().mutex);
  if (collected().dropped > 0) throw Error(ErrorKind::device, "CUPTI dropped " + std::to_string(collected().dropped) + " kernel records");
  std::vector<KernelRecord> records = std::move(collected().records);
  collected().records.clear();
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  return records;
}

}  // namespace quern
