// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/device/cuda_abi.h"

#include <gtest/gtest.h>

#include "quern/device/device.h"
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

#if __has_include(<cuda.h>)
namespace quern::cuda {
namespace {

TEST(device_cuda_abi, structs_are_laid_out_as_in_cuda_h) {
  EXPECT_EQ(sizeof(LaunchAttribute), sizeof(CUlaunchAttribute));
  EXPECT_EQ(offsetof(LaunchAttribute, value), offsetof(CUlaunchAttribute, value));
  EXPECT_EQ(sizeof(LaunchAttribute::value), sizeof(CUlaunchAttributeValue));
  EXPECT_EQ(sizeof(CUlaunchAttributeValue::clusterDim), 12u);
  EXPECT_EQ(sizeof(LaunchConfig), sizeof(CUlaunchConfig));
  EXPECT_EQ(offsetof(LaunchConfig, block), offsetof(CUlaunchConfig, blockDimX));
  EXPECT_EQ(offsetof(LaunchConfig, shared_bytes), offsetof(CUlaunchConfig, sharedMemBytes));
  EXPECT_EQ(offsetof(LaunchConfig, stream), offsetof(CUlaunchConfig, hStream));
  EXPECT_EQ(offsetof(LaunchConfig, attributes), offsetof(CUlaunchConfig, attrs));
  EXPECT_EQ(offsetof(LaunchConfig, attribute_count), offsetof(CUlaunchConfig, numAttrs));
  EXPECT_EQ(sizeof(DevicePointer), sizeof(CUdeviceptr));
  EXPECT_EQ(sizeof(Device), sizeof(CUdevice));
  EXPECT_EQ(sizeof(Result), sizeof(CUresult));
  EXPECT_EQ(sizeof(TensorMap), sizeof(CUtensorMap));
}

TEST(device_cuda_abi, errors_and_attributes_have_the_values_of_cuda_h) {
  EXPECT_EQ(int(kSuccess), int(CUDA_SUCCESS));
  EXPECT_EQ(int(kErrorInvalidValue), int(CUDA_ERROR_INVALID_VALUE));
  EXPECT_EQ(int(kErrorStubLibrary), int(CUDA_ERROR_STUB_LIBRARY));
  EXPECT_EQ(int(kErrorNoDevice), int(CUDA_ERROR_NO_DEVICE));
  EXPECT_EQ(int(kErrorStreamCaptureImplicit), int(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT));
  EXPECT_EQ(int(kErrorEccUncorrectable), int(CUDA_ERROR_ECC_UNCORRECTABLE));
  EXPECT_EQ(int(kErrorIllegalAddress), int(CUDA_ERROR_ILLEGAL_ADDRESS));
  EXPECT_EQ(int(kErrorLaunchTimeout), int(CUDA_ERROR_LAUNCH_TIMEOUT));
  EXPECT_EQ(int(kErrorAssert), int(CUDA_ERROR_ASSERT));
  EXPECT_EQ(int(kErrorInvalidImage), int(CUDA_ERROR_INVALID_IMAGE));
  EXPECT_EQ(int(kErrorNoBinaryForGpu), int(CUDA_ERROR_NO_BINARY_FOR_GPU));
  EXPECT_EQ(int(kErrorUnsupportedPtxVersion), int(CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
  EXPECT_EQ(int(kErrorInvalidSource), int(CUDA_ERROR_INVALID_SOURCE));
  EXPECT_EQ(int(kErrorNotFound), int(CUDA_ERROR_NOT_FOUND));
  EXPECT_EQ(int(kErrorHardwareStackError), int(CUDA_ERROR_HARDWARE_STACK_ERROR));
  EXPECT_EQ(int(kErrorIllegalInstruction), int(CUDA_ERROR_ILLEGAL_INSTRUCTION));
  EXPECT_EQ(int(kErrorMisalignedAddress), int(CUDA_ERROR_MISALIGNED_ADDRESS));
  EXPECT_EQ(int(kErrorInvalidAddressSpace), int(CUDA_ERROR_INVALID_ADDRESS_SPACE));
  EXPECT_EQ(int(kErrorInvalidPc), int(CUDA_ERROR_INVALID_PC));
  EXPECT_EQ(int(kErrorLaunchFailed), int(CUDA_ERROR_LAUNCH_FAILED));
  EXPECT_EQ(int(kMultiprocessorCount), int(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  EXPECT_EQ(int(kL2CacheSize), int(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  EXPECT_EQ(int(kMaxThreadsPerMultiprocessor), int(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  EXPECT_EQ(int(kComputeCapabilityMajor), int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  EXPECT_EQ(int(kComputeCapabilityMinor), int(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  EXPECT_EQ(int(kMaxSharedMemoryPerMultiprocessor), int(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  EXPECT_EQ(int(kMaxSharedMemoryPerBlockOptin), int(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  EXPECT_EQ(int(kMemoryPoolsSupported), int(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED));
  EXPECT_EQ(int(kFunctionSharedBytes), int(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  EXPECT_EQ(int(kFunctionLocalBytes), int(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  EXPECT_EQ(int(kFunctionRegisters), int(CU_FUNC_ATTRIBUTE_NUM_REGS));
  EXPECT_EQ(int(kFunctionMaxDynamicSharedBytes), int(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  EXPECT_EQ(int(kFunctionNonPortableClusterAllowed), int(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED));
  EXPECT_EQ(int(kPoolReleaseThreshold), int(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
  EXPECT_EQ(int(kPointerMemoryType), int(CU_POINTER_ATTRIBUTE_MEMORY_TYPE));
  EXPECT_EQ(int(kMemoryHost), int(CU_MEMORYTYPE_HOST));
  EXPECT_EQ(int(kMemoryDevice), int(CU_MEMORYTYPE_DEVICE));
}

TEST(device_cuda_abi, stream_and_launch_values_are_those_of_cuda_h) {
  EXPECT_EQ(int(kStreamNonBlocking), int(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(int(kEventDefault), int(CU_EVENT_DEFAULT));
  EXPECT_EQ(int(kCaptureGlobal), int(CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(int(kCaptureThreadLocal), int(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(int(kCaptureRelaxed), int(CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_EQ(int(kCaptureNone), int(CU_STREAM_CAPTURE_STATUS_NONE));
  EXPECT_EQ(int(kCaptureActive), int(CU_STREAM_CAPTURE_STATUS_ACTIVE));
  EXPECT_EQ(int(kCaptureInvalidated), int(CU_STREAM_CAPTURE_STATUS_INVALIDATED));
  EXPECT_EQ(int(kLegacyStream), int(CU_GET_PROC_ADDRESS_LEGACY_STREAM));
  EXPECT_EQ(int(kLaunchClusterDimension), int(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
  EXPECT_EQ(int(kLaunchProgrammaticStreamSerialization), int(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
}

TEST(device_cuda_abi, tensor_map_values_are_those_of_cuda_h) {
  EXPECT_EQ(int(kTensorU8), int(CU_TENSOR_MAP_DATA_TYPE_UINT8));
  EXPECT_EQ(int(kTensorI32), int(CU_TENSOR_MAP_DATA_TYPE_INT32));
  EXPECT_EQ(int(kTensorI64), int(CU_TENSOR_MAP_DATA_TYPE_INT64));
  EXPECT_EQ(int(kTensorF16), int(CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
  EXPECT_EQ(int(kTensorF32), int(CU_TENSOR_MAP_DATA_TYPE_FLOAT32));
  EXPECT_EQ(int(kTensorF64), int(CU_TENSOR_MAP_DATA_TYPE_FLOAT64));
  EXPECT_EQ(int(kTensorBf16), int(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
  EXPECT_EQ(int(kInterleaveNone), int(CU_TENSOR_MAP_INTERLEAVE_NONE));
  EXPECT_EQ(int(kSwizzleNone), int(CU_TENSOR_MAP_SWIZZLE_NONE));
  EXPECT_EQ(int(kSwizzle32), int(CU_TENSOR_MAP_SWIZZLE_32B));
  EXPECT_EQ(int(kSwizzle64), int(CU_TENSOR_MAP_SWIZZLE_64B));
  EXPECT_EQ(int(kSwizzle128), int(CU_TENSOR_MAP_SWIZZLE_128B));
  EXPECT_EQ(int(kPromoteL2_128), int(CU_TENSOR_MAP_L2_PROMOTION_L2_128B));
  EXPECT_EQ(int(kPromoteL2_256), int(CU_TENSOR_MAP_L2_PROMOTION_L2_256B));
  EXPECT_EQ(int(kFillZeros), int(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

}  // namespace
}  // namespace quern::cuda
#else
TEST(device_cuda_abi, agrees_with_cuda_h) { GTEST_SKIP() << "needs CUDA's headers"; }
#endif
