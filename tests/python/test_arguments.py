# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Wrong arguments of every public function: the error names the function, the argument, what was got and what was expected, and shows nothing of
how Python and the library are bound. A public function with a parameter that has no row here fails the test that walks them."""
import importlib
import inspect
import re
import traceback

import numpy as np
import pytest

import quern
from quern import plot, testing

f32 = np.float32
NUL, SURROGATE = "a\0b", "a\udc80"
LARGE = 1 << 70


class Thing:
    """An object of which nobody knows anything."""


def typed(*values):
    """Rows of one argument, each a TypeError."""
    return [(TypeError, value) for value in values]


def valued(*values):
    return [(ValueError, value) for value in values]


ROW = {column: None for column in plot.WORDS + plot.NUMBERS}
SWEEP_ROW = {column: None for column in (*plot.SWEEP_WORDS, *plot.SWEEP_NUMBERS, "config", "sol_ms", "sheet_ms")}
NOT_TEXT = typed(90, None, 1.5, b"sm_90a", ["sm_90a"], Thing()) + valued(NUL, SURROGATE)
NOT_A_DEVICE = typed(1.5, True, b"emu", ["emu"], Thing())
NOT_A_BOOLEAN = typed(None, 0, 1, "no", np.bool_(True), Thing())
NOT_AN_OP = typed(None, 90, ["norm.rms_norm"], Thing(), len) + valued(NUL, SURROGATE, "rms_norm", "")
NOT_A_PATH = typed(None, 3, 1.5, b"libmine.so", ["libmine.so"], Thing()) + valued(NUL, SURROGATE)
NOT_A_STREAM = typed("0", 1.5, True, [0], Thing()) + valued(-1, LARGE)


def case():
    return testing.Case("norm.rms_norm", "tokens=2 hidden=8")


# {function: (how the error names it, right arguments, {parameter: rows})}. A parameter *name takes tuples of arguments, **name dicts.
FUNCTIONS = {
    "quern.plan": (r"(plan|norm\.rms_norm)", {"op": "norm.rms_norm"}, {
        "op": NOT_AN_OP, "words": typed(("tokens=4", 3), (None,), (b"tokens=4",)) + valued((NUL,)), "arch": NOT_TEXT + valued("sm_12x"), "device": NOT_A_DEVICE + valued("cpu"),
        "parameters": typed({"tokens": None}, {"tokens": np.ones(2)}, {"tokens": [4]}, {"tokens": Thing()}) + valued({"tokens": float("nan")}, {"tokens": float("inf")}, {"tokens": NUL}, {"tokns": 4})}),
    "quern.warm": ("warm", {"model": "llama-3.1-8b", "list_only": True}, {
        "model": NOT_A_PATH, "limits": typed((3,), (None,)) + valued((NUL,)), "archs": typed(90, None, ["sm_90a", 90], (None,)) + valued([NUL]), "device": NOT_A_DEVICE, "trace": NOT_A_PATH,
        "processes": typed("2", None, 1.5, True) + valued(-1, LARGE), "list_only": NOT_A_BOOLEAN, "progress": typed(None, "no", 1)}),
    "quern.freeze": ("freeze", {}, {"on": NOT_A_BOOLEAN}),
    "quern.load": ("load", {}, {"path": NOT_A_PATH + valued("no/such.so")}),
    "quern.log_level": ("log_level", {}, {"level": typed("debug", None, 1.5, True, [1]) + valued(-1, 6, LARGE)}),
    "quern.typed": ("typed", {"array": np.ones(4, np.uint16), "dtype": "bf16"}, {
        "array": typed(None, [1, 2], 3, "ones", Thing(), np.ones(4, f32)), "dtype": typed(None, 16, "bf17", Thing(), ["bf16"], np.int16)}),
    "quern.testing.cases": ("cases", {"op": "norm.rms_norm"}, {
        "op": NOT_AN_OP, "most": typed("8", None, 1.5, True) + valued(-1, LARGE), "most_bytes": typed("8", None, [8], True) + valued(float("nan"), float("inf"))}),
    "quern.testing.Case": ("Case", {"op": "norm.rms_norm"}, {"op": NOT_AN_OP, "words": NOT_TEXT, "seed": typed("1", None, 1.5, True) + valued(-1, LARGE)}),
    "quern.testing.Case.run": (r"(Case\.run|norm\.rms_norm)", {}, {"convert": typed(None, 3, "numpy"), "options": typed({"device": 1.5}, {"pdl": 1})}),
    "quern.testing.bench_gpu_time": ("bench_gpu_time", {"calls": (len,), "device": "emu"}, {
        "calls": typed((3,), (None,), (len, "call")) + valued(()), "cold": NOT_A_BOOLEAN, "budget_ms": typed("5", None, [5], True) + valued(0, -1, float("nan"), float("inf")),
        "device": NOT_A_DEVICE + valued("cpu"), "stream": NOT_A_STREAM}),
    "quern.plot.read": ("read", {}, {"path": typed(None, 0, 3, ["a.csv"], Thing())}),
    "quern.plot.figures": ("(figures|plot)", {"rows": [ROW]}, {
        "rows": typed(None, "a.csv", 3, [3], ["row"]) + valued([{}]), "op": typed(None, 3, ["norm"]), "note": typed(None, 3, b"note")}),
    "quern.plot.save": ("(save|plot)", {"drawn": [], "path": "a.svg"}, {
        "drawn": typed(None, 3, "figure", [3]) + valued([("a",)], [("a", 3)]), "path": typed(None, 3, ["a.svg"])}),
    "quern.plot.is_sweep": ("is_sweep", {}, {"path": typed(None, 0, 3, ["a.csv"], Thing())}),
    "quern.plot.read_sweep": ("read_sweep", {}, {"path": typed(None, 0, 3, ["a.csv"], Thing())}),
    "quern.plot.sweep_figures": ("(sweep_figures|plot)", {"rows": [SWEEP_ROW]}, {
        "rows": typed(None, "a.csv", 3, [3], ["row"]) + valued([{}]), "kernels": typed(None, 3, "norm", [3]), "metrics": typed(None, 3, "speed", [3]), "modes": typed(None, 3, "full", [3]),
        "filters": typed(None, 3, "a=b", ["a=b"], [("a",)], [("a", 3)]), "gpu": typed(None, 3, ["H200"]), "note": typed(None, 3, b"note"), "new_figure": typed(3, "figure")}),
    "quern.plot.save_sweep": ("(save_sweep|plot)", {"drawn": [], "out": "plots"}, {
        "drawn": typed(None, 3, "figure", [3]) + valued([("a",)], [("a", 3)]), "out": typed(None, 3, ["a.svg"]), "overwrite": NOT_A_BOOLEAN}),
    "quern.plot.main": ("main", {}, {"arguments": typed(3, "a.csv", [3], [None])}),
    "quern.bench.main": ("main", {}, {"arguments": typed(3, "norm", [3], [None]) + valued([NUL])}),
    "quern.gemm.dense.is_backend_supported": (r"gemm\.dense", {"backend": "auto"}, {
        "backend": valued("cutlass", None, 3, ["portable"]), "cc": valued(9.0, "nonsense", (9,), True, [], Thing())}),
    "quern.gemm.dense.workspace_bytes": (r"gemm\.dense", {"keywords": {}}, {
        "arguments": typed((3, 4), ("a", "b"), ([1], Thing())), "keywords": typed({"a": 3, "b": 4}, {"a": np.ones((2, 8), f32), "b": np.ones((2, 8), f32), "pdl": 1})}),
    "quern.gemm.dense.is_compute_capability_supported": (r"gemm\.dense", {}, {"cc": valued(9.0, "nonsense", (9, 0, 0), True, Thing())}),
}
MODULES = ("quern.bench", "quern.testing", "quern.plot", "quern.torch")


def public():
    """{name: function} of all that a user may call, but ops, which have a test of their own."""
    found = {"quern." + name: getattr(quern, name) for name in quern.__all__}
    for name in MODULES:
        if name == "quern.torch" and not importlib.util.find_spec("torch"):
            continue
        module = importlib.import_module(name)
        own = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_") and getattr(v, "__module__", None) == name]
        for n in getattr(module, "__all__", own):
            found[f"{name}.{n}"] = member = getattr(module, n)
            if inspect.isclass(member) and not issubclass(member, tuple):
                found.update({f"{name}.{n}.{m}": f for m, f in vars(member).items() if inspect.isfunction(f) and not m.startswith("_")})
    op = quern.gemm.dense
    found.update({f"quern.gemm.dense.{n}": getattr(op, n) for n, v in vars(op).items() if inspect.ismethod(v)})
    return found


def parameters_of(function):
    return [p.name for p in inspect.signature(function).parameters.values() if p.name != "self"]


def test_every_public_function_has_rows():
    without = []
    for name, function in public().items():
        if inspect.isclass(function) and issubclass(function, tuple):
            continue  # a NamedTuple, which functions return
        rows = FUNCTIONS.get(name, (None, {}, {}))[2]
        without += [f"{name}({parameter})" for parameter in parameters_of(function) if not rows.get(parameter)]
    assert not without, "public functions have parameters without rows of wrong arguments here"
    assert set(FUNCTIONS) <= set(public()), "rows of functions that are not there"


def refused(kind, where, name, call):
    """The call is an error of that type whose text names both and what was expected, without a word of the binding."""
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert type(caught.value) is kind, text
    assert re.fullmatch(rf"{where}: (.*`)?`?{name}(\[\d+\])?`? .*, expected .+", text, re.DOTALL), text
    shown = "".join(traceback.format_exception(caught.value))
    for word in ("ffi.", "Mismatched type", "<lambda>", "tvm", ".cpp", ".cc\""):
        assert word not in text and (word == "<lambda>" or word not in shown.split("Traceback")[-1].rsplit("\n", 2)[-2]), shown


def called(name, function, arguments, parameter, value):
    """A call of the function with one argument in the place of the right one."""
    arguments = {**arguments, parameter: value}
    kinds = {p.name: p.kind for p in inspect.signature(function).parameters.values()}
    positional, keywords = [], {}
    for p, kind in kinds.items():
        if p not in arguments:
            continue
        if kind == inspect.Parameter.VAR_POSITIONAL:
            positional += arguments[p]
        elif kind == inspect.Parameter.VAR_KEYWORD:
            keywords.update(arguments[p])
        elif inspect.Parameter.VAR_POSITIONAL in kinds.values() and kind == inspect.Parameter.POSITIONAL_OR_KEYWORD:
            positional.append(arguments[p])
        else:
            keywords[p] = arguments[p]
    if name == "quern.testing.Case.run":
        with case() as opened:
            return opened.run(**keywords)
    return function(*positional, **keywords)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_arguments(name):
    where, arguments, rows = FUNCTIONS[name]
    function = public()[name]
    for parameter, wrong in rows.items():
        for kind, value in wrong:
            shown = next(iter(value)) if isinstance(value, dict) and parameter in ("parameters", "options") else parameter
            if name.endswith(".workspace_bytes"):
                shown = "(a|pdl)"  # what the op itself says of them
            if isinstance(value, tuple) and not value:
                shown = "budget_ms"  # no call at all is said beside it
            refused(kind, where, shown, lambda: called(name, function, arguments, parameter, value))


def test_a_case_that_is_closed():
    with case() as closed:
        closed.run()
        assert closed.wrong() == "" and closed.changed() == 16
    closed.close()
    for method in ("run", "changed", "wrong"):
        with pytest.raises(ValueError, match=rf"^Case\.{method}: the case of norm\.rms_norm is closed, expected one that is open$"):
            getattr(closed, method)()


def arrays_of(op):
    """The first small case of an op: its tensors and attributes."""
    return testing.Case(op, testing.cases(op, 1)[0])


WRONG_ATTRIBUTES = {
    "f32": typed(np.array(1e-5), np.ones(2, f32), [1e-5], Thing(), "small", None, 1j, b"1"), "bool": typed(np.array(True), "yes", 1, 1.5, None, Thing()),
    "i32": typed(np.array(3), [3], 1.5, f32(1.5), "3", None, Thing(), True) + valued(1 << 32, -LARGE, LARGE), "i64": typed(np.array(3), 1.5, "3", None, Thing()) + valued(LARGE),
}
WRONG_OPTIONS = {
    "stream": NOT_A_STREAM, "device": NOT_A_DEVICE + valued("cpu", "nowhere"), "backend": typed(3, True, ["portable"], b"portable", Thing()) + valued("swift", ""),
    "batch_invariant": NOT_A_BOOLEAN, "pdl": NOT_A_BOOLEAN, "skip_check": NOT_A_BOOLEAN, "workspace": typed(3, "bytes", [1], Thing()) + valued(np.ones(4, f32), np.ones((2, 2), np.uint8)),
}
WRONG_HOOKS = {
    "hooks": typed(3, True, ["struct A {};"], Thing()) + valued("no/such/file.cuh", "struct A {};"), "hook_params": typed(0.2, "1234", Thing()) + valued(b"1234"),
    "hook_tensors": typed(3, "bias", Thing(), [3]),
}


@pytest.mark.parametrize("op", quern.ops(), ids=lambda op: op.id)
def test_wrong_arguments_of_ops(op):
    """Tensors, attributes and options of each op, with outputs given and allocated."""
    where = re.escape(op.id)
    with arrays_of(op) as opened:
        right = {**opened.tensors, **opened.attributes, "device": "emu"}
        options = {**WRONG_OPTIONS, **{name: WRONG_HOOKS[name] for name, *_ in op.schema.hook_options}}
        known = {*right, *options, *(p for p in parameters_of(op) if p.endswith("_dtype"))}
        assert set(parameters_of(op)) <= known, "parameters without rows of wrong arguments here"
        outputs = {op.schema.tensors[i]["name"] for i in op.schema.outputs}
        for given in (right, {k: v for k, v in right.items() if k not in outputs}):
            if given is not right and any(len(op.schema.tensors[i]["axes"]) == 0 for i in op.schema.outputs):
                continue
            for t in op.schema.tensors:
                for value in ([1], 3, "ones", Thing()):
                    refused(TypeError, where, t["name"], lambda: op(**{**given, t["name"]: value}))
            for a in op.schema.attributes:
                wrong = typed(np.array(0), [0], Thing(), 1.5, None) + valued("nonsense", 1 << 20) if a["words"] else WRONG_ATTRIBUTES[a["type"]]
                for kind, value in wrong:
                    refused(kind, where, a["name"], lambda: op(**{**given, a["name"]: value}))
            for name, wrong in options.items():
                for kind, value in wrong:
                    refused(kind, where, name, lambda: op(**{**given, name: value}))
            for i in op.schema.choosable:
                name = op.schema.tensors[i]["name"] + "_dtype"
                for value in ("foo", 3, Thing(), [1]):
                    refused(TypeError, where, name, lambda: op(**{**given, name: value}))


def test_wrong_attributes_with_tensors_of_torch():
    """By its shorter ways too."""
    torch = pytest.importorskip("torch", reason="needs torch")
    x, weight = torch.ones(3, 8), torch.ones(8)
    for given in ({}, {"out": torch.empty(3, 8)}, {"batch_invariant": True}):
        for kind, value in WRONG_ATTRIBUTES["f32"] + typed(torch.tensor(1e-5)):
            refused(kind, r"norm\.rms_norm", "eps", lambda: quern.norm.rms_norm(x, weight, value, **given))
            refused(kind, r"norm\.rms_norm", "eps", lambda: quern.norm.rms_norm(x.clone().requires_grad_(), weight, value))
        for value in (f32(1e-5), np.float64(1e-5), np.float16(0), np.int64(0), 0):
            quern.norm.rms_norm(x, weight, value, **given)


def test_scalars_of_numpy_are_numbers():
    x, weight = np.full((3, 8), 2, f32), np.ones(8, f32)
    for eps in (5.0, 5, f32(5), np.float64(5), np.float16(5), np.int32(5), np.uint8(5)):
        assert np.allclose(quern.norm.rms_norm(x, weight, eps=eps), 2 / 3)
    a, b = np.ones((3, 8), np.float16), np.ones((8, 8), np.float16)
    assert np.all(quern.gemm.dense(a, -b, activation=np.str_("relu")) == 0) and np.all(quern.gemm.dense(a, -b, activation=np.int64(1)) == 0)
    plan = quern.plan("norm.rms_norm", tokens=np.int64(64), hidden=np.int32(4096), arch="sm_90a")
    assert plan == quern.plan("norm.rms_norm", tokens=64, hidden=4096, arch="sm_90a") and plan["grid"][0] == 64
    assert quern.plan("norm.rms_norm", device="emu") == quern.plan(quern.norm.rms_norm, device="emu")
    assert testing.cases("norm.rms_norm", np.int64(2)) == testing.cases(quern.norm.rms_norm, 2)


def test_words_of_what_was_got():
    from quern import _check

    assert [_check.got(v) for v in (None, 90, True, "a", [1], np.ones(2), f32(1), "a" * 99, (9, 0))] == [
        "None", "90 (int)", "True (bool)", "'a' (str)", "a list", "a numpy.ndarray", "a numpy.float32", "a str", "(9, 0) (tuple)"]
    with pytest.raises(TypeError, match=r"^plan: `arch` is 90 \(int\), expected the name of an arch, as 'sm_90a'$"):
        quern.plan("norm.rms_norm", arch=90)
    with pytest.raises(TypeError, match=r"^load: `path` is None, expected a path: a str or an os\.PathLike$"):
        quern.load(None)
    with pytest.raises(TypeError, match=r"^log_level: `level` is 'debug' \(str\), expected an integer$"):
        quern.log_level("debug")
    with pytest.raises(TypeError, match=r"^norm\.rms_norm: `eps` is a numpy\.ndarray, expected a number$"):
        quern.norm.rms_norm(np.ones((3, 8), f32), np.ones(8, f32), eps=np.array(1e-5))
