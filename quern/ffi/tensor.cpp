// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ffi/tensor.h"

#include <tvm/ffi/dtype.h>

#include <vector>

namespace quern::ffi {

namespace {

struct DTypePair {
  DType ours;
  DLDataType theirs;
};
constexpr DTypePair kDTypes[] = {
    {DType::f32, {kDLFloat, 32, 1}},       {DType::f16, {kDLFloat, 16, 1}},
    {DType::bf16, {kDLBfloat, 16, 1}},     {DType::e4m3, {kDLFloat8_e4m3fn, 8, 1}},
    {DType::e5m2, {kDLFloat8_e5m2, 8, 1}}, {DType::i32, {kDLInt, 32, 1}},
    {DType::i64, {kDLInt, 64, 1}},         {DType::u8, {kDLUInt, 8, 1}},
    {DType::f64, {kDLFloat, 64, 1}},       {DType::i8, {kDLInt, 8, 1}},
};
static_assert(std::size(kDTypes) == kDTypeCount);

/// quern's name of a dtype. Frameworks have several e4m3: which one is meant is said by their name.
std::string shown(DType dtype) {
  for (const DTypePair& pair : kDTypes)
    if (pair.ours == dtype && (dtype == DType::e4m3 || dtype == DType::e5m2))
      return std::string(name(dtype)) + " (" + std::string(tvm::ffi::DLDataTypeToString(pair.theirs)) + ")";
  return name(dtype);
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_dtype(const DLDataType& dtype, const Op& op, const TensorDef& def) {
  std::vector<std::string> known;
  if (def.like >= 0) known.push_back("that of `" + op.tensors[size_t(def.like)].name + "`");
  for (const DType allowed : def.dtypes) known.push_back(shown(allowed));
  std::string expected;
  for (size_t i = 0; i < known.size(); ++i) expected += (i == 0 ? "" : i + 1 == known.size() ? " or " : ", ") + known[i];
  std::string got = dtype.code == kDLComplex
                        ? "complex" + std::to_string(dtype.bits)
                        : "of DLPack's type " + std::to_string(int(dtype.code)) + " with " + std::to_string(dtype.bits) + " bits";
  try {
    got = tvm::ffi::DLDataTypeToString(dtype);
  } catch (const tvm::ffi::Error&) {  // it has no word for complex numbers
  }
  throw Error(ErrorKind::type, op.id, def.name, "is " + got, expected);
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_rank(int rank, const Op& op, const TensorDef& def) {
  throw Error(ErrorKind::value, op.id, def.name, "has " + std::to_string(rank) + " dims",
              def.any_shape() ? def.extents_text : std::to_string(def.rank) + " [" + def.extents_text + "]");
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_place(const DLDevice& device, const Op& op, const TensorDef& def) {
  throw Error(ErrorKind::value, op.id, def.name, "is on a device of DLPack's type " + std::to_string(int(device.device_type)),
              "a CUDA GPU or the host");
}

DType dtype_of(const DLDataType& dtype, const Op& op, const TensorDef& def) {
  for (const DTypePair& pair : kDTypes)
    if (pair.theirs.code == dtype.code && pair.theirs.bits == dtype.bits && pair.theirs.lanes == dtype.lanes) return pair.ours;
  fail_dtype(dtype, op, def);
}

DeviceId place_of(const DLDevice& device, const Op& op, const TensorDef& def) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost: return {};
    case kDLCUDA:
    case kDLCUDAManaged: return {DeviceType::cuda, device.device_id};
    default: fail_place(device, op, def);
  }
}

/// Memory that nobody frees here.
struct Borrowed {
  void* data;
  void AllocData(DLTensor* tensor) const { tensor->data = data; }
  void FreeData(DLTensor*) const {}
};

}  // namespace

TensorView view_of(const DLTensor& tensor, const Op& op, const TensorDef& def) {
  if (tensor.ndim < 1 || tensor.ndim > kMaxRank) fail_rank(tensor.ndim, op, def);
  TensorView view;
  view.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  view.dtype = dtype_of(tensor.dtype, op, def);
  view.rank = tensor.ndim;
  view.device = place_of(tensor.device, op, def);
  i64 dense = 1;
  for (int d = tensor.ndim - 1; d >= 0; --d) {
    view.shape[d] = tensor.shape[d];
    view.strides[d] = tensor.strides ? tensor.strides[d] : dense;
    if (!tensor.strides) dense *= tensor.shape[d];
  }
  return view;
}

static DLDataType dlpack_dtype(DType dtype) {
  for (const DTypePair& pair : kDTypes)
    if (pair.ours == dtype) return pair.theirs;
  throw Error(ErrorKind::internal, "a dtype without a DLPack code");
}

tvm::ffi::Tensor borrowed_tensor(void* data, const tvm::ffi::String& dtype, const tvm::ffi::Shape& shape, const tvm::ffi::Shape& strides,
                                 DLDevice device) {
  return tvm::ffi::Tensor::FromNDAllocStrided(Borrowed{data}, shape, strides, dlpack_dtype(dtype_from_name(dtype)), device);
}

}  // namespace quern::ffi
