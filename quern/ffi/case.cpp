// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Cases of quern's own checks for callers in Python: filled arguments by name, and the verdict after a call.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <nlohmann/json.hpp>

#include "quern/ffi/error.h"
#include "quern/ffi/tensor.h"
#include "quern/testing/host_case.h"

namespace quern::ffi {

namespace {

using tvm::ffi::Array;
using tvm::ffi::String;
using Json = nlohmann::ordered_json;

testing::HostCase& at(int64_t handle) { return *reinterpret_cast<testing::HostCase*>(handle); }

/// Up to `most` cases of an op with few bytes, each as words.
Array<String> cases(const String& id, int64_t most, double most_bytes) {
  return translated([&] {
    Array<String> list;
    for (const std::string& words : testing::small_cases(find_op(std::string(id)), size_t(most), most_bytes)) list.push_back(words);
    return list;
  });
}

/// Arguments of a case with its truth; case_close() frees them.
int64_t case_open(const String& id, const String& words, int64_t seed) {
  return translated([&] { return reinterpret_cast<int64_t>(new testing::HostCase(find_op(std::string(id)), words, u64(seed))); });
}

void case_close(int64_t handle) { delete &at(handle); }

Json number(const Scalar& value) { return value.is_real() ? Json(double(value)) : Json(value.integer()); }

/// {"tensors": {name: {"address", "dtype", "shape", "strides"} or null}, "attributes": {name: number}, "hook_params": bytes or
/// null, "batch_invariant", "variant"}.
String case_arguments(int64_t handle) {
  return translated([&] {
    const testing::HostCase& c = at(handle);
    Json j;
    for (size_t i = 0; i < c.op().tensors.size(); ++i) {
      if (c.op().tensors[i].any_shape()) continue;
      const TensorView v = c.tensor(i);
      Json& to = j["tensors"][c.op().tensors[i].name];
      if (v.present())
        to = {{"address", reinterpret_cast<int64_t>(v.data)},
              {"dtype", name(v.dtype)},
              {"shape", std::vector<i64>(v.shape, v.shape + v.rank)},
              {"strides", std::vector<i64>(v.strides, v.strides + v.rank)}};
    }
    j["attributes"] = Json::object();
    for (const AttrDef& a : c.op().attrs) j["attributes"][a.name] = number(c.attribute(a));
    const std::vector<u8> params = c.hook_params();
    j["hook_params"] = params.empty() ? Json() : Json(params);
    j["batch_invariant"] = c.options().batch_invariant;
    j["variant"] = c.options().variant ? Json(c.options().variant) : Json();
    return String(j.dump());
  });
}

/// Elements that a right call changes.
int64_t case_changed(int64_t handle) { return at(handle).changed(); }

/// What is wrong with the outputs and their surroundings; empty when they are right.
String case_judge(int64_t handle) {
  return translated([&] { return String(at(handle).judge()); });
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(cases, cases)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(case_open, case_open)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(case_close, case_close)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(case_arguments, case_arguments)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(case_changed, case_changed)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(case_judge, case_judge)

}  // namespace quern::ffi
