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

static std::string filled(std::string text, const std::string& family, const std::string& name) {
  const std::pair<std::string, std::string> words[] = {
      {"@family@", family}, {"@name@", name}, {"@Name@", pascal(name)}};
  for (const auto& [from, to] : words)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  return text;
}

int new_op(const NewOptions& options) {
  const size_t dot = options.op.find('.');
  const std::string family = options.op.substr(0, dot),
                    name = dot == std::string::npos ? "" : options.op.substr(dot + 1);
  if (!is_word(family) || !is_word(name))
    throw Error(ErrorKind::value, "", "op", "is '" + options.op + "'",
                "family.name in snake_case, as in elementwise.scale");
  if (registry().count(options.op))
    throw Error(ErrorKind::value, "", "op", "is '" + options.op + "', which is there already", "a new name");
  if (!std::filesystem::is_directory(options.checkout + "/quern/ops"))
    throw Error(ErrorKind::value, "", "--checkout", "is '" + options.checkout + "', which has no folder quern/ops",
                "the root of a quern checkout");
  const std::string folder = options.checkout + "/quern/ops/" + family;
  for (const TemplateFile& file : op_template())
    if (const std::string path = folder + "/" + name + file.suffix; std::filesystem::exists(path))
      throw Error(ErrorKind::value, "", "op", "is '" + options.op + "', whose file " + path + " exists",
                  "nothing to overwrite");
  if (!make_folders(folder)) throw Error(ErrorKind::device, "the folder " + folder + " cannot be made");
  for (const TemplateFile& file : op_template()) {
    const std::string path = folder + "/" + name + file.suffix;
    write_file(path, filled(file.text, family, name));
    fmt::print("wrote {}\n", path);
  }
  fmt::print(
      "\nNow it scales a matrix. Next:\n"
      "  1. the maths: the loop in {0}.cuh, the same in double in {0}_ref.h\n"
      "  2. the facts: tensors, attributes, plan and cases in {0}.cpp, what the kernel gets in {0}_spec.h\n"
      "  3. build again, then: quern check {1}\n"
      "     and: quern bench --compile {1}\n",
      name, options.op);
  return kRight;
}

}  // namespace quern::cli
