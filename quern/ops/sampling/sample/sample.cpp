// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/sampling/sample.h"

#include "quern/ops/sampling/filters/cases.h"
#include "quern/ops/sampling/filters/filters.h"
#include "quern/ops/sampling/sample/ref.h"
#include "quern/ops/sampling/sample/spec.h"

namespace quern::sampling {

using A = SampleArgs;

static const jit::Kernel<SampleConfig, SampleParams> row_kernel{"quern/ops/sampling/sample/kernel.cuh", "sample_row"};

static SampleParams params(const Call<A>& c) {
  static const Axis rows = axis_of("rows"), logits_rows = axis_of("logits_rows"), vocab = axis_of("vocab");
  const A& a = c.args;
  const TensorView& values = a.probs.present() ? a.probs : a.logits;
  SampleParams p{};
  p.values = values.data, p.stride = values.strides[0];
  p.out = static_cast<i32*>(a.out.data), p.valid = static_cast<u8*>(a.valid.data);
  p.indices = static_cast<const i32*>(a.indices.data), p.seeds = static_cast<const i64*>(a.seeds.data),
  p.offsets = static_cast<const i64*>(a.offsets.data);
  p.filter = filter_params(a);
  p.rows = c.problem[rows], p.logits_rows = c.problem[logits_rows], p.vocab = c.problem[vocab];
  p.seed = a.seed, p.offset = a.offset;
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  static const Axis rows = axis_of("rows"), vocab = axis_of("vocab");
  const bool probs = p.tensor(&A::probs).present;
  const auto member = probs ? &A::probs : &A::logits;
  const RowLayout layout = row_layout(p.dtype(member), p.vector(member), p[rows], p[vocab], device);
  const SampleConfig config{{layout, probs ? RowKind::probs : RowKind::logits}, layout.threads, resident_blocks(layout)};
  Plan plan;
  plan.launch<params>(row_kernel, config, row_grid(layout, p[rows], p[vocab], device, p.pdl));
  return plan;
}

static Rejection rows_fit(const Problem& p) {
  static const Axis rows = axis_of("rows"), logits_rows = axis_of("logits_rows");
  if (p[rows] > 2147483647) return {"rows", p[rows], "below 2^31"};
  if (!p.tensor(&A::indices).present && p[rows] != p[logits_rows])
    return {"rows", p[rows], "{}, as many as rows of logits without indices", p[logits_rows]};
  return {};
}
/// One read of what is drawn from.
static Cost cost(const Problem&, const A& a) {
  const TensorView& values = a.probs.present() ? a.probs : a.logits;
  return {.bytes = double(a.out.shape[0]) * (double(values.shape[1]) * size_of(values.dtype) + 4), .flops = 0};
}

static void generate(A& a, const Case& which, Random& random) {
  const TensorView& values = a.probs.present() ? a.probs : a.logits;
  fill_sampling_rows(values, which, a.probs.present(), random);
  fill_filters(a, values.shape[0], values.shape[1], random);
  for (i64 row = 0; row < a.out.shape[0]; ++row) {
    const i64 here[] = {row};
    if (a.indices.present()) store_integer(a.indices.at(here), DType::i32, random.below(values.shape[0]));
    if (a.seeds.present()) store_integer(a.seeds.at(here), DType::i64, i64(random.next()));
    if (a.offsets.present()) store_integer(a.offsets.at(here), DType::i64, i64(random.next()));
  }
}

static void derive(Case& which) {
  const bool probs = which["use_probs"] != 0, per_row_seeds = which["row_seeds"] != 0, indirect = which["indirect"] != 0;
  which["probs.present"] = probs, which["logits.present"] = !probs;
  if (probs) which["probs.dtype"] = which["logits.dtype"], which["temperature"] = 1;
  derive_filters(which);
  if (probs) which["temperatures.present"] = 0;
  which["seeds.present"] = which["offsets.present"] = per_row_seeds;
  if (per_row_seeds) which["seed"] = which["offset"] = 0;
  which["indices.present"] = indirect;
  which["logits_rows"] = which["rows"];
  if (indirect) which["logits_rows"] = 7;
  for (const char* word : {"use_probs", "row_seeds", "indirect"}) which.erase(word);
}

QN_OP(sample, A, "sampling.sample")
    .doc(
        "out = the first token whose prefix sum of survivors' masses is above floor(u * total / 2^64); mass = exp(logit / temperature) or prob as an integer, u of Philox4x32-10")
    .source(
        "Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011; Holtzman et al., The Curious Case of Neural Text Degeneration, arXiv 1904.09751 (top-p); Nguyen et al., Turning Up the Heat: Min-p Sampling, arXiv 2407.01082")
    .in("logits", &A::logits, "logits_rows vocab", {DType::f32, DType::f16, DType::bf16})
    .optional()
    .values(generated())
    .in("probs", &A::probs, "logits_rows vocab", {DType::f32, DType::f16, DType::bf16})
    .optional()
    .values(generated())
    .meaning("in the place of logits: probabilities, or numbers in proportion to them")
    .in("temperatures", &A::temperatures, "logits_rows", {DType::f32})
    .optional()
    .values(generated())
    .meaning("in the place of temperature; negative, infinite and NaN: the row is not valid")
    .with(state_filter_tensors<A>)
    .in("indices", &A::indices, "rows", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_below("logits_rows"))
    .meaning("the row of logits that each output row draws from; one past the end draws nothing: valid is 0")
    .in("seeds", &A::seeds, "rows", {DType::i64})
    .optional()
    .values(generated())
    .contents(each_within("-9223372036854775807-1", "9223372036854775807"))
    .meaning("in the place of seed; then a row's draw does not depend on its place")
    .in("offsets", &A::offsets, "rows", {DType::i64})
    .optional()
    .values(generated())
    .contents(each_within("-9223372036854775807-1", "9223372036854775807"))
    .meaning("in the place of offset")
    .out("out", &A::out, "rows", {DType::i32})
    .out("valid", &A::valid, "rows", {DType::u8})
    .optional()
    .meaning("1, or 0 where a row has no token to draw; out is 0 then")
    .attr("temperature", &A::temperature)
    .meaning("logits are divided by it; below 1e-5 the largest is taken, without a random number")
    .with(state_filter_numbers<A>)
    .attr("seed", &A::seed)
    .meaning("key of Philox, 64 bits")
    .attr("offset", &A::offset)
    .meaning("in the counter of Philox, 64 bits")
    .with(state_filter_order<A>)
    .otherwise("rows", "logits_rows")
    .require(logits_or_probs<A>)
    .require(vocab_fits<A>)
    .require(rows_fit)
    .require(temperature_fits<A>)
    .require(filters_fit<A>)
    .require(seeds_fit<A>)
    .plan(plan)
    .reference<sample_ref>()
    .generate<generate>()
    .cost<cost>()
    .exact("tokens are integers, drawn by integer masses: other number types have none")
    .cases({{"rows", {23, 1, 0, 5}},
            {"vocab", {1000, 1, 2, 7, 33, 128, 513, 4099}},
            {"logits.dtype", {DType::f32, DType::bf16, DType::f16}},
            {"use_probs", {false, true}, "probs in the place of logits"},
            {"tensors", {false, true}, "temperature and filters are tensors"},
            {"row_seeds", {true, false}, "seeds and offsets are tensors"},
            {"indirect", {false, true}, "rows of logits are chosen by indices"},
            {"temperature", {0.8, 1.0, 0.0}},
            {"top_k", {100, 0, 5}},
            {"top_p", {0.9, 1.0, 0.3}},
            {"min_p", {0.3, 0.0, 0.05}},
            {"seed", {77, -5}},
            {"offset", {0, 1099511627776}},
            {"order", {0, 1}},
            {"min_p_first", {false, true}},
            {"ties", {0, 1}},
            {"valid.present", {true, false}},
            row_kinds(),
            {"logits.pad", {0, 8, 1}}},
           derive)
    .bench({{{"rows", 1}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}},
            {{"rows", 16}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}},
            {{"rows", 64}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}},
            {{"rows", 256}, {"vocab", 128256}, {"data", 0}, {"tensors", 0}},
            {{"rows", 64}, {"vocab", 262144}, {"data", 0}, {"tensors", 0}},
            {{"rows", 256}, {"vocab", 262144}, {"data", 0}, {"tensors", 0}}});

}  // namespace quern::sampling
