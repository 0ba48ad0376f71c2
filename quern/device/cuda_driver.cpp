// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/device/cuda_driver.h"

#include <dlfcn.h>

#include "quern/base/error.h"
#include "quern/base/log.h"

namespace quern::cuda {
namespace {

constexpr int kMinimumVersion = 12000;    // cuLaunchKernelEx, tensor maps and clusters came with 11.8 to 12.0
constexpr int kRequestedVersion = 12080;  // the newest signatures that the table above states

struct Library {
  Driver driver = {};
  std::string why;  // empty: usable
};

using GetProcAddress = Result (*)(const char*, void**, int, u64, i32*);

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

// Fills the table; returns the first symbol that is missing, or nullptr.
const char* fill(Driver& d, GetProcAddress get) {
  const struct {
    const char* name;
    void* slot;
  } entries[] = {
      {"cuInit", &d.init},
      {"cuDriverGetVersion", &d.driver_get_version},
      {"cuGetErrorName", &d.get_error_name},
      {"cuGetErrorString", &d.get_error_string},
      {"cuDeviceGetCount", &d.device_get_count},
      {"cuDeviceGet", &d.device_get},
      {"cuDeviceGetName", &d.device_get_name},
      {"cuDeviceGetPCIBusId", &d.device_get_pci_bus_id},
      {"cuDeviceGetAttribute", &d.device_get_attribute},
      {"cuDeviceTotalMem", &d.device_total_mem},
      {"cuDeviceGetDefaultMemPool", &d.device_get_default_mem_pool},
      {"cuDevicePrimaryCtxRetain", &d.primary_ctx_retain},
      {"cuCtxGetCurrent", &d.ctx_get_current},
      {"cuCtxPushCurrent", &d.ctx_push_current},
      {"cuCtxPopCurrent", &d.ctx_pop_current},
      {"cuCtxSynchronize", &d.ctx_synchronize},
      {"cuMemGetInfo", &d.mem_get_info},
      {"cuMemAlloc", &d.mem_alloc},
      {"cuMemFree", &d.mem_free},
      {"cuMemAllocAsync", &d.mem_alloc_async},
      {"cuMemFreeAsync", &d.mem_free_async},
      {"cuMemPoolGetAttribute", &d.mem_pool_get_attribute},
      {"cuMemPoolSetAttribute", &d.mem_pool_set_attribute},
      {"cuMemcpyAsync", &d.memcpy_async},
      {"cuMemsetD8Async", &d.memset_d8_async},
      {"cuMemsetD2D8Async", &d.memset_d2d8_async},
      {"cuPointerGetAttributes", &d.pointer_get_attributes},
      {"cuStreamCreate", &d.stream_create},
      {"cuStreamDestroy", &d.stream_destroy},
      {"cuStreamSynchronize", &d.stream_synchronize},
      {"cuStreamWaitEvent", &d.stream_wait_event},
      {"cuStreamBeginCapture", &d.stream_begin_capture},
      {"cuStreamEndCapture", &d.stream_end_capture},
      {"cuStreamIsCapturing", &d.stream_is_capturing},
      {"cuThreadExchangeStreamCaptureMode", &d.thread_exchange_stream_capture_mode},
      {"cuEventCreate", &d.event_create},
      {"cuEventDestroy", &d.event_destroy},
      {"cuEventRecord", &d.event_record},
      {"cuEventSynchronize", &d.event_synchronize},
      {"cuEventElapsedTime", &d.event_elapsed_time},
      {"cuGraphInstantiateWithFlags", &d.graph_instantiate},
      {"cuGraphLaunch", &d.graph_launch},
      {"cuGraphDestroy", &d.graph_destroy},
      {"cuGraphExecDestroy", &d.graph_exec_destroy},
      {"cuModuleLoadData", &d.module_load_data},
      {"cuModuleUnload", &d.module_unload},
      {"cuModuleGetFunction", &d.module_get_function},
      {"cuFuncGetAttribute", &d.func_get_attribute},
      {"cuFuncSetAttribute", &d.func_set_attribute},
      {"cuLaunchKernelEx", &d.launch_kernel_ex},
      {"cuTensorMapEncodeTiled", &d.tensor_map_encode_tiled},
  };
  for (const auto& e : entries) {
    i32 status = 0;
    void** slot = static_cast<void**>(e.slot);
    if (get(e.name, slot, kRequestedVersion, kLegacyStream, &status) != kSuccess || !*slot) return e.name;
  }
  return nullptr;
}

Library load() {
  Library library;
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    library.why = std::string("no CUDA driver: ") + (reason ? reason : "libcuda.so.1 does not load");
    return library;
  }
  auto version = reinterpret_cast<Result (*)(int*)>(dlsym(handle, "cuDriverGetVersion"));
  auto get = reinterpret_cast<GetProcAddress>(dlsym(handle, "cuGetProcAddress_v2"));
  int number = 0;
  if (!version || version(&number) != kSuccess) {
    library.why = "libcuda.so.1 does not tell its version (is it the toolkit's stub library?)";
  } else if (number < kMinimumVersion || !get) {
    library.why = "the driver supports CUDA " + version_text(number) + ", quern needs " + version_text(kMinimumVersion);
  } else if (const char* missing = fill(library.driver, get)) {
    library.why = std::string("the driver (CUDA ") + version_text(number) + ") lacks " + missing;
  } else {
    library.driver.version = number;
  }
  return library;
}

const Library& library() {
  // Never destroyed: threads of the caller may still launch while the process exits.
  static const Library* const loaded = new Library(load());
  return *loaded;
}

std::string describe(const Driver& d, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (!d.get_error_name || d.get_error_name(result, &name) != kSuccess || !name) return "CUDA error " + std::to_string(result);
  if (d.get_error_string(result, &text) != kSuccess || !text) return name;
  return std::string(name) + " (" + text + ")";
}

struct Started {
  int count = 0;
  std::string why;
};

Started start() {
  Started started;
  const Library& l = library();
  if (!l.why.empty()) {
    started.why = l.why;
    return started;
  }
  if (const Result result = l.driver.init(0); result != kSuccess) {
    started.why = "cuInit failed: " + describe(l.driver, result);
  } else if (const Result counted = l.driver.device_get_count(&started.count); counted != kSuccess) {
    started.count = 0;
    started.why = "cuDeviceGetCount failed: " + describe(l.driver, counted);
  } else if (started.count == 0) {
    started.why = "the driver is present, no GPU is visible (see CUDA_VISIBLE_DEVICES)";
  }
  return started;
}

}  // namespace

int driver_version(std::string* why) {
  const Library& l = library();
  if (why) *why = l.why;
  return l.driver.version;
}

int device_count(std::string* why) {
  static const Started* const started = new Started(start());
  if (why) *why = started->why;
  return started->count;
}

const Driver& driver() {
  std::string why;
  if (device_count() == 0) {
    device_count(&why);
    throw Error(ErrorKind::device, "no usable CUDA GPU: " + why);
  }
  return library().driver;
}

bool of_earlier_kernel(Result result) {
  return (result >= kErrorHardwareStackError && result <= kErrorLaunchFailed) || result == kErrorIllegalAddress ||
         result == kErrorLaunchTimeout || result == kErrorAssert || result == kErrorEccUncorrectable;
}

static bool of_the_image(Result result) {
  return result == kErrorInvalidImage || result == kErrorNoBinaryForGpu || result == kErrorUnsupportedPtxVersion ||
         result == kErrorInvalidSource || result == kErrorNotFound;
}

void fail(Result result, const std::string& what) {
  std::string text = what + " failed: " + describe(library().driver, result);
  if (of_earlier_kernel(result)) text += "; " + suspects();
  throw Error(of_the_image(result) ? ErrorKind::unsupported : ErrorKind::device, text);
}

}  // namespace quern::cuda
