// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cstring>
#include <type_traits>

#include "quern/base/tensor_view.h"
#include "quern/op/axis.h"

namespace quern {

struct Op;
namespace jit {
struct Hooks;
}
constexpr int kMaxTensors = 32;
constexpr int kMaxAttrs = 24;
constexpr int kMaxAxes = 32;  ///< of one op

/// What plan may know of a tensor: no pointer, no stride, only facts that select code.
struct TensorFacts {
  DType dtype = DType::f32;
  i32 present = 0;
  i32 alignment = 1;   ///< bytes, a power of two <= 16: every dense row starts at a multiple of it
  i32 contiguous = 1;  ///< row-major without gaps
  i32 transposed = 0;  ///< dense rows lie along the dimension before the last (Schema::either_major)
};

/// Value of an attribute, by its type: `real` of a float, `integer` of all others.
union AttrWord {
  i64 integer;
  double real;
};

/// Byte offset of a member: how plan names a tensor or attribute without a string.
template <class Args, class T> ptrdiff_t member_offset(T Args::* member) {
  ptrdiff_t offset;
  static_assert(sizeof offset == sizeof member, "Itanium ABI: a pointer to data member is an offset");
  std::memcpy(&offset, &member, sizeof offset);
  return offset;
}

/// A call without its tensors: axis values, dtypes, facts and attributes. A POD value; bind makes it, plan reads it.
struct Problem {
  const Op* op;
  const u8* axis_slots;    ///< Op::axis_slots
  i64 axes[kMaxAxes + 1];  ///< by the op's own list; the last one is 0, for axes that are not in it
  TensorFacts tensors[kMaxTensors];
  AttrWord attrs[kMaxAttrs];  ///< attributes by the schema's order
  DeviceId device;
  i32 batch_invariant;                ///< RunOptions::batch_invariant
  i32 pdl;                            ///< RunOptions::pdl
  i32 variant;                        ///< index of the variant asked for, or -1
  i32 candidate;                      ///< index into the candidates of that variant, where the call names one of them, or -1
  i32 empty;                          ///< every output has zero elements
  const jit::Hooks* hooks = nullptr;  ///< code that the caller plugs in; null: none (see Schema::hooks)

  /// Extent of an axis; 0 when only absent tensors have it, or none.
  i64 operator[](Axis axis) const { return axes[axis_slots[size_t(axis)]]; }
  template <class Args> const TensorFacts& tensor(TensorView Args::* member) const { return tensors[tensor_at(member_offset(member))]; }
  template <class Args> DType dtype(TensorView Args::* member) const { return tensor(member).dtype; }
  /// Most elements, a power of two, that an aligned access of at most 16 bytes may take from any row of the tensor.
  template <class Args> i32 vector(TensorView Args::* member) const {
    const TensorFacts& t = tensor(member);
    return max_of(1, t.alignment / size_of(t.dtype));
  }
  template <class Args, class T> T attr(T Args::* member) const {
    const AttrWord word = attrs[attr_at(member_offset(member))];
    if constexpr (std::is_floating_point_v<T>) return T(word.real);
    else return T(word.integer);
  }

 private:
  QN_API int tensor_at(ptrdiff_t offset) const;
  QN_API int attr_at(ptrdiff_t offset) const;
};

/// What was refused: an integer, a real number, or a word.
struct Got {
  i64 integer = 0;
  double real = 0;
  bool is_real = false;
  const char* word = nullptr;  ///< "absent"
  Got(i64 v) : integer(v) {}
  Got(i32 v) : integer(v) {}
  Got(double v) : real(v), is_real(true) {}
  Got(float v) : Got(double(v)) {}
  Got(const char* w) : word(w) {}
};
/// "30", "-0.5", "nan", "absent".
QN_API std::string to_string(const Got& got);

/// Why a variant or a requirement refuses a problem; `text` null means that it does not. Plain data, made on every call and
/// formatted only when printed: "`heads_q` is 30, expected a multiple of 8".
struct Rejection {
  const char* subject = nullptr;  ///< the axis, tensor or attribute
  Got got = 0;
  const char* text = nullptr;  ///< what was expected; "{}" in it stands for `wanted`
  i64 wanted = 0;
  explicit operator bool() const { return text != nullptr; }
};
/// "a multiple of 8".
QN_API std::string expectation(const Rejection& rejection);
/// "heads_q=30, wants a multiple of 8".
QN_API std::string to_string(const Rejection& rejection);

}  // namespace quern
