// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/memo.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace quern {
namespace {

struct Key {
  i64 n;
  float scale;
  i32 flag;
  bool operator==(const Key&) const = default;
};

TEST(op_memo, makes_a_value_once_and_never_gives_that_of_another_key) {
  Memo<Key, i64, 4> memo;
  int made = 0;
  const auto value = [&](const Key& key) {
    return memo.of(key, [&](const Key& k) {
      ++made;
      return k.n * 10 + k.flag;
    });
  };
  EXPECT_EQ(value({3, 1, 0}), 30);
  EXPECT_EQ(value({3, 1, 0}), 30);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(value({0, 0, 0}), 0);  // the key that an empty slot holds
  EXPECT_EQ(made, 2);
  for (i64 n = 0; n < 100; ++n)  // many share a slot
    for (const i32 flag : {0, 1}) ASSERT_EQ(value({n, 1, flag}), n * 10 + flag);
}

TEST(op_memo, has_no_value_for_what_could_not_be_made) {
  Memo<i64, i64, 1> memo;
  EXPECT_EQ(memo.of(1, [](i64) { return i64(5); }), 5);
  EXPECT_THROW(memo.of(2, [](i64) -> i64 { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(memo.of(2, [](i64) { return i64(6); }), 6);
  EXPECT_EQ(memo.of(1, [](i64) { return i64(7); }), 7);
}

}  // namespace
}  // namespace quern
