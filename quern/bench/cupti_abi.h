// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The part of CUPTI's ABI that quern uses; cupti_abi_test.cpp compares it with the headers where a toolkit is present.
#pragma once
#include <cstddef>
#include <cstring>

#include "quern/kit/abi.h"

namespace quern::cupti {

using Result = i32;
constexpr Result kSuccess = 0;
constexpr Result kErrorMaxLimitReached = 12;

enum ActivityKind : i32 { kKernel = 3, kConcurrentKernel = 10 };
enum FlushFlag : u32 { kFlushForced = 1 };

using BufferRequested = void (*)(u8** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(void* context, u32 stream, u8* buffer, size_t size, size_t valid_bytes);

/// Where the fields lie in a kernel record. The record is packed and grows at its end: these offsets hold from
/// CUpti_ActivityKernel5 (CUDA 11) to CUpti_ActivityKernel10 (CUDA 13), so the record's version need not be known.
constexpr size_t kKindOffset = 0, kStartOffset = 16, kEndOffset = 24, kNameOffset = 104;

template <class T>
T field(const void* record, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(record) + offset, sizeof value);
  return value;
}

}  // namespace quern::cupti
