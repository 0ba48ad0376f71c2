// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/null_call.h"

namespace quern::bench {

NullCall::NullCall(const Op& op)
    : op_(op),
      which_(op.bench.empty() ? Case{} : op.bench[0]),
      args_(testing::fake_args(op, testing::derived(op, which_))),
      device_(device_info_of(Arch{})),
      options_(testing::options_of(op, testing::derived(op, which_))) {
  options_.device = &device_;
  (*this)();
}

}  // namespace quern::bench
