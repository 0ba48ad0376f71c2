// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once

/// Stated here alone: CMake and the wheel's build read this line.
#define QN_VERSION "0.1.0"
