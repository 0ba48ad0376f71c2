// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What op_python.cpp calls of Python's stable ABI (https://docs.python.org/3/c-api/stable.html), found in the process that runs: the
// binding links with no Python, so one wheel serves all its releases, and hosts of TVM-FFI without a Python load it too.
#pragma once
#include <cstddef>

namespace quern::ffi::python {

/// PyObject. Nobody looks inside: where its fields are differs between builds of Python.
struct Object;

/// PyMethodDef of a function with METH_FASTCALL.
struct MethodDef {
  const char* name;
  Object* (*function)(Object* self, Object* const* args, ptrdiff_t count);
  int flags;
  const char* doc;
};
constexpr int kFastCall = 0x80;

/// The interpreter's entry points; the member object_type is PyObject_Type, and so on. Functions that return an Object* return a new
/// reference.
struct Api {
  template <class Result, class... Arguments>
  using Call = Result (*)(Arguments...);

  Call<Object*, Object*> object_type;
  Call<Object*, Object*, Object*> object_get_attr;
  Call<int, Object*> object_is_true;
  Call<Object*, MethodDef*, Object*, Object*> cfunction_new;  // PyCFunction_NewEx
  Call<void*, Object*, const char*> capsule_get_pointer;
  Call<Object*, ptrdiff_t> tuple_new;
  Call<int, Object*, ptrdiff_t, Object*> tuple_set_item;            // takes the reference
  Object* (*object_call_function_obj_args)(Object* callable, ...);  // arguments, then null
  Call<void, Object*> inc_ref, dec_ref;

  Call<Object*, long> bool_from_long;
  Call<Object*, void*> long_from_void_ptr;
  Call<void*, Object*> long_as_void_ptr;
  Call<long long, Object*> long_as_long_long;
  Call<double, Object*> float_as_double;
  Call<const char*, Object*, ptrdiff_t*> unicode_as_utf8_and_size;
  Call<Object*, const char*> unicode_intern_from_string;
  Call<Object*, const char*, ptrdiff_t, const char*> unicode_decode_utf8;

  Call<Object*> err_occurred;
  Call<void> err_clear;
  Call<void, Object*, Object*> err_set_object;

  Call<int> is_initialized;
  Call<void*> save_thread;
  Call<void, void*> restore_thread;
  Call<int> gil_ensure;
  Call<void, int> gil_release;

  Object *none, *bool_type, *long_type, *float_type, *unicode_type;
};

/// Null where the process has no interpreter, or one whose symbols are not public.
const Api* api();

/// A builtin exception's class by its name, as "ValueError"; null: there is none.
Object* exception(const char* name);

}  // namespace quern::ffi::python
