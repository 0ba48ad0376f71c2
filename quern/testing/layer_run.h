// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Runs the layer of a model file on a device, call by call, and judges it: each call on its actual inputs, and the layer's
// outputs against one reference of the whole layer in double.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quern/op/model.h"
#include "quern/testing/compare.h"
#include "quern/testing/truth.h"

namespace quern::testing {

struct LayerSizes {
  std::vector<i64> lengths = {37, 129, 256, 300};  ///< tokens of each request, those of this step included
  i64 page_size = 16;
  u64 seed = 1;
  std::vector<i64> queries = {};  ///< tokens of each request in this step; empty: one each
};

/// What one call of the layer did.
struct LayerStep {
  std::string does, op, kernels;
  bool compiled = false;  ///< a kernel was compiled now (else it was cached)
  double us = 0;          ///< of one run, without compiling
  Comparison comparison;  ///< the worst output, against the op's reference on the call's actual inputs
  Cost cost;
};

/// One output of the layer against the whole-layer reference: ||out - reference|| / ||reference||.
struct LayerOutput {
  std::string tensor;
  double relative_error = 0;
  double bound = 0;
  bool ok() const { return relative_error <= bound; }  // NaN is not <=
};

class LayerRun {
 public:
  /// Makes weights and activations from the seed (on all CPUs) and uploads them.
  LayerRun(const Model& model, const LayerSizes& sizes, Device& device);
  ~LayerRun();
  LayerRun(const LayerRun&) = delete;

  size_t steps() const { return model_.layer.calls.size(); }
  /// Runs call i and judges it. `time` runs the call it is given as often as it likes and returns microseconds; the state is
  /// put back afterwards.
  LayerStep step(size_t i, const std::function<double(const std::function<void()>&)>& time);
  /// After the last step: the layer's outputs.
  std::vector<LayerOutput> outputs();

  /// Query tokens of request b in this step.
  i64 queries(size_t b) const { return sizes_.queries.empty() ? 1 : sizes_.queries[b]; }
  const Layer& layer() const { return model_.layer; }
  /// The arguments of call i, with pointers to this object's memory: for runs that are timed, and for costs.
  ArgsStorage device_args(size_t i) { return args_of(i, &Memory::device); }
  ArgsStorage host_args(size_t i) { return args_of(i, &Memory::host); }
  /// Bytes of the operands of call i that other calls make: activations within the layer, those updated in place counted twice.
  double intermediate_bytes(size_t i);
  /// Puts the tensors that calls write back to what they were before the first one: generated contents, else NaN.
  void restore();
  /// Name and hash of each tensor that the first `calls` calls write, in the order in which they do so last, as the device holds it now.
  std::vector<std::pair<std::string, u64>> hashes(size_t calls);

 private:
  struct Memory {
    const LayerTensor* tensor;
    TensorView host;  ///< the device's contents as of the last download
    TensorView device;
    TensorView wide;  ///< f64, of the whole-layer reference; weights and indices are shared with host
    std::vector<char> host_bytes;
    std::vector<double> wide_values;
  };
  Memory& memory(const std::string& name) { return memories_.at(name); }
  void make(const LayerTensor& tensor);
  void fill(Memory& m);
  void make_wide(Memory& m);
  TensorView view(const std::string& name, TensorView Memory::* which);
  ArgsStorage args_of(size_t call, TensorView Memory::* which);
  void download(const std::string& base);
  void upload(const Memory& m);
  const LayerTensor& base_of(const std::string& tensor) const;
  std::vector<std::string> written(size_t begin, size_t end) const;

  Model model_;
  LayerSizes sizes_;
  Extents extents_;
  Device& device_;
  std::map<std::string, Memory> memories_;
};

}  // namespace quern::testing
