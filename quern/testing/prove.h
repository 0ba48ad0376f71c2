// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Proofs by number type, on emulated devices where f32 is not float: that every plan of an op computes the op's meaning
// exactly (Number::order_free), and on what the order of a row's sums depends (Number::tree).
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quern/device/emulated.h"
#include "quern/testing/case_args.h"

namespace quern::testing {

/// An emulated device that proofs run on, and what sets it apart.
struct ProofDevice {
  std::unique_ptr<Device> device;
  std::string words;
};

/// What was shown of one case.
struct Proof {
  std::string op, which;
  std::string skipped;  ///< why nothing is to be shown (Schema::exact); empty: it is
  // All plans agree, in order-free numbers
  int ways = 0;             ///< layouts, modes, variants and devices that were run
  int plans = 0;            ///< different plans among them
  bool by_meaning = false;  ///< compared with the op's order-free reference; else with each other
  bool exact = false;
  int coincidences = 0;  ///< differences that other data did not show: a sum of the field happened to be 0
  // A row's order of sums
  struct Rows {
    bool batch_invariant = false;  ///< the mode that was asked for
    bool promised = false;         ///< by the op, in this mode
    bool holds = true;
    int batches = 0;  ///< rows in batches that were compared
    std::string message;
  };
  std::vector<Rows> rows;
  bool repeatable = false;  ///< the same bits on another device, schedule and number of OS threads
  std::string message;      ///< of the first thing that is wrong; empty when nothing is
  bool ok() const { return message.empty(); }
};

/// Holds the devices: kernels stay loaded from case to case.
class Prover {
 public:
  /// Of the ways to run a case, at most `most_ways` are taken, spread over all; 0: every one.
  explicit Prover(int most_ways = 0);
  /// Runs the case, `seed` that of its data. Throws Error when the case itself is refused.
  Proof prove(const Op& op, const Case& given, u64 seed);

 private:
  void prove_exact(const Op& op, const Case& given, u64 seed, Proof& proof);
  void prove_rows(const Op& op, const Case& given, u64 seed, Proof& proof);
  void prove_repeatable(const Op& op, const Case& given, u64 seed, Proof& proof);
  int most_ways_;
  std::vector<ProofDevice> order_free_;
  std::vector<ProofDevice> tree_;  ///< as it is; with few SMs; as it is, in another schedule
};

/// The case with as many rows as the op's cases have at most, unless `given` names them: proofs of rows need several.
Case with_rows(const Op& op, Case given);

}  // namespace quern::testing
