// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "weights.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "quern/base/error.h"
#include "quern/base/host_dtype.h"

namespace engine {

namespace {

i64 blocks(i64 n) { return (n + 127) / 128; }

/// Makes tensors, and counts what a step reads.
struct Maker {
  const ModelConfig& config;
  Memory& memory;
  const Fill& fill;
  i64 bytes = 0;

  TensorView tensor(DType dtype, std::initializer_list<i64> shape, const std::string& name) {
    const TensorView view = memory.tensor(dtype, shape, name);
    bytes += view.numel() * quern::size_of(dtype);
    return view;
  }
  TensorView vector(i64 n, const std::string& name) {
    const TensorView view = tensor(config.dtype, {n}, name);
    fill(name, view);
    return view;
  }

  /// Modules that read the same input, as "model.layers.0.self_attn.q_proj" with its rows.
  Linear linear(const std::vector<std::pair<std::string, i64>>& modules, i64 k, bool bias) {
    Linear l;
    l.k = k;
    bool whole = true;  // in one part
    for (const auto& [name, rows] : modules) {
      whole &= !config.fp8 || rows % 128 == 0;
      l.rows += rows;
    }
    if (bias) l.bias = tensor(config.dtype, {l.rows}, modules[0].first + ".bias");
    if (whole) l.parts.push_back(part(0, l.rows, k, modules[0].first));
    i64 row = 0;
    for (const auto& [name, rows] : modules) {
      if (!whole) l.parts.push_back(part(row, rows, k, name));
      const LinearPart& in = l.parts.back();
      const i64 first = row - in.first_row;
      fill(name + ".weight", in.weight.slice(0, first, first + rows));
      if (config.fp8) fill(name + ".weight_scale_inv", in.scales.slice(0, first / 128, first / 128 + blocks(rows)));
      if (bias) fill(name + ".bias", l.bias.slice(0, row, row + rows));
      row += rows;
    }
    return l;
  }

 private:
  LinearPart part(i64 first_row, i64 rows, i64 k, const std::string& name) {
    LinearPart p;
    p.first_row = first_row;
    p.weight = tensor(config.fp8 ? DType::e4m3 : config.dtype, {rows, k}, name);
    if (config.fp8) p.scales = tensor(DType::f32, {blocks(rows), blocks(k)}, name + ".scales");
    return p;
  }
};

}  // namespace

Weights make_weights(const ModelConfig& config, Memory& memory, const Fill& fill) {
  Maker make{config, memory, fill};
  Weights w;
  w.embeddings = make.tensor(config.dtype, {config.vocab, config.hidden}, "model.embed_tokens.weight");
  fill("model.embed_tokens.weight", w.embeddings);
  if (config.tied_embeddings) {
    w.lm_head = w.embeddings;
  } else {
    make.bytes = 0;  // a step reads a row a token of the embeddings
    w.lm_head = make.tensor(config.dtype, {config.vocab, config.hidden}, "lm_head.weight");
    fill("lm_head.weight", w.lm_head);
  }
  for (i64 i = 0; i < config.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".", attention = layer + "self_attn.", mlp = layer + "mlp.";
    const i64 q_width = config.heads_q * config.head_dim, kv_width = config.heads_kv * config.head_dim;
    Layer l;
    l.attention_norm = make.vector(config.hidden, layer + "input_layernorm.weight");
    l.qkv = make.linear({{attention + "q_proj", q_width}, {attention + "k_proj", kv_width}, {attention + "v_proj", kv_width}},
                        config.hidden, config.qkv_bias);
    if (config.qk_norm) {
      l.q_norm = make.vector(config.head_dim, attention + "q_norm.weight");
      l.k_norm = make.vector(config.head_dim, attention + "k_norm.weight");
    }
    l.out = make.linear({{attention + "o_proj", config.hidden}}, q_width, config.out_bias);
    l.mlp_norm = make.vector(config.hidden, layer + "post_attention_layernorm.weight");
    l.gate_up =
        make.linear({{mlp + "gate_proj", config.intermediate}, {mlp + "up_proj", config.intermediate}}, config.hidden, config.mlp_bias);
    l.down = make.linear({{mlp + "down_proj", config.hidden}}, config.intermediate, config.mlp_bias);
    w.layers.push_back(l);
  }
  w.last_norm = make.vector(config.hidden, "model.norm.weight");
  w.step_bytes = make.bytes;
  return w;
}

Weights load_weights(const ModelConfig& config, Checkpoint& checkpoint, Memory& memory) {
  quern::Device& device = memory.device();
  std::vector<u8> rounded;
  Weights weights = make_weights(config, memory, [&](const std::string& name, const TensorView& stored) {
    const TensorView from = checkpoint.get(name, {stored.shape, stored.shape + stored.rank});
    const size_t bytes = size_t(stored.numel() * quern::size_of(stored.dtype));
    const bool same = from.dtype == stored.dtype, wider = !same && from.dtype != DType::e4m3 && stored.dtype != DType::e4m3;
    if (!same && !wider)
      throw quern::Error(quern::ErrorKind::type, "checkpoint", name, std::string("is ") + quern::name(from.dtype),
                         quern::name(stored.dtype));
    if (same) {
      device.copy(stored.data, from.data, bytes, {});
    } else {
      rounded.resize(bytes);
      for (i64 i = 0; i < stored.numel(); ++i)
        quern::store_value(rounded.data() + i * quern::size_of(stored.dtype), stored.dtype,
                           quern::load_value(static_cast<const u8*>(from.data) + i * quern::size_of(from.dtype), from.dtype));
      device.copy(stored.data, rounded.data(), bytes, {});
    }
  });
  device.synchronize({});
  for (const std::string& name : checkpoint.unused()) {
    const bool head = name == "lm_head.weight" && config.tied_embeddings;  // some checkpoints hold the copy too
    const bool frequencies = name.size() > 16 && name.ends_with("rotary_emb.inv_freq");
    if (!head && !frequencies)
      throw quern::Error(quern::ErrorKind::value, "checkpoint", name, "is in the files", "only tensors that a model of config.json has");
  }
  return weights;
}

Weights random_weights(const ModelConfig& config, u64 seed, Memory& memory) {
  quern::Device& device = memory.device();
  // One row of normal numbers, at most 2^24 - 3 of them: a prime, so that rows of a large matrix differ. Each tensor is cut out of it from
  // a place of its own and wraps around.
  const i64 largest = std::max(config.vocab, 2 * config.intermediate) * config.hidden;
  const i64 length = std::min<i64>(largest * 2 + 1, 16777213);
  std::vector<float> normal(static_cast<size_t>(length));
  std::mt19937_64 random(seed);
  for (i64 i = 0; i < length; i += 2) {  // Box and Muller: no library's distribution, whose numbers are its own
    const double u = (double(random() >> 11) + 1) * 0x1p-53, angle = double(random() >> 11) * 0x1p-53 * 6.283185307179586,
                 r = std::sqrt(-2 * std::log(u));
    normal[size_t(i)] = float(r * std::cos(angle));
    if (i + 1 < length) normal[size_t(i + 1)] = float(r * std::sin(angle));
  }
  const auto row_of = [&](DType dtype, double factor) {
    std::vector<u8> row(size_t(length * quern::size_of(dtype)));
    for (i64 i = 0; i < length; ++i) quern::store_value(row.data() + i * quern::size_of(dtype), dtype, factor * normal[size_t(i)]);
    return row;
  };
  constexpr double kFp8Range = 64;  // standard deviation of stored FP8 numbers
  const std::vector<u8> plain = row_of(config.dtype, config.initializer_range),
                        fp8 = config.fp8 ? row_of(DType::e4m3, kFp8Range) : std::vector<u8>();

  Weights weights = make_weights(config, memory, [&](const std::string& name, const TensorView& stored) {
    u64 hash = 1469598103934665603u;  // FNV-1a
    for (const char c : name) hash = (hash ^ u8(c)) * 1099511628211u;
    i64 at = i64(hash % u64(length));
    const i64 size = quern::size_of(stored.dtype), count = stored.numel();
    const bool norm = name.ends_with("norm.weight"), scales = name.ends_with("_scale_inv");
    if (norm || scales) {
      std::vector<u8> values(size_t(count * size));
      for (i64 i = 0; i < count; ++i, at = (at + 1) % length) {
        const double about_one = 1 + 0.1 * std::clamp<double>(normal[size_t(at)], -5, 5);
        quern::store_value(values.data() + i * size, stored.dtype, norm ? about_one : about_one * config.initializer_range / kFp8Range);
      }
      device.copy(stored.data, values.data(), values.size(), {});
      return;
    }
    const std::vector<u8>& row = stored.dtype == DType::e4m3 ? fp8 : plain;
    for (i64 done = 0; done < count; at = 0) {
      const i64 some = std::min(count - done, length - at);
      device.copy(static_cast<u8*>(stored.data) + done * size, row.data() + at * size, size_t(some * size), {});
      done += some;
    }
  });
  device.synchronize({});
  return weights;
}

}  // namespace engine
