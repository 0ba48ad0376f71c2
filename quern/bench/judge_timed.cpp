// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/judge_timed.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "quern/base/host_dtype.h"
#include "quern/op/ref.h"
#include "quern/testing/check.h"
#include "quern/testing/parallel.h"
#include "quern/testing/rows.h"
#include "quern/testing/truth.h"

namespace quern::bench {

namespace {

using testing::Comparison;
using testing::Truth;

void keep_worse(Comparison& worst, const Comparison& c) {
  if ((worst.ok && !c.ok) || (worst.ok == c.ok && c.error > worst.error)) worst = c;
}

/// What the device holds of each output, by tensor.
using Outputs = std::map<size_t, Downloaded>;

/// Sums of thousands of f32 in another order, and exponentials of rounded arguments, are off by more than one rounding of f32.
constexpr double kLeastUnit = 0x1p-20;

/// The budget of an output where `roundings` more are allowed. Integers and FP8 that the op promises to the bit remain so.
Budget budget_of(const Op& op, const Problem& problem, size_t tensor, int roundings) {
  Budget budget = testing::budget_of(op, problem, tensor);
  const DType dtype = problem.tensors[tensor].dtype;
  if (roundings == 0 || is_integer(dtype) || (budget.exact && size_of(dtype) == 1)) return budget;
  budget.exact = false;
  double unit = kLeastUnit;
  for (size_t i = 0; i < op.tensors.size(); ++i)
    if (op.tensors[i].role != Role::out && problem.tensors[i].present && size_of(problem.tensors[i].dtype) > 1)
      unit = max_of(unit, unit_roundoff(problem.tensors[i].dtype));
  budget.of_value += roundings * unit;
  budget.of_magnitude += roundings * unit;
  budget.absolute += max_of(0x1p-126, roundings * smallest_positive(dtype));  // some take what f32 has below its normal numbers for 0
  return budget;
}

Comparison compare_all(const Op& op, const std::vector<Truth>& truths, const Problem& problem, int roundings,
                       const std::function<TensorView(size_t tensor)>& output, const std::string& where) {
  Comparison worst;
  for (const Truth& t : truths) {
    Comparison c = testing::compare(output(t.tensor), t.values, t.magnitudes, budget_of(op, problem, t.tensor, roundings));
    if (!c.ok) c.message = "`" + op.tensors[t.tensor].name + "` " + where + c.message;
    keep_worse(worst, c);
  }
  return worst;
}

/// Of each output (by tensor) the number of elements that the reference leaves alone; none where it does not care for some.
using LeftAlone = std::optional<std::map<size_t, i64>>;

LeftAlone left_alone(const std::vector<Truth>& truths) {
  std::map<size_t, i64> left;
  for (const Truth& t : truths)
    for (const double& value : t.values) {
      u64 bits;
      std::memcpy(&bits, &value, sizeof bits);
      if (bits == kUnspecifiedBits) return {};
      left[t.tensor] += bits == kUnwrittenBits;
    }
  return left;
}

/// A part of a call that can be computed alone.
struct Part {
  const char* name;  ///< "row"
  i64 count;
  bool alike;  ///< all leave the same elements alone
  void (*keep)(const Op& op, void* args, i64 at, std::vector<i32>& indices);
  TensorView (*of_output)(const Op& op, size_t tensor, const TensorView& view, i64 at);
};

TensorView row_of(const Op&, size_t, const TensorView& view, i64 at) { return view.slice(0, at, at + 1); }

/// The number of tokens that can be computed alone, 0 for none.
i64 token_count(const Op& op, const void* args) {
  testing::ArgsStorage one(op);
  std::memcpy(one.get(), args, op.args_bytes);
  std::vector<i32> indices;
  const size_t out = size_t(std::find_if(op.tensors.begin(), op.tensors.end(),
                                         [&](const TensorDef& t) { return t.role == Role::out && t.extents[0].is(op.row_tokens); }) -
                            op.tensors.begin());
  const i64 tokens = op.keep_token && out < op.tensors.size() ? op.tensor(args, out).shape[0] : 0;
  return tokens > 0 && op.keep_token(one.get(), 0, indices) ? tokens : 0;
}

/// Rows, else tokens, else columns; none: count is 0.
Part part_of(const Op& op, const void* args) {
  if (testing::outputs_can_be_sliced(op, args))
    return {"row", testing::row_count(op, args), false,
            [](const Op& o, void* a, i64 at, std::vector<i32>&) { testing::keep_rows(o, a, at, at + 1); }, row_of};
  if (const i64 tokens = token_count(op, args))
    return {"token", tokens, false, [](const Op& o, void* a, i64 at, std::vector<i32>& indices) { o.keep_token(a, at, indices); }, row_of};
  const auto keep = [](const Op& o, void* a, i64 at, std::vector<i32>&) {
    for (size_t i = 0; i < o.tensors.size(); ++i)
      if (TensorView& v = o.tensor(a, i); v.present()) v = testing::column_of(o, i, v, at);
  };
  return {"column", testing::column_count(op, args), true, keep, testing::column_of};
}

/// Whether all floating inputs that a part has for itself are finite numbers.
bool finite_part(const Op& op, const void* whole, const void* part) {
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorView& v = op.tensor(part, i);
    if (op.tensors[i].role == Role::out || !v.present() || is_integer(v.dtype) || v.numel() == op.tensor(whole, i).numel()) continue;
    bool finite = true;
    i64 index[kMaxRank] = {};
    testing::each_row(v, [&](char*, const i64* lead) {
      std::copy_n(lead, v.rank - 1, index);
      for (i64 j = 0; j < v.shape[v.rank - 1]; ++j) {
        index[v.rank - 1] = j;
        finite &= std::isfinite(load_element(v, index));
      }
    });
    if (!finite) return false;
  }
  return true;
}

/// Takes rows whose inputs are not finite out of the truth; how many are left.
i64 leave_out_special(const Op& op, const void* args, std::vector<Truth>& truths) {
  const i64 rows = testing::outputs_can_be_sliced(op, args) ? testing::row_count(op, args) : 0;
  if (rows < 2) return 1;
  i64 left = 0;
  for (i64 r = 0; r < rows; ++r) {
    testing::ArgsStorage one(op);
    std::memcpy(one.get(), args, op.args_bytes);
    testing::keep_rows(op, one.get(), r, r + 1);
    if (finite_part(op, args, one.get())) {
      ++left;
      continue;
    }
    for (Truth& t : truths) {
      const i64 length = i64(t.values.size()) / rows;
      std::fill_n(t.values.begin() + r * length, length, std::bit_cast<double>(kUnspecifiedBits));
    }
  }
  return left;
}

Comparison compare_parts(const testing::CaseArgs& host, const Outputs& outputs, const Part& part, const std::vector<i64>& some,
                         const Problem& problem, int roundings, LeftAlone& left) {
  const Op& op = host.op();
  std::mutex mutex;
  Comparison worst;
  testing::in_parallel(i64(some.size()), 1, [&](i64 begin, i64 end) {
    for (i64 k = begin; k < end; ++k) {
      const i64 at = some[size_t(k)];
      testing::ArgsStorage one(op);
      std::memcpy(one.get(), host.args(), op.args_bytes);
      std::vector<i32> indices;
      part.keep(op, one.get(), at, indices);
      if (roundings > 0 && !finite_part(op, host.args(), one.get())) {
        const std::lock_guard lock(mutex);
        left.reset();
        continue;
      }
      const std::vector<Truth> truths = testing::truth_of(op, one.get());
      const auto output = [&](size_t t) { return part.of_output(op, t, outputs.at(t).view, at); };
      const Comparison c = compare_all(op, truths, problem, roundings, output, part.name + (" " + std::to_string(at)) + ": ");
      const std::lock_guard lock(mutex);
      const LeftAlone of_part = left_alone(truths);
      if (!of_part || !left) left.reset();
      else
        for (const auto& [t, n] : *of_part) (*left)[t] = max_of((*left)[t], n * part.count);
      keep_worse(worst, c);
    }
  });
  return worst;
}

/// The number of elements that still hold the poison.
i64 unwritten(const TensorView& v) {
  const i64 size = size_of(v.dtype), length = v.shape[v.rank - 1], step = v.strides[v.rank - 1] * size;
  const u64 poison = ~u64(0);
  std::vector<const char*> rows;
  testing::each_row(v, [&](char* row, const i64*) { rows.push_back(row); });
  std::atomic<i64> count = 0;
  testing::in_parallel(i64(rows.size()), max_of<i64>(1, (1 << 20) / max_of<i64>(1, length)), [&](i64 begin, i64 end) {
    i64 found = 0;
    for (i64 r = begin; r < end; ++r)
      for (i64 j = 0; j < length; ++j) found += std::memcmp(rows[size_t(r)] + j * step, &poison, size_t(size)) == 0;
    count += found;
  });
  return count;
}

bool is_poison(const char* from, const char* to) {
  return std::all_of(from, to, [](char c) { return u8(c) == testing::kPoison; });
}

/// What is wrong with an output's memory besides its values; with `left`, elements are counted that were not written.
std::string damage_of(const testing::CaseArgs& host, const Outputs& outputs, const LeftAlone& left) {
  for (const auto& [i, output] : outputs) {
    const testing::CaseArgs::Buffer& b = host.buffer(i);
    const std::string& name = host.op().tensors[i].name;
    const char* begin = output.bytes.get();
    const i64 end = b.offset + output.view.extent() * size_of(output.view.dtype);
    if (!is_poison(begin, begin + b.offset)) return "`" + name + "` was overrun before its start";
    if (!is_poison(begin + end, begin + b.size)) return "`" + name + "` was overrun behind its end";
    if (!left || host.op().tensors[i].role != Role::out || is_integer(output.view.dtype)) continue;
    const auto expected = left->find(i);
    const i64 more = unwritten(output.view) - (expected == left->end() ? 0 : expected->second);
    if (more > 0) return "`" + name + "` has " + std::to_string(more) + " elements that were not written";
    if (more < 0) return "`" + name + "` has " + std::to_string(-more) + " elements that were to be left alone";
  }
  return "";
}

}  // namespace

std::vector<i64> sampled_rows(i64 rows, i64 wanted, u64 seed) {
  std::vector<i64> some;
  if (rows <= wanted) {
    for (i64 r = 0; r < rows; ++r) some.push_back(r);
    return some;
  }
  Random random(seed);
  some.push_back(0);
  if (wanted > 1) some.push_back(rows - 1);
  while (i64(some.size()) < wanted) {
    const i64 r = random.below(rows);
    if (std::find(some.begin(), some.end(), r) == some.end()) some.push_back(r);
  }
  std::sort(some.begin(), some.end());
  return some;
}

Verdict judge_timed(const testing::CaseArgs& host, DeviceSets& sets, int set, const Problem& problem, double whole_work, int roundings,
                    std::vector<Truth>* known) {
  const Op& op = host.op();
  Outputs outputs;
  for (size_t i = 0; i < op.tensors.size(); ++i)
    if (op.tensors[i].role != Role::in && host.tensor(i).present()) outputs.emplace(i, sets.download(set, i));
  const double work = testing::cost_of(op, problem, host.args()).flops / 2 + testing::operand_bytes(op, host.args());
  Verdict v;
  const Part part = part_of(op, host.args());
  LeftAlone left;
  if (work > whole_work && part.count > 1) {
    // As many as 20 s allow on one CPU, 2 to 8
    const i64 wanted = i64(std::clamp(20 * kWorkOfASecond / (work / double(part.count)), 2.0, 8.0));
    const std::vector<i64> some = sampled_rows(part.count, wanted, host.seed());
    v.checked = std::to_string(some.size()) + " of " + std::to_string(part.count) + " " + part.name + "s";
    left.emplace();
    v.comparison = compare_parts(host, outputs, part, some, problem, roundings, left);
    // Rows may each leave others alone
    if (left && !part.alike && std::any_of(left->begin(), left->end(), [](const auto& l) { return l.second > 0; })) left.reset();
  } else {
    v.checked = "all";
    std::vector<Truth> truths = known && !known->empty() ? *known : testing::truth_of(host);
    if (known && known->empty()) *known = truths;
    const bool some = roundings == 0 || leave_out_special(op, host.args(), truths) > 0;
    v.comparison = compare_all(op, truths, problem, roundings, [&](size_t t) { return outputs.at(t).view; }, "");
    if (!some)
      v.comparison.ok = false, v.comparison.error = HUGE_VAL,
      v.comparison.message = "nothing is compared: all rows have inputs that are not finite";
  }
  if (const std::string damage = damage_of(host, outputs, left); v.comparison.ok && !damage.empty()) {
    v.comparison.ok = false;
    v.comparison.error = HUGE_VAL;
    v.comparison.message = damage;
  }
  return v;
}

}  // namespace quern::bench
