// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The calls of one case in one mode, over buffers that they share: what the op writes is what the ops of its gradients read.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quern/bench/ceiling.h"
#include "quern/bench/device_sets.h"
#include "quern/bench/judge_timed.h"
#include "quern/bench/sweep.h"

namespace quern::bench {

class ModeCase {
 public:
  /// Makes arguments as `quern check` does, and several sets of them on the device (sets_wanted). Tensors that an op of the gradients has
  /// in common with `op` are the same memory. In mode backward the op itself is run once a set. Throws Error{value, unsupported} for a case
  /// that an op refuses, and for an op that names none for its gradients.
  ModeCase(const Op& op, const Case& given, Mode mode, Device& device, u64 seed, bool cold);
  ModeCase(const ModeCase&) = delete;

  /// One call of the mode.
  struct Part {
    const Op* op;
    std::map<std::string, std::string> gradients;  ///< of an op of gradients: its tensor -> the op's tensor
    testing::CaseArgs host;                        ///< what the judge's reference reads
    RunOptions options;
    Problem problem;
    std::unique_ptr<DeviceSets> sets;
    struct Shared {
      size_t here, there;  ///< tensors of this op and of the first part's
    };
    std::vector<Shared> shared;
    bool reads_results = false;          ///< something is shared that the op writes: the truth is another with each provider
    std::vector<testing::Truth> truths;  ///< else the same for all, made once
  };

  const Op& op() const { return *parts_[0]->op; }
  Mode mode() const { return mode_; }
  Device& device() const { return device_; }
  int sets() const { return parts_[0]->sets->count(); }
  /// The calls that are timed, in their order.
  const std::vector<Part*>& timed() const { return timed_; }
  /// All, the op's own first: also where that is not timed.
  const std::vector<std::unique_ptr<Part>>& parts() const { return parts_; }
  /// Outputs have no elements: there is nothing to time.
  bool empty() const;
  bool updates_in_place() const;

  /// What timed calls write: outputs poisoned, tensors updated in place as they were generated.
  void restore(int set);
  /// What the timed calls have left in a set, by the references of their ops. `roundings`: see judge_timed.
  Verdict judge(int set, int roundings);

  Cost cost() const;
  /// Of the timed calls one behind another; 0: not known.
  double floor_us(const Ceilings& ceilings) const;
  double output_bytes() const;
  /// Plans of the timed calls: kernels with their Configs, and the largest workspace.
  std::string kernels() const;
  double workspace_bytes() const;

 private:
  void add(const Op& op, const Case& given, std::map<std::string, std::string> gradients);
  void share(Part& part);
  void read_results(Part& part, int set);

  Mode mode_;
  Device& device_;
  u64 seed_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<Part*> timed_;
};

}  // namespace quern::bench
