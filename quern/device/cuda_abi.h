// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The part of the CUDA driver's ABI that quern uses, declared here so that no CUDA header is needed to build.
// cuda_abi_test.cpp compares every size, offset and value with cuda.h where a toolkit is present.
#pragma once
#include <cstddef>

#include "quern/kit/abi.h"

namespace quern::cuda {

using Result = i32;
using Device = i32;
using DevicePointer = u64;
using Context = struct ContextOpaque*;
using Module = struct ModuleOpaque*;
using Function = struct FunctionOpaque*;
using Graph = struct GraphOpaque*;
using GraphExec = struct GraphExecOpaque*;
using MemPool = struct MemPoolOpaque*;
using Stream = void*;  ///< what quern::Stream::handle holds
using Event = void*;

constexpr Result kSuccess = 0;
constexpr Result kErrorInvalidValue = 1;
constexpr Result kErrorStubLibrary = 34;
constexpr Result kErrorNoDevice = 100;
constexpr Result kErrorStreamCaptureImplicit = 906;
// Of an image: for another GPU or driver, damaged, or without the kernel.
constexpr Result kErrorInvalidImage = 200;
constexpr Result kErrorNoBinaryForGpu = 209;
constexpr Result kErrorUnsupportedPtxVersion = 222;
constexpr Result kErrorInvalidSource = 300;
constexpr Result kErrorNotFound = 500;
// Of a kernel that ran before the call that returns them; the context is lost.
constexpr Result kErrorEccUncorrectable = 214;
constexpr Result kErrorIllegalAddress = 700;
constexpr Result kErrorLaunchTimeout = 702;
constexpr Result kErrorAssert = 710;
constexpr Result kErrorHardwareStackError = 714;
constexpr Result kErrorIllegalInstruction = 715;
constexpr Result kErrorMisalignedAddress = 716;
constexpr Result kErrorInvalidAddressSpace = 717;
constexpr Result kErrorInvalidPc = 718;
constexpr Result kErrorLaunchFailed = 719;

enum DeviceAttribute : i32 {
  kMultiprocessorCount = 16,
  kL2CacheSize = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxSharedMemoryPerBlockOptin = 97,
  kMemoryPoolsSupported = 115,
};

enum FunctionAttribute : i32 {
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicSharedBytes = 8,
  kFunctionNonPortableClusterAllowed = 14,
};

enum MemPoolAttribute : i32 { kPoolReleaseThreshold = 4 };
enum PointerAttribute : i32 { kPointerMemoryType = 2 };
enum MemoryType : u32 { kMemoryHost = 1, kMemoryDevice = 2 };
enum StreamFlags : u32 { kStreamNonBlocking = 1 };
enum EventFlags : u32 { kEventDefault = 0 };
enum CaptureMode : i32 { kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2 };
enum CaptureStatus : i32 { kCaptureNone = 0, kCaptureActive = 1, kCaptureInvalidated = 2 };
enum ProcAddressFlags : u64 { kLegacyStream = 1 };

enum LaunchAttributeId : u32 { kLaunchClusterDimension = 4, kLaunchProgrammaticStreamSerialization = 6 };

/// CUlaunchAttribute.
struct LaunchAttribute {
  u32 id;
  char pad[4];
  union {
    char bytes[64];
    struct {
      u32 x, y, z;
    } cluster;
    i32 programmatic_stream_serialization;
  } value;
};

/// CUlaunchConfig.
struct LaunchConfig {
  u32 grid[3];
  u32 block[3];
  u32 shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  u32 attribute_count;
};

enum TensorMapDataType : i32 {
  kTensorU8 = 0,
  kTensorI32 = 3,
  kTensorI64 = 5,
  kTensorF16 = 6,
  kTensorF32 = 7,
  kTensorF64 = 8,
  kTensorBf16 = 9,
};
enum TensorMapInterleave : i32 { kInterleaveNone = 0 };
enum TensorMapSwizzle : i32 { kSwizzleNone = 0, kSwizzle32 = 1, kSwizzle64 = 2, kSwizzle128 = 3 };
enum TensorMapPromotion : i32 { kPromoteL2_128 = 2, kPromoteL2_256 = 3 };
enum TensorMapFill : i32 { kFillZeros = 0 };

}  // namespace quern::cuda
