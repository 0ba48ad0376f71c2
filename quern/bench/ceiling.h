// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the device sustains, measured in the run whose figures are divided by it.
#pragma once
#include <string>

#include "quern/op/schema.h"

namespace quern::bench {

/// Rates; 0 where one was not measured.
struct Ceilings {
  double bytes_per_us = 0;       ///< of a copy, bytes read and written
  double read_bytes_per_us = 0;  ///< of a read
  double flops_per_us = 0;       ///< of bf16 matrix products
  std::string copy_source, read_source;
  std::string flops_source;  ///< "cuBLASLt 13.1.0 (...), 8192^3"; without a rate the reason

  /// The faster of the two: no kernel moves bytes faster.
  double best_bytes_per_us() const { return max_of(bytes_per_us, read_bytes_per_us); }
  /// No kernel is faster: the time of the bytes or of the operations, whichever is longer. 0 when it is not known.
  double floor_us(const Cost& cost) const;
  /// Moving bytes takes longer than computing.
  bool bandwidth_bound(const Cost& cost) const;
};

/// Measures all three on random data: copies and reads of 1 GiB and more, bf16 products of 8192^3 by cuBLASLt. On an
/// emulated device a small copy by the host alone.
Ceilings measure_ceilings(Device& device);

/// Time of the fastest copy known that moves so many bytes (half read, half written) from a cold L2; measured once a
/// size and process. Above 4 GiB by the rate at 4 GiB.
double copy_us(Device& device, double bytes);

}  // namespace quern::bench
