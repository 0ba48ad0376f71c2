// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Arguments of any op, made from its schema and a Case: tensors with the case's extents, dtypes and strides, filled
// with random values, between guard bands.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "quern/base/guarded_memory.h"
#include "quern/testing/case_text.h"

namespace quern::testing {

/// Bytes before and after each tensor that nobody may touch.
constexpr i64 kGuardBytes = 256;
/// What guard bands, gaps between rows and outputs hold before a call: a NaN of every floating dtype.
constexpr u8 kPoison = 0xFF;
/// Bytes of an output's elements before a call. Of integers other ones: -1 and 255 are results, as of indices that are none and of packed
/// bits.
constexpr u8 poison_of(DType dtype) {
  return dtype == DType::i8 || dtype == DType::i32 || dtype == DType::i64 || dtype == DType::u8 ? 0x99 : kPoison;
}

/// Storage of one op's Args struct.
class ArgsStorage {
 public:
  explicit ArgsStorage(const Op& op);
  ArgsStorage(const ArgsStorage& other);
  void* get() { return bytes_.data(); }
  const void* get() const { return bytes_.data(); }

 private:
  struct alignas(64) Block {
    char bytes[64];
  };
  std::vector<Block> bytes_;
};

/// Views and attributes of a derived case without memory. The pointers look like real ones (aligned, shifted by the
/// case's ".shift") and are never to be dereferenced: for bind and plan at any size. Throws Error{value} when the case
/// lacks an axis that a present tensor needs.
ArgsStorage fake_args(const Op& op, const Case& derived_case, DeviceId device = {});

/// Of tensor i in a case: its own word, else the dtype of the tensor that it is like, else the first that the schema allows.
DType dtype_of(const Op& op, size_t i, const Case& derived_case);
/// The extent where axes and attributes are as a derived case says. Throws Error{value} when it lacks an axis.
i64 extent_of(const Op& op, const Extent& extent, const Case& derived_case);
/// RunOptions of a derived case: batch_invariant and variant.
RunOptions options_of(const Op& op, const Case& derived_case);
/// Bytes of all operands.
double operand_bytes(const Op& op, const void* args);
/// Calls `visit` with the address and leading index of each innermost row (dims 0..rank-2) of a view.
void each_row(const TensorView& view, const std::function<void(char* row, const i64* lead)>& visit);

/// Owned host arguments. Movable; the views point into memory of this object.
class CaseArgs {
 public:
  /// `given` is completed and derived. Random contents depend on `seed` alone; data is of the number type that the
  /// device will compute with. `redraw`: other floating data for each value, lengths and indices the same.
  CaseArgs(const Op& op, const Case& given, u64 seed, Number number = Number::real, u64 redraw = 0);
  /// Of a case with nothing left to complete or derive.
  static CaseArgs of_derived(const Op& op, const Case& derived_case, u64 seed) {
    return CaseArgs(op, derived_case, derived_case, seed, Number::real, 0);
  }
  CaseArgs(CaseArgs&&) = default;

  const Op& op() const { return *op_; }
  const Case& given() const { return given_; }  ///< as a repro command states it
  const Case& which() const { return which_; }  ///< after derive
  u64 seed() const { return seed_; }
  void* args() { return args_.get(); }
  const void* args() const { return args_.get(); }
  TensorView tensor(size_t i) const { return op_->tensor(args_.get(), i); }

  /// Puts every byte back to what it was at the start: inputs filled, outputs poisoned.
  void reset();
  /// What was written outside the outputs' elements (guard bands, gaps, inputs); empty when nothing was.
  std::string damage() const;

  /// The block that holds tensor i with its guard bands: for device copies.
  struct Buffer {
    GuardedMemory bytes;
    std::unique_ptr<char, void (*)(void*)> initial{nullptr, nullptr};  ///< contents after generation
    i64 size = 0;                                                      ///< guard bands included
    i64 offset = 0;                                                    ///< of the view's data
  };
  const Buffer& buffer(size_t i) const { return buffers_[i]; }
  /// The tensor whose buffer tensor i lies in: i itself, or the input that it takes the place of (its own buffer is empty then).
  size_t holder(size_t i) const;

 private:
  CaseArgs(const Op& op, const Case& given, const Case& which, u64 seed, Number number, u64 redraw);
  void fill(size_t i, Random& random, Number number, u64 redraw);
  std::string damage_of(size_t i) const;

  const Op* op_;
  Case given_, which_;
  u64 seed_;
  ArgsStorage args_;
  std::vector<Buffer> buffers_;
};

/// The arguments on a device: copies with the same strides and guard bands on a GPU, the host memory itself where the
/// device computes in host memory.
class DeviceArgs {
 public:
  DeviceArgs(CaseArgs& host, Device& device);
  ~DeviceArgs();
  DeviceArgs(const DeviceArgs&) = delete;
  void* args() { return args_.get(); }
  /// Host to device, all bytes; and back.
  void upload();
  void download();

 private:
  CaseArgs& host_;
  Device& device_;
  ArgsStorage args_;
  std::vector<void*> blocks_;
};

}  // namespace quern::testing
