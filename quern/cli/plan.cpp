// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Explains what a call would do without any of its memory: bind, plan, and the keys of its kernels.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "quern/cli/as_json.h"
#include "quern/cli/commands.h"
#include "quern/cli/source_note.h"
#include "quern/jit/build.h"
#include "quern/testing/case_args.h"
#include "quern/testing/truth.h"

namespace quern::cli {

using Json = nlohmann::ordered_json;

namespace {

/// A variant that is not the chosen one, and why.
struct Candidate {
  std::string variant, reason;
};

struct Explained {
  const Op* op;
  Case which;
  Problem problem;
  DeviceInfo device;
  jit::Target target;
  Plan plan;
  std::vector<Candidate> rejected;  ///< cannot run it
  std::vector<Candidate> slower;    ///< can, but leave it to another
  std::vector<Candidate> not_reached;
  std::string cost_note;
  Cost cost;
};

void set_device(const PlanOptions& options, Explained& e) {
  if (!options.arch.empty()) {
    e.device = device_info_of(Arch::parse(options.arch));
    e.target.arch = e.device.arch;
    return;
  }
  const Device& device = device_from_name(options.device);
  e.device = device.info();
  e.target = jit::target_of(device);
}

void judge_variants(Explained& e) {
  bool chosen = false;
  for (size_t i = 0; i < e.op->variants.size(); ++i) {
    const Variant& v = e.op->variants[i];
    const Rejection r = v.rejects ? v.rejects(e.problem, e.device) : Rejection{};
    if (r) e.rejected.push_back({v.name, to_string(r)});
    else if (e.problem.variant >= 0 && size_t(e.problem.variant) != i) e.not_reached.push_back({v.name, "another was asked for"});
    else if (const Rejection s = e.problem.variant < 0 && v.slower ? v.slower(e.problem, e.device) : Rejection{};
             s && (e.problem.empty || size_t(e.plan.variant) != i))
      e.slower.push_back({v.name, to_string(s)});
    else if (chosen) e.not_reached.push_back({v.name, "comes after " + std::string(e.op->variants[size_t(e.plan.variant)].name)});
    else chosen = true;
  }
}

/// Bytes and operations. Ops whose cost depends on the contents of index tensors need these, hence real memory.
void find_cost(Explained& e) {
  constexpr double kMostBytes = 1 << 28;
  const testing::ArgsStorage fake = testing::fake_args(*e.op, e.which);
  if (!e.op->cost) {
    e.cost = testing::cost_of(*e.op, e.problem, fake.get());
  } else if (testing::operand_bytes(*e.op, fake.get()) <= kMostBytes) {
    const testing::CaseArgs args(*e.op, e.which, 1);
    e.cost = testing::cost_of(*e.op, e.problem, args.args());
  } else {
    e.cost_note = "not computed: it may depend on the contents of operands, which are more than 256 MB";
  }
}

Explained explain(const PlanOptions& options) {
  Explained e;
  e.op = &find_op(options.op);
  const Case given = testing::complete(*e.op, testing::parse_case(*e.op, options.words));
  e.which = testing::derived(*e.op, given);
  set_device(options, e);
  const testing::ArgsStorage args = testing::fake_args(*e.op, e.which);
  e.problem = bind(*e.op, args.get(), testing::options_of(*e.op, e.which));
  if (!e.problem.empty) e.plan = make_plan(*e.op, e.problem, e.device);
  judge_variants(e);
  find_cost(e);
  e.which = given;  // as a command states it
  return e;
}

/// Identity digest, or nothing with the reason when no compiler is there to name it.
std::string key_of(const jit::KernelSpec& spec, const jit::Target& target, std::string* why) {
  try {
    return jit::digests(spec, target).identity;
  } catch (const Error& e) {
    *why = e.what();
    return "";
  }
}

/// What a fill fills: a region or a tensor, by name.
std::string filled(const Explained& e, const Fill& f) {
  if (f.region) return e.plan.regions[f.region.index].name;
  for (const TensorDef& t : e.op->tensors)
    if (t.offset == f.output) return t.name;
  return "?";
}

Json to_json(const Explained& e) {
  Json j = {{"op", e.op->id},
            {"case", testing::case_text(*e.op, e.which)},
            {"runs_as", testing::made_of(*e.op, e.which)},
            {"device", e.device.name},
            {"arch", e.device.arch.name()},
            {"emulated", e.target.emulated}};
  j["variant"] = !e.problem.empty ? Json(e.op->variants[size_t(e.plan.variant)].name) : Json();
  Json launches = Json::array();
  for (i32 i = 0; i < e.plan.count; ++i) {
    const Launch& l = e.plan.launches[i];
    std::string why;
    const std::string key = key_of(l.spec, e.target, &why);
    launches.push_back({{"kernel", jit::print(l.spec)},
                        {"entry", jit::entry_name(l.spec)},
                        {"key", key.empty() ? Json() : Json(key)},
                        {"grid", {l.config.grid[0], l.config.grid[1], l.config.grid[2]}},
                        {"cluster", {l.config.cluster.x, l.config.cluster.y, l.config.cluster.z}},
                        {"threads", l.config.threads},
                        {"smem", l.config.smem},
                        {"pdl", l.config.pdl},
                        {"source", l.spec.kernel->header}});
  }
  for (const char* name : {"kernel", "key", "grid", "threads", "smem"}) j[name] = launches.empty() ? Json() : launches[0][name];
  j["workspace"] = e.plan.workspace;
  j["regions"] = Json::array();
  for (i32 i = 0; i < e.plan.region_count; ++i) {
    const RegionFacts& r = e.plan.regions[i];
    j["regions"].push_back({{"name", r.name}, {"kind", name(r.kind)}, {"bytes", r.bytes}});
  }
  j["launches"] = launches;
  j["fills"] = Json::array();
  for (i32 i = 0; i < e.plan.fill_count; ++i)
    j["fills"].push_back({{"of", filled(e, e.plan.fills[i])}, {"byte", e.plan.fills[i].byte}, {"before", e.plan.fills[i].before}});
  const auto list = [&](const char* key, const std::vector<Candidate>& candidates) {
    j[key] = Json::array();
    for (const Candidate& c : candidates) j[key].push_back({{"variant", c.variant}, {"reason", c.reason}});
  };
  list("rejected", e.rejected);
  list("slower", e.slower);
  j["cost"] = e.cost_note.empty() ? Json{{"bytes", e.cost.bytes}, {"flops", e.cost.flops}} : Json();
  return j;
}

void print_fills(const Explained& e, i32 before) {
  for (i32 i = 0; i < e.plan.fill_count; ++i)
    if (const Fill& f = e.plan.fills[i]; f.before == before) fmt::print("fill {} with {}\n", filled(e, f), f.byte);
}

void print(const Explained& e) {
  fmt::print("{} {}\n", e.op->id, testing::case_text(*e.op, e.which));
  if (const std::string made = testing::made_of(*e.op, e.which); !made.empty()) fmt::print("runs as {}\n", made);
  fmt::print("on {} ({}{})\n", e.device.name, e.device.arch.name(), e.target.emulated ? ", emulated" : "");
  for (const Candidate& c : e.rejected) fmt::print("  {}: rejected, {}\n", c.variant, c.reason);
  for (const Candidate& c : e.slower) fmt::print("  {}: slower, {}\n", c.variant, c.reason);
  if (!e.problem.empty) fmt::print("  {}: chosen\n", e.op->variants[size_t(e.plan.variant)].name);
  else fmt::print("  nothing to do: every output is empty\n");
  for (const Candidate& c : e.not_reached) fmt::print("  {}: not reached, {}\n", c.variant, c.reason);
  for (i32 i = 0; i < e.plan.count; ++i) {
    const Launch& l = e.plan.launches[i];
    print_fills(e, i);
    std::string why;
    const std::string key = key_of(l.spec, e.target, &why);
    fmt::print("launch {}  {}\n", i, jit::print(l.spec));
    fmt::print("  grid {}x{}x{}  cluster {}  threads {}  smem {} B{}\n", l.config.grid[0], l.config.grid[1], l.config.grid[2],
               to_string(l.config.cluster), l.config.threads, l.config.smem, l.config.pdl ? "  pdl" : "");
    fmt::print("  key {}  source {}\n", key.empty() ? "unknown (" + why.substr(0, why.find('\n')) + ")" : key, l.spec.kernel->header);
  }
  print_fills(e, e.plan.count);
  fmt::print("workspace {} B\n", e.plan.workspace);
  for (i32 i = 0; i < e.plan.region_count; ++i) {
    const RegionFacts& r = e.plan.regions[i];
    fmt::print("  {} {} {} B\n", name(r.kind), r.name, r.bytes);
  }
  if (e.cost_note.empty()) fmt::print("cost {:.0f} B, {:.0f} flop\n", e.cost.bytes, e.cost.flops);
  else fmt::print("cost {}\n", e.cost_note);
}

}  // namespace

std::string plan_json(const std::string& op, const std::vector<std::string>& words, const std::string& arch, const std::string& device) {
  PlanOptions options;
  options.op = op, options.words = words, options.arch = arch, options.device = device;
  return to_json(explain(options)).dump(2);
}

int plan(const PlanOptions& options) {
  if (!options.json) print_source_note();
  const Explained e = explain(options);
  std::vector<jit::Compiled> compiled;
  for (i32 i = 0; i < e.plan.count && options.compile; ++i) compiled.push_back(jit::build(e.plan.launches[i].spec, e.target));
  if (options.json) {
    Json j = to_json(e);
    for (size_t i = 0; i < compiled.size(); ++i) j["launches"][i]["folder"] = compiled[i].folder;
    if (options.source)
      for (i32 i = 0; i < e.plan.count; ++i) j["launches"][size_t(i)]["rendered"] = jit::render(e.plan.launches[i].spec);
    std::puts(j.dump(2).c_str());
    return kRight;
  }
  print(e);
  for (const jit::Compiled& c : compiled) fmt::print("{} {}\n", c.from_cache ? "in the cache as" : "compiled into", c.folder);
  if (options.source)
    for (i32 i = 0; i < e.plan.count; ++i)
      fmt::print("\n// {}\n{}", jit::entry_name(e.plan.launches[i].spec), jit::render(e.plan.launches[i].spec));
  return kRight;
}

}  // namespace quern::cli
