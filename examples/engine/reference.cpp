// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quern/base/error.h"
#include "quern/base/host_dtype.h"

namespace engine {

namespace {

std::vector<double> numbers(quern::Device& device, const TensorView& view) {
  const i64 size = quern::size_of(view.dtype), count = view.present() ? view.numel() : 0;
  std::vector<u8> raw(size_t(count * size));
  if (count > 0) device.copy(raw.data(), view.data, raw.size(), {});
  device.synchronize({});
  std::vector<double> out;
  for (i64 i = 0; i < count; ++i) out.push_back(quern::load_value(raw.data() + i * size, view.dtype));
  return out;
}

std::vector<double> numbers(quern::Device& device, const Linear& linear) {
  std::vector<double> out;
  for (const LinearPart& part : linear.parts) {
    std::vector<double> weight = numbers(device, part.weight);
    const std::vector<double> scales = numbers(device, part.scales);
    if (!scales.empty())
      for (i64 r = 0; r < part.weight.shape[0]; ++r)
        for (i64 c = 0; c < linear.k; ++c) weight[size_t(r * linear.k + c)] *= scales[size_t(r / 128 * part.scales.shape[1] + c / 128)];
    out.insert(out.end(), weight.begin(), weight.end());
  }
  return out;
}

std::vector<double> product(const std::vector<double>& weight, const std::vector<double>& bias, const std::vector<double>& x) {
  std::vector<double> out(weight.size() / x.size());
  for (size_t r = 0; r < out.size(); ++r) {
    double sum = bias.empty() ? 0 : bias[r];
    for (size_t c = 0; c < x.size(); ++c) sum += weight[r * x.size() + c] * x[c];
    out[r] = sum;
  }
  return out;
}

void normalise(double* x, size_t n, const std::vector<double>& weight, double eps) {
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += x[i] * x[i];
  for (size_t i = 0; i < n; ++i) x[i] = x[i] / std::sqrt(squares / double(n) + eps) * weight[i];
}

std::vector<double> normalised(std::vector<double> x, const std::vector<double>& weight, double eps) {
  normalise(x.data(), x.size(), weight, eps);
  return x;
}

}  // namespace

Reference::Reference(const ModelConfig& config, const Weights& weights, quern::Device& device) : config_(config) {
  double count = 2.0 * double(config.vocab * config.hidden);
  count += double(config.layers) * double(config.hidden) *
           double((config.heads_q * 2 + config.heads_kv * 2) * config.head_dim + 3 * config.intermediate);
  if (count > double(1 << 28))
    throw quern::Error(quern::ErrorKind::value, "engine", "check", "would need " + std::to_string(count * 8e-9) + " GB",
                       "a model of at most 2^28 weights");
  embeddings_ = numbers(device, weights.embeddings), lm_head_ = numbers(device, weights.lm_head),
  last_norm_ = numbers(device, weights.last_norm);
  for (const Layer& l : weights.layers)
    layers_.push_back({numbers(device, l.attention_norm), numbers(device, l.mlp_norm), numbers(device, l.q_norm), numbers(device, l.k_norm),
                       numbers(device, l.qkv), numbers(device, l.qkv.bias), numbers(device, l.out), numbers(device, l.out.bias),
                       numbers(device, l.gate_up), numbers(device, l.gate_up.bias), numbers(device, l.down), numbers(device, l.down.bias)});
  quern::rope::FrequencyOptions of_rope = config.rope_options;
  of_rope.rotary_dim = i32(config.head_dim);
  const quern::rope::Frequencies f = quern::rope::frequencies(config.rope, of_rope);
  for (i64 i = 0; i < config.head_dim / 2; ++i)
    radians_.push_back((double(f.turns[size_t(2 * i)]) + double(f.turns[size_t(2 * i + 1)])) * 6.283185307179586);
  cos_sin_scale_ = config.attention_factor > 0 ? config.attention_factor : f.cos_sin_scale;
  sm_scale_ = f.softmax_scale / std::sqrt(double(config.head_dim));
  for (const double w : lm_head_) head_norm_ += w * w;
  head_norm_ = std::sqrt(head_norm_);
}

std::vector<double> Reference::stored(std::vector<double> x, Rounding rounding) const {
  if (rounding == Rounding::exact) return x;
  for (double& value : x) {
    u64 bits = 0;
    quern::store_value(&bits, config_.dtype, value);
    value = quern::load_value(&bits, config_.dtype);
  }
  return x;
}

std::vector<double> Reference::as_input(std::vector<double> x, Rounding rounding) const {
  if (rounding == Rounding::exact || !config_.fp8) return stored(std::move(x), rounding);
  for (size_t first = 0; first < x.size(); first += 128) {
    const size_t end = std::min(first + 128, x.size());
    double largest = 1e-4;
    for (size_t i = first; i < end; ++i) largest = std::max(largest, std::fabs(x[i]));
    for (size_t i = first; i < end; ++i) {
      u8 bits = 0;
      quern::store_value(&bits, DType::e4m3, x[i] * 448 / largest);
      x[i] = quern::load_value(&bits, DType::e4m3) * largest / 448;
    }
  }
  return x;
}

void Reference::rotate(double* head, i64 position) const {
  const i64 half = config_.head_dim / 2;
  for (i64 i = 0; i < half; ++i) {
    const double angle = double(position) * radians_[size_t(i)], c = cos_sin_scale_ * std::cos(angle), s = cos_sin_scale_ * std::sin(angle),
                 a = head[i], b = head[i + half];
    head[i] = a * c - b * s;
    head[i + half] = b * c + a * s;
  }
}

void Reference::attend(const LayerWeights& layer, size_t number, Sequence& sequence, i64 position, std::vector<double>& x,
                       Rounding rounding) const {
  const i64 d = config_.head_dim, q_width = config_.heads_q * d, kv_width = config_.heads_kv * d;
  std::vector<double> qkv =
      stored(product(layer.qkv, layer.qkv_bias, as_input(normalised(x, layer.attention_norm, config_.eps), rounding)), rounding);
  for (i64 h = 0; h < config_.heads_q + config_.heads_kv; ++h) {
    double* head = qkv.data() + h * d;
    if (config_.qk_norm) normalise(head, size_t(d), h < config_.heads_q ? layer.q_norm : layer.k_norm, config_.eps);
    rotate(head, position);
  }
  qkv = stored(qkv, rounding);
  std::vector<double>&keys = sequence.k[number], &values = sequence.v[number];
  keys.insert(keys.end(), qkv.begin() + q_width, qkv.begin() + q_width + kv_width);
  values.insert(values.end(), qkv.begin() + q_width + kv_width, qkv.end());
  const i64 window = config_.windows[number], first = window > 0 ? std::max<i64>(0, position + 1 - window) : 0;
  std::vector<double> attended(static_cast<size_t>(q_width));
  for (i64 h = 0; h < config_.heads_q; ++h) {
    const i64 kv = h / (config_.heads_q / config_.heads_kv) * d;
    std::vector<double> logits;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (i64 j = first; j <= position; ++j) {
      double logit = 0;
      for (i64 i = 0; i < d; ++i) logit += qkv[size_t(h * d + i)] * keys[size_t(j * kv_width + kv + i)];
      logits.push_back(logit * sm_scale_);
      largest = std::max(largest, logits.back());
    }
    for (double& logit : logits) sum += logit = std::exp(logit - largest);
    for (i64 j = first; j <= position; ++j)
      for (i64 i = 0; i < d; ++i) attended[size_t(h * d + i)] += logits[size_t(j - first)] / sum * values[size_t(j * kv_width + kv + i)];
  }
  attended = stored(attended, rounding);
  const std::vector<double> out = stored(product(layer.out, layer.out_bias, as_input(attended, rounding)), rounding);
  for (size_t i = 0; i < x.size(); ++i) x[i] += out[i];
  x = stored(x, rounding);
}

void Reference::mlp(const LayerWeights& layer, std::vector<double>& x, Rounding rounding) const {
  const std::vector<double> gate_up =
      stored(product(layer.gate_up, layer.gate_up_bias, as_input(normalised(x, layer.mlp_norm, config_.eps), rounding)), rounding);
  std::vector<double> hidden(gate_up.size() / 2);
  for (size_t i = 0; i < hidden.size(); ++i) hidden[i] = gate_up[i] / (1 + std::exp(-gate_up[i])) * gate_up[hidden.size() + i];
  const std::vector<double> down = stored(product(layer.down, layer.down_bias, as_input(hidden, rounding)), rounding);
  for (size_t i = 0; i < x.size(); ++i) x[i] += down[i];
  x = stored(x, rounding);
}

std::vector<double> Reference::advance(Sequence& sequence, const std::vector<i32>& tokens, Rounding rounding, double& scale) const {
  sequence.k.resize(layers_.size()), sequence.v.resize(layers_.size());
  std::vector<double> x;
  for (const i32 token : tokens) {
    x.assign(embeddings_.begin() + token * config_.hidden, embeddings_.begin() + (token + 1) * config_.hidden);
    for (size_t i = 0; i < layers_.size(); ++i) {
      attend(layers_[i], i, sequence, sequence.length, x, rounding);
      mlp(layers_[i], x, rounding);
    }
    ++sequence.length;
  }
  x = stored(normalised(x, last_norm_, config_.eps), rounding);
  double squares = 0;
  for (const double value : x) squares += value * value;
  scale = std::sqrt(squares / double(config_.hidden)) * head_norm_;
  return product(lm_head_, {}, x);
}

}  // namespace engine
