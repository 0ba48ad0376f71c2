// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cstring>
#include <type_traits>

#include "quern/kit/abi.h"

namespace quern {

/// What a thread remembers of a pure function that takes longer than the rest of a call: a table of `slots` results, each the last one
/// of the keys that share its slot. The only static state behind plan and params; declare it as
/// `static thread_local Memo<Key, Value, slots> memo;`. Key is plain data with ==.
template <class Key, class Value, int slots> class Memo {
  static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>);

 public:
  /// The value of `key`: make(key) where it is not remembered. Valid until the next call.
  template <class Make> const Value& of(const Key& key, const Make& make) {
    Entry& entry = entries_[slots == 1 ? 0 : hash(key) % slots];
    if (!entry.known || !(entry.key == key)) {
      entry.value = make(key);
      entry.key = key, entry.known = true;
    }
    return entry.value;
  }

 private:
  struct Entry {
    Key key;
    Value value;
    bool known = false;
  };
  /// Of its bytes: keys that are equal but for padding may have two slots.
  static u64 hash(const Key& key) {
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&key);
    u64 h = 0;
    for (size_t i = 0; i < sizeof key; i += 8) {
      u64 word = 0;
      std::memcpy(&word, bytes + i, sizeof key - i < 8 ? sizeof key - i : 8);
      h = (h ^ word) * 0x9E3779B97F4A7C15ull;
      h ^= h >> 29;
    }
    return h;
  }
  Entry entries_[slots] = {};
};

}  // namespace quern
