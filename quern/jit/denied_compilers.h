// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <span>
#include <string>

namespace quern::jit {

/// Releases of NVRTC and nvcc that compile right sources wrongly. They are not used, and neither are kernels that they made.
struct DeniedCompiler {
  const char* first;   ///< "12.8" or "13.0.48": this release and
  const char* last;    ///< all up to this one, inclusive; "12.8" includes every 12.8.x
  const char* reason;  ///< what goes wrong, and where that is shown
};
/// The one table of them. A row needs a kernel of quern or of its kit that fails with the release and not with the next.
std::span<const DeniedCompiler> denied_compilers();

/// Why a release ("13.0", "13.0.88") is not used: "is denied: <reason>"; empty when it may be. An unknown version may.
std::string denial_of(const std::string& version, std::span<const DeniedCompiler> table = denied_compilers());

/// Why a release ("13", "13.0.88") cannot be used here: older than 12.8, denied, or newer than the driver (0: there is none),
/// which would not load its kernels; as "is 12.6, older than 12.8". Empty when it can.
std::string release_problem(const std::string& version, int driver_version);

/// For tests: another table, until it is set to an empty one.
void deny_compilers_for_test(std::span<const DeniedCompiler> table);

}  // namespace quern::jit
