// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/device/cuda_driver.h"

#include <gtest/gtest.h>

#include <type_traits>

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

#if __has_include(<cuda.h>)
namespace quern::cuda {
namespace {

// Arguments pass alike when they are of one size, and both pointers or both not.
template <class Ours, class Theirs>
constexpr bool passes_alike() {
  return sizeof(Ours) == sizeof(Theirs) &&
         (std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> && std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>);
}

template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class... A, class R, class... B>
  requires(sizeof...(A) == sizeof...(B))
struct SameCall<Result (*)(A...), R (*)(B...)> : std::bool_constant<sizeof(R) == 4 && (passes_alike<A, B>() && ...)> {};

template <class Ours, class Theirs>
void expect_same_call(const char* name) {
  EXPECT_TRUE((SameCall<Ours, Theirs>::value)) << name;
}

TEST(device_cuda_driver, entry_points_take_what_cuda_h_says) {
  expect_same_call<decltype(Driver::init), decltype(&cuInit)>("cuInit");
  expect_same_call<decltype(Driver::driver_get_version), decltype(&cuDriverGetVersion)>("cuDriverGetVersion");
  expect_same_call<decltype(Driver::get_error_name), decltype(&cuGetErrorName)>("cuGetErrorName");
  expect_same_call<decltype(Driver::get_error_string), decltype(&cuGetErrorString)>("cuGetErrorString");
  expect_same_call<decltype(Driver::device_get_count), decltype(&cuDeviceGetCount)>("cuDeviceGetCount");
  expect_same_call<decltype(Driver::device_get), decltype(&cuDeviceGet)>("cuDeviceGet");
  expect_same_call<decltype(Driver::device_get_name), decltype(&cuDeviceGetName)>("cuDeviceGetName");
  expect_same_call<decltype(Driver::device_get_pci_bus_id), decltype(&cuDeviceGetPCIBusId)>("cuDeviceGetPCIBusId");
  expect_same_call<decltype(Driver::device_get_attribute), decltype(&cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  expect_same_call<decltype(Driver::device_total_mem), decltype(&cuDeviceTotalMem)>("cuDeviceTotalMem");
  expect_same_call<decltype(Driver::device_get_default_mem_pool), decltype(&cuDeviceGetDefaultMemPool)>("cuDeviceGetDefaultMemPool");
  expect_same_call<decltype(Driver::primary_ctx_retain), decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain");
  expect_same_call<decltype(Driver::ctx_get_current), decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent");
  expect_same_call<decltype(Driver::ctx_push_current), decltype(&cuCtxPushCurrent)>("cuCtxPushCurrent");
  expect_same_call<decltype(Driver::ctx_pop_current), decltype(&cuCtxPopCurrent)>("cuCtxPopCurrent");
  expect_same_call<decltype(Driver::ctx_synchronize), decltype(&cuCtxSynchronize)>("cuCtxSynchronize");
  expect_same_call<decltype(Driver::mem_get_info), decltype(&cuMemGetInfo)>("cuMemGetInfo");
  expect_same_call<decltype(Driver::mem_alloc), decltype(&cuMemAlloc)>("cuMemAlloc");
  expect_same_call<decltype(Driver::mem_free), decltype(&cuMemFree)>("cuMemFree");
  expect_same_call<decltype(Driver::mem_alloc_async), decltype(&cuMemAllocAsync)>("cuMemAllocAsync");
  expect_same_call<decltype(Driver::mem_free_async), decltype(&cuMemFreeAsync)>("cuMemFreeAsync");
  expect_same_call<decltype(Driver::mem_pool_get_attribute), decltype(&cuMemPoolGetAttribute)>("cuMemPoolGetAttribute");
  expect_same_call<decltype(Driver::mem_pool_set_attribute), decltype(&cuMemPoolSetAttribute)>("cuMemPoolSetAttribute");
  expect_same_call<decltype(Driver::memcpy_async), decltype(&cuMemcpyAsync)>("cuMemcpyAsync");
  expect_same_call<decltype(Driver::memset_d8_async), decltype(&cuMemsetD8Async)>("cuMemsetD8Async");
  expect_same_call<decltype(Driver::memset_d2d8_async), decltype(&cuMemsetD2D8Async)>("cuMemsetD2D8Async");
}

TEST(device_cuda_driver, further_entry_points_take_what_cuda_h_says) {
  expect_same_call<decltype(Driver::pointer_get_attributes), decltype(&cuPointerGetAttributes)>("cuPointerGetAttributes");
  expect_same_call<decltype(Driver::stream_create), decltype(&cuStreamCreate)>("cuStreamCreate");
  expect_same_call<decltype(Driver::stream_destroy), decltype(&cuStreamDestroy)>("cuStreamDestroy");
  expect_same_call<decltype(Driver::stream_synchronize), decltype(&cuStreamSynchronize)>("cuStreamSynchronize");
  expect_same_call<decltype(Driver::stream_wait_event), decltype(&cuStreamWaitEvent)>("cuStreamWaitEvent");
  expect_same_call<decltype(Driver::stream_begin_capture), decltype(&cuStreamBeginCapture)>("cuStreamBeginCapture");
  expect_same_call<decltype(Driver::stream_end_capture), decltype(&cuStreamEndCapture)>("cuStreamEndCapture");
  expect_same_call<decltype(Driver::stream_is_capturing), decltype(&cuStreamIsCapturing)>("cuStreamIsCapturing");
  expect_same_call<decltype(Driver::thread_exchange_stream_capture_mode), decltype(&cuThreadExchangeStreamCaptureMode)>(
      "cuThreadExchangeStreamCaptureMode");
  expect_same_call<decltype(Driver::event_create), decltype(&cuEventCreate)>("cuEventCreate");
  expect_same_call<decltype(Driver::event_destroy), decltype(&cuEventDestroy)>("cuEventDestroy");
  expect_same_call<decltype(Driver::event_record), decltype(&cuEventRecord)>("cuEventRecord");
  expect_same_call<decltype(Driver::event_synchronize), decltype(&cuEventSynchronize)>("cuEventSynchronize");
  expect_same_call<decltype(Driver::event_elapsed_time), decltype(&cuEventElapsedTime)>("cuEventElapsedTime");
  expect_same_call<decltype(Driver::graph_instantiate), decltype(&cuGraphInstantiateWithFlags)>("cuGraphInstantiateWithFlags");
  expect_same_call<decltype(Driver::graph_launch), decltype(&cuGraphLaunch)>("cuGraphLaunch");
  expect_same_call<decltype(Driver::graph_destroy), decltype(&cuGraphDestroy)>("cuGraphDestroy");
  expect_same_call<decltype(Driver::graph_exec_destroy), decltype(&cuGraphExecDestroy)>("cuGraphExecDestroy");
  expect_same_call<decltype(Driver::module_load_data), decltype(&cuModuleLoadData)>("cuModuleLoadData");
  expect_same_call<decltype(Driver::module_unload), decltype(&cuModuleUnload)>("cuModuleUnload");
  expect_same_call<decltype(Driver::module_get_function), decltype(&cuModuleGetFunction)>("cuModuleGetFunction");
  expect_same_call<decltype(Driver::func_get_attribute), decltype(&cuFuncGetAttribute)>("cuFuncGetAttribute");
  expect_same_call<decltype(Driver::func_set_attribute), decltype(&cuFuncSetAttribute)>("cuFuncSetAttribute");
  expect_same_call<decltype(Driver::launch_kernel_ex), decltype(&cuLaunchKernelEx)>("cuLaunchKernelEx");
  expect_same_call<decltype(Driver::tensor_map_encode_tiled), decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
}

}  // namespace
}  // namespace quern::cuda
#else
TEST(device_cuda_driver, agrees_with_cuda_h) { GTEST_SKIP() << "needs CUDA's headers"; }
#endif
