// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "quern/cli/as_json.h"
#include "quern/cli/commands.h"
#include "quern/cli/table.h"
#include "quern/testing/truth.h"

namespace quern::cli {

using Json = nlohmann::ordered_json;

static const char* word(AttrDef::Kind kind) {
  const char* words[] = {"f32", "i32", "i64", "bool"};
  return words[int(kind)];
}

static std::vector<std::string> dtype_words(const Op& op, const TensorDef& t) {
  std::vector<std::string> words;
  if (t.like >= 0) words.push_back("like " + op.tensors[size_t(t.like)].name);
  for (const DType d : t.dtypes) words.push_back(name(d));
  return words;
}

static std::string type_word(const AttrDef& a) { return a.words.empty() ? word(a.kind) : fmt::format("{}", fmt::join(a.words, " | ")); }

static std::string number(const AttrDef& a) {
  if (!a.words.empty()) return a.words[size_t(a.standard)];
  return a.kind == AttrDef::Kind::f32 ? fmt::format("{}", float(a.standard)) : to_string(a.standard);
}

/// One parameter's value as a case would state it.
static std::string value_word(const Op& op, const std::string& parameter, const Scalar& value) {
  const std::string text = testing::case_text(op, {{parameter, value}});
  return text.substr(text.find('=') + 1);
}

/// What a parameter of the cases stands for; empty for axes and attributes, which are explained above them.
static std::string meaning_of(const CaseAxis& c) {
  if (!c.meaning.empty()) return c.meaning;
  if (c.name == "batch_invariant") return "the option of a call";
  const size_t dot = c.name.find('.');
  if (dot == std::string::npos) return "";
  const std::string tensor = "`" + c.name.substr(0, dot) + "`", what = c.name.substr(dot + 1);
  if (what == "dtype") return "dtype of " + tensor;
  if (what == "pad") return "elements between the rows of " + tensor;
  if (what == "shift") return tensor + " begins so many elements further";
  if (what == "present") return tensor + " is given";
  if (what == "in_place") return tensor + " is the input that it may be";
  if (what == "transposed") return "the last two dims of " + tensor + " are exchanged in memory";
  return what == "swap" ? "the two dims before the last of " + tensor + " are exchanged in memory" : "";
}

static Json to_json(const Budget& b) {
  return {{"of_value", b.of_value}, {"of_magnitude", b.of_magnitude}, {"absolute", b.absolute}, {"exact", b.exact}};
}

/// A formula in postfix order: numbers, {"name": axis or attribute}, and operators as they are written.
static Json formula_json(const Op& op, const Expression& formula) {
  static const char* const kOperators[] = {"", "", "+", "-", "*", "/", "ceil_div", "min", "max"};
  Json steps = Json::array();
  for (const Expression::Step& step : formula.steps()) {
    const size_t at = size_t(step.value), most = size_t(kMaxAxes);
    if (step.kind == Expression::Kind::number) steps.push_back(step.value);
    else if (step.kind == Expression::Kind::name)
      steps.push_back({{"name", at < most ? name(op.axes[at]) : op.attrs[at - most].name.c_str()}});
    else steps.push_back(kOperators[int(step.kind)]);
  }
  return steps;
}

/// Extents: ceil(factor * axis / divisor) + offset, or a formula; a number has no axis.
static Json axes_json(const Op& op, const TensorDef& t) {
  Json axes = Json::array();
  for (int d = 0; d < t.rank; ++d) {
    const Extent& e = t.extents[d];
    const bool plain = e.formula < 0;
    axes.push_back({{"axis", plain && e.factor ? Json(name(e.axis)) : Json()},
                    {"factor", e.factor},
                    {"divisor", e.divisor},
                    {"offset", e.offset},
                    {"formula", plain ? Json() : formula_json(op, op.formulas[size_t(e.formula)])}});
  }
  return axes;
}

/// An integer keeps all of its digits.
static Json to_json(const Scalar& value) { return value.is_real() ? Json(double(value)) : Json(value.integer()); }

/// The error budget of each output in the op's first case.
static Json budgets_json(const Op& op) {
  const Case which = testing::derived(op, {});
  const Problem problem = bind(op, testing::fake_args(op, which).get(), testing::options_of(op, which));
  Json budgets = Json::object();
  for (size_t i = 0; i < op.tensors.size(); ++i)
    if (op.tensors[i].role != Role::in) budgets[op.tensors[i].name] = to_json(testing::budget_of(op, problem, i));
  return {{"case", testing::case_text(op, testing::complete(op, {}))}, {"outputs", budgets}};
}

/// What may be plugged into its kernels. `own`: the name of hooks that the op has by itself; `params_bytes`: how many those read, or may be
/// given.
static Json hooks_json(const Op& op) {
  Json points = Json::array(), tensors = Json::array();
  for (const jit::HookPoint& p : op.hook_points->list) points.push_back({{"name", p.name}, {"signature", p.signature}});
  for (const TensorDef& t : op.tensors)
    if (t.any_shape()) tensors.push_back({{"name", t.name}, {"dtypes", dtype_words(op, t)}});
  return {{"own", op.hooks ? Json(op.hooks->name) : Json()},
          {"points", points},
          {"params_bytes", op.hook_params_used >= 0 ? op.hook_params_used : op.hook_params_bytes},
          {"tensors", tensors}};
}

static Json to_json(const Op& op) {
  Json j = {{"op", op.id}, {"formula", op.doc}, {"source", op.source}};
  j["tensors"] = Json::array();
  for (const TensorDef& t : op.tensors) {
    if (t.any_shape()) continue;
    j["tensors"].push_back({{"name", t.name},
                            {"role", name(t.role)},
                            {"dims", t.extents_text},
                            {"axes", axes_json(op, t)},
                            {"dtypes", dtype_words(op, t)},
                            {"optional", t.optional},
                            {"strided", t.strided},
                            {"either_major", t.either_major},
                            {"column_bytes", t.column_bytes},
                            {"may_be", t.may_be >= 0 ? Json(op.tensors[size_t(t.may_be)].name) : Json()},
                            {"values", contents_text(op, t)},
                            {"meaning", t.doc}});
  }
  j["axes"] = Json::object();
  for (const Axis axis : op.axes) j["axes"][name(axis)] = meaning(axis);
  j["attributes"] = Json::array();
  for (const AttrDef& a : op.attrs)
    j["attributes"].push_back(
        {{"name", a.name}, {"type", word(a.kind)}, {"words", a.words}, {"default", to_json(a.standard)}, {"meaning", a.doc}});
  j["takes_hooks"] = op.hooks_offset >= 0;
  if (op.hooks_offset >= 0) j["hooks"] = hooks_json(op);
  j["requirements"] = op.requirements.size();
  j["variants"] = Json::array();
  for (const Variant& v : op.variants) j["variants"].push_back(v.name);
  j["candidates"] = Json::object();
  for (const Variant& v : op.variants)
    if (!v.candidates.empty()) j["candidates"][v.name] = std::vector<std::string>(v.candidates.begin(), v.candidates.end());
  j["cases"] = Json::object();
  for (const CaseAxis& c : op.cases) {
    Json& values = j["cases"][c.name] = Json::array();
    for (const CaseValue& v : c.values) values.push_back(value_word(op, c.name, v));
  }
  j["words"] = Json::object();
  for (const CaseAxis& c : op.cases)
    if (!c.meaning.empty()) j["words"][c.name] = c.meaning;
  j["bench"] = Json::array();
  for (const Case& shape : op.bench) j["bench"].push_back(testing::case_text(op, shape));
  j["budget"] = budgets_json(op);
  if (op.has_rows) j["rows"] = name(op.rows);
  j["axis_otherwise"] = op.axis_otherwise;
  for (const Backward& b : op.backward) j["backward"].push_back({{"op", b.op}, {"gradients", b.gradients}});
  j["parameters"] = testing::parameter_names(op);
  return j;
}

static void print(const Op& op) {
  fmt::print("{}\n  {}\n", op.id, op.doc);
  if (!op.source.empty()) fmt::print("  after {}\n", op.source);
  if (op.has_rows) fmt::print("  each index of `{}` is computed from that index alone\n", name(op.rows));
  for (const Backward& b : op.backward) fmt::print("  its gradients: {}\n", b.op);
  if (op.hooks_offset >= 0) {
    fmt::print("  takes hooks: code of yours inside its kernels, docs/own_ops.md\n");
    for (const jit::HookPoint& p : op.hook_points->list) fmt::print("    QN_DEVICE {}\n", p.signature);
  }
  Table tensors({"tensor", "role", "dims", "dtype", "meaning"});
  for (const TensorDef& t : op.tensors) {
    if (t.any_shape()) continue;
    std::string meaning = t.doc;
    const auto also = [&](const std::string& text) { meaning += (meaning.empty() || text.empty() ? "" : "; ") + text; };
    also(contents_text(op, t));
    also(t.optional ? "optional" : "");
    also(t.strided ? "any strides" : "");
    also(t.either_major ? "rows or columns are dense" : "");
    also(t.column_bytes ? fmt::format("allocated column by column, each a multiple of {} bytes", t.column_bytes) : "");
    also(t.may_be >= 0 ? "may be " + op.tensors[size_t(t.may_be)].name + " itself" : "");
    tensors.add({t.name, name(t.role), "[" + t.extents_text + "]", fmt::format("{}", fmt::join(dtype_words(op, t), " ")), meaning});
  }
  fmt::print("\n{}", tensors.text());
  if (!op.attrs.empty()) {
    Table attrs({"attribute", "type", "default", "meaning"});
    for (const AttrDef& a : op.attrs) attrs.add({a.name, type_word(a), number(a), a.doc});
    fmt::print("\n{}", attrs.text());
  }
  Table variants({"variant", "runs"});
  for (const Variant& v : op.variants) variants.add({v.name, v.rejects ? "where `quern plan` says so" : "everything"});
  fmt::print("\n{}", variants.text());
  for (const Variant& v : op.variants)
    if (!v.candidates.empty()) fmt::print("candidates of {}, each a variant {}:NAME: {}\n", v.name, v.name, fmt::join(v.candidates, ", "));
  Table cases({"case", "values", "meaning"});
  for (const CaseAxis& c : op.cases) {
    std::string values;
    for (const CaseValue& v : c.values) values += (values.empty() ? "" : " ") + value_word(op, c.name, v);
    cases.add({c.name, values.empty() ? "-" : values, meaning_of(c)});
  }
  fmt::print("\n{}", cases.text());
}

std::string info_json(const std::string& op) { return to_json(find_op(op)).dump(2); }

int info(const InfoOptions& options) {
  if (options.json) std::puts(info_json(options.op).c_str());
  else print(find_op(options.op));
  return kRight;
}

}  // namespace quern::cli
