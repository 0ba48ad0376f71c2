// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <functional>
#include <vector>

#include "quern/op/schema.h"

namespace quern::testing {

/// Cases in which every two values of two parameters meet, wherever some case that `allowed` accepts has both. The
/// first case has every parameter's first value when that is allowed. Deterministic. Parameters
/// without values are left out.
std::vector<Case> pairwise(const std::vector<CaseAxis>& parameters, const std::function<bool(const Case&)>& allowed);
/// Every allowed combination.
std::vector<Case> full_product(const std::vector<CaseAxis>& parameters, const std::function<bool(const Case&)>& allowed);

/// True when the op's bind accepts the case (with its derive) and a variant plans it on the device.
bool runs(const Op& op, const Case& given, const DeviceInfo& device);
/// op.cases with the parameters in `fixed` replaced by its values.
std::vector<CaseAxis> parameters_of(const Op& op, const std::vector<CaseAxis>& fixed = {});

}  // namespace quern::testing
