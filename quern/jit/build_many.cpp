// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A parent that hands out one job at a time and workers that answer: one socket pair each, no shared memory, no lock.
#include "quern/jit/build_many.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>
#include <vector>

#include "quern/base/error.h"
#include "quern/jit/cache_roots.h"

namespace quern::jit {

namespace {

/// Of an answer; text_bytes of the error follow.
struct Answer {
  i32 from_cache;
  u32 text_bytes;
  double compile_ms;
  i64 image_bytes;
};

bool send_all(int socket, const void* data, size_t bytes) {
  for (const char* at = static_cast<const char*>(data); bytes > 0;) {
    const ssize_t n = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, bytes -= size_t(n);
  }
  return true;
}

bool receive_all(int socket, void* data, size_t bytes) {
  for (char* at = static_cast<char*>(data); bytes > 0;) {
    const ssize_t n = ::recv(socket, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, bytes -= size_t(n);
  }
  return true;
}

BuildOutcome build_one(const BuildJob& job) {
  BuildOutcome o;
  try {
    const Compiled c = build(job.spec, job.target);
    // What the next process will find: a full disk or a folder that cannot be written leaves nothing behind
    if (!c.kept) throw Error(ErrorKind::compile, "it compiles, but the cache folder " + cache_folder() + " does not keep it");
    o.from_cache = c.from_cache;
    o.compile_ms = c.compile_ms;
    std::error_code error;
    const auto size = std::filesystem::file_size(c.image_path, error);
    o.image_bytes = c.image.empty() ? error ? 0 : i64(size) : i64(c.image.size());
  } catch (const std::exception& e) { o.error = e.what(); }
  return o;
}

/// A worker's life: until the parent closes the socket, or is gone.
[[noreturn]] void work(int socket, std::span<const BuildJob> jobs) {
  for (u64 job; receive_all(socket, &job, sizeof job);) {
    const BuildOutcome o = build_one(jobs[size_t(job)]);
    const Answer answer{o.from_cache, u32(o.error.size()), o.compile_ms, o.image_bytes};
    if (!send_all(socket, &answer, sizeof answer) || !send_all(socket, o.error.data(), o.error.size())) break;
  }
  ::_exit(0);  // neither destructors nor buffers of the parent's
}

using Time = std::chrono::steady_clock;

struct Worker {
  pid_t process = -1;
  int socket = -1;
  size_t job = 0;
  Time::time_point deadline = {};  ///< of its job
};

class Workers {
 public:
  Workers(std::span<const BuildJob> jobs, const std::function<void(size_t, const BuildOutcome&)>& report,
          std::chrono::milliseconds deadline)
      : jobs_(jobs), report_(report), deadline_(deadline) {}
  ~Workers() {
    while (!workers_.empty()) ::kill(workers_.back().process, SIGKILL), end(workers_.size() - 1);  // some are left after an error only
  }

  void run(size_t processes) {
    while (next_ < jobs_.size() && workers_.size() < processes)
      if (!start()) break;
    while (!workers_.empty()) {
      std::vector<pollfd> waits;
      for (const Worker& w : workers_) waits.push_back({w.socket, POLLIN, 0});
      const int ready = ::poll(waits.data(), waits.size(), milliseconds_left());
      if (ready < 0 && errno != EINTR) throw Error(ErrorKind::device, std::string("poll: ") + std::strerror(errno));
      for (size_t i = waits.size(); i-- > 0;) {
        if (ready > 0 && waits[i].revents) take_answer(i);
        else if (Time::now() >= workers_[i].deadline) give_up(i);
      }
    }
  }

 private:
  /// Until the first deadline, rounded up.
  int milliseconds_left() const {
    Time::time_point first = Time::time_point::max();
    for (const Worker& w : workers_) first = std::min(first, w.deadline);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Time::now()).count();
    return int(std::clamp<decltype(left)>(left, 0, std::numeric_limits<int>::max()));
  }

  /// A new worker with a job; false when there can be no more of them. The first one must be.
  bool start() {
    int ends[2];
    pid_t process = -1;
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
      process = ::fork();
      if (process == 0) {
        ::close(ends[0]);
        for (const Worker& other : workers_) ::close(other.socket);  // else they would outlive the parent
        work(ends[1], jobs_);
      }
      ::close(ends[1]);
      if (process < 0) ::close(ends[0]);
    }
    if (process < 0 && workers_.empty())
      throw Error(ErrorKind::device, std::string("no worker process can be made: ") + std::strerror(errno));
    if (process < 0) return false;
    workers_.push_back({process, ends[0]});
    hand_out(workers_.size() - 1);
    return true;
  }

  void hand_out(size_t i) {
    if (next_ == jobs_.size()) return void(end(i));
    Worker& w = workers_[i];
    w.job = next_++;
    w.deadline = Time::now() + deadline_;
    const u64 job = w.job;
    if (!send_all(w.socket, &job, sizeof job)) fail(i);
  }

  void take_answer(size_t i) {
    Worker& w = workers_[i];
    Answer a;
    std::string text;
    if (!receive_all(w.socket, &a, sizeof a)) return fail(i);
    text.resize(a.text_bytes);
    if (!receive_all(w.socket, text.data(), text.size())) return fail(i);
    report_(w.job, {a.from_cache != 0, a.compile_ms, a.image_bytes, text});
    hand_out(i);
  }

  /// Its job takes too long.
  void give_up(size_t i) {
    ::kill(workers_[i].process, SIGKILL);
    fail(i, "it was not built within " + std::to_string(deadline_.count() / 1000) + " s and its worker process was killed");
  }

  /// The worker died over its job; another takes its place.
  void fail(size_t i, const std::string& why = "") {
    const size_t job = workers_[i].job;
    const int status = end(i);
    BuildOutcome o;
    o.error = !why.empty() ? why
              : WIFSIGNALED(status)
                  ? "the worker process was killed by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")"
                  : "the worker process ended with status " + std::to_string(WEXITSTATUS(status));
    report_(job, o);
    if (next_ < jobs_.size()) start();
  }

  /// Closes its socket, at which it ends, and waits for that.
  int end(size_t i) {
    ::close(workers_[i].socket);
    int status = 0;
    while (::waitpid(workers_[i].process, &status, 0) < 0 && errno == EINTR) {}
    workers_.erase(workers_.begin() + std::ptrdiff_t(i));
    return status;
  }

  std::span<const BuildJob> jobs_;
  const std::function<void(size_t, const BuildOutcome&)>& report_;
  const std::chrono::milliseconds deadline_;
  std::vector<Worker> workers_;
  size_t next_ = 0;
};

/// Finds the compilers before the fork: a process that has opened a driver sees it otherwise afterwards, and might take another
/// one, whose entries the caller would not look for.
void find_compilers(std::span<const BuildJob> jobs) {
  std::vector<std::string> seen;
  for (const BuildJob& job : jobs) {
    const std::string target = job.target.name() + job.target.host_compiler;
    if (std::find(seen.begin(), seen.end(), target) != seen.end()) continue;
    seen.push_back(target);
    try {
      digests(job.spec, job.target);
    } catch (const Error&) {  // each job will say so
    }
  }
}

}  // namespace

void build_many(std::span<const BuildJob> jobs, int processes, const std::function<void(size_t, const BuildOutcome&)>& report,
                std::chrono::milliseconds deadline) {
  find_compilers(jobs);
  const size_t wanted = processes > 0 ? size_t(processes) : size_t(std::max(1u, std::thread::hardware_concurrency()));
  Workers(jobs, report, deadline).run(std::min(wanted, jobs.size()));
}

}  // namespace quern::jit
