// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// quern trace-report: where the time of recorded calls goes. Each distinct call is made again, and timed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "quern/bench/ceiling.h"
#include "quern/bench/time_call.h"
#include "quern/cli/bench_output.h"
#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/cli/table.h"
#include "quern/testing/replay.h"

namespace quern::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Calls of one op with the same extents, dtypes, options and kernels, that move about the same bytes: those of attention depend on
/// lengths.
struct Group {
  std::string op, sizes, kernels, folder;  ///< of the first
  i64 calls = 0;
  Cost cost;                    ///< of that one; 0 where it has no data
  double us = 0, floor_us = 0;  ///< of one call; 0: not known
  std::string note;             ///< why there is no time
};

/// "tokens=3 hidden=96 x=bf16".
std::string sizes_of(const testing::TracedCall& call, const Problem& problem) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  for (size_t i = 0; i < call.op->axes.size(); ++i)
    if (problem.axes[i] != 0) add(fmt::format("{}={}", name(call.op->axes[i]), problem.axes[i]));
  for (size_t i = 0; i < call.op->tensors.size(); ++i)
    if (problem.tensors[i].present && (i == 0 || problem.tensors[i].dtype != problem.tensors[0].dtype))
      add(fmt::format("{}={}", call.op->tensors[i].name, name(problem.tensors[i].dtype)));
  if (problem.batch_invariant) add("batch_invariant");
  return text;
}

std::vector<Group> groups_of(const std::string& folder, bool trust_hooks) {
  std::map<std::string, size_t> places;
  std::vector<Group> groups;
  for (const std::string& one : testing::traced_calls(folder)) {
    const testing::TracedCall call = testing::read_traced_call(one, trust_hooks);
    const std::string sizes = sizes_of(call, bind(*call.op, call.args.get(), call.options));
    Cost cost;
    if (call.left_out.empty()) cost = testing::cost_of(call);
    const std::string bytes = cost.bytes > 0 ? std::to_string(std::lround(4 * std::log2(cost.bytes))) : "";  // steps of 19 %
    const auto [place, fresh] = places.try_emplace(call.op->id + "\n" + sizes + "\n" + call.kernels + "\n" + bytes, groups.size());
    if (fresh)
      groups.push_back({call.op->id, sizes, call.kernels, one, 0, cost, 0, 0, call.left_out.empty() ? "" : "no data: " + call.left_out});
    Group& group = groups[place->second];
    ++group.calls;
  }
  return groups;
}

void time_group(Group& group, bool trust_hooks, Device& device, const bench::Ceilings& ceilings) {
  if (!group.note.empty()) return;
  try {
    const testing::TracedCall call = testing::read_traced_call(group.folder, trust_hooks);
    testing::RecordedCall again(call, device);
    again.run();
    device.synchronize(Stream{});
    group.us = bench::time_call(device, [&] { again.run(); }).median_us;
    if (!device.info().emulated) group.floor_us = ceilings.floor_us(group.cost);
  } catch (const Error& e) { group.note = e.what(); }
}

Json to_json(const Group& g) {
  return {{"op", g.op},
          {"sizes", g.sizes},
          {"kernels", g.kernels},
          {"calls", g.calls},
          {"bytes", g.cost.bytes},
          {"flops", g.cost.flops},
          {"us", g.note.empty() ? Json(g.us) : Json()},
          {"floor_us", g.floor_us > 0 ? Json(g.floor_us) : Json()},
          {"folder", g.folder},
          {"note", g.note}};
}

}  // namespace

int trace_report(const TraceReportOptions& options) {
  std::vector<Group> groups = groups_of(options.folder, options.trust_hooks);
  if (groups.empty())
    throw Error(ErrorKind::value, "", "trace-report", "is given '" + options.folder + "', which holds no recorded calls",
                "a folder that QN_TRACE named");
  Device& device = device_from_name(options.device);
  const bool gpu = !device.info().emulated;
  bench::Ceilings ceilings;
  if (gpu) ceilings = bench::measure_ceilings(device);
  Progress progress(i64(groups.size()));
  for (Group& group : groups) {
    progress.step(group.op);
    time_group(group, options.trust_hooks, device, ceilings);
  }
  double all_us = 0, all_floor = 0;
  for (const Group& g : groups) all_us += double(g.calls) * g.us, all_floor += double(g.calls) * g.floor_us;
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return double(a.calls) * a.us > double(b.calls) * b.us; });
  const bool timed = std::any_of(groups.begin(), groups.end(), [](const Group& g) { return g.note.empty(); });
  if (options.json) {
    Json list = Json::array();
    for (const Group& g : groups) list.push_back(to_json(g));
    std::puts(Json{{"device", device.info().name},
                   {"emulated", bool(device.info().emulated)},
                   {"timer", bench::timer_name(device)},
                   {"calls", list},
                   {"us", all_us},
                   {"floor_us", gpu ? Json(all_floor) : Json()}}
                  .dump(2)
                  .c_str());
    return timed ? kRight : kNotCompared;
  }
  fmt::print("calls of {} on {} ({}{}), times by {}\n", options.folder, device.info().name, device.info().arch.name(),
             gpu ? "" : ", emulated on this CPU", bench::timer_name(device));
  Table table({"op", "calls", "us a call", "of all", "of the floor", "MB", "sizes", "kernels"});
  for (const Group& g : groups) {
    if (!g.note.empty()) continue;
    table.add({g.op, std::to_string(g.calls), fmt::format("{:.1f}", g.us), fmt::format("{:.1f} %", 100 * double(g.calls) * g.us / all_us),
               g.floor_us > 0 ? fmt::format("{:.0f} %", 100 * g.floor_us / g.us) : "-",
               g.cost.bytes > 0 ? fmt::format("{:.3g}", g.cost.bytes / 1e6) : "-", g.sizes, short_kernel(g.kernels)});
  }
  fmt::print("{}\n", table.text());
  std::map<std::string, i64> untimed;  // calls by the reason
  for (const Group& g : groups)
    if (!g.note.empty()) untimed[g.note] += g.calls;
  for (const auto& [note, calls] : untimed) fmt::print("{} calls have no time: {}\n", calls, note);
  fmt::print("all: {:.1f} us{}\n", all_us, gpu && all_floor > 0 ? fmt::format(", floor {:.1f} us", all_floor) : "");
  return timed ? kRight : kNotCompared;
}

}  // namespace quern::cli
