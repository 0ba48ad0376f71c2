// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
namespace quern::emu {
struct ThreadClock {};
struct BlockShadow {};
}  // namespace quern::emu
