// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/cache_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "quern/base/error.h"
#include "quern/base/fs.h"
#include "quern/base/log.h"
#include "quern/jit/cache_hooks.h"
#include "quern/jit/cache_locks.h"
#include "quern/jit/cache_roots.h"

namespace quern::jit {

namespace fs = std::filesystem;

static bool exists(const std::string& path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0;
}

static std::string require_file(const std::string& path, const char* what) {
  if (auto bytes = read_regular_file(path)) return *bytes;
  throw Error(ErrorKind::internal, std::string("its ") + what + " is missing");
}

/// Keeps the time of last use, to the minute: a write a load would be felt on a network disk.
static void touch(const std::string& meta_path) {
  struct stat status;
  if (::stat(meta_path.c_str(), &status) == 0 && ::time(nullptr) - status.st_mtime > 60)
    ::utimensat(AT_FDCWD, meta_path.c_str(), nullptr, 0);
}

std::optional<Compiled> DiskCache::read(const std::string& name, const Digests& d, const std::set<std::string>& bad) const {
  const std::string folder = root_ + "/" + name, meta_path = folder + "/meta.json", image_path = folder + "/" + image_name(d.emulated);
  const auto meta = read_regular_file(meta_path);
  if (!meta && !exists(folder)) return std::nullopt;
  if (!read_only_) {
    touch(meta_path);
    if (d.emulated) CacheLocks::of(root_).hold_in_use(name);
  }
  try {
    EntryFiles files;
    if (!meta) throw Error(ErrorKind::internal, "its meta.json is missing");
    files.meta = *meta;
    files.image = require_file(image_path, "binary");
    const EntryMeta checked = check_entry(files);
    if (checked.key != d.key_text) throw Error(ErrorKind::internal, "it belongs to another key");
    if (bad.count(checked.checksum)) return std::nullopt;
    Compiled c = compiled_of(checked);
    c.folder = folder;
    c.image_path = image_path;
    c.image.assign(files.image.begin(), files.image.end());
    return c;
  } catch (const Error& e) {
    log(LogLevel::warning, "cache entry " + folder + " is not used (" + e.what() + ")");
    return std::nullopt;
  }
}

/// Entries of the same identity by other compilers.
std::vector<std::string> DiskCache::others_of(const Digests& d) const {
  std::vector<std::string> names;
  const std::string prefix = d.prefix();
  std::error_code error;
  for (fs::directory_iterator it(root_, error), end; !error && it != end; it.increment(error))
    if (const std::string name = it->path().filename().string(); name.rfind(prefix, 0) == 0 && name != d.folder_name())
      names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<Compiled> DiskCache::find(const Digests& d, const std::set<std::string>& bad) const {
  if (!d.provenance.empty())
    if (auto found = read(d.folder_name(), d, bad)) return found;
  if (!read_only_ && !d.provenance.empty()) return std::nullopt;
  for (const std::string& name : others_of(d))
    if (auto found = read(name, d, bad)) return found;
  return std::nullopt;
}

std::string DiskCache::begin() const {
  if (!make_folders(root_)) return {};
  remove_abandoned();
  const std::string folder = make_private_folder(root_ + "/" + build_folder_prefix());
  if (!folder.empty()) {
    ::chmod(folder.c_str(), 0755);  // mkdtemp's 0700 would keep other users of a shared cache out
    reached(CacheStep::folder_made);
  }
  return folder;
}

std::string DiskCache::publish(const std::string& folder, const Digests& d, const EntryMeta& meta, bool replace) const {
  const std::string name = digests_of(meta).folder_name(), target = root_ + "/" + name;
  try {
    write_file(folder + "/meta.json", meta_text(meta));
  } catch (const Error& e) {
    log(LogLevel::warning, std::string(e.what()) + "; the kernel is used from " + folder + " and not kept");
    return folder;
  }
  reached(CacheStep::meta_written);
  int error = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    error = ::rename(folder.c_str(), target.c_str()) == 0 ? reached(CacheStep::renamed) : errno;
    if (error == 0) {
      if (d.emulated) CacheLocks::of(root_).hold_in_use(name);  // its maker loads it
      evict(cache_limit_bytes());  // reads the whole folder, 14 to 22 us an entry, after a compile of 100 ms or more
      return target;
    }
    // Somebody may have published first, or the rename was done though it failed: NFS repeats a request whose answer was lost.
    const bool done = !exists(folder);
    if ((done || !replace) && read(name, d)) {
      remove_folder(folder);
      return target;
    }
    if (done || !exists(target)) break;
    // A damaged entry: moved away (a rename, so that a process that has it open keeps it) to make room.
    const std::string away = folder + ".old";
    if (::rename(target.c_str(), away.c_str()) == 0) {
      reached(CacheStep::moved_away);
      remove_folder(away);
    }
  }
  log(LogLevel::warning, "cannot publish " + target + ": " + std::strerror(error) + "; the kernel is used from " + folder);
  return folder;
}

std::string DiskCache::put(const Digests& d, const EntryMeta& meta, const std::string& source, const std::string& image,
                           bool replace) const {
  const std::string folder = begin();
  if (folder.empty()) {
    log(LogLevel::warning, "the cache folder " + root_ + " cannot be written; compiled kernels are not kept");
    return {};
  }
  try {
    write_file(folder + "/kernel.cu", source);
    write_file(folder + "/" + image_name(d.emulated), image);
    reached(CacheStep::image_written);
    const std::string kept = publish(folder, d, meta, replace);
    if (kept != folder || exists(folder + "/meta.json")) return kept;
  } catch (const Error& e) { log(LogLevel::warning, std::string(e.what()) + "; the kernel is not kept"); }
  remove_folder(folder);
  return {};
}

}  // namespace quern::jit
