// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/case_args.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "quern/base/host_dtype.h"
#include "quern/op/variants.h"
#include "quern/testing/fill.h"
#include "quern/testing/parallel.h"

namespace quern::testing {

ArgsStorage::ArgsStorage(const Op& op) : bytes_(ceil_div(op.args_bytes, sizeof(Block))) { op.construct(get()); }
ArgsStorage::ArgsStorage(const ArgsStorage& other) = default;

DType dtype_of(const Op& op, size_t i, const Case& which) {
  const TensorDef& t = op.tensors[i];
  if (const auto at = which.find(t.name + ".dtype"); at != which.end()) return DType(int(at->second));
  if (t.like >= 0) return dtype_of(op, size_t(t.like), which);
  return t.dtypes.empty() ? DType::f32 : t.dtypes[0];
}

/// The tensor in whose memory tensor i lies: itself, or the input that it takes the place of.
static size_t holder_of(const Op& op, size_t i, const Case& which) {
  const TensorDef& t = op.tensors[i];
  return t.may_be >= 0 && value_or(which, t.name + ".in_place", 0) != 0 ? size_t(t.may_be) : i;
}

i64 extent_of(const Op& op, const Extent& e, const Case& which) {
  i64 values[kMaxAxes + kMaxAttrs] = {};
  for (size_t slot = 0; slot < op.axes.size(); ++slot) {
    if (!op.uses(e, op.axes[slot])) continue;
    const char* word = name(op.axes[slot]);
    const auto at = which.find(word);
    if (at == which.end()) throw Error(ErrorKind::value, op.id, word, "is not given", "a size (the op's cases do not state one)");
    values[slot] = i64(at->second);
  }
  for (size_t i = 0; e.formula >= 0 && i < op.attrs.size(); ++i) {
    const auto at = which.find(op.attrs[i].name);
    values[size_t(kMaxAxes) + i] = (at == which.end() ? op.attrs[i].standard : at->second).integer();
  }
  try {
    return extent_of(op, e, values);
  } catch (const Error& error) { throw error.in_call(op.id); }
}

/// Rank, shape and strides; absent when the case says so.
static TensorView view_of(const Op& op, size_t i, const Case& which) {
  const TensorDef& t = op.tensors[holder_of(op, i, which)];
  TensorView v;
  if (t.optional && value_or(which, t.name + ".present", 0) == 0) return v;
  v.dtype = dtype_of(op, i, which);
  v.rank = t.rank;
  for (int d = 0; d < t.rank; ++d) { v.shape[d] = extent_of(op, t.extents[d], which); }
  int order[kMaxRank] = {0, 1, 2, 3, 4};  // outermost in memory first
  if (v.rank > 2 && value_or(which, t.name + ".swap", 0) != 0) std::swap(order[v.rank - 3], order[v.rank - 2]);
  if (v.rank > 1 && value_or(which, t.name + ".transposed", 0) != 0) std::swap(order[v.rank - 2], order[v.rank - 1]);
  i64 stride = 1;
  for (int at = v.rank - 1; at >= 0; --at) {
    v.strides[order[at]] = stride;
    stride *= max_of<i64>(1, v.shape[order[at]]);
    if (at == v.rank - 1 && v.rank > 1) stride += i64(value_or(which, t.name + ".pad", 0));
  }
  return v;
}

/// Errors of attributes name their op.
static void set_attr(const Op& op, const AttrDef& attr, void* args, const Scalar& value) {
  try {
    quern::set_attr(attr, args, value);
  } catch (const Error& e) { throw e.in_call(op.id); }
}

static void set_attrs(const Op& op, const Case& which, void* args) {
  for (const AttrDef& a : op.attrs)
    if (const auto at = which.find(a.name); at != which.end()) set_attr(op, a, args, at->second);
}

static i64 shift_bytes(const Op& op, size_t i, const Case& which, DType dtype) {
  return i64(value_or(which, op.tensors[i].name + ".shift", 0)) * size_of(dtype);
}

ArgsStorage fake_args(const Op& op, const Case& which, DeviceId device) {
  ArgsStorage storage(op);
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    TensorView v = view_of(op, i, which);
    v.device = device;
    const size_t holder = holder_of(op, i, which);
    if (v.present()) v.data = reinterpret_cast<void*>((holder + 1) << 58 | u64(shift_bytes(op, holder, which, v.dtype)));
    op.tensor(storage.get(), i) = v;
  }
  set_attrs(op, which, storage.get());
  return storage;
}

RunOptions options_of(const Op& op, const Case& which) {
  RunOptions options;
  options.batch_invariant = value_or(which, "batch_invariant", 0) != 0;
  options.pdl = value_or(which, "pdl", 0) != 0;
  if (const auto at = which.find("variant"); at != which.end()) {
    options.variant = variant_name(op, at->second);
    if (!options.variant)
      throw Error(ErrorKind::value, op.id, "variant", "is " + std::to_string(i64(at->second)),
                  "an index below " + std::to_string(op.variants.size()));
  }
  return options;
}

double operand_bytes(const Op& op, const void* args) {
  double bytes = 0;
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorView& v = op.tensor(args, i);
    if (v.present()) bytes += double(v.numel()) * size_of(v.dtype);
  }
  return bytes;
}

void each_row(const TensorView& view, const std::function<void(char* row, const i64* lead)>& visit) {
  if (!view.present() || view.numel() == 0) return;
  i64 lead[kMaxRank] = {};
  const int dims = view.rank - 1;
  for (;;) {
    visit(static_cast<char*>(view.at(lead)), lead);
    int d = dims - 1;
    while (d >= 0 && ++lead[d] == view.shape[d]) lead[d--] = 0;
    if (d < 0) return;
  }
}

CaseArgs::CaseArgs(const Op& op, const Case& given, u64 seed, Number number, u64 redraw)
    : CaseArgs(op, complete(op, given), derived(op, given), seed, number, redraw) {}

CaseArgs::CaseArgs(const Op& op, const Case& given, const Case& which, u64 seed, Number number, u64 redraw)
    : op_(&op), given_(given), which_(which), seed_(seed), args_(op) {
  set_attrs(op, which_, args());
  Random random(seed);
  buffers_.resize(op.tensors.size());
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    TensorView& v = op.tensor(args(), i);
    v = view_of(op, i, which_);
    if (!v.present()) continue;
    if (const size_t holder = holder_of(op, i, which_); holder != i) {
      v.data = op.tensor(args(), holder).data;
      continue;
    }
    for (int d = 0; d < v.rank; ++d)
      if (v.shape[d] < 0) throw Error(ErrorKind::value, op.id, op.tensors[i].name, "would have shape " + shape_string(v), "extents >= 0");
    Buffer& b = buffers_[i];
    b.offset = kGuardBytes + shift_bytes(op, i, which_, v.dtype);
    b.size = round_up<i64>(b.offset + v.extent() * size_of(v.dtype) + kGuardBytes, 256);
    const i64 before = round_up<i64>(b.size, GuardedMemory::kPage) - b.size;  // so that a page ends where the guard band does
    b.offset += before, b.size += before;
    b.bytes = GuardedMemory(size_t(b.size));
    b.initial = {static_cast<char*>(std::aligned_alloc(256, size_t(b.size))), std::free};
    if (!b.bytes || !b.initial)
      throw Error(ErrorKind::device, op.id + ": no memory for `" + op.tensors[i].name + "` (" + std::to_string(b.size) + " bytes)");
    parallel_fill(b.bytes.get(), kPoison, size_t(b.size));
    v.data = b.bytes.get() + b.offset;
    if (op.tensors[i].role != Role::out) {
      fill(i, random, number, redraw);
    } else if (poison_of(v.dtype) != kPoison) {
      const i64 size = size_of(v.dtype), last = v.rank - 1;
      each_row(v, [&](char* row, const i64*) {
        for (i64 j = 0; j < v.shape[last]; ++j) std::memset(row + j * v.strides[last] * size, poison_of(v.dtype), size_t(size));
      });
    }
  }
  Case generated = which_;
  generated["proof"] = number != Number::real;
  if (op.base && op.base->generate) op.base->generate(args(), generated, random);
  if (op.generate) op.generate(args(), generated, random);
  for (Buffer& b : buffers_)
    if (b.bytes) parallel_copy(b.initial.get(), b.bytes.get(), size_t(b.size));
}

void CaseArgs::fill(size_t i, Random& random, Number number, u64 redraw) {
  const TensorDef& t = op_->tensors[i];
  i64 extent = 0;
  if (t.values.kind != Values::Kind::data) extent = i64(value_or(which_, name(t.values.axis), 0));
  const DataKind data = data_kind_of(which_);
  const bool fit = !t.unfit.has(data) && !op_->unfit.has(data);
  if (!fill_tensor(tensor(i), t.values.kind, extent, random, number, redraw, fit ? data : DataKind::normal))
    throw Error(ErrorKind::value, op_->id, t.name, "has more elements than " + std::string(name(t.values.axis)),
                "room for distinct values");
}

size_t CaseArgs::holder(size_t i) const { return holder_of(*op_, i, which_); }

void CaseArgs::reset() {
  for (Buffer& b : buffers_)
    if (b.bytes) parallel_copy(b.bytes.get(), b.initial.get(), size_t(b.size));
}

/// Where in a tensor's block a byte lies.
static std::string place_of(const TensorView& v, i64 offset, i64 at) {
  const i64 end = offset + v.extent() * size_of(v.dtype);
  if (at < offset) return std::to_string(offset - at) + " bytes before its start";
  if (at >= end) return std::to_string(at - end) + " bytes behind its end";
  return "at byte " + std::to_string(at - offset);
}

std::string CaseArgs::damage_of(size_t i) const {
  const TensorView v = tensor(i);
  const Buffer& b = buffers_[i];
  if (!b.bytes) return "";
  std::vector<char> now(b.bytes.get(), b.bytes.get() + b.size);
  bool input = op_->tensors[i].role == Role::in;
  for (size_t j = 0; j < buffers_.size(); ++j) input &= j == i || holder(j) != i;
  if (!input) {  // its elements may have changed
    const i64 size = size_of(v.dtype), last = v.rank - 1;
    each_row(v, [&](char* row, const i64*) {
      const i64 at = row - b.bytes.get();
      for (i64 j = 0; j < v.shape[last]; ++j)
        std::memcpy(&now[size_t(at + j * v.strides[last] * size)], b.initial.get() + at + j * v.strides[last] * size, size_t(size));
    });
  }
  const char* end = b.initial.get() + b.size;
  const auto [was, is] = std::mismatch(static_cast<const char*>(b.initial.get()), end, now.begin());
  if (was == end) return "";
  const i64 at = was - b.initial.get();
  const std::string where = place_of(v, b.offset, at);
  return fmt::format("`{}` {}: written {} (a byte was {:#04x} and is {:#04x})", op_->tensors[i].name, input ? "is an input" : "was overrun",
                     where, u8(*was), u8(*is));
}

std::string CaseArgs::damage() const {
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (const std::string text = damage_of(i); !text.empty()) return text;
  return "";
}

DeviceArgs::DeviceArgs(CaseArgs& host, Device& device) : host_(host), device_(device), args_(host.op()) {
  std::memcpy(args_.get(), host.args(), host.op().args_bytes);
  if (device.id().type == DeviceType::cpu) return;
  blocks_.resize(host.op().tensors.size());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    TensorView& v = host.op().tensor(args_.get(), i);
    if (!v.present()) continue;
    v.device = device.id();
    if (const size_t holder = host.holder(i); holder != i) {  // stated before it
      v.data = host.op().tensor(args_.get(), holder).data;
      continue;
    }
    blocks_[i] = device.allocate(size_t(host.buffer(i).size), host.op().tensors[i].name.c_str());
    v.data = static_cast<char*>(blocks_[i]) + host.buffer(i).offset;
  }
  upload();
}

DeviceArgs::~DeviceArgs() {
  for (void* block : blocks_) {
    try {
      if (block) device_.release(block);
    } catch (const Error&) {  // the device has failed; what made it fail was reported
    }
  }
}

void DeviceArgs::upload() {
  for (size_t i = 0; i < blocks_.size(); ++i)
    if (blocks_[i]) device_.copy(blocks_[i], host_.buffer(i).bytes.get(), size_t(host_.buffer(i).size), Stream{});
  if (!blocks_.empty()) device_.synchronize(Stream{});
}

void DeviceArgs::download() {
  device_.synchronize(Stream{});
  for (size_t i = 0; i < blocks_.size(); ++i)
    if (blocks_[i]) device_.copy(host_.buffer(i).bytes.get(), blocks_[i], size_t(host_.buffer(i).size), Stream{});
  if (!blocks_.empty()) device_.synchronize(Stream{});
}

}  // namespace quern::testing
