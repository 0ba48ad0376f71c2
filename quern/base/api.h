// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once

/// Marks what the shared library exports; everything else is hidden.
#define QN_API __attribute__((visibility("default")))
