// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/providers.h"

#include <utility>

#include "quern/bench/cublas.h"
#include "quern/bench/stream.h"

namespace quern::bench {

namespace {

/// The view of a tensor by its name in the schema; absent ones are default-made.
TensorView tensor_named(const Op& op, const void* args, const char* name) {
  const int i = op.tensor_index(name);
  return i < 0 ? TensorView{} : op.tensor(args, size_t(i));
}

/// Of a contiguous operand, whichever dimension that is along; else `refuse`.
template <class Refuse>
Major major_of(const TensorView& v, const Refuse& refuse) {
  if (v.contiguous()) return Major::k;
  TensorView turned = v;
  std::swap(turned.shape[0], turned.shape[1]);
  std::swap(turned.strides[0], turned.strides[1]);
  if (!turned.contiguous()) refuse("on contiguous operands only");
  return Major::mn;
}

/// gemm.dense without a bias, c and activation.
std::function<void()> make_cublaslt(const Op& op, const void* args, Device& device) {
  const TensorView a = tensor_named(op, args, "a"), b = tensor_named(op, args, "b"), out = tensor_named(op, args, "out");
  const auto refuse = [&](const char* why) { throw Error(ErrorKind::unsupported, op.id, "", std::string("cuBLASLt is timed ") + why, ""); };
  if (tensor_named(op, args, "bias").present() || tensor_named(op, args, "c").present()) refuse("without a bias and c only");
  if (const int i = op.attr_index("activation"); i >= 0 && attr_value(op.attrs[size_t(i)], args) != 0) refuse("without an activation only");
  const Major a_major = major_of(a, refuse), b_major = major_of(b, refuse);
  if (!out.contiguous()) refuse("on contiguous operands only");
  struct State {
    State(Device& device, const TensorView& a, const TensorView& b, DType out, Major a_major, Major b_major)
        : matmul(device, a.shape[0], b.shape[0], a.shape[1], a.dtype, out, a_major, b_major),
          workspace(device, CublasLtMatmul::kWorkspaceBytes, "cuBLASLt's workspace") {}
    CublasLtMatmul matmul;
    DeviceMemory workspace;
  };
  const auto state = std::make_shared<State>(device, a, b, out.dtype, a_major, b_major);
  return [=] { state->matmul.run(a.data, b.data, out.data, state->workspace.data(), {}); };
}

constexpr Provider kProviders[] = {
    {"cublaslt", "gemm.dense", cublaslt_available, make_cublaslt, CublasLtMatmul::description},
};

}  // namespace

std::span<const Provider> providers() { return kProviders; }

const Provider* find_provider(const std::string& name, const Op& op) {
  std::string known;
  bool named = false;
  for (const Provider& p : kProviders) {
    if (p.name == name && p.op == op.id) return &p;
    named |= p.name == name;
    if (known.find(p.name) == std::string::npos) known += (known.empty() ? "" : ", ") + std::string(p.name);
  }
  if (!named) throw Error(ErrorKind::value, "", "peer", "is '" + name + "'", "one of " + known);
  return nullptr;
}

}  // namespace quern::bench
