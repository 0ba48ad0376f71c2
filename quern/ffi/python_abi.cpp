// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/ffi/python_abi.h"

#include <dlfcn.h>

#include <string>

namespace quern::ffi::python {

namespace {

/// Whether all of the table was found.
bool fill(Api& py) {
  const struct {
    const char* name;
    void* slot;
  } entries[] = {
      {"PyObject_Type", &py.object_type},
      {"PyObject_GetAttr", &py.object_get_attr},
      {"PyObject_IsTrue", &py.object_is_true},
      {"PyCFunction_NewEx", &py.cfunction_new},
      {"PyCapsule_GetPointer", &py.capsule_get_pointer},
      {"PyTuple_New", &py.tuple_new},
      {"PyTuple_SetItem", &py.tuple_set_item},
      {"PyObject_CallFunctionObjArgs", &py.object_call_function_obj_args},
      {"Py_IncRef", &py.inc_ref},
      {"Py_DecRef", &py.dec_ref},
      {"PyBool_FromLong", &py.bool_from_long},
      {"PyLong_FromVoidPtr", &py.long_from_void_ptr},
      {"PyLong_AsVoidPtr", &py.long_as_void_ptr},
      {"PyLong_AsLongLong", &py.long_as_long_long},
      {"PyFloat_AsDouble", &py.float_as_double},
      {"PyUnicode_AsUTF8AndSize", &py.unicode_as_utf8_and_size},
      {"PyUnicode_InternFromString", &py.unicode_intern_from_string},
      {"PyUnicode_DecodeUTF8", &py.unicode_decode_utf8},
      {"PyErr_Occurred", &py.err_occurred},
      {"PyErr_Clear", &py.err_clear},
      {"PyErr_SetObject", &py.err_set_object},
      {"Py_IsInitialized", &py.is_initialized},
      {"PyEval_SaveThread", &py.save_thread},
      {"PyEval_RestoreThread", &py.restore_thread},
      {"PyGILState_Ensure", &py.gil_ensure},
      {"PyGILState_Release", &py.gil_release},
      {"_Py_NoneStruct", &py.none},
      {"PyBool_Type", &py.bool_type},
      {"PyLong_Type", &py.long_type},
      {"PyFloat_Type", &py.float_type},
      {"PyUnicode_Type", &py.unicode_type},
  };
  for (const auto& entry : entries)
    if (!(*static_cast<void**>(entry.slot) = dlsym(RTLD_DEFAULT, entry.name))) return false;
  return true;
}

}  // namespace

const Api* api() {
  static Api table;
  static const bool filled = fill(table);
  return filled ? &table : nullptr;
}

Object* exception(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, ("PyExc_" + std::string(name)).c_str());
  return found ? *static_cast<Object**>(found) : nullptr;
}

}  // namespace quern::ffi::python
