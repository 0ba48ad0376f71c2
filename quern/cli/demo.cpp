// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// quern demo: a step of a decoder layer from a model file, one token a request, prompts, or both, each op checked on its actual inputs and
// the layer against one reference in double.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "quern/bench/ceiling.h"
#include "quern/bench/time_call.h"
#include "quern/cli/bench_output.h"
#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/cli/table.h"
#include "quern/testing/layer_run.h"

namespace quern::cli {

static std::string time_text(double us) {
  return us < 1000 ? fmt::format("{:.1f} us", us) : us < 1e6 ? fmt::format("{:.1f} ms", us / 1000) : fmt::format("{:.2f} s", us / 1e6);
}

/// Share of the device's ceiling: the floor set by bytes or operations, whichever is longer, over the time taken.
static std::string share_text(const testing::LayerStep& step, const bench::Ceilings& ceilings) {
  const double floor_us = ceilings.floor_us(step.cost);
  return floor_us > 0 ? fmt::format("{:.0f} %", 100 * floor_us / step.us) : "-";
}

using Json = nlohmann::ordered_json;

static Json to_json(const testing::LayerStep& s) {
  return {{"step", s.does},
          {"op", s.op},
          {"kernels", s.kernels},
          {"compiled", s.compiled},
          {"us", s.us},
          {"ok", s.comparison.ok},
          {"error", std::isfinite(s.comparison.error) ? Json(s.comparison.error) : Json("infinite")},
          {"message", s.comparison.message}};
}

/// What a step's requests do: "decode", "prefill", "mixed".
static const char* kind_of(const testing::LayerSizes& sizes) {
  const bool decodes = sizes.queries.empty() || std::find(sizes.queries.begin(), sizes.queries.end(), 1) != sizes.queries.end();
  const bool several = std::any_of(sizes.queries.begin(), sizes.queries.end(), [](i64 n) { return n > 1; });
  return decodes && several ? "mixed" : several ? "prefill" : "decode";
}

static void check_sizes(const testing::LayerSizes& sizes) {
  const auto fail = [](const char* what, const std::string& got, const std::string& expected) {
    throw Error(ErrorKind::value, "demo", what, got, expected);
  };
  for (const i64 length : sizes.lengths)
    if (length < 1 || length > 1 << 20) fail("lengths", "has " + std::to_string(length), "each in [1, 2^20]");
  if (sizes.queries.empty()) return;
  if (sizes.queries.size() != sizes.lengths.size())
    fail("queries", "has " + std::to_string(sizes.queries.size()) + " numbers", std::to_string(sizes.lengths.size()) + ", as lengths has");
  for (size_t b = 0; b < sizes.queries.size(); ++b)
    if (sizes.queries[b] < 1 || sizes.queries[b] > sizes.lengths[b])
      fail("queries", "has " + std::to_string(sizes.queries[b]), "1 to " + std::to_string(sizes.lengths[b]) + ", the request's length");
}

/// One step; adds to `steps` and `outputs`. Whether all was right.
static bool run_step(const DemoOptions& options, const Model& model, const testing::LayerSizes& sizes, Device& device, Json& steps,
                     Json& outputs) {
  const bool gpu = !device.info().emulated;
  if (!options.json) {
    fmt::print("one {} step of one {} layer, {} requests with {} cached tokens", kind_of(sizes), model.name, sizes.lengths.size(),
               fmt::join(sizes.lengths, ", "));
    if (!sizes.queries.empty()) fmt::print(", of which {} are of this step", fmt::join(sizes.queries, ", "));
    fmt::print(", on {} ({}{})\n", device.info().name, device.info().arch.name(), gpu ? "" : ", emulated on this CPU");
  }
  Progress progress(i64(model.layer.calls.size()) + 1);
  progress.step("weights");
  testing::LayerRun layer(model, sizes, device);

  bench::Ceilings ceilings;
  if (gpu) ceilings = bench::measure_ceilings(device);
  std::vector<std::string> header = {"step", "op", "kernel", "device", "from", "time", "error"};
  if (gpu) header.push_back("of the ceiling");
  Table table(header);
  bool right = true;
  for (size_t i = 0; i < layer.steps(); ++i) {
    progress.step(model.layer.calls[i].does);
    std::function<double(const std::function<void()>&)> time;
    if (gpu) time = [&](const std::function<void()>& call) { return bench::time_call(device, call).median_us; };
    const testing::LayerStep step = layer.step(i, time);
    right &= step.comparison.ok;
    std::vector<std::string> row = {step.does,
                                    step.op,
                                    short_kernel(step.kernels),
                                    gpu ? "cuda" : "emu",
                                    step.compiled ? "compiled" : "cached",
                                    time_text(step.us),
                                    fmt::format("{:.2f} of its bound{}", step.comparison.error, step.comparison.ok ? "" : " WRONG")};
    if (gpu) row.push_back(share_text(step, ceilings));
    table.add(row);
    steps.push_back(to_json(step));
    if (!options.json)
      progress.line(fmt::format("[{}/{}] {}: {}, {}", i + 1, layer.steps(), step.does, time_text(step.us),
                                step.comparison.ok ? "right" : "WRONG: " + step.comparison.message));
  }
  if (!options.json) fmt::print("\n{}\n", table.text());
  for (const testing::LayerOutput& output : layer.outputs()) {
    right &= output.ok();
    outputs.push_back({{"name", output.tensor},
                       {"ok", output.ok()},
                       {"relative_error", std::isfinite(output.relative_error) ? Json(output.relative_error) : Json("infinite")},
                       {"bound", output.bound}});
    if (!options.json)
      fmt::print("layer output {}: relative error {:.2e} against the whole layer in double, bound {:.2e}: {}\n", output.tensor,
                 output.relative_error, output.bound, output.ok() ? "right" : "WRONG");
  }
  if (!options.json && gpu)
    fmt::print("times by {}; ceilings measured now: copy {:.2f} TB/s, read {:.2f} TB/s, bf16 {:.0f} TFLOP/s ({})\n",
               bench::timer_name(device), ceilings.bytes_per_us / 1e6, ceilings.read_bytes_per_us / 1e6, ceilings.flops_per_us / 1e6,
               ceilings.flops_source);
  return right;
}

int demo(const DemoOptions& options) {
  Device& device = device_from_name(options.device);
  const Model model = load_model(options.model);
  testing::LayerSizes sizes;
  sizes.seed = options.seed;
  if (!options.lengths.empty()) sizes.lengths.assign(options.lengths.begin(), options.lengths.end());
  sizes.queries.assign(options.queries.begin(), options.queries.end());
  std::vector<testing::LayerSizes> all = {sizes};
  if (options.prefill) {  // two prompts; their next tokens beside a third prompt
    all.push_back(sizes);
    all[0].lengths = all[0].queries = {21, 9};
    all[1].lengths = {22, 10, 17}, all[1].queries = {1, 1, 17};
  }
  for (const testing::LayerSizes& one : all) check_sizes(one);
  bool right = true;
  Json runs = Json::array();
  for (size_t i = 0; i < all.size(); ++i) {
    Json steps = Json::array(), outputs = Json::array();
    if (i > 0 && !options.json) fmt::print("\n");
    const bool ok = run_step(options, model, all[i], device, steps, outputs);
    right &= ok;
    Json run{{"model", model.name}, {"device", device.info().name}, {"emulated", device.info().emulated}, {"lengths", all[i].lengths}};
    if (!all[i].queries.empty()) run["queries"] = all[i].queries;
    run["ok"] = ok, run["steps"] = steps, run["outputs"] = outputs;
    runs.push_back(run);
  }
  if (options.json) std::puts((options.prefill ? runs : runs[0]).dump(2).c_str());
  return right ? kRight : kWrong;
}

}  // namespace quern::cli
