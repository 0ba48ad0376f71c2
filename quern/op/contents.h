// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Contracts of index tensors: what their elements may be, as an op's schema states it. The elements lie on the device, so bind cannot
// look at them; a checked emulated device judges them before the first launch.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "quern/base/api.h"
#include "quern/kit/abi.h"

namespace quern {

struct Op;
struct TensorDef;
struct Problem;
class Device;
struct Stream;

/// What is true of each element of an index tensor. Bounds are Expressions over axes and attributes of the op, as dims are. See each_below.
struct Contents {
  std::string least, end;  ///< empty: nothing is stated
  bool inclusive = false;  ///< `end` itself may be an element
  i64 negative_from = 0;   ///< so may values from here to -1
  bool in_order = false;   ///< along the tensor's only dimension no element is below the one before it
  bool all_distinct = false;
  bool where_read = false;  ///< only of those that a call reads; Schema::contract looks at these
  bool stated() const { return !end.empty(); }

  Contents or_minus_one() const {
    return with([](Contents& c) { c.negative_from = -1; });
  }
  Contents or_negative() const {
    return with([](Contents& c) { c.negative_from = INT64_MIN; });
  }
  Contents ascending() const {
    return with([](Contents& c) { c.in_order = true; });
  }
  Contents distinct() const {
    return with([](Contents& c) { c.all_distinct = true; });
  }
  Contents if_read() const {
    return with([](Contents& c) { c.where_read = true; });
  }

 private:
  template <class Change> Contents with(const Change& change) const {
    Contents changed = *this;
    change(changed);
    return changed;
  }
};
/// Each element is in [0, end).
inline Contents each_below(std::string end) {
  Contents c;
  c.least = "0", c.end = std::move(end);
  return c;
}
/// Each element is in [least, most].
inline Contents each_within(std::string least, std::string most) {
  Contents c;
  c.least = std::move(least), c.end = std::move(most), c.inclusive = true;
  return c;
}

/// An element that breaks the contract of its tensor; without a tensor: none does.
struct Breach {
  std::string tensor;
  std::vector<i64> index;
  i64 value = 0;
  std::string expected;
  explicit operator bool() const { return !tensor.empty(); }
};
/// "`positions`[3] is 16777217, expected 0 to 16777215".
QN_API std::string to_string(const Breach& breach);
/// "0 to 7", "0", or "none" where nothing is between the two.
QN_API std::string range_text(i64 least, i64 most);

/// What the schema states of the tensor's elements, by Schema::contents or else by Schema::values.
QN_API Contents contents_of(const Op& op, const TensorDef& tensor);
/// "in [0, groups), or -1", "ascending, in [0, m]"; empty: nothing is stated.
QN_API std::string contents_text(const Op& op, const TensorDef& tensor);

/// The first breach of each tensor; where there is none, what the op's own contract finds. Reads the tensors: for host memory.
QN_API std::vector<Breach> contents_breaches(const Op& op, const void* args, const Problem& problem);

/// Has a checked device look at the contents when the stream comes to this point, on each replay again. A breach is thrown as Error{device}
/// "op: INDEX: ..", a line each. Other devices, and calls within AllowBrokenContents: nothing.
void judge_contents(const Op& op, const void* args, const Problem& problem, Device& device, Stream stream);

/// While one lives, calls of this thread may have contents that break the contract: for tests of what kernels then do.
class QN_API AllowBrokenContents {
 public:
  explicit AllowBrokenContents(bool allow = true);
  ~AllowBrokenContents();
  AllowBrokenContents(const AllowBrokenContents&) = delete;

 private:
  bool before_;
};

}  // namespace quern
