// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <tvm/ffi/error.h>

#include <utility>

#include "quern/base/error.h"

namespace quern::ffi {

/// The name of the Python exception that an error of a kind becomes.
inline const char* exception_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::value: return "ValueError";
    case ErrorKind::type: return "TypeError";
    case ErrorKind::unsupported: return "NotImplementedError";
    default: return "RuntimeError";
  }
}

/// Calls `body`. What it throws of quern leaves as an error of TVM-FFI with the same text, which becomes a Python exception.
template <class Body> decltype(auto) translated(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& e) { throw tvm::ffi::Error(exception_name(e.kind()), e.what(), ""); }
}

}  // namespace quern::ffi
