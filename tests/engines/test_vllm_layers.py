# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""vLLM's norms, activations, RoPE, FP8 linear layers and draw of tokens, by its own registries and classes, beside the formulas in double."""
import math

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from vllm import ir
from vllm.config import set_current_vllm_config
from vllm.model_executor.kernels import linear as kernels
from vllm.model_executor.layers import activation
from vllm.model_executor.layers.layernorm import GemmaRMSNorm, RMSNorm
from vllm.model_executor.layers.quantization.utils.quant_utils import (GroupShape, QuantKey, ScaleDesc, kFp8Dynamic128Sym, kFp8DynamicTensorSym, kFp8DynamicTokenSym,
                                                                       kFp8StaticTensorSym)
from vllm.model_executor.layers.rotary_embedding import get_rope
from vllm.v1.sample.ops import topk_topp_sampler

from quern.integrations.vllm import linear, sampler

E4M3 = torch.float8_e4m3fn
UNIT = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}


def numbers(*shape, seed=1, dtype=torch.bfloat16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def assert_rounded_once(got, exact, magnitude=None):
    """One rounding to 16 bits and a few in f32. vLLM's own functions, which round between steps, do not pass."""
    bound = UNIT[got.dtype] * exact.abs() + 2.0**-20 * (exact if magnitude is None else magnitude).abs() + 2.0**-60
    wrong = ((got.double() - exact).abs() - bound).max()
    assert not got.isnan().any() and wrong <= 0, wrong


# ---- norms


def normed(x, weight, eps):
    x = x.double()
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weight.double()


@pytest.fixture
def norms(engine_config):
    """The priority of the configuration, as a worker installs it."""
    with set_current_vllm_config(engine_config), engine_config.kernel_config.ir_op_priority.set_priority():
        yield


@pytest.mark.parametrize("shape", [(5, 256), (3, 4, 64)])
@pytest.mark.parametrize("weight_dtype", [torch.bfloat16, torch.float32])
def test_norms(norms, shape, weight_dtype):
    x, residual, weight = numbers(*shape), numbers(*shape, seed=2), numbers(shape[-1], seed=3, dtype=weight_dtype)
    assert ir.ops.rms_norm.dispatch(x, weight, 1e-5).provider == ir.ops.fused_add_rms_norm.dispatch(x, residual, weight, 1e-5).provider == "quern"
    assert_rounded_once(ir.ops.rms_norm(x, weight, 1e-5), normed(x, weight, 1e-5))
    strided = torch.cat((x, x), -1)[..., :shape[-1]]
    assert_rounded_once(ir.ops.rms_norm(strided, weight, 1e-5), normed(x, weight, 1e-5))
    total = (x.float() + residual.float()).bfloat16()
    kept = x.clone(), residual.clone()
    out, written = ir.ops.fused_add_rms_norm(x, residual, weight, 1e-5)
    assert torch.equal(x, kept[0]) and torch.equal(residual, kept[1])  # vLLM copies for who updates in place
    assert torch.equal(written, total)
    assert_rounded_once(out, normed(x.double() + residual.double(), weight, 1e-5), normed(x.double().abs() + residual.double().abs(), weight, 1e-5) * 2**11)
    out, written = ir.ops.fused_add_rms_norm.maybe_inplace(x.clone(), residual, weight, 1e-5)
    assert torch.equal(written, total) and torch.equal(residual, total)


def test_layers_of_norms(norms):
    """vLLM's modules reach the provider, eager."""
    x = numbers(5, 256)
    plain, gemma = RMSNorm(256, 1e-5, dtype=torch.bfloat16), GemmaRMSNorm(256, 1e-5)
    plain.weight.data, gemma.weight.data = numbers(256, seed=4), numbers(256, seed=5, dtype=torch.float32)
    assert_rounded_once(plain(x), normed(x, plain.weight, 1e-5))
    assert_rounded_once(gemma(x), normed(x, gemma.weight.double() + 1, 1e-5))


def test_norms_that_are_not_quern_s(norms):
    x, weight = numbers(5, 256), numbers(256)
    for arguments in ((x, None, 1e-5), (x, weight, 1e-5, 128), (x, weight.half(), 1e-5)):
        assert ir.ops.rms_norm.dispatch(*arguments).provider == "native"
    assert ir.ops.fused_add_rms_norm.dispatch(x, x.float(), weight, 1e-5).provider == "native"


def test_norms_in_a_graph(norms, engine_config):
    """The pass that puts providers in the place of vLLM's ops finds quern's as ops of torch."""
    from vllm.compilation.passes.ir.lowering_pass import VllmIRLoweringPass

    def layer(x, residual, weight):
        out, residual = ir.ops.fused_add_rms_norm(ir.ops.rms_norm(x, weight, 1e-5), residual, weight, 1e-5)
        return out, residual

    given = numbers(5, 256), numbers(5, 256, seed=2), numbers(256, seed=3)
    traced = make_fx(layer, tracing_mode="fake")(*given)
    VllmIRLoweringPass(engine_config)(traced.graph)
    traced.recompile()
    targets = [str(node.target) for node in traced.graph.nodes if node.op == "call_function"]
    assert not any(t.startswith("vllm_ir") for t in targets) and {"quern.norm_rms_norm.default", "quern.norm_fused_add_rms_norm.default"} <= set(targets)
    for got, expected in zip(traced(*given), layer(*given)):
        assert torch.equal(got, expected)


# ---- custom ops


def silu(x):
    return x / (1 + (-x).exp())


def gelu_tanh(x):
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu(x):
    return x / 2 * (1 + torch.erf(x / math.sqrt(2)))


def swigluoai(x, alpha=1.5, limit=2.0):
    gate, up = x[..., ::2].clamp(max=limit), x[..., 1::2].clamp(-limit, limit)
    return (up + 1) * gate / (1 + (-alpha * gate).exp())


def halves(function):
    return lambda x: function(x[..., :x.shape[-1] // 2]) * x[..., x.shape[-1] // 2:]


ACTIVATIONS = {
    "SiluAndMul": (lambda: activation.SiluAndMul(), halves(silu)), "GeluAndMul": (lambda: activation.GeluAndMul(), halves(gelu)),
    "GeluAndMul_tanh": (lambda: activation.GeluAndMul(approximate="tanh"), halves(gelu_tanh)), "SwigluOAIAndMul": (lambda: activation.SwigluOAIAndMul(alpha=1.5, limit=2.0), swigluoai),
    "NewGELU": (lambda: activation.NewGELU(), gelu_tanh), "ReLUSquaredActivation": (lambda: activation.ReLUSquaredActivation(), lambda x: x.clamp(min=0) ** 2),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(engine_config, name, monkeypatch):
    monkeypatch.setattr(torch.ops._C, "gelu_new", None, raising=False)  # vLLM's module asks for its own kernel when it is built
    build, exact = ACTIVATIONS[name]
    with set_current_vllm_config(engine_config):
        op = build()
    assert type(op).__name__ == "Quern" + name.partition("_")[0] and isinstance(op, getattr(activation, name.partition("_")[0]))
    for shape in ((7, 128), (2, 3, 64)):
        x = numbers(*shape) * 2
        assert_rounded_once(op(x), exact(x.double()), magnitude=16 * torch.ones(1).double())


ROPES = {"neox": dict(), "pairs": dict(is_neox_style=False), "half of a head": dict(rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}),
         "llama3": dict(rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32})}


def turned(x, positions, table, neox, head):
    cos, sin = table.double()[positions].chunk(2, -1)
    x = x.double().reshape(len(positions), -1, head)
    rotary = 2 * cos.shape[-1]
    out, cos, sin = x.clone(), cos[:, None], sin[:, None]
    first, second = (slice(0, rotary // 2), slice(rotary // 2, rotary)) if neox else (slice(0, rotary, 2), slice(1, rotary, 2))
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., second] * cos + x[..., first] * sin
    return out.flatten(1)


@pytest.mark.parametrize("name", ROPES)
@pytest.mark.parametrize("with_key", [True, False])
def test_rope(engine_config, name, with_key):
    given = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}, **ROPES[name]}
    with set_current_vllm_config(engine_config):
        rope = get_rope(64, 128, dtype=torch.bfloat16, **given)
    assert type(rope).__name__.startswith("Quern")
    positions = torch.tensor([0, 5, 127, 3, 3])
    qkv = numbers(5, 8 * 64)
    before, (q, k, _) = qkv.clone(), qkv.split([4 * 64, 2 * 64, 2 * 64], dim=1)
    rotated = rope(positions, q, k if with_key else None)
    assert rotated[0].data_ptr() == q.data_ptr() and (rotated[1] is None) == (not with_key)
    neox = given.get("is_neox_style", True)
    for part, columns in ((q, slice(0, 256)), (k, slice(256, 384))):
        exact = turned(before[:, columns], positions, rope.cos_sin_cache, neox, 64) if with_key or part is q else before[:, columns].double()
        assert_rounded_once(part, exact, magnitude=4 * torch.ones(1).double())
    assert torch.equal(qkv[:, 384:], before[:, 384:])


def test_layers_that_nobody_asked_for(model_folder):
    """A configuration without quern has vLLM's functions, and vLLM's words of custom_ops mean what they meant."""
    from conftest import make_config

    config = make_config(model_folder, additional_config={}, compilation_config={"custom_ops": ["+silu_and_mul"]})
    with set_current_vllm_config(config):
        op, other = activation.SiluAndMul(), activation.GeluAndMul()
        assert op.enabled() and not other.enabled()
        x = numbers(7, 128)
        assert torch.equal(op(x), torch.nn.functional.silu(x[:, :64]) * x[:, 64:])
        assert not linear.QuernFp8BlockLinear.can_implement(block_config())[0]
        assert sampler._asked(lambda: "vLLM's")() == "vLLM's"


# ---- FP8


def block_config(out=torch.bfloat16, n=96, k=320, weight=(128, 128)):
    key = QuantKey(E4M3, ScaleDesc(torch.float32, True, GroupShape(*weight)), symmetric=True)
    return kernels.FP8ScaledMMLinearLayerConfig(weight_quant_key=key, activation_quant_key=kFp8Dynamic128Sym, weight_shape=(n, k), input_dtype=torch.bfloat16, out_dtype=out)


class Weights(torch.nn.Module):
    def __init__(self, **tensors):
        super().__init__()
        for name, tensor in tensors.items():
            setattr(self, name, None if tensor is None else torch.nn.Parameter(tensor, requires_grad=False))


def assert_product(out, a, b, bias):
    """a, b in double, dequantised. A tensor core's sum of 128 products of FP8 is off by up to 2^-11 of theirs (quern/ops/gemm/README.md)."""
    exact, magnitude = a @ b.T + bias.double(), a.abs() @ b.abs().T + bias.double().abs()
    assert_rounded_once(out.flatten(0, -2), exact, magnitude * 2**9)


def in_groups(x):
    """What is left of x [m, k] in FP8 with a scale for 128 of a row."""
    m, k = x.shape
    groups = torch.nn.functional.pad(x.float(), (0, -k % 128)).view(m, -1, 128)
    scales = groups.abs().amax(2, keepdim=True).clamp(min=1e-10) / 448
    return ((groups * (1 / scales)).to(E4M3).double() * scales.double()).flatten(1)[:, :k]


@pytest.mark.parametrize("power_of_two", [False, True])
def test_fp8_blocks(engine_config, power_of_two):
    n, k = 96, 320
    with set_current_vllm_config(engine_config):
        kernel = kernels.init_fp8_linear_kernel(kFp8Dynamic128Sym, block_config().weight_quant_key, torch.bfloat16, torch.bfloat16, (n, k))
    assert type(kernel) is linear.QuernFp8BlockLinear
    w, scales = numbers(n, k, dtype=torch.float32).to(E4M3), numbers(1, 3, seed=2, dtype=torch.float32).exp()
    if power_of_two:
        scales = scales.to(torch.float8_e8m0fnu)
    layer = Weights(weight=w, weight_scale_inv=scales)
    kernel.process_weights_after_loading(layer)
    x, bias = numbers(2, 5, k, seed=3) * torch.tensor([0.01] * 128 + [1.0] * 128 + [30.0] * 64).bfloat16(), numbers(n, seed=4)
    out = kernel.apply_weights(layer, x, bias)
    b = w.double() * scales.double().repeat_interleave(128, 1)[:, :k]
    assert out.shape == (2, 5, n)
    assert_product(out, in_groups(x.flatten(0, 1)), b, bias)
    small = x.flatten(0, 1) * 1e-9  # of which vLLM's least scale leaves something
    assert_product(kernel.apply_weights(layer, small), in_groups(small), b, torch.zeros(n))


WHOLE = {"dynamic": (kFp8DynamicTensorSym, False), "static": (kFp8StaticTensorSym, False), "by row": (kFp8DynamicTokenSym, False), "by row and output": (kFp8DynamicTokenSym, True)}


@pytest.mark.parametrize("name", WHOLE)
def test_fp8_rows_and_tensors(engine_config, name):
    (activation_key, by_output), n, k = WHOLE[name], 96, 320
    weight_key = QuantKey(E4M3, ScaleDesc(torch.float32, True, GroupShape.PER_CHANNEL if by_output else GroupShape.PER_TENSOR), symmetric=True)
    with set_current_vllm_config(engine_config):
        kernel = kernels.init_fp8_linear_kernel(activation_key, weight_key, torch.bfloat16, torch.bfloat16, (n, k))
    assert type(kernel) is linear.QuernFp8Linear
    w, scale = numbers(n, k, dtype=torch.float32).to(E4M3), (numbers(n, 1, seed=2, dtype=torch.float32).exp() if by_output else torch.tensor(0.03))
    static = torch.tensor(0.02) if name == "static" else None
    layer = Weights(weight=w.t(), weight_scale=scale, input_scale=static)
    kernel.process_weights_after_loading(layer)
    x, bias = numbers(6, k, seed=3) * torch.tensor([1e-4, 1, 1, 20, 0, 1]).bfloat16()[:, None], numbers(n, seed=4)
    for size in (1, 1e-5):  # of the second vLLM's least scale is the scale
        y = x * size
        out = kernel.apply_weights(layer, y, bias)
        most = y.float().abs().amax(1, keepdim=True) if "row" in name else y.float().abs().amax()
        of_y = static if static is not None else most.clamp(min=1 / 512) / 448
        a = (y.float() * (1 / of_y)).clamp(-448, 448).to(E4M3).double() * of_y.double()
        assert_product(out, a, w.double() * scale.double(), bias)
        assert_product(kernel.apply_weights(layer, y), a, w.double() * scale.double(), torch.zeros(n))
    assert torch.equal(torch.compile(lambda y: kernel.apply_weights(layer, y, bias), fullgraph=True, backend="aot_eager")(y), out)
    if "row" not in name:
        layer.input_scale_ub = torch.tensor(0.5)
        with pytest.raises(ValueError, match="`scale_ub` is given for one scale of all activations, expected None"):
            kernel.apply_weights(layer, y, bias)


def test_which_fp8_layers(engine_config):
    """What quern does not compute goes on to the next kernel of vLLM's list, with the reason."""
    with set_current_vllm_config(engine_config):
        for ours in (linear.QuernFp8BlockLinear, linear.QuernFp8Linear):
            assert ours.is_supported(90) == (True, None) and not ours.is_supported(70)[0]
        for config, reason in ((block_config(torch.float16), "the result is torch.float16"), (block_config(weight=(64, 128)), "scales are of")):
            fits, why = linear.QuernFp8BlockLinear.can_implement(config)
            assert not fits and reason in why
        static_rows = QuantKey(E4M3, ScaleDesc(torch.float32, True, GroupShape.PER_TOKEN), symmetric=True)
        config = kernels.FP8ScaledMMLinearLayerConfig(kFp8StaticTensorSym, static_rows, (96, 320), torch.bfloat16, torch.bfloat16)
        assert "static scales" in linear.QuernFp8Linear.can_implement(config)[1]


def test_layers_in_one_graph(engine_config):
    """What torch.compile makes of vLLM's modules has no break and the bits of eager calls."""
    w, scales = numbers(128, 256, dtype=torch.float32).to(E4M3), numbers(1, 2, seed=2, dtype=torch.float32).exp()
    layer = Weights(weight=w, weight_scale_inv=scales)
    with set_current_vllm_config(engine_config):
        act, rope = activation.SiluAndMul(), get_rope(64, 128, dtype=torch.bfloat16, rope_parameters={"rope_type": "default", "rope_theta": 1e4})
        kernel = kernels.init_fp8_linear_kernel(kFp8Dynamic128Sym, block_config().weight_quant_key, torch.bfloat16, torch.bfloat16, (128, 256))

    def forward(x, positions):
        q, k = rope(positions, *(t.clone() for t in x.split([256, 256], dim=1)))
        return kernel.apply_weights(layer, act(x)), q, k

    x, positions = numbers(6, 512), torch.arange(6)
    for got, expected in zip(torch.compile(forward, fullgraph=True, backend="aot_eager")(x, positions), forward(x, positions)):
        assert torch.equal(got, expected)


# ---- sampling


@pytest.fixture
def chosen(engine_config):
    """As a worker builds its sampler."""
    with set_current_vllm_config(engine_config):
        assert topk_topp_sampler.flashinfer_sampler_supported()
    yield
    sampler._chosen = False


@pytest.mark.parametrize("filters", ["k", "p", "both"])
def test_sampler(chosen, filters):
    """Frequencies of 1000 draws beside the probabilities of the survivors."""
    rows = 1000
    torch.manual_seed(5)
    logits = numbers(1, 24, seed=6, dtype=torch.float32).expand(rows, 24).contiguous()
    k = torch.full((rows,), 5, dtype=torch.int64) if filters != "p" else None
    p = torch.full((rows,), 0.6) if filters != "k" else None
    tokens = topk_topp_sampler.TopKTopPSampler.forward_cuda(type("", (), dict(use_fp64_gumbel=False, logprobs_mode="raw_logprobs"))(), logits, {}, k, p)[0]
    probs = torch.softmax(logits[0].double(), 0)
    order = probs.argsort(descending=True)
    kept = order[:5] if k is not None else order
    if p is not None:
        share = probs[kept] / probs[kept].sum()
        kept = kept[:int((share.cumsum(0) < 0.6).sum()) + 1]
    expected = torch.zeros(24, dtype=torch.double)
    expected[kept] = probs[kept] / probs[kept].sum()
    frequencies = torch.bincount(tokens.long(), minlength=24) / rows
    deviation = (expected * (1 - expected) / rows).sqrt()
    assert tokens.shape == (rows,) and (frequencies - expected).abs().le(5 * deviation).all()  # by chance once in 2e5
    again = topk_topp_sampler.flashinfer_sample(logits, k, p)
    assert not torch.equal(again, tokens)  # torch's generator went on
    torch.manual_seed(5)
    assert torch.equal(topk_topp_sampler.flashinfer_sample(logits, k, p), tokens)


def test_sampler_without_a_filter(chosen):
    with pytest.raises(ValueError, match="`k` and `p` are None, expected a filter"):
        topk_topp_sampler.flashinfer_sample(torch.zeros(2, 8), None, None)
