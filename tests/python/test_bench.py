# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""`quern bench` with Python's providers: they compute what ops say on the program's own buffers, are judged before they are timed, and fill the same rows."""
import csv
import functools
import json
import os
import shutil
import subprocess
import sys

import pytest

import quern
from quern import bench


def run(capfd, *words):
    """(exit code, rows, what stands on stderr) of one command in this process."""
    capfd.readouterr()
    code = bench.main([*words, "--device", "emu", "--budget", "1", "--json"])
    said = capfd.readouterr()
    return code, json.loads(said.out)["results"] if said.out.strip() else [], said.err


def command(*words, cwd):
    program = shutil.which("quern", path=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
    return subprocess.run([program, "bench", *words], capture_output=True, text=True, cwd=cwd)


@pytest.fixture
def expressions():
    torch = pytest.importorskip("torch", reason="needs torch")
    from quern import _expressions

    torch.set_num_threads(1)  # the emulated device takes the CPUs

    return _expressions


def test_providers_are_those_that_the_program_names(capfd):
    code, _, error = run(capfd, "norm.rms_norm", "--provider", "nobody")
    assert code == 2 and error == f"quern: value error: `provider` is 'nobody', expected one of quern, cublaslt, {', '.join(bench.PROVIDERS)}\n"


def test_missing_packages_are_said_before_anything_runs(capfd, monkeypatch):
    find = bench.importlib.util.find_spec
    monkeypatch.setattr(bench.importlib.util, "find_spec", lambda name: None if name in ("torch", "liger_kernel") else find(name))
    for provider, package in (("torch", "torch"), ("torch_compile", "torch"), ("liger", "torch")):
        code, rows, error = run(capfd, "norm.rms_norm", "--provider", "quern," + provider)
        assert (code, rows) == (2, []) and error == f"quern: unsupported error: `provider` is {provider}, which is not here, expected the package {package}: pip install {package}\n"


def test_command_of_the_wheel_goes_through_python_where_it_must(tmp_path):
    """The program by itself draws nothing."""
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    ran = command("norm.rms_norm", "--plot", "--sweep", "hidden=32,64", "--set", "tokens=2", "--device", "emu", "--budget", "1", "--csv", str(tmp_path / "a.csv"), cwd=tmp_path)
    assert ran.returncode == 0 and "times of the emulated device are no speeds of a GPU" in ran.stdout, ran.stderr
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        assert [row["x_value"] for row in csv.DictReader(file)] == ["32", "64"]
    assert len(os.listdir(tmp_path)) == 2


def test_plot_in_one_command(tmp_path, monkeypatch, capfd):
    matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")
    monkeypatch.chdir(tmp_path)
    code, rows, error = run(capfd, "norm.rms_norm", "--sweep", "hidden=32,64", "--set", "tokens=2", "--plot")
    name = "norm.rms_norm_speed_forward_dtype-bf16_tokens-2.png"
    assert code == 0 and len(rows) == 2 and f"wrote {name}\n" in error and sorted(os.listdir()) == ["norm.rms_norm.csv", name]
    image = matplotlib.image.imread(name)
    assert image.reshape(-1, image.shape[-1]).std(axis=0)[:3].max() > 0.02, "not blank"


def test_expressions_are_of_ops(expressions):
    ids = {op.id for op in quern.ops()}
    assert set(expressions.TORCH) <= ids and set(expressions.LIGER) <= set(expressions.TORCH)


def test_torch_computes_what_ops_say(expressions, capfd):
    """Each expression at the first points of its op's cases, in the dtype that these begin with."""
    ids = sorted(expressions.TORCH)
    code, rows, error = run(capfd, *ids, "--provider", "torch", "--metric", "memory")
    assert code == 0, error
    assert {row["kernel_name"] for row in rows} == set(ids) and all(row["kernel_provider"] == "torch" and row["spec"].startswith("torch ") for row in rows)
    for row in rows:  # what it allocates holds its results at least; an op in place has none
        assert row["y_value_50"] * 2**20 >= row.get("bytes", 0) * 0.99, row


def test_gradients_are_autograds(expressions, capfd):
    code, rows, error = run(capfd, "norm.rms_norm", "--mode", "backward,full", "--sweep", "hidden=96", "--set", "tokens=3", "--sweep", "dtype=bf16,f32", "--provider", "quern,torch", "--metric", "speed,memory")
    assert code == 0 and len(rows) == 16, error
    assert {(row["kernel_provider"], row["kernel_operation_mode"]) for row in rows} == {(p, m) for p in ("quern", "torch") for m in ("backward", "full")}
    code, rows, error = run(capfd, "norm.rms_norm_backward", "--sweep", "hidden=96", "--set", "tokens=3", "--provider", "torch")
    assert code == 0 and len(rows) == 1, error


def test_compiled(expressions, monkeypatch, capfd):
    """Without a compiler behind it: what torch.compile has to follow is the same, and g++ takes 15 s."""
    import torch

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    code, rows, error = run(capfd, "elementwise.soft_cap", "--sweep", "hidden=32", "--set", "tokens=2", "--provider", "torch_compile")
    assert code == 0 and rows[0]["spec"].startswith("torch.compile of torch "), error


def test_a_wrong_provider_is_not_timed(expressions, monkeypatch, tmp_path, capfd):
    calls = []

    def wrong(t, a, d):
        calls.append(1)
        return t.x * t.weight

    monkeypatch.setitem(expressions.TORCH, "norm.rms_norm", wrong)
    code, rows, error = run(capfd, "norm.rms_norm", "--sweep", "hidden=96", "--set", "tokens=3", "--provider", "torch,quern", "--csv", str(tmp_path / "a.csv"))
    assert code == 1 and [row["kernel_provider"] for row in rows] == ["quern"] and "WRONG: norm.rms_norm forward hidden=96 tokens=3 by torch: `out`" in error
    assert len(calls) == 2, "once for its dtypes, once for the judge"
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        assert [row["kernel_provider"] for row in csv.DictReader(file)] == ["quern"]


def test_a_wrong_gradient_is_not_timed(expressions, monkeypatch, capfd):
    import torch

    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, dy):
            return dy / 2

    right = expressions.TORCH["norm.rms_norm"]
    monkeypatch.setitem(expressions.TORCH, "norm.rms_norm", lambda t, a, d: Half.apply(right(t, a, d)))
    code, rows, error = run(capfd, "norm.rms_norm", "--mode", "forward,full", "--sweep", "hidden=96", "--set", "tokens=3", "--provider", "torch")
    assert code == 1 and [row["kernel_operation_mode"] for row in rows] == ["forward"] and "norm.rms_norm_backward: `d" in error


@pytest.mark.parametrize("expression, said", [(lambda t, a, d: t.x.double(), "makes `out` (3, 96) torch.float64, expected (3, 96) torch.bfloat16"), (lambda t, a, d: {"other": t.x}, "makes no `out`"),
                                              (lambda t, a, d: t.nothing, "has no attribute 'nothing'")])
def test_what_cannot_be_the_outputs_is_said(expressions, monkeypatch, expression, said, capfd):
    monkeypatch.setitem(expressions.TORCH, "norm.rms_norm", expression)
    code, rows, error = run(capfd, "norm.rms_norm", "--sweep", "hidden=96", "--set", "tokens=3", "--provider", "torch")
    assert code in (1, 2) and rows == [] and said in error, error


def test_an_op_without_an_expression(expressions, capfd):
    code, rows, error = run(capfd, "sampling.argmax", "--sweep", "vocab=33", "--set", "rows=1", "--provider", "torch")
    assert code == 2 and rows == [] and "sampling.argmax: there is no expression of it for torch, expected one in quern/_expressions.py" in error


def test_arguments():
    with pytest.raises(TypeError, match=r"main: `arguments\[1\]` is 3 \(int\), expected text, as '--sweep'"):
        bench.main(["norm.rms_norm", 3])
    with pytest.raises(TypeError, match="main: `arguments` is 3"):
        bench.main(3)
