// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <sstream>
#include <vector>

#include "quern/base/env.h"
#include "quern/base/tensor_view.h"
#include "quern/jit/hook_text.h"
#include "quern/jit/kernel_source.h"
#include "quern/jit/spec.h"

namespace quern_reflect {
std::string dtype_word(quern::DType t) { return quern::name(t); }
}  // namespace quern_reflect

namespace quern::jit {

/// A field of a Config as its source declares it.
struct Field {
  std::string type, name;
};

static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The last word of a text.
static std::string last_word(const std::string& text) {
  const auto last = std::find_if(text.rbegin(), text.rend(), is_word), before = std::find_if_not(last, text.rend(), is_word);
  return {before.base(), last.base()};
}

/// The fields that a line of declarations gives, `i32 tile_m, tile_n = 64;` two.
static void add_declared(std::string line, std::vector<Field>& fields) {
  for (size_t end; (end = line.find(';')) != std::string::npos; line = line.substr(end + 1)) {
    std::istringstream declared(line.substr(0, end));
    std::string type;
    for (std::string one; std::getline(declared, one, ',');) {
      one = one.substr(0, one.find_first_of("={["));
      const std::string name = last_word(one);
      if (type.empty()) type = last_word(one.substr(0, one.rfind(name)));
      fields.push_back({type, name});
    }
  }
}

/// The fields of a struct as the headers declare it, before its functions; none where they do not.
static std::vector<Field> declared_fields(const std::string& type, const std::vector<Source>& headers) {
  std::vector<Field> fields;
  for (const Source& source : headers) {
    const size_t at = source.text.find("struct " + type + " {");
    if (at == std::string::npos) continue;
    std::istringstream lines(source.text.substr(at));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line) && !line.starts_with('}')) {
      line = line.substr(0, line.find("//"));
      if (line.find('(') != std::string::npos) break;
      if (line.find("static ") != std::string::npos) continue;  // a constant of the type, not a field
      add_declared(line, fields);
    }
    break;
  }
  return fields;
}

/// Those of a nested Config stand in its place.
static void add_field_names(const std::string& type, const std::vector<Source>& headers, std::vector<std::string>& names) {
  for (const Field& field : declared_fields(type, headers)) {
    const size_t before = names.size();
    add_field_names(field.type, headers, names);
    if (names.size() == before) names.push_back(field.name);
  }
}

static std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string w; in >> w;) out.push_back(w);
  return out;
}

/// Names of a Config's fields, read from the source that declares it: the language has no reflection yet, and a second list of the
/// names would be a second place for one fact. f0, f1 .. where they cannot be read.
static std::vector<std::string> field_names(const KernelSpec& spec, const std::vector<Source>& headers) {
  const std::string& type = spec.kernel->config_type;
  const size_t count = words(spec.kernel->values(spec.config)).size();
  std::vector<std::string> names;
  add_field_names(type.substr(type.rfind("::") + 2), headers, names);
  if (names.size() == count) return names;
  names.clear();
  for (size_t i = 0; i < count; ++i) names.push_back("f" + std::to_string(i));
  return names;
}

static std::string print(const KernelSpec& spec, const std::vector<std::string>& names) {
  const auto values = words(spec.kernel->values(spec.config));
  std::string s = spec.kernel->name + "<";
  for (size_t i = 0; i < values.size(); ++i) s += (i ? ", " : "") + names[i] + "=" + values[i];
  if (spec.hooks) s += std::string(", hooks=") + spec.hooks->name;
  return s + ">";
}

static std::string entry_name(const KernelSpec& spec, const std::vector<std::string>& names) {
  const auto values = words(spec.kernel->values(spec.config));
  std::string s = spec.kernel->name + "_";
  // In front: profilers' tables cut long names off.
  if (spec.kernel->purpose) s += std::string("_") + spec.kernel->purpose(spec.config);
  for (size_t i = 0; i < values.size(); ++i) {
    const bool number = std::isdigit(values[i][0]) || values[i][0] == '-';
    s += "_" + (number ? names[i] : "") + values[i];
  }
  if (spec.hooks) s += std::string("_") + spec.hooks->name;
  for (char& c : s)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return s;
}

/// The part of the rendered file that includes others.
static std::string prologue(const KernelSpec& spec) {
  const std::string include = "#include \"" + spec.kernel->header + "\"\n";
  return spec.hooks ? include + spec.hooks->text + "\n" : include;
}

static std::string render(const KernelSpec& spec, const std::string& entry) {
  const KernelInfo& k = *spec.kernel;
  std::string s = prologue(spec);
  s += "static_assert(sizeof(" + k.params_type + ") == " + std::to_string(k.params_bytes) +
       ", \"host and device disagree on the layout of Params\");\n";
  s += "constexpr " + k.config_type + " config{" + k.initialiser(spec.config) + "};\n";
  std::string arguments = "config";
  if (k.hook_points) arguments += std::string(", ") + (spec.hooks ? spec.hooks->type : k.hook_points->none);
  s += "QN_ENTRY(" + entry + ", " + k.params_type + ", " + std::to_string(k.threads(spec.config)) + ", " +
       std::to_string(k.min_blocks(spec.config)) + ", " + k.function + "<" + arguments + ">(p))\n";
  return s;
}

KernelSource read_source(const KernelSpec& spec, bool emulated) {
  KernelSource source;
  source.headers = included_sources(prologue(spec), emulated);
  if (spec.hooks && spec.kernel->hook_points) check_hooks(*spec.hooks, *spec.kernel->hook_points, source.headers);
  const std::vector<std::string> names = field_names(spec, source.headers);
  source.name = print(spec, names);
  source.entry = entry_name(spec, names);
  source.text = render(spec, source.entry);
  return source;
}

/// Reading them takes 4 ms. Kept for sources that cannot change; those below QN_SOURCE_DIR can.
static std::vector<std::string> field_names(const KernelSpec& spec) {
  const auto read = [&] { return field_names(spec, included_sources(prologue(spec), true)); };
  if (!env_path(Env::source_dir).empty()) return read();
  static std::mutex mutex;
  static std::map<std::string, std::vector<std::string>> known;
  std::lock_guard lock(mutex);
  std::vector<std::string>& names = known[spec.kernel->header + " " + spec.kernel->config_type];
  if (names.empty()) names = read();
  return names;
}

std::string print(const KernelSpec& spec) { return print(spec, field_names(spec)); }
std::string function_of(const std::string& printed) { return printed.substr(0, printed.find('<')); }
std::string entry_name(const KernelSpec& spec) { return entry_name(spec, field_names(spec)); }
std::string render(const KernelSpec& spec) { return render(spec, entry_name(spec)); }

}  // namespace quern::jit
