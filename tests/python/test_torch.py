# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""torch: its ops made from the schema, traced whole by torch.compile, and what eager calls do."""
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import numpy as np  # noqa: E402

import quern  # noqa: E402
import quern.torch  # noqa: E402
from quern import testing  # noqa: E402

IDS = [op.id for op in quern.ops()]


def as_torch(array):
    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(array)
    return torch.from_numpy(array.view({2: np.int16, 1: np.uint8}[array.dtype.itemsize])).view(getattr(torch, array.dtype.name))


def small_case(id_):
    """The first case whose outputs are not empty, of dtypes that torch can fill on a CPU."""
    for words in testing.cases(id_, 60, 1 << 16):
        if "=e4m3" in words or "=e5m2" in words:
            continue
        case = testing.Case(id_, words)
        if case.wrong():
            return case
        case.close()


def arguments(case):
    """Keywords of a call whose outputs torch allocates."""
    schema = case.op.schema
    tensors = {n: None if t is None else as_torch(t) for n, t in case.tensors.items()}
    dtypes = {}
    for i in schema.outputs:
        t, there = schema.tensors[i], case.tensors[schema.tensors[i]["name"]]
        tensors[t["name"]] = there is not None if t["optional"] else None
        if len(t["dtypes"]) > 1:
            dtypes[t["name"] + "_dtype"] = there.dtype.name
    return {**tensors, **case.attributes, **case.options, **dtypes}


@pytest.mark.parametrize("id_", IDS)
@pytest.mark.parametrize("given", [False, True])
def test_compile(id_, given):
    """One graph without a break; the outputs are judged by the reference."""
    op = quern._op.by_id(id_)
    with small_case(id_) as case:
        keywords = arguments(case)
        names = [op.schema.tensors[i]["name"] for i in op.schema.returned if case.tensors[op.schema.tensors[i]["name"]] is not None]
        if given:
            keywords.update({n: as_torch(case.tensors[n]) for n in names})
            keywords = {n: v for n, v in keywords.items() if not n.endswith("_dtype")}
        torch._dynamo.reset()
        compiled = torch.compile(lambda **k: op(**k), fullgraph=True, backend="aot_eager")
        result = compiled(**keywords)
        for name, tensor in zip(names, result if isinstance(result, tuple) else (result,)):
            as_torch(case.tensors[name]).copy_(tensor)
        assert case.wrong() == ""


@pytest.mark.parametrize("id_", IDS)
def test_torch_checks_the_registration(id_):
    """torch.library.opcheck: the schema's mutations are true, the fake agrees with the call."""
    with small_case(id_) as case:
        captured = []
        functional = quern.torch._functional[id_]
        quern.torch._functional[id_] = lambda *a: captured.append(a) or functional(*a)
        try:
            keywords = arguments(case)
            keywords.pop("batch_invariant"), keywords.pop("backend")
            dtypes = {i: keywords.pop(case.op.schema.tensors[i]["name"] + "_dtype") for i in case.op.schema.choosable}
            tensors = [keywords[t["name"]] for t in case.op.schema.tensors]
            quern.torch._traced(id_, tensors, [case.attributes[a["name"]] for a in case.op.schema.attributes], None, "emu", "auto", 0, None, dtypes)
        finally:
            quern.torch._functional[id_] = functional
        torch.library.opcheck(functional, captured[0], test_utils=("test_schema", "test_faketensor"))


def test_dynamic_shapes():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, w: quern.norm.rms_norm(x * 2, w) + 1, fullgraph=True, dynamic=True, backend="aot_eager")
    w = torch.ones(64)
    for tokens in (3, 5, 9):
        x = torch.randn(tokens, 64)
        assert torch.allclose(compiled(x, w), quern.norm.rms_norm(x * 2, w) + 1)
    assert compiled(torch.randn(2, 64), w).shape == (2, 64)


def test_no_gradient():
    x = torch.randn(3, 64, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula"):
        torch.ops.quern.norm_rms_norm(x, torch.ones(64), 1e-6, None, None, 0).sum().backward()


def test_eager_returns_what_was_given():
    x, w, out = torch.randn(3, 64), torch.ones(64), torch.empty(3, 64)
    assert quern.norm.rms_norm(x, w, out=out) is out
    assert torch.allclose(out, torch.nn.functional.rms_norm(x, (64,), w, 1e-6), atol=1e-5)
    assert quern.norm.rms_norm(torch.nn.Parameter(x), torch.nn.Parameter(w)).shape == (3, 64)


def test_jax_arrays_stay_as_they_are():
    jax = pytest.importorskip("jax", reason="needs jax")
    residual = jax.numpy.ones((3, 64))
    with pytest.raises(TypeError):
        quern.norm.fused_add_rms_norm(torch.ones(3, 64), residual, torch.ones(64), out=torch.ones(3, 64))
    assert (residual == 1).all()


def test_dtypes_and_errors():
    a = torch.ones(4, 64, dtype=torch.bfloat16)
    assert quern.gemm.dense(a, a).dtype == torch.bfloat16
    assert quern.gemm.dense(a, a, out_dtype=torch.float32).dtype == torch.float32
    with pytest.raises(TypeError, match=r"norm\.rms_norm: `x` is of DLPack's type 5 with 64 bits, expected one of f32"):
        quern.norm.rms_norm(torch.ones(3, 8, dtype=torch.complex64), torch.ones(8))
    with pytest.raises(ValueError, match=r"`weight` has shape \[7\], expected hidden=8 at dim 0"):
        quern.norm.rms_norm(torch.ones(3, 8), torch.ones(7))
    with pytest.raises(TypeError, match="`weight` is a list, expected a tensor"):
        quern.norm.rms_norm(torch.ones(3, 8), [1.0] * 8)
