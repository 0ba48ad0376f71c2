// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A sweep: cases of an op along one parameter, in several modes. Its points, and what tells its rows apart.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "quern/op/schema.h"

namespace quern::bench {

/// forward: the op. backward: the ops that its schema names for its gradients, one after another. full: both, the second with what
/// the first has written.
enum class Mode { forward, backward, full };
const char* name(Mode mode);
/// From "forward". Throws Error{value}.
Mode mode_from_name(const std::string& text);

/// "hidden=1024:4096:x2" is 1024, 2048, 4096; "tokens=1:9:+4" is 1, 5, 9; "hidden=96,768" is these. Ends are in it where steps meet them.
/// `dtype` stands for that of the op's main tensor. Throws Error{value} for a parameter that the op does not have and for what is no such
/// list.
CaseAxis parse_sweep(const Op& op, const std::string& text);
/// One case of words as "tokens=4096" and "dtype=bf16". Throws Error{value}.
Case parse_fixed(const Op& op, const std::vector<std::string>& words);
/// What "dtype" stands for: "x.dtype" of the first floating input that has a choice; empty where none has.
std::string dtype_parameter(const Op& op);
/// The dtype of that tensor in a case, "bf16"; of an op without a choice that of its first floating input. Empty: it has none.
std::string dtype_name(const Op& op, const Case& given);

/// One case of a sweep.
struct SweepPoint {
  Case given;     ///< what was asked for
  std::string x;  ///< the parameter that the sweep varies
  /// Text of a parameter's value, as "4096" or "true".
  std::string text(const Op& op, const std::string& parameter) const;
  /// What else tells the point apart, by name: the parameters that were asked for, the axes that the op's cases complete, the dtype.
  std::map<std::string, std::string> config(const Op& op) const;
};
/// Every combination of the axes over what is fixed; x is the first axis, which comes innermost. Throws Error{value} for a parameter that
/// is given twice, for an x without numbers and for more than 10000 points.
std::vector<SweepPoint> sweep_points(const Op& op, const std::vector<CaseAxis>& axes, const Case& fixed);
/// The sweep of an op for which none is named: the parameter in which its bench shapes differ most, and in `fixed` what the first shape
/// states besides. `small`, and without such shapes: the first size that has several values among the op's cases, which an emulated device
/// runs in a moment. Throws Error{value} where there is none.
CaseAxis standard_sweep(const Op& op, Case& fixed, bool small);

/// Makes the rows fewer (see Schema::rows) until no point's operands have more than `most` bytes, and leaves out the points for which that
/// is not enough. Returns what was done, in words; empty: nothing.
std::string shrink(const Op& op, std::vector<SweepPoint>& points, double most);

}  // namespace quern::bench
