// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// quern completion: the scripts ask `quern completion next WORDS...` at each key, so that the three shells know the same.
#include <algorithm>
#include <cstdio>
#include <set>

#include "quern/cli/commands.h"
#include "quern/testing/case_text.h"

namespace quern::cli {

namespace {

const char* const kBash = R"(_quern() {
  local line="${COMP_LINE:0:COMP_POINT}" prefix="" word
  local -a words
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  # Where = ends a word for readline, only what stands behind it is replaced.
  [[ ${words[-1]} == *=* && $COMP_WORDBREAKS == *=* ]] && prefix="${words[-1]%=*}="
  COMPREPLY=()
  while IFS= read -r word; do COMPREPLY+=("${word#"$prefix"}"); done < <("${words[0]}" completion next "${words[@]:1}" 2>/dev/null)
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -o default -F _quern quern
)";

const char* const kZsh = R"(#compdef quern
_quern() {
  local -a all
  all=("${(@f)$("${words[1]}" completion next "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -S '' -- "${(@M)all:#*=}"
  compadd -- "${(@)all:#*=}"
}
compdef _quern quern
)";

const char* const kFish = R"(complete -c quern -f -a '(quern completion next (commandline -opc)[2..-1] (commandline -ct))'
complete -c quern -l replay -rF
complete -c quern -l csv -rF
)";

/// Subcommands that take several ops and families.
bool takes_families(const std::string& command) { return command == "check" || command == "bench"; }
bool takes_op(const std::string& command) { return takes_families(command) || command == "info" || command == "plan" || command == "run"; }

std::vector<std::string> op_words(bool families) {
  std::set<std::string> words;
  for (const auto& [id, op] : registry()) {
    words.insert(id);
    if (families) words.insert(id.substr(0, id.find('.')));
  }
  if (families) words.insert("all");
  return {words.begin(), words.end()};
}

/// "tokens=", or behind the sign the values that the op's cases know.
std::vector<std::string> parameter_words(const Op& op, const std::string& begun) {
  std::vector<std::string> words;
  const size_t sign = begun.find('=');
  if (sign == std::string::npos) {
    for (const std::string& name : testing::parameter_names(op)) words.push_back(name + "=");
    return words;
  }
  for (const CaseAxis& axis : op.cases)
    for (const CaseValue& v : axis.values)
      if (axis.name == begun.substr(0, sign)) words.push_back(testing::case_text(op, {{axis.name, v}}));
  return words;
}

const Op* op_among(const std::vector<std::string>& words) {
  for (size_t i = 1; i + 1 < words.size(); ++i)
    if (const auto at = registry().find(words[i]); at != registry().end()) return at->second;
  return nullptr;
}

std::vector<std::string> candidates(const CommandWords& known, const std::vector<std::string>& words) {
  std::vector<std::string> all;
  if (words.size() <= 1) {
    for (const auto& [command, options] : known) all.push_back(command);
    return all;
  }
  const std::string &command = words[0], &begun = words.back(), &before = words[words.size() - 2];
  const auto at = known.find(command);
  if (at == known.end()) return all;
  if (begun.starts_with("-")) return at->second;
  if (command == "completion") return {"bash", "fish", "zsh"};
  if (before == "--device") return {"all", "cuda", "emu"};
  if (before == "--op") return op_words(true);
  if (before == "--arch") {
    for (const Arch& arch : known_archs()) all.push_back(arch.name());
    return all;
  }
  if (!takes_op(command)) return all;
  const Op* op = op_among(words);
  if (op && command != "info") return parameter_words(*op, begun);
  return op ? all : op_words(takes_families(command));
}

}  // namespace

std::vector<std::string> next_words(const CommandWords& known, const std::vector<std::string>& words) {
  std::vector<std::string> all = candidates(known, words);
  const std::string begun = words.empty() ? "" : words.back();
  std::erase_if(all, [&](const std::string& word) { return !word.starts_with(begun); });
  return all;
}

int completion(const std::string& shell) {
  std::fputs(shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish, stdout);
  return kRight;
}

}  // namespace quern::cli
