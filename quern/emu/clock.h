// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Happens-before of checked mode: which accesses of other threads a thread is ordered after.
//
// Dense vector clocks would make a barrier of 1024 threads cost 1024 x 1024. Here a clock is a snapshot that threads
// share (after a block barrier all have the same one) plus a few entries learned since; both are immutable and counted,
// so copying a clock copies pointers.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "quern/kit/abi.h"

namespace quern::emu {

/// A moment of one thread or agent, in 64 bits: block 24, thread 14, clock 25, atomic access 1. Zero is before everything.
struct Epoch {
  static constexpr u32 kThreads = 1 << 14;  ///< numbers of threads and agents
  u64 bits = 0;
  Epoch() = default;
  Epoch(u64 block, u32 thread, u32 clock, bool atomic = false) : bits(u64(atomic) << 63 | block << 39 | u64(thread) << 25 | clock) {}
  u64 block() const { return bits >> 39 & 0xffffff; }
  u32 thread() const { return u32(bits >> 25) & (kThreads - 1); }
  u32 clock() const { return u32(bits) & 0x1ffffff; }
  bool atomic() const { return bits >> 63; }
  /// Same thread, whatever the moment.
  bool same_thread(Epoch other) const { return (bits ^ other.bits) << 1 >> 26 == 0; }
  explicit operator bool() const { return bits != 0; }
  friend bool operator==(Epoch, Epoch) = default;
};

/// Intrusive count of owners; checked mode runs on one OS thread.
template <class T>
class Shared {
 public:
  Shared() = default;
  explicit Shared(T* adopted) : object_(adopted) {
    if (object_) ++object_->owners;
  }
  Shared(const Shared& o) : Shared(o.object_) {}
  Shared(Shared&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Shared& operator=(Shared o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Shared() {
    if (object_ && --object_->owners == 0) delete object_;
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_; }
  friend bool operator==(const Shared& a, const Shared& b) { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

/// For each thread of a block, the clock up to which its accesses are known.
struct Snapshot {
  u32 owners = 0;
  std::vector<u32> clocks;
};
/// The same for a few threads, sorted.
struct Recent {
  u32 owners = 0;
  struct Entry {
    u32 thread, clock;
  };
  std::vector<Entry> entries;
};
/// Snapshots of other blocks, sorted by block. Learned through global memory.
struct Foreign {
  u32 owners = 0;
  struct Entry {
    u64 block;
    Shared<Snapshot> known;
  };
  std::vector<Entry> entries;
};

/// What bulk copies, matrix instructions and tensor maps see of ordinary writes takes a fence: of shared memory, of global
/// memory, of mbarriers that were initialised. A tensor map takes two, by its writer and by its user. `reads` is no proxy: which reads a
/// thread is ordered after by an arrival that orders nothing else, at an mbarrier of another block.
enum class Proxy : u32 { shared, global, mbarrier, tensormap_released, tensormap, reads };
constexpr u32 kProxies = 6;

struct Proxies;

/// What is known at one moment, apart from whose moment it is.
struct Knowledge {
  u64 block = 0;
  Shared<Snapshot> base;  ///< of the own block
  Shared<Recent> recent;  ///< of the own block, since the base
  Shared<Foreign> foreign;
  Shared<Proxies> proxies;  ///< which of all that is known to be fenced; travels with the rest

  /// Whether an access at that epoch happened before.
  bool covers(Epoch epoch) const;
  /// Learns that `thread` of the own block reached `clock`.
  void learn(u32 thread, u32 clock);
  /// Learns all that the other knows, of any block.
  void join(const Knowledge& other);
  /// Learns what the other knows to be fenced, and nothing else.
  void join_proxies(const Knowledge& other);
  /// Whether a fence of that kind covers the write.
  bool fenced(Proxy proxy, Epoch write) const;
  /// A fence of that kind behind all that `before` knows.
  void fence(Proxy proxy, const Knowledge& before);

 private:
  void join_order(const Knowledge& other);
  void join_same_block(const Knowledge& other);
  void join_snapshot(u64 block, const Shared<Snapshot>& known);
};

/// For each proxy, which writes are known to be fenced.
struct Proxies {
  u32 owners = 0;
  Knowledge known[kProxies];
};

/// Scopes of fences: the threads of a block, of a cluster, of the device (emu::Scope).
constexpr u32 kScopes = 3;
struct Scoped {
  Knowledge known;
  bool some = false;
};

/// A thread's clock. Its own accesses carry `now`; others know them when they know that clock.
struct ThreadClock {
  Knowledge known;
  u32 thread = 0;
  u32 first_agent = 0;  ///< numbers from here on are no threads' nor their cp.async's
  u32 now = 1;
  /// By Scope. What fences of that scope made visible, and no later one of a wider scope: later relaxed atomics publish it. A barrier
  /// hands it on: threads may fence, meet, and let one of them do the atomic.
  Scoped fenced[kScopes];
  Scoped unfenced[kScopes];  ///< what relaxed loads saw that a fence of that scope, or a wider one, makes known

  bool covers(Epoch epoch) const;
  Epoch epoch(bool atomic = false) const { return Epoch(known.block, thread, now, atomic); }
  /// All of it as it looks to others, the own moment included.
  Knowledge published() const;
};

/// Everybody knows what anybody knew (a barrier); each then enters a new moment.
void synchronise(ThreadClock* const* clocks, size_t count, u32 block_threads);

/// One snapshot that says the same as base and recent together.
Shared<Snapshot> flatten(const Knowledge& knowledge, u32 block_threads);

}  // namespace quern::emu
