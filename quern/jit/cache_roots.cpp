// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/cache_roots.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <sstream>

#include "quern/base/env.h"
#include "quern/base/error.h"
#include "quern/base/fs.h"
#include "quern/base/log.h"
#include "quern/jit/cache_disk.h"
#include "quern/jit/pack.h"

namespace quern::jit {

std::string cache_folder() {
  if (const std::string wanted = env_path(Env::cache_dir); !wanted.empty()) return wanted;
  if (const std::string user = user_cache_folder(); !user.empty()) return user;
  // No home: a folder in /tmp, if it is ours alone. Somebody else's could hold kernels of theirs.
  const std::string shared = "/tmp/quern-" + std::to_string(getuid());
  ::mkdir(shared.c_str(), 0700);
  struct stat status;
  const bool ours =
      ::lstat(shared.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 022) == 0;
  static const std::string kept = ours ? shared : make_private_folder("/tmp/" + build_folder_prefix());
  return kept;
}

std::string folder_of_process() {
  DiskCache("/tmp").remove_abandoned();
  const std::string folder = make_private_folder("/tmp/" + build_folder_prefix());
  if (folder.empty()) throw Error(ErrorKind::device, "neither the cache folder " + cache_folder() + " nor /tmp can be written");
  return folder;
}

std::vector<std::string> read_only_roots() { return env_paths(Env::cache_roots); }

i64 cache_limit_bytes() {
  constexpr i64 kStandardMegabytes = 4096;  // some 100000 cubins
  return env_int(Env::cache_limit_mb, kStandardMegabytes) << 20;
}

static void warn_once(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.insert(text).second) log(LogLevel::warning, text);
}

/// From a pack. What the emulated device loads must be a file of its own.
static std::optional<Compiled> find_in_pack(const std::string& path, const Digests& d, const std::set<std::string>& bad) {
  const Pack* pack = Pack::open(path);
  if (!pack) return std::nullopt;
  const auto files = pack->find(d);
  if (!files) return std::nullopt;
  const EntryMeta meta = parse_meta(files->meta);
  if (bad.count(meta.checksum)) return std::nullopt;
  const DiskCache cache(cache_folder());
  if (d.emulated)  // taken out before?
    if (auto found = cache.find(digests_of(meta), bad)) return found;
  Compiled c = compiled_of(meta);
  c.folder = path;
  c.image.assign(files->image.begin(), files->image.end());
  if (!d.emulated) return c;
  c.folder = cache.put(d, meta, files->source, files->image, false);
  if (c.folder.empty()) c.folder = folder_of_process();
  c.image_path = c.folder + "/" + image_name(true);
  struct stat status;
  if (::stat(c.image_path.c_str(), &status) != 0) write_file(c.image_path, files->image);
  return c;
}

static std::optional<Compiled> find_in_root(const std::string& root, const Digests& d, const std::set<std::string>& bad) {
  struct stat status;
  if (::stat(root.c_str(), &status) != 0) {
    warn_once("QN_CACHE_ROOTS names " + root + ", which is not there");
    return std::nullopt;
  }
  return S_ISDIR(status.st_mode) ? DiskCache(root, true).find(d, bad) : find_in_pack(root, d, bad);
}

std::optional<Compiled> find_read_only(const Digests& d, const std::set<std::string>& bad) {
  for (const std::string& root : read_only_roots()) {
    auto found = find_in_root(root, d, bad);
    if (!found) continue;
    if (!d.provenance.empty() && found->provenance != d.provenance)
      log(LogLevel::call, d.kernel + " is taken from " + root + ", where " + found->compiler + " made it (provenance " + found->provenance +
                              ", this machine's compiler is " + d.provenance + ")");
    return found;
  }
  return std::nullopt;
}

}  // namespace quern::jit
