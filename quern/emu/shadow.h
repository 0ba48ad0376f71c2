// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Checked mode: judges every access of a kernel that Bounds lets pass. Races and uninitialised reads are reported and the
// launch goes on.
#pragma once
#include <unordered_map>

#include "quern/emu/bounds.h"
#include "quern/emu/bulk.h"
#include "quern/emu/cells.h"
#include "quern/emu/memory_map.h"
#include "quern/emu/worker.h"

namespace quern::emu {

/// What an atomic's release leaves at its address: for threads of the device, and besides for those of a block or a cluster.
struct Publication {
  struct Near {
    Scope scope;
    u64 of;  ///< number of the block, or of the cluster's first block
    Knowledge known;
  };
  Knowledge of_device;
  bool has_device = false;
  std::vector<Near> near;
};

/// Cells of a block's shared memory.
struct BlockShadow {
  std::vector<Cell> cells, groups;  ///< see CellSpan
  std::vector<u8> states;
  std::unordered_map<u32, std::string> agents;  ///< names, by number
  struct Numbers {
    u32 next;                 ///< not given yet
    std::vector<Agent> free;  ///< given back
  };
  Numbers numbers[2];  ///< of agents of other proxies, and of those in the threads' own
  struct Visit {
    Epoch epoch;
    bool wrote;  ///< by a thread's own store
  };
  std::vector<Visit> visits;  ///< accesses that must have happened before the block exits, the last of each party and kind
  std::vector<Epoch> dependency_waits;
};

/// What an agent's access goes through: the copy engine, its reader of tensor maps, or the same way as a thread's.
enum class Through { engine, tensor_maps, threads };

class Shadow {
 public:
  explicit Shadow(Worker& worker);

  void block_started(Block& block);
  /// A thread goes on after an arrival: the barrier publishes what it has done until here. Then all have come.
  void arrive(Fiber& fiber, Barrier& barrier);
  void barrier_opens(Barrier& barrier);
  /// Lanes have met at sync_warp.
  void join_lanes(Warp& warp, u32 lanes);

  /// An access by a thread to any address; `what` names the instruction.
  void access(Fiber& fiber, const void* address, u64 bytes, bool write, const char* what);
  /// ld.global.nc: the bytes are not written in this launch. The read itself is an access of its own.
  void read_only(Fiber& fiber, const void* address, u64 bytes);
  // cp.async: a thread's copies are made by an agent, its copier, of whose moments each is one.
  void copy_issued(Fiber& fiber, const AsyncCopy& copy);
  void copy_landed(Fiber& fiber, const AsyncCopy& copy);
  /// The thread has waited for its copies before number `until`.
  void copies_waited(Fiber& fiber, u32 until);
  /// They arrive: who sees the phase complete knows of them, and of nothing else that the thread did.
  void copies_arrive(const Fiber& fiber, u32 until, Mbarrier& barrier);
  void before_atomic(Fiber& fiber, const AtomicCall& call);
  void fence(Fiber& fiber, Scope scope);
  void proxy_fence(Fiber& fiber, ProxyFence fence);

  /// A new agent of the block: someone besides its threads who accesses memory. `name` as reports call it. `in_own_proxy`: its accesses
  /// take no fence to be seen by threads, and one to be seen by copies.
  Agent new_agent(Block& block, std::string name, bool in_own_proxy = false);
  /// The number may be another agent's, whose moments come behind `last`. Nothing where there is no agent.
  void free_agent(Block& block, Agent agent, u32 last);
  /// An access that the thread issues and the agent makes at its moment `epoch`. `what` names the instruction.
  void async_access(Fiber& issuer, const void* address, u64 bytes, AccessKind kind, Epoch epoch, const char* what,
                    Through through = Through::engine);

  // mbarriers: an arrival publishes, who sees a phase complete learns.
  void mbarrier_begins(Fiber& fiber, Mbarrier& barrier);
  /// `copy`: the moment at which a copy completes there that the thread issues.
  void mbarrier_used(Fiber& fiber, Mbarrier& barrier, bool by_engine, const Epoch* copy = nullptr);
  void mbarrier_ends(Fiber& fiber, Mbarrier& barrier);
  void arrive(Fiber& fiber, Mbarrier& barrier, Scope scope);
  void phase_completes(Mbarrier& barrier);
  void phase_seen(Fiber& fiber, const Mbarrier& barrier, Scope scope);

  // Copies by the copy engine.
  void load_issued(Fiber& issuer, const Bulk& bulk, Mbarrier& barrier, const char* what);
  void load_landed(const Bulk& bulk, Mbarrier& barrier);
  Epoch moment_of_load(const Bulk& bulk, Mbarrier& barrier);
  void store_issued(Fiber& issuer, const Bulk& bulk, const char* what);
  void stores_waited(Fiber& fiber, u32 last_group, bool read);

  // Clusters.
  void arrive(Fiber& fiber, Cluster& cluster, bool release);
  /// Someone accesses the block's shared memory: it must not exit before.
  void visit(Block& block, Epoch epoch, bool wrote = false);
  void block_exits(Block& block);

  /// griddepcontrol.wait: what launches before this one did is visible.
  void dependency_wait(Fiber& fiber);

  // Warpgroups.
  /// The thread's registers come before later wgmma.
  void wgmma_fence(Fiber& fiber);
  /// A thread issues a wgmma: whether its registers are free for it and fenced. Then they are the wgmma's.
  void wgmma_takes_registers(Fiber& fiber, const WgmmaCall& call);
  void wgmma_holds(Fiber& fiber, const WgmmaCall& call, u64 number);
  void wgmma_waited(Fiber& fiber, Warpgroup& group);
  /// The thread may access these registers again, of wgmma that it has waited for.
  void wgmma_hold(Fiber& fiber, const void* registers, u64 bytes);
  /// Who reads shared memory for the warpgroup.
  u32 wgmma_agent(Fiber& fiber, Warpgroup& group);
  /// Whether the view of the thread's warp of shared memory must be judged for that wgmma, which it then is.
  bool wgmma_view_is_new(Fiber& fiber, WgmmaOp& op);

 private:
  void watch_waited_for(Fiber& fiber);
  void judge_registers(Fiber& fiber, u64 address, u64 bytes, bool write, const char* what);
  void judge(Fiber& fiber, u64 address, u64 bytes, AccessKind kind, bool reads, const char* what, const AsyncAccess* async = nullptr);
  void judge_shared(Fiber& fiber, const Bounds::Place& at, u64 bytes, AccessKind kind, bool reads, const char* what,
                    const AsyncAccess* async);
  void judge_global(Fiber& fiber, MemoryMap::Region& region, u64 address, u64 bytes, AccessKind kind, bool reads, const char* what,
                    const AsyncAccess* async);
  void judge_overlap(Fiber& fiber, u64 address, u64 bytes, AccessKind kind, const char* what);
  std::string name_of(const Fiber& fiber, Epoch other) const;
  void report_race(Fiber& fiber, const char* what, bool write, const std::string& place, const Conflict& conflict);
  void report_read_only(const Fiber& fiber, std::string text);
  void report_uninitialised(Fiber& fiber, const char* what, const std::string& place);
  CellSpan shared_span(Block& block, u32 offset, u64 bytes);
  u32 code_of(const Fiber& fiber) const;
  void order(Fiber& fiber, const AtomicCall& call, bool stores);
  void publish(const Fiber& fiber, u64 address, Scope scope, const Knowledge& news);

  Worker& worker_;
  Bounds& bounds_;
  const LaunchRequest& request_;
  const u32 first_copier_;                          ///< the copiers of a block's threads are numbered behind them
  const u32 first_agent_;                           ///< and all other agents behind these
  std::unordered_map<u64, Publication> published_;  ///< by address
  std::vector<ThreadClock*> meeting_;
};

}  // namespace quern::emu
