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
    if (c == '_')
      up = true;
    else
      out += up ? char(std::toupper(static_cast<unsigned char>(c))) : c, up = false;
  }
  return out;
}

static std::string filled(std::string text, const std::string& folder, const std::string& family, const std::string& name) {
  const std::pair<std::string, std::string> words[] = {
      {"@folder@", folder}, {"@family@", family}, {"@name@", name}, {"@Name@", pascal(name)}};
  for (const auto& [from, to] : words)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  return text;
}

/// Without the lines of licence and copyright: files of a project of the user's own are the user's.
static std::string without_licence(const std::string& text) {
  size_t at = 0;
  while (text.compare(at, 8, "// SPDX-") == 0 || text.compare(at, 12, "// Copyright") == 0) at = text.find('\n', at) + 1;
  return text.substr(at);
}

int new_op(const NewOptions& options) {
  const size_t dot = options.op.find('.');
  const std::string family = options.op.substr(0, dot),
                    name = dot == std::string::npos ? "" : options.op.substr(dot + 1);
  if (!is_word(family) || !is_word(name))
    throw Error(ErrorKind::value, "", "op", "is '" + options.op + "'",
                "family.name in snake_case, as in elementwise.scale");
  if (registry().count(options.op))
    throw Error(ErrorKind::value, "", "op", "is '" + options.op + "', which is built into this quern", "a new name (or build again, if you removed its files)");
  const bool own = !options.project.empty();
  if (own && !std::filesystem::is_directory(options.project))
    throw Error(ErrorKind::value, "", "--project", "is '" + options.project + "', which is no folder", "the root of your project");
  if (!own && !std::filesystem::is_directory(options.checkout + "/quern/ops"))
    throw Error(ErrorKind::value, "", "--checkout", "is '" + options.checkout + "', which has no folder quern/ops",
                "the root of a quern checkout");
  const std::string inside = own ? family : "quern/ops/" + family;  // as the files include each other
  const std::string folder = (own ? options.project : options.checkout) + "/" + inside;
  const auto path_of = [&](const TemplateFile& file) { return folder + "/" + filled(file.path, inside, family, name); };
  for (const TemplateFile& file : op_template())
    if (const std::string path = path_of(file); std::filesystem::exists(path))
      throw Error(ErrorKind::value, "", "op", "is '" + options.op + "', whose file " + path + " exists",
                  "nothing to overwrite");
  if (!make_folders(folder + "/" + name)) throw Error(ErrorKind::device, "the folder " + folder + "/" + name + " cannot be made");
  for (const TemplateFile& file : op_template()) {
    const std::string path = path_of(file);
    write_file(path, filled(own ? without_licence(file.text) : file.text, inside, family, name));
    fmt::print("wrote {}\n", path);
  }
  if (own) {
    fmt::print(
        "\nNow it scales a matrix. Add it to a library of your CMakeLists.txt:\n"
        "  find_package(quern REQUIRED)\n"
        "  quern_embed_sources(${{CMAKE_CURRENT_BINARY_DIR}}/kernels.cpp {0}/{1}/kernel.cuh {0}/{1}/spec.h)\n"
        "  add_library(ops SHARED {0}/{1}/{1}.cpp ${{CMAKE_CURRENT_BINARY_DIR}}/kernels.cpp)\n"
        "  target_include_directories(ops PUBLIC .)\n"
        "  target_link_libraries(ops PUBLIC quern::quern)\n"
        "build it, then: quern --load build/libops.so check {2}\n",
        inside, name, options.op);
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
