// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// CudaDevice's kernels: load, launch, tensor maps.
#include <memory>

#include "quern/base/error.h"
#include "quern/device/cuda_device.h"
#include "quern/device/tensor_map.h"

namespace quern {
namespace {

/// What Function::handle points at.
struct LoadedKernel {
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  std::string entry;
};

/// Lets this thread load code while a stream captures: without it cuModuleLoadData invalidates the capture.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const cuda::Driver& driver) : driver_(driver) { driver_.thread_exchange_stream_capture_mode(&mode_); }
  ~RelaxedCapture() { driver_.thread_exchange_stream_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const cuda::Driver& driver_;
  cuda::CaptureMode mode_ = cuda::kCaptureRelaxed;
};

std::string launch_text(const std::string& entry, const LaunchConfig& c, size_t params_bytes) {
  return "cuLaunchKernelEx of " + entry + " (grid " + std::to_string(c.grid[0]) + "x" + std::to_string(c.grid[1]) + "x" +
         std::to_string(c.grid[2]) + ", cluster " + to_string(c.cluster) + ", " + std::to_string(c.threads) + " threads, " +
         std::to_string(c.smem) + " B of shared memory, " + std::to_string(params_bytes) + " B of parameters)";
}

}  // namespace

Function CudaDevice::load(ImageKind kind, std::span<const char> image, const std::string& image_path, const std::string& entry, int smem) {
  if (kind != ImageKind::cubin) throw Error(ErrorKind::internal, "a GPU was given a kernel of the emulated device (" + image_path + ")");
  const ContextGuard guard(*this);
  const RelaxedCapture relaxed(driver_);
  auto kernel = std::make_unique<LoadedKernel>();
  kernel->entry = entry;
  cuda::Result result = driver_.module_load_data(&kernel->module, image.data());
  if (result != cuda::kSuccess) fail(result, "cuModuleLoadData of " + entry);

  const char* call = "cuModuleGetFunction";
  result = driver_.module_get_function(&kernel->function, kernel->module, entry.c_str());
  // Without it a block gets 48 KB less its static shared memory.
  if (result == cuda::kSuccess && smem > 0) {
    call = "cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)";
    result = driver_.func_set_attribute(kernel->function, cuda::kFunctionMaxDynamicSharedBytes, smem);
  }
  if (result != cuda::kSuccess) {
    driver_.module_unload(kernel->module);
    fail(result, std::string(call) + " of " + entry + " (" + std::to_string(smem) + " B of shared memory)");
  }
  // Clusters of 16 blocks need it. Where it is refused, launches of such clusters say so; all others go on.
  if (info_.arch.number >= 90) driver_.func_set_attribute(kernel->function, cuda::kFunctionNonPortableClusterAllowed, 1);
  return {kernel.release()};
}

void CudaDevice::unload(Function function) {
  if (!function.handle) return;
  const ContextGuard guard(*this);
  const std::unique_ptr<LoadedKernel> kernel(static_cast<LoadedKernel*>(function.handle));
  if (const cuda::Result result = driver_.module_unload(kernel->module); result != cuda::kSuccess)
    fail(result, "cuModuleUnload of " + kernel->entry);
}

void CudaDevice::launch(Function function, const LaunchConfig& config, const void* params, size_t params_bytes, Stream stream) {
  const ContextGuard guard(*this);
  const LoadedKernel& kernel = *static_cast<const LoadedKernel*>(function.handle);
  cuda::LaunchAttribute attributes[2];
  u32 count = 0;
  if (config.cluster.blocks() > 1) {
    attributes[count].id = cuda::kLaunchClusterDimension;
    attributes[count++].value.cluster = {config.cluster.x, config.cluster.y, config.cluster.z};
  }
  if (config.pdl && info_.arch.number >= 90) {  // the attribute exists from sm_90 on
    attributes[count].id = cuda::kLaunchProgrammaticStreamSerialization;
    attributes[count++].value.programmatic_stream_serialization = 1;
  }
  const cuda::LaunchConfig launch = {.grid = {config.grid[0], config.grid[1], config.grid[2]},
                                     .block = {config.threads, 1, 1},
                                     .shared_bytes = config.smem,
                                     .stream = stream.handle,
                                     .attributes = count ? attributes : nullptr,
                                     .attribute_count = count};
  // The kernel's one argument is the Params struct; the driver copies as many bytes as the kernel declares.
  void* arguments[] = {const_cast<void*>(params)};
  const cuda::Result result = driver_.launch_kernel_ex(&launch, kernel.function, arguments, nullptr);
  if (result != cuda::kSuccess) [[unlikely]]
    fail(result, launch_text(kernel.entry, config, params_bytes));
}

// ----------------------------------------------------------------------------------------------------------- tensor
// maps

static cuda::TensorMapDataType tensor_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return cuda::kTensorF32;
    case DType::f16: return cuda::kTensorF16;
    case DType::bf16: return cuda::kTensorBf16;
    case DType::f64: return cuda::kTensorF64;
    case DType::i32: return cuda::kTensorI32;
    case DType::i64: return cuda::kTensorI64;
    default: return cuda::kTensorU8;  // e4m3, e5m2, u8, i8: TMA moves bytes
  }
}

TensorMap CudaDevice::make_tensor_map(const TensorMapSpec& spec) {
  static_assert(int(Swizzle::none) == cuda::kSwizzleNone && int(Swizzle::b32) == cuda::kSwizzle32 &&
                int(Swizzle::b64) == cuda::kSwizzle64 && int(Swizzle::b128) == cuda::kSwizzle128);
  if (spec.rank < 1 || spec.rank > 5) throw Error(ErrorKind::internal, "a tensor map of rank " + std::to_string(spec.rank));
  const ContextGuard guard(*this);  // without one the driver answers CUDA_ERROR_INVALID_CONTEXT
  alignas(128) TensorMap map;       // CUDA 13's own type asks for 128
  u64 shape[5], strides[4];
  u32 box[5], steps[5];
  for (int d = 0; d < spec.rank; ++d) {
    shape[d] = u64(spec.shape[d]);
    box[d] = u32(spec.box[d]);
    steps[d] = 1;
    if (d < spec.rank - 1) strides[d] = u64(spec.stride_bytes[d]);
  }
  // By default 128 B, the row of a box: with 256 B a stream of weights took 2 to 6 % longer on an H200, bf16 products at the power limit as
  // long or 1 % longer.
  const cuda::Result result = driver_.tensor_map_encode_tiled(
      &map, tensor_type(spec.dtype), u32(spec.rank), spec.base, shape, strides, box, steps, cuda::kInterleaveNone,
      cuda::TensorMapSwizzle(int(spec.swizzle)), spec.fetched > 128 ? cuda::kPromoteL2_256 : cuda::kPromoteL2_128, cuda::kFillZeros);
  if (result != cuda::kSuccess) [[unlikely]] {
    const char* problem = tensor_map_problem(spec);
    fail(result,
         "cuTensorMapEncodeTiled of " + tensor_map_text(spec) + ": " + (problem ? problem : "no rule that quern knows is broken") + "; it");
  }
  return map;
}

}  // namespace quern
