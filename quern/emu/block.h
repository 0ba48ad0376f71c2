// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// State of resident blocks: threads as fibers, warps, barriers.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "quern/emu/clock.h"
#include "quern/kit/emu/runtime.h"

namespace quern::emu {

struct Block;
struct BlockShadow;
struct Bulk;
struct Cluster;
struct Fiber;
struct Warp;
class Worker;

constexpr u32 kFullWarp = 0xffffffffu;

enum class WaitReason : u8 { none, warp, barrier, poll, mbarrier, cluster, wgmma, registers };

/// One cp.async not yet carried out.
struct AsyncCopy {
  u32 destination;  ///< offset in the block's shared memory
  u32 bytes, source_bytes;
  const void* source;
  bool done;
  void* pc;
};

/// An arrival that happens when the thread's copies before number `until` are complete.
struct CopyArrival {
  Fiber* fiber;
  u32 mbarrier;  ///< offset in the block's shared memory
  u32 until;
  void* pc;
};

/// Registers of a thread that belong to a wgmma until the thread has waited for it.
struct HeldRegisters {
  u8* first;
  u32 bytes;
  u64 until;      ///< number of the last wgmma that has them
  u32 n;          ///< of accumulators: only a wgmma of as many columns may have them too; 0: they hold A
  u32 values[4];  ///< of A, which is poison meanwhile
  void* pc;
};
/// A thread's place in the sequence of its warpgroup's wgmma, which are numbered from 0.
struct WgmmaThread {
  u64 issued = 0;
  u64 waited = 0;           ///< those before are complete
  std::vector<u64> groups;  ///< committed: number behind the last of each, oldest first
  std::vector<HeldRegisters> held;
  std::vector<HeldRegisters> waited_for;  ///< checked mode: accumulators that no wgmma_hold has given back to the thread yet
  bool fenced = false;
  std::unique_ptr<RegisterWatch> watch;  ///< checked mode
};

/// A CUDA thread. The stack and its ThreadContext lie in the worker's arena.
struct Fiber {
  void* context = nullptr;  ///< where it goes on
  ThreadContext* thread = nullptr;
  Warp* warp = nullptr;
  Block* block = nullptr;
  Worker* worker = nullptr;
  void* pc = nullptr;  ///< its last call into the runtime
  u8* stack = nullptr;
  u32 index = 0;  ///< in the block
  u32 lane = 0;
  bool done = false;
  WaitReason reason = WaitReason::none;  ///< of the last wait; meaningful while it lasts
  u32 wait_id = 0;                       ///< barrier or collective it waits at
  u64 wait_detail = 0;                   ///< mask of a collective, address of a poll
  u64 polled_value = 0;                  ///< phase of an mbarrier at its last look there
  struct Seen {
    u64 place, value;
  };
  Seen seen[16] = {};  ///< what its atomics that changed nothing have found: who finds the same again is in a loop that waits
  u32 next_seen = 0;
  u32 vote_result = 0;
  u32 wait_line = 0;
  std::vector<AsyncCopy> copies;              ///< issued, neither waited for nor arrived at an mbarrier; oldest first
  u32 first_copy = 0;                         ///< number of the oldest: a thread's copies are numbered from 0
  std::vector<u32> copy_groups;               ///< committed: number behind the last of each, oldest first
  std::vector<std::shared_ptr<Bulk>> stores;  ///< bulk stores not known to be complete, oldest first
  u32 store_groups = 0;                       ///< committed
  u32 stores_read = 0;                        ///< groups whose sources are known to have been read
  u32 read_agent = 0, write_agent = 0;        ///< checked mode: who reads their sources, who writes their results
  bool at_cluster_barrier = false;            ///< arrived, has not waited
  u32 cluster_phase = 0;                      ///< of that arrival
  bool dependency_waited = false;
  ThreadClock clock;  ///< checked mode
  WgmmaThread wgmma;
  u32 register_changes = 0;  ///< setmaxnreg executed
  // Checked mode.
  u64 denied_at = 0;             ///< mbarrier and phase of its last mbarrier.try_wait that saw the phase complete
  u32 denials = 0;               ///< how often that one still says no
  u64 aligned_steps = 0;         ///< instructions that all lanes of a warp execute together
  void* last_access = nullptr;   ///< place of its last ordinary access
  const void* repeated[4] = {};  ///< addresses of its last ordinary loads,
  u32 next_repeated = 0;
  u32 repeats = 0;  ///< and how many loads of these alone followed each other
};

/// Lanes of one mask on their way to a collective.
struct Rendezvous {
  u32 mask = 0;
  u32 arrived = 0;
  Collective kind = Collective::sync_warp;
  Meaning meaning = nullptr;
  void* payloads[32];
};

struct Warp {
  Fiber* fibers = nullptr;  ///< of lane 0
  u32 ready = 0;            ///< lanes that may run
  u32 lanes = 0;            ///< that the block has of it
  u32 alive = 0;            ///< lanes that have not exited
  bool queued = false;      ///< in the worker's queue
  u32 barrier_lanes = 0;    ///< lanes that stand at the block barrier below while others of the warp have not come
  u32 barrier_id = 0, barrier_line = 0;
  u32 parked = 0;  ///< those of them that need not wait for the barrier, but for their warp
  /// Disjoint masks may meet at the same time: of two lanes 16, and one lane alone waits for nobody.
  Rendezvous meetings[16];
  /// Checked mode: instructions of all lanes together that some lane has executed and some has not, oldest first.
  struct Aligned {
    const char* what;
    void* pc;
    u32 line;
    u32 lanes;
  };
  std::deque<Aligned> aligned;
  u64 first_aligned = 0;              ///< number of the oldest
  u32 registers = 0;                  ///< of each thread
  std::vector<u32> register_changes;  ///< what setmaxnreg made of them
};

/// One wgmma on its way: issued by some of the warpgroup's threads, by all, or done.
struct WgmmaOp {
  WgmmaCall call;  ///< of the first thread
  Fiber* first = nullptr;
  void* pc = nullptr;
  u32 arrived = 0;
  bool done = false;
  void* d[128];
  std::vector<u8> a;  ///< rows of A from registers
  u32 checked = 0;    ///< warps whose view of shared memory was judged
  Knowledge judged;   ///< what the last of them knew
};
struct Warpgroup {
  std::deque<WgmmaOp> ops;  ///< oldest first, those that some thread has not waited for
  u64 first = 0;            ///< number of the oldest
  u64 arrived = 0;          ///< wgmma that all threads have issued
  u64 done = 0;
  u32 agent = 0;         ///< checked mode: who reads shared memory; 0: none yet
  bool pending = false;  ///< random policy: in the worker's list
  std::vector<Fiber*> waiting;
};

struct Barrier {
  u32 arrived = 0;
  u32 expected = 0;  ///< 0: every live thread
  u32 vote = 0;
  std::vector<Fiber*> waiting;
  Knowledge published;  ///< checked mode: by those who arrived without waiting
  bool has_published = false;
};

/// Checked mode: a number for someone besides the threads who accesses memory, whose moments begin behind `before`.
struct Agent {
  u32 number = 0, before = 0;
  explicit operator bool() const { return number != 0; }
};

/// An mbarrier. The word in shared memory only guards the place.
struct Mbarrier {
  Block* block = nullptr;
  u32 offset = 0;
  u32 count = 0;    ///< arrivals of a phase
  u32 pending = 0;  ///< arrivals that this phase still takes
  i64 bytes = 0;    ///< of copies that it still takes; below 0 when they came before they were expected
  u32 phase = 0;
  u64 number = 0;  ///< of those that the block has made
  std::vector<Fiber*> waiting;
  // Checked mode.
  Agent agent;   ///< makes the accesses of the copies that complete here, at `moment()`
  Agent storer;  ///< likewise of st.async, which stores in the threads' own proxy; none until the first
  Epoch initialised;
  Knowledge arrived, published;              ///< by arrivals of the block's threads so far, by those of completed phases
  Knowledge arrived_far, published_far;      ///< of threads of other blocks, which released to the cluster
  Knowledge arrived_reads, published_reads;  ///< and of those that only told that they have read
  bool has_far = false, has_reads = false;
  u32 moment(const Agent& of) const { return of.before + phase + 1; }

  u64 word() const { return 0x72656972726162ull << 8 ^ offset; }
  bool complete(u32 parity) const { return (phase & 1) != (parity & 1); }
};

struct Block {
  Cluster* cluster = nullptr;
  Index3 index = {};
  u64 linear = 0;  ///< number in the grid
  u32 rank = 0;    ///< in its cluster
  u32 live = 0;
  u8* smem = nullptr;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  u32 free_registers = 0;  ///< in the pool that setmaxnreg takes from
  Barrier barriers[16];
  std::map<u32, Mbarrier> mbarriers;  ///< by offset
  u64 mbarriers_made = 0;
  std::unique_ptr<BlockShadow> shadow;  ///< checked mode
};

/// Blocks that run together; without clusters, one block.
struct Cluster {
  u32 slot = 0;  ///< position in the worker's arena
  u32 live_blocks = 0;
  u32 arrived = 0;  ///< at the cluster's barrier
  u32 phase = 0;    ///< of it
  std::vector<Fiber*> waiting;
  Knowledge gathered, published;  ///< checked mode: by arrivals of this phase, by those of the last
  std::vector<Block> blocks;
};

}  // namespace quern::emu
