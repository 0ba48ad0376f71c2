// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/model.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "quern/base/error.h"
#include "quern/base/fs.h"
#include "quern/base/json_depth.h"
#include "quern/base/nearest.h"
#include "quern/jit/sources.h"

namespace quern {

using Json = nlohmann::ordered_json;

const LayerTensor& Layer::tensor(const std::string& wanted) const {
  for (const LayerTensor& t : tensors)
    if (t.name == wanted) return t;
  throw Error(ErrorKind::value, "", wanted, "is no tensor of the model file", "one that it states");
}

size_t Layer::repeated() const {
  size_t count = 0;
  while (count < calls.size() && !calls[count].once) ++count;
  return count;
}

const Limit* Model::limit(const std::string& wanted) const {
  for (const Limit& l : limits)
    if (l.name == wanted) return &l;
  return nullptr;
}

static i64 parse_size(const std::string& name, const std::string& text) {
  if (text.empty() || text.size() > 15 || text.find_first_not_of("0123456789") != std::string::npos)
    throw Error(ErrorKind::value, "", name, "is '" + text + "'", "a size, a list as in 1,2,4 or a range as in 1..512");
  return std::stoll(text);
}

/// What alignments and switches may be: a list of known values. A range would be walked by its ends.
static void check_known(const Limit& limit, const std::string& text) {
  const std::vector<i64> known = limit.name == "alignment"         ? std::vector<i64>{1, 2, 4, 8, 16}
                                 : limit.name == "batch_invariant" ? std::vector<i64>{0, 1}
                                                                   : std::vector<i64>{};
  if (known.empty()) return;
  const auto is_known = [&](i64 value) { return std::find(known.begin(), known.end(), value) != known.end(); };
  if (!limit.range && std::all_of(limit.values.begin(), limit.values.end(), is_known)) return;
  throw Error(ErrorKind::value, "", limit.name, "is '" + text + "'",
              limit.name == "alignment" ? "1, 2, 4, 8 or 16, or several as in 8,16" : "0, 1 or 0,1");
}

/// "1..512", or "1,2,4".
static Limit parse_limit(const std::string& name, const std::string& text) {
  Limit limit{name, false, {}};
  if (const size_t dots = text.find(".."); dots != std::string::npos) {
    limit.range = true;
    limit.values = {parse_size(name, text.substr(0, dots)), parse_size(name, text.substr(dots + 2))};
    if (limit.values[0] > limit.values[1])
      throw Error(ErrorKind::value, "", name, "is '" + text + "'", "a range that ends where it starts or behind");
    check_known(limit, text);
    return limit;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    limit.values.push_back(parse_size(name, text.substr(begin, end - begin)));
    begin = end + 1;
  }
  check_known(limit, text);
  return limit;
}

/// A number, string or switch as text.
static std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (!value.is_number()) throw Error(ErrorKind::value, "", "model", "has " + value.dump(), "a number, a string or a switch");
  return value.dump();
}

static std::vector<std::string> texts_of(const Json& value) {
  std::vector<std::string> texts;
  if (!value.is_array()) return {text_of(value)};
  for (const Json& one : value) texts.push_back(text_of(one));
  if (texts.empty()) throw Error(ErrorKind::value, "", "model", "has an empty list", "at least one value");
  return texts;
}

static Limit parse_limit(const std::string& name, const Json& json) {
  std::string text;
  for (const std::string& one : texts_of(json)) text += (text.empty() ? "" : ",") + one;
  return parse_limit(name, text);
}

static i64 geometry_value(const std::string& word, const Json& value) {
  constexpr u64 kMost = 999'999'999'999'999;  // as of limits
  if (!value.is_number_unsigned() || value.get<u64>() > kMost)
    throw Error(ErrorKind::value, "", word, "is " + value.dump() + " in geometry", "an integer in [0, " + std::to_string(kMost) + "]");
  return value.get<i64>();
}

/// A key that nothing reads is a mistake, of which its writer would not hear otherwise.
static void check_keys(const Json& json, const std::string& what, const std::vector<std::string>& known) {
  for (const auto& [key, value] : json.items())
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string near = nearest(key, known);
      std::string all;
      for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
      throw Error(ErrorKind::value, "", "model", "has `" + key + "` in " + what, near.empty() ? "one of " + all : "`" + near + "`");
    }
}

static ModelCall parse_call(const Json& json) {
  check_keys(json, "a call", {"does", "op", "missing", "case"});
  ModelCall c;
  c.does = json.at("does");
  c.op = json.at("op");
  c.missing = json.value("missing", false);
  if (c.missing) return c;
  for (const auto& [word, value] : json.at("case").items()) c.words.push_back({word, texts_of(value)});
  return c;
}

static LayerTensor parse_tensor(const std::string& name, const Json& json, DType standard) {
  check_keys(json, "the tensor " + name, {"of", "offset", "shape", "strides", "holds", "dtype"});
  LayerTensor t;
  t.name = name;
  t.of = json.value("of", "");
  t.offset = json.value("offset", "");
  t.shape = json.at("shape");
  t.strides = json.value("strides", "");
  t.holds = json.value("holds", "");
  t.dtype = json.contains("dtype") ? dtype_from_name(json.at("dtype")) : standard;
  return t;
}

static Scalar number_of(const std::string& attr, const Json& value) {
  if (value.is_number_integer() && (!value.is_number_unsigned() || value.get<u64>() <= u64(std::numeric_limits<i64>::max())))
    return value.get<i64>();
  if (value.is_boolean()) return value.get<bool>();
  if (!value.is_number_float())
    throw Error(ErrorKind::value, "", attr, "is " + value.dump(), "a number, an integer within 64 bits, or a switch");
  return value.get<double>();
}

static LayerCall parse_layer_call(const Json& json) {
  check_keys(json, "a call of decode_layer", {"does", "op", "args", "attrs", "once"});
  LayerCall c;
  c.does = json.at("does");
  c.op = json.at("op");
  c.once = json.value("once", false);
  for (const auto& [argument, tensor] : json.at("args").items()) c.args.emplace_back(argument, tensor.get<std::string>());
  if (json.contains("attrs"))
    for (const auto& [attr, value] : json.at("attrs").items()) c.attrs.emplace_back(attr, number_of(attr, value));
  return c;
}

static Layer parse_layer(const Json& json) {
  check_keys(json, "decode_layer", {"dtype", "tensors", "calls", "outputs"});
  Layer layer;
  const DType standard = dtype_from_name(json.at("dtype"));
  for (const auto& [tensor, definition] : json.at("tensors").items()) layer.tensors.push_back(parse_tensor(tensor, definition, standard));
  for (const Json& call : json.at("calls")) layer.calls.push_back(parse_layer_call(call));
  for (size_t i = layer.repeated(); i < layer.calls.size(); ++i)
    if (!layer.calls[i].once)
      throw Error(ErrorKind::value, "", "model", "has the call '" + layer.calls[i].does + "' behind one that is made once",
                  "calls that are made once behind all others");
  for (const Json& output : json.at("outputs")) layer.outputs.push_back(output);
  return layer;
}

static std::string text_of_model(const std::string& name) {
  if (const auto file = read_file(name)) return *file;
  std::string known;
  for (const std::string& source : jit::source_names()) {
    if (!source.starts_with("models/")) continue;
    const std::string model = source.substr(7, source.size() - 7 - 5);  // models/NAME.json
    if (model == name) return jit::source_text(source);
    known += (known.empty() ? "" : ", ") + model;
  }
  throw Error(ErrorKind::value, "", "model", "is '" + name + "'", "a file, or one of " + known);
}

Model load_model(const std::string& name) {
  try {
    const std::string text = text_of_model(name);
    if (!json_nests_well(text))
      throw Error(ErrorKind::value, "", "model", "'" + name + "' is nested deeper than " + std::to_string(kMostJsonDepth), "a model file");
    const Json json = Json::parse(text);
    check_keys(json, "the model", {"name", "geometry", "limits", "calls", "decode_layer"});
    Model m;
    m.name = json.at("name");
    for (const auto& [word, value] : json.at("geometry").items()) m.geometry[word] = geometry_value(word, value);
    if (json.contains("limits"))
      for (const auto& [word, value] : json.at("limits").items()) m.limits.push_back(parse_limit(word, value));
    for (const Limit& l : m.limits)
      if (m.geometry.count(l.name)) throw Error(ErrorKind::value, "", l.name, "is in geometry and in limits", "one of them");
    if (json.contains("calls"))
      for (const Json& call : json.at("calls")) m.calls.push_back(parse_call(call));
    if (json.contains("decode_layer")) m.layer = parse_layer(json.at("decode_layer"));
    return m;
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::value, "", "model", "'" + name + "' cannot be read: " + e.what(), "");
  }
}

/// What set_limit() takes: the model's own, and two that all models have.
static std::vector<std::string> known_limits(const Model& model) {
  std::vector<std::string> known = {"alignment", "batch_invariant"};
  for (const Limit& l : model.limits)
    if (l.name != known[0] && l.name != known[1]) known.push_back(l.name);
  return known;
}

void set_limit(Model& model, const std::string& word) {
  const std::vector<std::string> known = known_limits(model);
  std::string all;
  for (const std::string& k : known) all += (all.empty() ? "" : ", ") + k;
  const size_t equals = word.find('=');
  if (equals == std::string::npos)
    throw Error(ErrorKind::value, "", "limit", "is '" + word + "'", "name=1,2,4 or name=1..512; known are " + all);
  const Limit limit = parse_limit(word.substr(0, equals), word.substr(equals + 1));
  for (Limit& l : model.limits) {
    if (l.name == limit.name) {
      l = limit;
      return;
    }
  }
  if (std::find(known.begin(), known.end(), limit.name) == known.end()) {
    const std::string near = nearest(limit.name, known);
    throw Error(ErrorKind::value, "", limit.name, "is no limit of " + model.name,
                near.empty() ? "one of " + all : "`" + near + "`; known are " + all);
  }
  model.limits.push_back(limit);
}

}  // namespace quern
