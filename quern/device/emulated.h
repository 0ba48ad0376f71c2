// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "quern/device/device.h"

namespace quern {

namespace emu {
class Graph;
}

/// When an asynchronous copy or product of the emulated device completes.
enum class AsyncPolicy : i32 { eager, lazy, random };
/// In which order ready threads of the emulated device go on.
enum class SchedulePolicy : i32 { warp_first, fifo, shuffled };

struct EmulatedOptions {
  AsyncPolicy async = AsyncPolicy::eager;
  SchedulePolicy schedule = SchedulePolicy::warp_first;
  u64 seed = 1;
  bool checked = false;  ///< report races, uninitialised and out-of-bounds accesses; one OS thread a launch, so that a seed replays
  bool asan = false;     ///< report out-of-bounds accesses, also of local arrays, and undefined behaviour; not together with checked
  int os_threads = 0;    ///< 0: one per CPU; blocks of a launch are spread over them
  Number number = Number::real;  ///< what f32 is in the device's kernels
  emu::Graph* graph = nullptr;   ///< Number::graph: where expressions are kept; not owned
};
/// Defaults from QN_EMU_ASYNC, QN_EMU_SCHEDULE, QN_EMU_SEED, QN_EMU_CHECKED, QN_EMU_ASAN, QN_EMU_THREADS.
QN_API EmulatedOptions emulated_options_from_env();
/// What the emulated device of an arch describes itself as: device_info_of(arch), with QN_EMU_SMS multiprocessors if that is set.
/// Error{value} when that is not 1 to 1024.
QN_API DeviceInfo emulated_device_info(Arch arch);
/// How an emulated device was made; nullptr for other devices.
QN_API const EmulatedOptions* emulated_options_of(const Device& device);

/// A device of its own that runs kernels on the CPU as `info` describes it. Its memory is host memory: any host pointer is valid.
/// A fault found while a kernel runs (deadlock, divergence, in checked mode also races and invalid accesses, with asan also
/// undefined behaviour) is thrown by the launch as Error{device} whose text is the report. Error{value} when both are asked for.
QN_API std::unique_ptr<Device> make_emulated_device(const DeviceInfo& info, const EmulatedOptions& options);

/// For tests of dependent launches (pdl), in checked mode. The stream is left as by a launch that reads and writes all memory of the
/// call that comes next on it, scratch too; `read_only` it reads. What that call's kernels touch before a griddepcontrol.wait is a RACE.
QN_API void pretend_launch_before(Device& device, Stream stream, std::vector<TensorView> read_only);
/// A dependent launch behind the stream's newest is ordered after that one alone, which must itself have waited for those before it: else
/// Error{device}, a RACE.
QN_API void judge_launch_behind(Device& device, Stream stream);

}  // namespace quern
