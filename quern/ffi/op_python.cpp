// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ffi/op_python.h"

#include <dlfcn.h>
#include <tvm/ffi/c_api.h>

#include <atomic>
#include <exception>
#include <mutex>

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
  Object* wrote;  // see take_class()
};

/// torch has two classes and what frameworks derive from its Parameter.
TakenClass g_taken[32];
std::atomic<size_t> g_taken_count = 0;
std::mutex g_taking;

/// Whether torch, of which a class was taken, records gradients, of its stable C interface: 5 ns, 45 by torch.is_grad_enabled(). Where
/// torch has it no more, it always may.
bool torch_records() {
  static const auto enabled = [] {
    void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    return torch ? reinterpret_cast<bool (*)()>(dlsym(torch, "aoti_torch_grad_mode_is_enabled")) : nullptr;
  }();
  return !enabled || enabled();
}

/// Whether a tensor wants a gradient, or does not say: the long way asks it again, and reports what it throws.
bool requires_grad(const Api& py, Object* tensor) {
  static Object* const name = py.unicode_intern_from_string("requires_grad");
  Object* const value = py.object_get_attr(tensor, name);
  if (!value) return true;
  const bool is_false = py.object_is_true(value) == 0;
  py.dec_ref(value);
  return !is_false;
}

/// Whether the call would be lost to torch's graph.
bool recorded(const Api& py, const Op& op, Object* const* values) {
  if (!torch_records()) return false;
  const size_t count = signature_tensors(op);
  for (size_t i = 0; i < count; ++i)
    if (values[i] != py.none && requires_grad(py, values[i])) return true;
  return false;
}

/// An object keeps its class alive.
Object* type_of(const Api& py, Object* object) {
  Object* type = py.object_type(object);
  py.dec_ref(type);
  return type;
}

const TakenClass* taken_class(Object* type) {
  const size_t count = g_taken_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i)
    if (g_taken[i].type == type) return &g_taken[i];
  return nullptr;
}

/// Whether torch says of a tensor that it stands for its negation, or does not say.
bool is_negated(const Api& py, Object* tensor) {
  static Object* const name = py.unicode_intern_from_string("is_neg");
  Object* const method = py.object_get_attr(tensor, name);
  Object* const value = method ? py.object_call_function_obj_args(method, nullptr) : nullptr;
  if (method) py.dec_ref(method);
  if (!value) return true;
  const bool is_false = py.object_is_true(value) == 0;
  py.dec_ref(value);
  return !is_false;
}

/// Tells the framework which of its tensors the call wrote; torch passes over those of its inference mode. False: that threw. Tensors that
/// only hooks read stand behind all that are written.
bool tell_written(const Api& py, const Op& op, Object* const* values, bool outputs_are_new, Object* wrote) {
  Object* written[kMaxTensors];
  ptrdiff_t count = 0;
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const Role role = op.tensors[i].role;
    if (role != Role::in && values[i] != py.none && (role == Role::inout || (role == Role::out && !outputs_are_new)))
      written[count++] = values[i];
  }
  if (count == 0) return true;
  Object* const tuple = py.tuple_new(count);
  if (!tuple) return false;
  for (ptrdiff_t i = 0; i < count; ++i) py.inc_ref(written[i]), py.tuple_set_item(tuple, i, written[i]);
  Object* const result = py.object_call_function_obj_args(wrote, tuple, nullptr);
  py.dec_ref(tuple);
  if (result) py.dec_ref(result);
  return result != nullptr;
}

/// Other threads run Python meanwhile: a call may compile, log to Python, or wait for room in a stream.
void run_without_gil(const Api& py, const Op& op, const void* args, const RunOptions& options) {
  void* const thread = py.save_thread();
  std::exception_ptr error;
  try {
    run(op, args, options);
  } catch (...) { error = std::current_exception(); }
  py.restore_thread(thread);  // ends the thread by unwinding where the interpreter is gone, so no error may be on its way
  if (error) std::rethrow_exception(error);
}

/// The exception of that name, or RuntimeError.
void set_error(const Api& py, const char* name, const std::string& text) {
  Object* const type = python::exception(name);
  Object* const words = py.unicode_decode_utf8(text.data(), ptrdiff_t(text.size()), "replace");
  if (words) py.err_set_object(type ? type : python::exception("RuntimeError"), words), py.dec_ref(words);
}

/// Whether torch may have the tensor stand for its negation. Those that do are imaginary parts of conjugates: they step over the real
/// parts. Of a dense one that torch._neg_view() makes nobody knows but torch, and to ask of each tensor would cost 60 ns.
bool may_be_negated(const TensorView& view) {
  const size_t size = size_t(size_of(view.dtype));
  if ((view.dtype != DType::f32 && view.dtype != DType::f16) || reinterpret_cast<uintptr_t>(view.data) % (2 * size) != size) return false;
  for (i32 d = 0; d < view.rank; ++d)
    if (view.shape[d] != 1 && view.strides[d] % 2 != 0) return false;
  return true;
}

/// The first tensor of a call, which says where it runs.
struct First {
  size_t index;
  const TakenClass* taken = nullptr;  // null: all are absent
};

/// False: an argument is not of a class that was taken, or its framework could not hand it over.
bool set_tensors(const Api& py, const Op& op, Object* const* values, void* args, First& first) {
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorDef& def = op.tensors[i];
    if (def.any_shape()) continue;
    Object* const value = *values++;
    if (def.optional && value == py.none) continue;
    const TakenClass* taken = taken_class(type_of(py, value));
    DLTensor tensor;
    if (!taken || taken->exchange->dltensor_from_py_object_no_sync(value, &tensor) != 0) return false;
    const TensorView& view = op.tensor(args, i) = view_of(tensor, op, def);
    if (may_be_negated(view) && is_negated(py, value)) return false;
    if (!first.taken) first = {i, taken};
  }
  return true;
}

/// False: the framework does not tell its stream.
bool set_place(const Op& op, const void* args, const First& first, RunOptions& options) {
  const TensorView& view = op.tensor(args, first.index);
  check_place(op, view, first.index, options);
  return view.device.type != DeviceType::cuda ||
         first.taken->exchange->current_work_stream(kDLCUDA, view.device.index, &options.stream.handle) == 0;
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

enum class Made { no, yes, threw };

Made call_with(const Api& py, const Op& op, Object* const* values, size_t count) {
  if (op.hooks) return Made::no;  // they may want bytes, which are an option
  const size_t tensors = signature_tensors(op), all = tensors + op.attrs.size();
  const bool outputs_are_new = count == all + 1 && py.object_is_true(values[all]) == 1;
  if (count != all + outputs_are_new) return Made::no;
  alignas(64) char args[kMostArgsBytes];
  op.construct(args);
  First first;
  if (!set_tensors(py, op, values, args, first)) return Made::no;
  if (first.taken && recorded(py, op, values)) return Made::no;
  for (size_t i = 0; i < op.attrs.size(); ++i)
    if (!set_attribute_to(py, op, op.attrs[i], values[tensors + i], args)) return Made::no;
  RunOptions options;
  if (first.taken && !set_place(op, args, first, options)) return Made::no;
  run_without_gil(py, op, args, options);
  return !first.taken || tell_written(py, op, values, outputs_are_new, first.taken->wrote) ? Made::yes : Made::threw;
}

/// `self` is the op's address.
Object* call(Object* self, Object* const* values, ptrdiff_t count) {
  const Api& py = *python::api();
  const Op& op = *static_cast<const Op*>(py.long_as_void_ptr(self));
  try {
    const Made made = call_with(py, op, values, size_t(count));
    if (made == Made::threw) return nullptr;
    if (made == Made::no) py.err_clear();
    return py.bool_from_long(made == Made::yes);
  } catch (const Error& e) {
    set_error(py, exception_name(e.kind()), e.what());
  } catch (const tvm::ffi::Error& e) {  // of Python, by a sink of the log
    set_error(py, std::string(e.kind()).c_str(), std::string(e.message()));
  } catch (const std::exception& e) { set_error(py, "RuntimeError", e.what()); }
  return nullptr;
}

}  // namespace

tvm::ffi::Any python_function(const Op& op) {
  check_args_fit(op);
  const Api* py = python::api();
  if (!py || !py->is_initialized()) return nullptr;
  const int gil = py->gil_ensure();
  auto* const method = new python::MethodDef{op.id.c_str(), call, python::kFastCall, nullptr};
  Object* const function = py->cfunction_new(method, py->long_from_void_ptr(const_cast<Op*>(&op)), nullptr);
  py->gil_release(gil);
  TVMFFIAny result = {};
  result.type_index = kTVMFFIOpaquePyObject;
  TVM_FFI_CHECK_SAFE_CALL(
      TVMFFIObjectCreateOpaque(function, kTVMFFIOpaquePyObject, [](void*) {}, reinterpret_cast<TVMFFIObjectHandle*>(&result.v_obj)));
  return tvm::ffi::details::AnyUnsafe::MoveTVMFFIAnyToAny(&result);
}

bool python::take_class(Object* type, Object* wrote) {
  const Api* py = api();
  if (!py || !py->is_initialized()) return false;
  const int gil = py->gil_ensure();
  static Object* const name = py->unicode_intern_from_string("__dlpack_c_exchange_api__");
  const DLPackExchangeAPI* exchange = nullptr;
  if (Object* capsule = py->object_get_attr(type, name)) {
    exchange = static_cast<const DLPackExchangeAPI*>(py->capsule_get_pointer(capsule, "dlpack_exchange_api"));
    py->dec_ref(capsule);
  }
  py->err_clear();
  py->gil_release(gil);  // free-threaded builds have none that would keep others out
  const std::lock_guard lock(g_taking);
  if (taken_class(type)) return true;
  const size_t count = g_taken_count.load(std::memory_order_relaxed);
  const bool taken = exchange && exchange->header.version.major == DLPACK_MAJOR_VERSION && exchange->dltensor_from_py_object_no_sync &&
                     exchange->current_work_stream && count < std::size(g_taken);
  if (taken) {
    g_taken[count] = {type, exchange, wrote};
    g_taken_count.store(count + 1, std::memory_order_release);
  }
  return taken;
}

}  // namespace quern::ffi
