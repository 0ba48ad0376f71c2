// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/cache_locks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "quern/base/hash.h"
#include "quern/jit/cache_hooks.h"

namespace quern::jit {

namespace {

/// Two bytes an entry, at an offset below 2^62: for compiling it and for having it mapped.
struct flock byte_of(const std::string& entry, bool use, short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = off_t(hash64(entry.data(), entry.size()) >> 3 << 1 | u64(use));
  lock.l_len = 1;
  return lock;
}

int open_locks(const std::string& root) { return ::open((root + "/.quern-locks").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644); }

std::mutex g_mutex;
/// Folders of entries that this process has in use: its own locks do not conflict with each other.
std::set<std::string>& used_here() {
  static auto* const names = new std::set<std::string>;
  return *names;
}

}  // namespace

CacheHooks& cache_hooks() {
  static CacheHooks hooks;
  return hooks;
}

CacheLocks::CacheLocks(const std::string& root) : root_(root) {}

const CacheLocks& CacheLocks::of(const std::string& root) {
  static auto* const all = new std::map<std::pair<pid_t, std::string>, std::unique_ptr<CacheLocks>>;
  const std::lock_guard lock(g_mutex);
  std::unique_ptr<CacheLocks>& slot = (*all)[{getpid(), root}];
  if (!slot) slot.reset(new CacheLocks(root));
  if (slot->fd_ < 0) slot->fd_ = open_locks(root);  // again when the folder was not there yet
  return *slot;
}

bool CacheLocks::begin_compile(const std::string& entry) const {
  using namespace std::chrono;
  if (fd_ < 0 || !cache_hooks().locks_work) return false;
  const auto end = steady_clock::now() + duration_cast<steady_clock::duration>(duration<double>(cache_hooks().lock_seconds));
  for (int pause = 1;; pause = std::min(2 * pause, 50)) {
    struct flock lock = byte_of(entry, false, F_WRLCK);
    if (::fcntl(fd_, F_OFD_SETLK, &lock) == 0) return true;
    if ((errno != EACCES && errno != EAGAIN && errno != EINTR) || steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(pause));
  }
}

void CacheLocks::end_compile(const std::string& entry) const {
  struct flock lock = byte_of(entry, false, F_UNLCK);
  ::fcntl(fd_, F_OFD_SETLK, &lock);
}

void CacheLocks::hold_in_use(const std::string& entry) const {
  struct flock lock = byte_of(entry, true, F_RDLCK);
  if (fd_ >= 0 && cache_hooks().locks_work) ::fcntl(fd_, F_OFD_SETLK, &lock);
  const std::lock_guard guard(g_mutex);
  used_here().insert(root_ + "/" + entry);
}

bool CacheLocks::in_use(const std::string& entry) const {
  {
    const std::lock_guard guard(g_mutex);
    if (used_here().count(root_ + "/" + entry)) return true;
  }
  struct flock lock = byte_of(entry, true, F_WRLCK);
  return fd_ >= 0 && cache_hooks().locks_work && ::fcntl(fd_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace quern::jit
