// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/hook_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>

#include "quern/base/error.h"
#include "quern/base/nearest.h"

namespace quern::jit {

namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Words and signs of a text, without comments, literals and lines of the preprocessor; "::" and "->" are one each.
class Tokens {
 public:
  explicit Tokens(const std::string& text) : text_(text) {
    bool line_start = true;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') line_start = true, ++at_;
      else if (std::isspace(static_cast<unsigned char>(c))) ++at_;
      else if (c == '#' && line_start) skip_directive();
      else if (starts("//")) at_ = std::min(text_.find('\n', at_), text_.size());
      else if (starts("/*")) skip_past("*/", 2);
      else line_start = false, take();
    }
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  bool starts(const char* with) const { return text_.compare(at_, 2, with) == 0; }
  void skip_past(const std::string& end, size_t from) {
    const size_t found = text_.find(end, at_ + from);
    at_ = found == std::string::npos ? text_.size() : found + end.size();
  }
  void skip_directive() {
    size_t end = text_.find('\n', at_);
    while (end != std::string::npos && text_[end - 1] == '\\') end = text_.find('\n', end + 1);
    at_ = std::min(end, text_.size());
  }
  void skip_quoted() {
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, text_.size());
  }
  void take() {
    const size_t begin = at_;
    const char c = text_[at_];
    if (starts("R\"")) {
      const size_t open = std::min(text_.find('(', at_), text_.size());
      const std::string end = ")" + text_.substr(at_ + 2, open - at_ - 2) + "\"";
      return skip_past(end, 2), list_.push_back("\"");
    }
    if (c == '"' || c == '\'') return skip_quoted(), list_.push_back("\"");
    if (std::isdigit(static_cast<unsigned char>(c))) {  // 1'000 has a quote of its own
      while (at_ < text_.size() && (in_word(text_[at_]) || text_[at_] == '.' || text_[at_] == '\'')) ++at_;
    } else if (in_word(c)) {
      while (at_ < text_.size() && in_word(text_[at_])) ++at_;
    } else {
      at_ += starts("::") || starts("->") ? 2 : 1;
    }
    list_.push_back(text_.substr(begin, at_ - begin));
  }

  const std::string& text_;
  size_t at_ = 0;
  std::vector<std::string> list_;
};

bool is_name(const std::string& token) { return in_word(token[0]) && !std::isdigit(static_cast<unsigned char>(token[0])); }

/// Walks namespaces and types; bodies of functions and initialisers are passed over.
class TypeReader {
 public:
  explicit TypeReader(const std::vector<std::string>& tokens) : tokens_(tokens) {
    while (at_ < tokens_.size()) step();
    while (!open_.empty()) close();  // a text that ends early still shows what it has
  }
  std::vector<HookType> take() { return std::move(types_); }

 private:
  struct Scope {
    bool is_type;
    HookType type;  ///< its name is that of the namespace, too
  };
  const std::string& token(size_t i) const {
    static const std::string none = " ";
    return i < tokens_.size() ? tokens_[i] : none;
  }
  bool in_type() const { return !open_.empty() && open_.back().is_type; }

  void step() {
    const std::string& t = token(at_);
    if (t == "}") return ++at_, close();
    if (t == "namespace") return read_namespace();
    if (t == "enum") return void(at_ += token(at_ + 1) == "class" || token(at_ + 1) == "struct" ? 2 : 1);
    if (t == "struct" || t == "class" || t == "union") return read_type();
    if (t == "{") return skip('{', '}');
    if (t == "=") return skip_initialiser();
    if (in_type() && is_name(t) && token(at_ + 1) == "(") {
      open_.back().type.members.push_back(t);
      return ++at_, skip('(', ')');
    }
    ++at_;
  }
  void close() {
    if (open_.empty()) return;
    if (open_.back().is_type) types_.push_back(std::move(open_.back().type));
    open_.pop_back();
  }
  void open(bool is_type, const std::string& name, bool derived) {
    std::string path = open_.empty() ? "" : open_.back().type.name;
    if (!path.empty() && !name.empty()) path += "::";
    open_.push_back({is_type, {path + name, derived, {}}});
  }
  /// From an opening bracket to behind the one that closes it.
  void skip(char opening, char closing) {
    for (int depth = 0; at_ < tokens_.size(); ++at_) {
      if (token(at_)[0] == opening) ++depth;
      if (token(at_)[0] == closing && --depth == 0) return void(++at_);
    }
  }
  void skip_initialiser() {
    while (at_ < tokens_.size() && token(at_) != ";" && token(at_) != "}") {
      if (token(at_) == "{") skip('{', '}');
      else if (token(at_) == "(") skip('(', ')');
      else ++at_;
    }
  }
  std::string read_name() {
    std::string name;
    while (is_name(token(at_)) || token(at_) == "::") name += token(at_++);
    return name;
  }
  void read_namespace() {
    ++at_;
    const std::string name = read_name();
    if (token(at_) != "{") return;  // an alias, or `using namespace`
    ++at_;
    open(false, name, false);
  }
  /// A definition, or a mention: `template <class T>`, `struct Other other;`.
  void read_type() {
    ++at_;
    if (token(at_) == "[") skip('[', ']');
    if (!is_name(token(at_))) return;
    std::string name = token(at_++);
    while (token(at_) == "::" && is_name(token(at_ + 1))) name += "::" + token(at_ + 1), at_ += 2;
    if (token(at_) == "final") ++at_;
    const bool derived = token(at_) == ":";
    while (derived && at_ < tokens_.size() && token(at_) != "{" && token(at_) != ";") ++at_;
    if (token(at_) != "{") return;
    ++at_;
    open(true, name, derived);
  }

  const std::vector<std::string>& tokens_;
  size_t at_ = 0;
  std::vector<Scope> open_;
  std::vector<HookType> types_;
};

bool is_point(const HookPoints& points, const std::string& member) {
  return std::any_of(points.list.begin(), points.list.end(), [&](const HookPoint& p) { return member == p.name; });
}

std::string plain_letters(std::string name) {
  std::erase(name, '_');
  for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

/// Whether one is the other misspelt: a letter or, of a longer name, two are wrong, or two neighbours changed places.
bool is_misspelt(const std::string& member, const std::string& point) {
  if (plain_letters(member) == plain_letters(point)) return true;
  for (size_t i = 0; i + 1 < point.size(); ++i) {
    std::string swapped = point;
    std::swap(swapped[i], swapped[i + 1]);
    if (member == swapped) return true;
  }
  return edit_distance(member, point) <= (point.size() < 6 ? 1u : 2u);
}

/// The point that a member is nearly called as; null: none, or it is one.
const HookPoint* meant_point(const HookPoints& points, const std::string& member) {
  if (is_point(points, member)) return nullptr;
  for (const HookPoint& p : points.list)
    if (is_misspelt(member, p.name)) return &p;
  return nullptr;
}

[[noreturn]] void fail(const std::string& got, const std::string& expected) { throw Error(ErrorKind::value, "", "hooks", got, expected); }

void check_type(const HookType& type, const HookPoints& points) {
  bool any = type.derived;
  for (const std::string& member : type.members) {
    any |= is_point(points, member);
    if (const HookPoint* meant = meant_point(points, member))
      fail("has the member `" + member + "` in " + type.name + ", which no kernel calls",
           std::string("`") + meant->name + "`, or a name that is not nearly that of a point: " + points_text(points));
  }
  if (!any) fail("is the type " + type.name + ", which has none of the points that kernels call", points_text(points));
}

bool is_kit(const Source& source) { return source.name.starts_with("quern/kit/"); }
bool is_quern(const Source& source) { return source.name.starts_with("quern/"); }

/// Finds what a text reads of at.params and at.tensors.
class UseReader {
 public:
  explicit UseReader(const std::string& text) : tokens_(text), t_(tokens_.list()) {}
  void add_to(HookUse& use) {
    for (size_t i = 1; i < t_.size(); ++i) {
      if (t_[i - 1] != "." && t_[i - 1] != "->") continue;
      if (t_[i] == "params") use.params = true, use.params_bytes = std::max(use.params_bytes, params_bytes(i));
      if (t_[i] == "tensors") add_tensor(i, use);
    }
  }
  u32 asked = 0;    ///< bit i: by is_given(at.tensors[i])
  u32 other = 0;    ///< of these something else is read: nobody knows what the text makes of them
  u32 real = 0;     ///< by real_at()
  u32 integer = 0;  ///< by integer_at()

 private:
  const std::string& token(size_t i) const {
    static const std::string none = " ";
    return i < t_.size() ? t_[i] : none;
  }
  /// -1: no number of up to 9 digits. None is larger than 2^20: none is that is right.
  static i32 number(const std::string& token) {
    const bool digits = token.size() <= 9 && token.find_first_not_of("0123456789") == std::string::npos;
    return digits && !token.empty() ? std::min(std::atoi(token.c_str()), 1 << 20) : -1;
  }

  void add_tensor(size_t i, HookUse& use) {
    const i32 index = token(i + 1) == "[" && token(i + 3) == "]" ? number(token(i + 2)) : -1;
    if (index < 0) return;
    use.last_tensor = std::max(use.last_tensor, index);
    if (index >= 32) return;
    const u32 bit = 1u << index;
    const std::string reader = i >= 4 && t_[i - 3] == "(" ? t_[i - 4] : "";
    (reader == "is_given" ? asked : use.tensors) |= bit;
    const bool reads = (reader == "real_at" || reader == "integer_at") && token(i + 4) == ",";
    if (reads) (reader == "real_at" ? real : integer) |= bit;
    if (!reads && reader != "is_given" && !(token(i + 4) == "." && (token(i + 5) == "sizes" || token(i + 5) == "strides"))) other |= bit;
    if (!reads || index >= HookUse::kTensors) return;
    const int count = indices_from(i + 5);
    if (count < 0) other |= bit;
    else use.dims[index] |= u8(1u << std::min(count, 7));
  }
  /// How many arguments there are up to the bracket that closes; -1: not known, as "<" may be a template's.
  int indices_from(size_t i) const {
    int depth = 0;
    for (int count = 1; i < t_.size(); ++i) {
      const char c = t_[i][0];
      if (c == '<' || c == ';' || c == '"') return -1;
      if (c == '(' || c == '[' || c == '{') ++depth;
      if ((c == ')' || c == ']' || c == '}') && depth-- == 0) return count;
      if (c == ',' && depth == 0) ++count;
      if (c == '.' && token(i + 1) == ".") return -1;  // a pack
    }
    return -1;
  }

  /// Bytes of a type of C++ or quern that a text may name; 0: not known, or the text may have given the name to another.
  i32 size_of_scalar(const std::string& type) const {
    static const std::map<std::string, i32, std::less<>> known = {
        {"char", 1}, {"bool", 1},    {"u8", 1},       {"int8_t", 1}, {"uint8_t", 1},  {"short", 2}, {"u16", 2},     {"bf16", 2},
        {"f16", 2},  {"int16_t", 2}, {"uint16_t", 2}, {"int", 4},    {"unsigned", 4}, {"float", 4}, {"i32", 4},     {"u32", 4},
        {"f32", 4},  {"int32_t", 4}, {"uint32_t", 4}, {"double", 8}, {"i64", 8},      {"u64", 8},   {"int64_t", 8}, {"uint64_t", 8}};
    for (size_t i = 0; i < t_.size(); ++i)
      if (t_[i] == "typedef" || (t_[i] == "using" && token(i + 2) == "=")) return 0;
    const auto at = known.find(type);
    return at == known.end() ? 0 : at->second;
  }
  /// Up to the end of the last member of a struct that has nothing but scalars and arrays of them, "f32 slope, floor; i32 first[2];"; 0:
  /// not known.
  i32 size_of_struct(const std::string& type) const {
    size_t i = 0;
    while (i < t_.size() && !((t_[i] == "struct" || t_[i] == "class") && token(i + 1) == type && token(i + 2) == "{")) ++i;
    i32 bytes = 0;
    for (i += 3; i < t_.size() && token(i) != "}";) {
      const i32 size = size_of_scalar(token(i));
      if (size == 0) return 0;
      do {
        if (!is_name(token(++i))) return 0;
        i32 count = 1;
        if (token(++i) == "[") {
          count = number(token(i + 1));
          if (count < 1 || count > 64 || token(i + 2) != "]") return 0;
          i += 3;
        }
        if (token(i) == "=") i += token(i + 1) == "-" ? 3 : 2;  // an initialiser of one word
        bytes = (bytes + size - 1) / size * size + size * count;
      } while (token(i) == ",");
      if (token(i++) != ";") return 0;
    }
    return bytes;
  }

  /// Of `at.params`, whose last word is token i: how many bytes are surely read there.
  i32 params_bytes(size_t i) const {
    if (token(i + 1) == "[") return token(i + 3) == "]" ? number(token(i + 2)) + 1 : 0;
    size_t at = i >= 3 && t_[i - 3] == "(" ? i - 3 : 0;  // reinterpret_cast < const P * > ( at . params )
    if (at < 5 || token(i + 1) != ")" || t_[at - 1] != ">" || t_[at - 2] != "*" || !is_name(t_[at - 3])) return 0;
    const std::string& type = t_[at - 3];
    const size_t first = t_[at - 4] == "const" ? at - 5 : at - 4;
    if (t_[first] != "<" || first < 1 || t_[first - 1] != "reinterpret_cast") return 0;
    const i32 size = size_of_scalar(type);
    if (size && token(i + 2) == "[" && token(i + 4) == "]") return size * (number(token(i + 3)) + 1);
    const bool read = token(i + 2) == "[" || token(i + 2) == "->" || (first >= 2 && t_[first - 2] == "*");
    return !read ? 0 : size ? size : size_of_struct(type);
  }

  const Tokens tokens_;
  const std::vector<std::string>& t_;
};

/// A text without a namespace of its own, inside the family's. Lines that include stay in front.
std::string in_scope(const HookPoints& points, const std::string& text) {
  std::string head, body;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find_first_not_of(" \t");
    const bool directive =
        first != std::string::npos && (line.compare(first, 8, "#include") == 0 || line.compare(first, 12, "#pragma once") == 0);
    if (directive && line.compare(first, 8, "#include") == 0) head += line + "\n";
    body += directive ? "\n" : line + "\n";
  }
  return head + "namespace " + points.scope + "::own {\n#line 1 \"hooks\"\n" + body + "}\n";
}

std::string type_names(const std::vector<HookType>& types) {
  std::string text;
  for (const HookType& t : types) text += (text.empty() ? "" : ", ") + t.name;
  return text;
}

}  // namespace

std::vector<HookType> hook_types_of(const std::string& text) {
  const Tokens tokens(text);
  return TypeReader(tokens.list()).take();
}

std::string points_text(const HookPoints& points) {
  std::string text;
  for (size_t i = 0; i < points.list.size(); ++i)
    text += std::string(i == 0 ? "" : i + 1 == points.list.size() ? " or " : ", ") + "`" + points.list[i].signature + "`";
  return text;
}

void check_hooks(const Hooks& hooks, const HookPoints& points, const std::vector<Source>& headers) {
  std::string wanted = hooks.type;
  if (wanted.starts_with("::")) wanted = wanted.substr(2);
  const auto check = [&](const std::string& text) {
    for (const HookType& type : hook_types_of(text))
      if (type.name == wanted) return check_type(type, points), true;
    return false;
  };
  if (check(hooks.text)) return;
  for (const Source& source : headers)
    if (!is_kit(source) && check(source.text)) return;
}

static HookUse shared_use_of(const Hooks& hooks) {
  static std::mutex& mutex = *new std::mutex;
  static std::map<std::string, HookUse, std::less<>>& known = *new std::map<std::string, HookUse, std::less<>>;
  const std::lock_guard lock(mutex);
  if (const auto at = known.find(std::string_view(hooks.text)); at != known.end()) return at->second;
  HookUse use;
  u32 asked = 0, other = 0, real = 0;
  const auto add = [&](const std::string& text) {
    UseReader reader(text);
    reader.add_to(use);
    asked |= reader.asked, other |= reader.other, real |= reader.real, use.integer |= reader.integer;
  };
  add(hooks.text);
  for (const Source& source : included_sources(hooks.text, true))
    if (!is_quern(source)) add(source.text);
  use.tensors &= ~asked;
  use.integer &= ~(real | other);
  for (int i = 0; i < HookUse::kTensors; ++i)
    if (other >> i & 1) use.dims[i] = 0;
  return known.emplace(hooks.text, use).first->second;
}

HookUse use_of(const Hooks& hooks) {
  // A thread mostly asks for the same hooks again: then without the lock that all threads share
  struct Last {
    const Hooks* hooks = nullptr;
    const char* text = nullptr;
    HookUse use;
  };
  thread_local Last last;
  if (last.hooks != &hooks || last.text != hooks.text) last = {&hooks, hooks.text, shared_use_of(hooks)};
  return last.use;
}

const Hooks* lasting_hooks(const std::string& type, const std::string& name, const std::string& text) {
  using Texts = std::array<std::string, 3>;
  static std::mutex& mutex = *new std::mutex;
  static std::map<Texts, Hooks>& all = *new std::map<Texts, Hooks>;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = all.try_emplace(Texts{type, name, text});
  const Texts& texts = at->first;
  if (is_new) at->second = {texts[0].c_str(), texts[1].c_str(), texts[2].c_str()};
  return &at->second;
}

const Hooks* hooks_of_text(const HookPoints& points, const std::string& text) {
  for (const ShippedHooks& shipped : points.shipped)
    if (text == shipped.name) return hooks_of_text(points, shipped.text);
  std::vector<HookType> all = hook_types_of(text), fit;
  const size_t of_text = all.size();  // those behind are of included files
  for (const Source& source : included_sources(text, true))
    if (!is_quern(source))
      for (HookType& type : hook_types_of(source.text)) all.push_back(std::move(type));
  bool included = false;
  for (size_t i = 0; i < all.size(); ++i)
    if (std::any_of(all[i].members.begin(), all[i].members.end(),
                    [&](const std::string& m) { return is_point(points, m) || meant_point(points, m); }))
      fit.push_back(all[i]), included = i >= of_text;
  std::string expected = "the text of one struct with a member that kernels call: " + points_text(points);
  for (const ShippedHooks& shipped : points.shipped)
    expected += std::string(&shipped == points.shipped.data() ? "; or the name of hooks that ship with quern: " : ", ") + shipped.name;
  if (all.empty()) fail("has no struct or class", expected);
  if (fit.empty()) fail("has " + type_names(all) + ", without a member that kernels call", expected);
  if (fit.size() > 1) fail("has " + std::to_string(fit.size()) + " types with such members: " + type_names(fit), expected);
  check_type(fit[0], points);
  const std::string& type = fit[0].name;
  const size_t last = type.rfind("::");
  if (last != std::string::npos) return lasting_hooks(type, type.substr(last + 2), text);
  if (included) return lasting_hooks("::" + type, type, text);  // an #include stays outside of the family's namespace
  return lasting_hooks(std::string(points.scope) + "::own::" + type, type, in_scope(points, text));
}

}  // namespace quern::jit
