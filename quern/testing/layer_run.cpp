// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/layer_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "quern/base/host_dtype.h"
#include "quern/base/log.h"
#include "quern/jit/kernel_table.h"
#include "quern/op/schema.h"
#include "quern/testing/check.h"
#include "quern/testing/parallel.h"

namespace quern::testing {

/// Uniform in [-scale, scale), the i-th value a function of seed and i alone. bf16 is the top half of the f32.
static void fill_uniform(const TensorView& view, u64 seed, double center, double scale) {
  in_parallel(view.numel(), 65536, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) {
      const double value = center + scale * Random(seed + u64(i)).uniform();
      if (view.dtype == DType::bf16) {
        const float f = float(value);
        u32 bits;
        std::memcpy(&bits, &f, 4);
        static_cast<u16*>(view.data)[i] = u16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
      } else {
        store_element(TensorView(view.data, view.dtype, {view.numel()}), &i, value);
      }
    }
  });
}

LayerRun::LayerRun(const Model& model, const LayerSizes& sizes, Device& device) : model_(model), sizes_(sizes), device_(device) {
  if (model.layer.calls.empty()) throw Error(ErrorKind::value, "", "model", "has no decode_layer", "a model file with one, as llama-3.1-8b");
  const i64 longest = *std::max_element(sizes.lengths.begin(), sizes.lengths.end());
  extents_ = model.geometry;
  extents_["tokens"] = i64(sizes.lengths.size());
  extents_["page_size"] = sizes.page_size;
  extents_["max_pages"] = ceil_div(longest, sizes.page_size);
  extents_["pages"] = extents_["max_pages"] * extents_["tokens"] + 2;
  for (const LayerTensor& t : model_.layer.tensors)
    if (t.of.empty()) make(t);
}

LayerRun::~LayerRun() {
  for (auto& [name, m] : memories_) {
    if (m.device.data == m.host.data) continue;
    try {
      device_.release(m.device.data);
    } catch (const Error& e) {  // the GPU has faulted: the error that unwinds says why
      log(LogLevel::call, e.what());
    }
  }
}

void LayerRun::make(const LayerTensor& tensor) {
  Memory& m = memories_[tensor.name];
  m.tensor = &tensor;
  const std::vector<i64> shape = extent_values(tensor.shape, extents_);
  m.host = TensorView(nullptr, tensor.dtype, shape.data(), int(shape.size()));
  const size_t bytes = size_t(m.host.numel()) * size_t(size_of(tensor.dtype));
  m.host_bytes.assign(bytes + 64, char(0xFF));  // what no call writes stays NaN
  m.host.data = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(m.host_bytes.data()) + 63) & ~uintptr_t(63));
  fill(m);
  make_wide(m);
  m.device = m.host;
  if (device_.id().type == DeviceType::cpu) return;
  m.device.device = device_.id();
  m.device.data = device_.allocate(bytes, tensor.name.c_str());
  device_.copy(m.device.data, m.host.data, bytes, {});
}

void LayerRun::fill(Memory& m) {
  const std::string& holds = m.tensor->holds;
  const u64 seed = sizes_.seed * 0x51ED2701u + std::hash<std::string>()(m.tensor->name);
  i32* words = static_cast<i32*>(m.host.data);
  const i64 count = m.host.numel();
  if (holds == "weights") fill_uniform(m.host, seed, 0, std::sqrt(3.0 / double(m.host.shape[m.host.rank - 1])));
  else if (holds == "norm_weights") fill_uniform(m.host, seed, 1, 0.25);
  else if (holds == "activations") fill_uniform(m.host, seed, 0, 1.7);
  else if (holds == "iota") std::iota(words, words + count, 0);
  else if (holds == "lengths") std::copy(sizes_.lengths.begin(), sizes_.lengths.end(), words);
  else if (holds == "last_positions") std::transform(sizes_.lengths.begin(), sizes_.lengths.end(), words, [](i64 l) { return i32(l - 1); });
  else if (holds == "shuffled_pages") {
    std::vector<i32> pages(static_cast<size_t>(extents_["pages"]));
    std::iota(pages.begin(), pages.end(), 0);
    Random random(seed);
    for (size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[size_t(random.below(i64(i)))]);
    std::copy(pages.begin(), pages.begin() + count, words);
  } else if (!holds.empty()) {
    throw Error(ErrorKind::value, model_.name, m.tensor->name, "holds '" + holds + "'", "weights, norm_weights, activations, iota, lengths, last_positions or shuffled_pages");
  }
}

/// The whole-layer reference shares weights and indices with the host copy, and has activations and caches of its own in f64.
void LayerRun::make_wide(Memory& m) {
  const std::string& holds = m.tensor->holds;
  m.wide = m.host;
  if (size_of(m.host.dtype) == 4 || holds == "weights" || holds == "norm_weights") return;
  m.wide_values.assign(size_t(m.host.numel()), std::nan(""));
  if (!holds.empty()) read_row(m.host.data, m.host.dtype, m.host.numel(), 1, m.wide_values.data());
  m.wide = TensorView(m.wide_values.data(), DType::f64, m.host.shape, m.host.rank);
}

TensorView LayerRun::view(const std::string& name, TensorView Memory::*which) {
  const LayerTensor& t = model_.layer.tensor(name);
  if (t.of.empty()) return memory(name).*which;
  const TensorView& base = memory(t.of).*which;
  const std::vector<i64> shape = extent_values(t.shape, extents_), strides = extent_values(t.strides, extents_);
  TensorView v(base.data, base.dtype, shape.data(), int(shape.size()), base.device);
  std::copy(strides.begin(), strides.end(), v.strides);
  for (const i64 offset : extent_values(t.offset, extents_)) v.data = static_cast<char*>(v.data) + offset * size_of(v.dtype);
  return v;
}

void LayerRun::args_of(const LayerCall& call, const Op& op, void* args, TensorView Memory::*which) {
  for (const auto& [argument, tensor] : call.args) {
    const int i = op.tensor_index(argument);
    if (i < 0) throw Error(ErrorKind::value, call.op, argument, "is no argument", "one that `quern info " + call.op + "` shows");
    op.tensor(args, size_t(i)) = view(tensor, which);
  }
  for (const auto& [attr, value] : call.attrs) {
    const int i = op.attr_index(attr);
    if (i < 0) throw Error(ErrorKind::value, call.op, attr, "is no attribute", "one that `quern info " + call.op + "` shows");
    set_attr(op.attrs[size_t(i)], args, value);
  }
}

/// Tensors with memory of their own that a call writes.
std::vector<std::string> LayerRun::written(const LayerCall& call, const Op& op) const {
  std::vector<std::string> names;
  for (const auto& [argument, tensor] : call.args) {
    const int i = op.tensor_index(argument);
    if (i < 0 || op.tensors[size_t(i)].role == Role::in) continue;
    const LayerTensor& t = model_.layer.tensor(tensor);
    const std::string& base = t.of.empty() ? t.name : t.of;
    if (std::find(names.begin(), names.end(), base) == names.end()) names.push_back(base);
  }
  return names;
}

void LayerRun::download(const std::string& base) {
  Memory& m = memory(base);
  if (m.device.data == m.host.data) return;
  device_.copy(m.host.data, m.device.data, size_t(m.host.numel()) * size_t(size_of(m.host.dtype)), {});
}

LayerStep LayerRun::step(size_t i, const std::function<double(const std::function<void()>&)>& time) {
  const LayerCall& call = model_.layer.calls[i];
  const Op& op = find_op(call.op);
  LayerStep step;
  step.does = call.does;
  step.op = call.op;
  ArgsStorage host(op), device(op), wide(op), nothing(op);
  args_of(call, op, host.get(), &Memory::host);
  args_of(call, op, device.get(), &Memory::device);
  args_of(call, op, wide.get(), &Memory::wide);

  // Truth on the actual inputs, and the whole-layer reference on its own
  const std::vector<Truth> truths = truth_of(op, host.get());
  op.reference(wide.get(), nothing.get());

  RunOptions options;
  options.device = &device_;
  const Problem problem = bind(op, device.get(), options);
  const Plan plan = make_plan(op, problem, device_.info());
  step.kernels = kernels_text(plan);
  step.cost = cost_of(op, problem, host.get());
  const i64 compiled = jit::counters().compiled;
  for (i32 k = 0; k < plan.count; ++k) jit::get(plan.launches[k].spec, device_, {});
  step.compiled = jit::counters().compiled > compiled;
  const auto run_once = [&] { run(op, device.get(), options); };
  const auto begin = std::chrono::steady_clock::now();
  run_once();
  device_.synchronize({});
  step.us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();

  for (const std::string& base : written(call, op)) download(base);
  for (const Truth& truth : truths) {
    const Comparison c = compare(op.tensor(host.get(), truth.tensor), truth.values, truth.magnitudes, budget_of(op, problem, truth.tensor));
    if (c.error >= step.comparison.error || !c.ok) step.comparison = c;
    if (!c.ok) break;
  }
  if (time) {
    step.us = time(run_once);
    for (const std::string& base : written(call, op)) {  // operands updated in place go back to what one run made of them
      Memory& m = memory(base);
      if (m.device.data != m.host.data) device_.copy(m.device.data, m.host.data, size_t(m.host.numel()) * size_t(size_of(m.host.dtype)), {});
    }
  }
  return step;
}

std::vector<LayerOutput> LayerRun::outputs() {
  std::vector<LayerOutput> list;
  for (const std::string& name : model_.layer.outputs) {
    const Memory& m = memory(name);
    std::vector<double> got(size_t(m.host.numel()));
    read_row(m.host.data, m.host.dtype, m.host.numel(), 1, got.data());
    double difference = 0, size = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      difference += (got[i] - m.wide_values[i]) * (got[i] - m.wide_values[i]);
      size += m.wide_values[i] * m.wide_values[i];
    }
    // Each call rounds its output once, an error of unit_roundoff / sqrt(3) in the mean square; independent roundings add in
    // quadrature and the layer passes each on with a gain of about one. Twice that is the bound.
    const double bound = 2 * unit_roundoff(m.host.dtype) * std::sqrt(double(model_.layer.calls.size()) / 3);
    list.push_back({name, std::sqrt(difference / size), size > 0 ? bound : 0});
  }
  return list;
}

}  // namespace quern::testing
