# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Norms. Weights are used as they are; rows may have any stride, and any number of dims before the last where one stride serves them."""
import quern
from quern import _check
from quern.compat.flashinfer._base import call, hint, rows, tensor, torch

_NAMES = {"x": "input", "bias": "beta", "static_scale": "scale"}
_LAYER = {**_NAMES, "weight": "gemma"}


def _scale(where, scale, like):
    """The scale of an FP8 output, as a tensor of one f32."""
    if isinstance(scale, torch.Tensor):
        return scale.reshape(1)
    return torch.full((1,), _check.number(f"flashinfer.{where}", "scale", scale, "a number or a tensor of one"), dtype=torch.float32, device=like.device)


def _rms(where, input, weight, eps, out, bias):
    names = {**_NAMES, "hidden": "hidden"}
    tensor(where, "input", input, (2, 3))
    if out is None:
        out = torch.empty_like(input, memory_format=torch.contiguous_format)
    op = quern.norm.rms_norm_heads if input.dim() == 3 else quern.norm.rms_norm
    call(where, op, names, x=input, weight=weight, eps=eps, weight_bias=bias, out=out)
    return out


def rmsnorm(input, weight, eps=1e-6, out=None, enable_pdl=None):
    """input / sqrt(mean(input^2) + eps) * weight of rows [tokens, hidden], or of heads [tokens, heads, head_dim]."""
    hint("rmsnorm", "enable_pdl", enable_pdl)
    return _rms("rmsnorm", input, weight, eps, out, 0.0)


def gemma_rmsnorm(input, weight, eps=1e-6, out=None, enable_pdl=None):
    """The same with weight + 1."""
    hint("gemma_rmsnorm", "enable_pdl", enable_pdl)
    return _rms("gemma_rmsnorm", input, weight, eps, out, 1.0)


def _fused(where, input, residual, weight, eps, bias):
    x = rows(where, "input", input)
    call(where, quern.norm.fused_add_rms_norm, _NAMES, x=x, residual=rows(where, "residual", residual), weight=weight, eps=eps, weight_bias=bias, out=x)


def fused_add_rmsnorm(input, residual, weight, eps=1e-6, enable_pdl=None):
    """residual += input; input = the norm of residual. Both in place."""
    hint("fused_add_rmsnorm", "enable_pdl", enable_pdl)
    _fused("fused_add_rmsnorm", input, residual, weight, eps, 0.0)


def gemma_fused_add_rmsnorm(input, residual, weight, eps=1e-6, enable_pdl=None):
    """The same with weight + 1."""
    hint("gemma_fused_add_rmsnorm", "enable_pdl", enable_pdl)
    _fused("gemma_fused_add_rmsnorm", input, residual, weight, eps, 1.0)


def rmsnorm_quant(out, input, weight, scale, eps=1e-6, enable_pdl=None):
    """out = e4m3 of rmsnorm(input) / scale; scale is a number or a tensor of one."""
    where = "rmsnorm_quant"
    hint(where, "enable_pdl", enable_pdl)
    call(where, quern.norm.rms_norm, _NAMES, x=rows(where, "input", input), weight=weight, static_scale=_scale(where, scale, input), eps=eps, out=rows(where, "out", out))


def fused_add_rmsnorm_quant(out, input, residual, weight, scale, eps=1e-6, enable_pdl=None):
    """residual += input; out = e4m3 of its norm / scale."""
    where = "fused_add_rmsnorm_quant"
    hint(where, "enable_pdl", enable_pdl)
    call(where, quern.norm.fused_add_rms_norm, _NAMES, x=rows(where, "input", input), residual=rows(where, "residual", residual), weight=weight,
         static_scale=_scale(where, scale, input), eps=eps, out=rows(where, "out", out))


def layernorm(input, gemma, beta, eps=1e-6):
    """(input - mean) / sqrt(variance + eps) * gemma + beta."""
    out = torch.empty_like(tensor("layernorm", "input", input), memory_format=torch.contiguous_format)
    call("layernorm", quern.norm.layer_norm, _LAYER, x=rows("layernorm", "input", input), weight=gemma, bias=beta, eps=eps, out=rows("layernorm", "out", out))
    return out


def layernorm_quant(out, input, gemma, beta, scale, eps=1e-6):
    """out = e4m3 of layernorm(input) / scale."""
    where = "layernorm_quant"
    call(where, quern.norm.layer_norm, _LAYER, x=rows(where, "input", input), weight=gemma, bias=beta, static_scale=_scale(where, scale, input), eps=eps, out=rows(where, "out", out))
