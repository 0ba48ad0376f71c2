// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/model.h"

#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "quern/base/error.h"
#include "quern/base/fs.h"
#include "quern/jit/sources.h"

namespace quern::testing {

using Json = nlohmann::ordered_json;

const ModelTensor& Model::tensor(const std::string& wanted) const {
  for (const ModelTensor& t : tensors)
    if (t.name == wanted) return t;
  throw Error(ErrorKind::value, name, wanted, "is no tensor of the model file", "one that it states");
}

static ModelTensor parse_tensor(const std::string& name, const Json& json, DType standard) {
  ModelTensor t;
  t.name = name;
  t.of = json.value("of", "");
  t.offset = json.value("offset", "");
  t.shape = json.at("shape");
  t.strides = json.value("strides", "");
  t.holds = json.value("holds", "");
  t.dtype = json.contains("dtype") ? dtype_from_name(json.at("dtype")) : standard;
  return t;
}

static ModelCall parse_call(const Json& json) {
  ModelCall c;
  c.does = json.at("does");
  c.op = json.at("op");
  for (const auto& [argument, tensor] : json.at("args").items()) c.args.emplace_back(argument, tensor.get<std::string>());
  if (json.contains("attrs"))
    for (const auto& [attr, value] : json.at("attrs").items()) c.attrs.emplace_back(attr, value.get<double>());
  return c;
}

Model load_model(const std::string& name) {
  std::string text;
  if (const auto file = read_file(name)) text = *file;
  else text = jit::source_text("models/" + name + ".json");
  try {
    const Json json = Json::parse(text);
    Model m;
    m.name = json.at("name");
    for (const auto& [word, value] : json.at("geometry").items()) m.geometry[word] = value.get<i64>();
    const Json& layer = json.at("decode_layer");
    const DType standard = dtype_from_name(layer.at("dtype"));
    for (const auto& [tensor, definition] : layer.at("tensors").items())
      m.tensors.push_back(parse_tensor(tensor, definition, standard));
    for (const Json& call : layer.at("calls")) m.calls.push_back(parse_call(call));
    for (const Json& output : layer.at("outputs")) m.outputs.push_back(output);
    return m;
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::value, "", "model", "'" + name + "' cannot be read: " + e.what(), "");
  }
}

i64 extent_value(const std::string& word, const Extents& extents) {
  if (const size_t star = word.find('*'); star != std::string::npos)
    return extent_value(word.substr(0, star), extents) * extent_value(word.substr(star + 1), extents);
  if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) && word.size() < 18) return std::stoll(word);
  const auto it = extents.find(word);
  if (it == extents.end()) throw Error(ErrorKind::value, "", "model", "has the extent '" + word + "'", "a word of its geometry or axes");
  return it->second;
}

std::vector<i64> extent_values(const std::string& words, const Extents& extents) {
  std::istringstream in(words);
  std::vector<i64> values;
  for (std::string word; in >> word;) values.push_back(extent_value(word, extents));
  return values;
}

}  // namespace quern::testing
