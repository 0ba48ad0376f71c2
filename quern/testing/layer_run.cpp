// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/layer_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>

#include "quern/base/hash.h"
#include "quern/base/host_dtype.h"
#include "quern/base/log.h"
#include "quern/jit/kernel_table.h"
#include "quern/op/schema.h"
#include "quern/testing/check.h"
#include "quern/testing/parallel.h"
#include "quern/testing/rows.h"

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
  if (model.layer.calls.empty())
    throw Error(ErrorKind::value, "", "model", "has no decode_layer", "a model file with one, as llama-3.1-8b");
  const i64 longest = *std::max_element(sizes.lengths.begin(), sizes.lengths.end());
  extents_ = model.geometry;
  const i64 batch = i64(sizes.lengths.size());
  extents_["batch"] = batch;
  extents_["tokens"] = 0;
  for (size_t b = 0; b < sizes.lengths.size(); ++b) extents_["tokens"] += queries(b);
  extents_["page_size"] = sizes.page_size;
  extents_["max_pages"] = ceil_div(longest, sizes.page_size);
  extents_["pages"] = extents_["max_pages"] * batch + 2;
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
  else if (holds == "lengths") std::copy(sizes_.lengths.begin(), sizes_.lengths.end(), words);
  else if (holds == "requests" || holds == "positions") {
    for (size_t b = 0; b < sizes_.lengths.size(); ++b)
      for (i64 i = 0; i < queries(b); ++i) *words++ = i32(holds == "requests" ? i64(b) : sizes_.lengths[b] - queries(b) + i);
  } else if (holds == "q_indptr") {
    i64 token = 0;
    for (i64 b = 0; b < count; token += b + 1 < count ? queries(size_t(b)) : 0, ++b) words[b] = i32(token);
  } else if (holds == "shuffled_pages") {
    std::vector<i32> pages(static_cast<size_t>(extents_["pages"]));
    std::iota(pages.begin(), pages.end(), 0);
    Random random(seed);
    for (size_t i = pages.size(); i > 1; --i) std::swap(pages[i - 1], pages[size_t(random.below(i64(i)))]);
    std::copy(pages.begin(), pages.begin() + count, words);
  } else if (!holds.empty()) {
    throw Error(ErrorKind::value, model_.name, m.tensor->name, "holds '" + holds + "'",
                "weights, norm_weights, activations, requests, positions, lengths, q_indptr or shuffled_pages");
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

TensorView LayerRun::view(const std::string& name, TensorView Memory::* which) {
  const LayerTensor& t = model_.layer.tensor(name);
  if (t.of.empty()) return memory(name).*which;
  const TensorView& base = memory(t.of).*which;
  const std::vector<i64> shape = extent_values(t.shape, extents_), strides = extent_values(t.strides, extents_);
  TensorView v(base.data, base.dtype, shape.data(), int(shape.size()), base.device);
  std::copy(strides.begin(), strides.end(), v.strides);
  for (const i64 offset : extent_values(t.offset, extents_)) v.data = static_cast<char*>(v.data) + offset * size_of(v.dtype);
  return v;
}

ArgsStorage LayerRun::args_of(size_t i, TensorView Memory::* which) {
  const LayerCall& call = model_.layer.calls[i];
  const Op& op = find_op(call.op);
  ArgsStorage args(op);
  for (const auto& [argument, tensor] : call.args) {
    const int i = op.tensor_index(argument);
    if (i < 0) throw Error(ErrorKind::value, call.op, argument, "is no argument", "one that `quern info " + call.op + "` shows");
    if (sizes_.queries.empty() && base_of(tensor).holds == "q_indptr") continue;  // one query token a request
    op.tensor(args.get(), size_t(i)) = view(tensor, which);
  }
  for (const auto& [attr, value] : call.attrs) {
    const int i = op.attr_index(attr);
    if (i < 0) throw Error(ErrorKind::value, call.op, attr, "is no attribute", "one that `quern info " + call.op + "` shows");
    try {
      set_attr(op.attrs[size_t(i)], args.get(), value);
    } catch (const Error& e) { throw e.in_call(call.op); }
  }
  return args;
}

/// The tensor whose memory a tensor lies in.
const LayerTensor& LayerRun::base_of(const std::string& tensor) const {
  const LayerTensor& t = model_.layer.tensor(tensor);
  return t.of.empty() ? t : model_.layer.tensor(t.of);
}

/// Tensors with memory of their own that calls [begin, end) write, in the order in which they do so last.
std::vector<std::string> LayerRun::written(size_t begin, size_t end) const {
  std::vector<std::string> names;
  for (size_t c = begin; c < end; ++c) {
    const Op& op = find_op(model_.layer.calls[c].op);
    for (const auto& [argument, tensor] : model_.layer.calls[c].args) {
      const int i = op.tensor_index(argument);
      if (i < 0 || op.tensors[size_t(i)].role == Role::in) continue;
      const std::string& base = base_of(tensor).name;
      std::erase(names, base);
      names.push_back(base);
    }
  }
  return names;
}

double LayerRun::intermediate_bytes(size_t c) {
  const LayerCall& call = model_.layer.calls[c];
  const Op& op = find_op(call.op);
  double bytes = 0;
  for (const auto& [argument, tensor] : call.args) {
    if (!base_of(tensor).holds.empty()) continue;
    const TensorView v = view(tensor, &Memory::host);
    const bool updated = op.tensors[size_t(op.tensor_index(argument))].role == Role::inout;
    bytes += double(v.numel()) * size_of(v.dtype) * (updated ? 2 : 1);
  }
  return bytes;
}

static size_t bytes_of(const TensorView& v) { return size_t(v.numel()) * size_t(size_of(v.dtype)); }

void LayerRun::download(const std::string& base) {
  Memory& m = memory(base);
  if (m.device.data != m.host.data) device_.copy(m.host.data, m.device.data, bytes_of(m.host), {});
}

void LayerRun::upload(const Memory& m) {
  if (m.device.data != m.host.data) device_.copy(m.device.data, m.host.data, bytes_of(m.host), {});
}

void LayerRun::restore() {
  for (const std::string& base : written(0, steps())) {
    Memory& m = memory(base);
    if (m.tensor->holds.empty()) parallel_fill(m.host.data, 0xFF, bytes_of(m.host));
    else fill(m);
    upload(m);
  }
  device_.synchronize({});
}

std::vector<std::pair<std::string, u64>> LayerRun::hashes(size_t calls) {
  std::vector<std::pair<std::string, u64>> all;
  for (const std::string& base : written(0, calls)) {
    download(base);
    device_.synchronize({});
    all.emplace_back(base, hash64(memory(base).host.data, bytes_of(memory(base).host)));
  }
  return all;
}

/// Pieces of an op's rows, of which its reference takes each alone, on all CPUs; one piece where rows cannot be cut out.
static void each_piece(const Op& op, const void* args, const std::function<void(i64 begin, i64 end)>& f) {
  const i64 rows = outputs_can_be_sliced(op, args) ? row_count(op, args) : 0;
  if (rows < 2) return f(0, -1);
  in_parallel(rows, 1, f);
}

static ArgsStorage piece_of(const Op& op, const ArgsStorage& args, i64 begin, i64 end) {
  ArgsStorage piece = args;
  if (end >= 0) keep_rows(op, piece.get(), begin, end);
  return piece;
}

/// truth_of, by pieces of rows: those of an output with rows lie behind each other.
static std::vector<Truth> truth_by_pieces(const Op& op, const ArgsStorage& args) {
  std::mutex mutex;
  std::map<i64, std::vector<Truth>> pieces;
  each_piece(op, args.get(), [&](i64 begin, i64 end) {
    std::vector<Truth> truths = truth_of(op, piece_of(op, args, begin, end).get());
    const std::lock_guard lock(mutex);
    pieces[begin] = std::move(truths);
  });
  std::vector<Truth> all;
  for (auto& [begin, truths] : pieces) {
    if (all.empty()) {
      all = std::move(truths);
      continue;
    }
    for (size_t t = 0; t < all.size(); ++t) {
      all[t].values.insert(all[t].values.end(), truths[t].values.begin(), truths[t].values.end());
      all[t].magnitudes.insert(all[t].magnitudes.end(), truths[t].magnitudes.begin(), truths[t].magnitudes.end());
    }
  }
  return all;
}

LayerStep LayerRun::step(size_t i, const std::function<double(const std::function<void()>&)>& time) {
  const LayerCall& call = model_.layer.calls[i];
  const Op& op = find_op(call.op);
  LayerStep step;
  step.does = call.does;
  step.op = call.op;
  ArgsStorage host = host_args(i), device = device_args(i);
  const ArgsStorage wide = args_of(i, &Memory::wide), nothing(op);

  // Truth on the actual inputs, and the whole-layer reference on its own
  const std::vector<Truth> truths = truth_by_pieces(op, host);
  each_piece(op, wide.get(), [&](i64 begin, i64 end) {
    op.reference(piece_of(op, wide, begin, end).get(), nothing.get(), piece_of(op, host, begin, end).get());
  });

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

  for (const std::string& base : written(i, i + 1)) download(base);
  for (const Truth& truth : truths) {
    const Comparison c = compare(op.tensor(host.get(), truth.tensor), truth.values, truth.magnitudes, budget_of(op, problem, truth.tensor));
    if (c.error >= step.comparison.error || !c.ok) step.comparison = c;
    if (!c.ok) break;
  }
  if (time) {
    step.us = time(run_once);
    // Operands updated in place go back to what one run made of them
    for (const std::string& base : written(i, i + 1)) upload(memory(base));
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
