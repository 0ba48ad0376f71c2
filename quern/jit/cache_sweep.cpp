// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// DiskCache's housekeeping: what lies in the folder, what may go.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "quern/base/fs.h"
#include "quern/base/hash.h"
#include "quern/base/log.h"
#include "quern/jit/cache_disk.h"
#include "quern/jit/cache_hooks.h"
#include "quern/jit/cache_locks.h"
#include "quern/jit/cache_roots.h"

namespace quern::jit {

namespace fs = std::filesystem;

static const char kBuildPrefix[] = ".quern-build.";

/// Names the processes whose ids can be compared with this one's: one boot of one machine, one name space of ids.
static const std::string& process_space() {
  static const std::string name = [] {
    char space[64] = {};
    if (::readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) space[0] = 0;
    return hash128_hex(read_file("/proc/sys/kernel/random/boot_id").value_or("") + space).substr(0, 8);
  }();
  return name;
}

std::string build_folder_prefix() { return kBuildPrefix + process_space() + "." + std::to_string(getpid()) + "."; }

/// A build folder of a process that is gone; one of another machine on a shared disk when it is older than a day.
static bool abandoned(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  char space[9] = {};
  int pid = 0;
  if (name.rfind(kBuildPrefix, 0) != 0) return false;
  const bool ours = std::sscanf(name.c_str() + sizeof kBuildPrefix - 1, "%8[0-9a-f].%d.", space, &pid) == 2 && space == process_space();
  if (ours && pid > 0) return ::kill(pid, 0) != 0 && errno == ESRCH;
  std::error_code error;
  const auto written = entry.last_write_time(error);
  return !error && written < fs::file_time_type::clock::now() - std::chrono::hours(24);
}

int DiskCache::remove_abandoned() const {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator it(root_, error), end; !error && it != end; it.increment(error))
    if (abandoned(*it)) {
      remove_folder(it->path().string());
      ++count;
    }
  return count;
}

std::vector<EntryStat> DiskCache::list() const {
  std::vector<EntryStat> all;
  std::error_code error;
  const i64 now = ::time(nullptr);
  for (fs::directory_iterator it(root_, error), end; !error && it != end; it.increment(error)) {
    EntryStat e;
    e.name = it->path().filename().string();
    if (!is_entry_name(e.name)) continue;
    struct stat status;
    i64 used = 0;
    for (const char* file : {"", "/meta.json", "/kernel.cu", "/kernel.so", "/kernel.cubin"}) {
      if (::stat((it->path().string() + file).c_str(), &status) != 0) continue;
      if (*file) e.bytes += i64(status.st_size);
      used = std::max<i64>(used, status.st_mtime);
    }
    e.idle_seconds = std::max<i64>(0, now - used);
    all.push_back(std::move(e));
  }
  std::sort(all.begin(), all.end(), [](const EntryStat& a, const EntryStat& b) { return a.name < b.name; });
  return all;
}

EntryFiles DiskCache::files(const std::string& name) const {
  const auto text = [&](const char* file) { return read_regular_file(root_ + "/" + name + "/" + file).value_or(""); };
  EntryFiles f{text("meta.json"), text("kernel.cu"), text(image_name(false))};
  if (f.image.empty()) f.image = text(image_name(true));
  return f;
}

EntryFiles DiskCache::meta_file(const std::string& name) const {
  return {read_regular_file(root_ + "/" + name + "/meta.json").value_or(""), "", ""};
}

bool DiskCache::remove(const std::string& name) const {
  const std::string away = make_private_folder(root_ + "/" + build_folder_prefix());
  if (away.empty()) return false;
  const bool moved = ::rename((root_ + "/" + name).c_str(), (away + "/entry").c_str()) == 0;
  if (moved) reached(CacheStep::evicting);
  remove_folder(away);
  return moved;
}

int DiskCache::evict(i64 bytes, int fresh_seconds) const {
  std::vector<EntryStat> all = list();
  i64 total = 0;
  for (const EntryStat& e : all) total += e.bytes;
  if (total <= bytes) return 0;
  std::stable_sort(all.begin(), all.end(), [](const EntryStat& a, const EntryStat& b) { return a.idle_seconds > b.idle_seconds; });
  const CacheLocks& locks = CacheLocks::of(root_);
  int count = 0;
  for (const EntryStat& e : all) {
    if (total <= bytes) break;
    if (e.idle_seconds < fresh_seconds || locks.in_use(e.name) || !remove(e.name)) continue;
    total -= e.bytes;
    ++count;
  }
  if (count) log(LogLevel::call, "evicted " + std::to_string(count) + " kernels from " + root_ + ", which were not used for longest");
  return count;
}

}  // namespace quern::jit
