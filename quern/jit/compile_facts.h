// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once

namespace quern::jit {

/// What a compile says of its kernel.
struct CompileFacts {
  double compile_ms = 0;
  int registers = 0;                ///< of a thread
  int spill_bytes = 0;              ///< stored plus loaded, of a thread
  int stack_bytes = 0;              ///< local memory of a thread
  bool serialised_wgmma = false;    ///< ptxas C7510: wgmma instructions wait for each other
  bool ignored_setmaxnreg = false;  ///< ptxas C7508: the register split has no effect
};

}  // namespace quern::jit
