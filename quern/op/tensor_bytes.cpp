// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/tensor_bytes.h"

#include <cstring>
#include <new>
#include <string>

#include "quern/base/error.h"

namespace quern {

namespace {

std::unique_ptr<char[]> host_memory(i64 bytes) {
  char* memory = new (std::nothrow) char[size_t(max_of<i64>(bytes, 1))];
  if (!memory) throw Error(ErrorKind::device, "the host has no " + std::to_string(bytes) + " bytes for a copy of a tensor");
  return std::unique_ptr<char[]>(memory);
}

/// One innermost row.
void copy_row(char* into, i64 into_stride, const char* from, i64 from_stride, i64 n, int size) {
  if (into_stride == 1 && from_stride == 1) {
    std::memcpy(into, from, size_t(n * size));
    return;
  }
  for (i64 i = 0; i < n; ++i) std::memcpy(into + i * into_stride * size, from + i * from_stride * size, size_t(size));
}

int outermost(const TensorView& view) {
  int widest = -1;
  for (int d = 0; d < view.rank; ++d)
    if (view.shape[d] > 1 && (widest < 0 || view.strides[d] > view.strides[widest])) widest = d;
  return widest;
}

/// Copies the span of the view at once where most of it is elements, else slice by slice: the cache of one layer may lie
/// spread over that of all layers.
void fetch(const TensorView& view, const TensorView& into, Device& device, Stream stream) {
  constexpr i64 kSparse = 4, kLittle = 1 << 20;
  const i64 size = size_of(view.dtype), span = view.extent();
  const int split = outermost(view);
  if (span <= kSparse * view.numel() || span * size <= kLittle || split < 0) {
    const std::unique_ptr<char[]> staging = host_memory(span * size);
    device.copy(staging.get(), view.data, size_t(span * size), stream);
    device.synchronize(stream);
    TensorView copy = view;
    copy.data = staging.get();
    copy_elements(copy, into);
    return;
  }
  for (i64 i = 0; i < view.shape[split]; ++i) fetch(view.slice(split, i, i + 1), into.slice(split, i, i + 1), device, stream);
}

}  // namespace

void copy_elements(const TensorView& from, const TensorView& into) {
  if (from.numel() == 0) return;
  const int last = from.rank - 1;
  i64 index[kMaxRank] = {};
  for (;;) {
    copy_row(static_cast<char*>(into.at(index)), into.strides[last], static_cast<const char*>(from.at(index)), from.strides[last],
             from.shape[last], size_of(from.dtype));
    int d = last - 1;
    while (d >= 0 && ++index[d] == from.shape[d]) index[d--] = 0;
    if (d < 0) return;
  }
}

std::unique_ptr<char[]> packed_elements(const TensorView& view, Device& device, Stream stream) {
  std::unique_ptr<char[]> packed = host_memory(packed_bytes(view));
  if (packed_bytes(view) == 0) return packed;
  const TensorView into(packed.get(), view.dtype, view.shape, view.rank);
  if (view.device.type == DeviceType::cpu) {
    device.synchronize(stream);
    copy_elements(view, into);
  } else {
    fetch(view, into, device, stream);
  }
  return packed;
}

}  // namespace quern
