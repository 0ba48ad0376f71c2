// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// `quern bench --compile`: what a cold start costs. Every kernel that the ops' cases reach, compiled anew for each
// arch.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/cli/sample.h"
#include "quern/cli/table.h"
#include "quern/jit/build.h"
#include "quern/op/variants.h"
#include "quern/testing/pairwise.h"

namespace quern::cli {

namespace {

/// A kernel to compile, or a variant that an arch refuses for every case.
struct Item {
  std::string op, kernel;
  Arch arch;
  jit::KernelSpec spec;
  jit::Compiled compiled;
  std::string rejected, error;

  bool bad() const {
    return !error.empty() || compiled.spill_bytes > 0 || compiled.stack_bytes > 0 || compiled.serialised_wgmma ||
           compiled.ignored_setmaxnreg;
  }
  std::string note() const {
    if (!rejected.empty()) return "rejected: " + rejected;
    if (!error.empty()) return "ERROR " + error.substr(0, error.find('\n'));
    std::string s;
    if (compiled.stack_bytes > 0) s += fmt::format("local memory {} B ", compiled.stack_bytes);
    if (compiled.serialised_wgmma) s += "C7510 wgmma serialised ";
    if (compiled.ignored_setmaxnreg) s += "C7508 setmaxnreg ignored ";
    return s;
  }
};

/// Plans a case with one variant; false with the reason when the arch or the op refuses.
bool try_plan(const Op& op, Case which, size_t variant, const DeviceInfo& device, Plan& plan, std::string& why) {
  which.try_emplace("variant", double(variant));
  try {
    const testing::ArgsStorage args = testing::fake_args(op, which);
    const Problem problem = bind(op, args.get(), testing::options_of(op, which));
    if (problem.empty) return plan.count = 0, true;
    plan = make_plan(op, problem, device);
    return true;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::internal) throw;
    why = e.what();
    return false;
  }
}

/// Of the items from `begin` on keeps these.
void thin(std::vector<Item>& items, size_t begin, const std::vector<size_t>& kept) {
  std::vector<Item> some;
  for (const size_t i : kept) some.push_back(std::move(items[begin + i]));
  items.resize(begin);
  std::move(some.begin(), some.end(), std::back_inserter(items));
}

void add_reached(const Op& op, Arch arch, std::vector<Item>& items) {
  const DeviceInfo device = device_info_of(arch);
  const std::vector<Case> cases = testing::pairwise(op.cases, [&](const Case& c) { return testing::runs(op, c, device_info_of(Arch{})); });
  for (size_t v = 0; v < op.variants.size(); ++v) {
    bool ran = false;
    std::string why;
    for (const Case& c : cases) {
      const Case which = testing::derived(op, c);
      if (const auto named = which.find("variant"); named != which.end() && size_t(i64(named->second) % kVariantCodes) != v) continue;
      Plan plan;
      if (!try_plan(op, which, v, device, plan, why)) continue;
      ran = true;
      for (i32 i = 0; i < plan.count; ++i) {
        const jit::KernelSpec& spec = plan.launches[i].spec;
        const bool known =
            std::any_of(items.begin(), items.end(), [&](const Item& x) { return x.rejected.empty() && x.arch == arch && x.spec == spec; });
        if (!known) items.push_back({op.id, jit::print(spec), arch, spec, {}, "", ""});
      }
    }
    if (!ran && !why.empty()) items.push_back({op.id, op.variants[v].name, arch, {}, {}, why, ""});
  }
}

void compile_all(std::vector<Item>& items, int threads) {
  Progress progress(i64(items.size()));
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  const auto work = [&] {
    for (size_t i; (i = next++) < items.size();) {
      Item& item = items[i];
      if (item.rejected.empty()) {
        try {
          item.compiled = jit::build(item.spec, {.arch = item.arch}, true);
        } catch (const Error& e) { item.error = e.what(); }
      }
      std::lock_guard lock(mutex);
      progress.step(item.arch.name() + " " + item.op);
    }
  };
  if (threads <= 0) threads = 1;  // a stopwatch wants the machine for itself
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work);
  work();
  for (std::thread& t : pool) t.join();
}

/// Times of what compiled, ascending.
std::vector<double> times(const std::vector<Item>& items) {
  std::vector<double> ms;
  for (const Item& i : items)
    if (i.rejected.empty() && i.error.empty()) ms.push_back(i.compiled.compile_ms);
  std::sort(ms.begin(), ms.end());
  return ms;
}

void print_json(const std::vector<Item>& items) {
  nlohmann::ordered_json j = nlohmann::ordered_json::array();
  for (const Item& i : items) {
    nlohmann::ordered_json x = {{"op", i.op}, {"kernel", i.kernel}, {"arch", i.arch.name()}};
    if (!i.rejected.empty()) x["rejected"] = i.rejected;
    else if (!i.error.empty()) x["error"] = i.error;
    else {
      x["compile_ms"] = i.compiled.compile_ms;
      x["registers"] = i.compiled.registers;
      x["spill_bytes"] = i.compiled.spill_bytes;
      x["stack_bytes"] = i.compiled.stack_bytes;
      x["serialised_wgmma"] = i.compiled.serialised_wgmma;
      x["ignored_setmaxnreg"] = i.compiled.ignored_setmaxnreg;
      x["image_bytes"] = i.compiled.image.size();
    }
    j.push_back(std::move(x));
  }
  std::puts(j.dump(2).c_str());
}

void print_table(const std::vector<Item>& items) {
  Table table({"kernel", "arch", "ms", "registers", "spills", "note"});
  for (const Item& i : items) {
    const bool done = i.rejected.empty() && i.error.empty();
    table.add({i.kernel, i.arch.name(), done ? fmt::format("{:.0f}", i.compiled.compile_ms) : "-",
               done ? std::to_string(i.compiled.registers) : "-", done ? std::to_string(i.compiled.spill_bytes) : "-", i.note()});
  }
  fmt::print("{}", table.text());
  const std::vector<double> ms = times(items);
  if (!ms.empty()) fmt::print("{} compiles: p50 {:.0f} ms, max {:.0f} ms\n", ms.size(), ms[(ms.size() - 1) / 2], ms.back());
}

}  // namespace

int bench_compile(const BenchCompileOptions& options) {
  std::vector<Arch> archs(known_archs().begin(), known_archs().end());
  if (!options.archs.empty()) {
    archs.clear();
    for (const std::string& a : options.archs) archs.push_back(Arch::parse(a));
  }
  std::vector<Item> items;
  for (const Op* op : ops_named(options.op))
    for (const Arch arch : archs) {
      const size_t begin = items.size();
      add_reached(*op, arch, items);
      thin(items, begin, sample_of(items.size() - begin, size_t(options.sample), options.rotate));
    }
  compile_all(items, options.threads);
  if (options.json) print_json(items);
  else print_table(items);
  const bool nothing = !items.empty() && times(items).empty();
  for (const Item& i : items)
    if (nothing && !i.error.empty()) throw Error(ErrorKind::compile, i.error);
  return std::any_of(items.begin(), items.end(), [](const Item& i) { return i.bad(); }) ? kWrong : kRight;
}

}  // namespace quern::cli
