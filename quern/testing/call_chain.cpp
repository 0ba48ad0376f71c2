// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/call_chain.h"

#include "quern/device/emulated.h"

namespace quern::testing {

CallChain::CallChain(Device& device) : device_(device) {
  const EmulatedOptions* options = emulated_options_of(device);
  checked_ = options && options->checked;
  if (checked_) stream_ = device.create_stream();
}

CallChain::~CallChain() {
  if (checked_) device_.destroy(stream_);
}

void CallChain::run(const Op& op, const void* args, RunOptions options) {
  options.device = &device_;
  if (!checked_) return quern::run(op, args, options);
  options.stream = stream_;
  if (options.pdl) {
    std::vector<TensorView> read_only;
    for (size_t i = 0; i < op.tensors.size(); ++i)
      if (op.tensors[i].early && op.tensor(args, i).present()) read_only.push_back(op.tensor(args, i));
    pretend_launch_before(device_, stream_, std::move(read_only));
  }
  quern::run(op, args, options);
  if (!options.pdl) return;
  try {
    judge_launch_behind(device_, stream_);
  } catch (const Error& e) { throw e.in_call(op.id); }
}

}  // namespace quern::testing
