// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "quern/bench/null_call.h"
#include "quern/bench/time_call.h"

// Every allocation of this executable is counted.
static std::atomic<long> allocations = 0;

static void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes ? bytes : 1) != 0) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes) { return counted(bytes, 16); }
void* operator new[](std::size_t bytes) { return counted(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return counted(bytes, std::size_t(alignment)); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return counted(bytes, std::size_t(alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace quern::bench {
namespace {

constexpr int kCalls = 1000;

/// Median nanoseconds of a call over batches.
double call_ns(NullCall& call) {
  std::vector<double> ns;
  for (int batch = 0; batch < 21; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    ns.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kCalls);
  }
  return timing_of(ns, "").median_us;
}

/// The bound of an op by its id, in ns; 0: none is set.
double bound_ns(const std::string& id) {
  if (id == "norm.rms_norm") return 1000;
  if (id == "attention.paged") return 2000;
  if (id == "gemm.dense") return 1500;
  return 0;
}

TEST(bench_host_cost, counts_allocations) {
  const long before = allocations;
  delete new int(1);
  EXPECT_GT(allocations, before);
}

TEST(bench_host_cost, a_cached_call_allocates_nothing) {
  for (const auto& [id, op] : registry()) {
    NullCall call(*op);
    const i64 launched = call.launches();
    ASSERT_GT(launched, 0) << id;
    const long before = allocations;
    for (int i = 0; i < kCalls; ++i) call();
    EXPECT_EQ(allocations - before, 0) << id;
    EXPECT_EQ(call.launches(), launched * (kCalls + 1)) << id;
  }
}

// Three times the bound: the machine may be loaded while tests run. The figures are printed.
TEST(bench_host_cost, a_cached_call_is_within_three_times_its_bound) {
  for (const auto& [id, op] : registry()) {
    NullCall call(*op);
    const double ns = call_ns(call), bound = bound_ns(id);
    std::printf("%-32s %7.0f ns%s\n", id.c_str(), ns, bound > 0 ? (" (bound " + std::to_string(int(bound)) + ")").c_str() : "");
    if (bound > 0) { EXPECT_LE(ns, 3 * bound) << id; }
  }
}

}  // namespace
}  // namespace quern::bench
