# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""quern in graphs of torch: `import quern.torch`, and torch.compile(fullgraph=True) takes quern.norm.rms_norm(x, weight) as it stands.

Each op becomes two of torch, made from its schema: torch.ops.quern.FAMILY_OP, which allocates outputs, and FAMILY_OP_out, which writes those
given. Both name what they mutate; shapes and dtypes of what the first returns are computed from the schema where torch traces. Tensors that
require gradients are refused by a backward pass: no op has one."""
import torch

from . import _arrays, _op
from ._schema import python_type
from ._tools import ops

_functional, _given = {}, {}  # torch's ops by quern's id


def _signature(op, given):
    """Arguments of the torch op: inputs, attributes, then outputs (given) or which optional ones and which dtypes, then options."""
    schema = op.schema
    letters = iter("abcdefghijklmnop")
    words = []
    for t in schema.tensors:
        if t["role"] != "out" or given:
            written = f"({next(letters)}!)" if t["role"] != "in" else ""
            words.append(f"Tensor{written}{'?' if t['optional'] else ''} {t['name']}")
    words += [f"{python_type(a)} {a['name']}" for a in schema.attributes]
    if not given:
        words += [f"bool {schema.tensors[i]['name']}" for i in schema.outputs if schema.tensors[i]["optional"]]
        words += [f"str? {schema.tensors[i]['name']}_dtype" for i in schema.choosable]
    results = "()" if given or not schema.outputs else ", ".join(["Tensor"] * len(schema.outputs))
    return f"({', '.join(words + ['str? device', 'str? backend', 'int flags'])}) -> {f'({results})' if ',' in results else results}"


class _Arguments:
    """What the torch op was called with, in quern's order."""

    def __init__(self, op, values, given):
        schema, values = op.schema, list(values)
        take = lambda n: [values.pop(0) for _ in range(n)]  # noqa: E731
        tensors = iter(take(sum(given or t["role"] != "out" for t in schema.tensors)))
        self.tensors = [next(tensors) if given or t["role"] != "out" else None for t in schema.tensors]
        self.attributes = take(len(schema.attributes))
        dtypes = {}
        if not given:
            for i in schema.outputs:
                if schema.tensors[i]["optional"]:
                    self.tensors[i] = values.pop(0)
            dtypes = {i: values.pop(0) for i in schema.choosable}
        device, backend, flags = values
        self.options = _op.Options(device, backend, flags, None, dtypes)


def _results(like, tensors):
    """As torch's op returns them: an absent output is an empty tensor."""
    tensors = [like.new_empty(0) if t is None else t for t in tensors]
    return tensors[0] if len(tensors) == 1 else tuple(tensors) or None


def _define(op):
    name = f"quern::{op.schema.family}_{op.schema.name}"
    updated = [op.schema.tensors[i]["name"] for i in op.schema.updated]
    outputs = [op.schema.tensors[i]["name"] for i in op.schema.outputs]

    def functional(*values):
        a = _Arguments(op, values, False)
        like = _arrays.first_of(op, a.tensors)
        op.call(a.tensors, a.attributes, None, a.options)
        return _results(like, [a.tensors[i] for i in op.schema.outputs])

    def fake(*values):
        a = _Arguments(op, values, False)
        like = _arrays.first_of(op, a.tensors)
        results = []
        for i in op.schema.outputs:
            if op.schema.tensors[i]["optional"] and a.tensors[i] is not True:
                results.append(None)
                continue
            shape, dtype = _op.output_shape(op.schema, i, a.tensors), _op.output_dtype(op, i, a.tensors, a.options.dtypes)
            if shape is None or dtype is None:
                raise ValueError(f"{op.id}: `{op.schema.tensors[i]['name']}` cannot be shaped by these inputs, expected what the schema says: help(quern.{op.id})")
            results.append(like.new_empty(shape, dtype=getattr(torch, _arrays.DTYPES[dtype])))
        return _results(like, results)

    def given(*values):
        a = _Arguments(op, values, True)
        op.call(a.tensors, a.attributes, None, a.options)

    _functional[op.id] = torch.library.custom_op(name, functional, mutates_args=updated, schema=_signature(op, False))
    _functional[op.id].register_fake(fake)
    if outputs:
        _given[op.id] = torch.library.custom_op(name + "_out", given, mutates_args=outputs + updated, schema=_signature(op, True))
        _given[op.id].register_fake(lambda *values: None)
    _plans[op.id] = _Plan(op.schema)


class _Plan:
    """Positions that the traced call needs, as plain lists."""

    def __init__(self, schema):
        self.inputs = [i for i, t in enumerate(schema.tensors) if t["role"] != "out"]
        self.outputs, self.updated = schema.outputs, schema.updated
        self.optional = [i for i in schema.outputs if schema.tensors[i]["optional"]]
        self.choosable = schema.choosable


_plans = {}


def _traced(id_, tensors, attributes, stream, device, backend, flags, workspace, dtypes):
    """What dynamo follows in the place of a call of the library."""
    if stream is not None or workspace is not None:
        raise TypeError("`stream` and `workspace` are the graph's own under torch.compile, expected None")
    plan = _plans[id_]
    tensors = [None if t is False else t for t in tensors]
    given = [i for i in plan.outputs if isinstance(tensors[i], torch.Tensor)]
    if given:
        if any(tensors[i] is True or (tensors[i] is None and i not in plan.optional) for i in plan.outputs):
            raise TypeError("either all outputs are given under torch.compile or none is")
        _given[id_](*tensors, *attributes, device, backend, flags)
        results = [tensors[i] for i in given]
    else:
        inputs = [tensors[i] for i in plan.inputs]
        wanted = [tensors[i] is True for i in plan.optional]
        chosen = [None if dtypes[i] is None else _arrays.dtype_name(dtypes[i]) for i in plan.choosable]
        written = _functional[id_](*inputs, *attributes, *wanted, *chosen, device, backend, flags)
        written = [written] if len(plan.outputs) == 1 else written or []
        results = [t for i, t in zip(plan.outputs, written) if i not in plan.optional or tensors[i] is True]
    results += [tensors[i] for i in plan.updated if tensors[i] is not None]
    return results[0] if len(results) == 1 else tuple(results)


def register():
    """Defines torch's ops for all ops of the registry that have none yet: again after quern.load()."""
    for function in ops():
        if function.id not in _functional:
            _define(function.op)
    _op.trace_with(torch.compiler.is_compiling, _traced)


register()
