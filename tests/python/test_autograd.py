# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Gradients: an op whose schema names the op of its gradients is a node of torch's graph, others refuse a backward pass."""
import types

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402

import quern  # noqa: E402
import quern.torch  # noqa: E402

pytestmark = pytest.mark.anywhere
WITH_GRADIENTS = [op.id for op in quern.ops() if op.schema.backward]
EPS = 1e-5


def formula(x, weight):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS) * weight


def data(tokens, hidden, dtype, seed=1):
    generator = torch.Generator().manual_seed(seed)
    make = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).to(places.TORCH)  # noqa: E731
    return make(tokens, hidden).requires_grad_(), make(hidden).requires_grad_(), make(tokens, hidden)


def gradients(function, x, weight, dy):
    return torch.autograd.grad(function(x, weight), (x, weight), dy)


def test_an_op_has_gradients():
    assert "norm.rms_norm" in WITH_GRADIENTS
    assert "Gradients (torch): by quern.norm.rms_norm_backward." in quern.norm.rms_norm.__doc__


def test_gradcheck():
    """The ops know no f64, so the function under test rounds to f32 and back. With steps of 2^-6 the difference quotient is off by one part in 2^24 of
    values up to 4, over the step: 2^-16, and by step^2 / 6 of the third derivative, below 8 here: 2^-11.6. atol is twice their sum."""
    x, weight, _ = data(3, 8, torch.float64)

    def function(x, weight):
        return quern.norm.rms_norm(x.float(), weight.float(), eps=EPS).double()

    assert torch.autograd.gradcheck(function, (x, weight), eps=2**-6, atol=2**-10.5, rtol=0)
    # It must be able to fail: weight's gradient, which is not 0, taken for 0.
    with pytest.raises(torch.autograd.gradcheck.GradcheckError if hasattr(torch.autograd.gradcheck, "GradcheckError") else RuntimeError):
        torch.autograd.gradcheck(lambda x, weight: function(x, weight.detach()) + 0 * weight.sum(), (x, weight), eps=2**-6, atol=2**-10.5, rtol=0)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 2**-16), (torch.float16, 2**-10), (torch.bfloat16, 2**-7)])
@pytest.mark.parametrize("tokens, hidden", [(1, 64), (37, 127), (65, 1024), (3, 5000)])
def test_against_autograd_of_the_formula(dtype, tolerance, tokens, hidden):
    """In f64, from the same rounded inputs. The tolerance is of the largest gradient: one rounding to the dtype, and 2^-16 as the op's budget."""
    x, weight, dy = data(tokens, hidden, dtype)
    ours = gradients(lambda x, w: quern.norm.rms_norm(x, w, eps=EPS), x, weight, dy)
    theirs = gradients(formula, x.detach().double().requires_grad_(), weight.detach().double().requires_grad_(), dy.double())
    for mine, truth in zip(ours, theirs):
        assert mine.dtype == dtype and mine.shape == truth.shape
        assert (mine.double() - truth).abs().max() <= tolerance * truth.abs().max()
        assert truth.abs().max() > 0.1


WIDTH = 65  # no whole number of accesses


def halves(function):
    return lambda x: function(x[:, :WIDTH]) * x[:, WIDTH:]


def gelu_tanh(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


def clamped(x):
    gate, up = x[:, :WIDTH].clamp(max=1.5), x[:, WIDTH:].clamp(-1.5, 1.5)
    return (up + 1) * gate * torch.sigmoid(1.702 * gate)


# Inputs by their shapes, attributes, and what the op computes of them.
FORMULAS = {
    "activation.silu": ([(5, WIDTH)], {}, torch.nn.functional.silu),
    "activation.gelu": ([(5, WIDTH)], {}, torch.nn.functional.gelu),
    "activation.gelu_tanh": ([(5, WIDTH)], {}, gelu_tanh),
    "activation.relu2": ([(5, WIDTH)], {}, lambda x: x.clamp(min=0) ** 2),
    "activation.silu_and_mul": ([(5, 2 * WIDTH)], {}, halves(torch.nn.functional.silu)),
    "activation.gelu_and_mul": ([(5, 2 * WIDTH)], {}, halves(torch.nn.functional.gelu)),
    "activation.gelu_tanh_and_mul": ([(5, 2 * WIDTH)], {}, halves(gelu_tanh)),
    "activation.swiglu": ([(5, WIDTH), (5, WIDTH)], {}, lambda x, gate: torch.nn.functional.silu(gate) * x),
    "activation.clamped_swiglu": ([(5, 2 * WIDTH)], {"limit": 1.5}, clamped),
    "elementwise.diag_scale": ([(5, WIDTH), (5,)], {}, lambda x, diagonal: diagonal[:, None] * x),
    "gemm.linear_rowsum": ([(5, WIDTH), (7, WIDTH), (7,)], {}, lambda a, b, bias: (a @ b.T + bias).sum(1)),
    "norm.rms_norm": ([(5, WIDTH), (WIDTH,)], {"eps": EPS}, formula),
    "norm.layer_norm": ([(5, WIDTH), (WIDTH,), (WIDTH,)], {"eps": EPS}, lambda x, w, b: torch.nn.functional.layer_norm(x, (WIDTH,), w, b, EPS)),
    "sampling.softmax": ([(5, WIDTH)], {"temperature": 0.5}, lambda logits: torch.softmax(logits / 0.5, -1)),
}


def first_of(result):
    return result[0] if isinstance(result, (tuple, list)) else result


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 2**-15), (torch.float16, 2**-10), (torch.bfloat16, 2**-7)])
@pytest.mark.parametrize("op", FORMULAS)
def test_every_gradient_against_its_formula(op, dtype, tolerance):
    """In f64, from the same rounded inputs and gradient of the result. The tolerance is of the largest gradient: one rounding, and the ops' budgets, below 2^-15 of it."""
    shapes, attributes, truth = FORMULAS[op]
    generator = torch.Generator().manual_seed(3)
    make = lambda shape: torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).to(places.TORCH).requires_grad_()  # noqa: E731
    inputs = [make(shape) for shape in shapes]
    family, name = op.split(".")
    result = first_of(getattr(getattr(quern, family), name)(*inputs, **attributes))
    dy = torch.randn(result.shape, generator=generator).to(result.dtype).to(places.TORCH)
    ours = torch.autograd.grad(result, inputs, dy)
    doubles = [t.detach().double().requires_grad_() for t in inputs]
    for mine, theirs in zip(ours, torch.autograd.grad(truth(*doubles), doubles, dy.double())):
        assert mine.dtype == dtype and mine.shape == theirs.shape
        assert (mine.double() - theirs).abs().max() <= tolerance * theirs.abs().max()
        assert theirs.abs().max() > 0.01


def test_every_op_with_gradients_has_a_formula_here():
    assert sorted(FORMULAS) == sorted(WITH_GRADIENTS)


def test_a_gradient_has_the_dtype_of_what_it_is_of():
    """f32 weights beside 16-bit x; a bias without a weight; softmax, whose result is f32."""
    x, weight, bias = (torch.randn(*shape, device=places.TORCH) for shape in ((3, 64), (64,), (64,)))
    x = x.bfloat16().requires_grad_()
    weight, bias = weight.requires_grad_(), bias.requires_grad_()
    dy = torch.randn(3, 64, device=places.TORCH).bfloat16()
    for arguments in ({"weight": weight, "bias": bias}, {"bias": bias}):
        wanted = [x, *arguments.values()]
        ours = torch.autograd.grad(quern.norm.layer_norm(x, **arguments), wanted, dy)
        assert [g.dtype for g in ours] == [t.dtype for t in wanted]
        assert torch.allclose(ours[-1], dy.float().sum(0), rtol=1e-6)
    for logits in (x, x.detach().half().requires_grad_()):
        assert torch.autograd.grad(quern.sampling.softmax(logits)[:, 0].sum(), logits)[0].dtype == logits.dtype


def test_outputs_that_no_gradient_flows_into():
    """Column sums are kept for the backward pass; a gradient of theirs would be lost, so torch is told that there is none."""
    a, b = torch.randn(3, 64, device=places.TORCH, requires_grad=True), torch.randn(5, 64, device=places.TORCH, requires_grad=True)
    out, sums = quern.gemm.linear_rowsum(a, b)
    assert out.requires_grad and not sums.requires_grad
    assert torch.allclose(sums, b.detach().sum(0), atol=1e-5)
    out.sum().backward()
    assert torch.allclose(b.grad, a.detach().sum(0).expand(5, -1), atol=1e-5) and torch.allclose(a.grad, sums.expand(3, -1))


@pytest.mark.parametrize("centred", [False, True])
def test_gradients_of_the_fused_norms(centred):
    """Their forward ops update the residual in place, so they are called by whoever writes the graph: at the sum, with the gradient that arrives at it."""
    s, weight, bias, dy, dresidual = (torch.randn(*shape, device=places.TORCH) for shape in ((5, 65), (65,), (65,), (5, 65), (5, 65)))
    of = {"eps": EPS, "dw": True, **({"dbias": True} if centred else {})}
    op = quern.norm.fused_add_layer_norm_backward if centred else quern.norm.fused_add_rms_norm_backward
    ours = op(dy=dy, residual=s, weight=weight, dresidual=dresidual, **of)
    doubles = [t.double().requires_grad_() for t in ((s, weight, bias) if centred else (s, weight))]
    normed = torch.nn.functional.layer_norm(doubles[0], (65,), *doubles[1:], EPS) if centred else formula(*doubles)
    loss = (normed * dy.double()).sum() + (doubles[0] * dresidual.double()).sum()
    for mine, theirs in zip(ours, torch.autograd.grad(loss, doubles)):
        assert (mine.double() - theirs).abs().max() <= 2**-15 * theirs.abs().max()


def test_compiled():
    """One graph forward and one backward, with eager's bits; also for sizes that torch does not know."""
    def layer(x, weight):
        return quern.norm.rms_norm(x * 2, weight, eps=EPS) * x

    for dynamic in (False, True):
        torch._dynamo.reset()
        compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend="aot_eager")
        for tokens in (3, 7):
            x, weight, dy = data(tokens, 64, torch.float32)
            for mine, eager in zip(gradients(compiled, x, weight, dy), gradients(layer, x, weight, dy)):
                assert torch.equal(mine, eager) and mine.abs().max() > 0


def test_only_what_is_needed():
    """weight's gradient is not computed where nobody asks; a gradient that torch expanded is taken."""
    x, weight, _ = data(5, 64, torch.float32)
    calls = []
    backward = quern.torch._functional["norm.rms_norm_backward"]
    quern.torch._functional["norm.rms_norm_backward"] = lambda *a: calls.append(a) or backward(*a)
    try:
        quern.norm.rms_norm(x, weight.detach(), eps=EPS).sum().backward()
        quern.norm.rms_norm(x, weight, eps=EPS).sum().backward()
    finally:
        quern.torch._functional["norm.rms_norm_backward"] = backward
    assert [a[5] for a in calls] == [False, True] and weight.grad is not None
    truth = torch.autograd.grad(formula(x, weight).sum(), x)[0]
    assert torch.allclose(x.grad, 2 * truth, atol=1e-4)


def test_eager_calls_are_recorded_where_torch_records():
    x, weight, _ = data(3, 64, torch.float32)
    assert quern.norm.rms_norm(x, weight).requires_grad
    assert not quern.norm.rms_norm(x.detach(), weight.detach()).requires_grad
    with torch.no_grad():
        out = torch.empty_like(x)
        assert quern.norm.rms_norm(x, weight, out=out) is out and not out.requires_grad
        assert not quern.norm.rms_norm(x, weight).requires_grad
    with torch.inference_mode():
        assert not quern.norm.rms_norm(x, weight).requires_grad


def test_given_outputs_have_no_gradient():
    x, weight, _ = data(3, 64, torch.float32)
    with pytest.raises(RuntimeError, match=r"norm\.rms_norm: a tensor requires a gradient and outputs are given, expected none given, or torch\.no_grad\(\)"):
        quern.norm.rms_norm(x, weight, out=torch.empty_like(x))
    with pytest.raises(RuntimeError, match=r"norm\.rms_norm: a tensor requires a gradient and `stream` or `workspace` is given"):
        quern.norm.rms_norm(x, weight, stream=0)


@pytest.mark.parametrize("options", [{}, {"batch_invariant": True}, {"stream": 0}])
def test_a_written_tensor_cannot_be_what_torch_saved(options):
    """By every way of a call; a tensor that was allocated for the call has no history to spoil."""
    x, weight, _ = data(3, 64, torch.float32)
    x, weight = x.detach(), weight.detach()
    for _ in range(2):
        out, residual = torch.ones_like(x), torch.ones_like(x)
        factor = torch.ones_like(x, requires_grad=True)
        products = [(factor * saved).sum() for saved in (out, residual)]
        quern.norm.rms_norm(x, weight, out=out, **options)
        quern.norm.fused_add_rms_norm(x, residual, weight, **options)
        for product in products:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                product.backward()
        assert out._version == residual._version == 1 and x._version == 0
    assert quern.norm.rms_norm(x, weight)._version == 0
    with torch.inference_mode():
        out = torch.empty_like(x)
        assert quern.norm.rms_norm(x, weight, out=out, **options) is out and out.abs().max() > 0


@pytest.mark.parametrize("options", [{}, {"batch_invariant": True}])
def test_outputs_of_inference_mode(options):
    """Such tensors have no version: written outside of it, as caches of a server are, they are no error, and the others are told all the same."""
    x, weight, _ = (t.detach() for t in data(3, 64, torch.float32))
    with torch.inference_mode():
        out = torch.empty_like(x)
    residual = torch.zeros_like(x)
    before = residual._version
    assert quern.norm.rms_norm(x, weight, out=out, **options) is out and out.abs().max() > 0
    quern.norm.fused_add_rms_norm(x, residual, weight, out=out, **options)
    assert residual._version == before + 1


@pytest.mark.parametrize("options", [{}, {"batch_invariant": True}])
def test_outputs_that_require_a_gradient(options):
    """They would keep the gradient of what they held."""
    x, weight, _ = (t.detach() for t in data(3, 64, torch.float32))
    leaf = x.clone().requires_grad_()
    for out in (leaf * 2, torch.empty_like(x).requires_grad_()):
        with pytest.raises(RuntimeError, match=r"norm\.rms_norm: a tensor requires a gradient and outputs are given"):
            quern.norm.rms_norm(x, weight, out=out, **options)
        with torch.no_grad():
            assert quern.norm.rms_norm(x, weight, out=out, **options) is out


def test_every_output_is_told_of():
    """Each once, an absent one not at all."""
    x = torch.randn(4, 256, device=places.TORCH)
    out, scales = torch.empty(4, 256, dtype=torch.float8_e4m3fn, device=places.TORCH), torch.empty(4, 2, device=places.TORCH)
    for n in (1, 2):
        quern.quant.per_token_group(x, q=out, scales=scales)
        assert (out._version, scales._version, x._version) == (n, n, 0)
    a, out = torch.randn(4, 64, device=places.TORCH).bfloat16(), torch.empty(4, 4, dtype=torch.bfloat16, device=places.TORCH)
    for n in (1, 2):
        quern.gemm.dense(a, a, out=out)
        assert out._version == n


def test_no_gradient():
    """An op without a backward refuses the pass, however it was called."""
    a = torch.randn(4, 64, dtype=torch.bfloat16, device=places.TORCH, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula"):
        torch.ops.quern.gemm_dense(a, a, None, None, "none", None, None, None, 0).sum().backward()
    with pytest.raises(RuntimeError, match="no autograd formula"):
        quern.gemm.dense(a, a).sum().backward()
    with pytest.raises(RuntimeError, match="no autograd formula"):  # of the gradients themselves
        x, weight, _ = data(3, 64, torch.float32)
        first = torch.autograd.grad(quern.norm.rms_norm(x, weight).sum(), x, create_graph=True)[0]
        first.sum().backward()


def test_a_gradient_that_no_op_computes():
    """Of an op that has others: the tensor's would be lost."""
    logits, temperatures = torch.randn(3, 64, device=places.TORCH), torch.full((3,), 0.7, device=places.TORCH, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"sampling\.softmax: `temperatures` requires a gradient, which no op computes, expected temperatures\.detach\(\), or torch\.no_grad\(\)"):
        quern.sampling.softmax(logits.requires_grad_(), temperatures=temperatures)
    quern.sampling.softmax(logits, temperatures=temperatures.detach()).sum().backward()
    assert logits.grad is not None


def test_updated_in_place():
    """What an op updates would lose its history."""
    x, residual, weight = (torch.randn(*shape, device=places.TORCH) for shape in ((3, 64), (3, 64), (64,)))
    x.requires_grad_()
    before = residual.clone()
    text = r"norm\.fused_add_rms_norm: a tensor requires a gradient and the op updates tensors in place, expected torch\.no_grad\(\)"
    with pytest.raises(RuntimeError, match=text):
        quern.norm.fused_add_rms_norm(x, residual, weight)
    torch._dynamo.reset()
    with pytest.raises(Exception, match=text):
        torch.compile(lambda *a: quern.norm.fused_add_rms_norm(*a), fullgraph=True, backend="aot_eager")(x, residual, weight)
    assert torch.equal(residual, before)
    with torch.no_grad():
        quern.norm.fused_add_rms_norm(x, residual, weight)
    assert torch.equal(residual, before + x)


def test_torch_checks_the_gradients():
    """torch.library.opcheck, also of what autograd is told under torch.compile."""
    x, weight, _ = data(3, 64, torch.float32)
    torch.library.opcheck(quern.torch._functional["norm.rms_norm"], (x, weight, None, EPS, 0.0, 1e-4, False, False, None, None if places.ON_GPU else "emu", None, 0))


def test_gradients_of_several_ops(monkeypatch):
    """Each op of the list is called where one of its gradients is needed, with what it needs of the op's tensors and attributes."""
    from quern._schema import Schema

    def tensor(name, role, optional=False):
        return {"name": name, "role": role, "optional": optional, "dtypes": ["f32"], "axes": []}

    scale = {"name": "scale", "type": "f32", "words": []}
    facts = {"a.product": {"tensors": [tensor("out", "out"), tensor("x", "in"), tensor("w", "in")], "attributes": [scale],
                           "backward": [{"op": "a.dx", "gradients": {"dy": "out", "dx": "x"}}, {"op": "a.dw", "gradients": {"dy": "out", "dw": "w"}}]},
             "a.dx": {"tensors": [tensor("dx", "out"), tensor("dy", "in"), tensor("w", "in")], "attributes": [scale]},
             "a.dw": {"tensors": [tensor("dw", "out", optional=True), tensor("x", "in"), tensor("dy", "in")], "attributes": []}}
    functions = {id_: types.SimpleNamespace(id=id_, schema=Schema({"op": id_, "variants": [], **f})) for id_, f in facts.items()}
    monkeypatch.setattr(quern.torch._op, "by_id", functions.__getitem__)
    calls = []
    monkeypatch.setitem(quern.torch._functional, "a.dx", lambda dy, w, scale, *options: calls.append("dx") or dy * w * scale)
    monkeypatch.setitem(quern.torch._functional, "a.dw", lambda x, dy, wanted, *options: calls.append("dw") or x * dy)
    x, w, dy = (torch.full((2,), value) for value in (2.0, 3.0, 5.0))
    gradients = quern.torch._Gradients(functions["a.product"])

    def backward(*needs):
        ctx = types.SimpleNamespace(needs_input_grad=needs, save_for_backward=lambda *tensors: setattr(ctx, "saved_tensors", tensors), mark_non_differentiable=lambda *tensors: None)
        gradients.keep(ctx, (x, w, 7.0, None, None, 0), x * w * 7)
        assert len(ctx.saved_tensors) == 2
        calls.clear()
        return [None if g is None else g.tolist() for g in gradients.backward(ctx, dy)]

    assert backward(True, True, False, False, False, False) == [[105.0] * 2, [10.0] * 2, None, None, None, None] and calls == ["dx", "dw"]
    assert backward(False, True, False, False, False, False) == [None, [10.0] * 2, None, None, None, None] and calls == ["dw"]
