// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "quern/base/fs.h"
#include "quern/cli/commands.h"
#include "quern/cli/op_template.h"

namespace quern::cli {

static bool is_word(const std::string& s) {
  if (s.empty() || !std::islower(static_cast<unsigned char>(s[0]))) return false;
  for (const unsigned char c : s)
    if (!std::islower(c) && !std::isdigit(c) && c != '_') return false;
  return true;
}

/// "rms_norm" becomes "RmsNorm".
static std::string pascal(const std::string& name) {
  std::string out;
  bool up = true;
  for (const char c : name) {
    if (c == '_') up = true;
    else out += up ? char(std::toupper(static_cast<unsigned char>(c))) : c, up = false;
  }
  return out;
}

using Words = std::vector<std::pair<std::string, std::string>>;

static std::string filled(std::string text, const Words& words) {
  for (const auto& [from, to] : words)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

/// "f32 logit(f32 x, const HookContext& at)" as a member of hooks that changes nothing, and as the same for a reference.
static std::pair<std::string, std::string> neutral(const std::string& signature) {
  const size_t open = signature.find('('), first_end = signature.find_first_of(",)", open);
  const std::string first = signature.substr(open + 1, first_end - open - 1), rest = signature.substr(first_end);
  const std::string name = first.substr(first.find_last_of(' ') + 1),
                    body = " { return " + (signature.starts_with("bool ") ? "true" : name) + "; }";
  const std::string exact = first.starts_with("f32 ") ? "double " + name : first;
  std::string others = rest;
  if (others.starts_with(", ")) others.insert(2, "[[maybe_unused]] ");
  return {"  QN_DEVICE " + signature + body + "\n", ",\n      []([[maybe_unused]] " + exact + others + body};
}

/// Words of the op that a new one is based on.
static Words words_of_base(const std::string& id) {
  const Op& base = find_op(id);
  std::string takers;
  for (const auto& [other, op] : registry())
    if (op->hook_points && !op->base) takers += (takers.empty() ? "" : ", ") + other;
  if (!base.hook_points)
    throw Error(ErrorKind::value, "", "--based-on", "is '" + id + "', whose kernels take no hooks", "one of " + takers);
  if (base.base) throw Error(ErrorKind::value, "", "--based-on", "is '" + id + "', which has hooks of its own already", "one of " + takers);
  const size_t dot = id.find('.');
  std::string members, meanings;
  for (const jit::HookPoint& point : base.hook_points->list) {
    if (point.hint) continue;
    const auto [member, meaning] = neutral(point.signature);
    members += member, meanings += meaning;
  }
  const std::string name = id.substr(dot + 1);
  return {{"@base@", id},    {"@scope@", id.substr(0, dot)}, {"@Args@", pascal(name) + "Args"},
          {"@based@", name}, {"@members@", members},         {"@meanings@", meanings}};
}

/// Without the lines of licence and copyright: files of a project of the user's own are the user's.
static std::string without_licence(const std::string& text) {
  size_t at = 0;
  while (text.compare(at, 8, "// SPDX-") == 0 || text.compare(at, 12, "// Copyright") == 0) at = text.find('\n', at) + 1;
  return text.substr(at);
}

int new_op(const NewOptions& options) {
  const size_t dot = options.op.find('.');
  const std::string family = options.op.substr(0, dot), name = dot == std::string::npos ? "" : options.op.substr(dot + 1);
  if (!is_word(family) || !is_word(name))
    throw Error(ErrorKind::value, "", "op", "is '" + options.op + "'", "family.name in snake_case, as in elementwise.scale");
  if (registry().count(options.op))
    throw Error(ErrorKind::value, "", "op", "is '" + options.op + "', which is built into this quern",
                "a new name (or build again, if you removed its files)");
  const bool own = !options.project.empty();
  if (own && !std::filesystem::is_directory(options.project))
    throw Error(ErrorKind::value, "", "--project", "is '" + options.project + "', which is no folder", "the root of your project");
  if (!own && !std::filesystem::is_directory(options.checkout + "/quern/ops"))
    throw Error(ErrorKind::value, "", "--checkout", "is '" + options.checkout + "', which has no folder quern/ops",
                "the root of a quern checkout");
  const std::string inside = own ? family : "quern/ops/" + family;  // as the files include each other
  const std::string folder = (own ? options.project : options.checkout) + "/" + inside;
  const bool hooked = !options.based_on.empty();
  Words words = {{"@folder@", inside}, {"@family@", family}, {"@name@", name}, {"@Name@", pascal(name)}};
  for (const auto& word : hooked ? words_of_base(options.based_on) : Words{}) words.push_back(word);
  const std::span<const TemplateFile> files = hooked ? hooks_template() : op_template();
  const auto path_of = [&](const TemplateFile& file) { return folder + "/" + filled(file.path, words); };
  for (const TemplateFile& file : files)
    if (const std::string path = path_of(file); std::filesystem::exists(path))
      throw Error(ErrorKind::value, "", "op", "is '" + options.op + "', whose file " + path + " exists", "nothing to overwrite");
  if (!make_folders(folder + "/" + name)) throw Error(ErrorKind::device, "the folder " + folder + "/" + name + " cannot be made");
  for (const TemplateFile& file : files) {
    const std::string path = path_of(file);
    write_file(path, filled(own ? without_licence(file.text) : file.text, words));
    fmt::print("wrote {}\n", path);
  }
  if (own) {
    fmt::print(
        "\nNow it {3}. Add it to a library of your CMakeLists.txt:\n"
        "  find_package(quern REQUIRED)\n"
        "  quern_embed_sources(${{CMAKE_CURRENT_BINARY_DIR}}/kernels.cpp {4})\n"
        "  add_library(ops SHARED {0}/{1}/{1}.cpp ${{CMAKE_CURRENT_BINARY_DIR}}/kernels.cpp)\n"
        "  target_include_directories(ops PUBLIC .)\n"
        "  target_link_libraries(ops PUBLIC quern::quern)\n"
        "build it, then: quern --load build/libops.so check {2}\n",
        inside, name, options.op, hooked ? "is " + options.based_on : "scales a matrix",
        filled(hooked ? "@folder@/@name@/hooks.cuh" : "@folder@/@name@/kernel.cuh @folder@/@name@/spec.h", words));
    return kRight;
  }
  fmt::print(
      "\nNow it scales a matrix. Next:\n"
      "  1. the maths: the loop in {0}/kernel.cuh, the same in double in {0}/ref.h\n"
      "  2. the facts: tensors, attributes, plan and cases in {0}/{0}.cpp, what the kernel gets in {0}/spec.h\n"
      "  3. build again, then: quern check {1}\n"
      "     and: quern bench --compile {1}\n",
      name, options.op);
  return kRight;
}

}  // namespace quern::cli
