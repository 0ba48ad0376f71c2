// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/parallel.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace quern::testing {

void in_parallel(i64 count, i64 least, const std::function<void(i64, i64)>& f) {
  static const i64 cpus = std::max<i64>(1, std::thread::hardware_concurrency());
  const i64 pieces = std::clamp<i64>(count / std::max<i64>(1, least), 1, cpus);
  if (pieces == 1) return count > 0 ? f(0, count) : void();
  std::mutex mutex;
  std::exception_ptr failed;
  const auto piece = [&](i64 t) {
    try {
      f(count * t / pieces, count * (t + 1) / pieces);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failed = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  for (i64 t = 1; t < pieces; ++t) pool.emplace_back(piece, t);
  piece(0);
  for (std::thread& thread : pool) thread.join();
  if (failed) std::rethrow_exception(failed);
}

constexpr i64 kPiece = i64(4) << 20;

void parallel_fill(void* to, int byte, size_t bytes) {
  in_parallel(i64(bytes), kPiece, [&](i64 begin, i64 end) { std::memset(static_cast<char*>(to) + begin, byte, size_t(end - begin)); });
}

void parallel_copy(void* to, const void* from, size_t bytes) {
  in_parallel(i64(bytes), kPiece, [&](i64 begin, i64 end) {
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin, size_t(end - begin));
  });
}

}  // namespace quern::testing
