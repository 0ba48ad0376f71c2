// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ffi/op_call.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "quern/bench/host_time.h"
#include "quern/ffi/error.h"
#include "quern/ffi/tensor.h"
#include "quern/jit/hook_text.h"
#include "quern/op/call_device.h"
#include "quern/op/workspace.h"

namespace quern::ffi {

namespace {

using tvm::ffi::Any;
using tvm::ffi::AnyView;
using tvm::ffi::TypeIndex;

constexpr int kOptions = 5;  // stream, device, variant, flags, workspace

size_t hook_options(const Op& op) { return op.hooks_offset < 0 ? 0 : 2 + op.tensors.size() - signature_tensors(op); }
size_t most_options(const Op& op) { return kOptions + hook_options(op); }

bool is_none(const AnyView& value) { return value.type_index() == TypeIndex::kTVMFFINone; }

/// In words of any language: TVM-FFI has a type of its own for short strings.
std::string type_text(const AnyView& value) {
  const i32 type = value.type_index();
  if (type == TypeIndex::kTVMFFISmallStr || type == TypeIndex::kTVMFFIStr || type == TypeIndex::kTVMFFIRawStr) return "is a string";
  return "is a value of type " + std::string(value.GetTypeKey().c_str());
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_type(const Op& op, const std::string& argument, const AnyView& value,
                                                      const char* expected) {
  throw Error(ErrorKind::type, op.id, argument, type_text(value), expected);
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_count(const Op& op, int got) {
  const size_t least = signature_tensors(op) + op.attrs.size();
  throw Error(ErrorKind::type, op.id, "", "was called with " + std::to_string(got) + " arguments",
              std::to_string(least) + " to " + std::to_string(least + most_options(op)));
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_range(const Op& op, const AttrDef& attr, i64 got) {
  throw Error(ErrorKind::value, op.id, attr.name, "is " + std::to_string(got), "a 32-bit integer");
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_host(const Op& op, const TensorDef& def) {
  throw Error(ErrorKind::value, op.id, def.name, "is on the host",
              "a GPU's memory, or that the emulated device is chosen by QN_DEVICE=emu or device=\"emu\"");
}

}  // namespace

size_t signature_tensors(const Op& op) {
  return size_t(std::count_if(op.tensors.begin(), op.tensors.end(), [](const TensorDef& t) { return !t.any_shape(); }));
}

void check_place(const Op& op, const TensorView& first, size_t index, const RunOptions& options) {
  if (first.device.type == DeviceType::cpu && !options.device && !emulation_chosen()) fail_host(op, op.tensors[index]);
}

void set_attribute(const Op& op, const AttrDef& attr, const AnyView& value, void* args) {
  char* at = static_cast<char*>(args) + attr.offset;
  const i32 type = value.type_index();
  if (!attr.words.empty() && type != TypeIndex::kTVMFFIInt) {
    const auto word = value.try_cast<tvm::ffi::String>();
    if (!word) fail_type(op, attr.name, value, attr.words_text().c_str());
    const int named = attr.value_named(word->c_str());
    if (named < 0) throw Error(ErrorKind::value, op.id, attr.name, std::string("is '") + word->c_str() + "'", attr.words_text());
    return void(*reinterpret_cast<i32*>(at) = named);
  }
  if (attr.kind == AttrDef::Kind::f32) {
    if (type == TypeIndex::kTVMFFIFloat) return void(*reinterpret_cast<float*>(at) = float(value.cast<double>()));
    if (type == TypeIndex::kTVMFFIInt) return void(*reinterpret_cast<float*>(at) = float(value.cast<int64_t>()));
    fail_type(op, attr.name, value, "a number");
  }
  if (attr.kind == AttrDef::Kind::boolean) {
    if (type != TypeIndex::kTVMFFIBool) fail_type(op, attr.name, value, "True or False");
    *reinterpret_cast<bool*>(at) = value.cast<bool>();
    return;
  }
  if (type != TypeIndex::kTVMFFIInt) fail_type(op, attr.name, value, "an integer");
  const i64 number = value.cast<int64_t>();
  if (attr.kind == AttrDef::Kind::i64) return void(*reinterpret_cast<i64*>(at) = number);
  if (number < std::numeric_limits<i32>::min() || number > std::numeric_limits<i32>::max()) fail_range(op, attr, number);
  *reinterpret_cast<i32*>(at) = i32(number);
}

namespace {

TensorView& set_tensor(const Op& op, size_t i, const AnyView& value, void* args) {
  const auto tensor = value.try_cast<DLTensor*>();
  if (!tensor) fail_type(op, op.tensors[i].name, value, "a tensor");
  return op.tensor(args, i) = view_of(**tensor, op, op.tensors[i]);
}

/// The first present tensor, which says where the call runs; null when all are absent.
const TensorView* set_tensors(const Op& op, const AnyView* values, void* args, size_t* index) {
  const TensorView* first = nullptr;
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    if (op.tensors[i].any_shape()) continue;
    const AnyView& value = *values++;
    if (is_none(value)) continue;
    const TensorView& view = set_tensor(op, i, value, args);
    if (!first) first = &view, *index = i;
  }
  return first;
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_params(const Op& op, std::string got, std::string expected) {
  throw Error(ErrorKind::value, op.id, "hook_params", std::move(got), std::move(expected));
}

/// The bytes for the hooks of a call; null hooks: it has none.
void set_hook_params(const Op& op, const jit::Hooks* hooks, const AnyView& value, void* args) {
  const bool own = hooks == op.hooks && op.hook_params_used >= 0;  // then it is stated how many they read
  const i32 used = own ? op.hook_params_used : op.hook_params_bytes;
  const std::string bytes = (own ? "" : "at most ") + std::to_string(used) + " bytes";
  if (is_none(value)) {
    if (hooks && (own ? used > 0 : jit::use_of(*hooks).params))
      fail_params(op, "is missing", bytes + ", which the hooks " + hooks->name + " read");
    return;
  }
  const auto given = value.try_cast<tvm::ffi::Bytes>();
  if (!given) fail_type(op, "hook_params", value, "bytes");
  if (!hooks) fail_params(op, "is given", "none, as the call has no hooks");
  if (own ? given->size() != size_t(used) : given->size() > size_t(used))
    fail_params(op, "has " + std::to_string(given->size()) + " bytes", bytes);
  if (const jit::HookUse use = jit::use_of(*hooks); !own && size_t(use.params_bytes) > given->size())
    fail_params(op, "has " + std::to_string(given->size()) + " bytes",
                "at least " + std::to_string(use.params_bytes) + ", which the hooks " + hooks->name + " read");
  std::memcpy(static_cast<char*>(args) + op.hook_params_offset, given->data(), given->size());
}

/// `values`: hooks, their bytes, their tensors, as far as there are `count`.
void set_hooks(const Op& op, const AnyView* values, int count, void* args) {
  if (op.hooks_offset < 0) return;
  const jit::Hooks* hooks = nullptr;
  if (count > 0 && !is_none(values[0])) {
    if (values[0].type_index() != TypeIndex::kTVMFFIInt) fail_type(op, "hooks", values[0], "None or a handle that hooks() gave");
    hooks = reinterpret_cast<const jit::Hooks*>(values[0].cast<int64_t>());
    std::memcpy(static_cast<char*>(args) + op.hooks_offset, &hooks, sizeof hooks);
  }
  set_hook_params(op, hooks ? hooks : op.hooks, count > 1 ? values[1] : AnyView(nullptr), args);
  int at = 2;
  for (size_t i = 0; i < op.tensors.size() && at < count; ++i)
    if (op.tensors[i].any_shape() && !is_none(values[at++])) set_tensor(op, i, values[at - 1], args);
}

void* handle_of(const Op& op, const AnyView& value) {
  if (value.type_index() == TypeIndex::kTVMFFIInt) return reinterpret_cast<void*>(value.cast<int64_t>());
  if (value.type_index() == TypeIndex::kTVMFFIOpaquePtr) return value.cast<void*>();
  fail_type(op, "stream", value, "None or the handle of a CUDA stream");
}

void set_workspace(const Op& op, const AnyView& value, const TensorView& first, RunOptions& options) {
  const auto tensor = value.try_cast<DLTensor*>();
  if (!tensor) fail_type(op, "workspace", value, "a tensor of bytes");
  TensorDef def;
  def.name = "workspace", def.rank = 1, def.extents_text = "bytes", def.dtypes = {DType::u8, DType::e4m3, DType::e5m2};
  const TensorView view = view_of(**tensor, op, def);
  if (view.rank != 1 || !view.contiguous() || size_of(view.dtype) != 1 || !(view.device == first.device))
    throw Error(ErrorKind::value, op.id, "workspace",
                "is " + std::string(name(view.dtype)) + " " + shape_string(view) +
                    (view.device == first.device ? "" : " on another device than the tensors"),
                "dense bytes [bytes] beside the tensors");
  options.workspace = {view.data, view.shape[0]};
}

void set_options(const Op& op, const AnyView* values, int count, const TensorView& first, RunOptions& options, std::string& variant) {
  if (count > 1)
    if (const i64 device = values[1].cast<int64_t>()) options.device = reinterpret_cast<Device*>(device);
  if (count > 2 && !is_none(values[2])) {
    const auto text = values[2].try_cast<tvm::ffi::String>();
    if (!text) fail_type(op, "backend", values[2], "None or the name of a variant");
    variant = text->c_str();
    options.variant = variant.c_str();
  }
  if (count > 3) {
    const i64 flags = values[3].cast<int64_t>();
    options.batch_invariant = flags & kBatchInvariant;
    options.pdl = flags & kPdl;
    options.skip_check = flags & kSkipCheck;
  }
  if (count > 4 && !is_none(values[4])) set_workspace(op, values[4], first, options);
}

void set_stream(const Op& op, const AnyView* values, int count, const TensorView& first, RunOptions& options) {
  const bool asked = count > 0 && !is_none(values[0]);
  if (first.device.type == DeviceType::cuda) {
    options.stream.handle = asked ? handle_of(op, values[0]) : TVMFFIEnvGetStream(kDLCUDA, first.device.index);
  } else if (asked && handle_of(op, values[0]) != nullptr) {
    throw Error(ErrorKind::value, op.id, "stream", "is a CUDA stream, but the tensors are on the host", "None");
  }
}

/// Steps 1 and 2 of a call.
void check(const Op& op, const void* args, const RunOptions& options) {
  const Problem problem = bind(op, args, options);
  const Device& device = device_of_call(op, problem, options);
  if (!problem.empty) make_plan(op, problem, device.info());
}

template <class Step>
void call(const Op& op, const AnyView* values, int count, const Step& step) {
  const size_t tensors = signature_tensors(op), least = tensors + op.attrs.size();
  if (size_t(count) < least || size_t(count) > least + most_options(op)) fail_count(op, count);
  alignas(64) char args[kMostArgsBytes];
  op.construct(args);
  size_t index = 0;
  const TensorView* first = set_tensors(op, values, args, &index);
  for (size_t i = 0; i < op.attrs.size(); ++i) set_attribute(op, op.attrs[i], values[tensors + i], args);
  set_hooks(op, values + least + kOptions, count - int(least) - kOptions, args);
  RunOptions options;
  std::string variant;
  if (first) {  // else bind says which tensor is missing
    const AnyView* rest = values + least;
    set_options(op, rest, count - int(least), *first, options, variant);
    set_stream(op, rest, count - int(least), *first, options);
    check_place(op, *first, index, options);
  }
  try {
    step(op, args, options);
  } catch (const Error& e) {
    if (e.argument() == "variant") throw Error(e.kind(), e.op(), "backend", e.got(), e.expected());  // Python's name of it
    throw;
  }
}

/// step(op, args, options) with the arguments of a call.
template <class Step>
tvm::ffi::Function packed(const Op& op, const Step& step) {
  return tvm::ffi::Function::FromPacked(
      [&op, step](const AnyView* args, int32_t count, Any*) { translated([&] { call(op, args, count, step); }); });
}

}  // namespace

void check_args_fit(const Op& op) {
  if (op.args_bytes > kMostArgsBytes)
    throw Error(ErrorKind::internal, op.id, "", "has Args of " + std::to_string(op.args_bytes) + " bytes",
                "at most " + std::to_string(kMostArgsBytes));
}

tvm::ffi::Function op_function(const Op& op) {
  check_args_fit(op);
  return packed(op, run);
}

tvm::ffi::Function op_check(const Op& op) {
  check_args_fit(op);
  return packed(op, check);
}

tvm::ffi::Function op_workspace(const Op& op) {
  check_args_fit(op);
  return tvm::ffi::Function::FromPacked([&op](const AnyView* values, int32_t count, Any* result) {
    translated([&] {
      call(op, values, count,
           [&](const Op&, const void* args, const RunOptions& options) { *result = workspace_bytes(op, args, options); });
    });
  });
}

tvm::ffi::Function op_host_time(const Op& op, int batches) {
  check_args_fit(op);
  return tvm::ffi::Function::FromPacked([&op, batches](const AnyView* values, int32_t count, Any* result) {
    translated([&] {
      call(op, values, count, [&](const Op&, const void* args, const RunOptions& options) {
        const Problem problem = bind(op, args, options);
        if (problem.empty) return void(*result = tvm::ffi::Array<double>{});
        const bench::HostTime time = bench::host_time(op, args, options, device_of_call(op, problem, options), 10, batches);
        *result = tvm::ffi::Array<double>{time.call_us, time.launch_us};
      });
    });
  });
}

tvm::ffi::Function arranged(const Op& op, const tvm::ffi::Shape& sources, i64 device, const tvm::ffi::Optional<tvm::ffi::String>& variant,
                            i64 flags) {
  check_args_fit(op);
  return tvm::ffi::Function::FromPacked(
      [&op, from = std::vector<i64>(sources.begin(), sources.end()), device, variant, flags](const AnyView* args, int32_t count, Any*) {
        std::vector<AnyView> values;
        for (const i64 source : from) values.push_back(source >= 0 && source < count ? args[source] : AnyView(nullptr));
        values.insert(values.end(), {AnyView(nullptr), AnyView(device), AnyView(variant), AnyView(flags)});
        translated([&] { call(op, values.data(), int(values.size()), run); });
      });
}

}  // namespace quern::ffi
