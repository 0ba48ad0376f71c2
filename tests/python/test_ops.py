# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Every op of the registry, from every framework that is installed, judged by its reference as the library's own checks judge it."""
import importlib.util
import os

import numpy as np
import places
import pytest
from verdict import bits, returned, wrong

import quern
from quern import testing

IDS = [op.id for op in quern.ops()]
ALL = [(id_, words, number) for id_ in IDS for number, words in enumerate(testing.cases(id_, 6, 1 << 18))]
# A third of each op's cases, another one with the next rotation (tools/run_tests.py); QN_TEST_FULL=1: all. On a GPU they take seconds.
ROTATION = int(os.environ.get("QN_TEST_ROTATION", "0"))
CASES = [(id_, words) for id_, words, number in ALL if os.environ.get("QN_TEST_FULL") == "1" or places.ON_GPU or (number + ROTATION) % 3 == 0]


def needs(module):
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"needs {module}")


def test_there_are_ops():
    assert "norm.rms_norm" in IDS and len(ALL) >= 3 * len(IDS) and {id_ for id_, _ in CASES} == set(IDS)


@pytest.mark.parametrize("id_, words", CASES)
def test_numpy(id_, words):
    with testing.Case(id_, words) as case:
        poisoned, before = case.wrong(), {n: bits(t).copy() for n, t in returned(case).items()}
        result = case.run()
        assert case.wrong() == ""
        assert poisoned or case.changed() == 0, "poison passes"
        if case.changed() == 0:
            assert all((bits(t) == before[n]).all() for n, t in returned(case).items())
        written = [case.tensors[case.op.schema.tensors[i]["name"]] for i in case.op.schema.returned]
        written = [w for w in written if w is not None]
        assert all(r is w for r, w in zip(result if isinstance(result, tuple) else (result,), written))


def allocated(case, convert, without=()):
    """Calls with outputs left to quern, and the case's options but those `without`; what it returns is put into the case's own outputs."""
    schema = case.op.schema
    outputs = [schema.tensors[i] for i in schema.outputs]
    tensors = {n: None if t is None else convert(t) for n, t in case.tensors.items()}
    dtypes = {}
    for t in outputs:
        there = case.tensors[t["name"]]
        tensors[t["name"]] = there is not None if t["optional"] else None
        if there is not None and len(t["dtypes"]) > 1:
            dtypes[t["name"] + "_dtype"] = there.dtype
    result = case.op(**tensors, **case.attributes, **{k: v for k, v in case.options.items() if k not in without}, **dtypes)
    names = [schema.tensors[i]["name"] for i in schema.returned if case.tensors[schema.tensors[i]["name"]] is not None]
    return dict(zip(names, result if isinstance(result, tuple) else (result,)))


@pytest.mark.parametrize("id_, words", CASES)
def test_numpy_allocated(id_, words):
    with testing.Case(id_, words) as case:
        for name, array in allocated(case, lambda a: a).items():
            assert array.shape == case.tensors[name].shape and array.dtype == case.tensors[name].dtype
            case.tensors[name][...] = array
        assert wrong(case, id_, words) == ""


@needs("jax_tvm_ffi")
@pytest.mark.anywhere
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("id_, words", CASES)
def test_jax(id_, words, jit):
    import jax

    # Integers of 64 bits are 32 bits wide in JAX unless it is told otherwise
    with testing.Case(id_, words) as case, jax.enable_x64(any(t is not None and t.dtype == np.int64 for t in case.tensors.values())):
        inputs = {n: jax.numpy.array(t) for n, t in case.tensors.items() if t is not None}
        before = {n: np.asarray(a).tobytes() for n, a in inputs.items()}

        def run(arrays):
            # Cases of matrix products that name a variant for Hopper pad rows to multiples of 16 bytes for it. Arrays of JAX have no strides: where
            # rows are others without the padding, the variant refuses them.
            ragged = any(inputs[n].shape[-1] * inputs[n].dtype.itemsize % 16 != 0 for n in ("a", "b") if n in inputs)
            without = ["backend"] if id_.startswith("gemm.") and ragged else []
            return allocated(case, lambda a: arrays[next(n for n, t in case.tensors.items() if t is a)], without)

        results = (jax.jit(run) if jit else run)(inputs)
        assert {n: np.asarray(a).tobytes() for n, a in inputs.items()} == before, "arrays of JAX do not change"
        for name, array in results.items():
            assert isinstance(array, jax.Array)
            case.tensors[name][...] = np.asarray(array)
        assert wrong(case, id_, words) == ""


def test_transposed_views():
    """Of every layout the bits are those of row-major operands; a view that is dense nowhere is an error."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((rows, 64)).astype(np.float16) for rows in (40, 24))
    expected = quern.gemm.dense(a, b)
    gaps = np.full((64, 48), np.nan, np.float16)
    gaps[:, :40] = a.T
    for left in (a, np.asfortranarray(a), gaps[:, :40].T):
        for right in (b, np.ascontiguousarray(b.T).T):
            out = quern.gemm.dense(left, right)
            assert out.flags.c_contiguous and np.array_equal(out, expected)
    with pytest.raises(ValueError, match=r"gemm\.dense: `a` has strides 128 and 2 at its last two dims, expected 1 at one of them"):
        quern.gemm.dense(np.ones((40, 128), np.float16)[:, ::2], b)


@needs("torch")
@pytest.mark.anywhere
def test_torch_transposed_views():
    import torch

    x, weight = (torch.randn(64, columns).to(places.TORCH, torch.float16) for columns in (40, 24))
    expected = quern.gemm.dense(x.t().contiguous(), weight.t().contiguous())
    for a in (x.t(), x.t().contiguous()):
        for b in (weight.t(), weight.t().contiguous()):
            assert torch.equal(quern.gemm.dense(a, b), expected)


@needs("jax_tvm_ffi")
@pytest.mark.anywhere
def test_jax_vmap():
    import jax

    x = jax.random.normal(jax.random.key(1), (3, 4, 64))
    weight = jax.numpy.ones(64)
    out = jax.vmap(lambda x: quern.norm.rms_norm(x, weight))(x)
    assert (out == quern.norm.rms_norm(x.reshape(12, 64), weight).reshape(3, 4, 64)).all()


@needs("torch")
@pytest.mark.anywhere
@pytest.mark.parametrize("id_, words", CASES)
def test_torch(id_, words):
    with testing.Case(id_, words) as case:
        places.run(case, places.Torch())
        assert case.wrong() == ""


@needs("torch")
@pytest.mark.anywhere
@pytest.mark.parametrize("id_, words", CASES)
def test_torch_allocated(id_, words):
    with testing.Case(id_, words) as case:
        arrays = places.Torch()
        for name, tensor in allocated(case, arrays).items():
            shared = arrays.shared(case.tensors[name])
            assert tensor.shape == shared.shape and tensor.dtype == shared.dtype and tensor.device.type == places.TORCH
            places.copy_bits(shared, tensor)
        assert wrong(case, id_, words) == ""


@pytest.mark.gpu
@pytest.mark.parametrize("id_, words", CASES)
def test_cupy(id_, words):
    pytest.importorskip("cupy", reason="needs CuPy")
    with testing.Case(id_, words) as case:
        places.run(case, places.Cupy())
        assert case.wrong() == ""


@pytest.mark.gpu
def test_cupy_allocated():
    cupy = pytest.importorskip("cupy", reason="needs CuPy")
    x = cupy.random.standard_normal((5, 64)).astype(cupy.float16)
    out = quern.norm.rms_norm(x, cupy.ones(64, cupy.float16))
    assert isinstance(out, cupy.ndarray) and out.dtype == x.dtype
    expected = x.astype(float) / cupy.sqrt((x.astype(float) ** 2).mean(1, keepdims=True) + 1e-6)
    assert float(abs(out - expected).max()) < 2e-3
    bits = quern.norm.rms_norm(quern.typed(x.view(cupy.uint16), "f16"), quern.typed(cupy.ones(64, cupy.float16).view(cupy.uint16), "f16"))
    assert isinstance(bits.array, cupy.ndarray) and (bits.array == out.view(cupy.uint16)).all()
