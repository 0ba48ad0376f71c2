// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once

namespace quern::jit {

/// What a process does to a cache folder when it publishes an entry, in order. Tests stop a process at each of them: the list
/// here is the one that they walk.
enum class CacheStep {
  locked,         ///< no other process compiles this entry now, where locks work
  folder_made,    ///< a build folder of this process's own
  image_written,  ///< source and binary are in it
  meta_written,   ///< and meta.json: the entry is whole
  moved_away,     ///< a damaged entry of that name is out of the way
  renamed,        ///< the entry is in its place
  evicting,       ///< an entry that was not used for long is out of the way, not yet removed
  count,
};

/// For tests: what a process can meet and a test cannot otherwise cause.
struct CacheHooks {
  /// Called when a step is done. What it returns is taken for the operation's errno: at `renamed` that is a rename which
  /// reports failure after it succeeded, as NFS does when the answer is lost. It may also end the process.
  int (*at)(CacheStep step) = nullptr;
  double lock_seconds = 60;  ///< how long to wait for another process's compile before compiling as well
  bool locks_work = true;    ///< false: as on a file system without them
};
CacheHooks& cache_hooks();
inline int reached(CacheStep step) { return cache_hooks().at ? cache_hooks().at(step) : 0; }

}  // namespace quern::jit
