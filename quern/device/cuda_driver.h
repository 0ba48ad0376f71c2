// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/device/cuda_abi.h"

namespace quern::cuda {

/// The driver's entry points, taken from libcuda.so.1 at run time; the member mem_alloc is cuMemAlloc, and so on.
struct Driver {
  template <class... Arguments>
  using Call = Result (*)(Arguments...);

  Call<u32> init;
  Call<int*> driver_get_version;
  Call<Result, const char**> get_error_name;
  Call<Result, const char**> get_error_string;

  Call<int*> device_get_count;
  Call<Device*, int> device_get;
  Call<char*, int, Device> device_get_name;
  Call<char*, int, Device> device_get_pci_bus_id;
  Call<int*, DeviceAttribute, Device> device_get_attribute;
  Call<size_t*, Device> device_total_mem;
  Call<MemPool*, Device> device_get_default_mem_pool;

  Call<Context*, Device> primary_ctx_retain;
  Call<Context*> ctx_get_current;
  Call<Context> ctx_push_current;
  Call<Context*> ctx_pop_current;
  Call<> ctx_synchronize;

  Call<size_t*, size_t*> mem_get_info;
  Call<DevicePointer*, size_t> mem_alloc;
  Call<DevicePointer> mem_free;
  Call<DevicePointer*, size_t, Stream> mem_alloc_async;
  Call<DevicePointer, Stream> mem_free_async;
  Call<MemPool, MemPoolAttribute, void*> mem_pool_get_attribute;
  Call<MemPool, MemPoolAttribute, void*> mem_pool_set_attribute;
  Call<DevicePointer, DevicePointer, size_t, Stream> memcpy_async;
  Call<DevicePointer, u8, size_t, Stream> memset_d8_async;
  Call<DevicePointer, size_t, u8, size_t, size_t, Stream> memset_d2d8_async;
  Call<u32, PointerAttribute*, void**, DevicePointer> pointer_get_attributes;

  Call<Stream*, u32> stream_create;
  Call<Stream> stream_destroy;
  Call<Stream> stream_synchronize;
  Call<Stream, Event, u32> stream_wait_event;
  Call<Stream, CaptureMode> stream_begin_capture;
  Call<Stream, Graph*> stream_end_capture;
  Call<Stream, CaptureStatus*> stream_is_capturing;
  Call<CaptureMode*> thread_exchange_stream_capture_mode;

  Call<Event*, u32> event_create;
  Call<Event> event_destroy;
  Call<Event, Stream> event_record;
  Call<Event> event_synchronize;
  Call<float*, Event, Event> event_elapsed_time;

  Call<GraphExec*, Graph, u64> graph_instantiate;
  Call<GraphExec, Stream> graph_launch;
  Call<Graph> graph_destroy;
  Call<GraphExec> graph_exec_destroy;

  Call<Module*, const void*> module_load_data;
  Call<Module> module_unload;
  Call<Function*, Module, const char*> module_get_function;
  Call<int*, FunctionAttribute, Function> func_get_attribute;
  Call<Function, FunctionAttribute, int> func_set_attribute;
  Call<const LaunchConfig*, Function, void**, void**> launch_kernel_ex;

  Call<void*, TensorMapDataType, u32, void*, const u64*, const u64*, const u32*, const u32*, TensorMapInterleave, TensorMapSwizzle,
       TensorMapPromotion, TensorMapFill>
      tensor_map_encode_tiled;

  int version = 0;  ///< as CUDA writes it: 12080 is 12.8
};

/// The driver's CUDA version (13000 is 13.0), or 0 with the reason in *why. Loads the library, starts no device:
/// cuInit costs 100 ms and more, and a process that only compiles needs none of it.
int driver_version(std::string* why = nullptr);

/// Usable GPUs; 0 with the reason in *why: no library, a driver below 12.0, no device. Calls cuInit once.
int device_count(std::string* why = nullptr);

/// The started driver. Throws Error{device} with device_count's reason when there is no usable GPU.
const Driver& driver();

/// Throws Error{device}: "<what> failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"; Error{unsupported} when an image is refused
/// for what it is. Where the result is of a kernel that ran
/// before (an illegal address), the text goes on with suspects() of base/log.h.
[[noreturn]] void fail(Result result, const std::string& what);

inline void check(Result result, const char* call) {
  if (result != kSuccess) [[unlikely]]
    fail(result, call);
}

}  // namespace quern::cuda
