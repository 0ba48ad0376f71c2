// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// `quern bench layer`: the decoder layer of a model file as a whole, beside its memory floor and the sum of its calls.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "quern/base/version.h"
#include "quern/bench/nvml.h"
#include "quern/bench/time_layer.h"
#include "quern/cli/bench_output.h"
#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/cli/table.h"

namespace quern::cli {

namespace {

struct LayerCase {
  i64 batch = 1, length = 512, page_size = 16;
};

[[noreturn]] void fail_word(const std::string& name, const std::string& got, const std::string& expected) {
  throw Error(ErrorKind::value, "bench layer", name, "is '" + got + "'", expected);
}

/// "1,4,16", each in [1, most].
std::vector<i64> parse_sizes(const std::string& name, const std::string& text, i64 most) {
  std::vector<i64> sizes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    const bool digits = !one.empty() && one.size() <= 9 && one.find_first_not_of("0123456789") == std::string::npos;
    const i64 value = digits ? std::stoll(one) : 0;
    if (value < 1 || value > most) fail_word(name, text, "sizes in [1, " + std::to_string(most) + "], as in 1,4");
    sizes.push_back(value);
    begin = end + 1;
  }
  return sizes;
}

/// Every combination of what the words name; without words the three cases that decode is judged by.
std::vector<LayerCase> cases_of(const std::vector<std::string>& words, bool emulated) {
  if (words.empty() && emulated) return {{1, 512}};
  if (words.empty()) return {{1, 512}, {4, 512}, {16, 2048}};
  std::vector<i64> batches = {1}, lengths = {512}, page_sizes = {16};
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals), text = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name == "batch") batches = parse_sizes(name, text, 4096);
    else if (name == "length") lengths = parse_sizes(name, text, 1 << 20);
    else if (name == "page_size") page_sizes = parse_sizes(name, text, 1 << 16);
    else fail_word("parameter", word, "batch=1,4 length=512 page_size=16");
  }
  std::vector<LayerCase> cases;
  for (const i64 batch : batches)
    for (const i64 length : lengths)
      for (const i64 page_size : page_sizes) cases.push_back({batch, length, page_size});
  return cases;
}

/// A case and what came of it.
struct Measured {
  LayerCase which;
  std::unique_ptr<bench::TimedLayer> layer;  ///< null: it could not be made
  std::string wrong, clocks;
  u32 sm_clock_mhz = 0;
};

std::string us_quantiles(const bench::Timing& t) { return t.runs > 1 ? us_text(t.p10_us) + ".." + us_text(t.p90_us) : "-"; }
std::string ratio_text(double us, double floor_us) { return us > 0 && floor_us > 0 ? fmt::format("{:.3f}", us / floor_us) : "-"; }

void print_ways(const bench::TimedLayer& layer, double floor_us) {
  Table table({"run as", "PDL", "us", "p10..p90", "x floor", "in a row us", "x floor", "wall us", "host us"});
  for (const bench::LayerWay& w : layer.ways())
    table.add({w.graph ? "graph" : "eager", w.pdl ? "on" : "off", us_text(w.alone.median_us), us_quantiles(w.alone),
               ratio_text(w.alone.median_us, floor_us), us_text(w.in_a_row.median_us), ratio_text(w.in_a_row.median_us, floor_us),
               us_text(w.wall_us), us_text(w.host_us)});
  fmt::print("{}", table.text());
}

void print_calls(const bench::TimedLayer& layer, const bench::Ceilings& ceilings, bool gpu) {
  std::vector<std::string> header = {"call", "kernel", "launches", "memory KB"};
  if (gpu) header.insert(header.end(), {"floor us", "alone us", "x floor", "call us", "launch us"});
  header.push_back("error");
  Table table(header);
  double alone = 0, call_us = 0, launch_us = 0;
  const auto add = [&](const std::string& does, const std::string& kernel, int launches, double bytes, double floor_us, double us,
                       double call, double launch, const std::string& error) {
    std::vector<std::string> row = {does, kernel, std::to_string(launches), fmt::format("{:.1f}", bytes / 1e3)};
    if (gpu) row.insert(row.end(), {us_text(floor_us), us_text(us), ratio_text(us, floor_us), us_text(call), us_text(launch)});
    row.push_back(error);
    table.add(row);
  };
  for (const bench::LayerCallTime& c : layer.calls()) {
    alone += c.timing.median_us, call_us += c.host.call_us, launch_us += c.host.launch_us;
    add(c.does, short_kernel(c.kernels), c.launches, c.memory_bytes, ceilings.floor_us({c.memory_bytes, c.cost.flops}), c.timing.median_us,
        c.host.call_us, c.host.launch_us, fmt::format("{:.2f} of its bound", c.error));
  }
  add("sum", "", layer.launches(), layer.cost().bytes, layer.floor_us(ceilings), alone, call_us, launch_us, "");
  fmt::print("{}", table.text());
  if (!gpu) return;
  for (const bench::LayerWay& w : layer.ways())
    if (w.graph) fmt::print("{} less the sum of its calls alone: {:+.1f} us\n", name_of(w), w.alone.median_us - alone);
}

void print_case(const Measured& m, const Model& model, const bench::Ceilings& ceilings, bool gpu) {
  fmt::print("one decode layer of {}, batch {}, {} tokens each, pages of {}: ", model.name, m.which.batch, m.which.length,
             m.which.page_size);
  if (!m.wrong.empty()) {
    fmt::print("WRONG: {}\n\n", m.wrong);
    return;
  }
  fmt::print("right, the same bits by every way; {} calls, {} launches\n", m.layer->calls().size(), m.layer->launches());
  const double bytes = m.layer->cost().bytes, floor_us = m.layer->floor_us(ceilings);
  fmt::print("{:.2f} MB have to come from memory{}\n", bytes / 1e6, gpu ? fmt::format(": floor {:.2f} us", floor_us) : "");
  print_ways(*m.layer, floor_us);
  print_calls(*m.layer, ceilings, gpu);
  std::puts("");
}

/// Lines of the CSV: three of each way that was timed (alone, in a row, by the wall clock), one of each call.
std::vector<bench::BenchResult> results_of(const Measured& m, const Model& model, Device& device, const bench::Ceilings& ceilings,
                                           bool cold) {
  bench::BenchResult blank;
  blank.op = "layer";
  blank.device = std::string(device.info().name) + (device.info().emulated ? " (emulated)" : "");
  blank.provider = "quern";
  blank.sm_clock_mhz = m.sm_clock_mhz;
  blank.cold = cold && !device.info().emulated;
  blank.ok = m.wrong.empty();
  blank.message = m.wrong;
  const std::string which =
      fmt::format("model={} batch={} length={} page_size={}", model.name, m.which.batch, m.which.length, m.which.page_size);
  blank.which = which;
  if (!m.layer || !blank.ok) return {blank};
  blank.checked = "all";
  std::vector<bench::BenchResult> results;
  for (const bench::LayerCallTime& c : m.layer->calls()) blank.error = max_of(blank.error, c.error);
  blank.cost = m.layer->cost();
  blank.floor_us = m.layer->floor_us(ceilings);
  for (const bench::LayerWay& w : m.layer->ways()) {
    bench::BenchResult r = blank;
    r.which = fmt::format("{} as={} pdl={}", which, w.graph ? "graph" : "eager", w.pdl);
    r.timing = w.alone;
    results.push_back(r);
    if (w.in_a_row.runs == 0) continue;
    r.which += " in_a_row=true";
    r.cold = false;
    r.timing = w.in_a_row;
    r.host.call_us = w.host_us;
    results.push_back(r);
    r.timing = {.median_us = w.wall_us, .runs = w.in_a_row.runs, .timer = "wall clock"};
    results.push_back(r);
  }
  for (const bench::LayerCallTime& c : m.layer->calls()) {
    bench::BenchResult r = blank;
    r.op = c.op, r.which = which + " call=" + c.does, r.kernel = c.kernels;
    r.timing = c.timing, r.host = c.host, r.error = c.error;
    r.cost = {c.memory_bytes, c.cost.flops};
    r.floor_us = ceilings.floor_us(r.cost);
    results.push_back(r);
  }
  return results;
}

/// Makes, judges and times the ways of a case. Its calls alone are timed behind all cases: by then CUPTI has been at work.
Measured measure(const LayerCase& which, const Model& model, Device& device, const BenchLayerOptions& options) {
  Measured m{which, nullptr, "", "", 0};
  const std::string name = fmt::format("batch {} length {} ", which.batch, which.length);
  Progress progress(i64(model.layer.calls.size()) + 6);
  const auto step = [&](const std::string& what) { progress.step(name + what); };
  try {
    step("weights");
    testing::LayerSizes sizes{std::vector<i64>(size_t(which.batch), which.length), which.page_size, options.seed};
    bench::TimingOptions timing;
    timing.cold = !options.hot;
    timing.budget_ms = options.budget_ms;
    m.layer = std::make_unique<bench::TimedLayer>(model, sizes, device, timing);
    m.wrong = m.layer->judge(step);
    step("times");
    if (m.wrong.empty()) m.wrong = m.layer->time_ways();
    if (m.wrong.empty() && !device.info().emulated && nvml_available()) {
      const GpuState state = m.layer->state_at_work();
      m.sm_clock_mhz = state.sm_mhz, m.clocks = text(state);
    }
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::internal || e.kind() == ErrorKind::value) throw;
    m.wrong = std::string(quern::name(e.kind())) + " error: " + e.what();
  }
  return m;
}

/// Rates of the floor: as stated, or measured now.
bench::Ceilings ceilings_of(Device& device, const BenchLayerOptions& options) {
  bench::Ceilings ceilings;
  if (options.rate <= 0) return device.info().emulated ? ceilings : bench::measure_ceilings(device);
  ceilings.bytes_per_us = options.rate * 1e6;
  ceilings.copy_source = ceilings.flops_source = "stated by --rate";
  return ceilings;
}

}  // namespace

int bench_layer(const BenchLayerOptions& options) {
  Device& device = device_from_name(options.device);
  const bool gpu = !device.info().emulated;
  const Model model = load_model(options.model);
  const std::vector<LayerCase> cases = cases_of(options.words, !gpu);
  CsvFile csv(options.csv);
  std::vector<Measured> all;
  for (const LayerCase& which : cases) all.push_back(measure(which, model, device, options));
  const bench::Ceilings ceilings = ceilings_of(device, options);
  for (Measured& m : all)
    if (m.wrong.empty()) m.layer->time_calls();
  std::vector<std::vector<bench::Field>> results;
  for (const Measured& m : all)
    for (const bench::BenchResult& r : results_of(m, model, device, ceilings, !options.hot)) {
      results.push_back(bench::fields_of(r, QN_VERSION));
      csv.add(results.back());
    }
  const bool right = std::all_of(all.begin(), all.end(), [](const Measured& m) { return m.wrong.empty(); });
  if (options.json) return print_json(ceilings, results), right ? kRight : kWrong;
  if (gpu && options.rate <= 0) print_ceilings(ceilings);
  if (gpu && options.rate > 0) fmt::print("floors at {:.2f} TB/s, as stated by --rate\n", options.rate);
  for (const Measured& m : all) print_case(m, model, ceilings, gpu);
  const std::string& clocks = all.back().clocks;
  fmt::print("on {} ({}), L2 {}, layers timed by {}{}\n", device.info().name, gpu ? device.info().arch.name() : "emulated on this CPU",
             !gpu          ? "absent"
             : options.hot ? "as the last run left it"
                           : "cold",
             gpu ? "CUDA events" : "wall clock", clocks.empty() ? "" : ", after the last case " + clocks);
  if (!gpu) std::puts("the graphs' times, floors and times of calls alone need a GPU");
  return right ? kRight : kWrong;
}

}  // namespace quern::cli
