// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/pairwise.h"

#include <set>

#include "quern/testing/case_args.h"

namespace quern::testing {

namespace {

using Choice = std::vector<int>;  ///< a value's index for each parameter; -1: open

class Cover {
 public:
  Cover(const std::vector<CaseAxis>& parameters, const std::function<bool(const Case&)>& allowed)
      : parameters_(parameters), allowed_(allowed) {
    for (int p = 0; p < count(); ++p)
      for (int q = p + 1; q < count(); ++q)
        for (int i = 0; i < values(p); ++i)
          for (int j = 0; j < values(q); ++j) open_.insert({p, i, q, j});
    if (count() == 1)
      for (int i = 0; i < values(0); ++i) open_.insert({0, i, 0, i});
  }

  std::vector<Case> cases() {
    const Choice first(size_t(count()), 0);
    if (is_allowed(first)) take(first);
    while (!open_.empty()) {
      const Pair pair = *open_.begin();
      Choice best;
      if (!complete(pair, best)) open_.erase(pair);  // no allowed case has both
      else take(best);
    }
    return result_;
  }

 private:
  struct Pair {
    int p, i, q, j;
    auto operator<=>(const Pair&) const = default;
  };

  int count() const { return int(parameters_.size()); }
  int values(int p) const { return int(parameters_[size_t(p)].values.size()); }

  Case case_of(const Choice& choice) const {
    Case c;
    for (size_t p = 0; p < choice.size(); ++p) c[parameters_[p].name] = parameters_[p].values[size_t(choice[p])];
    return c;
  }
  bool is_allowed(const Choice& choice) const { return allowed_(case_of(choice)); }

  void take(const Choice& choice) {
    result_.push_back(case_of(choice));
    for (int p = 0; p < count(); ++p)
      for (int q = count() == 1 ? p : p + 1; q < count(); ++q) open_.erase({p, choice[size_t(p)], q, choice[size_t(q)]});
  }

  int gain(const Choice& choice, int p, int i) const {
    int n = 0;
    for (int q = 0; q < count(); ++q) {
      if (q == p || choice[size_t(q)] < 0) continue;
      n += int(p < q ? open_.count({p, i, q, choice[size_t(q)]}) : open_.count({q, choice[size_t(q)], p, i}));
    }
    return n;
  }

  /// The best of a few greedy completions that are allowed; else a search through all of them.
  bool complete(const Pair& pair, Choice& best) {
    int best_gain = -1;
    for (int attempt = 0; attempt < 12; ++attempt) {
      Choice c(size_t(count()), -1);
      c[size_t(pair.p)] = pair.i, c[size_t(pair.q)] = pair.j;
      int total = 1;
      const int start = int(random_.below(count()));
      for (int k = 0; k < count(); ++k) {
        const int p = (start + k) % count();
        if (c[size_t(p)] >= 0) continue;
        int most = -1, value = 0;
        const int shift = int(random_.below(values(p)));
        for (int v = 0; v < values(p); ++v) {
          const int i = (v + shift) % values(p);
          if (const int g = gain(c, p, i); g > most) most = g, value = i;
        }
        c[size_t(p)] = value, total += most;
      }
      if (total > best_gain && is_allowed(c)) best = c, best_gain = total;
    }
    return best_gain >= 0 || search(pair, best);
  }

  /// All completions where they are few, else random ones: a pair that one in 500 completions allows is still found.
  bool search(const Pair& pair, Choice& best) {
    double completions = 1;
    for (int p = 0; p < count(); ++p)
      if (p != pair.p && p != pair.q) completions *= values(p);
    const bool all = completions <= double(kMostTries);
    Choice c(size_t(count()), 0);
    for (i64 tries = 0; tries < (all ? i64(completions) : kMostTries); ++tries) {
      i64 rest = tries;
      for (int p = 0; p < count(); ++p) {
        c[size_t(p)] = all ? int(rest % values(p)) : int(random_.below(values(p)));
        if (p != pair.p && p != pair.q) rest /= values(p);
      }
      c[size_t(pair.p)] = pair.i, c[size_t(pair.q)] = pair.j;
      if (is_allowed(c)) return best = c, true;
    }
    return false;
  }

  static constexpr i64 kMostTries = 2500;
  const std::vector<CaseAxis>& parameters_;
  const std::function<bool(const Case&)>& allowed_;
  std::set<Pair> open_;
  std::vector<Case> result_;
  Random random_{1};
};

}  // namespace

/// Without those of no values: words that cases may state, but that none of the op's does.
static std::vector<CaseAxis> with_values(const std::vector<CaseAxis>& all) {
  std::vector<CaseAxis> some;
  for (const CaseAxis& axis : all)
    if (!axis.values.empty()) some.push_back(axis);
  return some;
}

std::vector<Case> pairwise(const std::vector<CaseAxis>& all, const std::function<bool(const Case&)>& allowed) {
  const std::vector<CaseAxis> parameters = with_values(all);
  if (parameters.empty()) return allowed({}) ? std::vector<Case>{{}} : std::vector<Case>{};
  return Cover(parameters, allowed).cases();
}

std::vector<Case> full_product(const std::vector<CaseAxis>& all, const std::function<bool(const Case&)>& allowed) {
  const std::vector<CaseAxis> parameters = with_values(all);
  std::vector<Case> result;
  std::vector<size_t> at(parameters.size(), 0);
  for (;;) {
    Case c;
    for (size_t p = 0; p < at.size(); ++p) c[parameters[p].name] = parameters[p].values[at[p]];
    if (allowed(c)) result.push_back(std::move(c));
    size_t p = 0;
    while (p < at.size() && ++at[p] == parameters[p].values.size()) at[p++] = 0;
    if (p == at.size()) return result;
  }
}

bool runs(const Op& op, const Case& given, const DeviceInfo& device) {
  try {
    const Case which = derived(op, given);
    const ArgsStorage args = fake_args(op, which);
    const Problem problem = bind(op, args.get(), options_of(op, which));
    if (!problem.empty) make_plan(op, problem, device);  // nothing is planned for empty outputs
    return true;
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::value || e.kind() == ErrorKind::type || e.kind() == ErrorKind::unsupported) return false;
    throw;
  }
}

std::vector<CaseAxis> parameters_of(const Op& op, const std::vector<CaseAxis>& fixed) {
  std::vector<CaseAxis> parameters;
  for (const CaseAxis& axis : op.cases) {
    const CaseAxis* use = axis.values.empty() ? nullptr : &axis;
    for (const CaseAxis& f : fixed)
      if (f.name == axis.name) use = nullptr;
    if (use) parameters.push_back(*use);
  }
  parameters.insert(parameters.end(), fixed.begin(), fixed.end());
  return parameters;
}

}  // namespace quern::testing
