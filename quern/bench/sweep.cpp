// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/sweep.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "quern/bench/bench_case.h"
#include "quern/testing/case_args.h"

namespace quern::bench {

namespace {

constexpr size_t kMostValues = 1000, kMostPoints = 10000;

bool is_floating(DType dtype) { return !is_integer(dtype) && size_of(dtype) > 1; }

/// The first input whose elements are floating numbers; -1: none.
int main_tensor(const Op& op) {
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorDef& t = op.tensors[i];
    if (t.role != Role::out && t.like < 0 && !t.any_shape() && !t.dtypes.empty() && is_floating(t.dtypes[0])) return int(i);
  }
  return -1;
}

/// The op's own word for one that a user may state.
std::string parameter_of(const Op& op, const std::string& word) {
  if (word != "dtype") return word;
  const std::string parameter = dtype_parameter(op);
  if (parameter.empty()) throw Error(ErrorKind::value, op.id, "dtype", "is given", "none: this op has no choice of dtypes");
  return parameter;
}

[[noreturn]] void fail_sweep(const Op& op, const std::string& text) {
  throw Error(ErrorKind::value, op.id, "sweep", "is '" + text + "'",
              "axis=FROM:TO:xFACTOR, axis=FROM:TO:+STEP or axis=VALUE,VALUE, as in hidden=1024:16384:x2");
}

/// The values of "1024:4096:x2".
std::vector<CaseValue> progression(const Op& op, const std::string& parameter, const std::string& text, const std::string& values) {
  const size_t first = values.find(':'), second = values.find(':', first + 1);
  if (second == std::string::npos || second + 2 >= values.size() || values.find(':', second + 1) != std::string::npos) fail_sweep(op, text);
  const char how = values[second + 1];
  if (how != 'x' && how != '+') fail_sweep(op, text);
  const auto whole = [&](const std::string& number) {
    const Scalar value = testing::parse_value(op, parameter, number);
    if (!value.is_integral())
      throw Error(ErrorKind::value, op.id, parameter, "is '" + number + "' in a sweep from one number to another", "an integer");
    return value.integer();
  };
  const i64 from = whole(values.substr(0, first)), to = whole(values.substr(first + 1, second - first - 1));
  const std::string step_text = values.substr(second + 2);
  if (step_text.find_first_not_of("0123456789") != std::string::npos || step_text.size() > 15) fail_sweep(op, text);
  const i64 step = std::stoll(step_text);
  if (step < (how == 'x' ? 2 : 1))
    throw Error(ErrorKind::value, op.id, "sweep", std::string("steps by ") + how + step_text + " in '" + text + "'",
                how == 'x' ? "a factor of at least 2" : "a step of at least 1");
  if (to < from || (how == 'x' && from < 1))
    throw Error(ErrorKind::value, op.id, "sweep", "goes from " + std::to_string(from) + " to " + std::to_string(to),
                how == 'x' ? "a start of at least 1 and no smaller end" : "no smaller end");
  std::vector<CaseValue> list;
  bool over = false;
  for (i64 v = from; !over && v <= to; over = how == 'x' ? __builtin_mul_overflow(v, step, &v) : __builtin_add_overflow(v, step, &v)) {
    list.push_back(v);
    if (list.size() > kMostValues)
      throw Error(ErrorKind::value, op.id, "sweep", "has more than " + std::to_string(kMostValues) + " values in '" + text + "'", "fewer");
  }
  return list;
}

}  // namespace

const char* name(Mode mode) { return mode == Mode::forward ? "forward" : mode == Mode::backward ? "backward" : "full"; }

Mode mode_from_name(const std::string& text) {
  for (const Mode mode : {Mode::forward, Mode::backward, Mode::full})
    if (text == name(mode)) return mode;
  throw Error(ErrorKind::value, "", "mode", "is '" + text + "'", "one of forward, backward, full");
}

std::string dtype_parameter(const Op& op) {
  const int at = main_tensor(op);
  return at >= 0 && op.tensors[size_t(at)].dtypes.size() > 1 ? op.tensors[size_t(at)].name + ".dtype" : "";
}

std::string dtype_name(const Op& op, const Case& given) {
  const int at = main_tensor(op);
  return at < 0 ? "" : quern::name(testing::dtype_of(op, size_t(at), testing::derived(op, given)));
}

CaseAxis parse_sweep(const Op& op, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) fail_sweep(op, text);
  const std::string parameter = parameter_of(op, text.substr(0, equals)), values = text.substr(equals + 1);
  CaseAxis axis;
  axis.name = parameter;
  if (values.find(':') == std::string::npos) {
    axis = testing::parse_words(op, {parameter + "=" + values})[0];
  } else {
    testing::parse_words(op, {parameter + "=" + values.substr(0, values.find(':'))});  // throws where the op has no such word
    axis.values = progression(op, parameter, text, values);
  }
  for (size_t i = 0; i < axis.values.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (axis.values[i] == axis.values[j])
        throw Error(ErrorKind::value, op.id, "sweep", "has " + to_string(axis.values[i]) + " twice in '" + text + "'", "each value once");
  if (axis.values.size() > kMostValues)
    throw Error(ErrorKind::value, op.id, "sweep", "has more than " + std::to_string(kMostValues) + " values", "fewer");
  return axis;
}

Case parse_fixed(const Op& op, const std::vector<std::string>& words) {
  std::vector<std::string> own;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    own.push_back(equals == std::string::npos ? word : parameter_of(op, word.substr(0, equals)) + word.substr(equals));
  }
  return testing::parse_case(op, own);
}

std::string SweepPoint::text(const Op& op, const std::string& parameter) const {
  const Case completed = testing::complete(op, given);
  const auto at = completed.find(parameter);
  if (at == completed.end()) return "";
  return testing::case_text(op, {{at->first, at->second}}).substr(parameter.size() + 1);
}

std::map<std::string, std::string> SweepPoint::config(const Op& op) const {
  std::set<std::string> names;
  for (const auto& [parameter, value] : given) names.insert(parameter);
  for (const CaseAxis& c : op.cases) {
    const bool axis = std::any_of(op.axes.begin(), op.axes.end(), [&](Axis a) { return c.name == quern::name(a); });
    if (axis && !c.values.empty()) names.insert(c.name);
  }
  names.erase(x);
  const std::string dtype = dtype_parameter(op);
  names.erase(dtype);
  std::map<std::string, std::string> config;
  for (const std::string& parameter : names) config[parameter] = text(op, parameter);
  if (const std::string is = dtype_name(op, given); !is.empty() && x != dtype) config["dtype"] = is;
  return config;
}

std::vector<SweepPoint> sweep_points(const Op& op, const std::vector<CaseAxis>& axes, const Case& fixed) {
  const CaseAxis& x = axes.at(0);
  if (testing::case_text(op, {{x.name, x.values.at(0)}}).find_first_not_of("0123456789+-.e", x.name.size() + 1) != std::string::npos)
    throw Error(ErrorKind::value, op.id, "sweep", "begins with " + x.name + ", whose values are words",
                "an axis of numbers first: it is x");
  std::vector<SweepPoint> points = {{fixed, x.name}};
  for (size_t a = axes.size(); a-- > 0;) {  // the first innermost
    std::vector<SweepPoint> more;
    if (points.size() * axes[a].values.size() > kMostPoints)
      throw Error(ErrorKind::value, op.id, "sweep", "has more than " + std::to_string(kMostPoints) + " points", "fewer");
    for (const SweepPoint& point : points)
      for (const CaseValue& value : axes[a].values) {
        more.push_back(point);
        if (!more.back().given.emplace(axes[a].name, value).second)
          throw Error(ErrorKind::value, op.id, axes[a].name, "is given twice", "one --sweep or one --set");
      }
    points = std::move(more);
  }
  return points;
}

CaseAxis standard_sweep(const Op& op, Case& fixed, bool small) {
  CaseAxis best;
  std::map<std::string, std::vector<CaseValue>> values;
  const auto add = [&](const std::string& parameter, const CaseValue& value) {
    std::vector<CaseValue>& list = values[parameter];
    if (fixed.count(parameter) == 0 && std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
  };
  for (const Case& shape : op.bench)
    for (const auto& [parameter, value] : shape) add(parameter, value);
  for (const auto& [parameter, list] : values)
    if (list.size() > best.values.size()) best = {parameter, list};
  if (best.values.size() > 1 && !small) {
    for (const auto& [parameter, value] : op.bench.front())
      if (parameter != best.name) fixed.emplace(parameter, value);
  } else {
    best = {};
    for (const CaseAxis& c : op.cases) {
      const bool sizes = c.name.find('.') == std::string::npos && op.attr_index(c.name) < 0;
      if (best.name.empty() && sizes && c.values.size() > 1 && fixed.count(c.name) == 0) best = {c.name, c.values};
    }
  }
  // Nothing is timed of no rows
  std::erase_if(best.values, [](const CaseValue& v) { return double(v) < 1; });
  if (best.values.empty())
    throw Error(ErrorKind::value, op.id, "sweep", "is not given", "one: this op's shapes name no axis with several values");
  std::sort(best.values.begin(), best.values.end(), [](const CaseValue& a, const CaseValue& b) { return double(a) < double(b); });
  return best;
}

std::string shrink(const Op& op, std::vector<SweepPoint>& points, double most) {
  const auto too_large = [&](const SweepPoint& p) { return case_bytes(op, p.given) > most; };
  const std::string rows = op.has_rows ? quern::name(op.rows) : "";
  std::string said;
  const bool can = !rows.empty() && std::all_of(points.begin(), points.end(), [&](const SweepPoint& p) {
    return p.x != rows && testing::complete(op, p.given).count(rows) != 0;
  });
  if (can && std::any_of(points.begin(), points.end(), too_large)) {
    i64 fit = 0, asked = 0;
    for (const SweepPoint& p : points) asked = max_of(asked, testing::complete(op, p.given).at(rows).integer());
    for (fit = asked; fit > 1 && std::any_of(points.begin(), points.end(), too_large);) {
      fit = (fit + 1) / 2;
      for (SweepPoint& p : points) p.given[rows] = min_of(testing::complete(op, p.given).at(rows).integer(), fit);
    }
    // Several values of the rows in a grid may have become one
    std::vector<SweepPoint> distinct;
    for (SweepPoint& p : points)
      if (std::none_of(distinct.begin(), distinct.end(), [&](const SweepPoint& d) { return d.given == p.given; }))
        distinct.push_back(std::move(p));
    points = std::move(distinct);
    if (fit < asked) said = rows + " is " + std::to_string(fit) + " instead of " + std::to_string(asked);
  }
  if (const size_t left_out = std::erase_if(points, too_large); left_out > 0)
    said += (said.empty() ? "" : ", and ") + std::to_string(left_out) + (left_out == 1 ? " point is" : " points are") + " left to GPUs";
  return said;
}

}  // namespace quern::bench
