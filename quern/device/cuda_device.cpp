// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/device/cuda_device.h"

#include <cstring>

#include "quern/base/error.h"

namespace quern {

static cuda::DevicePointer address(const void* pointer) { return reinterpret_cast<cuda::DevicePointer>(pointer); }

static std::string address_text(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", pointer);
  return text;
}

static DeviceInfo read_info(const cuda::Driver& driver, cuda::Device device) {
  const auto attribute = [&](cuda::DeviceAttribute which) {
    int value = 0;
    cuda::check(driver.device_get_attribute(&value, which, device), "cuDeviceGetAttribute");
    return value;
  };
  DeviceInfo info;
  info.arch.number = attribute(cuda::kComputeCapabilityMajor) * 10 + attribute(cuda::kComputeCapabilityMinor);
  info.arch.specific = info.arch.number >= 90;
  info.sms = attribute(cuda::kMultiprocessorCount);
  info.smem_block = attribute(cuda::kMaxSharedMemoryPerBlockOptin);
  info.smem_sm = attribute(cuda::kMaxSharedMemoryPerMultiprocessor);
  info.threads_sm = attribute(cuda::kMaxThreadsPerMultiprocessor);
  info.l2_bytes = attribute(cuda::kL2CacheSize);
  size_t memory = 0;
  cuda::check(driver.device_total_mem(&memory, device), "cuDeviceTotalMem");
  info.memory_bytes = i64(memory);
  info.emulated = 0;
  info.rates = rates_of(info.arch.number);
  cuda::check(driver.device_get_name(info.name, sizeof info.name, device), "cuDeviceGetName");
  return info;
}

CudaDevice::CudaDevice(int index) : driver_(cuda::driver()) {
  id_ = {DeviceType::cuda, index};
  ordinal_ = u32(index);
  const int count = cuda::device_count();
  if (index < 0 || index >= count)
    throw Error(ErrorKind::device, "cuda:" + std::to_string(index) + " does not exist: this process sees " + std::to_string(count) +
                                       (count == 1 ? " GPU" : " GPUs"));
  check(driver_.device_get(&device_, index), "cuDeviceGet");
  info_ = read_info(driver_, device_);
  check(driver_.primary_ctx_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
}

void CudaDevice::fail(cuda::Result result, const std::string& what) const {
  cuda::fail(result, "cuda:" + std::to_string(id_.index) + ": " + what);
}

CudaDevice::ContextGuard::ContextGuard(const CudaDevice& device) : driver_(device.driver_) {
  cuda::Context current = nullptr;
  device.check(driver_.ctx_get_current(&current), "cuCtxGetCurrent");
  if (current == device.context_) return;
  device.check(driver_.ctx_push_current(device.context_), "cuCtxPushCurrent");
  pushed_ = true;
}

CudaDevice::ContextGuard::~ContextGuard() {
  cuda::Context popped = nullptr;
  if (pushed_) driver_.ctx_pop_current(&popped);
}

CudaDevice& cuda_device(Device& device, const char* user) {
  if (device.id().type != DeviceType::cuda)
    throw Error(ErrorKind::unsupported, std::string(user) + " needs a CUDA device, this one is emulated (" + device.info().name + ")");
  return static_cast<CudaDevice&>(device);
}

std::string CudaDevice::pci_bus_id() const {
  char text[32] = {};
  check(driver_.device_get_pci_bus_id(text, sizeof text, device_), "cuDeviceGetPCIBusId");
  return text;
}

// ---------------------------------------------------------------------------------------------------------- memory

void* CudaDevice::allocate(size_t bytes, const char* label) {
  const ContextGuard guard(*this);
  cuda::DevicePointer pointer = 0;
  // cuMemAlloc refuses 0 bytes; an empty tensor still wants an address of its own.
  if (const cuda::Result result = driver_.mem_alloc(&pointer, bytes ? bytes : 1); result != cuda::kSuccess)
    fail(result, "cuMemAlloc of " + std::to_string(bytes) + " bytes for `" + (label ? label : "?") + "`");
  return reinterpret_cast<void*>(pointer);
}

void CudaDevice::release(void* pointer) {
  if (!pointer) return;
  const ContextGuard guard(*this);
  if (const cuda::Result result = driver_.mem_free(address(pointer)); result != cuda::kSuccess)
    fail(result, "cuMemFree of " + address_text(pointer));
}

// By default a pool returns its memory to the system at each synchronisation, and the next call pays for it again.
void CudaDevice::keep_pool_memory() {
  cuda::MemPool pool = nullptr;
  check(driver_.device_get_default_mem_pool(&pool, device_), "cuDeviceGetDefaultMemPool");
  u64 threshold = 0;
  check(driver_.mem_pool_get_attribute(pool, cuda::kPoolReleaseThreshold, &threshold), "cuMemPoolGetAttribute");
  constexpr u64 kKeep = u64(256) << 20;  // workspaces are at most tens of MB; a larger setting of the process stays
  if (threshold >= kKeep) return;
  threshold = kKeep;
  check(driver_.mem_pool_set_attribute(pool, cuda::kPoolReleaseThreshold, &threshold), "cuMemPoolSetAttribute");
}

void* CudaDevice::allocate_async(size_t bytes, Stream stream) {
  const ContextGuard guard(*this);
  if (capturing(stream))
    throw Error(ErrorKind::frozen, "a workspace of " + std::to_string(bytes) + " bytes would be allocated while the stream is capturing");
  std::call_once(pool_once_, [this] { keep_pool_memory(); });
  cuda::DevicePointer pointer = 0;
  const cuda::Result result = driver_.mem_alloc_async(&pointer, bytes ? bytes : 1, stream.handle);
  if (result != cuda::kSuccess) fail(result, "cuMemAllocAsync of " + std::to_string(bytes) + " bytes");
  return reinterpret_cast<void*>(pointer);
}

void CudaDevice::release_async(void* pointer, Stream stream) {
  if (!pointer) return;
  const ContextGuard guard(*this);
  check(driver_.mem_free_async(address(pointer), stream.handle), "cuMemFreeAsync");
}

void CudaDevice::copy(void* destination, const void* source, size_t bytes, Stream stream) {
  if (bytes == 0) return;
  const ContextGuard guard(*this);
  // The plural call: for memory that the driver does not know, which is pageable host memory, it succeeds and writes 0,
  // where the singular one fails, an error that compute-sanitizer reports.
  cuda::MemoryType type = cuda::kMemoryHost;
  cuda::PointerAttribute wanted = cuda::kPointerMemoryType;
  void* into = &type;
  check(driver_.pointer_get_attributes(1, &wanted, &into, address(source)), "cuPointerGetAttributes");
  const bool from_host = type != cuda::kMemoryDevice;
  if (from_host && capturing(stream))
    throw Error(ErrorKind::device, "a copy from host memory cannot be captured: a replay would read the source when it is gone");
  const cuda::Result result = driver_.memcpy_async(address(destination), address(source), bytes, stream.handle);
  if (result != cuda::kSuccess)
    fail(result, "cuMemcpyAsync of " + std::to_string(bytes) + " bytes from " + address_text(source) + " to " + address_text(destination));
  if (from_host) check(driver_.stream_synchronize(stream.handle), "cuStreamSynchronize");
}

void CudaDevice::fill(void* destination, u8 byte, size_t bytes, Stream stream) {
  if (bytes == 0) return;
  const ContextGuard guard(*this);
  check(driver_.memset_d8_async(address(destination), byte, bytes, stream.handle), "cuMemsetD8Async");
}

void CudaDevice::fill_rows(void* destination, u8 byte, size_t bytes, i64 rows, i64 pitch, Stream stream) {
  if (bytes == 0 || rows <= 0) return;
  // The driver takes rows that do not overlap
  if (pitch < i64(bytes)) return Device::fill_rows(destination, byte, bytes, rows, pitch, stream);
  const ContextGuard guard(*this);
  check(driver_.memset_d2d8_async(address(destination), size_t(pitch), byte, bytes, size_t(rows), stream.handle), "cuMemsetD2D8Async");
}

i64 CudaDevice::free_memory() {
  const ContextGuard guard(*this);
  size_t free = 0, total = 0;
  check(driver_.mem_get_info(&free, &total), "cuMemGetInfo");
  return i64(free);
}

// ------------------------------------------------------------------------------------------------ streams and events

Stream CudaDevice::create_stream() {
  const ContextGuard guard(*this);
  Stream stream;
  check(driver_.stream_create(&stream.handle, cuda::kStreamNonBlocking), "cuStreamCreate");
  return stream;
}

void CudaDevice::destroy(Stream stream) {
  if (!stream.handle) return;
  const ContextGuard guard(*this);
  check(driver_.stream_destroy(stream.handle), "cuStreamDestroy");
}

void CudaDevice::synchronize(Stream stream) {
  const ContextGuard guard(*this);
  check(driver_.stream_synchronize(stream.handle), "cuStreamSynchronize");
}

void CudaDevice::synchronize_all() {
  const ContextGuard guard(*this);
  check(driver_.ctx_synchronize(), "cuCtxSynchronize");
}

bool CudaDevice::capturing(Stream stream) {
  const ContextGuard guard(*this);
  cuda::CaptureStatus status = cuda::kCaptureNone;
  const cuda::Result result = driver_.stream_is_capturing(stream.handle, &status);
  if (result == cuda::kErrorStreamCaptureImplicit) return true;
  check(result, "cuStreamIsCapturing");
  return status != cuda::kCaptureNone;
}

Event CudaDevice::create_event() {
  const ContextGuard guard(*this);
  Event event;
  check(driver_.event_create(&event.handle, cuda::kEventDefault), "cuEventCreate");
  return event;
}

void CudaDevice::destroy(Event event) {
  if (!event.handle) return;
  const ContextGuard guard(*this);
  check(driver_.event_destroy(event.handle), "cuEventDestroy");
}

void CudaDevice::record(Event event, Stream stream) {
  const ContextGuard guard(*this);
  check(driver_.event_record(event.handle, stream.handle), "cuEventRecord");
}

void CudaDevice::wait(Stream stream, Event event) {
  const ContextGuard guard(*this);
  check(driver_.stream_wait_event(stream.handle, event.handle, 0), "cuStreamWaitEvent");
}

double CudaDevice::elapsed_us(Event from, Event to) {
  const ContextGuard guard(*this);
  check(driver_.event_synchronize(to.handle), "cuEventSynchronize");
  float milliseconds = 0;
  check(driver_.event_elapsed_time(&milliseconds, from.handle, to.handle), "cuEventElapsedTime");
  return 1000.0 * milliseconds;
}

// -------------------------------------------------------------------------------------------------------------- graphs

void CudaDevice::begin_capture(Stream stream) {
  const ContextGuard guard(*this);
  if (!stream.handle) throw Error(ErrorKind::device, "the default stream cannot be captured: make one with create_stream()");
  check(driver_.stream_begin_capture(stream.handle, cuda::kCaptureThreadLocal), "cuStreamBeginCapture");
}

void* CudaDevice::end_capture(Stream stream) {
  const ContextGuard guard(*this);
  cuda::Graph graph = nullptr;
  check(driver_.stream_end_capture(stream.handle, &graph), "cuStreamEndCapture");
  cuda::GraphExec executable = nullptr;
  const cuda::Result result = driver_.graph_instantiate(&executable, graph, 0);
  driver_.graph_destroy(graph);
  check(result, "cuGraphInstantiate");
  return executable;
}

void CudaDevice::replay(void* graph, Stream stream) {
  const ContextGuard guard(*this);
  check(driver_.graph_launch(static_cast<cuda::GraphExec>(graph), stream.handle), "cuGraphLaunch");
}

void CudaDevice::destroy_graph(void* graph) {
  if (!graph) return;
  const ContextGuard guard(*this);
  check(driver_.graph_exec_destroy(static_cast<cuda::GraphExec>(graph)), "cuGraphExecDestroy");
}

}  // namespace quern
