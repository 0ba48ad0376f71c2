// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quern/jit/cache_entry.h"

namespace quern::jit {

/// Many entries of one target in one file, which is only read: put it into QN_CACHE_ROOTS. Layout: a header (magic, place and
/// digest of the index), the entries' files one behind the other, and the index, a line an entry: name, offset, and the sizes
/// of its three files. Each entry is checked when it is taken, as one of a folder is.
class Pack {
 public:
  /// Opened once a process; nullptr, with one warning, when it cannot be read or its index is damaged.
  static const Pack* open(const std::string& path);
  /// Throws Error{value} with the reason instead.
  static Pack read(const std::string& path);

  /// A whole entry of that identity, whatever its provenance; damaged ones are passed by with a warning.
  std::optional<EntryFiles> find(const Digests& digests) const;
  std::vector<std::string> names() const;
  EntryFiles files(const std::string& name) const;

 private:
  struct Place {
    u64 offset = 0, meta = 0, source = 0, image = 0;
  };
  EntryFiles files(const Place& place) const;
  std::string path_;
  int fd_ = -1;
  std::map<std::string, Place> index_;
};

/// Writes a pack, in a file beside that is renamed into place. Throws Error{device}.
void write_pack(const std::string& path, const std::map<std::string, EntryFiles>& entries);

}  // namespace quern::jit
