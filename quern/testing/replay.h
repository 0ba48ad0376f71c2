// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Runs recorded calls again.
#pragma once
#include "quern/testing/check.h"
#include "quern/testing/traced_call.h"

namespace quern::testing {

/// How one output of a replay compares.
struct ReplayedOutput {
  std::string name;
  bool has_bits = false;          ///< the record has outputs, made on such a device by the same plan
  i64 different = 0;              ///< elements that differ in a bit from the recorded ones
  std::string first;              ///< the first of them: "[0, 3] is 1.5 and was 1.25"
  Comparison recorded, replayed;  ///< with the reference, within the op's error budget
};
struct ReplayResult {
  enum class Verdict { right, wrong, not_compared };
  std::string kernels;
  std::vector<ReplayedOutput> outputs;  ///< none where the recorded call did not come to an end
  bool has_recorded = false;            ///< the record has outputs
  /// Kernels and grids are those of the record: the number of multiprocessors, or another version, may change them
  bool planned_alike = false;
  bool has_reference = false;  ///< the outputs were compared with the reference
  size_t compared() const;     ///< outputs that were compared, with their bits or with the reference
  Verdict verdict() const;     ///< right: some were compared, no bit differs and every replayed output is within its budget
};

/// Runs the call on a device: tensors with the recorded values, strides, alignment and aliasing, in memory that is poisoned
/// (0xFF, NaN) between the rows, where the record has nothing. Throws what the call throws, and Error{value} when the record has no data.
/// The reference is asked for calls that finished alone: one that failed may have an index that it would follow, too.
ReplayResult replay(const TracedCall& call, Device& device);

/// Bytes and operations of a recorded call that has its data.
Cost cost_of(const TracedCall& call);

/// A recorded call in memory of a device, to be made as often as one likes. Throws as replay() does. `call` outlives it.
class RecordedCall {
 public:
  RecordedCall(const TracedCall& call, Device& device);
  ~RecordedCall();
  RecordedCall(const RecordedCall&) = delete;
  /// Makes the call, on the device's default stream.
  void run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quern::testing
