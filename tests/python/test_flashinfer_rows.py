# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""FlashInfer's norms and activations, each called with its exact keywords; results beside torch in double."""
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import poisoned, randn  # noqa: E402

pytestmark = pytest.mark.anywhere
BF16, E4M3 = torch.bfloat16, torch.float8_e4m3fn


def near(got, expected, of_value=2**-8, absolute=2**-20):
    """One rounding to bf16, and a little."""
    assert got.shape == expected.shape
    worst = ((got.double() - expected).abs() / (of_value * expected.abs() + absolute)).max()
    assert worst <= 1, f"{worst} times the tolerance"  # NaN is not


def rms(x, weight, eps=1e-6):
    x = x.double()
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight.double()


def norm_of_layer(x, gemma, beta, eps):
    x = x.double()
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt() * gemma.double() + beta.double()


@pytest.mark.parametrize("name, bias", [("rmsnorm", 0), ("gemma_rmsnorm", 1)])
def test_norms(fi, name, bias):
    function, weight = getattr(fi, name), randn(64, seed=2, dtype=BF16)
    strided = randn(5, 100, dtype=BF16)[:, :64]
    for x in (randn(5, 64, dtype=BF16), strided, randn(3, 4, 64, dtype=BF16), randn(3, 9, 64, dtype=BF16)[:, 2:6]):
        near(function(input=x, weight=weight, eps=1e-3, out=None, enable_pdl=None), rms(x, weight.double() + bias, 1e-3))
        out = torch.full_like(x, float("nan"))
        assert function(input=x, weight=weight, out=out, enable_pdl=True) is out
        near(out, rms(x, weight.double() + bias))
    assert getattr(fi.norm, name) is function


@pytest.mark.parametrize("name, bias", [("fused_add_rmsnorm", 0), ("gemma_fused_add_rmsnorm", 1)])
def test_fused_norms(fi, name, bias):
    x, residual, weight = randn(5, 64, dtype=BF16), randn(5, 64, seed=3, dtype=BF16), randn(64, seed=2, dtype=BF16)
    total = x.double() + residual.double()
    assert getattr(fi, name)(input=x, residual=residual, weight=weight, eps=1e-5, enable_pdl=False) is None
    near(residual, total)
    near(x, rms(total, weight.double() + bias, 1e-5), 2**-7)


def test_layer_norm(fi):
    x, gemma, beta = randn(5, 64, dtype=BF16), randn(64, seed=2), randn(64, seed=3)
    near(fi.layernorm(input=x, gemma=gemma, beta=beta, eps=1e-4), norm_of_layer(x, gemma, beta, 1e-4), absolute=1e-5)


def fp8_near(out, expected, scale):
    """One rounding to e4m3: 2^-4 of the value, 2^-10 below its normal numbers; what is too large becomes the largest."""
    q = (expected / scale).clamp(-448, 448)
    assert out.dtype == E4M3 and ((out.double() - q).abs() <= 2**-4 * 1.01 * q.abs() + 2**-10 * 1.01).all()
    assert (out.double().abs() == 448).any(), "the case must reach the largest"


@pytest.mark.parametrize("as_tensor", [True, False])
def test_norms_to_fp8(fi, as_tensor):
    x, weight, beta = randn(5, 64, dtype=BF16), randn(64, seed=2, dtype=BF16), randn(64, seed=3)
    scale = 2**-8
    given = torch.tensor([scale], device=places.TORCH) if as_tensor else scale
    out = poisoned(5, 64, dtype=E4M3)
    assert fi.rmsnorm_quant(out=out, input=x, weight=weight, scale=given, eps=1e-6, enable_pdl=None) is None
    fp8_near(out, rms(x, weight), scale)
    residual, out = randn(5, 64, seed=4, dtype=BF16), poisoned(5, 64, dtype=E4M3)
    total = x.double() + residual.double()
    assert fi.fused_add_rmsnorm_quant(out=out, input=x, residual=residual, weight=weight, scale=given, eps=1e-6, enable_pdl=None) is None
    near(residual, total)
    fp8_near(out, rms(total, weight), scale)
    out = poisoned(5, 64, dtype=E4M3)
    assert fi.layernorm_quant(out=out, input=x, gemma=weight.float(), beta=beta, scale=given, eps=1e-6) is None
    fp8_near(out, norm_of_layer(x, weight, beta, 1e-6), scale)


def test_fused_norm_to_blocks(fi):
    for tokens in (5, 8):
        x, residual, weight = randn(tokens, 256, dtype=BF16), randn(tokens, 256, seed=4, dtype=BF16), randn(256, seed=2, dtype=BF16)
        weight[128:] *= 1e-8  # the least scale
        total, padded = x.double() + residual.double(), -(-tokens // 4) * 4
        out, scales, normed = poisoned(tokens, 256, dtype=E4M3), poisoned(2, padded, dtype=torch.float32), poisoned(tokens, 256, dtype=BF16)
        given = x.clone()
        assert fi.norm.fused_add_rmsnorm_fp8_block_quant(out=out, block_scale=scales, normed_out=normed, input=x, residual=residual, weight=weight, eps=1e-5, enable_pdl=None) is None
        near(residual, total), near(normed, rms(total, weight, 1e-5))
        assert torch.equal(x, given)
        groups = normed.double().unflatten(1, (2, 128))
        want = groups.abs().amax(2).clamp(min=1e-4) / 448
        assert ((scales.mT[:tokens].double() - want).abs() <= 2**-22 * want).all() and ((want[:, 1] - 1e-4 / 448).abs() <= 2**-52 * want[:, 1]).all()
        step = (groups / want[..., None]).abs() * 2**-4 + 2**-10
        assert ((out.double().unflatten(1, (2, 128)) - groups / want[..., None]).abs() <= step * 1.001).all() and out.double().abs().amax() == 448
    arguments = dict(out=out, block_scale=scales, normed_out=normed, input=x, residual=residual, weight=weight)
    for change, kind, text in (({"block_scale": scales[:, :4]}, ValueError, r"`block_scale` has shape \[2, 4\] and strides \[8, 1\], expected a contiguous \[2, 8\]"),
                               ({"normed_out": normed.float()}, TypeError, "`normed_out` is float32, expected bfloat16"), ({"out": normed}, TypeError, "`out` is bfloat16, expected float8_e4m3fn"),
                               ({"input": x[:, :100]}, ValueError, "`input` has 100 columns, expected a multiple of 128"), ({"weight": weight[:9]}, ValueError, r"`weight` has shape \[9\]"),
                               ({"residual": residual[:3]}, ValueError, r"`residual` has shape \[3, 256\]"),
                               ({"out": out[:3]}, ValueError, r"`out` has shape \[3, 256\], expected \[8, 256\], as `input`")):
        before = residual.clone()
        with pytest.raises(kind, match=r"^flashinfer\.fused_add_rmsnorm_fp8_block_quant: " + text):
            fi.norm.fused_add_rmsnorm_fp8_block_quant(**{**arguments, **change})
        assert torch.equal(residual, before)  # nothing was launched


@pytest.mark.parametrize("name", ["silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"])
def test_activations(fi, name):
    act = {"silu_and_mul": torch.nn.functional.silu, "gelu_and_mul": torch.nn.functional.gelu, "gelu_tanh_and_mul": lambda g: torch.nn.functional.gelu(g, approximate="tanh")}[name]
    for shape in ((5, 96), (2, 3, 96), (96,)):
        x = randn(*shape, dtype=BF16)
        expected = act(x.double()[..., :48]) * x.double()[..., 48:]
        near(getattr(fi, name)(input=x, out=None, enable_pdl=None), expected)
        out = torch.full((*shape[:-1], 48), float("nan"), dtype=BF16, device=places.TORCH)
        assert getattr(fi.activation, name)(x, out=out) is out
        near(out, expected)


def test_errors_name_flashinfers_arguments(fi):
    x, weight = randn(5, 64, dtype=BF16), randn(64, dtype=BF16)
    wrong = [
        (TypeError, r"^flashinfer\.rmsnorm: `input` is None, expected a tensor", lambda: fi.rmsnorm(None, weight)),
        (ValueError, r"^flashinfer\.rmsnorm: `weight` has shape \[63\], expected hidden=64", lambda: fi.rmsnorm(x, weight[:63])),
        (TypeError, r"^flashinfer\.rmsnorm: `enable_pdl` is 1 \(int\), expected True or False", lambda: fi.rmsnorm(x, weight, enable_pdl=1)),
        (TypeError, r"^flashinfer\.layernorm: `gemma` is f16", lambda: fi.layernorm(x, weight.half(), weight.half())),
        (TypeError, r"^flashinfer\.rmsnorm_quant: `out` is e5m2", lambda: fi.rmsnorm_quant(poisoned(5, 64, dtype=torch.float8_e5m2), x, weight, 1.0)),
        (ValueError, r"^flashinfer\.silu_and_mul: `input` has shape \[4, 3, 64\] and strides", lambda: fi.silu_and_mul(randn(3, 4, 64, dtype=BF16).transpose(0, 1))),
        (TypeError, r"^flashinfer\.gelu_and_mul: `input` is i8", lambda: fi.gelu_and_mul(x.to(torch.int8))),
    ]
    for kind, text, call in wrong:
        with pytest.raises(kind, match=text):
            call()
