# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Ops as functions of Python, made from their schemas: Python binds the arguments by itself, and a call with outputs given is a few comparisons
and one call in C."""
import functools
import inspect
import json
import operator
import os
import re
import sys

from . import _arrays, _check
from ._library import library
from ._schema import Schema, evaluate, names_of


@functools.lru_cache(maxsize=None)
def flags_function():
    """What or-s the flags of a call together. The library is asked for them once: not in a call that torch traces."""
    of_batch_invariant, of_pdl, of_skip_check = (int(flag) for flag in library().call_flags())

    def flags_of(id_, batch_invariant, pdl, skip_check):
        for name, value in (("batch_invariant", batch_invariant), ("pdl", pdl), ("skip_check", skip_check)):
            if value is not True and value is not False:
                raise TypeError(f"{id_}: `{name}` is {value!r}, expected True or False")
        return (of_batch_invariant if batch_invariant else 0) | (of_pdl if pdl else 0) | (of_skip_check if skip_check else 0)

    return flags_of


@functools.lru_cache(maxsize=None)
def _device(name):
    return library().device(name)


def device_handle(op, name):
    """What the library's functions take for a device. ValueError for one that is none."""
    try:
        return _device(name) if name else 0
    except (ValueError, RuntimeError) as e:
        raise type(e)(f"{op.id}: {e}") from None


def device_name(op, device):
    """As QN_DEVICE names it; a number is a GPU's, a torch.device says its name. `op`: or the name of what is called."""
    if device is None or isinstance(device, str):
        return device
    if isinstance(device, int) and not isinstance(device, bool):
        return f"cuda:{device}"
    if type(device).__module__ == "torch" and type(device).__name__ == "device":
        return str(device)
    raise TypeError(f"{getattr(op, 'id', op)}: `device` is a {type(device).__name__}, expected None, a name as in QN_DEVICE ('cuda:1', 'emu'), the number of a GPU or a torch.device")


class Options:
    """What a call carries beside tensors, attributes and the stream. `hooks`: hooks, their bytes and their tensors, or None."""

    __slots__ = ("device", "backend", "flags", "workspace", "dtypes", "hooks")

    def __init__(self, device, backend, flags, workspace, dtypes, hooks=None):
        self.device, self.backend, self.flags, self.workspace, self.dtypes, self.hooks = device, backend, flags, workspace, dtypes, hooks

    @property
    def variant(self):
        return None if self.backend in (None, "auto") else self.backend


# Two functions of an op. The second is the one that is called. With no option asked for, tensors of torch go to one function in C
# (quern/ffi/op_python.h), and what that does not take to the first. Options are no parameters of the second: each that is not given would cost 15 ns.
# The first knows two more short ways, for tensors that a framework hands over by itself: one call of TVM-FFI, and one for each output that is not
# given. Everything else is Op.call(), which takes 10 us more. Functions and not an object with __call__: through that a call takes 250 ns more.
_SOURCE = """
def {name}({signature}):
    if _compiling():
        return _traced("{id}", [{tensors}], [{attributes}], stream, device, backend, _flags("{id}", batch_invariant, pdl, skip_check), workspace, {dtypes}{hooks})
    if type({first}) in _handed_over and device is None and backend == "auto" and batch_invariant is pdl is skip_check is False and stream is None and workspace is None{no_hooks} \\
            and not (_recording() and ({recorded})):
        _seen({tensors})
        if {given}:
            _direct({tensors}, {attributes}) or _handed([{tensors}], [{attributes}])
            return {returned}
        if {left_out}:
            try:
                {allocated}
            except (AttributeError, IndexError, RuntimeError):  # no tensor, one of another rank, a nested one: Op.call() says so
                pass
            else:
                _direct({tensors}, {attributes}True) or _handed([{tensors}], [{attributes}])
                return {returned}
    return _call([{tensors}], ({attributes}), stream, _Options(device, backend, _flags("{id}", batch_invariant, pdl, skip_check), workspace, {dtypes}{hooks}))

_any = {name}

def {name}({positional}, **_options):
    if {written}stream is None and not _options and not _tracing() and _direct({tensors}, {attributes}):
        return {returned}
    return _any({positions}, **_options)
"""


def _function_of(op):
    """The Python function of an op."""
    schema = op.schema
    names = [t["name"] for t in schema.tensors]
    first = next((t["name"] for t in schema.tensors if t["role"] != "out" and not t["optional"]), names[0])
    # What is written and of another type than the first tensor may not be writable (JAX): the long way looks at it.
    given = [f"({names[i]} is None or type({names[i]}) is type({first}))" if schema.tensors[i]["optional"] else f"type({names[i]}) is type({first})"
             for i in schema.returned if names[i] != first]
    written = "".join(f"{names[i]} is not None and " for i in schema.outputs if not schema.tensors[i]["optional"])
    given += [f"{names[i]}_dtype is None" for i in schema.choosable]
    left_out, allocated = _allocation(schema, first)
    source = _SOURCE.format(
        name=schema.name, id=op.id, signature=schema.signature(), positional=schema.signature(positional=True), positions=", ".join(p.name for p in schema.parameters() if not p.keyword_only),
        first=first, given=" and ".join(given) or "True", written=written, tensors=", ".join(names), attributes="".join(a["name"] + ", " for a in schema.attributes),
        recorded=_any_requires_grad(schema), left_out=left_out, allocated=allocated, returned=_returned(schema),
        hooks=_hooks(schema), no_hooks="".join(f" and {name} is None" for name, *_ in schema.hook_options),
        dtypes="{" + ", ".join(f"{i}: {names[i]}_dtype" for i in schema.choosable) + "}")
    scope = {"_handed_over": _arrays.HANDED_OVER, "_seen": _arrays.seen, "_direct": library().op_python(op.id) or _no, "_handed": op.handed_over, "_call": op.call, "_Options": Options, "_flags": flags_function(), "_present": present, **_tracing}
    _scopes.append(scope)
    exec(compile(source, f"<quern {op.id}>", "exec"), scope)
    function = scope[schema.name]
    function.__module__, function.__doc__ = "quern." + schema.family, schema.docstring()
    function.__wrapped__ = scope["_any"]  # whose signature help() shows
    function.op, function.id, function.schema, function.backends = op, op.id, schema, list(schema.variants)
    function.is_backend_supported, function.is_compute_capability_supported = op.is_backend_supported, op.is_compute_capability_supported
    function.workspace_bytes = op.workspace_bytes
    return function


def _hooks(schema):
    """Source of one more argument: what a call of an op that takes hooks has for them."""
    given = [name for name, *_ in schema.hook_options]
    if not given:
        return ""
    return f", None if {' and '.join(name + ' is None' for name in given)} else ({'' if 'hooks' in given else 'None, '}{', '.join(given)})"


def _returned(schema):
    """Source of what a call returns: a tensor, or a tuple of those that are there."""
    tensors = [schema.tensors[i] for i in schema.returned]
    optional = [t["name"] for t in tensors if t["optional"]]
    source = lambda names: names[0] if len(names) == 1 else f"({', '.join(names)})"  # noqa: E731
    everything = source([t["name"] for t in tensors])
    if not optional:
        return everything
    sure = [t["name"] for t in tensors if not t["optional"]]
    if len(optional) == 1 and sure:  # 0.5 us less than the call
        return f"{source(sure)} if {optional[0]} is None else {everything}"
    return f"_present({', '.join(t['name'] for t in tensors)})"


def _allocation(schema, first):
    """Source for tensors of torch: whether all outputs are left out, and what then allocates those that are always there. Never, where one has not
    extents and dtype of inputs that are always there, or lies column by column."""
    left_out = [f"type({schema.tensors[i]['name']}) is type({first})" for i in schema.updated if schema.tensors[i]["name"] != first]
    left_out += [f"{schema.tensors[i]['name']} is None" for i in schema.outputs] + [f"{schema.tensors[i]['name']}_dtype is None" for i in schema.choosable]
    statements = []
    for t in (schema.tensors[i] for i in schema.outputs if not schema.tensors[i]["optional"]):
        of_dtype, extents = _like(schema, t, first), [_extent(schema, e) for e in t["axes"]]
        if of_dtype is None or None in extents or t["column_bytes"]:
            return "False", "pass"
        # One tensor's shape as it is takes 0.5 us less than its parts.
        same = next((o["name"] for o in schema.tensors if extents == [f"{o['name']}.shape[{d}]" for d in range(len(o["axes"]))]), None)
        statements.append(f"{t['name']} = " + of_dtype.format(same + ".shape" if same else f"({', '.join(extents)},)"))
    return (" and ".join(left_out), "; ".join(statements)) if statements else ("False", "pass")


def _like(schema, output, first):
    """Source of an empty tensor with an output's standard dtype, {} for its shape; None where that is the dtype of what may be absent."""
    dtype = output["dtypes"][0]
    if not dtype.startswith("like "):
        return f"{first}.new_empty({{}}, dtype=_torch.{_arrays.DTYPES[dtype]})"
    other = schema.tensors[schema.index[dtype[5:]]]
    if other["role"] == "out":
        return _like(schema, other, first)
    return None if other["optional"] else f"{other['name']}.new_empty({{}})"


def _extent(schema, extent):
    """Source of an output's extent, from an input that is always there; None where that is no plain multiple."""
    if extent["formula"]:
        return None
    if extent["axis"] is None:
        return str(extent["offset"])
    for i, _, d, factor, offset in schema.sources.get(extent["axis"], ()):
        if not schema.tensors[i]["optional"] and extent["divisor"] == 1 and extent["offset"] == offset == 0:
            size = f"{schema.tensors[i]['name']}.shape[{d}]" + (f" // {factor}" if factor != 1 else "")
            return size if extent["factor"] == 1 else f"{extent['factor']} * ({size})"
    return None


def _any_requires_grad(schema):
    """Source: whether an argument is a tensor of torch that requires a gradient."""
    return " or ".join(f"getattr({schema.tensors[i]['name']}, 'requires_grad', False)" for i in schema.real) or "False"


def _no(*_):
    return False


# torch and whether it records gradients, once a tensor of it was seen. quern.torch fills the others: whether torch is tracing, what it then follows
# in the place of the call, and whether it is dynamo that traces, of which a short call asks: that takes 50 ns less.
_tracing = {"_torch": None, "_recording": _no, "_compiling": _no, "_tracing": _no, "_traced": None}
_scopes = []


def trace_with(**functions):
    _tracing.update(functions)
    for scope in _scopes:
        scope.update(_tracing)


def present(*tensors):
    """What a call returns: a tensor, or a tuple of those that are there."""
    there = tuple(t for t in tensors if t is not None)
    return there[0] if len(there) == 1 else there


class Op:
    """What an op's function has beside its call."""

    def __init__(self, facts):
        self.schema = Schema(facts)
        self.id = self.schema.id
        self.function = library().op(self.id)

    def call(self, tensors, attributes, stream, options):
        """Any framework: what follows from it, then run()."""
        arrays = _arrays.of(self, tensors)
        attributes = attributes if arrays.judges else _check.attributes(self, attributes)
        _check.backend(self.id, options.backend)
        check_dtypes(self, tensors, options.dtypes)
        self.check_integers(attributes)
        options.device = device_name(self, options.device)
        if arrays.call is not None:
            return arrays.call(self, tensors, attributes, stream, options)
        if _tracing["_recording"]() and any(getattr(tensors[i], "requires_grad", False) for i in self.schema.real):
            self.check_one_framework(tensors)
        return self.run(arrays, tensors, attributes, stream, options)

    def handed_over(self, tensors, attributes):
        """Tensors that TVM-FFI takes without a step of Python, outputs among them."""
        self.check(tensors)
        attributes = _check.attributes(self, attributes)
        self.check_integers(attributes)
        self.function(*tensors, *attributes)
        self.wrote(tensors)

    def run(self, arrays, tensors, attributes, stream, options):
        """Converts, allocates outputs, calls, returns what was written."""
        handed, stream = self.hand_over(arrays, tensors, attributes, stream, options)
        workspace = None if options.workspace is None else _hand_over(self, "workspace", options.workspace, True)
        hooks = () if options.hooks is None else _hand_over_hooks(self, *options.hooks)
        self.function(*handed, *attributes, stream, device_handle(self, options.device), options.variant, options.flags, workspace, *hooks)
        self.wrote(tensors)
        return present(*(tensors[i] for i in self.schema.returned))

    def workspace_bytes(self, *arguments, **keywords):
        """Bytes of `workspace` that a call with these arguments needs; 0: none. Nothing is launched. Outputs that are not given are allocated for the time of
        the question. It depends on sizes, dtypes, strides and options, and not on contents. Raises what the call would of its arguments."""
        values = inspect.signature(by_id(self.id)).bind(*arguments, **keywords)
        values.apply_defaults()
        given = values.arguments
        tensors = [given[t["name"]] for t in self.schema.tensors]
        dtypes = {i: given[self.schema.tensors[i]["name"] + "_dtype"] for i in self.schema.choosable}
        flags = flags_function()(self.id, given["batch_invariant"], given["pdl"], given["skip_check"])
        options = Options(device_name(self, given["device"]), given["backend"], flags, None, dtypes)
        arrays, attributes = _arrays.of(self, tensors), _check.attributes(self, [given[a["name"]] for a in self.schema.attributes])
        if isinstance(arrays, _arrays.Jax):
            raise TypeError(f"{self.id}: `workspace_bytes` is asked with arrays of JAX, expected another framework's: JAX's calls take no workspace")
        check_dtypes(self, tensors, dtypes)
        handed, stream = self.hand_over(arrays, tensors, attributes, given["stream"], options)
        hooks = [given.get(name) for name in ("hooks", "hook_params", "hook_tensors")]
        asked = () if all(h is None for h in hooks) else (None, *_hand_over_hooks(self, *hooks))
        return int(library().op_workspace(self.id)(*handed, *attributes, stream, device_handle(self, options.device), options.variant, flags, *asked))

    def hand_over(self, arrays, tensors, attributes, stream, options):
        """Tensors, outputs among them, and the stream as TVM-FFI takes them. Outputs that are wanted and not given are filled in."""
        self.check(tensors)
        allocate(self, arrays, tensors, attributes, options.dtypes)
        handed = [None if t is None else _hand_over(self, facts["name"], t, facts["role"] != "in") for facts, t in zip(self.schema.tensors, tensors)]
        return handed, _arrays.handle_of(self.id, arrays.stream() if stream is None else stream)

    def check(self, tensors):
        """ValueError for a tensor of which TVM-FFI would say what its framework does, or nothing."""
        for facts, tensor in zip(self.schema.tensors, tensors):
            if tensor is not None and not (isinstance(tensor, bool) and facts["optional"] and facts["role"] == "out"):
                _arrays.of_one(tensor).check(self, facts["name"], tensor)

    def check_integers(self, attributes):
        """ValueError for an integer that could not be handed over."""
        for i in self.schema.integers:
            if isinstance(attributes[i], int) and not -(1 << 63) <= attributes[i] < 1 << 63:
                raise ValueError(f"{self.id}: `{self.schema.attributes[i]['name']}` is {attributes[i]}, expected a signed 64-bit integer")

    def check_one_framework(self, tensors):
        """RuntimeError where a gradient is wanted and a tensor is not of torch."""
        name = next(self.schema.tensors[i]["name"] for i in self.schema.real if getattr(tensors[i], "requires_grad", False))
        for facts, tensor in zip(self.schema.tensors, tensors):
            if tensor is not None and not isinstance(tensor, bool) and not isinstance(_arrays.of_one(tensor), _arrays.Torch):
                raise RuntimeError(f"{self.id}: `{name}` requires a gradient and `{facts['name']}` is a {type(tensor).__module__}.{type(tensor).__name__}, through which torch records none, "
                                   "expected tensors of torch alone, or torch.no_grad()")

    def wrote(self, tensors):
        """Tells frameworks what a call wrote."""
        for i in self.schema.returned:
            if tensors[i] is not None:
                _arrays.of_one(tensors[i]).wrote((tensors[i],))

    def is_backend_supported(self, backend, cc=None):
        """Whether the variant, or with "auto" any, runs some problem on a device of that compute capability (90, "9.0", "sm_90a", (9, 0); None: the
        device that QN_DEVICE or the machine gives). Whether it runs a certain one, and why not: quern.plan(). ValueError for what is neither."""
        if backend != "auto" and backend not in self.schema.variants:
            raise ValueError(f"{self.id}: `backend` is {backend!r}, expected one of auto, {', '.join(self.schema.variants)}")
        arch = library().device_arch("") if cc is None else _check.arch_of(self.id, cc)
        return any(_runs(self.id, b, arch) for b in (self.schema.variants if backend == "auto" else [backend]))

    def is_compute_capability_supported(self, cc):
        """Whether any variant runs there."""
        return self.is_backend_supported("auto", cc)


def _hand_over(op, name, tensor, written):
    arrays = _arrays.of_one(tensor)
    if written:
        arrays.check_writable(op, name, tensor)
    return arrays.hand_over(op, name, tensor)


def _hand_over_hooks(op, hooks, params, tensors):
    """What the library's function takes behind its options: a handle, bytes, tensors."""
    text = None if hooks is None else _hooks_text(op, hooks)
    handle = None if hooks is None else _hooks_handle(op.id, text)
    names = [t["name"] for t in op.schema.hooks["tensors"]]
    return [handle, None if params is None else _bytes_of(op, params, text)] + _hook_tensors(op, names, tensors)


@functools.lru_cache(maxsize=None)
def _hooks_handle(id_, text):
    return library().hooks(id_, text)


def _hooks_text(op, hooks):
    if isinstance(hooks, str) and ("{" in hooks or "\n" in hooks or hooks.isidentifier()):
        return hooks  # a text, or the name of hooks that ship with quern
    if not isinstance(hooks, (str, os.PathLike)):
        raise TypeError(f"{op.id}: `hooks` is a {type(hooks).__name__}, expected the text of a struct, or the path of a file with it")
    try:
        with open(hooks, encoding="utf-8") as file:
            return file.read()
    except OSError as e:
        raise ValueError(f"{op.id}: `hooks` is {str(hooks)!r}, expected the text of a struct, or the path of a file with it ({e.strerror})") from None


# Kinds of NumPy's numbers of 8 bytes, what a text that reads them has, and what a text mostly means.
_WIDE = {"f": (("double",), "f32"), "i": (("i64", "int64_t", "long"), "i32"), "u": (("u64", "uint64_t", "long"), "u32")}


def _bytes_of(op, params, text):
    dtype = getattr(params, "dtype", None)
    if text is not None and "{" in text and getattr(dtype, "itemsize", 0) == 8 and getattr(dtype, "kind", "") in _WIDE:
        words, meant = _WIDE[dtype.kind]
        if not any(re.search(rf"\b{word}\b", text) for word in words):
            raise TypeError(f"{op.id}: `hook_params` is of {dtype}, which the text of `hooks` does not read, expected {meant}, or bytes as the struct has them (struct.pack)")
    try:
        return params.tobytes() if hasattr(params, "tobytes") else bytes(memoryview(params))
    except (TypeError, ValueError):
        raise TypeError(f"{op.id}: `hook_params` is a {type(params).__name__}, expected bytes, an array of NumPy, or anything that shows its bytes (struct.pack, ctypes)") from None


def _hook_tensors(op, names, tensors):
    """In the order of `names`."""
    if tensors is None:
        return []
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{op.id}: `hook_tensors` is a {type(tensors).__name__}, expected a list of tensors and None")
    by_name = dict.fromkeys(names)
    for i, tensor in enumerate(tensors):
        name = f"hook_tensors[{i}]"
        if tensor is None:
            continue
        if name not in by_name:
            raise ValueError(f"{op.id}: `{name}` is given, expected None: hooks of this op have " + (", ".join(names) or "no tensors but those of its parameters"))
        _arrays.of_one(tensor).check(op, name, tensor)
        if getattr(tensor, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
            raise RuntimeError(f"{op.id}: `{name}` requires a gradient, which no op computes, expected {name}.detach(), or torch.no_grad()")
        by_name[name] = _hand_over(op, name, tensor, False)
    return list(by_name.values())


@functools.lru_cache(maxsize=None)
def _runs(id_, variant, arch):
    try:
        return library().variant_runs(id_, variant, arch)
    except ValueError:  # an arch that quern does not know
        return False


def allocate(op, arrays, tensors, attributes, dtypes):
    """Fills in the outputs that are wanted and not given. Where the inputs do not tell shape and dtype they are left out: the library then says
    what is wrong with the inputs, which it looks at first."""
    for i in op.schema.outputs:
        optional = op.schema.tensors[i]["optional"]
        if tensors[i] is False and optional:
            tensors[i] = None
        if tensors[i] is not (True if optional else None):
            continue
        shape, dtype = output_shape(op.schema, i, tensors, attributes), output_dtype(op, i, tensors, dtypes)
        if shape is not None and dtype is not None:
            like = _arrays.first_of(op, tensors)
            if arrays is _arrays.OTHER:
                raise TypeError(f"{op.id}: `{op.schema.tensors[i]['name']}` is missing, expected a tensor: quern cannot allocate a {type(like).__name__}")
            tensors[i] = empty_output(op.schema.tensors[i], arrays, shape, dtype, like)
        else:
            tensors[i] = None
            if not optional:
                _check_told(op, i, tensors)


def _check_told(op, output, tensors):
    """ValueError where an extent of an output that is not given is told by optional tensors alone, of which none is given either."""
    for axis in (name for extent in op.schema.tensors[output]["axes"] for name in names_of(extent)):
        told = [op.schema.tensors[i] for name in (axis, op.schema.otherwise.get(axis)) for i, *_ in op.schema.sources.get(name, ()) if i != output]
        if told and all(t["optional"] and tensors[op.schema.index[t["name"]]] is None for t in told):
            names = ", ".join(f"`{t['name']}`" for t in told)
            raise ValueError(f"{op.id}: `{op.schema.tensors[output]['name']}` is missing, expected a tensor, or {'one of ' if len(told) > 1 else ''}{names}, which tell{'' if len(told) > 1 else 's'} its `{axis}`")


def empty_output(facts, arrays, shape, dtype, like):
    """In the layout that the schema wants."""
    if not facts["column_bytes"]:
        return arrays.empty(shape, dtype, like)
    return arrays.empty_columns(shape, dtype, like, facts["column_bytes"] // _arrays.size_of(dtype))


def output_shape(schema, output, tensors, attributes=()):
    """From the axes that the present tensors set, and the attributes in the schema's order; None where they do not tell it. `tensors` have a shape each."""
    shape = []
    for extent in schema.tensors[output]["axes"]:
        if extent.get("formula"):
            value = evaluate(extent["formula"], lambda name: _value(schema, name, tensors, attributes))
            value = None if value is not None and value < 0 else value
        elif extent["axis"] is None:
            value = extent["offset"]
        else:
            value = _axis(schema, extent["axis"], tensors)
            value = value if value is None else -(-extent["factor"] * value // extent["divisor"]) + extent["offset"]
        if value is None:
            return None
        shape.append(value)
    return tuple(shape)


def _value(schema, name, tensors, attributes):
    """Of an attribute or an axis in a formula; None where it is not told, or no integer."""
    at = schema.attribute_index.get(name)
    if at is None:
        return _axis(schema, name, tensors)
    if isinstance(attributes[at], str):
        words = schema.attributes[at]["words"]
        return words.index(attributes[at]) if attributes[at] in words else None
    if type(attributes[at]).__name__ == "SymInt":  # of a graph that torch traces, where the index would be one number for ever
        return attributes[at]
    try:
        value = operator.index(attributes[at])
    except TypeError:
        return None
    bits = 31 if schema.attributes[at]["type"] == "i32" else 63
    return value if -(1 << bits) <= value < 1 << bits else None


def _axis(schema, axis, tensors):
    for i, rank, d, factor, offset in schema.sources.get(axis, ()):
        shape = getattr(tensors[i], "shape", ())
        if len(shape) == rank and (shape[d] - offset) % factor == 0:
            return (shape[d] - offset) // factor
    other = schema.otherwise.get(axis)
    return None if other is None else _axis(schema, other, tensors)


def check_dtypes(op, tensors, dtypes):
    """What is asked for by NAME_dtype: TypeError for a dtype that quern does not have, ValueError for another than that of an output that is given."""
    for i, dtype in dtypes.items():
        if dtype is None:
            continue
        name = op.schema.tensors[i]["name"]
        wanted, given = _arrays.known_dtype(op, name + "_dtype", dtype), getattr(tensors[i], "dtype", None)
        if given is not None and _arrays.dtype_name(given) != wanted:
            raise ValueError(f"{op.id}: `{name}_dtype` is {wanted}, expected {_arrays.dtype_name(given)}, that of the `{name}` that is given, or None")


def output_dtype(op, output, tensors, dtypes):
    """quern's name of the dtype: the one asked for, else that of the tensor it is like, else the first allowed. None where that tensor has no dtype of quern."""
    t = op.schema.tensors[output]
    if dtypes.get(output) is not None:
        return _arrays.known_dtype(op, t["name"] + "_dtype", dtypes[output])
    like = [d[5:] for d in t["dtypes"] if d.startswith("like ")]
    if not like:
        return t["dtypes"][0]
    other = op.schema.index[like[0]]
    if tensors[other] is None or tensors[other] is True:
        return output_dtype(op, other, tensors, dtypes)
    dtype = _arrays.dtype_name(getattr(tensors[other], "dtype", None))
    return dtype if dtype in _arrays.DTYPES else None


_functions = {}


def by_id(id_):
    """The function of the op of that name; ValueError with the nearest one."""
    function = _functions.get(id_)
    if function is None:
        function = _functions.setdefault(id_, _function_of(Op(json.loads(library().op_json(id_)))))
    return function
