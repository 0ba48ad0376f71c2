// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ops/logits/process.h"

#include <cmath>
#include <limits>

#include "quern/base/host_dtype.h"
#include "quern/bricks/rows/plan.h"
#include "quern/op/schema.h"
#include "quern/ops/logits/process/ref.h"
#include "quern/ops/logits/process/spec.h"

namespace quern::logits {

using A = ProcessArgs;

static const jit::Kernel<ProcessConfig, ProcessParams> chunk_kernel{"quern/ops/logits/process/kernel.cuh", "process_chunk"};

template <class T> static const T* pointer(const TensorView& v) { return static_cast<const T*>(v.data); }

static ProcessParams params(const Call<A>& c) {
  const A& a = c.args;
  const auto columns = [](const TensorView& v) { return v.present() ? v.shape[1] : 0; };
  const auto stride = [](const TensorView& v) { return v.present() ? v.strides[0] : 0; };
  ProcessParams p{};
  p.logits = a.logits.data, p.logits_stride = a.logits.strides[0];
  p.out = a.out.data, p.out_stride = a.out.strides[0];
  p.rows = a.logits.shape[0], p.vocab = a.logits.shape[1];
  p.bitmask = pointer<u32>(a.bitmask), p.bitmask_stride = stride(a.bitmask), p.mask_words = columns(a.bitmask);
  p.masks = a.bitmask.present() ? a.bitmask.shape[0] : 0;
  p.mask_rows = pointer<i32>(a.mask_rows);
  p.bias = pointer<float>(a.bias), p.bias_stride = a.bias.present() && a.bias.shape[0] == 1 ? 0 : stride(a.bias);
  p.bias_ids = pointer<i32>(a.bias_ids), p.bias_ids_stride = stride(a.bias_ids), p.biased = columns(a.bias_ids);
  p.bias_values = pointer<float>(a.bias_values), p.bias_values_stride = stride(a.bias_values);
  p.counts = pointer<i32>(a.counts), p.counts_stride = stride(a.counts);
  p.prompt_bits = pointer<u32>(a.prompt_bits), p.prompt_bits_stride = stride(a.prompt_bits);
  p.slots = pointer<i32>(a.slots);
  p.slot_rows = a.counts.present() ? a.counts.shape[0] : a.prompt_bits.present() ? a.prompt_bits.shape[0] : 0;
  p.prompt_tokens = a.prompt_tokens.data, p.prompt_tokens_stride = stride(a.prompt_tokens), p.prompt_length = columns(a.prompt_tokens);
  p.output_tokens = a.output_tokens.data, p.output_tokens_stride = stride(a.output_tokens), p.output_length = columns(a.output_tokens);
  p.repetitions = pointer<float>(a.repetition_penalties), p.frequencies = pointer<float>(a.frequency_penalties),
  p.presences = pointer<float>(a.presence_penalties);
  p.soft_cap = a.soft_cap, p.repetition = a.repetition_penalty, p.frequency = a.frequency_penalty, p.presence = a.presence_penalty;
  p.past_mask = a.past_mask;
  return p;
}

static bool has(const Problem& p, TensorView A::* member) { return p.tensor(member).present != 0; }

static ProcessConfig config_of(const Problem& p) {
  static const Axis vocab = axis_of("vocab");
  ProcessConfig c{};
  c.dtype = p.dtype(&A::logits);
  c.token_dtype = DType::i32;
  c.state = has(p, &A::counts) || has(p, &A::prompt_bits) ? TokenState::slots : TokenState::none;
  if (has(p, &A::prompt_tokens) || has(p, &A::output_tokens)) {
    c.state = TokenState::lists;
    c.token_dtype = p.dtype(has(p, &A::prompt_tokens) ? &A::prompt_tokens : &A::output_tokens);
  }
  c.bias = has(p, &A::bias) ? BiasForm::dense : has(p, &A::bias_ids) ? BiasForm::list : BiasForm::none;
  // Two widths only: 16 bytes of logits where all rows allow it, or single elements
  const i32 full = 16 / size_of(c.dtype), words = min_of<i32>(full, 4);
  const bool wide = p[vocab] % full == 0 && p.vector(&A::logits) == full && p.vector(&A::out) == full &&
                    (!has(p, &A::counts) || p.vector(&A::counts) >= words) && (!has(p, &A::bias) || p.vector(&A::bias) >= words);
  c.threads = 256;
  c.chunks.vector = wide ? full : 1;
  c.chunks.accesses = kProcessColumns / (c.threads * c.chunks.vector);
  return c;
}

static Plan plan(const Problem& p, const DeviceInfo& device) {
  static const Axis rows = axis_of("rows"), vocab = axis_of("vocab");
  const ProcessConfig config = config_of(p);
  Plan plan;
  plan.launch<params>(chunk_kernel, config,
                      {.x = rows::chunk_blocks(config.chunks, config.threads, {p[rows], p[vocab]}, device),
                       .smem = process_smem(config.state, config.bias).bytes,
                       .pdl = p.pdl});
  return plan;
}

static Rejection vocab_fits(const Problem& p) {
  static const Axis vocab = axis_of("vocab");
  if (p[vocab] > 2147483647) return {"vocab", p[vocab], "below 2^31"};
  return {};
}
static Rejection soft_cap_fits(const Problem& p) {
  const float cap = p.attr(&A::soft_cap);
  return cap == 0 || (cap >= 1e-30f && cap <= 1e30f) ? Rejection{} : Rejection{"soft_cap", cap, "0, or a number from 1e-30 to 1e30"};
}
static Rejection mask_fits(const Problem& p) {
  static const Axis rows = axis_of("rows"), masks = axis_of("masks");
  if (!has(p, &A::bitmask)) {
    if (has(p, &A::mask_rows)) return {"mask_rows", "given", "none without bitmask"};
    if (p.attr(&A::past_mask) != PastMask::masked) return {"past_mask", "left", "masked without bitmask"};
  } else if (!has(p, &A::mask_rows) && p[masks] != p[rows]) {
    return {"masks", p[masks], "{}, as many as rows of logits without mask_rows", p[rows]};
  }
  return {};
}
static Rejection bias_fits(const Problem& p) {
  static const Axis rows = axis_of("rows"), bias_rows = axis_of("bias_rows"), biased = axis_of("biased");
  if (has(p, &A::bias) && has(p, &A::bias_ids)) return {"bias_ids", "given", "none beside bias"};
  if (has(p, &A::bias_ids) && !has(p, &A::bias_values)) return {"bias_values", "absent", "those of bias_ids"};
  if (has(p, &A::bias_values) && !has(p, &A::bias_ids)) return {"bias_values", "given", "none without bias_ids"};
  if (has(p, &A::bias) && p[bias_rows] != 1 && p[bias_rows] != p[rows])
    return {"bias_rows", p[bias_rows], "1, or as many as rows of logits, {}", p[rows]};
  if (p[biased] > 2147483647) return {"biased", p[biased], "below 2^31"};
  return {};
}
/// One form of what was said before; a row of it for each row of logits, or slots.
static Rejection tokens_fit(const Problem& p) {
  static const Axis rows = axis_of("rows"), slots = axis_of("slots"), prompt_length = axis_of("prompt_length"),
                    output_length = axis_of("output_length");
  const bool by_slots = has(p, &A::counts) || has(p, &A::prompt_bits), prompt = has(p, &A::prompt_tokens),
             output = has(p, &A::output_tokens);
  if (by_slots && prompt) return {"prompt_tokens", "given", "none beside counts and prompt_bits"};
  if (by_slots && output) return {"output_tokens", "given", "none beside counts and prompt_bits"};
  if (has(p, &A::slots) && !by_slots) return {"slots", "given", "none without counts and prompt_bits"};
  if (by_slots && !has(p, &A::slots) && p[slots] != p[rows])
    return {"slots", p[slots], "{}, as many as rows of logits where no tensor names the slots", p[rows]};
  if (prompt && output && p.dtype(&A::prompt_tokens) != p.dtype(&A::output_tokens))
    return {"output_tokens", name(p.dtype(&A::output_tokens)), "the dtype of prompt_tokens"};
  if (p[prompt_length] > 2147483647) return {"prompt_length", p[prompt_length], "below 2^31"};
  if (p[output_length] > 2147483647) return {"output_length", p[output_length], "below 2^31"};
  return {};
}
static Rejection penalties_fit(const Problem& p) {
  const float r = p.attr(&A::repetition_penalty), f = p.attr(&A::frequency_penalty), b = p.attr(&A::presence_penalty);
  if (!(r > 0) || std::isinf(r)) return {"repetition_penalty", r, "a finite number above 0"};
  if (!std::isfinite(f)) return {"frequency_penalty", f, "a finite number"};
  if (!std::isfinite(b)) return {"presence_penalty", b, "a finite number"};
  const bool rs = has(p, &A::repetition_penalties), fs = has(p, &A::frequency_penalties), bs = has(p, &A::presence_penalties);
  if (rs && r != 1) return {"repetition_penalty", r, "1 beside repetition_penalties, which hold those of the rows"};
  if (fs && f != 0) return {"frequency_penalty", f, "0 beside frequency_penalties, which hold those of the rows"};
  if (bs && b != 0) return {"presence_penalty", b, "0 beside presence_penalties, which hold those of the rows"};
  const bool output = has(p, &A::counts) || has(p, &A::output_tokens), any = output || has(p, &A::prompt_bits) || has(p, &A::prompt_tokens);
  if (rs && !any) return {"repetition_penalties", "given", "none without tokens of prompt or output"};
  if (r != 1 && !any) return {"repetition_penalty", r, "1 without tokens of prompt or output"};
  if (fs && !output) return {"frequency_penalties", "given", "none without counts or output_tokens"};
  if (f != 0 && !output) return {"frequency_penalty", f, "0 without counts or output_tokens"};
  if (bs && !output) return {"presence_penalties", "given", "none without counts or output_tokens"};
  if (b != 0 && !output) return {"presence_penalty", b, "0 without counts or output_tokens"};
  return {};
}

/// Exact without a soft cap. With it: its own relative error, 2^-20.6 (elementwise.soft_cap), and a rounding to f32 in each of four steps,
/// here and in the reference, all relative to terms that the repetition penalty has enlarged; the rounding of the result; a quotient below
/// 2^-126, rounded by 2^-150, times the cap and a penalty of at most 2 in the cases.
static Budget budget(const Problem& p) {
  const float cap = p.attr(&A::soft_cap);
  if (cap == 0) return {.exact = true};
  return {.of_value = unit_roundoff(p.dtype(&A::logits)), .of_magnitude = 0x1.53p-21 + 8 * 0x1p-24, .absolute = 0x1p-148 * double(cap)};
}

/// The logits, read and written; a bit of a mask, a count, a bit of the prompt and a bias each; the lists once.
static Cost cost(const Problem& p, const A& a) {
  static const Axis rows = axis_of("rows"), vocab = axis_of("vocab");
  double bytes = 2 * double(size_of(p.dtype(&A::logits)));
  if (a.bitmask.present()) bytes += 0.125;
  if (a.counts.present()) bytes += 4;
  if (a.prompt_bits.present()) bytes += 0.125;
  if (a.bias.present()) bytes += a.bias.shape[0] == 1 ? 4 / double(max_of<i64>(p[rows], 1)) : 4;
  double all = bytes * double(p[rows]) * double(p[vocab]);
  for (const TensorView* list : {&a.prompt_tokens, &a.output_tokens, &a.bias_ids, &a.bias_values})
    if (list->present()) all += double(list->numel()) * size_of(list->dtype);
  return {all, 0};
}

static i64 word(const Case& which, const char* name) {
  const auto at = which.find(name);
  return at == which.end() ? 0 : i64(at->second);
}
template <class F> static void each_integer(const TensorView& v, const F& f) {
  if (!v.present()) return;
  const i64 columns = v.rank == 2 ? v.shape[1] : v.shape[0];
  for (i64 row = 0; row < (v.rank == 2 ? v.shape[0] : 1); ++row)
    for (i64 i = 0; i < columns; ++i) {
      const i64 at2[] = {row, i}, at1[] = {i};
      store_integer(v.at(v.rank == 2 ? at2 : at1), v.dtype, f(i));
    }
}
template <class F> static void each_real(const TensorView& v, const F& f) {
  if (!v.present()) return;
  const i64 columns = v.rank == 2 ? v.shape[1] : v.shape[0];
  for (i64 row = 0; row < (v.rank == 2 ? v.shape[0] : 1); ++row)
    for (i64 i = 0; i < columns; ++i) {
      const i64 at2[] = {row, i}, at1[] = {i};
      store_element(v, v.rank == 2 ? at2 : at1, f(i));
    }
}

/// Logits of all sizes, among them zeros of both signs, infinities and NaN; a quarter of the bits 0; counts of which most are 0 and some
/// below it; lists with the same token several times and two kinds of padding.
static void generate(A& a, const Case& which, Random& random) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const bool beyond = word(which, "beyond") != 0;
  const i64 vocab = a.logits.shape[1];
  const auto pick = [&](std::initializer_list<double> from) { return from.begin()[random.below(i64(from.size()))]; };
  each_real(a.logits, [&](i64) {
    return random.below(12) ? 6 * random.uniform() : pick({0.0, -0.0, inf, -inf, -inf, nan, 60000, -60000, 1e-6, -1e-6});
  });
  each_real(a.bias, [&](i64) { return random.below(12) ? random.uniform() : pick({0.0, -0.0, 100, -100, inf, -inf}); });
  each_real(a.bias_values, [&](i64) { return random.below(6) ? random.uniform() : pick({0.0, -0.0, 100, -100, inf, -inf}); });
  const bool odd = random.below(2) != 0;  // a row whose penalty is none
  each_real(a.repetition_penalties,
            [&](i64) { return odd && random.below(8) == 0 ? pick({0, -1, nan, inf}) : pick({1, 1.25, 0.75, 2, 1.1f}); });
  each_real(a.frequency_penalties, [&](i64) { return odd && random.below(8) == 0 ? pick({nan, -inf}) : pick({0, 0.5, -0.25, 0.3f, 2}); });
  each_real(a.presence_penalties, [&](i64) { return odd && random.below(8) == 0 ? pick({nan, inf}) : pick({0, 0.75, -0.5, 0.7f}); });
  const auto bits = [&](i64) { return i64(i32(u32(random.next() | random.next()))); };
  each_integer(a.bitmask, bits), each_integer(a.prompt_bits, bits);
  each_integer(a.counts, [&](i64) {
    return random.below(3)   ? 0
           : random.below(9) ? 1 + random.below(20)
           : random.below(2) ? 16777217 + random.below(1 << 30)
                             : -random.below(5);
  });
  const auto token = [&](i64) {
    return random.below(4) == 0 ? (random.below(2) ? vocab : -1 - random.below(3))
           : random.below(2)    ? random.below(vocab)
                                : random.below(min_of<i64>(vocab, 7));
  };
  each_integer(a.prompt_tokens, token), each_integer(a.output_tokens, token), each_integer(a.bias_ids, token);
  const auto place = [&](i64 end) {
    return [&random, beyond, end](i64 i) {
      return beyond && i % 3 == 1 ? end + random.below(3) : end == 0 || random.below(4) == 0 ? -1 - random.below(3) : random.below(end);
    };
  };
  if (a.bitmask.present()) each_integer(a.mask_rows, place(a.bitmask.shape[0]));
  const TensorView& state = a.counts.present() ? a.counts : a.prompt_bits;
  if (state.present()) each_integer(a.slots, place(state.shape[0]));
}

/// Words of the cases: what is given, made into presence and extents.
static void derive(Case& which) {
  const i64 state = word(which, "state"), mask = word(which, "mask"), bias = word(which, "bias_form"), rows = word(which, "rows"),
            vocab = word(which, "vocab");
  const bool tensors = word(which, "tensors") != 0, output = state == 1 || state == 2 || state == 4 || state == 5, any = state != 0,
             slots = word(which, "own_slots") == 0;
  which["bitmask.present"] = mask != 0, which["mask_rows.present"] = mask == 2;
  which["masks"] = mask == 2 ? i64(3) : rows;
  const i64 words = (vocab + 31) / 32;
  which["mask_words"] = word(which, "short_mask") ? words - (words + 1) / 2 : words;
  if (mask == 0) which["past_mask"] = 0;
  which["bias.present"] = bias == 1 || bias == 2, which["bias_ids.present"] = which["bias_values.present"] = bias == 3;
  which["bias_rows"] = bias == 2 ? i64(1) : rows, which["biased"] = i64(9);
  which["counts.present"] = state == 1 || state == 2, which["prompt_bits.present"] = state == 1 || state == 3;
  which["slots.present"] = state >= 1 && state <= 3 && slots, which["slots"] = slots ? i64(4) : rows;
  which["prompt_tokens.present"] = state == 4 || state == 6, which["output_tokens.present"] = state == 4 || state == 5;
  which["output_tokens.dtype"] = which["prompt_tokens.dtype"];
  which["prompt_length"] = i64(300), which["output_length"] = i64(21);
  which["repetition_penalties.present"] = tensors && any;
  which["frequency_penalties.present"] = which["presence_penalties.present"] = tensors && output;
  if (tensors || !any) which["repetition_penalty"] = 1.0;
  if (tensors || !output) which["frequency_penalty"] = which["presence_penalty"] = 0.0;
  for (const char* name : {"state", "mask", "short_mask", "bias_form", "tensors", "own_slots"}) which.erase(name);
}

QN_OP(process, A, "logits.process")
    .doc(
        "out = logits after soft cap, allowed bitmask, bias, and repetition, frequency and presence penalties, in this order; -inf stays -inf")
    .source(
        "Keskar et al., CTRL: A Conditional Transformer Language Model for Controllable Generation, arXiv 1909.05858 (repetition); Dong et al., XGrammar, arXiv 2411.15100 (bitmask)")
    .in("logits", &A::logits, "rows vocab", {DType::f32, DType::f16, DType::bf16})
    .in("bitmask", &A::bitmask, "masks mask_words", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("-2147483648", "2147483647"))
    .meaning("bit j of word w is token 32 w + j: 1 allowed, 0 becomes -inf")
    .in("mask_rows", &A::mask_rows, "rows", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_below("masks").or_negative())
    .meaning("the row of bitmask of each row; negative: every token is allowed; absent: its own")
    .in("bias", &A::bias, "bias_rows vocab", {DType::f32})
    .optional()
    .values(generated())
    .meaning("a row each, or one for all")
    .in("bias_ids", &A::bias_ids, "rows biased", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("0", "vocab").or_negative())
    .meaning("in the place of bias: tokens; vocab and negative ones are padding")
    .in("bias_values", &A::bias_values, "rows biased", {DType::f32})
    .optional()
    .meaning("what is added to the logits of bias_ids; of several of one token the last")
    .in("counts", &A::counts, "slots vocab", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("-2147483648", "2147483647"))
    .meaning("how often each token stands in the output; below 0 is 0")
    .in("prompt_bits", &A::prompt_bits, "slots ceil_div(vocab,32)", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_within("-2147483648", "2147483647"))
    .meaning("bit j of word w is token 32 w + j: 1 in the prompt")
    .in("slots", &A::slots, "rows", {DType::i32})
    .optional()
    .values(generated())
    .contents(each_below("slots").or_negative())
    .meaning("the row of counts and prompt_bits of each row; negative: no tokens; absent: its own")
    .in("prompt_tokens", &A::prompt_tokens, "rows prompt_length", {DType::i32, DType::i64})
    .optional()
    .values(generated())
    .contents(each_within("0", "vocab").or_negative())
    .meaning("in the place of prompt_bits; vocab and negative ones are padding")
    .in("output_tokens", &A::output_tokens, "rows output_length", {DType::i32, DType::i64})
    .optional()
    .values(generated())
    .contents(each_within("0", "vocab").or_negative())
    .meaning("in the place of counts; vocab and negative ones are padding")
    .in("repetition_penalties", &A::repetition_penalties, "rows", {DType::f32})
    .optional()
    .meaning("in the place of repetition_penalty; NaN, infinite and not above 0: the row becomes NaN")
    .in("frequency_penalties", &A::frequency_penalties, "rows", {DType::f32})
    .optional()
    .meaning("in the place of frequency_penalty; NaN and infinite: the row becomes NaN")
    .in("presence_penalties", &A::presence_penalties, "rows", {DType::f32})
    .optional()
    .meaning("in the place of presence_penalty; NaN and infinite: the row becomes NaN")
    .out("out", &A::out, "rows vocab", like("logits"))
    .may_be("logits")
    .attr("soft_cap", &A::soft_cap)
    .meaning("logits become soft_cap * tanh(logit / soft_cap), from 1e-30 to 1e30; 0: they do not")
    .attr("repetition_penalty", &A::repetition_penalty)
    .meaning("r > 0: logits above 0 are divided by it, others multiplied, of tokens of prompt or output")
    .attr("frequency_penalty", &A::frequency_penalty)
    .meaning("this times the count in the output is subtracted")
    .attr("presence_penalty", &A::presence_penalty)
    .meaning("subtracted from the logits of tokens of the output")
    .attr("past_mask", &A::past_mask)
    .words({"masked", "left"})
    .meaning("what becomes of columns that bitmask has no words for, in rows that have a mask")
    .rows(axis_of("rows"), axis_of("bias_rows"))
    .require(vocab_fits)
    .require(soft_cap_fits)
    .require(mask_fits)
    .require(bias_fits)
    .require(tokens_fit)
    .require(penalties_fit)
    .plan(plan)
    .reference<process_ref>()
    .generate<generate>()
    .broken_contents("beyond", 1)
    .cost<cost>()
    .exact("the sign of a logit chooses what a repetition penalty does: other number types have none")
    .budget(budget)
    .cases(
        {{"rows", {5, 1, 0, 34}},
         {"vocab", {2056, 1, 33, 1000, 4099}},
         {"logits.dtype", {DType::bf16, DType::f32, DType::f16}},
         {"state",
          {1, 0, 2, 3, 4, 5, 6},
          "earlier tokens: none (0), counts and prompt_bits (1), counts (2), prompt_bits (3), lists (4), of the output (5), of the prompt (6)"},
         {"tensors", {true, false}, "penalties are tensors"},
         {"repetition_penalty", {1.25, 1.0, 0.5}},
         {"frequency_penalty", {0.5, 0.0, -0.3}},
         {"presence_penalty", {0.75, 0.0}},
         {"mask", {1, 0, 2}, "no bitmask (0), a row each (1), by mask_rows (2)"},
         {"short_mask", {0, 1}, "bitmask ends half-way"},
         {"past_mask", {0, 1}},
         {"bias_form", {0, 1, 2, 3}, "none (0), a row each (1), one row (2), lists (3)"},
         {"soft_cap", {0.0, 5.0}},
         {"own_slots", {0, 1}, "slots are absent (1)"},
         {"prompt_tokens.dtype", {DType::i32, DType::i64}},
         {"beyond", {0, 1}, "some of mask_rows and slots are beyond their tensors"},
         {"logits.pad", {0, 8, 1}},
         {"out.pad", {0, 16, 1}},
         {"counts.pad", {0, 4, 1}},
         {"bias.pad", {0, 4, 1}}},
        derive)
    .bench({{{"rows", 1}, {"vocab", 128256}, {"mask", 0}, {"tensors", 1}},
            {{"rows", 64}, {"vocab", 128256}, {"mask", 0}, {"tensors", 1}},
            {{"rows", 256}, {"vocab", 128256}, {"mask", 0}, {"tensors", 1}},
            {{"rows", 256}, {"vocab", 128256}, {"mask", 0}, {"tensors", 1}, {"state", 4}},
            {{"rows", 256}, {"vocab", 128256}, {"mask", 1}, {"tensors", 0}, {"state", 0}}});

}  // namespace quern::logits
