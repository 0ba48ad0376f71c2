// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <vector>

#include "quern/base/api.h"
#include "quern/kit/abi.h"

namespace quern::rope {

/// How a model that was trained on short contexts stretches its frequencies f_i = theta^(-2i / rotary_dim).
enum class FrequencyKind : i32 {
  plain,     ///< it does not
  linear,    ///< f_i / factor. Chen et al., arXiv 2306.15595
  llama3,    ///< f_i / factor of long wavelengths, f_i of short ones, both mixed between. Llama 3.1's model card
  yarn,      ///< the same, mixed along the number of the pair. Peng et al., YaRN, arXiv 2309.00071
  longrope,  ///< f_i / divisors[i]. Ding et al., LongRoPE, arXiv 2402.13753
};

struct FrequencyOptions {
  i32 rotary_dim = 128;          ///< even, from 2 to 256
  double theta = 10000;          ///< from 1 to 1e30
  double factor = 1;             ///< of all kinds but plain: the long context over the original one, from 1 to 1e30; of linear from 0.125
  double original_max = 8192;    ///< of llama3, yarn and longrope: positions of the original context, more than 1, up to 1e30
  double low_freq_factor = 1;    ///< of llama3: wavelengths above original_max / low_freq_factor are stretched by factor
  double high_freq_factor = 4;   ///< of llama3, more than low_freq_factor: those below original_max / high_freq_factor stay
  double beta_fast = 32;         ///< of yarn: pairs that turn more often within original_max stay
  double beta_slow = 1;          ///< of yarn, from 1e-30, less than beta_fast: those that turn less often are stretched
  bool truncate = true;          ///< of yarn: the bounds are whole pairs; gpt-oss has false
  double attn_factor = 1;        ///< of yarn: cos_sin_scale is multiplied by it, from 1e-30 to 1e30
  double mscale = 1;             ///< of yarn, with mscale_all_dim: DeepSeek's, from 0 to 1e3
  double mscale_all_dim = 0;     ///< of yarn, from 0 to 1e3
  std::vector<double> divisors;  ///< of longrope: one of each pair, from 0.125: the model's short_factor or, of contexts beyond
                                 ///< original_max, its long_factor
};

struct Frequencies {
  std::vector<float>
      turns;  ///< [rotary_dim / 2, 2], row-major: f_i / (2 pi) as the sum of two numbers, what `frequencies` of rope.rope holds
  float cos_sin_scale = 1;  ///< the attribute cos_sin_scale of the call
  float softmax_scale = 1;  ///< what attention multiplies its sm_scale by: of yarn mscale(mscale_all_dim)^2, else 1
};

/// The frequencies of a model, made on the host in double. Copy `turns` to the device once and hand it to every call.
/// yarn: pair i has f_i / factor + (f_i - f_i / factor) (1 - ramp), ramp = (i - low) / (high - low) cut to [0, 1]. low and high are
/// d(beta_fast) and d(beta_slow), d(turns) = rotary_dim ln(original_max / (2 pi turns)) / (2 ln theta), rounded down and up by `truncate`,
/// cut to [0, rotary_dim - 1]; equal ones are 0.001 apart. cos_sin_scale is attn_factor mscale(mscale) / mscale(mscale_all_dim), with
/// mscale(m) = 0.1 m ln(factor) + 1. longrope: cos_sin_scale is sqrt(1 + ln(factor) / ln(original_max)).
/// A model that names a scale of its own (attention_factor) takes that for cos_sin_scale. Throws Error.
QN_API Frequencies frequencies(FrequencyKind kind, const FrequencyOptions& options);

}  // namespace quern::rope
