// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "quern/jit/cache_entry.h"

namespace quern::jit {

/// An entry is fresh for so many seconds after it was made or last used: eviction leaves it, since a process may be about to
/// open its files.
constexpr int kFreshSeconds = 600;

/// What lies in a cache folder.
struct EntryStat {
  std::string name;
  i64 bytes = 0;
  i64 idle_seconds = 0;  ///< since it was made or last used, within a minute
};

/// A folder of entries, one folder each: kernel.cu (source), kernel.cubin or kernel.so, meta.json (see EntryMeta).
/// Entries are written in a private folder beside and published by rename, so a reader sees a whole entry or none.
class DiskCache {
 public:
  explicit DiskCache(std::string root, bool read_only = false) : root_(std::move(root)), read_only_(read_only) {}
  const std::string& root() const { return root_; }

  /// By identity and provenance; of a read-only folder, and where no compiler is known, by identity alone. Nothing when
  /// absent; a damaged entry or one of another key is nothing as well, with a warning; so is one whose binary has a checksum of `bad`.
  std::optional<Compiled> find(const Digests& digests, const std::set<std::string>& bad = {}) const;
  std::string folder_of(const Digests& digests) const { return root_ + "/" + digests.folder_name(); }
  /// A private folder to build in; empty when the root cannot be written.
  std::string begin() const;
  /// Writes meta.json into `folder`, which has source and binary, and renames it into place. Losing the race to another
  /// process is success: a whole entry that lies there already stays, unless `replace`. Returns the folder where the entry
  /// now lies: the private one, with a warning, when publishing failed.
  std::string publish(const std::string& folder, const Digests& digests, const EntryMeta& meta, bool replace) const;
  /// begin, all files, publish. Empty, with a warning, when there is no room or no right to write.
  std::string put(const Digests& digests, const EntryMeta& meta, const std::string& source, const std::string& image, bool replace) const;

  // Housekeeping.
  std::vector<EntryStat> list() const;
  EntryFiles files(const std::string& name) const;
  /// The same with meta.json alone.
  EntryFiles meta_file(const std::string& name) const;
  /// Takes an entry away: renamed first, so that nobody sees a part. False when it cannot be.
  bool remove(const std::string& name) const;
  /// Removes entries, those that were used longest ago first, until at most `bytes` remain; never one that is fresh or mapped
  /// by a process. Returns how many.
  int evict(i64 bytes, int fresh_seconds = kFreshSeconds) const;
  /// Removes what builds that were killed left behind.
  int remove_abandoned() const;

 private:
  std::optional<Compiled> read(const std::string& name, const Digests& digests, const std::set<std::string>& bad = {}) const;
  std::vector<std::string> others_of(const Digests& digests) const;
  std::string root_;
  bool read_only_ = false;
};

}  // namespace quern::jit
