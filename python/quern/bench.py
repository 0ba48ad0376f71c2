# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Providers of `quern bench` that are Python's: torch, torch_compile and liger. And the command with them and with --plot.

The program makes the cases, the buffers and the judgement, and keeps the time; it asks a provider for a call over its tensors (quern/bench/guests.h). What a
provider computes for an op stands in _expressions.py; gradients are those of torch's autograd, for the tensors that the op's schema names."""
import contextlib
import importlib.util
import json
import signal
import sys
import types

from . import _arrays, _check
from ._library import library
from ._op import by_id

# Each provider: the packages that it needs, and whether it needs a GPU.
PROVIDERS = {"torch": (("torch",), False), "torch_compile": (("torch",), False), "liger": (("torch", "liger_kernel"), True)}
_KINDS = {"f32": float, "bool": bool}


class _Named:
    """Members by name; torch.compile follows its making."""

    def __init__(self, members):
        for name, value in members:
            setattr(self, name, value)


def _missing(provider):
    """What a provider would need; empty where it is here."""
    packages, gpu = PROVIDERS[provider]
    for package in packages:
        if importlib.util.find_spec(package) is None:
            return f"the package {package}: pip install {package.replace('_', '-')}"
    if gpu:
        import torch

        if not torch.cuda.is_available():
            return "a GPU"
    return ""


def _attributes(schema, values):
    """By name, as the op's function takes them."""
    of = {}
    for a in schema.attributes:
        value = values[a["name"]]
        of[a["name"]] = a["words"][int(value)] if a["words"] else _KINDS.get(a["type"], int)(value)
    return _Named(of.items())


def _dtype(name):
    import torch

    return getattr(torch, _arrays.DTYPES[name])


def _tensor(device, address, dtype, shape, strides):
    """Memory of the program as a tensor of torch. Its kinds of fp8 cross as bytes."""
    import torch

    kind, _, index = device.partition(":")
    bytes_ = torch.empty(0, dtype=_dtype(dtype)).element_size() == 1
    at = library().tensor_at(address, "u8" if bytes_ else dtype, shape, strides, {"cpu": 1, "cuda": 2}[kind], int(index or 0))
    tensor = torch.from_dlpack(at)
    return tensor.view(_dtype(dtype)) if bytes_ else tensor


class _Part:
    """The op, or one of its gradients, in a request."""

    def __init__(self, facts, device):
        self.schema = by_id(facts["op"]).schema
        self.gradients = facts["gradients"]
        self.attributes = _attributes(self.schema, facts["attributes"])
        self.sets = [{name: None if t is None else _tensor(device, **t) for name, t in one.items()} for one in facts["sets"]]
        self.roles = {t["name"]: t["role"] for t in self.schema.tensors}

    def inputs(self, set_):
        """By name, those updated in place as well."""
        return {name: self.sets[set_][name] for name, role in self.roles.items() if role != "out"}

    def results(self, set_):
        """Tensors that a call writes, by name."""
        return {name: t for name, t in self.sets[set_].items() if self.roles[name] != "in" and t is not None}


class _Expression:
    """An op's entry of a table, as a function of tensors that gives a dict of outputs."""

    def __init__(self, provider, part):
        from . import _expressions

        table = {"torch": _expressions.TORCH, "torch_compile": _expressions.TORCH, "liger": _expressions.LIGER}[provider]
        self.id, self.provider, self.attributes = part.schema.id, provider, part.attributes
        if self.id not in table:
            raise NotImplementedError(f"{self.id}: there is no expression of it for {provider}, expected one in quern/_expressions.py")
        entry = table[self.id]
        self.before, self.entry = entry if isinstance(entry, _expressions.Prepared) else (None, entry)
        self.results = part.results(0)
        self.dtypes = _Named((name, t.dtype) for name, t in self.results.items())
        self.function = None

    def prepared(self, tensors):
        """These tensors, and those that the entry makes of them once, which no time is of."""
        import torch

        if self.before is None:
            return tensors
        with torch.no_grad():
            return {**tensors, **self.before(_Named(tensors.items()), self.attributes, self.dtypes)}

    def over(self, tensors):
        """A function and its arguments for these tensors, which are prepared: one function for all sets, which is compiled once."""
        if self.function is None:
            self.function = self._function(list(tensors))
        return self.function, list(tensors.values())

    def _function(self, names):
        import torch

        entry, attributes, dtypes = self.entry, self.attributes, self.dtypes
        single = next(iter(self.results)) if len(self.results) == 1 else None

        def function(*values):
            out = entry(_Named(zip(names, values)), attributes, dtypes)
            return out if isinstance(out, dict) else {single: out}

        return torch.compile(function, dynamic=False, fullgraph=True) if self.provider == "torch_compile" else function

    def judge(self, got):
        """Refuses what cannot be the op's outputs, whose values are the program's to judge."""
        for name, want in self.results.items():
            if got.get(name) is None:
                raise NotImplementedError(f"{self.id}: {self.provider}'s expression makes no `{name}`")
            if got[name].dtype != want.dtype or got[name].shape != want.shape:
                raise NotImplementedError(f"{self.id}: {self.provider}'s expression makes `{name}` {tuple(got[name].shape)} {got[name].dtype}, expected {tuple(want.shape)} {want.dtype}")


def _captured(run, theirs):
    """A CUDA graph of what `run` does, and what it returned. theirs: addresses of the program's tensors, which autograd may hand through."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = run()
    # A graph that lost its kernels would leave what the warm-up wrote, and its time would be that of nothing.
    results = [t for some in kept for t in some.values() if t.is_floating_point() and t.numel() and t.data_ptr() not in theirs]
    with torch.no_grad():
        for t in results:
            t.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    if any(bool(torch.isnan(t).all()) for t in results):
        raise RuntimeError("the captured graph of forward and backward does not write its results")
    return graph.replay, kept


class _Call:
    """A provider's call for one request. Results stay with torch until they are delivered: a copy is no part of an op."""

    def __init__(self, provider, request):
        import torch

        self.mode, self.cuda, self.device = request["mode"], request["device"] != "cpu", request["device"]
        if self.cuda:
            torch.cuda.set_device(self.device)
        self.forward, *self.backward = (_Part(p, request["device"]) for p in request["parts"])
        if self.mode == "forward" and (of := _differentiated(self.forward.schema)):
            self.forward, self.backward = _turned(self.forward, *of)
            self.mode = "backward"
        self.expression = _Expression(provider, self.forward)
        self.wanted = list(dict.fromkeys(of for part in self.backward for name, of in part.gradients.items() if part.roles[name] == "out" and part.sets[0][name] is not None))
        self.runs, self.kept, self.replays = [self._run_over(i) for i in range(request["sets"])], {}, None
        # Once before anything is timed: what torch compiles, and what it refuses.
        self.run(0)
        self._judge(0)
        if self.cuda and self.mode == "full":
            self.kept.clear()  # its graph of autograd belongs to this stream
            theirs = {t.data_ptr() for part in (self.forward, *self.backward) for one in part.sets for t in one.values() if t is not None}
            self.replays = [_captured(run, theirs) for run in self.runs]

    def _run_over(self, set_):
        """One set's call, which returns (outputs, gradients)."""
        import torch

        tensors = self.expression.prepared(self.forward.inputs(set_))
        if self.mode == "forward":
            function, values = self.expression.over(tensors)

            def run():
                with torch.no_grad():
                    return function(*values), {}

            return run

        def leaves_of():
            return {name: t.detach().requires_grad_() if name in self.wanted else t for name, t in tensors.items()}

        arriving = {of: part.sets[set_][name] for part in self.backward for name, of in part.gradients.items() if part.roles[name] != "out" and part.sets[set_][name] is not None}

        def gradients(outputs, leaves, retain):
            got = torch.autograd.grad([outputs[name] for name in arriving], [leaves[name] for name in self.wanted], list(arriving.values()), retain_graph=retain)
            return dict(zip(self.wanted, got))

        if self.mode == "full":

            def run():
                leaves = leaves_of()  # autograd's nodes of leaves keep the stream on which they were first used: a capture needs new ones
                function, values = self.expression.over(leaves)
                outputs = function(*values)
                return outputs, gradients(outputs, leaves, False)

            return run
        leaves = leaves_of()
        function, values = self.expression.over(leaves)
        outputs = function(*values)
        return lambda: (outputs, gradients(outputs, leaves, True))

    def run(self, set_):
        if self.replays is None:
            self.kept[set_] = self.runs[set_]()
        else:
            replay, self.kept[set_] = self.replays[set_]
            replay()

    def _judge(self, set_):
        outputs, gradients = self.kept[set_]
        if self.mode != "backward":
            self.expression.judge(outputs)
        for part in self.backward:
            for name, of in part.gradients.items():
                want = part.sets[set_][name]
                if part.roles[name] == "out" and want is not None and gradients[of].dtype != want.dtype:
                    raise NotImplementedError(f"{part.schema.id}: {self.expression.provider}'s gradient `{name}` is {gradients[of].dtype}, expected {want.dtype}")

    def deliver(self, set_):
        import torch

        outputs, gradients = self.kept[set_]
        with torch.no_grad():
            if self.mode != "backward":
                for name, to in self.forward.results(set_).items():
                    to.copy_(outputs[name])
            for part in self.backward:
                for name, of in part.gradients.items():
                    if part.roles[name] == "out" and part.sets[set_][name] is not None:
                        part.sets[set_][name].copy_(gradients[of])

    def memory(self, set_):
        """Without a graph's pool: bytes that one eager call takes at most."""
        import torch

        self.kept.clear()
        if self.cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            self.kept[set_] = self.runs[set_]()
            torch.cuda.synchronize()
            return float(torch.cuda.max_memory_allocated() - before)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, acc_events=True) as trace:
            self.kept[set_] = self.runs[set_]()
        held = most = 0
        for event in sorted((e for e in trace.profiler.kineto_results.events() if e.name() == "[memory]"), key=lambda e: e.start_ns()):
            held += event.nbytes()
            most = max(most, held)
        return float(most)


def _differentiated(schema):
    """(the op, its entry) of which the schema is an op of gradients; None: of none."""
    from ._tools import ops

    for function in ops():
        for backward in function.schema.backward:
            if backward["op"] == schema.id:
                return function.schema, backward["gradients"]
    return None


def _turned(part, schema, gradients):
    """A part that is an op of gradients as what it is the gradient of, and itself as that one's backward part."""
    forward = types.SimpleNamespace(schema=schema, gradients={}, roles={t["name"]: t["role"] for t in schema.tensors})
    needed = [t["name"] for t in schema.tensors if t["role"] != "out"]
    for t in schema.tensors:
        if t["role"] != "out" and t["name"] not in part.roles and not t["optional"]:
            raise NotImplementedError(f"{part.schema.id} is not given `{t['name']}` of {schema.id}, of which it is the gradient, expected `quern bench {schema.id} --mode backward`")
    defaults = {a["name"]: a["default"] for a in schema.attributes}
    forward.attributes = _Named((name, getattr(part.attributes, name, default)) for name, default in defaults.items())
    outputs = {of: name for name, of in gradients.items() if forward.roles[of] != "in"}
    forward.inputs = lambda set_: {name: part.sets[set_].get(name) for name in needed}
    forward.results = lambda set_: {of: part.sets[set_][name] for of, name in outputs.items()}
    part.gradients = gradients
    return forward, [part]


@contextlib.contextmanager
def _said():
    """TVM-FFI knows few classes of exceptions: others cross as RuntimeError with their name."""
    try:
        yield
    except NotImplementedError:
        raise
    except Exception as e:
        raise RuntimeError(f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:300]}") from None


def _guarded(function):
    def call(*arguments):
        with _said():
            return function(*arguments)

    return call


def _make(provider, request):
    import torch

    if provider == "torch_compile":
        torch._dynamo.reset()  # every case is compiled for itself, and none is remembered for another
        torch._functorch.config.donated_buffer = False  # a backward pass is run again and again
    call = _Call(str(provider), json.loads(str(request)))
    version = f"torch {torch.__version__}"
    if provider == "liger":
        from importlib.metadata import version as of

        version += f", liger-kernel {of('liger-kernel')}"
    return [("torch.compile of " if provider == "torch_compile" else "") + version, _guarded(lambda set_: call.run(int(set_))), _guarded(lambda set_: call.deliver(int(set_))), _guarded(lambda set_: call.memory(int(set_)))]


def _plot(path, ops):
    from . import plot

    with contextlib.redirect_stdout(sys.stderr):  # stdout is the program's: with --json nothing else
        code = plot.main([str(path), *(word for op in ops for word in ("--kernel", str(op))), "--overwrite"])
    if code:
        raise RuntimeError(f"the rows are in {path}, quern plot ended with {code}")


def main(arguments=None):
    """The command `quern bench`, with Python's providers. `arguments`: words behind it; None: those of the process. Returns the exit code."""
    if not isinstance(arguments, (list, tuple, type(None))):
        _check.fail_type("main", "arguments", arguments, "a list of words, or None")
    words = _check.texts("main", "arguments", sys.argv[2:] if arguments is None else arguments, "text, as '--sweep'")
    with contextlib.suppress(ValueError):  # a thread that is not the main one has no signals
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the program's own way to end: its file is whole after every row
    sys.stdout.flush()
    return int(library().bench_command(["bench", *words], list(PROVIDERS), [_missing(p) for p in PROVIDERS], _guarded(_make), _guarded(_plot)))
