// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// One case of an op for callers that run it by themselves, through a binding for another language.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "quern/op/schema.h"

namespace quern::testing {

/// Host arguments of a case, filled and poisoned as check does it, with the truth of its outputs. Judged as the library's own calls are.
class QN_API HostCase {
 public:
  /// `words` as in case_text(). Throws Error{value} for a case that the op refuses.
  HostCase(const Op& op, const std::string& words, u64 seed);
  ~HostCase();
  HostCase(const HostCase&) = delete;

  const Op& op() const;
  TensorView tensor(size_t i) const;  ///< memory of this object
  Scalar attribute(const AttrDef& attr) const;
  const RunOptions& options() const;    ///< batch_invariant and variant
  std::vector<u8> hook_params() const;  ///< bytes that the op's own hooks read; empty where it has none
  /// Elements that a right call changes: those that the reference writes, of tensors updated in place those whose value becomes another.
  i64 changed() const;
  /// Compares the outputs with the truth within the op's budget and looks for bytes written elsewhere. Empty: right.
  std::string judge() const;

 private:
  struct Members;
  std::unique_ptr<Members> members_;
};

/// Cases of the op's covering array whose operands have at most `most_bytes`, up to `most` of them spread over the array.
QN_API std::vector<std::string> small_cases(const Op& op, size_t most, double most_bytes);

}  // namespace quern::testing
