// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <functional>
#include <string>

#include "quern/device/device.h"

namespace quern {

/// What a GPU does at this moment, as printed beside a benchmark. 0 where NVML does not tell.
struct GpuState {
  u32 sm_mhz = 0, sm_max_mhz = 0;
  u32 memory_mhz = 0, memory_max_mhz = 0;
  double power_w = 0, power_limit_w = 0;
  u32 temperature_c = 0;
  u64 throttle_bits = 0;
  std::string throttle;  ///< "power cap, thermal (hardware)"; empty: none but idle
};

/// True when NVML loads; else the reason in *why.
bool nvml_available(std::string* why = nullptr);

/// The driver's version as nvidia-smi prints it, "580.95.05"; empty without NVML.
std::string nvml_driver_version();

/// The state of a CUDA device, matched by its PCI address. Throws Error{device}.
GpuState gpu_state(Device& device);

/// The same while it works: an idle GPU lowers its clocks before NVML has answered. Queues 5 ms of calls that take `us` each, and waits for
/// them.
GpuState gpu_state_at_work(Device& device, double us, const std::function<void(int run)>& call);

/// The names of NVML's throttle (event) reasons that are set, idle and the user's own clock settings included.
std::string throttle_text(u64 bits);

/// "1980 of 1980 MHz, memory 3201 of 3201 MHz, 612 of 700 W, 54 C, power cap".
std::string text(const GpuState& state);

}  // namespace quern
