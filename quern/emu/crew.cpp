// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/crew.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace quern::emu {
namespace {

struct Job {
  const std::function<void()>* work;
  int offered = 0;  ///< places not yet taken
  int running = 0;
  std::exception_ptr failure;
};

/// Threads of the process that wait for work. Never destroyed: they may outlive static objects.
struct Crew {
  std::mutex mutex;
  std::condition_variable offered, finished;
  std::deque<Job*> jobs;
  int threads = 0;
  int idle = 0;

  void serve() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      ++idle;
      offered.wait(lock, [&] { return !jobs.empty(); });
      --idle;
      Job& job = *jobs.front();
      if (--job.offered == 0) jobs.pop_front();
      ++job.running;
      lock.unlock();
      std::exception_ptr failure;
      try {
        (*job.work)();
      } catch (...) { failure = std::current_exception(); }
      lock.lock();
      if (failure) job.failure = failure;
      if (--job.running == 0) finished.notify_all();
    }
  }
};

Crew& crew() {
  static Crew& instance = *new Crew;
  return instance;
}

}  // namespace

void run_crew(int count, const std::function<void()>& work) {
  if (count <= 1) return work();
  Crew& all = crew();
  Job job{&work};
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    job.offered = count - 1;
    all.jobs.push_back(&job);
    constexpr int kMostThreads = 64;
    for (int missing = job.offered - all.idle; missing > 0 && all.threads < kMostThreads; --missing) {
      ++all.threads;
      std::thread([&all] { all.serve(); }).detach();
    }
  }
  all.offered.notify_all();
  std::exception_ptr failure;
  try {
    work();
  } catch (...) { failure = std::current_exception(); }
  std::unique_lock<std::mutex> lock(all.mutex);
  std::erase(all.jobs, &job);
  all.finished.wait(lock, [&] { return job.running == 0; });
  if (!failure) failure = job.failure;
  if (failure) std::rethrow_exception(failure);
}

}  // namespace quern::emu
