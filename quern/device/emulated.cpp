// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The emulated device: host memory, streams that run at once, kernels run by quern/emu.
//
// Checked mode and asan trust a module only after its canary: every shared object with instrumentation carries its own hooks
// for it (kit/emu/hooks.cuh, hooks_asan.cuh) and exports a function that makes a few accesses or faults. emu::Module
// calls it when the object is loaded and refuses the object if any was missed.
#include "quern/device/emulated.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>

#include "quern/base/env.h"
#include "quern/base/error.h"
#include "quern/base/guarded_memory.h"
#include "quern/device/tensor_map.h"
#include "quern/emu/footprint.h"
#include "quern/emu/launch.h"
#include "quern/emu/memory_map.h"
#include "quern/emu/module.h"
#include "quern/emu/tensor_map.h"

namespace quern {
namespace {

using Clock = std::chrono::steady_clock;

struct EmulatedEvent {
  Clock::time_point time = Clock::now();
};
struct Graph {
  std::vector<std::function<void()>> nodes;
};
/// The newest launch of a stream, as far as a dependent one of the same host thread may overlap it. Memory that was given back
/// since may belong to someone else.
struct Tail {
  std::thread::id thread;
  u64 releases = 0;
  std::shared_ptr<const emu::Footprint> footprint;
  /// Of launches that it may itself have overlapped: all, and those that may go on when it has ended.
  std::vector<std::shared_ptr<const emu::Footprint>> overlapped, left;
  bool pretended = false;  ///< see pretend_launch_before
  std::vector<TensorView> read_only;
};
/// Of a launch that touches everything: where it only reads, and else writes.
std::shared_ptr<const emu::Footprint> footprint_of_all(const emu::MemoryMap& memory, const std::vector<TensorView>& read_only) {
  auto all = std::make_shared<emu::Footprint>(memory);
  for (const emu::MemoryMap::Region& region : memory.regions()) {
    std::vector<std::pair<u64, u64>> reads;
    for (const TensorView& v : read_only)
      if (const u64 low = reinterpret_cast<u64>(v.data); low >= region.low && low < region.high)
        reads.emplace_back(low, min_of(region.high, low + u64(v.extent()) * u64(size_of(v.dtype))));
    std::sort(reads.begin(), reads.end());
    u64 at = region.low;
    for (const auto& [low, high] : reads) {
      if (low > at) all->add(at, low - at, true);
      all->add(low, high - low, false);
      at = max_of(at, high);
    }
    if (at < region.high) all->add(at, region.high - at, true);
  }
  return all;
}
/// A decoder layer has 11 launches; more than these in a chain are taken to have ended.
constexpr size_t kMostOverlapped = 16;

struct EmulatedStream {
  /// Shared with the graphs that were captured from the stream. Checked mode.
  std::shared_ptr<Tail> tail = std::make_shared<Tail>();
  std::unique_ptr<Graph> capture;  ///< set while capturing
};

class EmulatedDevice final : public Device {
 public:
  EmulatedDevice(const DeviceInfo& info, const EmulatedOptions& options);

  void* allocate(size_t bytes, const char* label) override;
  void release(void* pointer) override;
  void* allocate_async(size_t bytes, Stream stream) override;
  void release_async(void* pointer, Stream) override { release(pointer); }
  void copy(void* destination, const void* source, size_t bytes, Stream stream) override;
  void fill(void* destination, u8 byte, size_t bytes, Stream stream) override;

  Stream create_stream() override { return {new EmulatedStream}; }
  void destroy(Stream stream) override { delete static_cast<EmulatedStream*>(stream.handle); }
  void synchronize(Stream stream) override { forget(*state_of(stream).tail); }
  bool capturing(Stream stream) override { return bool(state_of(stream).capture); }
  Event create_event() override { return {new EmulatedEvent}; }
  void destroy(Event event) override { delete static_cast<EmulatedEvent*>(event.handle); }
  void record(Event event, Stream) override { static_cast<EmulatedEvent*>(event.handle)->time = Clock::now(); }
  void wait(Stream, Event) override {}
  double elapsed_us(Event from, Event to) override;

  void begin_capture(Stream stream) override;
  void* end_capture(Stream stream) override;
  void replay(void* graph, Stream stream) override;
  void destroy_graph(void* graph) override { delete static_cast<Graph*>(graph); }

  Function load(ImageKind kind, std::span<const char> image, const std::string& image_path, const std::string& entry, int smem) override;
  void unload(Function function) override { delete static_cast<emu::Module*>(function.handle); }
  void launch(Function function, const LaunchConfig& config, const void* params, size_t params_bytes, Stream stream) override;
  TensorMap make_tensor_map(const TensorMapSpec& spec) override;

  void begin_call(std::span<const MemoryRange> ranges, const char* op) override;
  void end_call() override;
  void judge(std::function<void()> judgement, Stream stream) override { submit(stream, std::move(judgement)); }

  const EmulatedOptions& options() const { return options_; }

  void pretend_launch(Stream stream, std::vector<TensorView> read_only) {
    std::lock_guard<std::mutex> lock(mutex_);
    *state_of(stream).tail = {
        .thread = std::this_thread::get_id(), .releases = releases_, .pretended = true, .read_only = std::move(read_only)};
  }
  /// Whether launches before the newest may still run when that one has ended.
  bool left_behind(Stream stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    return !state_of(stream).tail->left.empty();
  }

 private:
  EmulatedStream& state_of(Stream stream) { return stream.handle ? *static_cast<EmulatedStream*>(stream.handle) : default_stream_; }
  void submit(Stream stream, std::function<void()> work);
  void check(const emu::Module& module, const LaunchConfig& config) const;
  void run(const emu::Module& module, const LaunchConfig& config, const void* params, emu::MemoryMap* memory, Tail& tail);
  void forget(Tail& tail) {
    std::lock_guard<std::mutex> lock(mutex_);
    tail = {};
  }
  std::shared_ptr<emu::MemoryMap> call_memory();

  const EmulatedOptions options_;
  EmulatedStream default_stream_;
  std::mutex mutex_;
  std::atomic<u64> releases_{0};
  std::unordered_map<void*, GuardedMemory> memory_;  ///< what was allocated
  /// Ranges of the call that each host thread is in.
  std::unordered_map<std::thread::id, std::shared_ptr<emu::MemoryMap>> calls_;
};

std::atomic<u32> device_count{0};

/// Throws Error{value} for what nothing can be emulated by.
void check_emulated(const DeviceInfo& info, const EmulatedOptions& options) {
  const auto refuse = [](const char* what, i64 got, const char* expected) {
    throw Error(ErrorKind::value, "", what, "is " + std::to_string(got), expected);
  };
  if (info.sms < 1) refuse("sms", info.sms, "1 or more");
  if (info.smem_block < 0) refuse("smem_block", info.smem_block, "0 or more");
  if (i32(options.async) < 0 || options.async > AsyncPolicy::random) refuse("async", i32(options.async), "an AsyncPolicy, 0 to 2");
  if (i32(options.schedule) < 0 || options.schedule > SchedulePolicy::shuffled)
    refuse("schedule", i32(options.schedule), "a SchedulePolicy, 0 to 2");
  if (options.os_threads < 0) refuse("os_threads", options.os_threads, "0 (one a CPU) or more");
}

EmulatedDevice::EmulatedDevice(const DeviceInfo& info, const EmulatedOptions& options)
    : options_([&] {
        check_emulated(info, options);
        EmulatedOptions resolved = options;
        if (resolved.os_threads <= 0) resolved.os_threads = int(std::max(1u, std::thread::hardware_concurrency()));
        return resolved;
      }()) {
  if (options.checked && options.asan)
    throw Error(ErrorKind::value, "", "asan", "is asked for together with checked",
                "one of them: each is an instrumentation of its own, so run both, one after the other");
  info_ = info;
  info_.emulated = 1;
  id_ = {DeviceType::cpu, 0};
  ordinal_ = 1000 + device_count++;
  wants_memory_ranges_ = options.checked || options.asan;
  number_ = options.number;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

void* EmulatedDevice::allocate(size_t bytes, const char* label) {
  const size_t room = bytes > SIZE_MAX / 2 ? SIZE_MAX : round_up<size_t>(std::max<size_t>(bytes, 1), 256);
  GuardedMemory memory(room);
  if (!memory) throw Error(ErrorKind::device, "emulated device: no " + std::to_string(bytes) + " bytes for " + (label ? label : "?"));
  char* const at = memory.get() + (round_up<size_t>(room, GuardedMemory::kPage) - room);  // it ends where the guard begins
  std::memset(at, 0xff, room);  // NaN in every format: a value that was never written is seen
  std::lock_guard<std::mutex> lock(mutex_);
  memory_[at] = std::move(memory);
  return at;
}

void EmulatedDevice::release(void* pointer) {
  ++releases_;
  std::lock_guard<std::mutex> lock(mutex_);
  memory_.erase(pointer);
}

void* EmulatedDevice::allocate_async(size_t bytes, Stream stream) {
  if (capturing(stream))
    throw Error(ErrorKind::frozen, "a workspace of " + std::to_string(bytes) + " bytes would be allocated while the stream is capturing");
  return allocate(bytes, "scratch");
}

void EmulatedDevice::submit(Stream stream, std::function<void()> work) {
  EmulatedStream& state = state_of(stream);
  if (state.capture) {
    state.capture->nodes.push_back(std::move(work));
  } else {
    work();
  }
}

void EmulatedDevice::copy(void* destination, const void* source, size_t bytes, Stream stream) {
  // A launch behind it overlaps nothing before it.
  submit(stream, [=, this, memory = call_memory(), tail = state_of(stream).tail] {
    forget(*tail);
    std::memmove(destination, source, bytes);
    if (memory) memory->mark_initialised(destination, bytes);
  });
}

void EmulatedDevice::fill(void* destination, u8 byte, size_t bytes, Stream stream) {
  submit(stream, [=, this, memory = call_memory(), tail = state_of(stream).tail] {
    forget(*tail);
    std::memset(destination, byte, bytes);
    if (memory) memory->mark_initialised(destination, bytes);
  });
}

// ---- events and capture ---------------------------------------------------------------------------------------------

double EmulatedDevice::elapsed_us(Event from, Event to) {
  const auto time = [](Event event) { return static_cast<EmulatedEvent*>(event.handle)->time; };
  return std::chrono::duration<double, std::micro>(time(to) - time(from)).count();
}

void EmulatedDevice::begin_capture(Stream stream) {
  if (!stream.handle)  // CUDA's cannot be captured either
    throw Error(ErrorKind::device, "emulated device: the default stream cannot be captured: make one with create_stream()");
  EmulatedStream& state = state_of(stream);
  if (state.capture) throw Error(ErrorKind::device, "emulated device: the stream captures already");
  state.capture = std::make_unique<Graph>();
}

void* EmulatedDevice::end_capture(Stream stream) {
  EmulatedStream& state = state_of(stream);
  if (!state.capture) throw Error(ErrorKind::device, "emulated device: the stream does not capture");
  return state.capture.release();
}

void EmulatedDevice::replay(void* graph, Stream stream) {
  for (const std::function<void()>& node : static_cast<Graph*>(graph)->nodes) submit(stream, node);
}

// ---- kernels --------------------------------------------------------------------------------------------------------

Function EmulatedDevice::load(ImageKind kind, std::span<const char>, const std::string& image_path, const std::string&, int smem) {
  if (kind != ImageKind::shared_object) throw Error(ErrorKind::device, "emulated device: runs shared objects, not GPU images");
  if (smem > info_.smem_block)
    throw Error(ErrorKind::device, "emulated device: kernel needs " + std::to_string(smem) + " B of shared memory, " + info_.arch.name() +
                                       " has " + std::to_string(info_.smem_block));
  return {new emu::Module(image_path, options_)};
}

void EmulatedDevice::check(const emu::Module& module, const LaunchConfig& config) const {
  const auto refuse = [](const std::string& what) { throw Error(ErrorKind::device, "emulated device: launch of " + what); };
  if (config.threads != u32(module.threads))
    refuse(std::to_string(config.threads) + " threads, the kernel was compiled for " + std::to_string(module.threads));
  if (config.threads == 0 || config.threads > 1024) refuse(std::to_string(config.threads) + " threads a block");
  if (config.smem > u32(info_.smem_block))
    refuse(std::to_string(config.smem) + " B of shared memory, a block has " + std::to_string(info_.smem_block));
  if (!config.grid[0] || !config.grid[1] || !config.grid[2]) refuse("an empty grid");
  if (config.grid[0] > 0x7fffffffu || config.grid[1] > 65535 || config.grid[2] > 65535) refuse("a grid that is too large");
  const ClusterShape& c = config.cluster;
  if (const u64 all = u64(c.x) * c.y * c.z; all == 0 || all > 16 || config.grid[0] % c.x || config.grid[1] % c.y || config.grid[2] % c.z)
    refuse("clusters of " + to_string(c) + " blocks in a grid of " +
           to_string(ClusterShape(config.grid[0], config.grid[1], config.grid[2])));
}

void EmulatedDevice::run(const emu::Module& module, const LaunchConfig& config, const void* params, emu::MemoryMap* memory, Tail& tail) {
  emu::LaunchRequest request;
  request.entry = module.entry;
  request.params = params;
  request.grid = {config.grid[0], config.grid[1], config.grid[2]};
  request.cluster = config.cluster;
  request.threads = config.threads;
  request.registers = module.registers;
  request.smem = config.smem;
  // As many blocks as fit into the multiprocessors; each block also costs 1 KiB of shared memory.
  const i32 by_threads = info_.threads_sm / i32(round_up<u32>(config.threads, 32));
  const i32 by_smem = info_.smem_sm / i32(config.smem + 1024);
  request.resident_blocks = u32(info_.sms) * u32(max_of(1, min_of(32, min_of(by_threads, by_smem))));
  request.options = options_;
  request.module = &module;
  request.memory = memory;
  Tail before, next{.thread = std::this_thread::get_id(), .releases = releases_};
  if (memory && options_.checked) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (config.pdl && tail.thread == next.thread && tail.releases == next.releases) before = tail;
    }
    if (before.pretended) before.footprint = footprint_of_all(*memory, before.read_only);
    const auto footprint = std::make_shared<emu::Footprint>(*memory);
    next.footprint = footprint;
    request.footprint = footprint.get();
    if (before.footprint) {
      // Triggers may come before the waits of their own kernels, so a chain of dependent launches may run all at once
      next.overlapped = before.overlapped;
      if (next.overlapped.size() >= kMostOverlapped) next.overlapped.erase(next.overlapped.begin());
      next.overlapped.push_back(before.footprint);
      request.overlapped = next.overlapped;
      request.overlapped_after_wait = before.left;
    }
  }
  emu::LaunchStats stats;
  const std::vector<emu::Report> reports = emu::run_launch(request, &stats);
  // A launch that never waited may end before the ones it overlapped. One that waited ended behind the launch before it alone.
  next.left = stats.waited ? before.left : next.overlapped;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    tail = std::move(next);
  }
  if (!reports.empty()) throw Error(ErrorKind::device, emu::describe(reports));
}

void EmulatedDevice::launch(Function function, const LaunchConfig& config, const void* params, size_t params_bytes, Stream stream) {
  const emu::Module& module = *static_cast<const emu::Module*>(function.handle);
  check(module, config);
  const std::shared_ptr<emu::MemoryMap> memory = call_memory();
  // Kernels take parameters of up to 4 KiB with an alignment of up to 64, and must not see the caller's copy.
  struct alignas(64) Params {
    char bytes[4096];
  };
  if (params_bytes > sizeof(Params)) throw Error(ErrorKind::device, "emulated device: more than 4 KiB of parameters");
  if (capturing(stream)) {
    auto kept = std::make_shared<Params>();
    std::memcpy(kept->bytes, params, params_bytes);
    return submit(stream, [this, &module, config, kept, memory, tail = state_of(stream).tail] {
      run(module, config, kept->bytes, memory.get(), *tail);
    });
  }
  Params local;
  std::memcpy(local.bytes, params, params_bytes);
  run(module, config, local.bytes, memory.get(), *state_of(stream).tail);
}

TensorMap EmulatedDevice::make_tensor_map(const TensorMapSpec& spec) {
  if (spec.rank < 1 || spec.rank > 5) throw Error(ErrorKind::internal, "a tensor map of rank " + std::to_string(spec.rank));
  if (const char* problem = tensor_map_problem(spec))
    throw Error(ErrorKind::device, "emulated device: a tensor map of " + tensor_map_text(spec) + ": " + problem);
  emu::EncodedTensorMap encoded{};
  encoded.magic = emu::EncodedTensorMap::kMagic;
  encoded.base = reinterpret_cast<u64>(spec.base);
  std::memcpy(encoded.shape, spec.shape, sizeof(spec.shape));
  std::memcpy(encoded.stride_bytes, spec.stride_bytes, sizeof(spec.stride_bytes));
  std::memcpy(encoded.box, spec.box, sizeof(spec.box));
  encoded.rank = i16(spec.rank);
  encoded.swizzle = i16(spec.swizzle);
  encoded.dtype = spec.dtype;
  TensorMap map{};
  std::memcpy(&map, &encoded, sizeof(encoded));
  return map;
}

// ---- the memory of a call -------------------------------------------------------------------------------------------

void EmulatedDevice::begin_call(std::span<const MemoryRange> ranges, const char* op) {
  if (!wants_memory_ranges_) return;
  auto memory = std::make_shared<emu::MemoryMap>(ranges, op, options_.checked);
  std::lock_guard<std::mutex> lock(mutex_);
  calls_[std::this_thread::get_id()] = std::move(memory);
}

void EmulatedDevice::end_call() {
  if (!wants_memory_ranges_) return;
  std::lock_guard<std::mutex> lock(mutex_);
  calls_.erase(std::this_thread::get_id());
}

std::shared_ptr<emu::MemoryMap> EmulatedDevice::call_memory() {
  if (!wants_memory_ranges_) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = calls_.find(std::this_thread::get_id());
  return found == calls_.end() ? nullptr : found->second;
}

/// The policy that a variable names.
template <class Policy>
Policy policy_from(Env variable, std::initializer_list<const char*> names, std::initializer_list<Policy> policies, Policy otherwise) {
  const int choice = env_choice(variable, names);
  return choice < 0 ? otherwise : policies.begin()[choice];
}

}  // namespace

EmulatedOptions emulated_options_from_env() {
  EmulatedOptions options;
  options.async =
      policy_from(Env::emu_async, {"eager", "lazy", "random"}, {AsyncPolicy::eager, AsyncPolicy::lazy, AsyncPolicy::random}, options.async);
  options.schedule = policy_from(Env::emu_schedule, {"warp", "fifo", "shuffled"},
                                 {SchedulePolicy::warp_first, SchedulePolicy::fifo, SchedulePolicy::shuffled}, options.schedule);
  options.seed = u64(env_int(Env::emu_seed, i64(options.seed)));
  options.checked = env_flag(Env::emu_checked);
  options.asan = env_flag(Env::emu_asan);
  options.os_threads = int(env_int(Env::emu_threads, options.os_threads));
  return options;
}

DeviceInfo emulated_device_info(Arch arch) {
  DeviceInfo info = device_info_of(arch);
  info.emulated = 1;
  info.sms = i32(env_int(Env::emu_sms, info.sms));
  return info;
}

const EmulatedOptions* emulated_options_of(const Device& device) {
  const auto* emulated = dynamic_cast<const EmulatedDevice*>(&device);
  return emulated ? &emulated->options() : nullptr;
}

void pretend_launch_before(Device& device, Stream stream, std::vector<TensorView> read_only) {
  if (auto* emulated = dynamic_cast<EmulatedDevice*>(&device)) emulated->pretend_launch(stream, std::move(read_only));
}

void judge_launch_behind(Device& device, Stream stream) {
  auto* emulated = dynamic_cast<EmulatedDevice*>(&device);
  if (emulated && emulated->left_behind(stream))
    throw Error(
        ErrorKind::device,
        "RACE a dependent launch behind the call may run with the kernels launched before it: no block of the call's last kernel, or of one that this waits for, executed griddepcontrol.wait");
}

std::unique_ptr<Device> make_emulated_device(const DeviceInfo& info, const EmulatedOptions& options) {
  return std::make_unique<EmulatedDevice>(info, options);
}

}  // namespace quern
