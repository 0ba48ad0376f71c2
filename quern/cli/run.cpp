// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "quern/base/host_dtype.h"
#include "quern/cli/commands.h"
#include "quern/cli/table.h"

namespace quern::cli {

namespace {

struct Statistics {
  double least = HUGE_VAL, most = -HUGE_VAL, sum = 0, squares = 0;
  i64 finite = 0, odd = 0;  ///< odd: NaN or infinite
};

Statistics statistics(const TensorView& v) {
  Statistics s;
  std::vector<double> row(v.rank ? size_t(v.shape[v.rank - 1]) : 0);
  testing::each_row(v, [&](char* at, const i64*) {
    read_row(at, v.dtype, i64(row.size()), v.strides[v.rank - 1], row.data());
    for (const double x : row) {
      if (!std::isfinite(x)) {
        ++s.odd;
        continue;
      }
      ++s.finite;
      s.least = std::min(s.least, x), s.most = std::max(s.most, x), s.sum += x, s.squares += x * x;
    }
  });
  return s;
}

void print_outputs(const testing::CaseArgs& args, const std::vector<testing::Truth>& truths, const Budget& budget) {
  Table table({"output", "shape", "dtype", "mean", "std", "min", "max", "nan/inf", "error/tolerance"});
  for (const testing::Truth& t : truths) {
    const TensorView v = args.tensor(t.tensor);
    const Statistics s = statistics(v);
    const double n = double(std::max<i64>(1, s.finite)), mean = s.sum / n;
    const testing::Comparison c = testing::compare(v, t.values, t.magnitudes, budget);
    const auto text = [&](double x) { return s.finite ? fmt::format("{:.5g}", x) : std::string("-"); };
    table.add({args.op().tensors[t.tensor].name, shape_string(v), name(v.dtype), text(mean),
               text(std::sqrt(std::max(0.0, s.squares / n - mean * mean))), text(s.least), text(s.most),
               std::to_string(s.odd), fmt::format("{:.3g}", c.error)});
  }
  fmt::print("{}", table.text());
}

}  // namespace

int run_op(const RunCommandOptions& options) {
  const Op& op = find_op(options.op);
  const Devices devices(options.on);
  testing::CaseArgs args(op, testing::parse_case(op, options.words), options.seed);
  RunOptions run_options = testing::options_of(op, args.which());
  const Problem problem = bind(op, args.args(), run_options);
  const std::vector<testing::Truth> truths = testing::truth_of(args);
  bool right = true;
  for (const testing::CheckDevice& on : devices.list()) {
    run_options.device = on.device;
    testing::DeviceArgs device_args(args, *on.device);
    std::vector<double> us;
    for (int i = 0; i < std::max(1, options.iterations); ++i) {
      args.reset();
      device_args.upload();
      const auto start = std::chrono::steady_clock::now();
      run(op, device_args.args(), run_options);
      on.device->synchronize(Stream{});
      us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    device_args.download();
    fmt::print("{} {} {}\n", op.id, testing::case_text(op, args.given()), on.words);
    if (!problem.empty) fmt::print("{}\n", testing::kernels_text(make_plan(op, problem, on.device->info())));
    const Budget budget = testing::budget_of(op, problem);
    print_outputs(args, truths, budget);
    const testing::Comparison c = testing::judge(args, truths, budget);
    fmt::print("{}{}; the call took {:.0f} us the first time", c.ok ? "right" : "WRONG: ", c.message, us[0]);
    if (us.size() > 1) {
      std::nth_element(us.begin() + 1, us.begin() + 1 + ptrdiff_t(us.size() - 1) / 2, us.end());
      fmt::print(", then {:.0f} us (wall, with synchronisation; not a benchmark)", us[1 + (us.size() - 1) / 2]);
    }
    fmt::print("\n");
    right &= c.ok;
  }
  return right ? kRight : kWrong;
}

}  // namespace quern::cli
