# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""torch: its ops made from the schema, traced whole by torch.compile, and what eager calls do."""
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from verdict import wrong  # noqa: E402

import quern  # noqa: E402
import quern.torch  # noqa: E402
from quern import testing  # noqa: E402

pytestmark = pytest.mark.anywhere
IDS = [op.id for op in quern.ops()]


def small_case(id_):
    """The first case whose outputs are not empty, of dtypes that torch can fill on a CPU if there is one."""
    for words in sorted(testing.cases(id_, 60, 1 << 16), key=lambda words: "=e4m3" in words or "=e5m2" in words):
        case = testing.Case(id_, words)
        if case.wrong():
            case.words = words
            return case
        case.close()


def arguments(case, arrays):
    """Keywords of a call whose outputs torch allocates."""
    schema = case.op.schema
    tensors = {n: None if t is None else arrays(t) for n, t in case.tensors.items()}
    dtypes = {}
    for i in schema.outputs:
        t, there = schema.tensors[i], case.tensors[schema.tensors[i]["name"]]
        tensors[t["name"]] = there is not None if t["optional"] else None
        if there is not None and len(t["dtypes"]) > 1:
            dtypes[t["name"] + "_dtype"] = there.dtype.name
    return {**tensors, **case.attributes, **case.options, **dtypes}


@pytest.mark.parametrize("id_", IDS)
@pytest.mark.parametrize("given", [False, True])
def test_compile(id_, given):
    """One graph without a break; the outputs are judged by the reference."""
    op = quern._op.by_id(id_)
    with small_case(id_) as case:
        arrays = places.Torch()
        keywords = arguments(case, arrays)
        names = [op.schema.tensors[i]["name"] for i in op.schema.returned if case.tensors[op.schema.tensors[i]["name"]] is not None]
        if given:
            keywords.update({n: arrays(case.tensors[n]) for n in names})
            keywords = {n: v for n, v in keywords.items() if not n.endswith("_dtype")}
        torch._dynamo.reset()
        compiled = torch.compile(lambda **k: op(**k), fullgraph=True, backend="aot_eager")
        result = compiled(**keywords)
        for name, tensor in zip(names, result if isinstance(result, tuple) else (result,)):
            places.copy_bits(arrays.shared(case.tensors[name]), tensor)
        assert wrong(case, id_, case.words) == ""


def test_fake_tensors():
    """make_fx, and passes over graphs, call functions with tensors without memory: an op is then a node of their graph."""
    def layer(x, residual, weight):
        out, residual = quern.norm.fused_add_rms_norm(x, residual, weight, eps=1e-5)
        doubled = torch.empty_like(out)
        quern.elementwise.scale(out, 2.0, out=doubled)
        return doubled, residual

    x, residual = (torch.randn(3, 64, generator=torch.Generator().manual_seed(s)).to(torch.bfloat16).to(places.TORCH) for s in (1, 2))
    weight = torch.linspace(0, 2, 64, device=places.TORCH).to(torch.bfloat16)
    traced = make_fx(layer, tracing_mode="fake")(x, residual, weight)
    targets = {str(node.target) for node in traced.graph.nodes if node.op == "call_function"}
    assert {"quern.norm_fused_add_rms_norm.default", "quern.elementwise_scale_out.default"} <= targets
    for got, expected in zip(traced(x, residual.clone(), weight), layer(x, residual.clone(), weight)):
        assert torch.equal(got, expected)


def test_symbols_of_fake_tensors():
    """With symbolic sizes an integer of a call may be one of them; it is still judged where it is none."""
    x = torch.randn(3, 128)
    step = lambda x: quern.sampling.sample(x, seed=x.shape[0], top_k=x.shape[0])  # noqa: E731
    traced = make_fx(step, tracing_mode="symbolic")(x)
    for rows in (3, 7):
        assert torch.equal(traced(torch.arange(rows * 128.0).view(rows, 128)), step(torch.arange(rows * 128.0).view(rows, 128)))
    with pytest.raises(TypeError, match=r"sampling.sample: `temperature` is .*SymInt, expected a number"):
        make_fx(lambda x: quern.sampling.sample(x, temperature=x.shape[0]), tracing_mode="symbolic")(x)
    with pytest.raises(ValueError, match="sampling.sample: `top_k` is 1099511627776, expected a 32-bit integer"):
        make_fx(lambda x: quern.sampling.sample(x, top_k=2**40), tracing_mode="symbolic")(x)


@pytest.mark.parametrize("id_", IDS)
def test_torch_checks_the_registration(id_):
    """torch.library.opcheck: the schema's mutations are true, the fake agrees with the call."""
    with small_case(id_) as case:
        captured = []
        functional = quern.torch._functional[id_]
        quern.torch._functional[id_] = lambda *a: captured.append(a) or functional(*a)
        try:
            keywords = arguments(case, places.Torch())
            keywords.pop("batch_invariant"), keywords.pop("backend")
            dtypes = {i: keywords.pop(case.op.schema.tensors[i]["name"] + "_dtype", None) for i in case.op.schema.choosable}
            tensors = [keywords[t["name"]] for t in case.op.schema.tensors]
            quern.torch._traced(id_, tensors, [case.attributes[a["name"]] for a in case.op.schema.attributes], None, places.RUN_ON, "auto", 0, None, dtypes)
        finally:
            quern.torch._functional[id_] = functional
        # test_schema multiplies its arguments, which torch cannot do with FP8.
        bytes_in = any(isinstance(a, torch.Tensor) and a.is_floating_point() and a.element_size() == 1 for a in captured[0])
        torch.library.opcheck(functional, captured[0], test_utils=("test_faketensor",) if bytes_in else ("test_schema", "test_faketensor"))


@torch._dynamo.config.patch(recompile_limit=1)
def test_integers_are_not_compiled_in():
    """A number that changes from step to step is a number of the graph: one graph serves all."""
    torch._dynamo.reset()
    x = torch.randn(3, 128)
    compiled = torch.compile(lambda x, n: quern.sampling.sample(x, seed=n, top_k=n), fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (3, 5, 9):
        assert torch.equal(compiled(x, n), quern.sampling.sample(x, seed=n, top_k=n))


@torch._dynamo.config.patch(recompile_limit=1)
def test_integers_that_size_outputs_are_not_compiled_in():
    torch._dynamo.reset()
    x = torch.randn(3, 128)
    for call, numbers in ((lambda x, n: quern.topk.select(x, k=n), (3, 5, 64)), (lambda x, n: quern.quant.per_token_group(x, group_size=n), (64, 32))):
        compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="aot_eager")
        for n in numbers:
            for got, expected in zip(compiled(x, n), call(x, n)):
                assert torch.equal(got.float(), expected.float()) and got.stride() == expected.stride()


def test_dynamic_shapes():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, w: quern.norm.rms_norm(x * 2, w) + 1, fullgraph=True, dynamic=True, backend="aot_eager")
    w = torch.ones(64, device=places.TORCH)
    for tokens in (3, 5, 9):
        x = torch.randn(tokens, 64, device=places.TORCH)
        assert torch.allclose(compiled(x, w), quern.norm.rms_norm(x * 2, w) + 1)
    assert compiled(torch.randn(2, 64, device=places.TORCH), w).shape == (2, 64)


def test_eager_returns_what_was_given():
    x, w, out = torch.randn(3, 64, device=places.TORCH), torch.ones(64, device=places.TORCH), torch.empty(3, 64, device=places.TORCH)
    assert quern.norm.rms_norm(x, w, out=out) is out
    assert torch.allclose(out, torch.nn.functional.rms_norm(x, (64,), w, 1e-6), atol=1e-5)
    for wide in (x, torch.randn(3, 128, device=places.TORCH)[:, :64]):  # allocated outputs are dense
        result = quern.norm.rms_norm(wide, w)
        assert result.is_contiguous() and torch.equal(result, quern.norm.rms_norm(wide, w, out=out)) and result.device == x.device
    for op, arguments in ((quern.activation.silu_and_mul, (w,)), (quern.norm.rms_norm, (w, w))):
        with pytest.raises(ValueError, match=r"`x` has shape \[64\], expected 2 dims"):
            op(*arguments)
    assert quern.norm.rms_norm(torch.nn.Parameter(x), torch.nn.Parameter(w)).shape == (3, 64)


def refuses(*arguments, **keywords):
    raise AssertionError("the call was not taken")


@pytest.mark.parametrize("id_", IDS)
def test_call_in_c(id_, monkeypatch):
    """With outputs given a call is one of the function in C, which hands tensors and attributes over right."""
    op = quern._op.by_id(id_)
    with small_case(id_) as case:
        arrays = places.Torch()
        tensors = {n: None if t is None else arrays(t) for n, t in case.tensors.items()}
        quern._arrays.of_one(next(t for t in tensors.values() if t is not None))  # the first tensor of its class is one of the long way
        monkeypatch.setitem(op.__globals__, "_any", refuses)
        result = op(**tensors, **case.attributes)
        returned = [tensors[op.schema.tensors[i]["name"]] for i in op.schema.returned]
        returned = [t for t in returned if t is not None]
        assert all(a is b for a, b in zip(result if isinstance(result, tuple) else (result,), returned))
        arrays.back()
        assert wrong(case, id_, case.words) == ""


def test_what_the_function_in_c_takes():
    ones = lambda *shape: torch.ones(*shape, device=places.TORCH)  # noqa: E731

    class Weight(torch.nn.Parameter):
        pass

    class Dispatching(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
            raise AssertionError("nobody asks for an operator")

    x, w, out = ones(3, 64), ones(64), ones(3, 64)
    absent = (None, None, None)  # scales, token_scales, static_scale
    rest = (*absent, 1e-6, 0.0, 1e-4)
    quern.norm.rms_norm(x, w, out=out)
    direct = quern.norm.rms_norm.__globals__["_direct"]
    other = torch.Tensor._make_subclass(Dispatching, w)
    for weight in (torch.nn.Parameter(w, requires_grad=False), Weight(w, requires_grad=False)):
        quern.norm.rms_norm(x, weight, out=out)  # by another way, which looks at the class
    quern._arrays.of_one(other)
    for weight in (torch.nn.Parameter(w, requires_grad=False), Weight(w, requires_grad=False), other):
        assert direct(x, weight, out.fill_(0), *rest) == (weight is not other)
        assert torch.allclose(out, torch.full_like(out, weight is not other), atol=1e-5)
    recorded = ones(64).requires_grad_()
    assert not direct(x, recorded, out.fill_(0), *rest) and (out == 0).all()
    with torch.no_grad():
        assert direct(x, recorded, out, *rest) and torch.allclose(out, ones(3, 64), atol=1e-5)
    for arguments in ((), (x, w, out), (x, w, out, *rest, None), (x, [1.0], out, *rest), (x, None, out, *rest), (x, True, out, *rest), (x, w, out, *absent, "1", 0.0, 1e-4),
                      (x, w, out, *absent, None, 0.0, 1e-4), (x, w, out, *absent, 1 << 64, 0.0, 1e-4), (x, w.to("meta"), out, *rest), (x.to_sparse(), w, out, *rest)):
        assert direct(*arguments) is False


def test_both_ways_say_the_same():
    ones = lambda *shape, dtype=torch.float32: torch.ones(*shape, dtype=dtype, device=places.TORCH)  # noqa: E731
    x, w, out, half, square = ones(3, 8), ones(8), ones(3, 8), ones(3, 8, dtype=torch.float16), ones(3, 3, dtype=torch.float16)
    absent = (None, None, None)  # scales, token_scales, static_scale
    rest = (*absent, 1e-6, 0.0, 1e-4)
    calls = {"norm.rms_norm": [(x, w[:7], out, *rest), (w, w, out, *rest), (x[0, 0], w, out, *rest), (half.to(torch.complex64), w, out, *rest), (half, w, out, *rest),
                               (x, w, out, *absent, -1, 0.0, 1e-4), (x, w, out, *absent, True, 0.0, 1e-4), (x[:, ::2], w[:4], out[:, :4].contiguous(), *rest)],
             "gemm.dense": [(half, half, None, None, square, activation) for activation in ("tanh", 7, 1.5)]}
    for id_, all_arguments in calls.items():
        op = quern._op.by_id(id_)
        quern._arrays.of_one(x)
        for arguments in all_arguments:
            said = []
            for function in (op.__globals__["_direct"], op.op.function):
                with pytest.raises((TypeError, ValueError)) as caught:
                    function(*arguments)
                said.append((type(caught.value), str(caught.value)))
            assert said[0] == said[1]


def test_jax_arrays_stay_as_they_are():
    jax = pytest.importorskip("jax", reason="needs jax")
    residual = jax.numpy.ones((3, 64))
    ones = lambda *shape: torch.ones(*shape, device=places.TORCH)  # noqa: E731
    with pytest.raises(TypeError):
        quern.norm.fused_add_rms_norm(ones(3, 64), residual, ones(64), out=ones(3, 64))
    assert (residual == 1).all()


def test_dtypes_and_errors():
    ones = lambda *shape, dtype=torch.float32: torch.ones(*shape, dtype=dtype, device=places.TORCH)  # noqa: E731
    a = ones(4, 64, dtype=torch.bfloat16)
    assert quern.gemm.dense(a, a).dtype == torch.bfloat16
    assert quern.gemm.dense(a, a, out_dtype=torch.float32).dtype == torch.float32
    with pytest.raises(TypeError, match=r"norm\.rms_norm: `x` is complex64, expected f32, f16 or bf16"):
        quern.norm.rms_norm(ones(3, 8, dtype=torch.complex64), ones(8))
    with pytest.raises(ValueError, match=r"`weight` has shape \[7\], expected hidden=8 at dim 0"):
        quern.norm.rms_norm(ones(3, 8), ones(7))
    for keywords in ({}, {"out": ones(3, 8)}, {"batch_invariant": True}):
        with pytest.raises(TypeError, match=r"norm\.rms_norm: `weight` is a list, expected a tensor"):
            quern.norm.rms_norm(ones(3, 8), [1.0] * 8, **keywords)
