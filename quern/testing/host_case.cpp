// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/host_case.h"

#include <algorithm>
#include <bit>
#include <sstream>
#include <utility>

#include "quern/base/host_dtype.h"
#include "quern/op/ref.h"
#include "quern/testing/check.h"
#include "quern/testing/pairwise.h"

namespace quern::testing {

static Case parse(const Op& op, const std::string& words) {
  std::istringstream in(words);
  std::vector<std::string> list;
  for (std::string word; in >> word;) list.push_back(word);
  return parse_case(op, list);
}

/// Of the arguments as they are before the call.
static i64 changed_elements(const CaseArgs& args, const Truth& truth) {
  const TensorView before = args.tensor(truth.tensor);
  const bool updated = args.op().tensors[truth.tensor].role == Role::inout;
  const i64 columns = before.shape[before.rank - 1];
  i64 changed = 0, at = 0;
  each_row(before, [&](char*, const i64* lead) {
    i64 index[kMaxRank] = {};
    std::copy_n(lead, before.rank - 1, index);
    for (i64 i = 0; i < columns; ++i, ++at) {
      index[before.rank - 1] = i;
      const double value = truth.values[size_t(at)];
      const u64 bits = std::bit_cast<u64>(value);
      if (bits != kUnwrittenBits && bits != kUnspecifiedBits) changed += !updated || value != load_element(before, index);
    }
  });
  return changed;
}

struct HostCase::Members {
  Members(const Op& op, const std::string& words, u64 seed) : args(op, parse(op, words), seed), options(options_of(op, args.which())) {
    problem = bind(op, args.args(), options);  // before the reference trusts the shapes
    truths = truth_of(args);
    for (const Truth& truth : truths) changed += changed_elements(args, truth);
  }
  CaseArgs args;
  RunOptions options;
  Problem problem;
  std::vector<Truth> truths;
  i64 changed = 0;
};

HostCase::HostCase(const Op& op, const std::string& words, u64 seed) : members_(std::make_unique<Members>(op, words, seed)) {}
HostCase::~HostCase() = default;

const Op& HostCase::op() const { return members_->args.op(); }
TensorView HostCase::tensor(size_t i) const { return members_->args.tensor(i); }
Scalar HostCase::attribute(const AttrDef& attr) const { return attr_value(attr, std::as_const(members_->args).args()); }
std::vector<u8> HostCase::hook_params() const {
  if (!op().hooks) return {};
  const u8* at = static_cast<const u8*>(std::as_const(members_->args).args()) + op().hook_params_offset;
  return {at, at + (op().hook_params_used >= 0 ? op().hook_params_used : op().hook_params_bytes)};
}
const RunOptions& HostCase::options() const { return members_->options; }

i64 HostCase::changed() const { return members_->changed; }

std::string HostCase::judge() const {
  const Comparison c = testing::judge(members_->args, members_->truths, members_->problem);
  return c.ok ? "" : c.message;
}

std::vector<std::string> small_cases(const Op& op, size_t most, double most_bytes) {
  const DeviceInfo device = device_info_of(Arch{});
  std::vector<std::string> all;
  for (const Case& which : pairwise(parameters_of(op), [&](const Case& c) { return runs(op, c, device); })) {
    const ArgsStorage args = fake_args(op, derived(op, which));
    if (operand_bytes(op, args.get()) <= most_bytes) all.push_back(case_text(op, which));
  }
  if (all.size() <= most) return all;
  std::vector<std::string> chosen;
  for (size_t i = 0; i < most; ++i) chosen.push_back(all[i * all.size() / most]);
  return chosen;
}

}  // namespace quern::testing
