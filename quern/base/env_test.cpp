// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/env.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>

#include "quern/base/error.h"

namespace quern {
namespace {

/// Sets a variable for a scope.
class Variable {
 public:
  Variable(const char* name, const char* value)
      : name_(name), before_(std::getenv(name) ? std::getenv(name) : ""), was_set_(std::getenv(name)) {
    set(value);
  }
  ~Variable() { was_set_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  void set(const char* value) { value ? setenv(name_, value, 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string before_;
  bool was_set_;
};

std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value);
    return e.what();
  }
  return "nothing thrown";
}

TEST(env, a_flag_is_a_word_for_yes_or_no) {
  Variable v("QN_JIT_FROZEN", nullptr);
  EXPECT_FALSE(env_flag(Env::jit_frozen));
  for (const char* no : {"", "0", "false", "off", "no", "False", "OFF"}) {
    v.set(no);
    EXPECT_FALSE(env_flag(Env::jit_frozen)) << no;
  }
  for (const char* yes : {"1", "true", "on", "yes", "True"}) {
    v.set(yes);
    EXPECT_TRUE(env_flag(Env::jit_frozen)) << yes;
  }
  for (const char* bad : {" ", "-1", "2", "ja", "1 "}) {
    v.set(bad);
    EXPECT_EQ(error_of([] { env_flag(Env::jit_frozen); }), std::string("`QN_JIT_FROZEN` is '") + bad + "', expected 0 or 1");
  }
}

/// A line that a shell takes: what was set for the failure stands in front, what has no part in it does not.
TEST(env, a_command_stands_behind_what_decides_what_it_does) {
  for (const EnvInfo& e : env_table()) unsetenv(e.name);
  EXPECT_EQ(with_environment("quern check all"), "quern check all");
  Variable sms("QN_EMU_SMS", "1"), seed("QN_EMU_SEED", "-3"), checked("QN_EMU_CHECKED", ""), cache("QN_CACHE_DIR", "/tmp/cache"),
      trace("QN_TRACE", "/tmp/trace");
  EXPECT_EQ(with_environment("quern check all"), "QN_EMU_SEED=-3 QN_EMU_SMS=1 quern check all");
  Variable source("QN_SOURCE_DIR", "/my work/it's"), compiler("QN_JIT_HOST_COMPILER", "clang++");
  EXPECT_EQ(with_environment("quern fuzz 1"),
            "QN_SOURCE_DIR='/my work/it'\\''s' QN_JIT_HOST_COMPILER=clang++ QN_EMU_SEED=-3 QN_EMU_SMS=1 quern fuzz 1");
  source.set("."), seed.set(nullptr), sms.set(nullptr);
  EXPECT_EQ(with_environment("quern check all --host-compiler clang++ --asan"),
            "QN_SOURCE_DIR=. quern check all --host-compiler clang++ --asan");
}

TEST(env, a_number_lies_in_the_range_of_the_table) {
  Variable threads("QN_EMU_THREADS", nullptr), limit("QN_CACHE_LIMIT_MB", "99999999999999999999"),
      seed("QN_EMU_SEED", "-9223372036854775808");
  EXPECT_EQ(env_int(Env::emu_threads, 7), 7);
  for (const auto& [text, value] : {std::pair{"0", 0}, {"1024", 1024}, {"12", 12}}) {
    threads.set(text);
    EXPECT_EQ(env_int(Env::emu_threads, 7), value);
  }
  for (const char* bad : {"-3", "1025", "x", "3x", " 3", "3.5", "99999999999999999999"}) {
    threads.set(bad);
    EXPECT_EQ(error_of([] { env_int(Env::emu_threads, 7); }), std::string("`QN_EMU_THREADS` is '") + bad + "', expected 0 to 1024");
  }
  EXPECT_EQ(error_of([] { env_int(Env::cache_limit_mb, 1); }),
            "`QN_CACHE_LIMIT_MB` is '99999999999999999999', expected 0 to 1099511627776");
  EXPECT_EQ(env_int(Env::emu_seed, 1), INT64_MIN);
  seed.set("-9223372036854775809");
  EXPECT_EQ(error_of([] { env_int(Env::emu_seed, 1); }), "`QN_EMU_SEED` is '-9223372036854775809', expected an integer of 64 bits");
}

TEST(env, a_choice_is_one_of_its_names) {
  Variable v("QN_EMU_ASYNC", nullptr);
  const auto read = [] { return env_choice(Env::emu_async, {"eager", "lazy", "random"}); };
  EXPECT_EQ(read(), -1);
  v.set("lazy");
  EXPECT_EQ(read(), 1);
  v.set("lasy");
  EXPECT_EQ(error_of(read), "`QN_EMU_ASYNC` is 'lasy', expected one of eager, lazy, random");
}

TEST(env, a_path_may_begin_at_home) {
  Variable home("HOME", "/home/some"), v("QN_TRACE", "~/calls"), roots("QN_CACHE_ROOTS", "/a::~/b:~");
  EXPECT_EQ(env_path(Env::trace), "/home/some/calls");
  EXPECT_EQ(env_paths(Env::cache_roots), (std::vector<std::string>{"/a", "/home/some/b", "/home/some"}));
  v.set("~");
  EXPECT_EQ(env_path(Env::trace), "/home/some");
  v.set("here/~");
  EXPECT_EQ(env_path(Env::trace), "here/~");
  v.set("~other/x");
  EXPECT_EQ(error_of([] { env_path(Env::trace); }), "`QN_TRACE` is '~other/x', expected a path; of those with ~ only ~/... is understood");
  v.set("~/x");
  home.set(nullptr);
  EXPECT_EQ(error_of([] { env_path(Env::trace); }), "`QN_TRACE` is '~/x', expected a path without ~, as HOME is not set");
  home.set("some");
  EXPECT_EQ(error_of([] { env_path(Env::trace); }), "`HOME` is 'some', expected an absolute path");
}

/// Of every row of the table but those that say for themselves what they may be: a wrong value is told although nobody reads it, a right
/// one is not.
TEST(env, all_of_it_is_judged) {
  for (const EnvInfo& e : env_table()) unsetenv(e.name);
  EXPECT_EQ(error_of(check_environment), "nothing thrown");
  Variable home("HOME", "/home/some");
  for (const EnvInfo& e : env_table()) {
    const std::string values = e.values;
    if (e.id == Env::device || e.id == Env::log_level || e.id == Env::log_dest || values == "command") continue;
    Variable v(e.name, values.starts_with("path")                 ? "~other/x"
                       : values.find(" to ") != std::string::npos ? "99999999999999999999"
                                                                  : "fals");
    EXPECT_TRUE(error_of(check_environment).starts_with("`" + std::string(e.name) + "` is '" + system_variable(e.name) + "', expected "))
        << e.name << ": " << error_of(check_environment);
    v.set(values.starts_with("path")                                  ? "~/x"
          : values.substr(0, values.find_first_of(", ")) == "integer" ? "7"
                                                                      : values.substr(0, values.find_first_of(", ")).c_str());
    EXPECT_EQ(error_of(check_environment), "nothing thrown") << e.name << "=" << system_variable(e.name);
  }
}

TEST(env, the_users_cache_is_an_absolute_path) {
  Variable home("HOME", "/home/some"), xdg("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(user_cache_folder(), "/home/some/.cache/quern");
  xdg.set("/var/cache");
  EXPECT_EQ(user_cache_folder(), "/var/cache/quern");
  xdg.set("~/.kept");
  EXPECT_EQ(user_cache_folder(), "/home/some/.kept/quern");
  xdg.set("kept");
  EXPECT_EQ(error_of(user_cache_folder), "`XDG_CACHE_HOME` is 'kept', expected an absolute path");
  xdg.set(nullptr);
  home.set("~");
  EXPECT_EQ(error_of(user_cache_folder), "`HOME` is '~', expected an absolute path");
  home.set(nullptr);
  EXPECT_EQ(user_cache_folder(), "");
}

}  // namespace
}  // namespace quern
