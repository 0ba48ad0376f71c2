// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "quern/op/workspace.h"
#include "quern/ops/activation/silu_and_mul.h"
#include "quern/ops/attention/paged.h"
#include "quern/ops/elementwise/gather_rows.h"
#include "quern/ops/gemm/dense.h"
#include "quern/ops/gemm/scaled.h"
#include "quern/ops/norm/fused_add_rms_norm.h"
#include "quern/ops/norm/rms_norm.h"
#include "quern/ops/quant/per_token_group.h"
#include "quern/ops/rope/rope_append_paged.h"
#include "quern/ops/sampling/sample.h"

namespace engine {

Model::Model(const ModelConfig& config, const Weights& weights, const StepLimits& limits, bool batch_invariant, Memory& memory)
    : config_(config), weights_(weights), device_(memory.device()), workspace_memory_(memory.device()) {
  const auto rows_of = [&](i64 columns, const char* label) { return memory.tensor(config.dtype, {limits.tokens, columns}, label); };
  residual_ = rows_of(config.hidden, "residual"), normed_ = rows_of(config.hidden, "normed"),
  projected_ = rows_of(config.hidden, "projected");
  qkv_ = rows_of((config.heads_q + 2 * config.heads_kv) * config.head_dim, "qkv");
  attention_ = rows_of(config.heads_q * config.head_dim, "attention");
  gate_up_ = rows_of(2 * config.intermediate, "gate_up");
  gathered_ = memory.tensor(config.dtype, {limits.rows, config.hidden}, "rows of logits");
  logits_ = memory.tensor(DType::f32, {limits.rows, config.vocab}, "logits");
  sampled_ = memory.tensor(DType::i32, {limits.rows}, "sampled"), valid_ = memory.tensor(DType::u8, {limits.rows}, "valid");
  const auto quantised = [&](i64 columns, const char* label) {
    return Rows{memory.tensor(DType::e4m3, {limits.tokens, columns}, label),
                memory.tensor(DType::f32, {limits.tokens, (columns + 127) / 128}, label)};
  };
  if (config.fp8) {
    quantised_hidden_ = quantised(config.hidden, "quantised hidden"),
    quantised_attention_ = quantised(config.heads_q * config.head_dim, "quantised attention");
    quantised_mlp_ = quantised(config.intermediate, "quantised mlp");
  } else {
    hidden_ = rows_of(config.intermediate, "mlp hidden");
  }
  quern::rope::FrequencyOptions of_rope = config.rope_options;
  of_rope.rotary_dim = i32(config.head_dim);
  const quern::rope::Frequencies f = quern::rope::frequencies(config.rope, of_rope);
  frequencies_ = memory.tensor(DType::f32, {config.head_dim / 2, 2}, "frequencies");
  device_.copy(frequencies_.data, f.turns.data(), f.turns.size() * sizeof(float), {});
  device_.synchronize({});
  cos_sin_scale_ = config.attention_factor > 0 ? float(config.attention_factor) : f.cos_sin_scale;
  sm_scale_ = float(f.softmax_scale / std::sqrt(double(config.head_dim)));
  options_.device = &device_;
  options_.pdl = true;  // what a launch reads early, its weights, no step writes
  options_.batch_invariant = batch_invariant;
}

template <class Args> void Model::call(const char* op, void (*function)(const Args&, const quern::RunOptions&), const Args& args) {
  if (needed_ >= 0) needed_ = std::max(needed_, quern::workspace_bytes(op, args, options_));
  else function(args, options_);
}

void Model::reserve(const StepInputs& inputs, i64 tokens, i64 rows, const std::vector<LayerCache>& caches) {
  needed_ = 0;
  try {
    forward(inputs, tokens, rows, caches);
  } catch (...) {
    needed_ = -1;
    throw;
  }
  const i64 needed = std::exchange(needed_, -1);
  if (needed <= workspace_.bytes) return;
  const i64 bytes = std::max(needed, 2 * workspace_.bytes);
  workspace_ = {workspace_memory_.tensor(DType::u8, {bytes}, "workspace").data, bytes};
}

void Model::launch(const StepInputs& inputs, i64 tokens, i64 rows, const std::vector<LayerCache>& caches, quern::Stream stream) {
  options_.stream = stream;
  options_.workspace = workspace_;
  forward(inputs, tokens, rows, caches);
}

void Model::linear(const Linear& by, const Rows& x, const TensorView& out) {
  for (const LinearPart& part : by.parts) {
    const i64 end = part.first_row + part.weight.shape[0];
    const TensorView part_of_out = out.slice(1, part.first_row, end),
                     bias = by.bias.present() ? by.bias.slice(0, part.first_row, end) : TensorView();
    if (x.scales.present())
      call<quern::gemm::ScaledArgs>(
          "gemm.scaled", quern::gemm::scaled,
          {.out = part_of_out, .a = x.values, .scales_a = x.scales, .b = part.weight, .scales_b = part.scales, .bias = bias});
    else
      call<quern::gemm::DenseArgs>("gemm.dense", quern::gemm::dense, {.out = part_of_out, .a = x.values, .b = part.weight, .bias = bias});
  }
}

Model::Rows Model::norm(const TensorView& x, const TensorView& residual, const TensorView& weight, bool for_linear) {
  const i64 tokens = residual.shape[0];
  const bool quantise = config_.fp8 && for_linear;
  const Rows out = quantise ? Rows{first_rows(quantised_hidden_.values, tokens), first_rows(quantised_hidden_.scales, tokens)}
                            : Rows{first_rows(normed_, tokens), {}};
  if (x.present())
    call<quern::norm::FusedAddRmsNormArgs>(
        "norm.fused_add_rms_norm", quern::norm::fused_add_rms_norm,
        {.out = out.values, .scales = out.scales, .residual = residual, .x = x, .weight = weight, .eps = config_.eps});
  else
    call<quern::norm::RmsNormArgs>("norm.rms_norm", quern::norm::rms_norm,
                                   {.out = out.values, .scales = out.scales, .x = residual, .weight = weight, .eps = config_.eps});
  return out;
}

void Model::attend(const Layer& layer, i64 window, const LayerCache& cache, const StepInputs& inputs, i64 tokens, i64 rows) {
  const ModelConfig& c = config_;
  const TensorView qkv = first_rows(qkv_, tokens), attention = first_rows(attention_, tokens);
  const i64 q_width = c.heads_q * c.head_dim, kv_width = c.heads_kv * c.head_dim;
  const TensorView q = heads_of(qkv, 0, c.heads_q, c.head_dim);
  call<quern::rope::RopeAppendPagedArgs>("rope.rope_append_paged", quern::rope::rope_append_paged,
                                         {.q_out = q,
                                          .k_cache = cache.k,
                                          .v_cache = cache.v,
                                          .q = q,
                                          .k = heads_of(qkv, q_width, c.heads_kv, c.head_dim),
                                          .v = heads_of(qkv, q_width + kv_width, c.heads_kv, c.head_dim),
                                          .positions = first_rows(inputs.positions.device, tokens),
                                          .slot_mapping = first_rows(inputs.slots.device, tokens),
                                          .frequencies = frequencies_,
                                          .q_weight = layer.q_norm,
                                          .k_weight = layer.k_norm,
                                          .cos_sin_scale = cos_sin_scale_,
                                          .eps = c.eps});
  quern::attention::PagedArgs args{.out = heads_of(attention, 0, c.heads_q, c.head_dim),
                                   .q = q,
                                   .k_cache = cache.k,
                                   .v_cache = cache.v,
                                   .page_table = first_rows(inputs.page_table.device, rows),
                                   .seq_lens = first_rows(inputs.seq_lens.device, rows),
                                   .sm_scale = sm_scale_,
                                   .causal = true,
                                   .window_left = window > 0 ? i32(window - 1) : -1};
  if (tokens != rows) args.q_indptr = first_rows(inputs.q_indptr.device, rows + 1);
  call("attention.paged", quern::attention::paged, args);
}

void Model::forward(const StepInputs& inputs, i64 tokens, i64 rows, const std::vector<LayerCache>& caches) {
  const TensorView residual = first_rows(residual_, tokens), projected = first_rows(projected_, tokens),
                   gate_up = first_rows(gate_up_, tokens);
  call<quern::elementwise::GatherRowsArgs>("elementwise.gather_rows", quern::elementwise::gather_rows,
                                           {.out = residual, .table = weights_.embeddings, .ids = first_rows(inputs.ids.device, tokens)});
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    const Layer& layer = weights_.layers[i];
    linear(layer.qkv, norm(i == 0 ? TensorView() : projected, residual, layer.attention_norm, true), first_rows(qkv_, tokens));
    attend(layer, config_.windows[i], caches[i], inputs, tokens, rows);
    Rows attention{first_rows(attention_, tokens), {}};
    if (config_.fp8) {
      const Rows quantised{first_rows(quantised_attention_.values, tokens), first_rows(quantised_attention_.scales, tokens)};
      call<quern::quant::PerTokenGroupArgs>("quant.per_token_group", quern::quant::per_token_group,
                                            {.q = quantised.values, .scales = quantised.scales, .x = attention.values});
      attention = quantised;
    }
    linear(layer.out, attention, projected);
    linear(layer.gate_up, norm(projected, residual, layer.mlp_norm, true), gate_up);
    const Rows hidden = config_.fp8 ? Rows{first_rows(quantised_mlp_.values, tokens), first_rows(quantised_mlp_.scales, tokens)}
                                    : Rows{first_rows(hidden_, tokens), {}};
    call<quern::activation::SiluAndMulArgs>("activation.silu_and_mul", quern::activation::silu_and_mul,
                                            {.out = hidden.values, .scales = hidden.scales, .x = gate_up});
    linear(layer.down, hidden, projected);
  }
  TensorView last = norm(projected, residual, weights_.last_norm, false).values;
  if (tokens != rows) {
    const TensorView gathered = first_rows(gathered_, rows);
    call<quern::elementwise::GatherRowsArgs>("elementwise.gather_rows", quern::elementwise::gather_rows,
                                             {.out = gathered, .table = last, .ids = first_rows(inputs.last.device, rows)});
    last = gathered;
  }
  const TensorView logits = first_rows(logits_, rows);
  call<quern::gemm::DenseArgs>("gemm.dense", quern::gemm::dense, {.out = logits, .a = last, .b = weights_.lm_head});
  const auto of_rows = [&](const auto& array) { return first_rows(array.device, rows); };
  call<quern::sampling::SampleArgs>("sampling.sample", quern::sampling::sample,
                                    {.out = first_rows(sampled_, rows),
                                     .valid = first_rows(valid_, rows),
                                     .logits = logits,
                                     .temperatures = of_rows(inputs.temperature),
                                     .top_ks = of_rows(inputs.top_k),
                                     .top_ps = of_rows(inputs.top_p),
                                     .min_ps = of_rows(inputs.min_p),
                                     .seeds = of_rows(inputs.seeds),
                                     .offsets = of_rows(inputs.offsets)});
}

}  // namespace engine
