// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "quern/jit/build.h"

namespace quern::jit {

/// The folder where compiled kernels are kept: QN_CACHE_DIR, else the user's cache folder, else a private one in /tmp.
std::string cache_folder();
/// QN_CACHE_ROOTS: folders and pack files that are only read, looked at in this order before cache_folder().
std::vector<std::string> read_only_roots();
/// QN_CACHE_LIMIT_MB as bytes: what cache_folder() may hold.
i64 cache_limit_bytes();
/// A folder that this process has for itself and nobody keeps; later processes of the user remove it. Throws Error{device}.
std::string folder_of_process();
/// Builds and removals happen in folders of that name and some more letters, beside the entries.
std::string build_folder_prefix();

/// The kernel from the first of read_only_roots() that has a whole entry of its identity. A kernel for the emulated device that lies in a
/// pack is put into cache_folder() first, since only a file can be loaded. An entry whose binary has a checksum of `bad` is passed by.
std::optional<Compiled> find_read_only(const Digests& digests, const std::set<std::string>& bad = {});

}  // namespace quern::jit
