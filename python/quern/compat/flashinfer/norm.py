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


def fused_add_rmsnorm_fp8_block_quant(out, block_scale, normed_out, input, residual, weight, eps=1e-6, enable_pdl=None):
    """residual += input; normed_out = its norm; out = e4m3 of that in groups of 128 columns, block_scale [hidden / 128, round_up(rows, 4)] their f32 scales, at least
    1e-4 / 448, as FP8 GEMMs read them. Two launches."""
    where = "fused_add_rmsnorm_fp8_block_quant"
    hint(where, "enable_pdl", enable_pdl)
    x, normed, q = tensor(where, "input", input, 2), tensor(where, "normed_out", normed_out, 2), tensor(where, "out", out, 2)
    shape = [x.size(1) // 128, -(-x.size(0) // 4) * 4]
    if x.size(1) % 128:
        raise ValueError(f"flashinfer.{where}: `input` has {x.size(1)} columns, expected a multiple of 128")
    if q.shape != x.shape:  # before the first launch, which changes the residual
        raise ValueError(f"flashinfer.{where}: `out` has shape {list(q.shape)}, expected {list(x.shape)}, as `input`")
    if list(tensor(where, "block_scale", block_scale, 2).shape) != shape or not block_scale.is_contiguous():
        raise ValueError(f"flashinfer.{where}: `block_scale` has shape {list(block_scale.shape)} and strides {list(block_scale.stride())}, expected a contiguous {shape}")
    for name, t, kind in (("normed_out", normed, x.dtype), ("out", q, torch.float8_e4m3fn), ("block_scale", block_scale, torch.float32)):
        if t.dtype != kind:
            raise TypeError(f"flashinfer.{where}: `{name}` is {str(t.dtype)[6:]}, expected {str(kind)[6:]}")
    call(where, quern.norm.fused_add_rms_norm, {**_NAMES, "out": "normed_out"}, x=x, residual=tensor(where, "residual", residual, 2), weight=weight, eps=eps, out=normed)
    call(where, quern.quant.per_token_group, {"x": "normed_out", "q": "out", "scales": "block_scale"}, x=normed, amax_floor=1e-4, q=q, scales=block_scale.mT[:x.size(0)])


def layernorm(input, gemma, beta, eps=1e-6):
    """(input - mean) / sqrt(variance + eps) * gemma + beta."""
    out = torch.empty_like(tensor("layernorm", "input", input), memory_format=torch.contiguous_format)
    call("layernorm", quern.norm.layer_norm, _LAYER, x=rows("layernorm", "input", input), weight=gemma, bias=beta, eps=eps, out=rows("layernorm", "out", out))
    return out


def layernorm_quant(out, input, gemma, beta, scale, eps=1e-6):
    """out = e4m3 of layernorm(input) / scale."""
    where = "layernorm_quant"
    call(where, quern.norm.layer_norm, _LAYER, x=rows(where, "input", input), weight=gemma, bias=beta, static_scale=_scale(where, scale, input), eps=eps, out=rows(where, "out", out))
