// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/norm/norm_form/norm_form.h"

namespace quern::norm {

const jit::Kernel<NormFormConfig, NormFormParams> norm_form_kernel{"quern/ops/norm/norm_form/kernel.cuh", "norm_row_form"};

}  // namespace quern::norm
