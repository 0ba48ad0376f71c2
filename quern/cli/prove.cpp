// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "quern/cli/commands.h"
#include "quern/cli/progress.h"
#include "quern/cli/table.h"
#include "quern/testing/pairwise.h"
#include "quern/testing/prove.h"
#include "quern/testing/rows.h"
#include "quern/testing/sum_shape.h"

namespace quern::cli {

using Json = nlohmann::ordered_json;
using testing::Proof;

namespace {

/// The order of sums of a case, in each mode that the op has.
std::vector<std::pair<std::string, std::string>> sums_of(const Op& op, const Case& given, u64 seed) {
  std::vector<std::pair<std::string, std::string>> all;
  const bool modes = testing::has_invariant_mode(op);
  for (int mode = 0; mode <= int(modes); ++mode) {
    Case which = given;
    if (modes) which["batch_invariant"] = mode;
    try {
      all.push_back({mode ? "batch_invariant" : "", testing::sum_text_of(op, which, seed)});
    } catch (const Error& e) { all.push_back({mode ? "batch_invariant" : "", std::string("not shown: ") + e.what()}); }
  }
  return all;
}

Json to_json(const Proof& p) {
  if (!p.skipped.empty()) return {{"op", p.op}, {"case", p.which}, {"skipped", p.skipped}, {"ok", true}};
  Json rows = Json::array();
  for (const Proof::Rows& r : p.rows)
    rows.push_back({{"batch_invariant", r.batch_invariant},
                    {"promised", r.promised},
                    {"holds", r.holds},
                    {"batches", r.batches},
                    {"message", r.message}});
  return {{"op", p.op},
          {"case", p.which},
          {"ways", p.ways},
          {"plans", p.plans},
          {"compared_with", p.by_meaning ? "meaning" : "each other"},
          {"exact", p.exact},
          {"coincidences", p.coincidences},
          {"repeatable", p.repeatable},
          {"rows", rows},
          {"ok", p.ok()},
          {"message", p.message}};
}

/// Of several cases of an op: sums of counts, and whether all hold.
struct Total {
  int cases = 0, ways = 0, plans = 0, wrong = 0, coincidences = 0;
  bool by_meaning = false;
  std::string skipped;
  /// By mode: cases that hold, cases, promised.
  struct Mode {
    int holds = 0, cases = 0;
    bool promised = false;
  };
  std::map<bool, Mode> modes;

  void add(const Proof& p) {
    skipped = p.skipped;
    ++cases, ways += p.ways, plans += p.plans, wrong += !p.ok(), coincidences += p.coincidences;
    by_meaning = p.by_meaning;
    for (const Proof::Rows& r : p.rows) {
      Mode& m = modes[r.batch_invariant];
      ++m.cases, m.holds += r.holds, m.promised = r.promised;
    }
  }
  std::string exact_text() const {
    if (!skipped.empty()) return "skipped: " + skipped;
    if (wrong) return fmt::format("{} wrong", wrong);
    return fmt::format("yes, {}{}", by_meaning ? "the op's meaning" : "each other",
                       coincidences ? fmt::format(" ({} coincidences)", coincidences) : "");
  }
  std::string rows_text() const {
    if (!skipped.empty()) return "";
    std::string text;
    for (const auto& [mode, m] : modes) {
      if (!text.empty()) text += "; ";
      if (modes.size() > 1) text += mode ? "batch_invariant: " : "else: ";
      text += m.holds == m.cases ? fmt::format("yes ({})", m.cases) : fmt::format("{} of {}", m.holds, m.cases);
      if (!m.promised) text += ", not promised";
    }
    return text.empty() ? "no rows" : text;
  }
};

std::vector<Case> cases_of(const Op& op, const std::vector<CaseAxis>& fixed, int sample) {
  const DeviceInfo device = device_info_of(Arch{});
  const auto allowed = [&](const Case& c) { return testing::runs(op, c, device); };
  std::vector<CaseAxis> parameters = testing::parameters_of(op, fixed);
  const auto is_fixed = [&](const std::string& axis) {
    return std::any_of(fixed.begin(), fixed.end(), [&](const CaseAxis& f) { return f.name == axis; });
  };
  // When nothing else is asked for: each combination of what is fixed with the first values of the others, with rows enough
  std::vector<CaseAxis> few = parameters;
  for (CaseAxis& p : few)
    if (!is_fixed(p.name)) p.values.erase(p.values.begin() + 1, p.values.end());
  std::vector<Case> cases = testing::full_product(few, [](const Case&) { return true; });
  for (Case& c : cases)
    if (op.has_rows && !is_fixed(name(op.rows))) {
      c.erase(name(op.rows));
      c = testing::with_rows(op, c);
    }
  if (sample <= 1) return cases;
  const std::vector<Case> all = testing::pairwise(parameters, allowed);
  for (size_t i = 1; i < size_t(sample) && i < all.size(); ++i) cases.push_back(all[i * all.size() / size_t(sample)]);
  return cases;
}

void print(const Proof& p) {
  if (!p.skipped.empty()) return fmt::print("{} skipped: {}\n", p.op, p.skipped);
  fmt::print("{} {}\n", p.op, p.which);
  if (p.exact)
    fmt::print("  exact        {} ways with {} plans agree {}\n", p.ways, p.plans,
               p.by_meaning ? "with the op's meaning" : "with each other");
  if (p.coincidences > 0) fmt::print("               {} differences did not show with other data\n", p.coincidences);
  if (p.repeatable) fmt::print("  repeatable   same order of sums on another device, schedule and number of OS threads\n");
  for (const Proof::Rows& r : p.rows)
    fmt::print("  rows{}  {}{}\n", r.batch_invariant ? ", batch_invariant" : "",
               r.holds ? fmt::format("same order of sums alone and in {} batches", r.batches) : r.message,
               r.promised ? "" : " (not promised)");
  if (!p.ok()) fmt::print("WRONG {}\n", p.message);
}

}  // namespace

int prove(const ProveOptions& options) {
  size_t at = 0;
  std::vector<const Op*> ops;
  for (; at < options.words.size() && options.words[at].find('=') == std::string::npos; ++at)
    for (const Op* op : ops_named(options.words[at])) ops.push_back(op);
  if (ops.empty()) ops = ops_named("all");
  const std::vector<std::string> words(options.words.begin() + ptrdiff_t(at), options.words.end());
  testing::Prover prover(options.ways);
  std::map<std::string, Total> totals;
  Json all = Json::array();
  bool right = true;
  for (const Op* op : ops)
    for (const Case& which : cases_of(*op, testing::parse_words(*op, words), options.sample)) {
      const Proof proof = prover.prove(*op, which, options.seed);
      const auto sums =
          ops.size() == 1 && proof.skipped.empty() ? sums_of(*op, which, options.seed) : std::vector<std::pair<std::string, std::string>>();
      right &= proof.ok();
      totals[op->id].add(proof);
      if (options.json) {
        all.push_back(to_json(proof));
        for (const auto& [mode, text] : sums) all.back()["sums"][mode.empty() ? "default" : mode] = text;
      } else if (ops.size() == 1 || !proof.ok()) {
        print(proof);
        for (const auto& [mode, text] : sums) fmt::print("  sums{}  {}\n", mode.empty() ? "" : ", " + mode, text);
      }
      if (!proof.skipped.empty()) break;
    }
  if (options.json) {
    std::puts(all.dump(2).c_str());
  } else if (ops.size() > 1) {
    Table table({"op", "cases", "ways", "plans", "exact", "batch-invariant"});
    for (const auto& [id, t] : totals)
      table.add({id, std::to_string(t.cases), std::to_string(t.ways), std::to_string(t.plans), t.exact_text(), t.rows_text()});
    fmt::print("{}", table.text());
  }
  return right ? kRight : kWrong;
}

}  // namespace quern::cli
