// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/sampling/verify_chain.h"

#include <limits>

#include "quern/ops/sampling/filters/cases.h"
#include "quern/ops/sampling/filters/filters.h"
#include "quern/ops/sampling/verify_chain/ref.h"
#include "quern/ops/sampling/verify_chain/spec.h"

namespace quern::sampling {

using A = VerifyChainArgs;

static const jit::Kernel<VerifyChainConfig, VerifyChainParams> row_kernel{"quern/ops/sampling/verify_chain/kernel.cuh", "verify_chain_row"};
static const jit::Kernel<VerifyChainConfig, VerifyChainParams> shares_kernel{"quern/ops/sampling/verify_chain/shares.cuh",
                                                                             "verify_chain_shares"};

/// Of logits two rows are made probabilities where an element of q - p is asked for, which takes registers.
constexpr i32 kDrawThreads = 512;

/// For both launches.
struct ChainShares {
  Region of_rows;  ///< of logits
};

static VerifyChainParams params(const Call<A, ChainShares>& c) {
  const A& a = c.args;
  const TensorView& target = a.target_probs.present() ? a.target_probs : a.target_logits;
  const TensorView& draft = a.draft_probs.present() ? a.draft_probs : a.draft_logits;
  VerifyChainParams p{};
  p.target = target.data, p.target_stride = target.strides[0], p.target_place_stride = target.strides[1];
  p.draft = draft.data, p.draft_stride = draft.strides[0], p.draft_place_stride = draft.strides[1];
  p.temperatures = floats(a.temperatures), p.temperature = a.temperature;
  p.shares = reinterpret_cast<StoredShares*>(c.region(c.choice.of_rows));
  p.ids = static_cast<const i32*>(a.draft_ids.data), p.ids_stride = a.draft_ids.strides[0];
  p.out = static_cast<i32*>(a.out.data), p.out_stride = a.out.strides[0];
  p.accepted = static_cast<i32*>(a.accepted.data), p.emitted = static_cast<i32*>(a.emitted.data), p.valid = static_cast<u8*>(a.valid.data);
  p.seeds = static_cast<const i64*>(a.seeds.data), p.offsets = static_cast<const i64*>(a.offsets.data);
  p.batch = a.out.shape[0], p.drafts = a.out.shape[1] - 1, p.vocab = target.shape[2];
  p.seed = a.seed, p.offset = a.offset;
  return p;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  static const Axis vocab = axis_of("vocab"), drafts = axis_of("drafts");
  const bool logits = p.tensor(&A::target_logits).present,
             certain = !p.tensor(&A::draft_probs).present && !p.tensor(&A::draft_logits).present;
  const auto target = logits ? &A::target_logits : &A::target_probs;
  i32 vector = p.vector(target);
  if (logits && !certain) vector = min_of(vector, p.vector(&A::draft_logits));  // whose rows are read whole
  const RowLayout layout = block_layout(p.dtype(target), vector, p[vocab]);
  VerifyChainConfig config{{layout, logits ? RowKind::logits : RowKind::probs}, certain, layout.threads};
  Plan plan;
  ChainShares shares;
  if (logits) {
    const i64 rows = p[Axis::batch] * chain_rows(p[drafts], certain);
    shares.of_rows = plan.scratch("shares", max_of<i64>(1, rows) * i64(sizeof(StoredShares)));
    plan.launch<params>(shares_kernel, config, row_grid(config.layout.row, rows, p[vocab], device, p.pdl), shares);
    config.threads = config.layout.row.threads = min_of(config.threads, kDrawThreads);
  }
  plan.launch<params>(row_kernel, config,
                      row_grid(config.layout.row, p[Axis::batch], p[vocab], device, logits ? device.arch.number >= 90 : p.pdl), shares);
  return plan;
}

/// One of target_probs and target_logits; drafts have what the target has. Probabilities have no temperature.
static Rejection one_kind_of_rows(const Problem& p) {
  const bool probs = p.tensor(&A::target_probs).present, logits = p.tensor(&A::target_logits).present;
  if (!probs && !logits) return {"target_probs", "absent", "target_probs, or target_logits"};
  if (probs && logits) return {"target_logits", "given", "none beside target_probs"};
  if (logits && p.tensor(&A::draft_probs).present)
    return {"draft_probs", "given", "none beside target_logits: drafts have draft_logits then"};
  if (logits) return {};
  if (p.tensor(&A::draft_logits).present) return {"draft_logits", "given", "none beside target_probs: drafts have draft_probs then"};
  if (p.tensor(&A::temperatures).present) return {"temperatures", "given", "none beside target_probs"};
  if (p.attr(&A::temperature) != 1) return {"temperature", p.attr(&A::temperature), "1 beside target_probs"};
  return {};
}

static Rejection batch_fits(const Problem& p) {
  static const Axis drafts = axis_of("drafts");
  if (p[Axis::batch] > 2147483647) return {"batch", p[Axis::batch], "below 2^31"};
  if (p[drafts] >= 2147483647) return {"drafts", p[drafts], "below 2^31 - 1"};
  return {};
}

/// Of probabilities two numbers a draft; of one place q, and p where its draft is rejected, as if every chain were. Of logits every row.
static Cost cost(const Problem& p, const A& a) {
  static const Axis drafts = axis_of("drafts"), vocab = axis_of("vocab");
  const bool logits = a.target_logits.present();
  const double element = size_of(p.dtype(logits ? &A::target_logits : &A::target_probs)), rows = a.draft_probs.present() ? 2 : 1;
  const double read = logits ? double(p[vocab] * chain_rows(p[drafts], !a.draft_logits.present())) : rows * double(p[vocab] + p[drafts]);
  return {double(p[Axis::batch]) * (element * read + 8 * double(p[drafts]) + 4), 0};
}

/// The rows of a request as a matrix.
static TensorView rows_of(const TensorView& v, i64 request) {
  const i64 at[] = {request, 0, 0};
  TensorView rows(v.at(at), v.dtype, {v.shape[1], v.shape[2]});
  rows.strides[0] = v.strides[1];
  return rows;
}

/// Rows of every kind that sample has. A draft's row is the target's, or the target's with some numbers changed, or its own. Ids are those
/// of large numbers of the target, or any; some chains end early. Where the case's word `beyond` is 1, some end by ids beyond the
/// vocabulary.
static void generate(A& a, const Case& which, Random& random) {
  const auto word = [&](const char* name) {
    const auto at = which.find(name);
    return at == which.end() ? i64(0) : i64(at->second);
  };
  const bool beyond = word("beyond") != 0;
  const bool probs = a.target_probs.present();
  const TensorView &targets = probs ? a.target_probs : a.target_logits, &all_drafts = probs ? a.draft_probs : a.draft_logits;
  const i64 batch = targets.shape[0], drafts = targets.shape[1] - 1, vocab = targets.shape[2];
  const double temperatures[] = {
      1, 0.7, 0, 2.5, 1e-6, 1e-5, 1e-4, 100, std::numeric_limits<double>::quiet_NaN(), -1, std::numeric_limits<double>::infinity()};
  const auto fill = [&](const TensorView& rows, i64 row) {
    fill_sampling_row(rows, row, int(random.below(random.below(3) ? 5 : kRowKinds)), probs, random);
  };
  // Logits change by up to 1/2
  const auto changed = [&](double x) {
    return probs ? x * (0.5 + double(random.below(64)) / 64) : x + double(random.below(64)) / 64 - 0.5;
  };
  for (i64 b = 0; b < batch; ++b) {
    const TensorView target = rows_of(targets, b);
    if (a.temperatures.present()) set_value(a.temperatures, b, temperatures[random.below(random.below(4) ? 8 : 11)]);
    for (i64 i = 0; i <= drafts; ++i) fill(target, i);
    const i64 end = random.below(3) ? drafts : random.below(drafts + 1);
    for (i64 i = 0; i < drafts; ++i) {
      const i64 here[] = {b, i};
      i64 id = random.below(vocab);
      const i64 kind = random.below(4);
      if (all_drafts.present()) {
        const TensorView draft = rows_of(all_drafts, b);
        if (kind == 0) fill(draft, i);
        for (i64 v = 0; v < vocab && kind != 0; ++v) {
          const i64 at[] = {i, v};
          const double x = load_element(target, at);
          store_element(draft, at, kind == 1 ? x : changed(x));
        }
      }
      // Of several tokens the one with the most
      for (int more = 0; more < 8 && kind != 3; ++more) {
        const i64 other = random.below(vocab), at[] = {i, id}, there[] = {i, other};
        if (load_element(target, there) > load_element(target, at)) id = other;
      }
      if (i == end) id = beyond ? vocab + random.below(3) : -1 - random.below(3);
      store_integer(a.draft_ids.at(here), DType::i32, id);
    }
    const i64 at[] = {b};
    if (a.seeds.present()) store_integer(a.seeds.at(at), DType::i64, i64(random.next()));
    if (a.offsets.present()) store_integer(a.offsets.at(at), DType::i64, i64(random.next()));
    if (a.accepted.present()) store_integer(a.accepted.at(at), DType::i32, random.below(1000));
    if (a.emitted.present()) store_integer(a.emitted.at(at), DType::i32, random.below(1000));
  }
}

static void derive(Case& which) {
  const bool per_row_seeds = which["row_seeds"] != 0;
  which["seeds.present"] = which["offsets.present"] = per_row_seeds;
  if (per_row_seeds) which["seed"] = which["offset"] = 0;
  const bool logits = which["use_logits"] != 0, tensors = logits && which["tensors"] != 0;
  which["temperatures.present"] = tensors;
  if (tensors || !logits) which["temperature"] = 1;
  if (logits) {
    which["target_logits.dtype"] = which["draft_logits.dtype"] = which["target_probs.dtype"];
    which["target_logits.pad"] = which["target_probs.pad"], which["draft_logits.pad"] = which["draft_probs.pad"];
    which["draft_logits.present"] = which["draft_probs.present"], which["draft_probs.present"] = 0;
  }
  which["target_logits.present"] = logits, which["target_probs.present"] = !logits;
  for (const char* word : {"row_seeds", "use_logits", "tensors"}) which.erase(word);
}

QN_OP(verify_chain, A, "sampling.verify_chain")
    .doc("out = drafts while u * p[id] < q[id], then a token drawn from max(0, q - p), or from q behind the last draft, then -1")
    .source(
        "Leviathan et al., Fast Inference from Transformers via Speculative Decoding, arXiv 2211.17192; Chen et al., Accelerating Large Language Model Decoding with Speculative Sampling, arXiv 2302.01318")
    .in("target_probs", &A::target_probs, "batch drafts+1 vocab", {DType::f32, DType::f16, DType::bf16})
    .optional()
    .values(generated())
    .meaning("q: the model's probabilities at each place, or numbers whose scale is that of draft_probs")
    .in("draft_ids", &A::draft_ids, "batch drafts", {DType::i32})
    .values(generated())
    .contents(each_below("vocab").or_negative())
    .meaning("the drafts of each request; the chain ends before the first that is negative or no token")
    .in("draft_probs", &A::draft_probs, "batch drafts vocab", like("target_probs"))
    .optional()
    .values(generated())
    .meaning("p: what the drafts were drawn from; absent: each has p = 1")
    .in("target_logits", &A::target_logits, "batch drafts+1 vocab", {DType::f32, DType::f16, DType::bf16})
    .optional()
    .values(generated())
    .meaning("in the place of target_probs: q is what sampling.softmax makes of them")
    .in("draft_logits", &A::draft_logits, "batch drafts vocab", like("target_logits"))
    .optional()
    .values(generated())
    .meaning("in the place of draft_probs, beside target_logits: p is what sampling.softmax makes of them")
    .in("temperatures", &A::temperatures, "batch", {DType::f32})
    .optional()
    .values(generated())
    .meaning("in the place of temperature; negative, infinite and NaN: the request is not valid")
    .in("seeds", &A::seeds, "batch", {DType::i64})
    .optional()
    .values(generated())
    .contents(each_within("-9223372036854775807-1", "9223372036854775807"))
    .meaning("in the place of seed; then a request's tokens do not depend on its place")
    .in("offsets", &A::offsets, "batch", {DType::i64})
    .optional()
    .values(generated())
    .contents(each_within("-9223372036854775807-1", "9223372036854775807"))
    .meaning("in the place of offset")
    .out("out", &A::out, "batch drafts+1", {DType::i32})
    .meaning("accepted drafts, the token drawn, then -1")
    .inout("accepted", &A::accepted, "batch", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("-2147483648", "2147483647"))
    .meaning("increased by the drafts of the chain that pass the test, each on its own")
    .inout("emitted", &A::emitted, "batch", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("-2147483648", "2147483647"))
    .meaning("increased by the drafts that stand in out")
    .out("valid", &A::valid, "batch", {DType::u8})
    .optional()
    .meaning("1, or 0 where no token could be drawn; it is 0 in out then")
    .attr("temperature", &A::temperature)
    .meaning("logits are divided by it; below 1e-5 the probability is 1 at the largest")
    .attr("seed", &A::seed)
    .meaning("key of Philox, 64 bits")
    .attr("offset", &A::offset)
    .meaning("in the counter of Philox, 64 bits; place i of the chain has offset + i")
    .require(one_kind_of_rows)
    .require(vocab_fits<A>)
    .require(batch_fits)
    .require(temperature_fits<A>)
    .require(seeds_fit<A>)
    .plan(plan)
    .reference<verify_chain_ref>()
    .generate<generate>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .exact("tokens are integers, chosen by integer masses: other number types have none")
    .cases({{"batch", {23, 1, 0, 5}},
            {"drafts", {4, 1, 0, 7}},
            {"vocab", {513, 1, 2, 33, 1000, 4099}},
            {"target_probs.dtype", {DType::f32, DType::bf16, DType::f16}},
            {"draft_probs.present", {true, false}},
            {"use_logits", {false, true}, "logits in the place of probabilities"},
            {"tensors", {false, true}, "temperatures of logits are a tensor"},
            {"temperature", {0.8, 1.0, 0.0}},
            {"row_seeds", {true, false}, "seeds and offsets are tensors"},
            {"seed", {77, -5}},
            {"offset", {0, 1099511627776}},
            {"accepted.present", {true, false}},
            {"emitted.present", {true, false}},
            {"valid.present", {true, false}},
            {"beyond", {0, 1}, "chains that end early do so by ids beyond the vocabulary"},
            {"target_probs.pad", {0, 8, 1}},
            {"draft_probs.pad", {0, 1}}},
           derive)
    .bench({{{"batch", 1}, {"drafts", 4}, {"vocab", 128256}},
            {{"batch", 64}, {"drafts", 4}, {"vocab", 128256}},
            {{"batch", 1}, {"drafts", 4}, {"vocab", 128256}, {"use_logits", 1}},
            {{"batch", 64}, {"drafts", 4}, {"vocab", 128256}, {"use_logits", 1}}});

}  // namespace quern::sampling
