# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""JAX: an op is a call of the FFI in JAX's graph, eager and under jit alike. jax-tvm-ffi makes the target of the op's function."""
import functools

import jax
import numpy

from . import _arrays, _op
from ._library import library


def call(op, tensors, attributes, stream, options):
    """New arrays for what the op writes; tensors that it updates in place are copied by XLA where they are still needed."""
    schema = op.schema
    if stream is not None:
        raise TypeError(f"{op.id}: `stream` is given, expected none: JAX has streams of its own")
    if options.workspace is not None:
        raise TypeError(f"{op.id}: `workspace` is given, expected none with JAX")
    if options.hooks is not None:
        raise TypeError(f"{op.id}: `hooks`, `hook_params` or `hook_tensors` is given, expected none with JAX")
    wanted = []
    for i in schema.outputs:
        t, tensor = schema.tensors[i], tensors[i]
        if tensor is not None and not (t["optional"] and isinstance(tensor, bool)):
            raise TypeError(f"{op.id}: `{t['name']}` is given, expected none: arrays of JAX cannot be written, outputs are new ones")
        if not t["optional"] or tensor is True:
            wanted.append(i)
        tensors[i] = None
    inputs = [i for i, t in enumerate(schema.tensors) if t["role"] != "out" and tensors[i] is not None]
    for i in inputs:
        tensors[i] = _array(op, schema.tensors[i]["name"], tensors[i])
    updated = [i for i in schema.updated if tensors[i] is not None]
    shaped = list(tensors)
    for i in wanted:
        shaped[i] = _result(op, i, tensors, attributes, options.dtypes)
    _check(op, shaped, attributes, options)
    results = [shaped[i] for i in wanted]
    results += [jax.ShapeDtypeStruct(tensors[i].shape, tensors[i].dtype) for i in updated]
    target, names = _target(op.id, tuple(inputs), tuple(wanted + updated), options.device, options.variant, options.flags)
    aliases = {inputs.index(i): len(wanted) + n for n, i in enumerate(updated)}
    function = jax.ffi.ffi_call(target, results, input_output_aliases=aliases, vmap_method="sequential")
    kinds = {"f32": numpy.float32, "i32": numpy.int32, "i64": numpy.int64, "bool": bool}
    written = function(*(tensors[i] for i in inputs), **{n: kinds[a["type"]](a["words"].index(v) if isinstance(v, str) else v) for n, a, v in zip(names, schema.attributes, attributes)})
    return written[0] if len(written) == 1 else tuple(written)


def _array(op, name, array):
    if not isinstance(array, (jax.Array, numpy.ndarray)):
        raise TypeError(f"{op.id}: `{name}` is a {type(array).__name__}, expected an array of JAX or NumPy")
    _arrays.known_dtype(op, name, array.dtype)
    return jax.numpy.asarray(array)


def _result(op, output, tensors, attributes, dtypes):
    """None where the inputs do not tell: _check() then says what is wrong with them."""
    shape, dtype = _op.output_shape(op.schema, output, tensors, attributes), _op.output_dtype(op, output, tensors, dtypes)
    return None if shape is None or dtype is None else jax.ShapeDtypeStruct(shape, jax.numpy.dtype(_arrays.DTYPES[dtype]))


def _place(tensors, device):
    """Where the call runs, as DLPack's type and index: where the arrays lie. While JAX traces nobody knows: where `device` says, and the graph judges
    it when it runs, else on JAX's default device."""
    there = [d for t in tensors if isinstance(t, jax.Array) and not isinstance(t, jax.core.Tracer) for d in t.devices()]
    if not there and device:
        return (_arrays.CUDA, int(device[5:] or 0)) if device.startswith("cuda") else (_arrays.CPU, 0)
    default = jax.config.jax_default_device
    there = there or [jax.devices(default)[0] if default is None or isinstance(default, str) else default]
    return (_arrays.CPU, 0) if any(d.platform == "cpu" for d in there) else (_arrays.CUDA, there[0].local_hardware_id)


@functools.lru_cache(maxsize=None)
def _check_of(id_):
    return library().op_check(id_)


def _check(op, shaped, attributes, options):
    """What is wrong with the call is said where it is made, with its type: inside of the graph all errors are XLA's. Tensors have shapes and
    dtypes, no memory yet: an aligned address far from the others' stands for it."""
    device = _op.device_handle(op, options.device)
    place = _place(shaped, options.device)

    def handed(index, tensor):
        strides = [1]
        for n in reversed(tensor.shape[1:]):
            strides.insert(0, strides[0] * n)
        return library().tensor_at((index + 1) << 44, _arrays.dtype_name(tensor.dtype), tensor.shape, tuple(strides[len(strides) - len(tensor.shape):]), *place)

    _check_of(op.id)(*(None if t is None else handed(i, t) for i, t in enumerate(shaped)), *attributes, None, device, options.variant, options.flags)


@functools.lru_cache(maxsize=None)
def _target(id_, inputs, written, device, variant, flags):
    """Name of the FFI target for calls with these tensors, and the attributes' names in it."""
    try:
        import jax_tvm_ffi
    except ImportError as e:
        raise ImportError("arrays of JAX need jax-tvm-ffi: pip install 'quern[jax]'") from e
    schema = _op.by_id(id_).schema
    # Arguments arrive as inputs, written tensors, attributes. Tensors that are updated in place are taken from what is written.
    sources = [-1] * len(schema.tensors)
    for at, i in enumerate(inputs + written):
        sources[i] = at
    first = len(inputs) + len(written)
    sources += range(first, first + len(schema.attributes))
    names = [f"a{i}_{a['name']}" for i, a in enumerate(schema.attributes)]
    function = library().op_arranged(id_, tuple(sources), _op.device_handle(_op.by_id(id_).op, device), variant, flags)
    target = f"quern.{id_}.{len(_targets)}"
    order = ["args", "rets"] + ["attrs." + n for n in names]
    jax_tvm_ffi.register_ffi_target(target, function, order, platform="cpu")
    if jax.default_backend() == "gpu":
        jax_tvm_ffi.register_ffi_target(target, function, order, platform="gpu", allow_cuda_graph=True)
    _targets.append(function)  # JAX's graphs refer to them for as long as the process lives
    return target, names


_targets = []
