# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What is not an op's result: cost of the import, documentation, stubs, capabilities, plan, warm, log."""
import ast
import inspect
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest

import quern
from quern import testing

ROOT = os.path.dirname(quern.__file__)


def python(code, **environment):
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment})
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_import_is_cheap():
    """Beside the interpreter's own start 50 ms, the least of several tries; and nothing heavy is loaded."""
    code = "import time; t = time.perf_counter(); import quern; t = time.perf_counter() - t; import sys; print(t, [m for m in ('torch', 'numpy', 'jax', 'tvm_ffi') if m in sys.modules])"
    tries = [python(code).split(" ", 1) for _ in range(5)]
    assert all(t[1].strip() == "[]" for t in tries)
    assert min(float(t[0]) for t in tries) <= 0.050


def test_signature_and_docstring():
    assert str(inspect.signature(quern.norm.rms_norm)).startswith("(x, weight, eps=1e-06, weight_bias=0.0, amax_floor=0.0001, out=None, scales=None, token_scales=None, stream=None, static_scale=None, *, out_dtype=None, device=None, backend='auto'")
    doc = quern.norm.rms_norm.__doc__
    for words in ("out = x / sqrt(mean(x^2) + eps) * (weight + weight_bias)", "x: [tokens, hidden] f32 or f16 or bf16", "weight: [hidden] like x or f32", "ValueError", "NotImplementedError"):
        assert words in doc, doc
    for op in quern.ops():
        assert op.schema.facts["formula"] in op.__doc__
        assert all(f"    {t['name']}: [" in op.__doc__ for t in op.schema.tensors)


def test_documents_of_ops_are_for_users():
    """No words of the tests in what help() shows."""
    for op in quern.ops():
        assert "generated" not in op.__doc__, op.id


def test_stubs_say_what_the_functions_are():
    for op in quern.ops():
        with open(os.path.join(ROOT, op.schema.family + ".pyi"), encoding="utf-8") as f:
            tree = ast.parse(f.read())
        cls = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "_" + op.__name__)
        call = cls.body[0]
        names = [a.arg for a in call.args.args[1:] + call.args.kwonlyargs]
        assert names == list(inspect.signature(op).parameters)
        assert ast.get_docstring(call) == inspect.cleandoc(op.__doc__)
        defaults = [ast.literal_eval(d) for d in call.args.defaults + call.args.kw_defaults if d is not None]
        assert defaults == [p.default for p in inspect.signature(op).parameters.values() if p.default is not p.empty]
        assert any(isinstance(n, ast.AnnAssign) and n.target.id == op.__name__ for n in tree.body)


def test_types_are_known_to_checkers():
    with open(os.path.join(ROOT, "__init__.pyi"), encoding="utf-8") as f:
        text = f.read()
    assert all(f"from . import {op.schema.family} as {op.schema.family}\n" in text for op in quern.ops())
    assert "from ._tools import" in text and all(f" {name} as {name}" in text for name in quern.__all__)
    for name in quern.__all__:
        parameters = inspect.signature(getattr(quern, name)).parameters.values()
        assert all(p.annotation is not p.empty for p in parameters) and getattr(quern, name).__annotations__.get("return", "none") != "none", name
    assert os.path.exists(os.path.join(ROOT, "py.typed"))


def test_ops_are_importable():
    from quern.norm import rms_norm
    assert rms_norm is quern.norm.rms_norm and "norm" in dir(quern) and "rms_norm" in dir(quern.norm)


def test_capabilities():
    dense = quern.gemm.dense
    assert "warp_specialised_sm90" in dense.backends and dense.backends[-1] == "portable"
    assert dense.is_backend_supported("warp_specialised_sm90", 90) and dense.is_backend_supported("warp_specialised_sm90")
    assert not dense.is_backend_supported("warp_specialised_sm90", 80) and not dense.is_backend_supported("warp_specialised_sm90", 120)
    assert dense.is_backend_supported("portable", 80)
    for cc in (90, "90", "9.0", "sm_90", "sm_90a", (9, 0)):
        assert dense.is_backend_supported("warp_specialised_sm90", cc) and dense.is_compute_capability_supported(cc) and dense.is_backend_supported("auto", cc)
    assert not dense.is_compute_capability_supported(70) and not dense.is_backend_supported("auto", "7.5")
    for cc in (9.0, "nonsense", (9,), (9, 0, 0), True, 9, 90.0):
        with pytest.raises(ValueError, match="gemm.dense: `cc` is .*, expected a compute capability: 90, '90', '9.0', 'sm_90a' or"):
            dense.is_compute_capability_supported(cc)
    with pytest.raises(ValueError, match="gemm.dense: `backend` is 'cutlass', expected one of auto, .*portable"):
        dense.is_backend_supported("cutlass")


def test_backend_by_name():
    a = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float16)
    for backend in ("auto", "portable"):
        out = quern.gemm.dense(a, a, backend=backend)
        assert np.allclose(out.astype(float), a.astype(float) @ a.T.astype(float), atol=2e-2)


def test_options_reach_the_library():
    a = np.ones((4, 64), np.float16)
    for words, expected in (({"batch_invariant": True}, "batch_invariant=1"), ({"pdl": True}, "pdl=1"), ({"backend": "portable"}, "variant=portable")):
        code = f"""
import quern, numpy as np
quern.log_level(3)
a = np.ones((4, 64), np.float16)
quern.gemm.dense(a, a, **{words!r})
"""
        log = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "QN_LOG_DEST": "stderr"})
        assert log.returncode == 0 and expected in log.stderr, log.stderr


def test_host_time():
    """What bench/gpu/python_host.py sets calls from Python beside."""
    from quern import _arrays
    from quern._library import library

    op, x = quern.norm.rms_norm.op, np.ones((3, 8), np.float32)
    out = np.full_like(x, np.nan)
    handed = [_arrays.Numpy().hand_over(op, name, array) for name, array in (("x", x), ("weight", np.ones(8, np.float32)), ("out", out))]
    absent = [None] * 3  # scales, token_scales, static_scale
    call, launch = library().op_timed(op.id, 2)(*handed, *absent, 1e-6, 0.0, 1e-4)
    assert call > 0 and launch > 0 and np.allclose(out, 1)
    nothing = [_arrays.Numpy().hand_over(op, name, array) for name, array in (("x", x[:0]), ("weight", np.ones(8, np.float32)), ("out", out[:0]))]
    assert len(library().op_timed(op.id, 2)(*nothing, *absent, 1e-6, 0.0, 1e-4)) == 0
    with pytest.raises(ValueError, match=r"norm\.rms_norm: `eps` is -1"):
        library().op_timed(op.id, 2)(*handed, *absent, -1.0, 0.0, 1e-4)


def test_bench_gpu_time():
    """On the emulated device by the wall clock: calls take turns, each has its own figure, and what one throws comes out."""
    made = []

    def slow():
        made.append("slow")
        time.sleep(0.002)

    quick, slept = testing.bench_gpu_time(lambda: made.append("quick"), slow, device="emu", budget_ms=40)
    assert quick.timer == slept.timer == "wall clock" and quick.runs >= 3 and slept.runs >= 3
    assert quick.min_us <= quick.p10_us <= quick.median_us <= quick.p90_us
    assert quick.median_us < 2000 <= slept.min_us
    assert made.index("slow") < len(made) - 1 - made[::-1].index("quick"), "they took turns"
    assert isinstance(testing.bench_gpu_time(slow, device="emu", budget_ms=5), testing.Timing)
    with pytest.raises(ZeroDivisionError):
        testing.bench_gpu_time(lambda: 1 / 0, device="emu")
    with pytest.raises(ValueError, match="nowhere"):
        testing.bench_gpu_time(slow, device="nowhere")
    with pytest.raises(TypeError, match="bench_gpu_time: `device` is a float"):
        testing.bench_gpu_time(slow, device=1.5)
    for calls, budget in (([], 5), ([slow], float("nan")), ([slow], -1)):
        with pytest.raises(ValueError, match="bench_gpu_time: [01] calls"):
            testing.bench_gpu_time(*calls, device="emu", budget_ms=budget)


def test_skip_check():
    x, weight = np.ones((3, 8), np.float32), np.ones(8, np.float32)
    assert quern.norm.rms_norm(x, weight, eps=-1e-3, skip_check=True).shape == (3, 8)


def test_workspace():
    words = next(w for w in testing.cases("attention.paged", 60, 1 << 20) if quern.plan("attention.paged", *w.split())["workspace"])
    need = quern.plan("attention.paged", *words.split())["workspace"]
    memory = np.empty(need + 256, np.uint8)
    start = -memory.ctypes.data % 256
    with testing.Case("attention.paged", words) as case:
        case.run(workspace=memory[start:start + need])
        assert case.wrong() == ""
        with pytest.raises(ValueError, match=f"`workspace` has 16 bytes, expected {need}"):
            case.run(workspace=memory[start:start + 16])


def test_workspace_bytes():
    """Before the call, by its arguments, outputs given or not; what it says is enough, and a byte less is not."""
    words = "batch=3 capacity=3000 heads_kv=2 out.pad=0"
    decode = quern.attention.paged
    with testing.Case(decode, words) as case:
        arguments = {**case.tensors, **case.attributes, "device": "emu"}
        need = decode.workspace_bytes(**arguments)
        assert need == quern.plan(decode, *words.split(), device="emu")["workspace"] > 0
        assert decode.workspace_bytes(**{**arguments, "out": None}) == need and case.tensors["out"].view(np.uint8).min() == 255, "nothing ran"
        assert decode.workspace_bytes(**arguments, batch_invariant=True) == quern.plan(decode, *words.split(), "batch_invariant=true", device="emu")["workspace"] != need
        memory = np.empty(need + 256, np.uint8)
        start = -memory.ctypes.data % 256
        case.run(workspace=memory[start:start + need])
        assert case.wrong() == ""
        with pytest.raises(ValueError, match=f"`workspace` has {need - 1} bytes, expected {need}"):
            case.run(workspace=memory[start:start + need - 1])
    x, weight = np.ones((3, 8), np.float32), np.ones(8, np.float32)
    assert quern.norm.rms_norm.workspace_bytes(x, weight) == 0 == quern.norm.rms_norm.workspace_bytes(x[:0], weight)
    with pytest.raises(ValueError, match=r"norm\.rms_norm: `weight` has shape \[7\]"):
        quern.norm.rms_norm.workspace_bytes(x, weight[:7])
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilon'|got an unexpected keyword"):
        quern.norm.rms_norm.workspace_bytes(x, weight, epsilon=1)


def test_workspace_bytes_of_other_frameworks():
    torch = pytest.importorskip("torch", reason="needs torch")
    with testing.Case("attention.paged", "batch=3 capacity=3000 q.dtype=f16") as case:
        need = case.op.workspace_bytes(**case.tensors, **case.attributes, device="emu")
        tensors = {name: None if t is None else torch.from_numpy(t) for name, t in case.tensors.items()}
        assert case.op.workspace_bytes(**tensors, **case.attributes, device="emu") == need > 0
        assert case.op.workspace_bytes(**{**tensors, "out": None}, **case.attributes, device="emu") == need


def test_typed_bits():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes")
    x = np.random.default_rng(1).standard_normal((3, 64)).astype(ml_dtypes.bfloat16)
    weight = np.ones(64, ml_dtypes.bfloat16)
    out = quern.norm.rms_norm(quern.typed(x.view(np.uint16), "bf16"), quern.typed(weight.view(np.uint16), "bf16"))
    assert out.dtype == "bf16" and (out.array == quern.norm.rms_norm(x, weight).view(np.uint16)).all()


def test_plan():
    plan = quern.plan(quern.norm.rms_norm, "x.dtype=f16", tokens=64, hidden=4096, arch="sm_90a")
    assert plan["variant"] == "portable" and plan["grid"][0] == 64 and "dtype=f16" in plan["kernel"]
    with pytest.raises(ValueError, match="`tokns` is no parameter"):
        quern.plan("norm.rms_norm", tokns=1)


def test_ops_print_with_their_formulas():
    ops = quern.ops()
    assert isinstance(ops, list) and quern.norm.rms_norm in ops
    lines = repr(ops).split("\n")
    assert [line.split("  ")[0] for line in lines] == [op.id for op in ops]
    assert re.search(r"^norm\.rms_norm +out = x / sqrt\(mean\(x\^2\) \+ eps\) \* \(weight \+ weight_bias\)$", repr(ops), re.MULTILINE)


def test_doctor():
    report = quern.doctor()
    assert report["ops"] == len(quern.ops()) and any(d["name"] == "emu" for d in report["devices"])


def test_warm(monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("QN_CACHE_DIR", str(tmp_path))
    seen = []
    limits = ["tokens=1..2", "alignment=16", "tp=1"]
    listed = quern.warm("llama-3.1-8b", *limits, archs=["sm_90a"], list_only=True)
    assert quern.warm("llama-3.1-8b", *limits, archs="sm_90a", list_only=True)["kernels"] == listed["kernels"]
    assert listed["kernels"] and all(k["state"] == "listed" for k in listed["kernels"])
    with pytest.raises(ValueError, match="tokns"):
        quern.warm("llama-3.1-8b", "tokns=1..64", list_only=True)
    report = quern.warm("llama-3.1-8b", "tokens=1", "batch=1", "alignment=16", "tp=1", device="emu", processes=2, progress=lambda *a: seen.append(a))
    assert len(seen) == len(report["kernels"]) and seen[-1][1] == seen[-1][2]
    assert {k["state"] for k in report["kernels"]} == {"compiled"}
    again = quern.warm("llama-3.1-8b", "tokens=1", "batch=1", "alignment=16", "tp=1", device="emu", processes=1)
    assert {k["state"] for k in again["kernels"]} == {"cached"} and f"{len(seen)}/{len(seen)}" in capfd.readouterr().err


def test_log_goes_to_logging():
    code = """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
import numpy as np, quern
quern.norm.rms_norm(np.ones((3, 8), np.float32), np.ones(8, np.float32), device="emu")
"""
    text = python(code, QN_LOG_LEVEL="", QN_LOG_DEST="")
    assert "quern INFO" in text and "norm.rms_norm" in text, text


def test_threads():
    """Calls release the interpreter: several at once, with the log coming back into it."""
    x, weight = np.random.default_rng(1).standard_normal((64, 256)).astype(np.float32), np.ones(256, np.float32)
    expected = quern.norm.rms_norm(x, weight)
    wrong = []

    def run():
        for _ in range(20):
            if not (quern.norm.rms_norm(x, weight) == expected).all():
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_command_as_a_module():
    result = subprocess.run([sys.executable, "-m", "quern", "list"], capture_output=True, text=True, check=False)
    assert result.returncode == 0 and "norm.rms_norm" in result.stdout, result.stderr


def test_command():
    command = shutil.which("quern", path=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
    out = subprocess.run([command, "list", "--json"], capture_output=True, text=True, check=True).stdout
    assert [o["op"] for o in json.loads(out)] == [op.id for op in quern.ops()]


def test_ops_pickle():
    import pickle
    assert pickle.loads(pickle.dumps(quern.norm.rms_norm)) is quern.norm.rms_norm


def test_output_shape():
    """Extents are ceil(factor * axis / divisor) + offset, read backwards from inputs; a tensor that does not fit its dims sets none."""
    from quern import _op
    from quern._schema import Schema

    def tensor(name, role, *axes):
        return {"name": name, "role": role, "optional": False, "dtypes": ["f32"], "axes": [dict(zip(("axis", "factor", "offset", "divisor"), (*extent, 1))) for extent in axes]}

    schema = Schema({"op": "a.b", "tensors": [tensor("x", "in", ("tokens", 1, 0), ("hidden", 2, 1)), tensor("out", "out", ("hidden", 3, 2), (None, 0, 5), ("tokens", 1, 0), ("hidden", 1, 1, 2))],
                     "attributes": [], "variants": []})
    assert _op.output_shape(schema, 1, [np.empty((4, 7)), None]) == (11, 5, 4, 3)
    assert _op.output_shape(schema, 1, [np.empty((4, 8)), None]) is None
    assert _op.output_shape(schema, 1, [np.empty(4), None]) is None


def test_output_shape_by_a_formula():
    """Extents of several axes and of attributes: the steps of quern/op/expression.h, as `quern info --json` prints them."""
    from quern import _op
    from quern._schema import Schema

    def extent(axis=None, formula=None):
        return {"axis": axis, "factor": 1 if axis else 0, "offset": 0, "divisor": 1, "formula": formula}

    def tensor(name, role, *axes, optional=False):
        return {"name": name, "role": role, "optional": optional, "dtypes": ["f32"], "axes": list(axes)}

    tokens, heads, topk, group = ({"name": n} for n in ("tokens", "heads", "topk", "group"))
    schema = Schema({"op": "a.b", "variants": [], "attributes": [{"name": "topk", "type": "i32", "words": []}, {"name": "group", "type": "i64", "words": []}], "tensors": [
        tensor("out", "out", extent(formula=[tokens, topk, "*"]), extent(formula=[heads, 2, heads, "*", "+", group, "ceil_div"])),
        tensor("half", "out", extent(formula=[tokens, 2, "/"])),
        tensor("x", "in", extent("tokens"), optional=False), tensor("y", "in", extent("heads"), optional=True)]})
    shape = lambda i, n, attributes, y=np.empty(5): _op.output_shape(schema, i, [None, None, np.empty(n), y], attributes)  # noqa: E731
    assert shape(0, 3, (4, 8)) == (12, 2)
    assert shape(0, 3, (4, 7)) == (12, 3)
    assert shape(0, 3, (4, 0)) is None and shape(0, 3, ("many", 8)) is None and shape(0, 3, (2.0, 8)) is None and shape(0, 3, (-1, 8)) is None
    assert shape(0, 3, (4, 8), None) is None
    assert shape(1, 4, (1, 1)) == (2,) and shape(1, 5, (1, 1)) is None
    with pytest.raises(ValueError, match="or `y`, which tells its `heads`"):
        _op._check_told(types.SimpleNamespace(id="a.b", schema=schema), 0, [None, None, np.empty(3), None])


def test_integers_are_exact():
    """All 64 bits of an attribute reach the library, and more are an error."""
    for value in (2**53 + 1, 2**63 - 1):
        with testing.Case("attention.paged", f"csr=1 max_seq_kv={value}") as case:
            assert case.attributes["max_seq_kv"] == value
            case.run()
            assert not case.wrong()
            case.attributes["max_seq_kv"] = 2**63
            with pytest.raises(ValueError, match=r"attention\.paged: `max_seq_kv` is 9223372036854775808, expected a signed 64-bit integer"):
                case.run()


def test_size():
    total = sum(os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(ROOT) for f in files)
    assert total < 12e6  # unpacked; the wheel is less than half of it
