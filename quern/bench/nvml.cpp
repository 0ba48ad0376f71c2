// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>

#include "quern/base/error.h"
#include "quern/device/cuda_device.h"

namespace quern {
namespace {

// nvml.h: nvmlClockType_t, nvmlTemperatureSensors_t, nvmlClocksEventReasons.
constexpr int kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;
constexpr u64 kIdle = 0x1;
constexpr struct {
  u64 bit;
  const char* name;
} kReasons[] = {
    {kIdle, "idle"},           {0x2, "application clocks"},  {0x4, "power cap"},           {0x8, "hardware slowdown"},
    {0x10, "sync boost"},      {0x20, "thermal (software)"}, {0x40, "thermal (hardware)"}, {0x80, "power brake"},
    {0x100, "display clocks"},
};

struct Nvml {
  using Handle = void*;
  int (*init)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, u32) = nullptr;
  int (*handle_by_pci)(const char*, Handle*) = nullptr;
  int (*clock)(Handle, int, u32*) = nullptr;
  int (*max_clock)(Handle, int, u32*) = nullptr;
  int (*power)(Handle, u32*) = nullptr;
  int (*power_limit)(Handle, u32*) = nullptr;
  int (*temperature)(Handle, int, u32*) = nullptr;
  int (*throttle)(Handle, u64*) = nullptr;
  std::string why;  // empty: usable
};

template <class F>
bool take(void* handle, const char* symbol, F& slot) {
  slot = reinterpret_cast<F>(dlsym(handle, symbol));
  return slot != nullptr;
}

Nvml open_nvml() {
  Nvml n;
  void* l = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!l) {
    const char* reason = dlerror();
    n.why = reason ? reason : "libnvidia-ml.so.1 does not load";
    return n;
  }
  const bool complete = take(l, "nvmlInit_v2", n.init) && take(l, "nvmlErrorString", n.error_string) &&
                        take(l, "nvmlSystemGetDriverVersion", n.driver_version) &&
                        take(l, "nvmlDeviceGetHandleByPciBusId_v2", n.handle_by_pci) && take(l, "nvmlDeviceGetClockInfo", n.clock) &&
                        take(l, "nvmlDeviceGetMaxClockInfo", n.max_clock) && take(l, "nvmlDeviceGetPowerUsage", n.power) &&
                        take(l, "nvmlDeviceGetEnforcedPowerLimit", n.power_limit) && take(l, "nvmlDeviceGetTemperature", n.temperature);
  // Renamed in driver 535; the older name stays.
  if (!take(l, "nvmlDeviceGetCurrentClocksEventReasons", n.throttle)) take(l, "nvmlDeviceGetCurrentClocksThrottleReasons", n.throttle);
  if (!complete || !n.throttle) {
    n.why = "libnvidia-ml.so.1 lacks functions";
  } else if (const int result = n.init(); result != 0) {
    n.why = std::string("nvmlInit failed: ") + n.error_string(result);
  }
  return n;
}

const Nvml& nvml() {
  static const Nvml* const library = new Nvml(open_nvml());
  return *library;
}

}  // namespace

bool nvml_available(std::string* why) {
  if (why) *why = nvml().why;
  return nvml().why.empty();
}

std::string nvml_driver_version() {
  char version[96] = {};
  if (!nvml_available() || nvml().driver_version(version, sizeof version) != 0) return {};
  return version;
}

GpuState gpu_state(Device& device) {
  std::string why;
  if (!nvml_available(&why)) throw Error(ErrorKind::device, "NVML is not available: " + why);
  const Nvml& n = nvml();
  Nvml::Handle handle = nullptr;
  const std::string address = cuda_device(device, "NVML").pci_bus_id();
  if (const int result = n.handle_by_pci(address.c_str(), &handle); result != 0)
    throw Error(ErrorKind::device, "NVML does not know the GPU at " + address + ": " + n.error_string(result));
  // A value that a GPU does not tell (power of a MIG slice, say) stays 0.
  GpuState state;
  u32 power = 0, limit = 0;
  n.clock(handle, kClockSm, &state.sm_mhz);
  n.max_clock(handle, kClockSm, &state.sm_max_mhz);
  n.clock(handle, kClockMemory, &state.memory_mhz);
  n.max_clock(handle, kClockMemory, &state.memory_max_mhz);
  n.power(handle, &power);
  n.power_limit(handle, &limit);
  state.power_w = power / 1000.0;
  state.power_limit_w = limit / 1000.0;
  n.temperature(handle, kTemperatureGpu, &state.temperature_c);
  n.throttle(handle, &state.throttle_bits);
  state.throttle = throttle_text(state.throttle_bits & ~kIdle);
  return state;
}

GpuState gpu_state_at_work(Device& device, double us, const std::function<void(int run)>& call) {
  const int queued = int(std::clamp(5000 / std::max(us, 1.0), 1.0, 500.0));
  for (int i = 0; i < queued; ++i) call(i);
  const GpuState state = gpu_state(device);
  device.synchronize({});
  return state;
}

std::string throttle_text(u64 bits) {
  std::string text;
  for (const auto& reason : kReasons)
    if (bits & reason.bit) text += (text.empty() ? "" : ", ") + std::string(reason.name);
  return text;
}

std::string text(const GpuState& s) {
  char line[160];
  std::snprintf(line, sizeof line, "%u of %u MHz, memory %u of %u MHz, %.0f of %.0f W, %u C", s.sm_mhz, s.sm_max_mhz, s.memory_mhz,
                s.memory_max_mhz, s.power_w, s.power_limit_w, s.temperature_c);
  return line + (s.throttle.empty() ? "" : ", " + s.throttle);
}

}  // namespace quern
