// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// `quern bench --load`: what a process pays for a kernel that is on disk and not yet in memory.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "quern/cli/commands.h"
#include "quern/cli/sample.h"
#include "quern/cli/table.h"
#include "quern/jit/build.h"
#include "quern/testing/pairwise.h"

namespace quern::cli {

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

double p50(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

/// Medians of a kernel's repetitions, ms.
struct Loaded {
  std::string kernel;
  size_t bytes = 0;
  double find = 0;  ///< key, files, checksums
  double load = 0;  ///< by the driver, or the loader
  double total = 0;
};

/// What the cases of the ops reach on the device, each kernel once; `sample` of each op, evenly spread (0: all).
std::vector<jit::KernelSpec> reached(const BenchLoadOptions& options, const DeviceInfo& device) {
  std::vector<jit::KernelSpec> all;
  for (const Op* op : ops_named(options.op)) {
    std::vector<jit::KernelSpec> some;
    for (const Case& c : testing::pairwise(op->cases, [&](const Case& c) { return testing::runs(*op, c, device); })) {
      const Case full = testing::derived(*op, c);
      const testing::ArgsStorage args = testing::fake_args(*op, full);
      const Problem problem = bind(*op, args.get(), testing::options_of(*op, full));
      if (problem.empty) continue;
      const Plan plan = make_plan(*op, problem, device);
      for (i32 i = 0; i < plan.count; ++i)
        if (std::find(some.begin(), some.end(), plan.launches[i].spec) == some.end()) some.push_back(plan.launches[i].spec);
    }
    for (const size_t i : sample_of(some.size(), size_t(options.sample))) all.push_back(some[i]);
  }
  return all;
}

Loaded measure(const jit::KernelSpec& spec, Device& device, int repeats) {
  const jit::Target target = jit::target_of(device);
  const ImageKind kind = device.info().emulated ? ImageKind::shared_object : ImageKind::cubin;
  jit::build(spec, target);  // from now on it is on disk, and in the page cache
  Loaded result;
  std::vector<double> find, load, total;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = Clock::now();
    const jit::Compiled c = jit::build(spec, target);
    find.push_back(ms_since(begin));
    if (!c.from_cache) throw Error(ErrorKind::device, "the cache cannot keep kernels here: `quern doctor` says why");
    const Function function = device.load(kind, c.image, c.image_path, c.entry, device.info().smem_block);
    total.push_back(ms_since(begin));
    load.push_back(total.back() - find.back());
    device.unload(function);
    result.bytes = c.image.size();
  }
  result.kernel = jit::print(spec);
  result.find = p50(find);
  result.load = p50(load);
  result.total = p50(total);
  return result;
}

void print(const std::vector<Loaded>& all, bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Loaded& l : all)
      list.push_back({{"kernel", l.kernel}, {"bytes", l.bytes}, {"find_ms", l.find}, {"load_ms", l.load}, {"total_ms", l.total}});
    std::puts(list.dump(2).c_str());
    return;
  }
  Table table({"kernel", "bytes", "find ms", "load ms", "total ms"});
  std::vector<double> totals;
  for (const Loaded& l : all) {
    totals.push_back(l.total);
    table.add(
        {l.kernel, std::to_string(l.bytes), fmt::format("{:.3f}", l.find), fmt::format("{:.3f}", l.load), fmt::format("{:.3f}", l.total)});
  }
  fmt::print("{}", table.text());
  if (!totals.empty())
    fmt::print("{} kernels from disk: p50 {:.2f} ms, max {:.2f} ms\n", totals.size(), p50(totals),
               *std::max_element(totals.begin(), totals.end()));
}

}  // namespace

int bench_load(const BenchLoadOptions& options) {
  Device& device = device_from_name(options.device);
  std::vector<Loaded> all;
  for (const jit::KernelSpec& spec : reached(options, device.info())) all.push_back(measure(spec, device, options.repeats));
  print(all, options.json);
  return kRight;
}

}  // namespace quern::cli
