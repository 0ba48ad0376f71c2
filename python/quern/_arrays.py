# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Frameworks whose arrays quern takes: how each hands memory over, allocates, names dtypes and its current stream. None is imported
before an array of it is seen."""
import contextlib
import ctypes
import functools
import numbers
import sys

from . import _check
from ._library import library

# quern's names of dtypes and everybody else's.
DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
          "i32": "int32", "i64": "int64", "u8": "uint8", "f64": "float64", "i8": "int8"}
_NAMES = {theirs: ours for ours, theirs in DTYPES.items()}
_SIZES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2}  # others: 1
CPU, CUDA = 1, 2  # DLPack's device types


def size_of(dtype):
    """Bytes of an element."""
    return _SIZES.get(dtype, 1)


# Classes that TVM-FFI itself takes without a step of Python: see _op._SOURCE.
HANDED_OVER = set()
_by_type = {}


def dtype_name(dtype):
    """quern's name of a dtype of any framework, or the framework's own where quern has none."""
    if not isinstance(dtype, str):
        dtype = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype).rsplit(".", 1)[-1]
    return _NAMES.get(dtype, dtype)


def dtype_text(word):
    """A dtype that is expected, as errors show it. Frameworks have several e4m3: which one is meant is said by their name."""
    if word.startswith("like "):
        return f"that of `{word[5:]}`"
    return f"{word} ({DTYPES[word]})" if DTYPES[word].startswith("float8") else word


def known_dtype(op, name, dtype):
    """The same of what a call has by that name; TypeError for a dtype that quern does not have."""
    ours = dtype_name(dtype)
    if ours not in DTYPES:
        words = [dtype_text(w) for w in op.schema.dtypes_of(name)]
        raise TypeError(f"{op.id}: `{name}` is {ours}, expected " + " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words))
    return ours


def handle_of(where, stream):
    """A stream's handle: torch, CuPy and numba name it differently. TypeError for what has none."""
    if stream is None:
        return None
    if isinstance(stream, numbers.Integral) and not isinstance(stream, bool):
        return ctypes.c_int64(_check.integer(where, "stream", stream, 0, 2**64 - 1)).value
    for name in ("cuda_stream", "ptr", "handle"):
        handle = getattr(stream, name, None)
        if handle is not None:
            handle = getattr(handle, "value", handle) or 0
            return handle_of(where, handle) if isinstance(handle, numbers.Integral) else _check.fail_type(where, "stream." + name, handle, "the handle of a CUDA stream")
    if not hasattr(stream, "__cuda_stream__"):  # which TVM-FFI knows
        _check.fail_type(where, "stream", stream, "None, a CUDA stream or its handle")
    return stream


class Arrays:
    """A framework. This one is any other that has __dlpack__."""

    call = None  # in the place of Op.run()
    judges = False  # whether call() looks at the attributes itself

    def hand_over(self, op, name, array):
        """What TVM-FFI takes for the array."""
        self.check(op, name, array)
        return array

    def check_writable(self, op, name, array):
        pass

    def check(self, op, name, array):
        """ValueError for an array that could not be handed over, or would be as another; TypeError for what is none."""
        if not hasattr(array, "__dlpack__"):
            raise TypeError(f"{op.id}: `{name}` is a {type(array).__name__}, expected a tensor (anything that has __dlpack__)")

    def wrote(self, arrays):
        """Arrays that were there before a call wrote them."""

    def empty_columns(self, shape, dtype, like, multiple):
        """Column by column; from one column to the next it is a multiple of so many elements."""
        rows, columns = shape
        return self.empty((columns, -(-rows // multiple) * multiple), dtype, like).T[:rows]

    def stream(self):
        """The current stream; None: TVM-FFI knows it."""
        return None


class Numpy(Arrays):
    """NumPy's arrays by address, not by DLPack: that has no bf16 and fp8 of ml_dtypes and no arrays that are read-only."""

    def __init__(self):
        import numpy

        self.module = numpy

    def _place(self, array):
        return array.ctypes.data, CPU, 0

    def check(self, op, name, array):
        pass

    def hand_over(self, op, name, array, dtype=None):
        dtype = dtype or known_dtype(op, name, array.dtype)
        size = array.dtype.itemsize
        if not array.dtype.isnative:
            raise TypeError(f"{op.id}: `{name}` has dtype {array.dtype.str}, expected this machine's byte order")
        if any(s % size for s in array.strides):
            raise ValueError(f"{op.id}: `{name}` has strides of {array.strides} bytes, expected multiples of the element's {size}")
        address, kind, index = self._place(array)
        return library().tensor_at(address, dtype, array.shape, tuple(s // size for s in array.strides), kind, index)

    def check_writable(self, op, name, array):
        if not array.flags.writeable:
            raise ValueError(f"{op.id}: `{name}` is read-only, expected an array that may be written")

    def dtype(self, dtype):
        if dtype in ("bf16", "e4m3", "e5m2"):
            import ml_dtypes

            return getattr(ml_dtypes, DTYPES[dtype])
        return self.module.dtype(DTYPES[dtype])

    def on_device_of(self, array):
        return contextlib.nullcontext()

    def empty(self, shape, dtype, like):
        with self.on_device_of(like):
            return self.module.empty(shape, self.dtype(dtype))


class Cupy(Numpy):
    def __init__(self):
        import cupy

        self.module = cupy

    def _place(self, array):
        return array.data.ptr, CUDA, array.device.id

    def check_writable(self, op, name, array):
        pass

    def on_device_of(self, array):
        return array.device

    def stream(self):
        return self.module.cuda.get_current_stream().ptr


class Typed:
    """An array of NumPy or CuPy whose bytes are another dtype's: quern.typed()."""

    def __init__(self, array, dtype):
        if dtype_name(dtype) not in DTYPES:
            raise TypeError(f"typed: `dtype` is {dtype_name(dtype)}, expected one of {', '.join(map(dtype_text, DTYPES))}")
        if not isinstance(of_one(array), Numpy):
            raise TypeError(f"typed: `array` is a {type(array).__name__}, expected an array of NumPy or CuPy")
        self.array, self.dtype = array, dtype_name(dtype)
        size = size_of(self.dtype)
        if array.dtype.itemsize != size:
            raise TypeError(f"typed: `array` has elements of {array.dtype.itemsize} bytes, expected {size} of {self.dtype}")

    @property
    def shape(self):
        return self.array.shape

    @property
    def T(self):
        return Typed(self.array.T, self.dtype)

    def __getitem__(self, index):
        return Typed(self.array[index], self.dtype)


class TypedArrays(Arrays):
    """Those of one framework, NumPy or CuPy."""

    def __init__(self, arrays):
        self.arrays = arrays

    def check(self, op, name, array):
        pass

    def hand_over(self, op, name, array):
        return self.arrays.hand_over(op, name, array.array, array.dtype)

    def check_writable(self, op, name, array):
        self.arrays.check_writable(op, name, array.array)

    def empty(self, shape, dtype, like):
        with self.arrays.on_device_of(like.array):
            return Typed(self.arrays.module.empty(shape, f"u{size_of(dtype)}"), dtype)

    def stream(self):
        return self.arrays.stream()


def _increment_version(torch):
    """What tells autograd that tensors of a tuple were written: else a backward pass would take what they hold now for what they held."""
    try:
        torch._C._increment_version(())  # 0.1 us less than the function that is documented
        return torch._C._increment_version
    except (AttributeError, TypeError, RuntimeError):  # torch before 2.7 takes one tensor
        return lambda tensors: [torch.autograd.graph.increment_version(t) for t in tensors]


class Torch(Arrays):
    """Where torch records gradients an op is a node of its graph, which quern.torch makes."""

    def __init__(self):
        import torch

        from . import _op

        self.module = torch
        self.wrote = _increment_version(torch)
        self.is_batched = torch._C._functorch.is_batchedtensor
        _op.trace_with(_torch=torch, _recording=torch.is_grad_enabled)

    def call(self, op, tensors, attributes, stream, options):
        if self.module.is_grad_enabled() and any(getattr(tensors[i], "requires_grad", False) for i in op.schema.real):
            from . import torch

            return torch.recorded(op, tensors, attributes, stream, options)
        return op.run(self, tensors, attributes, stream, options)

    def check(self, op, name, tensor):
        if tensor.is_meta:
            wrong = "is on torch's meta device, where tensors have no memory, expected one on a GPU or the host"
        elif self.is_batched(tensor):
            wrong = "is one that torch.func.vmap maps over, expected a tensor: ops are not mapped, give them all rows at once"
        elif tensor.layout != self.module.strided or tensor.is_nested:
            wrong = f"is {'nested' if tensor.is_nested else tensor.layout}, expected a dense tensor: x.to_dense(), x.to_padded_tensor()"
        elif tensor.is_neg():
            wrong = "stands for the negation of what its memory holds (torch.Tensor.is_neg()), expected x.resolve_neg()"
        else:
            return
        raise ValueError(f"{op.id}: `{name}` {wrong}")

    def empty(self, shape, dtype, like):
        return self.module.empty(shape, dtype=getattr(self.module, DTYPES[dtype]), device=like.device)


class Fake(Torch):
    """torch's tensors without memory, by which make_fx and passes of torch.compile trace a function: an op is a node of their graph."""

    judges = True  # integers may be symbols

    def call(self, op, tensors, attributes, stream, options):
        from . import torch

        return torch.traced(op, tensors, attributes, stream, options)


class Jax(Arrays):
    """Arrays are values: outputs are new ones, and an op is a call in JAX's graph."""

    def __init__(self):
        from . import _jax

        self.call = _jax.call

    def check(self, op, name, array):
        pass

    def check_writable(self, op, name, array):
        raise TypeError(f"{op.id}: `{name}` is an array of JAX, which cannot be written, expected one that can")


OTHER = Arrays()
_by_type[bool] = OTHER  # an optional output that is wanted


def _is(cls, module, *names):
    """Whether cls is one of a framework's array types, if the framework is there at all."""
    loaded = sys.modules.get(module)
    return loaded is not None and any(issubclass(cls, getattr(loaded, n)) for n in names if hasattr(loaded, n))


@functools.lru_cache(maxsize=None)
def _torch():
    """One for all its classes, which the function in C refers to for as long as the process lives."""
    return Torch()


def _find(cls):
    if _is(cls, "torch._subclasses.fake_tensor", "FakeTensor"):
        return Fake()
    if _is(cls, "torch", "Tensor"):
        HANDED_OVER.add(cls)
        arrays = _torch()
        # Tensors of a class with a dispatch of its own, as torch's fake ones, may have no memory.
        if cls.__torch_dispatch__ is sys.modules["torch"].Tensor.__torch_dispatch__:
            library().take_python_class(id(cls), id(arrays.wrote))
        return arrays
    if _is(cls, "jax", "Array") or _is(cls, "jax.core", "Tracer"):
        return Jax()
    if _is(cls, "cupy", "ndarray"):
        return Cupy()
    if _is(cls, "numpy", "ndarray"):
        return Numpy()
    return OTHER


def seen(*arrays):
    """Looks at the classes that were not looked at yet, so that the function in C takes them the next time: torch's Parameter behind its Tensor."""
    for array in arrays:
        if array is not None and type(array) not in _by_type:
            of_one(array)


def of_one(array):
    cls = type(array)
    arrays = _by_type.get(cls)
    if cls is Typed:
        return TypedArrays(of_one(array.array))
    if arrays is None:
        arrays = _find(cls)
        if arrays is not OTHER:  # its framework may be loaded later
            _by_type[cls] = arrays
    return arrays


def first_of(op, tensors):
    """The tensor whose framework allocates: the first input that is there."""
    for t, tensor in zip(op.schema.tensors, tensors):
        if t["role"] != "out" and tensor is not None:
            return tensor
    return None


def of(op, tensors):
    """The framework of a call: JAX where any tensor is of it, else that of the first input."""
    for tensor in tensors:
        if tensor is not None and isinstance(of_one(tensor), Jax):
            return of_one(tensor)
    return of_one(first_of(op, tensors))
