// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

#include "quern/device/device.h"

namespace quern {

/// One kernel as the GPU ran it.
struct KernelRecord {
  std::string name;
  u64 start_ns = 0, end_ns = 0;  ///< on the GPU's clock; differences count
  double us() const { return double(end_ns - start_ns) / 1000; }
};

/// True when CUPTI loads and records kernels in this process; else the reason in *why. Tried once.
bool cupti_available(std::string* why = nullptr);

/// Times kernels. With CUPTI each kernel gets its own record, free of launch overhead; without it events give one
/// record of the whole region, about 4 us too long. One timer collects at a time.
class KernelTimer {
 public:
  /// The stream's work is timed (by CUPTI: the work of every stream).
  KernelTimer(Device& device, Stream stream);
  ~KernelTimer();
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

  /// "CUPTI activity" or "CUDA events"; printed beside every figure.
  static const char* name();

  /// Waits for the stream, then collects.
  void start();
  /// Waits for the stream; the records in order of start. Throws Error{device} when CUPTI dropped some.
  std::vector<KernelRecord> stop();

 private:
  Device& device_;
  Stream stream_;
  Event from_, to_;  // without CUPTI
  bool running_ = false;
};

}  // namespace quern
