# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What the functions of this package share: calls of ops with FlashInfer's words in their errors, and refusals of options that no op has.

torch is imported when a function is called, not before: the package can be imported where torch is not installed."""
import re

from quern import _check


class _Torch:
    """The module torch, imported at its first use."""

    def __getattr__(self, name):
        import torch

        value = getattr(torch, name)
        setattr(self, name, value)  # the next time it is found without this function
        return value


torch = _Torch()


def call(where, op, names=None, **arguments):
    """op(**arguments). Its errors name FlashInfer's function, and by `names`, {argument of the op: FlashInfer's}, FlashInfer's arguments."""
    try:
        return op(**arguments)
    except (ValueError, TypeError, NotImplementedError) as e:
        text = str(e).removeprefix(op.id + ": ")
        for ours, theirs in (names or {}).items():
            text = re.sub(f"`{ours}`", f"`{theirs}`", text)
        raise type(e)(f"flashinfer.{where}: {text}") from None


def tensor(where, name, value, dims=None):
    """The value, which is a tensor of so many dims; else a TypeError or ValueError."""
    if not isinstance(value, torch.Tensor):
        _check.fail_type(f"flashinfer.{where}", name, value, "a tensor")
    if dims is not None and value.dim() not in (dims if isinstance(dims, tuple) else (dims,)):
        raise ValueError(f"flashinfer.{where}: `{name}` has shape {list(value.shape)}, expected {' or '.join(map(str, dims)) if isinstance(dims, tuple) else dims} dims")
    return value


def integers(where, name, value):
    """The tensor, which is of integers: a fraction would be cut without a word."""
    if value.dtype.is_floating_point or value.dtype.is_complex or value.dtype == torch.bool:
        raise TypeError(f"flashinfer.{where}: `{name}` is {str(value.dtype)[6:]}, expected integers")
    return value


def rows(where, name, value):
    """A tensor [..., n] as [rows, n]. It is the same memory: a ValueError where the strides do not allow that."""
    tensor(where, name, value)
    if value.dim() == 2:
        return value
    try:
        return value.view(-1, value.size(-1))
    except (RuntimeError, IndexError):
        raise ValueError(f"flashinfer.{where}: `{name}` has shape {list(value.shape)} and strides {list(value.stride())}, expected one stride for all rows") from None


def refuse(where, reason, **options):
    """NotImplementedError for the first option that is asked for: neither None, False nor 0."""
    for name, value in options.items():
        if value is not None and value is not False and not (isinstance(value, (int, float)) and value == 0):
            raise NotImplementedError(f"flashinfer.{where}: `{name}` is {_check.got(value)}, expected it left out: {reason}")


def one_of(where, name, value, allowed, reason=""):
    """ValueError for a word that FlashInfer does not have; `allowed` maps those that are refused to the reason, and others to None."""
    if not isinstance(value, (str, int)):
        _check.fail_type(f"flashinfer.{where}", name, value, "one of " + ", ".join(map(repr, allowed)))
    if value not in allowed:
        _check.fail_value(f"flashinfer.{where}", name, repr(value), ", ".join(map(repr, allowed)))
    if allowed[value]:
        raise NotImplementedError(f"flashinfer.{where}: `{name}` is {value!r}: {allowed[value]}")
    return value


def hint(where, name, value):
    """An option that changes no result, and by which quern chooses nothing: None, True or False."""
    if value is not None:
        _check.boolean(f"flashinfer.{where}", name, value)


def restated(where, tensors=(), integers=()):
    """What says once more what other arguments say: pairs of a name and None, or a tensor or an integer."""
    for name, value in tensors:
        if value is not None:
            tensor(where, name, value)
    for name, value in integers:
        if value is not None:
            _check.integer(f"flashinfer.{where}", name, value, 0, 2**63 - 1)


def result_of(where, out, out_dtype, otherwise):
    """`out` or `out_dtype` as an op takes them. A dtype that is asked for beside `out` is that of `out`."""
    if out_dtype is not None and not isinstance(out_dtype, torch.dtype):
        _check.fail_type(f"flashinfer.{where}", "out_dtype", out_dtype, "a dtype of torch")
    if out is None:
        return {"out_dtype": out_dtype or otherwise}
    if out_dtype not in (None, tensor(where, "out", out).dtype):
        raise ValueError(f"flashinfer.{where}: `out_dtype` is {str(out_dtype)[6:]}, expected {str(out.dtype)[6:]}, the dtype of `out`, or None")
    return {"out": out}


def asked(backends=None):
    """Decorates a function that FlashInfer lets programs ask where it runs. `backends`: {FlashInfer's word of a kernel: None, or why there is none}, where it has several;
    quern's own kernels run on every GPU from sm_80 on. A compute capability is a number as 90."""
    def add(function):
        def runs_on(cc):
            return _check.integer(f"flashinfer.{function.__name__}.is_compute_capability_supported", "cc", cc, 0, 10**6) >= 80

        def has(backend):
            return backend != "auto" and (backends or {}).get(backend, "no word of this function") is None

        def is_backend_supported(backend, cc=None):
            if backends is None:
                raise ValueError(f"flashinfer.{function.__name__}.is_backend_supported: `backend` is {backend!r}, expected no call: the function has no such choice")
            return has(backend) and (cc is None or runs_on(cc))

        function.is_backend_supported, function.is_compute_capability_supported, function.has_backend, function.has_backend_choices = is_backend_supported, runs_on, has, lambda: backends is not None
        return function

    return add


def refusing(name, reason):
    """A function for programs that import the name and may never call it."""
    def function(*arguments, **keywords):
        raise NotImplementedError(f"flashinfer.{name}: {reason}")

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Raises NotImplementedError: {reason}."
    return function


def refusing_class(name, reason):
    """The same for a class."""
    def init(self, *arguments, **keywords):
        raise NotImplementedError(f"flashinfer.{name}: {reason}")

    return type(name.rpartition(".")[2], (), {"__init__": init, "__doc__": f"Raises NotImplementedError: {reason}."})
