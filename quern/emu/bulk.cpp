// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/bulk.h"

#include <algorithm>
#include <cstring>

#include "quern/emu/shadow.h"
#include "quern/emu/table.h"

namespace quern::emu {
namespace {

const char* name(BulkOp op) {
  static const char* const kNames[] = {"tma_load",     "tma_load_multicast", "tma_store",     "tma_reduce_add",
                                       "tma_prefetch", "prefetch_tensormap", "bulk_load",     "bulk_load_multicast",
                                       "bulk_store",   "bulk_reduce_add",    "bulk_prefetch", "bulk_copy_cluster",
                                       "st_async"};
  return kNames[u32(op)];
}
bool is_tensor(BulkOp op) { return op <= BulkOp::tensormap_prefetch; }
bool is_store(BulkOp op) {
  return op == BulkOp::tensor_store || op == BulkOp::tensor_reduce_add || op == BulkOp::store || op == BulkOp::reduce_add;
}
bool is_prefetch(BulkOp op) { return op == BulkOp::tensor_prefetch || op == BulkOp::tensormap_prefetch || op == BulkOp::prefetch; }
bool reduces(BulkOp op) { return op == BulkOp::tensor_reduce_add || op == BulkOp::reduce_add; }
bool is_multicast(BulkOp op) { return op == BulkOp::tensor_load_multicast || op == BulkOp::load_multicast; }

[[noreturn]] void refuse(Fiber& me, const BulkCall& call, ReportKind kind, const std::string& why) {
  me.worker->fatal(kind, me, std::string(name(call.op)) + why, call.shared & 0xffffff);
}

/// The map of a tensor copy, after the rules that hold of every copy with it.
EncodedTensorMap map_of(Fiber& me, const BulkCall& call) {
  if (reinterpret_cast<u64>(call.global) % 64)
    refuse(me, call, ReportKind::misaligned, text_of(" with a tensor map at %p, no multiple of 64", call.global));
  EncodedTensorMap map;
  std::memcpy(&map, call.global, sizeof(map));
  if (map.magic != EncodedTensorMap::kMagic) refuse(me, call, ReportKind::async, text_of(": there is no tensor map at %p", call.global));
  if (call.op != BulkOp::tensormap_prefetch && u32(map.rank) != call.rank)
    refuse(me, call, ReportKind::async, text_of(" of %u dimensions, the tensor map has %d", call.rank, map.rank));
  if (map.base % 16) refuse(me, call, ReportKind::misaligned, text_of(": the tensor begins at 0x%llx", map.base));
  for (int d = 0; d + 1 < map.rank; ++d)
    if (map.stride_bytes[d] % 16)
      refuse(me, call, ReportKind::misaligned,
             text_of(": a stride of the tensor is %lld bytes, no multiple of 16", (long long)map.stride_bytes[d]));
  return map;
}

/// Where a box may begin. What an H200 answers to others with CUDA_ERROR_ILLEGAL_INSTRUCTION, and the PTX ISA is silent on.
void check_coordinates(Fiber& me, const BulkCall& call, const EncodedTensorMap& map) {
  const i64 begin = i64(call.at[0]) * size_of(map.dtype);
  if (begin % 16)
    refuse(me, call, ReportKind::misaligned,
           text_of(": the box begins %lld bytes into a row of the tensor, no multiple of 16", (long long)begin));
  if (!is_store(call.op)) return;
  for (int d = 0; d < map.rank; ++d)
    if (call.at[d] < 0)
      refuse(me, call, ReportKind::async, text_of(" of a box that begins at coordinate %d of dimension %d, below 0", call.at[d], d));
}

void check_shared(Fiber& me, const BulkCall& call, u32 address, u32 bytes) {
  const u32 offset = address & 0xffffff, rank = address >> 24;
  const u32 alignment = call.op == BulkOp::store_async ? min_of(bytes, 16u) : is_tensor(call.op) ? 128u : 16u;
  if (offset % alignment) refuse(me, call, ReportKind::misaligned, text_of(" at smem+0x%x, no multiple of %u", offset, alignment));
  if (rank >= me.block->cluster->blocks.size() || offset + u64(bytes) > me.thread->smem_bytes)
    refuse(me, call, ReportKind::smem_oob,
           text_of(" of %u bytes at smem+0x%x of block rank %u; the block has %u bytes", bytes, offset, rank, me.thread->smem_bytes));
}

void check_contiguous(Fiber& me, const BulkCall& call) {
  if (call.op == BulkOp::store_async) return;
  if (call.bytes == 0 || call.bytes % 16) refuse(me, call, ReportKind::misaligned, text_of(" of %u bytes, no multiple of 16", call.bytes));
  if (call.op != BulkOp::copy_cluster && reinterpret_cast<u64>(call.global) % 16)
    refuse(me, call, ReportKind::misaligned, text_of(" with global memory at %p, no multiple of 16", call.global));
}

Mbarrier& mbarrier_of(Fiber& me, const BulkCall& call, Block& block) {
  const auto found = block.mbarriers.find(call.mbarrier & 0xffffff);
  if (found == block.mbarriers.end())
    refuse(me, call, ReportKind::mbarrier,
           text_of(": no mbarrier was initialised at smem+0x%x of block rank %u", call.mbarrier & 0xffffff, block.rank));
  return found->second;
}

// ---- moving bytes ---------------------------------------------------------------------------------------------------

Swizzle swizzle_of(const Bulk& bulk) { return is_tensor(bulk.call.op) ? Swizzle(bulk.map.swizzle) : Swizzle::none; }

/// Between the box as it is counted and shared memory, where swizzles move 16 bytes at a time.
template <class Move>
void for_each_chunk(const Bulk& bulk, const Move& move) {
  const Swizzle swizzle = swizzle_of(bulk);
  if (swizzle == Swizzle::none) return move(0u, bulk.offset(), bulk.bytes);
  for (u32 i = 0; i < bulk.bytes; i += 16) move(i, swizzled(swizzle, bulk.offset() + i), min_of(16u, bulk.bytes - i));
}

template <class Word>
void add_words(u8* to, const u8* from, u32 bytes, u32 (*sum)(u32, u32)) {
  for (u32 i = 0; i < bytes; i += sizeof(Word)) {
    Word* address = reinterpret_cast<Word*>(to + i);
    Word operand, stored = __atomic_load_n(address, __ATOMIC_RELAXED);
    std::memcpy(&operand, from + i, sizeof(Word));
    while (!__atomic_compare_exchange_n(address, &stored, Word(sum(stored, operand)), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
  }
}

void put(const Bulk& bulk, u8* to, const u8* from, u32 bytes) {
  if (!reduces(bulk.call.op)) {
    std::memcpy(to, from, bytes);
    return;
  }
  const Sums& sums = *bulk.call.sums;
  switch (is_tensor(bulk.call.op) ? bulk.map.dtype : bulk.call.type) {
    case DType::f32: return add_words<u32>(to, from, bytes, sums.f32);
    case DType::bf16: return add_words<u16>(to, from, bytes, sums.bf16);
    default: return add_words<u16>(to, from, bytes, sums.f16);
  }
}

void load(Bulk& bulk) {
  u8* smem = bulk.block->smem;
  const BulkCall& call = bulk.call;
  std::vector<u8> box(bulk.bytes, 0);
  if (is_tensor(call.op)) {
    for_each_run(bulk.map, call.at, BoxUse::load, [&](const u8* from, u32 at, u32 bytes) { std::memcpy(&box[at], from, bytes); });
  } else {
    const void* from = call.op == BulkOp::store_async    ? static_cast<const void*>(call.words)
                       : call.op == BulkOp::copy_cluster ? bulk.source->smem + (call.source & 0xffffff)
                                                         : call.global;
    std::memcpy(box.data(), from, bulk.bytes);
  }
  for_each_chunk(bulk, [&](u32 at, u32 offset, u32 bytes) { std::memcpy(smem + offset, &box[at], bytes); });
}

void read_source(Bulk& bulk) {
  bulk.data.resize(bulk.bytes);
  for_each_chunk(bulk, [&](u32 at, u32 offset, u32 bytes) { std::memcpy(&bulk.data[at], bulk.block->smem + offset, bytes); });
}

void write_results(Bulk& bulk) {
  if (is_tensor(bulk.call.op)) {
    for_each_run(bulk.map, bulk.call.at, BoxUse::store, [&](u8* to, u32 at, u32 bytes) { put(bulk, to, &bulk.data[at], bytes); });
  } else {
    put(bulk, static_cast<u8*>(bulk.call.global), bulk.data.data(), bulk.bytes);
  }
}

// ---- issue ----------------------------------------------------------------------------------------------------------

/// Without a shadow: whether the thread may touch the copy's end in global memory. Its ends in shared memory are inside.
void judge_global(Fiber& me, const Bulk& bulk, bool write) {
  const BulkCall& call = bulk.call;
  Worker& worker = *me.worker;
  const char* what = name(call.op);
  if (call.op == BulkOp::store_async || call.op == BulkOp::copy_cluster) return;
  if (!bulk.map.magic) return worker.access(me, call.global, bulk.bytes, write, what);
  worker.access(me, call.global, sizeof(TensorMap), false, what);
  for_each_run(bulk.map, call.at, write ? BoxUse::store : BoxUse::load,
               [&](const u8* at, u32, u32 bytes) { worker.access(me, at, bytes, write, what); });
}

void issue_load(Fiber& me, Bulk bulk, u32 rank) {
  Worker& worker = *me.worker;
  bulk.block = &me.block->cluster->blocks[rank];
  if (bulk.call.op == BulkOp::copy_cluster) bulk.source = me.block;
  if (rank != me.block->rank && bulk.block->live == 0)
    refuse(me, bulk.call, ReportKind::cluster, text_of(" to the shared memory of block rank %u, which has exited", rank));
  Mbarrier& barrier = mbarrier_of(me, bulk.call, *bulk.block);
  if (worker.shadow()) {
    worker.shadow()->load_issued(me, bulk, barrier, name(bulk.call.op));
  } else if (worker.bounds()) {
    judge_global(me, bulk, false);
  }
  worker.issue(std::make_shared<Bulk>(std::move(bulk)));
}

void issue_store(Fiber& me, Bulk bulk) {
  Worker& worker = *me.worker;
  if (bulk.call.shared >> 24 != me.block->rank)
    refuse(me, bulk.call, ReportKind::smem_oob, text_of(" from the shared memory of block rank %u", bulk.call.shared >> 24));
  bulk.block = me.block;
  bulk.group = me.store_groups + 1;
  const DType type = is_tensor(bulk.call.op) ? bulk.map.dtype : bulk.call.type;
  if (reduces(bulk.call.op) && type != DType::f32 && type != DType::bf16 && type != DType::f16)
    refuse(me, bulk.call, ReportKind::async, ": elements are f32, bf16 or f16");
  if (worker.shadow()) {
    worker.shadow()->store_issued(me, bulk, name(bulk.call.op));
  } else if (worker.bounds()) {
    judge_global(me, bulk, true);
  }
  auto shared = std::make_shared<Bulk>(std::move(bulk));
  me.stores.push_back(shared);
  worker.issue(std::move(shared));
}

}  // namespace

bool Bulk::loads() const { return !is_store(call.op); }

void advance(Worker& worker, Bulk& bulk) {
  if (bulk.done) return;
  worker.progressed();
  if (bulk.loads()) {
    bulk.done = true;
    load(bulk);
    const auto found = bulk.block->mbarriers.find(bulk.call.mbarrier & 0xffffff);
    if (found == bulk.block->mbarriers.end()) {
      worker.report(ReportKind::mbarrier, bulk.block->fibers[0],
                    text_of("the mbarrier at smem+0x%x was invalidated while a copy was in flight to it", bulk.call.mbarrier & 0xffffff));
      return;
    }
    if (worker.shadow()) worker.shadow()->load_landed(bulk, found->second);
    complete_bytes(worker, found->second, bulk.bytes);
  } else if (!bulk.read) {
    bulk.read = true;
    read_source(bulk);
  } else {
    bulk.done = true;
    write_results(bulk);
    bulk.data = {};
    ++worker.launch().progress;
  }
}

void Worker::issue(std::shared_ptr<Bulk> bulk) {
  if (options().async == AsyncPolicy::eager) {
    while (!bulk->done) advance(*this, *bulk);
  } else {
    bulks_.push_back(std::move(bulk));
  }
}

bool Worker::advance_async() {
  std::erase_if(bulks_, [](const std::shared_ptr<Bulk>& bulk) { return bulk->done; });
  const size_t pending = bulks_.size() + arrivals_.size();
  if (pending == 0) return false;
  const size_t at = options().async == AsyncPolicy::random ? random() % pending : 0;
  if (at < bulks_.size()) {
    const std::shared_ptr<Bulk> bulk = bulks_[at];
    advance(*this, *bulk);
  } else {
    take_arrival(at - bulks_.size());
  }
  return true;
}

void finish_bulks(Worker& worker, Block& block) {
  if (worker.shadow()) worker.shadow()->block_exits(block);
  for (const std::shared_ptr<Bulk>& bulk : worker.bulks()) {
    if (bulk->done || (bulk->block != &block && bulk->source != &block)) continue;
    if (bulk->loads() || !bulk->read) {
      if (!worker.shadow())
        worker.launch().add({ReportKind::async, bulk->issuer_block, i64(bulk->issuer_thread), 0,
                             text_of("block (%u,%u,%u) exits before this %s is known to be complete", block.index.x, block.index.y,
                                     block.index.z, name(bulk->call.op)),
                             bulk->pc});
      advance(worker, *bulk);
    }
  }
  for (auto& [offset, barrier] : block.mbarriers) {
    u64 word;
    std::memcpy(&word, block.smem + offset, 8);
    if (word != barrier.word())
      worker.report(ReportKind::mbarrier, block.fibers[0], text_of("the mbarrier at smem+0x%x was overwritten", offset));
  }
}

void run_bulk(const BulkCall& call) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Bulk bulk;
  bulk.call = call;
  bulk.issuer_block = me.block->index;
  bulk.issuer_thread = me.index;
  bulk.pc = me.pc;
  if (is_tensor(call.op)) {
    bulk.map = map_of(me, call);
    if (call.op != BulkOp::tensormap_prefetch) check_coordinates(me, call, bulk.map);
    bulk.bytes = box_bytes(bulk.map);
  } else {
    check_contiguous(me, call);
    bulk.bytes = call.bytes;
  }
  if (is_prefetch(call.op)) return;
  check_shared(me, call, call.shared, bulk.bytes);
  if (call.op == BulkOp::copy_cluster) check_shared(me, call, call.source, bulk.bytes);
  if (is_store(call.op)) return issue_store(me, std::move(bulk));
  if (call.mbarrier % 8) refuse(me, call, ReportKind::misaligned, text_of(" with an mbarrier at smem+0x%x", call.mbarrier));
  if (!is_multicast(call.op)) {
    if (call.mbarrier >> 24 != call.shared >> 24)
      refuse(me, call, ReportKind::mbarrier, ": the mbarrier lies in another block than the destination");
    return issue_load(me, std::move(bulk), call.shared >> 24);
  }
  const u32 blocks = u32(me.block->cluster->blocks.size());
  if (call.blocks == 0 || call.blocks >> blocks)
    refuse(me, call, ReportKind::async, text_of(" to blocks %x of a cluster of %u", call.blocks, blocks));
  for (u32 rank = 0; rank < blocks; ++rank)
    if (call.blocks >> rank & 1) issue_load(me, bulk, rank);
}

void run_bulk_commit() { ++Worker::me().store_groups; }

void run_bulk_wait(u32 groups_left, bool read) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  if (me.store_groups <= groups_left) return;
  const u32 last = me.store_groups - groups_left;
  for (const std::shared_ptr<Bulk>& store : me.stores) {
    if (store->group > last) break;
    while (!(read ? store->read : store->done)) advance(*me.worker, *store);
  }
  std::erase_if(me.stores, [&](const std::shared_ptr<Bulk>& store) { return store->done && store->group <= last; });
  me.stores_read = max_of(me.stores_read, last);
  if (me.worker->shadow()) me.worker->shadow()->stores_waited(me, last, read);
}

void run_tensormap_replace(u32 address, TensorMapField field, u32 dim, u64 value) {
  Fiber& me = Worker::me();
  me.pc = __builtin_return_address(0);
  Worker& worker = *me.worker;
  const u32 offset = address & 0xffffff;
  const char* what = "tensormap.replace";
  if (address >> 24 != me.block->rank || offset + sizeof(TensorMap) > me.thread->smem_bytes)
    worker.fatal(ReportKind::smem_oob, me, text_of("%s at smem+0x%x", what, offset), offset);
  if (offset % 128) worker.fatal(ReportKind::misaligned, me, text_of("%s at smem+0x%x, no multiple of 128", what, offset));
  u8* place = me.block->smem + offset;
  worker.access(me, place, sizeof(TensorMap), false, what);
  worker.access(me, place, sizeof(TensorMap), true, what);
  EncodedTensorMap map;
  std::memcpy(&map, place, sizeof(map));
  const u32 dims = u32(map.rank) - (field == TensorMapField::stride ? 1 : 0);
  if (map.magic != EncodedTensorMap::kMagic || (field != TensorMapField::address && dim >= dims))
    worker.fatal(ReportKind::async, me,
                 text_of("%s of dimension %u at smem+0x%x, where no tensor map of that many lies", what, dim, offset));
  switch (field) {
    case TensorMapField::address: map.base = value; break;
    case TensorMapField::extent: map.shape[dim] = i64(value); break;
    case TensorMapField::stride: map.stride_bytes[dim] = i64(value); break;
  }
  std::memcpy(place, &map, sizeof(map));
}

}  // namespace quern::emu
