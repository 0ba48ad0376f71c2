// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/device/device.h"

#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>

#include "quern/base/env.h"
#include "quern/base/error.h"
#include "quern/device/cuda_device.h"
#include "quern/device/emulated.h"

namespace quern {
namespace {

constexpr Arch kKnown[] = {{80, 0}, {86, 0}, {89, 0}, {90, 1}, {100, 1}, {103, 1}, {120, 1}, {121, 1}};
constexpr int kMaxGpus = 64;

struct KnownGpu {
  i32 number;
  const char* name;
  i32 sms, smem_block_kb, smem_sm_kb, threads_sm, l2_mb, memory_gb;
};
constexpr KnownGpu kGpus[] = {
    {80, "NVIDIA A100-SXM4-80GB", 108, 163, 164, 2048, 40, 80},
    {86, "NVIDIA A10", 72, 99, 100, 1536, 6, 24},
    {89, "NVIDIA L4", 58, 99, 100, 1536, 48, 24},
    {90, "NVIDIA H200", 132, 227, 228, 2048, 60, 141},
    {100, "NVIDIA B200", 148, 227, 228, 2048, 126, 180},
    {103, "NVIDIA B300", 148, 227, 228, 2048, 126, 268},
    {120, "NVIDIA GeForce RTX 5090", 170, 99, 100, 1536, 96, 32},
    {121, "NVIDIA GB10", 48, 99, 100, 1536, 24, 119},
};

struct ArchRates {
  i32 number;
  Rates rates;
};
/// Data sheets; of the H200 what quern's kernels measured of memory, L2 and a launch: gemm.dense's swap_ab_sm90 and portable; of TMA what
/// fits the times of its products.
constexpr ArchRates kRates[] = {
    {80, {.memory = 2039, .flops_16 = 312e3}},
    {86, {.memory = 600, .flops_16 = 125e3}},
    {89, {.memory = 300, .flops_16 = 121e3, .flops_8 = 242e3}},
    {90, {.memory = 4276.8, .l2 = 5544, .flops_16 = 989e3, .flops_8 = 1979e3, .launch = 1500, .tma_l2 = 17400, .tma_sm = 172, .sms = 132}},
    {100, {.memory = 8000, .flops_16 = 2250e3, .flops_8 = 4500e3}},
    {103, {.memory = 8000, .flops_16 = 2250e3, .flops_8 = 4500e3}},
    {120, {.memory = 1792, .flops_16 = 209.5e3, .flops_8 = 419e3}},
    {121, {.memory = 273}},
};

std::string known_names() {
  std::string text;
  for (const Arch& arch : kKnown) text += (text.empty() ? "" : ", ") + arch.name();
  return text;
}

/// Each device is made once and then lives as long as the process: views, streams and kernels refer to it.
struct Devices {
  std::mutex mutex;
  std::array<std::atomic<Device*>, kMaxGpus> cuda = {};
  std::atomic<Device*> process_emulated = nullptr;
  std::map<i32, Device*> emulated;  // by 2 * arch number + specific

  Device& make_emulated(Arch arch) {
    Device*& slot = emulated[2 * arch.number + arch.specific];
    if (!slot) { slot = make_emulated_device(emulated_device_info(arch), emulated_options_from_env()).release(); }
    return *slot;
  }
};

Devices& devices() {
  static Devices* const all = new Devices;
  return *all;
}

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

Device& emulated_of(Arch arch) {
  Devices& all = devices();
  const std::lock_guard lock(all.mutex);
  return all.make_emulated(arch);
}

/// make(), which reads QN_DEVICE: errors of the name of a device or an arch name the variable. Others are told as they are: they may be of
/// another variable.
template <class Make> auto of_environment(const Make& make) {
  try {
    return make();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::value || (e.argument() != "device" && e.argument() != "arch")) throw;
    throw Error(ErrorKind::value, "", "QN_DEVICE", "is '" + env(Env::device) + "'", e.expected());
  }
}

// The device of host tensors: H200 by default, another arch when QN_DEVICE names one.
Device& process_emulated() {
  Devices& all = devices();
  if (Device* made = all.process_emulated.load(std::memory_order_acquire)) return *made;
  const std::string wanted = env(Env::device);
  const Arch arch = starts_with(wanted, "emu:") ? of_environment([&] { return Arch::parse(wanted.substr(4)); }) : Arch{};
  Device& device = emulated_of(arch);
  all.process_emulated.store(&device, std::memory_order_release);
  return device;
}

Device& cuda_of(int index) {
  Devices& all = devices();
  if (index >= 0 && index < kMaxGpus) {
    if (Device* made = all.cuda[size_t(index)].load(std::memory_order_acquire)) return *made;
  }
  const std::lock_guard lock(all.mutex);
  if (index < 0 || index >= kMaxGpus) throw Error(ErrorKind::device, "cuda:" + std::to_string(index) + " does not exist");
  std::atomic<Device*>& slot = all.cuda[size_t(index)];
  if (!slot.load(std::memory_order_relaxed)) slot.store(new CudaDevice(index), std::memory_order_release);
  return *slot.load(std::memory_order_relaxed);
}

int index_of(const std::string& text, const std::string& digits) {
  if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos)
    throw Error(ErrorKind::value, "", "device", "is '" + text + "'", "cuda, cuda:N, emu or emu:ARCH");
  return std::stoi(digits);
}

}  // namespace

Arch Arch::parse(const std::string& text) {
  std::string digits = starts_with(text, "sm_") ? text.substr(3) : text;
  const bool specific = !digits.empty() && digits.back() == 'a';
  if (specific) digits.pop_back();
  for (const Arch& arch : kKnown) {
    // "sm_90" names sm_90a as well: kernels are compiled for an arch with its specific instructions, where it has some.
    if (digits == std::to_string(arch.number) && (!specific || arch.specific)) return arch;
  }
  throw Error(ErrorKind::value, "", "arch", "is '" + text + "'", "one of " + known_names());
}

const Rates& rates_of(i32 arch_number) {
  const ArchRates* found = kRates;
  for (const ArchRates& row : kRates)
    if (row.number <= arch_number) found = &row;
  return found->rates;
}

std::span<const Arch> known_archs() { return kKnown; }

DeviceInfo device_info_of(Arch arch) {
  for (const KnownGpu& gpu : kGpus) {
    if (gpu.number != arch.number) continue;
    DeviceInfo info;
    info.arch = arch;
    info.sms = gpu.sms;
    info.smem_block = gpu.smem_block_kb << 10;
    info.smem_sm = gpu.smem_sm_kb << 10;
    info.threads_sm = gpu.threads_sm;
    info.l2_bytes = i64(gpu.l2_mb) << 20;
    info.memory_bytes = i64(gpu.memory_gb) << 30;
    info.rates = rates_of(arch.number);
    std::strncpy(info.name, gpu.name, sizeof info.name - 1);  // fills the rest with zeros
    return info;
  }
  throw Error(ErrorKind::value, "", "arch", "is '" + arch.name() + "'", "one of " + known_names());
}

std::string to_string(const ClusterShape& c) {
  if (c.y == 1 && c.z == 1) return std::to_string(c.x);
  return std::to_string(c.x) + "x" + std::to_string(c.y) + "x" + std::to_string(c.z);
}

void Device::fill_rows(void* destination, u8 byte, size_t bytes, i64 rows, i64 pitch, Stream stream) {
  for (i64 row = 0; row < rows; ++row) fill(static_cast<char*>(destination) + row * pitch, byte, bytes, stream);
}

i64 Device::free_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    i64 kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes << 10;
  }
  throw Error(ErrorKind::device, "/proc/meminfo does not say MemAvailable");
}

Device& device_of(DeviceId id) {
  if (id.type == DeviceType::cuda) return cuda_of(id.index);
  if (id.type == DeviceType::cpu) return process_emulated();
  throw Error(ErrorKind::value, "", "device", "has the type " + std::to_string(int(id.type)), "1 (host) or 2 (cuda)");
}

Device& device_from_name(const std::string& text) {
  if (text.empty()) {
    const std::string chosen = env(Env::device);
    if (!chosen.empty()) return *of_environment([&] { return &device_from_name(chosen); });
    return cuda_device_count() > 0 ? cuda_of(0) : process_emulated();
  }
  if (text == "emu") return process_emulated();
  if (starts_with(text, "emu:")) return emulated_of(Arch::parse(text.substr(4)));
  if (text == "cuda") return cuda_of(0);
  if (starts_with(text, "cuda:")) return cuda_of(index_of(text, text.substr(5)));
  throw Error(ErrorKind::value, "", "device", "is '" + text + "'", "cuda, cuda:N, emu or emu:ARCH");
}

bool emulation_chosen() { return starts_with(env(Env::device), "emu"); }

int cuda_device_count(std::string* why) { return cuda::device_count(why); }

}  // namespace quern
