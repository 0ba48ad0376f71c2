// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Other libraries' kernels for quern's ops, timed beside them in the same run on the same buffers. The one place of the
// benchmarks that names ops.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quern/op/schema.h"

namespace quern::bench {

/// A peer's kernel for one op.
struct Provider {
  const char* name;  ///< "cublaslt", as --peer takes it
  const char* op;    ///< "gemm.dense"
  /// True when the library is here; else the reason in *why.
  bool (*available)(std::string* why);
  /// The call on device arguments, on the default stream; what it owns is released with it. Throws Error{unsupported}
  /// when the peer cannot do this case.
  std::function<void()> (*make)(const Op& op, const void* args, Device& device);
  /// "cuBLASLt 13.1.0 (/usr/lib/...)".
  std::string (*description)();
};

std::span<const Provider> providers();
/// The provider of that name for an op; null when it has none. Throws Error{value} for a name that no provider has.
const Provider* find_provider(const std::string& name, const Op& op);

}  // namespace quern::bench
