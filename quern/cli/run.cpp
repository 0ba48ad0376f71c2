// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "quern/base/host_dtype.h"
#include "quern/cli/commands.h"
#include "quern/cli/source_note.h"
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

using Json = nlohmann::ordered_json;

/// What one device made of the call.
struct RunResult {
  std::string device, kernels;
  Json outputs = Json::array();
  testing::Comparison comparison;
  std::vector<double> us;  ///< of each run
};

Json number(double x) { return std::isfinite(x) ? Json(x) : Json("infinite"); }

Json outputs_json(const testing::CaseArgs& args, const std::vector<testing::Truth>& truths, const Problem& problem) {
  Json outputs = Json::array();
  for (const testing::Truth& t : truths) {
    const TensorView v = args.tensor(t.tensor);
    const Statistics s = statistics(v);
    const double n = double(std::max<i64>(1, s.finite)), mean = s.sum / n;
    const testing::Comparison c = testing::compare(v, t.values, t.magnitudes, testing::budget_of(args.op(), problem, t.tensor));
    const auto value = [&](double x) { return s.finite ? Json(x) : Json(); };
    outputs.push_back({{"name", args.op().tensors[t.tensor].name},
                       {"shape", std::vector<i64>(v.shape, v.shape + v.rank)},
                       {"dtype", name(v.dtype)},
                       {"mean", value(mean)},
                       {"std", value(std::sqrt(std::max(0.0, s.squares / n - mean * mean)))},
                       {"min", value(s.least)},
                       {"max", value(s.most)},
                       {"odd", s.odd},
                       {"error", number(c.error)}});
  }
  return outputs;
}

/// Three digits or so: "85 us", "381 ms", "12.3 s".
std::string time_text(double us) {
  return us < 10e3 ? fmt::format("{:.0f} us", us) : us < 10e6 ? fmt::format("{:.0f} ms", us / 1e3) : fmt::format("{:.1f} s", us / 1e6);
}

void print(const RunResult& r, const std::string& called, const std::string& made) {
  fmt::print("{} {}\n", called, r.device);
  if (!made.empty()) fmt::print("runs as {}\n", made);
  if (!r.kernels.empty()) fmt::print("{}\n", r.kernels);
  Table table({"output", "shape", "dtype", "mean", "std", "min", "max", "nan/inf", "error/tolerance"});
  for (const Json& o : r.outputs) {
    const auto text = [&](const char* key) { return o[key].is_null() ? std::string("-") : fmt::format("{:.5g}", o[key].get<double>()); };
    table.add({o["name"], fmt::format("[{}]", fmt::join(o["shape"].get<std::vector<i64>>(), ", ")), o["dtype"], text("mean"), text("std"),
               text("min"), text("max"), std::to_string(o["odd"].get<i64>()),
               o["error"].is_string() ? "inf" : fmt::format("{:.3g}", o["error"].get<double>())});
  }
  fmt::print("{}{}{}; the call took {} the first time, compile included", table.text(),
             r.comparison.ok ? "right" : "WRONG: ", r.comparison.message, time_text(r.us[0]));
  if (std::vector<double> us(r.us.begin() + 1, r.us.end()); !us.empty()) {
    std::nth_element(us.begin(), us.begin() + ptrdiff_t(us.size() - 1) / 2, us.end());
    fmt::print(", then {} (wall, with synchronisation; not a benchmark)", time_text(us[(us.size() - 1) / 2]));
  }
  fmt::print("\n");
}

}  // namespace

int run_op(const RunCommandOptions& options) {
  if (!options.json) print_source_note();
  const Op& op = find_op(options.op);
  const Devices devices(options.on);
  testing::CaseArgs args(op, testing::parse_case(op, options.words), options.seed);
  RunOptions run_options = testing::options_of(op, args.which());
  const Problem problem = bind(op, args.args(), run_options);
  const std::vector<testing::Truth> truths = testing::truth_of(args);
  bool right = true;
  Json results = Json::array();
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
    RunResult r;
    r.device = on.words;
    r.us = us;
    if (!problem.empty) r.kernels = testing::kernels_text(make_plan(op, problem, on.device->info()));
    r.outputs = outputs_json(args, truths, problem);
    r.comparison = testing::judge(args, truths, problem);
    right &= r.comparison.ok;
    const std::string which = testing::case_text(op, args.given()), made = testing::made_of(op, args.given());
    if (!options.json) print(r, op.id + " " + which, made);
    results.push_back({{"op", op.id},
                       {"case", which},
                       {"runs_as", made},
                       {"device", r.device},
                       {"kernels", r.kernels},
                       {"ok", r.comparison.ok},
                       {"error", number(r.comparison.error)},
                       {"message", r.comparison.message},
                       {"us", us},
                       {"outputs", r.outputs}});
  }
  if (options.json) std::puts(results.dump(2).c_str());
  return right ? kRight : kWrong;
}

}  // namespace quern::cli
