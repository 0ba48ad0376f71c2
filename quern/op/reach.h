// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Which kernels the calls of a model can reach within its limits: found by walking the pure plan.
#pragma once
#include <string>
#include <vector>

#include "quern/op/model.h"
#include "quern/op/plan.h"

namespace quern {

struct ReachedKernel {
  jit::KernelSpec spec;
  std::vector<std::string> calls;  ///< what they do, in the model file's words
  bool aligned = false;            ///< also by operands whose rows all start at multiples of 16 bytes, without gaps
};

/// Values of a call's words and lists with which it reaches no kernel.
struct ReachedNone {
  std::string with;  ///< "head_dim=1000 tp=2"
  std::string why;
  bool refused = false;  ///< by the op; else there is nothing to compute
};
/// How one call of the model was walked.
struct ReachedCall {
  std::string does, op;
  i64 plans = 0;                  ///< that were made
  i64 refused = 0;                ///< points where the op refuses the call
  std::vector<size_t> kernels;    ///< indices into Reach::kernels
  std::string skipped;            ///< why it reaches none; empty: it does
  std::vector<ReachedNone> none;  ///< of a call that reaches some
  std::string partly;             ///< of a call that reaches some: the first refusal of a point of its ranges
};

struct Reach {
  std::vector<ReachedKernel> kernels;
  std::vector<ReachedCall> calls;

  /// Index of a kernel, which joins the list unless it is there.
  size_t add(const jit::KernelSpec& spec);
};

/// Kernels that the model's calls reach on a device.
///
/// Lists (page sizes, tensor-parallel degrees, ...), batch invariance and the op's portable variant are enumerated. What is
/// left varies: ranges, and of every tensor alignment and contiguity. Lines along each of these are walked value by value,
/// first through corners and some random points, then, for those along which a kernel was seen to change, through every
/// combination of the values beside changes of the others, until nothing new is seen. That finds every kernel if the regions
/// of plan are boxes, or else reach a line; tests compare with walks that do not assume it.
Reach reach(const Model& model, const DeviceInfo& device);

}  // namespace quern
