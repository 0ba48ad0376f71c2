// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The contract between an emulated kernel (a shared object of its own) and the runtime (quern/emu): the context that
// each thread finds on its own stack, and the table of functions that the kernel calls. Plain C++; includes abi.h only.
#pragma once
#include "quern/kit/abi.h"

namespace quern::emu {

struct Index3 {
  u32 x, y, z;
};

/// What a warp does together. Lanes that meet must agree on the kind.
enum class Collective : u32 {
  sync_warp,
  shfl_xor,
  shfl_idx,
  shfl_up,
  shfl_down,
  ballot,
  any,
  all,
  elect,
  ldmatrix_x1,
  ldmatrix_x2,
  ldmatrix_x4,
  ldmatrix_x1_trans,
  ldmatrix_x2_trans,
  ldmatrix_x4_trans,
  mma_m16n8k16_bf16,
  mma_m16n8k16_f16,
  mma_m16n8k8_bf16,
  mma_m16n8k8_f16,
  tensormap_publish,
  stmatrix_x1,
  stmatrix_x2,
  stmatrix_x4,
  stmatrix_x1_trans,
  stmatrix_x2_trans,
  stmatrix_x4_trans,
  increase_registers,
  decrease_registers,
};

/// A lane's part in a shuffle. `lost`: the lane that it asked for does not take part.
struct ShufflePayload {
  u32 value;
  u32 argument;
  u32 width;
  u32 result;
  u32 from;
  bool lost;
};

/// The meaning of a collective: runs once, on the lane that arrives last. payloads[lane] is null for lanes outside
/// mask.
using Meaning = void (*)(void** payloads, u32 mask);

enum class AtomicOp : u32 { load, store, exch, cas, add, max_i32, min_i32, max_u32, min_u32, combine };
enum class Order : u32 { relaxed, acquire, release, acq_rel };
enum class Scope : u32 { block, cluster, gpu };
/// Fences between the generic proxy (ordinary accesses) and the async or the tensor-map proxy.
enum class ProxyFence : u32 { async, async_shared, async_global, mbarrier_init, tensormap_release, tensormap_acquire };

/// One atomic access of 4 or 8 bytes. combine computes the stored word for AtomicOp::combine.
struct AtomicCall {
  AtomicOp op;
  Order order;
  u32 bytes;
  void* address;
  u64 operand;
  u64 compare;
  u32 (*combine)(u32 stored, u32 operand);
};

enum class GridEvent : u32 { wait, launch_dependents };

/// Operations of numbers that name their expression (kit/emu/number_tree.cuh). widen and narrow: from and to 16 bits;
/// products: of an mma, in the order of k; mma: the products, then the addend.
enum class NumberOp : u32 {
  leaf,
  widen,
  narrow,
  add,
  fma,
  multiply,
  products,
  mma,
  divide,
  exp2,
  log2,
  reciprocal,
  rsqrt,
  sqrt,
  tanh,
  sin,
  cos,
  round,
  power_of_two_above
};

/// Addresses are of the shared window: offset in bits 0-23, rank of the block in its cluster above. arrive_cluster may name
/// any block, all others the own one. try_wait may say no of a phase that has completed. arrive_copies: when the thread's cp.async so far
/// are complete.
enum class MbarrierOp : u32 { init, inval, arrive, arrive_cluster, expect_tx, test_wait, try_wait, wait, arrive_copies };
struct MbarrierCall {
  MbarrierOp op;
  u32 address;
  u32 count;  ///< of arrivals
  u32 bytes;  ///< of copies that the phase takes besides
  u32 parity;
  Scope scope;  ///< of an arrival's release, of a wait's acquire
};

enum class BulkOp : u32 {
  tensor_load,
  tensor_load_multicast,
  tensor_store,
  tensor_reduce_add,
  tensor_prefetch,
  tensormap_prefetch,
  load,
  load_multicast,
  store,
  reduce_add,
  prefetch,
  copy_cluster,
  store_async,
};
/// How words of a type are added, in the kernel's number type.
struct Sums {
  u32 (*f32)(u32 stored, u32 operand);
  u32 (*bf16)(u32 stored, u32 operand);
  u32 (*f16)(u32 stored, u32 operand);
};
/// A copy by the copy engine.
struct BulkCall {
  BulkOp op;
  DType type;    ///< of the elements that reduce_add adds
  u32 shared;    ///< the end in shared memory; of copy_cluster, the destination
  u32 source;    ///< of copy_cluster
  u32 bytes;     ///< a tensor copy's are the map's box
  u32 mbarrier;  ///< of loads
  u32 blocks;    ///< of a multicast: mask of ranks
  u32 rank;      ///< number of coordinates
  i32 at[5];     ///< coordinates, innermost first
  u32 words[4];  ///< of store_async
  void* global;  ///< the end in global memory, or the tensor map
  const Sums* sums;
};
enum class TensorMapField : u32 { address, extent, stride };

/// Bytes of K in an operand's row: of every wgmma, whatever the type.
constexpr u32 kWgmmaRowBytes = 32;

/// Operands of a wgmma as its meaning gets them: gathered, each row's 32 bytes of K behind each other.
struct WgmmaOperands {
  const u8 (*a)[kWgmmaRowBytes];  ///< [64]
  const u8 (*b)[kWgmmaRowBytes];  ///< [n]
  void* const* d;                 ///< [128] accumulators of each thread of the warpgroup
  void* scratch;                  ///< kWgmmaScratchBytes, aligned to 64
  bool add;
};
constexpr u64 kWgmmaScratchBytes = 128 << 10;
/// One wgmma as one thread of the warpgroup issues it.
struct WgmmaCall {
  u32 n;
  u32 element_bytes;
  bool a_mn_major, b_mn_major, add;
  u64 a, b;          ///< descriptors
  u32* a_registers;  ///< A's four registers, or null when it lies in shared memory
  void* d;
  u32 d_bytes;
  u32 line;
  void (*meaning)(const WgmmaOperands& operands);  ///< runs once for the warpgroup
};

/// What the instrumentation of UndefinedBehaviorSanitizer found; each comes with the compiler's description of the place.
enum class Undefined : u32 {
  type_mismatch,
  add,
  subtract,
  multiply,
  negate,
  divide,
  shift,
  index,
  unreachable,
  missing_return,
  array_size,
  float_cast,
  invalid_value,
  invalid_builtin,
  null_argument,
  null_return,
  pointer_overflow,
  alignment_assumption
};

/// A read of a tensor by hooks that has no meaning: another number of indices than dims, an index outside of its extent, an
/// integer of a tensor that has none, a tensor beyond the last.
enum class BadRead : u32 { dims, index, dtype, tensor };

/// Parameters of quern_asan_canary, the entry of an asan module that makes one fault; canary.cpp tells what must be reported.
struct AsanCanary {
  enum class Fault : u32 { none, local, global, fill, shared, shift, float_cast } fault;
  u32* outside;  ///< memory that the launch may not touch
};

/// Functions of the runtime. A kernel never links against the runtime: it is handed this table.
struct Runtime {
  u32 bytes;  ///< sizeof(Runtime): a module compiled for another table is refused
  /// Lines of the source tell the places of instructions apart that all lanes execute together.
  void (*collective)(u32 mask, Collective kind, void* payload, Meaning meaning, u32 line);
  /// Block barrier `id` of `threads` (0: every thread that has not exited); waits unless arrive_only. Returns the OR of
  /// the votes.
  u32 (*barrier)(u32 id, u32 threads, bool arrive_only, u32 vote, u32 line);
  void (*cp_async)(u32 destination, const void* source, u32 bytes, u32 source_bytes);
  void (*cp_async_commit)();
  void (*cp_async_wait)(u32 groups_left);
  u64 (*atomic)(const AtomicCall& call);
  void (*fence)(Scope scope);
  void (*grid_event)(GridEvent event);
  /// A lane of the caller's warp reads or writes memory inside a collective.
  void (*access)(u32 lane, const void* address, u32 bytes, bool write, const char* what);
  /// An ordinary load or store of the kernel, from the instrumentation of checked and asan builds.
  void (*plain_access)(const void* address, u64 bytes, bool write, void* pc);
  void (*misaligned)(const void* address, u32 bytes);
  void (*bad_shared_address)(u32 address, u32 bytes, const char* what);
  u64 (*clock)();
  void (*print)(const char* format, ...);
  /// The word of an expression, of kernels compiled for Number::graph.
  u32 (*number)(NumberOp op, u32 a, u32 b);

  // Proxies, mbarriers, bulk copies, clusters.
  void (*proxy_fence)(ProxyFence fence, const void* address);
  bool (*mbarrier)(const MbarrierCall& call);
  void (*bulk)(const BulkCall& call);
  void (*bulk_commit)();
  void (*bulk_wait)(u32 groups_left, bool read);
  void (*cluster_arrive)(bool release, u32 line);
  void (*cluster_wait)(u32 line);
  /// Shared memory of another block of the cluster is about to be accessed.
  void (*cluster_access)(u32 rank, const char* what);
  void (*tensormap_replace)(u32 map, TensorMapField field, u32 dim, u64 value);

  // Warpgroups: wgmma, setmaxnreg.
  void (*wgmma)(const WgmmaCall& call);
  void (*wgmma_fence)(u32 line);
  void (*wgmma_commit)(u32 line);
  void (*wgmma_wait)(u32 groups_left, u32 line);
  void (*set_registers)(bool increase, u32 registers);

  /// Checked builds: the thread reads by ld.global.nc.
  void (*read_only)(const void* address, u32 bytes);
  /// Checked builds: the compiler moves no access of these registers over this point.
  void (*wgmma_hold)(const void* registers, u32 bytes);

  /// Undefined behaviour, of asan builds; `data` is the compiler's.
  void (*undefined)(Undefined what, const void* data, u64 a, u64 b, void* pc);

  /// Hooks read what they may not; `got` and `expected` are numbers, `dim` is the index's. Does not return.
  void (*bad_read)(BadRead what, const void* tensor, i64 got, i64 expected, u32 dim);
};

constexpr u64 kStackBytes = 64 << 10;

/// Checked mode: which words of a thread's stack were accessed since its last wgmma_fence, and which are registers of a
/// wgmma in flight. One bit for 4 bytes.
struct RegisterWatch {
  static constexpr u64 kWords = kStackBytes / 4;
  u64 touched[kWords / 64];
  u64 in_flight[kWords / 64];
};

/// What a thread knows of itself; lies at the top of its stack.
struct ThreadContext {
  const Runtime* runtime;
  void* fiber;
  u8* smem;          ///< dynamic shared memory of the thread's block
  u8* cluster_smem;  ///< the same of the cluster's block 0; block r's lies r * kSmemStride further
  Index3 thread, block, block_size, grid_size;
  u32 lane, warp;
  u32 rank, cluster_blocks;
  u32 smem_bytes;
  u32 error_seed;        ///< of the errors of approximate instructions
  RegisterWatch* watch;  ///< null until a checked thread's first wgmma_fence or wgmma
};

constexpr u64 kSmemStride = 512 << 10;
/// Asan builds: the byte at kAsanShadow + address / 8 says how many of the 8 bytes at an address in a stack a thread may use
/// (0: all; negative: none, and why). Compilers take the offset as an option, so that it is not the one of a libasan in
/// the process; stacks lie below 2^47, their shadow below 2^45.
constexpr u64 kAsanShadow = u64(1) << 44;
/// Slots are aligned alike, so equal offsets in them share a cache set: each slot starts its content at another colour.
constexpr u64 kStackColours = 64;
constexpr u64 kColourBytes = 320;

/// Address of the context in the stack slot that contains `address`. Stacks are aligned to their size, so neither
/// thread-local storage nor a register is needed.
inline __attribute__((always_inline)) u64 context_address(u64 address) {
  const u64 colour = (address / kStackBytes) % kStackColours;
  return (address | (kStackBytes - 1)) + 1 - sizeof(ThreadContext) - colour * kColourBytes;
}
inline __attribute__((always_inline)) ThreadContext* current() {
  return reinterpret_cast<ThreadContext*>(context_address(reinterpret_cast<u64>(__builtin_frame_address(0))));
}

/// Registers that a thread is launched with: what __launch_bounds__ leaves it of a multiprocessor's 65536.
constexpr u32 launch_registers(u32 threads, u32 min_blocks) {
  return min_of<u32>(256, 65536 / (round_up<u32>(threads, 32) * max_of<u32>(min_blocks, 1)) / 8 * 8);
}

}  // namespace quern::emu
