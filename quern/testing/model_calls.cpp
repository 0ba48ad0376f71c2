// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/model_calls.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "quern/op/call_space.h"
#include "quern/testing/case_args.h"

namespace quern::testing {

ModelCalls::ModelCalls(const Model& model, u64 seed) : model_(model), random_(seed) {
  for (const ModelCall& c : model_.calls)
    if (!c.missing) calls_.push_back(&c);
  for (const ModelCall* c : calls_) {
    try {
      for (const std::vector<size_t>& alternative : alternatives_of(*c)) CallSpace(model_, *c, {}, alternative);
    } catch (const Error& e) { throw in_model(e, model_, *c); }
  }
  if (calls_.empty()) throw Error(ErrorKind::value, "", "model", "has no calls", "a model file with calls");
}

i64 ModelCalls::draw_limit(const Limit& l) {
  if (!l.range) return l.values[size_t(random_.below(i64(l.values.size())))];
  const i64 least = l.values[0], most = l.values[1];
  if (random_.below(8) == 0) return random_.below(2) ? least : most;
  const double from = std::log(double(least) + 1), to = std::log(double(most) + 2);
  const i64 value = i64(std::exp(from + (to - from) * (random_.uniform() + 1) / 2)) - 1;
  return std::clamp(value, least, most);
}

static Scalar value_of(const Op& op, const std::string& word, const std::string& text, const Extents& extents) {
  if (word.ends_with(".dtype")) return int(dtype_from_name(text));
  const int attr = op.attr_index(word);
  if (attr >= 0 && op.attrs[size_t(attr)].value_named(text) >= 0) return op.attrs[size_t(attr)].value_named(text);
  if (attr >= 0 && op.attrs[size_t(attr)].kind == AttrDef::Kind::f32) return std::strtod(text.c_str(), nullptr);
  return extent_value(text, extents);
}

/// Every row starts at a multiple of the alignment drawn (exactly that one, mostly), with a gap behind it or none.
void ModelCalls::draw_layout(const Op& op, size_t i, DType dtype, Case& which) {
  const TensorDef& t = op.tensors[i];
  const Limit* promised = model_.limit("alignment");
  std::vector<i64> alignments;
  for (i64 a = 16; a >= size_of(dtype); a /= 2)
    if (!promised || std::count(promised->values.begin(), promised->values.end(), a)) alignments.push_back(a);
  const i64 unit = alignments[size_t(random_.below(i64(alignments.size())))] / size_of(dtype);
  which[t.name + ".shift"] = double(unit * random_.below(4));
  if (t.rank < 2) return;
  const bool transposed = which.contains(t.name + ".transposed") && which.at(t.name + ".transposed") != 0;
  const Extent& last = t.extents[t.rank - 1 - transposed];
  const i64 row = extent_of(op, last, which);
  const i64 gap = random_.below(2) ? unit * random_.below(9) : 0;
  which[t.name + ".pad"] = double(round_up(row, unit) - row + gap);
  if (t.rank > 2) which[t.name + ".swap"] = double(random_.below(2));
}

ModelDraw ModelCalls::draw(size_t i, const Extents& fixed) {
  const ModelCall& call = *calls_[i];
  const Op& op = find_op(call.op);
  ModelDraw draw{&call, &op, {}};
  Extents extents = model_.geometry;
  for (const Limit& l : model_.limits) {
    const auto given = fixed.find(l.name);
    extents[l.name] = given != fixed.end() ? given->second : draw_limit(l);
  }
  for (const ModelWord& w : call.words)
    draw.which[w.name] = value_of(op, w.name, w.values[size_t(random_.below(i64(w.values.size())))], extents);
  if (const auto invariant = extents.find("batch_invariant"); invariant != extents.end())
    draw.which["batch_invariant"] = double(invariant->second);
  draw.which["pdl"] = double(random_.below(2));
  // The list of a model's kernels has those of the portable variant where a call names it
  for (size_t v = 0; v < op.variants.size() && op.variants.size() > 1; ++v)
    if (std::string(op.variants[v].name) == "portable" && random_.below(8) == 0) draw.which["variant"] = double(v);
  for (size_t t = 0; t < op.tensors.size(); ++t) {
    const TensorDef& def = op.tensors[t];
    const auto present = draw.which.find(def.name + ".present");
    if (def.optional && (present == draw.which.end() || present->second == 0)) continue;
    draw_layout(op, t, dtype_of(op, t, draw.which), draw.which);
  }
  return draw;
}

}  // namespace quern::testing
