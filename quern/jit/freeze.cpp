// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/freeze.h"

#include <atomic>

#include "quern/base/env.h"

namespace quern::jit {

static std::atomic<bool> g_frozen{false};

void freeze(bool on) { g_frozen = on; }
bool frozen() { return g_frozen || env_flag(Env::jit_frozen); }

}  // namespace quern::jit
