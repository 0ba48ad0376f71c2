// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/reach.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "quern/op/call_space.h"

namespace quern {

size_t Reach::add(const jit::KernelSpec& spec) {
  size_t i = 0;
  while (i < kernels.size() && !(kernels[i].spec == spec)) ++i;
  if (i == kernels.size()) kernels.push_back({spec, {}, false});
  return i;
}

namespace {

using Point = CallSpace::Point;

class Walk {
 public:
  Walk(CallSpace& space, i32 variant, const DeviceInfo& device, Reach& reach, ReachedCall& call)
      : space_(space), variant_(variant), device_(device), reach_(reach), call_(call), beside_(space.variables().size()) {}

  void run() {
    const size_t n = space_.variables().size();
    Random random(n);
    std::vector<Point> bases = {Point(n, 0), Point(n, 0)};
    for (size_t v = 0; v < n; ++v) bases[1][v] = i32(last(v));
    for (int i = 0; i < 6; ++i) {
      bases.push_back(Point(n, 0));
      for (size_t v = 0; v < n; ++v) bases.back()[v] = i32(random.below(i64(last(v)) + 1));
    }
    if (n == 0) key_at({});
    for (size_t b = 0; b < bases.size(); ++b)
      for (size_t v = 0; v < n; ++v)
        if (b < 2 || space_.variables()[v].fact) line(v, bases[b]);  // ranges are long: through the corners only
    while (changed_) {
      changed_ = false;
      for (size_t v = 0; v < n; ++v)
        if (!beside_[v].empty()) lines_along(v);
    }
  }

 private:
  size_t last(size_t v) const { return space_.variables()[v].values.size() - 1; }

  /// Walks the values of v with all others as in the point.
  void line(size_t v, Point point) {
    point[v] = -1;
    if (!walked_.insert(point).second) return;
    i32 before = -1;
    for (size_t i = 0; i <= last(v); ++i) {
      point[v] = i32(i);
      const i32 now = key_at(point);
      if (i > 0 && now != before) {
        changed_ |= beside_[v].insert(i32(i) - 1).second;
        changed_ |= beside_[v].insert(i32(i)).second;
      }
      before = now;
    }
  }

  /// Lines along v through every combination of the others' values beside changes and at their ends.
  void lines_along(size_t v) {
    std::vector<std::vector<i32>> choices(beside_.size(), {0});
    for (size_t o = 0; o < beside_.size(); ++o) {
      if (o == v || beside_[o].empty()) continue;
      std::set<i32> all = beside_[o];
      all.insert({0, i32(last(o))});
      choices[o].assign(all.begin(), all.end());
    }
    std::set<std::vector<i32>> seen;
    Point point(beside_.size(), 0);
    std::vector<size_t> at(beside_.size(), 0);
    for (;;) {
      for (size_t o = 0; o < at.size(); ++o) point[o] = choices[o][at[o]];
      if (seen.insert(signature(v, point)).second) line(v, point);
      size_t o = 0;
      while (o < at.size() && ++at[o] == choices[o].size()) at[o++] = 0;
      if (o == at.size()) return;
    }
  }

  /// What tells lines along v apart: the ranges' values, and the kernels beside changes along v. Facts that give the same
  /// kernels there, as alignments do of which the smallest counts, are one class.
  std::vector<i32> signature(size_t v, Point point) {
    std::vector<i32> words;
    for (size_t o = 0; o < point.size(); ++o)
      if (o != v && !space_.variables()[o].fact) words.push_back(point[o]);
    for (const i32 i : beside_[v]) {
      point[v] = i;
      words.push_back(key_at(point));
    }
    return words;
  }

  /// A number for the kernels that the point reaches; -1: the call is refused there.
  i32 key_at(const Point& point) {
    std::string why;
    Plan& plan = plans_[next_];
    const CallSpace::At at = space_.plan_at(point, variant_, device_, plan, why);
    if (at == CallSpace::At::refused && call_.refused++ == 0) call_.skipped = why;
    if (at == CallSpace::At::empty && call_.refused == 0) call_.skipped = why;
    if (at != CallSpace::At::planned) return -1;
    ++call_.plans;
    const bool is_best = best(point);
    bool same = key_ >= 0 && is_best == was_best_ && plan.count == plans_[1 - next_].count;  // as the point before, mostly
    for (i32 i = 0; same && i < plan.count; ++i) same = plan.launches[i].spec == plans_[1 - next_].launches[i].spec;
    if (same) return key_;
    was_best_ = is_best;
    next_ = 1 - next_;
    std::vector<size_t> kernels;
    for (i32 i = 0; i < plan.count; ++i) {
      kernels.push_back(index_of(plan.launches[i].spec));
      reach_.kernels[kernels.back()].aligned |= is_best;
    }
    const auto known = std::find(keys_.begin(), keys_.end(), kernels);
    key_ = i32(known - keys_.begin());
    if (known == keys_.end()) keys_.push_back(std::move(kernels));
    return key_;
  }

  bool best(const Point& point) const {
    for (size_t v = 0; v < point.size(); ++v)
      if (point[v] && space_.variables()[v].fact) return false;
    return true;
  }

  size_t index_of(const jit::KernelSpec& spec) {
    const size_t i = reach_.add(spec);
    if (std::find(call_.kernels.begin(), call_.kernels.end(), i) == call_.kernels.end()) call_.kernels.push_back(i);
    return i;
  }

  CallSpace& space_;
  const i32 variant_;
  const DeviceInfo& device_;
  Reach& reach_;
  ReachedCall& call_;
  std::vector<std::set<i32>> beside_;      ///< of each variable: indices of values on both sides of a change
  std::vector<std::vector<size_t>> keys_;  ///< kernels, by the number that key_at gives
  Plan plans_[2];                          ///< the one before, and room for the next
  int next_ = 0;
  i32 key_ = -1;  ///< of the one before
  bool was_best_ = false;
  std::set<Point> walked_;  ///< lines, with -1 for the variable along which they run
  bool changed_ = true;
};

/// A limit that is a list, of which each value is walked.
struct Choice {
  std::string name;
  std::vector<i64> values;
};

/// Calls `visit` with every combination of one value of each list.
template <class F> void each_choice(const std::vector<Choice>& lists, F visit, Extents chosen = {}) {
  if (chosen.size() == lists.size()) return visit(chosen);
  const Choice& list = lists[chosen.size()];
  for (const i64 value : list.values) {
    Extents more = chosen;
    more[list.name] = value;
    each_choice(lists, visit, more);
  }
}

bool mentions(const std::string& text, const std::string& name) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += name.size())
    if ((at == 0 || !part(text[at - 1])) && (at + name.size() == text.size() || !part(text[at + name.size()]))) return true;
  return false;
}

/// The limits that are lists and that the call's words use; batch invariance.
std::vector<Choice> choices_of(const Model& model, const ModelCall& call) {
  std::vector<Choice> lists;
  for (const Limit& l : model.limits) {
    bool used = l.name == "batch_invariant";
    for (const ModelWord& w : call.words)
      for (const std::string& text : w.values) used |= !l.range && mentions(text, l.name);
    if (used) lists.push_back({l.name, l.values});
  }
  return lists;
}

/// "head_dim=1000 tp=2": of the words and lists that have several values, which these are.
std::string choice_text(const ModelCall& call, const std::vector<size_t>& alternative, const std::vector<Choice>& lists,
                        const Extents& chosen) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) { text += (text.empty() ? "" : " ") + name + "=" + value; };
  for (size_t w = 0; w < call.words.size(); ++w)
    if (call.words[w].values.size() > 1) add(call.words[w].name, call.words[w].values[alternative[w]]);
  for (const Choice& list : lists)
    if (list.values.size() > 1) add(list.name, std::to_string(chosen.at(list.name)));
  return text;
}

/// What one combination of words and lists reaches joins what the call does.
void add_combination(const ReachedCall& one, const std::string& with, ReachedCall& into) {
  into.plans += one.plans;
  into.refused += one.refused;
  for (const size_t k : one.kernels)
    if (std::find(into.kernels.begin(), into.kernels.end(), k) == into.kernels.end()) into.kernels.push_back(k);
  if (one.plans == 0) into.none.push_back({with, one.skipped, one.refused > 0});
  else if (one.refused > 0 && into.partly.empty()) into.partly = one.skipped;
}

void walk_call(const Model& model, const ModelCall& call, const DeviceInfo& device, Reach& reach, ReachedCall& into) {
  const Op& op = find_op(call.op);
  std::vector<i32> variants = {-1};
  for (size_t v = 0; v < op.variants.size() && op.variants.size() > 1; ++v)
    if (std::string(op.variants[v].name) == "portable") variants.push_back(i32(v));
  const std::vector<Choice> lists = choices_of(model, call);
  for (const std::vector<size_t>& alternative : alternatives_of(call))
    each_choice(lists, [&](const Extents& chosen) {
      CallSpace space(model, call, chosen, alternative);
      ReachedCall one;
      for (const i32 variant : variants) Walk(space, variant, device, reach, one).run();
      add_combination(one, choice_text(call, alternative, lists, chosen), into);
    });
  if (into.plans > 0 || into.none.empty()) return;
  into.skipped = into.none[0].why;
  into.none.clear();
}

}  // namespace

Reach reach(const Model& model, const DeviceInfo& device) {
  Reach reach;
  for (const ModelCall& call : model.calls) {
    ReachedCall& into = reach.calls.emplace_back();
    into.does = call.does, into.op = call.op;
    if (call.missing) {
      if (registry().count(call.op))
        throw Error(ErrorKind::value, call.op, call.does, "is marked as missing", "a case, for quern has the op");
      into.skipped = "not in quern yet";
      continue;
    }
    try {
      walk_call(model, call, device, reach, into);
    } catch (const Error& e) { throw in_model(e, model, call); }
    for (const size_t k : into.kernels) reach.kernels[k].calls.push_back(call.does);
  }
  return reach;
}

}  // namespace quern
