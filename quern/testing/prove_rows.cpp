// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// On what the order of a row's sums depends, in numbers that name their expression (Number::tree).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "quern/testing/prove.h"
#include "quern/testing/rows.h"

namespace quern::testing {

namespace {

/// Rows [begin, end) as a call of its own; the bytes of row r in it.
std::string row_among(CaseArgs& args, const RunOptions& options, i64 begin, i64 end, i64 r) {
  const Op& op = args.op();
  ArgsStorage some(op);
  std::memcpy(some.get(), args.args(), op.args_bytes);
  keep_rows(op, some.get(), begin, end);
  args.reset();
  run(op, some.get(), options);
  return output_bytes(args, r);
}

/// Batches of other sizes with the row at other places: the last, the first, in the middle. They begin at multiples of `unit`.
std::vector<std::pair<i64, i64>> batches_with(i64 r, i64 rows, i64 unit) {
  std::vector<std::pair<i64, i64>> batches = {{r / unit * unit, r + 1}};
  for (const i64 size : {i64(2), i64(3), i64(17), i64(65), rows - 1})
    for (const i64 begin : {r - size + 1, r, r - size / 2})
      if (size > 1 && size < rows && begin >= 0 && begin + size <= rows) batches.push_back({begin / unit * unit, begin + size});
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  return batches;
}

void compare_rows(CaseArgs& args, const RunOptions& options, Proof::Rows& result) {
  const i64 rows = row_count(args.op(), args.args());
  for (const i64 r : {i64(0), rows / 2, rows - 1}) {
    const std::string together = row_among(args, options, 0, rows, r);
    for (const auto& [begin, end] : batches_with(r, rows, row_unit(args.op(), args.args()))) {
      ++result.batches;
      if (row_among(args, options, begin, end, r) == together) continue;
      result.holds = false;
      result.message = fmt::format("{} index {} is summed in another order {} than among {}", name(args.op().rows), r,
                                   end - begin == 1 ? "alone" : fmt::format("among {}", end - begin), rows);
      return;
    }
  }
}

}  // namespace

Case with_rows(const Op& op, Case given) {
  if (!op.has_rows || given.contains(name(op.rows))) return given;
  for (const CaseAxis& axis : op.cases) {
    if (axis.name != name(op.rows)) continue;
    Scalar most = 0;
    for (const CaseValue& v : axis.values) most = v > most ? v : most;
    given[axis.name] = most;
  }
  return given;
}

void Prover::prove_rows(const Op& op, const Case& given, u64 seed, Proof& proof) {
  if (!op.has_rows) return;
  for (const bool asked : has_invariant_mode(op) ? std::vector<bool>{false, true} : std::vector<bool>{false}) {
    Case which = given;
    if (has_invariant_mode(op)) which["batch_invariant"] = asked;
    CaseArgs args(op, which, seed, Number::tree);
    if (!rows_can_be_sliced(op, args.args()) || row_count(args.op(), args.args()) < 2) return;
    Proof::Rows result;
    result.batch_invariant = asked;
    result.promised = asked || !has_invariant_mode(op);
    for (size_t on = 0; on < 2 && result.holds; ++on) {  // where plan cuts work may depend on the number of SMs
      RunOptions options = options_of(op, args.which());
      options.device = tree_[on].device.get();
      compare_rows(args, options, result);
      if (!result.holds) result.message += " on " + tree_[on].words;
    }
    if (result.promised && !result.holds) proof.message = result.message;
    proof.rows.push_back(result);
  }
}

void Prover::prove_repeatable(const Op& op, const Case& given, u64 seed, Proof& proof) {
  CaseArgs args(op, given, seed, Number::tree);
  std::string before;
  for (int call = 0; call < 3; ++call) {  // twice on one device, then on another
    const ProofDevice& on = tree_[call == 2 ? 2 : 0];
    RunOptions options = options_of(op, args.which());
    options.device = on.device.get();
    args.reset();
    run(op, args.args(), options);
    const std::string bytes = output_bytes(args, -1);
    if (call > 0 && bytes != before) {
      proof.message = "the order of sums differs from call to call: on " + on.words;
      return;
    }
    before = bytes;
  }
  proof.repeatable = true;
}

}  // namespace quern::testing
