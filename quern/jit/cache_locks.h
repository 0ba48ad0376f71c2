// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <atomic>
#include <string>

#include "quern/kit/abi.h"

namespace quern::jit {

/// Locks between processes on the entries of one cache folder: each is a byte of the file `.quern-locks` (Linux's open file
/// description locks), so that a process needs one descriptor for any number of them and none outlives it. They save work and
/// keep files in place; nothing is wrong where they do not work (some network file systems, folders of another user).
class CacheLocks {
 public:
  /// This process's locks of a folder. A forked child opens its own: inherited ones would be shared with its parent.
  static const CacheLocks& of(const std::string& root);

  /// Waits until no other process compiles the entry, at most CacheHooks::lock_seconds. True when it is locked for this one.
  bool begin_compile(const std::string& entry) const;
  void end_compile(const std::string& entry) const;
  /// Until this process ends its file is mapped here: eviction leaves it alone.
  void hold_in_use(const std::string& entry) const;
  /// By another process or this one.
  bool in_use(const std::string& entry) const;

 private:
  explicit CacheLocks(const std::string& root);
  std::string root_;
  std::atomic<int> fd_ = -1;
};

}  // namespace quern::jit
