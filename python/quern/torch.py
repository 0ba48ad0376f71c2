# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""quern in graphs of torch: `import quern.torch`, and torch.compile(fullgraph=True) takes quern.norm.rms_norm(x, weight) as it stands.

Each op becomes two of torch, made from its schema: torch.ops.quern.FAMILY_OP, which allocates outputs, and FAMILY_OP_out, which writes those
given. Both name what they mutate; shapes and dtypes of what the first returns are computed from the schema where torch traces. Where the schema
names the op of the gradients a backward pass calls it; through other ops a backward pass is an error."""
import string

import torch

from . import _arrays, _check, _op
from ._schema import python_type
from ._tools import ops

__all__ = ["register"]
_functional, _given = {}, {}  # torch's ops by quern's id
_arrays_of_torch = _arrays._torch()


def _signature(op, given):
    """Arguments of the torch op: inputs, attributes, then outputs (given) or which optional ones and which dtypes, then options."""
    schema = op.schema
    letters = iter(string.ascii_letters)
    words = []
    for t in schema.tensors:
        if t["role"] != "out" or given:
            written = f"({next(letters)}!)" if t["role"] != "in" else ""
            words.append(f"Tensor{written}{'?' if t['optional'] else ''} {t['name']}")
    # Of an `int` torch compiles a graph for each value. One graph serves all values of a `SymInt`
    words += [f"{python_type(a).replace('int', 'SymInt')} {a['name']}" for a in schema.attributes]
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
        op.run(_arrays.of(op, a.tensors), a.tensors, a.attributes, None, a.options)
        return _results(like, [a.tensors[i] for i in op.schema.outputs])

    def fake(*values):
        a = _Arguments(op, values, False)
        like = _arrays.first_of(op, a.tensors)
        results = []
        for i in op.schema.outputs:
            if op.schema.tensors[i]["optional"] and a.tensors[i] is not True:
                results.append(None)
                continue
            shape, dtype = _op.output_shape(op.schema, i, a.tensors, a.attributes), _op.output_dtype(op, i, a.tensors, a.options.dtypes)
            if shape is None or dtype is None:
                raise ValueError(f"{op.id}: `{op.schema.tensors[i]['name']}` cannot be shaped by these inputs, expected what the schema says: help(quern.{op.id})")
            results.append(_op.empty_output(op.schema.tensors[i], _arrays_of_torch, shape, dtype, like))
        return _results(like, results)

    def given(*values):
        a = _Arguments(op, values, True)
        op.run(_arrays.of(op, a.tensors), a.tensors, a.attributes, None, a.options)

    _functional[op.id] = torch.library.custom_op(name, functional, mutates_args=updated, schema=_signature(op, False))
    _functional[op.id].register_fake(fake)
    if op.schema.backward:
        _Gradients(op).register(_functional[op.id])
    if outputs:
        _given[op.id] = torch.library.custom_op(name + "_out", given, mutates_args=outputs + updated, schema=_signature(op, True))
        _given[op.id].register_fake(lambda *values: None)
    _plans[op.id] = _Plan(op.schema)


class _Gradients:
    """An op's backward pass: calls of the ops that its schema names, whose tensors are this op's by name, or gradients of them."""

    def __init__(self, op):
        self.schema = op.schema
        self.inputs = [t["name"] for t in op.schema.tensors if t["role"] != "out"]
        self.outputs = [op.schema.tensors[i]["name"] for i in op.schema.outputs]

    def register(self, functional):
        functional.register_autograd(self.backward, setup_context=self.keep)

    def calls(self):
        """Each op with the gradients among its tensors: {its tensor: the tensor of this op}."""
        return [(_op.by_id(b["op"]).schema, b["gradients"]) for b in self.schema.backward]

    def saved(self):
        """Names of what the calls need beside gradients, each once."""
        return list(dict.fromkeys(t["name"] for schema, of in self.calls() for t in schema.tensors if t["role"] != "out" and t["name"] not in of))

    def without_gradient(self):
        """Outputs that no call takes a gradient of: one that arrived at them would be lost."""
        taken = {name for _, of in self.calls() for name in of.values()}
        return [name for name in self.outputs if name not in taken]

    def keep(self, ctx, inputs, output):
        there = dict(zip(self.outputs, output if isinstance(output, tuple) else (output,)))
        ctx.mark_non_differentiable(*(there[name] for name in self.without_gradient()))
        there.update(zip(self.inputs, inputs))
        ctx.save_for_backward(*(there[name] for name in self.saved()))
        ctx.dtypes = {name: _arrays.dtype_name(value.dtype) for name, value in zip(self.inputs, inputs) if value is not None}
        ctx.attributes, ctx.count = dict(zip((a["name"] for a in self.schema.attributes), inputs[len(self.inputs):])), len(inputs)
        ctx.device, ctx.flags = inputs[-3], inputs[-1]  # a variant's name is the op's own

    def backward(self, ctx, *gradients):
        saved, of_output = dict(zip(self.saved(), ctx.saved_tensors)), dict(zip(self.outputs, gradients))
        results = [None] * ctx.count
        for schema, of in self.calls():
            self.call(ctx, schema, of, saved, of_output, results)
        return tuple(results)

    def call(self, ctx, schema, of, saved, of_output, results):
        """Calls one op, where one of its gradients is needed."""
        places = [self.inputs.index(of[schema.tensors[i]["name"]]) for i in schema.outputs]
        needed = [ctx.needs_input_grad[at] for at in places]
        if not any(needed):
            return
        # One that torch expanded, as that of a sum, has no rows in memory.
        tensors = [of_output[of[t["name"]]].contiguous() if t["name"] in of else saved[t["name"]] for t in schema.tensors if t["role"] != "out"]
        wanted = [n for n, i in zip(needed, schema.outputs) if schema.tensors[i]["optional"]]
        attributes = [ctx.attributes[a["name"]] for a in schema.attributes]
        dtypes = [ctx.dtypes.get(of[schema.tensors[i]["name"]]) for i in schema.choosable]  # a gradient has the dtype of what it is of
        written = _functional[schema.id](*tensors, *attributes, *wanted, *dtypes, ctx.device, None, ctx.flags)
        for at, gradient, need in zip(places, written if isinstance(written, tuple) else (written,), needed):
            if need:
                results[at] = gradient


class _Plan:
    """Positions that the traced call needs, as plain lists."""

    def __init__(self, schema):
        self.id, self.schema = schema.id, schema
        self.inputs = [i for i, t in enumerate(schema.tensors) if t["role"] != "out"]
        self.outputs, self.updated = schema.outputs, schema.updated
        self.optional = [i for i in schema.outputs if schema.tensors[i]["optional"]]
        self.choosable, self.real = schema.choosable, schema.real
        # Tensors of an op with gradients that none of them is of: one that arrived would be lost
        known = {of for b in schema.backward for of in b["gradients"].values()}
        self.constant = [(i, schema.tensors[i]["name"]) for i in schema.real if schema.backward and schema.tensors[i]["name"] not in known]


_plans = {}


def _written(plan, tensors):
    """Outputs that are given."""
    return [i for i in plan.outputs if isinstance(tensors[i], torch.Tensor)]


def _check_recorded(id_, plan, tensors):
    """What a node of torch's graph cannot be: a call that writes tensors that are there, while a gradient is wanted."""
    if not torch.is_grad_enabled() or not any(isinstance(tensors[i], torch.Tensor) and tensors[i].requires_grad for i in plan.real):
        return
    if plan.updated:
        raise RuntimeError(f"{id_}: a tensor requires a gradient and the op updates tensors in place, expected torch.no_grad()")
    if _written(plan, tensors):
        raise RuntimeError(f"{id_}: a tensor requires a gradient and outputs are given, expected none given, or torch.no_grad()")
    for i, name in plan.constant:
        if isinstance(tensors[i], torch.Tensor) and tensors[i].requires_grad:
            raise RuntimeError(f"{id_}: `{name}` requires a gradient, which no op computes, expected {name}.detach(), or torch.no_grad()")


def _traced(id_, tensors, attributes, stream, device, backend, flags, workspace, dtypes, hooks=None):
    """What dynamo follows in the place of a call of the library."""
    if hooks is not None:
        raise TypeError(f"{id_}: `hooks`, `hook_params` or `hook_tensors` is given under torch.compile, expected None: a graph of torch carries no code for kernels. Wrap the call in torch.library.custom_op, or make it an op of yours (docs/own_ops.md)")
    if stream is not None or workspace is not None:
        raise TypeError("`stream` and `workspace` are the graph's own under torch.compile, expected None")
    plan = _plans[id_]
    device = _op.device_name(plan, device)
    tensors = [None if t is False else t for t in tensors]
    _check_recorded(id_, plan, tensors)
    _op.check_dtypes(plan, tensors, dtypes)
    given = _written(plan, tensors)
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


def _judged(op, values):
    """Attributes, of which integers may be symbols. What a symbol stands for is judged by the library when the graph runs."""
    symbols = {i: v for i, v in enumerate(values) if isinstance(v, torch.SymInt) and op.schema.attributes[i]["type"] in ("i32", "i64") and not op.schema.attributes[i]["words"]}
    judged = _check.judged_attributes(op, [0 if i in symbols else v for i, v in enumerate(values)])
    return [symbols.get(i, v) for i, v in enumerate(judged)]


def traced(op, tensors, attributes, stream, options):
    """A call whose tensors are torch's fake ones, as a node of the graph that is being traced."""
    if op.id not in _functional:
        register()
    attributes = _judged(op, attributes)
    op.check(tensors)
    return _traced(op.id, tensors, attributes, stream, options.device, options.backend, options.flags, options.workspace, options.dtypes, options.hooks)


def recorded(op, tensors, attributes, stream, options):
    """An eager call, some of whose tensors require gradients, as a node of torch's graph."""
    if stream is not None or options.workspace is not None:
        raise RuntimeError(f"{op.id}: a tensor requires a gradient and `stream` or `workspace` is given, expected torch.cuda.stream(), or torch.no_grad()")
    if options.hooks is not None:
        raise RuntimeError(f"{op.id}: a tensor requires a gradient and `hooks`, `hook_params` or `hook_tensors` is given, expected torch.no_grad(): nobody knows the gradient of hooks")
    if op.id not in _functional:
        register()
    attributes = _check.judged_attributes(op, attributes)
    op.check_one_framework(tensors)
    op.check(tensors)
    return _traced(op.id, tensors, attributes, None, options.device, options.backend, options.flags, None, options.dtypes)


def register():
    """Defines torch's ops for all ops of the registry that have none yet: again after quern.load()."""
    for function in ops():
        if function.id not in _functional:
            _define(function.op)
    _op.trace_with(_compiling=torch.compiler.is_compiling, _tracing=torch.compiler.is_dynamo_compiling, _traced=_traced)


register()
