// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/base/error.h"
#include "quern/device/device.h"

namespace quern {

/// Memory that a call may use as workspace.
struct Workspace {
  void* data = nullptr;
  i64 bytes = 0;
};

/// What a call may carry beside its tensors; the second argument of every op.
struct RunOptions {
  Device* device = nullptr;       ///< default: where the tensors lie (host tensors: the emulated device)
  Stream stream;                  ///< default: the device's default stream
  const char* variant = nullptr;  ///< name of a variant, instead of plan's choice
  Workspace workspace;            ///< default: a stream-ordered pool of the device, which cannot grow while capturing
  bool batch_invariant = false;   ///< a row's bits do not depend on the other rows
  bool pdl = false;               ///< the first launch may start before the stream's previous kernel ends
  /// Skip the schema's requirements and the search for tensors that share memory (never shapes, dtypes and strides)
  bool skip_check = false;
};

}  // namespace quern
