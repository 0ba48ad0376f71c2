// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ffi/op_python.h"

#include <dlfcn.h>
#include <tvm/ffi/c_api.h>

#include <atomic>

#include "quern/ffi/error.h"
#include "quern/ffi/op_call.h"
#include "quern/ffi/tensor.h"

namespace quern::ffi {

namespace {

using python::Api;
using python::Object;
using tvm::ffi::AnyView;

struct TakenClass {
  Object* type;
  const DLPackExchangeAPI* exchange;
};

/// torch has two classes and what frameworks derive from its Parameter.
TakenClass g_taken[32];
std::atomic<size_t> g_taken_count = 0;
Object* g_requires_grad = nullptr;  // the attribute's name

/// Whether torch records gradients, of its stable C interface: 5 ns, 45 by torch.is_grad_enabled(). Where torch has it no more, it always may.
bool torch_records() {
  static const auto enabled = [] {
    void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    return torch ? reinterpret_cast<bool (*)()>(dlsym(torch, "aoti_torch_grad_mode_is_enabled")) : nullptr;
  }();
  return !enabled || enabled();
}

/// Whether a tensor of a framework wants a gradient.
bool requires_grad(const Api& py, Object* tensor) {
  Object* const value = py.object_get_attr(tensor, g_requires_grad);
  if (!value) return py.err_clear(), false;
  const bool is_true = py.object_is_true(value) == 1;
  py.dec_ref(value);
  return is_true;
}

/// Whether the call would be lost to torch's graph.
bool recorded(const Api& py, const Op& op, Object* const* values) {
  if (!torch_records()) return false;
  for (size_t i = 0; i < op.tensors.size(); ++i)
    if (op.tensors[i].role != Role::out && values[i] != py.none && requires_grad(py, values[i])) return true;
  return false;
}

/// An object keeps its class alive.
Object* type_of(const Api& py, Object* object) {
  Object* type = py.object_type(object);
  py.dec_ref(type);
  return type;
}

const DLPackExchangeAPI* exchange_of(Object* type) {
  const size_t count = g_taken_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i)
    if (g_taken[i].type == type) return g_taken[i].exchange;
  return nullptr;
}

/// Other threads run Python meanwhile: a call may compile, log to Python, or wait for room in a stream.
class WithoutGil {
 public:
  explicit WithoutGil(const Api& py) : py_(py), thread_(py.save_thread()) {}
  ~WithoutGil() noexcept(false) { py_.restore_thread(thread_); }  // ends the thread by unwinding where the interpreter is gone
  WithoutGil(const WithoutGil&) = delete;

 private:
  const Api& py_;
  void* thread_;
};

/// The first tensor of a call, which says where it runs.
struct First {
  size_t index;
  const DLPackExchangeAPI* exchange = nullptr;  // null: all are absent
};

/// False: an argument is not of a class that was taken, or its framework could not hand it over.
bool set_tensors(const Api& py, const Op& op, Object* const* values, void* args, First& first) {
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorDef& def = op.tensors[i];
    if (def.optional && values[i] == py.none) continue;
    const DLPackExchangeAPI* exchange = exchange_of(type_of(py, values[i]));
    DLTensor tensor;
    if (!exchange || exchange->dltensor_from_py_object_no_sync(values[i], &tensor) != 0) return false;
    op.tensor(args, i) = view_of(tensor, op, def);
    if (!first.exchange) first = {i, exchange};
  }
  return true;
}

/// False: the framework does not tell its stream.
bool set_place(const Op& op, const void* args, const First& first, RunOptions& options) {
  const TensorView& view = op.tensor(args, first.index);
  check_place(op, view, first.index, options);
  return view.device.type != DeviceType::cuda || first.exchange->current_work_stream(kDLCUDA, view.device.index, &options.stream.handle) == 0;
}

/// False: the value is of none of Python's own types, or does not fit into 64 bits.
bool set_attribute_to(const Api& py, const Op& op, const AttrDef& attr, Object* value, void* args) {
  const Object* type = type_of(py, value);
  if (type == py.float_type) return set_attribute(op, attr, AnyView(py.float_as_double(value)), args), true;
  if (type == py.bool_type) return set_attribute(op, attr, AnyView(py.long_as_long_long(value) != 0), args), true;
  if (type == py.long_type) {
    const long long number = py.long_as_long_long(value);
    if (number == -1 && py.err_occurred()) return false;
    return set_attribute(op, attr, AnyView(int64_t(number)), args), true;
  }
  if (type != py.unicode_type || attr.words.empty()) return false;
  const char* word = py.unicode_as_utf8_and_size(value, nullptr);
  if (!word) return false;
  return set_attribute(op, attr, AnyView(word), args), true;
}

bool call_with(const Api& py, const Op& op, Object* const* values, size_t count) {
  if (count != op.tensors.size() + op.attrs.size() || recorded(py, op, values)) return false;
  alignas(64) char args[kMostArgsBytes];
  op.construct(args);
  First first;
  if (!set_tensors(py, op, values, args, first)) return false;
  for (size_t i = 0; i < op.attrs.size(); ++i)
    if (!set_attribute_to(py, op, op.attrs[i], values[op.tensors.size() + i], args)) return false;
  RunOptions options;
  if (first.exchange && !set_place(op, args, first, options)) return false;
  const WithoutGil released(py);
  run(op, args, options);
  return true;
}

/// `self` is the op's address.
Object* call(Object* self, Object* const* values, ptrdiff_t count) {
  const Api& py = *python::api();
  const Op& op = *static_cast<const Op*>(py.long_as_void_ptr(self));
  try {
    const bool made = call_with(py, op, values, size_t(count));
    if (!made) py.err_clear();
    return py.bool_from_long(made);
  } catch (const Error& e) {
    py.err_set_string(python::exception(exception_name(e.kind())), e.what());
  } catch (const std::exception& e) {
    py.err_set_string(python::exception("RuntimeError"), e.what());
  }
  return nullptr;
}

}  // namespace

tvm::ffi::Any python_function(const Op& op) {
  check_args_fit(op);
  const Api* py = python::api();
  if (!py) return nullptr;
  const int gil = py->gil_ensure();
  g_requires_grad = py->unicode_intern_from_string("requires_grad");
  auto* const method = new python::MethodDef{op.id.c_str(), call, python::kFastCall, nullptr};
  Object* const function = py->cfunction_new(method, py->long_from_void_ptr(const_cast<Op*>(&op)), nullptr);
  py->gil_release(gil);
  TVMFFIAny result = {};
  result.type_index = kTVMFFIOpaquePyObject;
  TVM_FFI_CHECK_SAFE_CALL(TVMFFIObjectCreateOpaque(function, kTVMFFIOpaquePyObject, [](void*) {}, reinterpret_cast<TVMFFIObjectHandle*>(&result.v_obj)));
  return tvm::ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(&result);
}

bool python::take_class(Object* type) {
  const Api* py = api();
  if (!py) return false;
  const int gil = py->gil_ensure();
  const DLPackExchangeAPI* exchange = nullptr;
  if (Object* capsule = py->object_get_attr(type, py->unicode_intern_from_string("__dlpack_c_exchange_api__"))) {
    exchange = static_cast<const DLPackExchangeAPI*>(py->capsule_get_pointer(capsule, "dlpack_exchange_api"));
    py->dec_ref(capsule);
  }
  py->err_clear();
  const size_t count = g_taken_count.load(std::memory_order_relaxed);
  const bool taken = exchange && exchange->header.version.major == DLPACK_MAJOR_VERSION && exchange->dltensor_from_py_object_no_sync && exchange->current_work_stream &&
                     count < std::size(g_taken);
  if (taken) {
    g_taken[count] = {type, exchange};
    g_taken_count.store(count + 1, std::memory_order_release);
  }
  py->gil_release(gil);
  return taken;
}

}  // namespace quern::ffi
