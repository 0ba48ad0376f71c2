// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <optional>
#include <string>

#include "quern/jit/build.h"

namespace quern::jit {

/// The folder where compiled kernels are kept: QN_CACHE_DIR, else the user's cache folder, else a private one in /tmp.
std::string cache_folder();

/// One folder an entry: kernel.cu (source), kernel.cubin or kernel.so, meta.json (whole key text, sizes, checksum).
/// Entries are written in a private folder beside and published by rename, so a reader sees a whole entry or none.
class DiskCache {
 public:
  explicit DiskCache(std::string root) : root_(std::move(root)) {}

  std::string entry_folder(const KernelSpec& spec, const Digests& digests) const;
  /// Nothing when absent. A damaged entry or one of another key is nothing as well, with a log line; the caller compiles anew.
  std::optional<Compiled> find(const KernelSpec& spec, const Digests& digests, const Target& target) const;
  /// A private folder to build in; empty when the root cannot be written.
  std::string begin() const;
  /// Writes meta.json into `folder` and renames it into place. Losing the race to another process is success: a whole
  /// entry that lies there already stays. Returns the folder where the entry now lies (the private one when publishing failed,
  /// with a log line).
  std::string publish(const std::string& folder, const KernelSpec& spec, const Digests& digests, const Target& target,
                      const Compiled& compiled) const;

 private:
  std::string root_;
};

}  // namespace quern::jit
