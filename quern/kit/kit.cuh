// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The one header that a kernel includes beside its spec.
#pragma once
#include "quern/kit/world.cuh"

#include "quern/kit/dtype.cuh"
#include "quern/kit/reduce.cuh"
#include "quern/kit/scan.cuh"
#include "quern/kit/softmax.cuh"
#include "quern/kit/vec.cuh"
