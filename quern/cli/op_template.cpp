// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/cli/op_template.h"

namespace quern::cli {

static const char kHeader[] = R"(// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/run.h"

namespace quern::@family@ {

struct @Name@Args {
  TensorView out;  ///< [tokens, hidden]
  TensorView x;    ///< [tokens, hidden] f32, f16 or bf16
  float factor = 1.0f;
};

/// out[t, h] = x[t, h] * factor, in f32, rounded once. Rows may be strided. Throws Error.
QN_API void @name@(const @Name@Args& args, const RunOptions& options = {});

}  // namespace quern::@family@
)";

static const char kSchema[] = R"(// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "@folder@/@name@.h"

#include "quern/base/host_dtype.h"
#include "quern/op/schema.h"
#include "@folder@/@name@/ref.h"
#include "@folder@/@name@/spec.h"

namespace quern::@family@ {

static const jit::Kernel<@Name@Config, @Name@Params> row_kernel{"@folder@/@name@/kernel.cuh", "@name@_row"};

static @Name@Params params(const Call<@Name@Args>& c) {
  const @Name@Args& a = c.args;
  return {a.x.data, a.out.data, a.x.strides[0], a.out.strides[0], c.problem[Axis::tokens], c.problem[Axis::hidden], a.factor};
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  using A = @Name@Args;
  i32 vector = min_of(p.vector(&A::x), p.vector(&A::out));
  while (p[Axis::hidden] % vector) vector /= 2;
  const @Name@Config config{p.dtype(&A::x), vector, 128};
  Plan plan;
  plan.launch<params>(row_kernel, config, {.x = min_of<i64>(p[Axis::tokens], i64(device.sms) * 16), .pdl = p.pdl});
  return plan;
}

/// One rounding of the product in f32 and, of narrower dtypes, one of the result.
static Budget budget(const Problem& p) {
  const DType dtype = p.tensors[0].dtype;
  return {.of_value = unit_roundoff(dtype) + (dtype == DType::f32 ? 0 : 0x1p-24)};
}

QN_OP(@name@, @Name@Args, "@family@.@name@")
    .doc("out = x * factor")
    .in("x", &@Name@Args::x, "tokens hidden", {DType::f32, DType::f16, DType::bf16})
    .out("out", &@Name@Args::out, "tokens hidden", like("x"))
    .attr("factor", &@Name@Args::factor)
    .meaning("what each element is multiplied by")
    .rows(Axis::tokens)
    .plan(plan)
    .reference<@name@_ref>()
    .budget(budget)
    .cases({{"tokens", {3, 0, 1, 64}},
            {"hidden", {4096, 1, 7, 96, 127, 1025}},
            {"factor", {0.3, -2.0, 1.0}},
            {"x.dtype", {DType::bf16, DType::f16, DType::f32}},
            {"x.pad", {0, 8, 4, 2, 1}},
            {"out.pad", {0, 16, 1}}})
    .bench({{{"tokens", 1}, {"hidden", 4096}}, {{"tokens", 4096}, {"hidden", 8192}}});

}  // namespace quern::@family@
)";

static const char kSpec[] = R"(// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/kit/abi.h"

namespace quern::@family@ {

struct @Name@Config {
  DType dtype;
  i32 vector;  // elements of one access
  i32 threads;
};

struct @Name@Params {
  const void* x;  // [tokens, hidden]
  void* out;      // [tokens, hidden]
  i64 x_stride, out_stride;  // elements from row to row
  i64 tokens;
  i64 hidden;
  float factor;
};

}  // namespace quern::@family@
)";

static const char kKernel[] = R"(// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// out[t, h] = x[t, h] * factor
// A block takes a row at a time, each thread `vector` elements of it, then the next row a grid further.
#pragma once
#include "quern/kit/kit.cuh"
#include "@folder@/@name@/spec.h"

namespace quern::@family@ {

template <@Name@Config C> QN_DEVICE void @name@_row(const @Name@Params& p) {
  using T = dtype_t<C.dtype>;
  const f32 factor = p.factor;
  ptx::grid_dependency_wait();
  for (i64 row = blockIdx.x; row < p.tokens; row += gridDim.x) {
    const T* x = static_cast<const T*>(p.x) + row * p.x_stride;
    T* out = static_cast<T*>(p.out) + row * p.out_stride;
    for (i64 h = i64(threadIdx.x) * C.vector; h < p.hidden; h += C.threads * C.vector) {
      f32 v[C.vector];
      load_f32<T, C.vector>(x + h, v);
      QN_UNROLL
      for (int j = 0; j < C.vector; ++j) v[j] = v[j] * factor;
      store_f32<T, C.vector>(out + h, v);
    }
  }
  ptx::grid_launch_dependents();
}

}  // namespace quern::@family@
)";

static const char kReference[] = R"(// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include "quern/op/ref.h"
#include "@folder@/@name@.h"

namespace quern::@family@ {

inline void @name@_ref(const @Name@Args& a, const @Name@Args&) {
  const Ref x(a.x);
  const RefOut out(a.out);
  for (i64 t = 0; t < x.dim(0); ++t)
    for (i64 h = 0; h < x.dim(1); ++h) out.set(x(t, h) * double(a.factor), t, h);
}

}  // namespace quern::@family@
)";

static const char kHookedHeader[] = R"(#pragma once
#include "quern/ops/@scope@/@based@.h"

namespace quern::@family@ {

/// @base@ with the hooks of @name@/hooks.cuh. Throws Error.
QN_API void @name@(const @scope@::@Args@& args, const RunOptions& options = {});

}  // namespace quern::@family@
)";

static const char kHookedSchema[] = R"(#include "@folder@/@name@.h"

#include "quern/op/schema.h"
#include "quern/ops/@scope@/@based@/ref.h"

namespace quern::@family@ {

using @scope@::@Args@;
using @scope@::HookContext;

// The text of hooks is part of a kernel's source; this one includes a file that the library carries.
static const jit::Hooks kHooks = {"quern::@family@::@Name@Hooks", "@name@", "#include \"@folder@/@name@/hooks.cuh\""};

/// What hooks.cuh does, in double.
static void reference(const @Args@& args, const @Args@& magnitudes) {
  @based@_ref_with(args, magnitudes@meanings@);
}

QN_OP(@name@, @Args@, "@family@.@name@")
    .based_on("@base@", &kHooks)
    .doc("@base@ with hooks of our own")
    .hook_params<void>()
    .reference<reference>();

}  // namespace quern::@family@
)";

static const char kHooks[] = R"(// What the kernels of @base@ call. A member that is taken out costs nothing.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/@scope@/hooks.cuh"

namespace quern::@family@ {

using @scope@::HookContext;

struct @Name@Hooks {
@members@};

}  // namespace quern::@family@
)";

std::span<const TemplateFile> hooks_template() {
  static const TemplateFile kFiles[] = {{"@name@.h", kHookedHeader}, {"@name@/@name@.cpp", kHookedSchema}, {"@name@/hooks.cuh", kHooks}};
  return kFiles;
}

std::span<const TemplateFile> op_template() {
  static const TemplateFile kFiles[] = {{"@name@.h", kHeader},
                                        {"@name@/@name@.cpp", kSchema},
                                        {"@name@/spec.h", kSpec},
                                        {"@name@/kernel.cuh", kKernel},
                                        {"@name@/ref.h", kReference}};
  return kFiles;
}

}  // namespace quern::cli
