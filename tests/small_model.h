// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "quern/jit/sources.h"

namespace quern {

/// The model file of Llama-3.1-8B with a geometry that the emulated device runs in a moment.
inline nlohmann::json small_model() {
  nlohmann::json model = nlohmann::json::parse(jit::source_text("models/llama-3.1-8b.json"));
  model["name"] = "small";
  model["geometry"] = {{"layers", 1},         {"hidden", 256},    {"heads_q", 4},   {"heads_kv", 2},   {"head_dim", 64},
                       {"intermediate", 512}, {"vocabulary", 64}, {"q_width", 256}, {"kv_width", 128}, {"qkv_width", 512}};
  return model;
}

}  // namespace quern
