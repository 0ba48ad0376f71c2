# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What ops are in other libraries: the one place of quern.bench that names ops.

An entry takes the op's inputs by their names in the schema (t.x; None where absent), its attributes (a.eps) and the dtypes of its outputs (d.out), and returns
the output, or a dict of outputs by name where there are several; of tensors updated in place it returns the new value. It says what a user of that
library would write. Gradients follow from it. A Prepared entry has a function besides that makes more tensors, by name, of which t then has them too: what a model
computes once for many calls is not timed.

This module imports torch."""
import functools
import importlib
import math
from typing import Callable, NamedTuple

import torch
import torch.nn.functional as F


class Prepared(NamedTuple):
    """An entry whose tables are made before the timed calls."""

    before: Callable
    expression: Callable


def _like(x, y):
    """y in x's dtype: where they differ torch has computed in the wider one."""
    return y if y.dtype == x.dtype else y.to(x.dtype)


def _rms_norm(x, weight, a):
    if weight is not None and a.weight_bias:
        weight = weight + a.weight_bias
    width = x.shape[-1:]
    if weight is None or weight.dtype == x.dtype:
        return F.rms_norm(x, width, weight, a.eps)
    return _like(x, F.rms_norm(x.float(), width, weight.float(), a.eps))


def _layer_norm(x, t, a):
    width = x.shape[-1:]
    if all(w is None or w.dtype == x.dtype for w in (t.weight, t.bias)):
        return F.layer_norm(x, width, t.weight, t.bias, a.eps)
    wide = [None if w is None else w.float() for w in (t.weight, t.bias)]
    return _like(x, F.layer_norm(x.float(), width, *wide, a.eps))


def _fused_add(norm):
    def expression(t, a, d):
        residual = t.residual + t.x
        return {"residual": residual, "out": norm(residual, t, a)}

    return expression


def _gated(function):
    def expression(t, a, d):
        gate, up = t.x.chunk(2, -1)
        return function(gate) * up

    return expression


def _clamped_swiglu(t, a, d):
    gate, up = (t.x[..., ::2], t.x[..., 1::2]) if a.interleaved else t.x.chunk(2, -1)
    gate, up = gate.clamp(max=a.limit), up.clamp(-a.limit, a.limit)
    return (up + a.beta) * gate * torch.sigmoid(a.alpha * gate)


def _softmax(t, a, d):
    logits = t.logits
    if t.temperatures is not None:
        temperatures = t.temperatures.where(t.temperatures >= 0, math.nan)[:, None]  # what the op says of these
        probs = torch.softmax(logits.float() / temperatures, -1, dtype=d.out)
        return torch.where(temperatures < 1e-5, F.one_hot(logits.argmax(-1), logits.shape[-1]), probs)
    elif a.temperature < 1e-5:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(d.out)
    elif a.temperature != 1:
        logits = logits.float() / a.temperature
    return torch.softmax(logits, -1, dtype=d.out)


def _gather_rows(t, a, d):
    rows = F.embedding(t.ids.clamp_min(0), t.table).masked_fill((t.ids < 0)[:, None], 0)
    return rows if a.scale == 1 else (rows.float() * a.scale).to(t.table.dtype)


def _angles(t, a, rotary):
    """[tokens, pairs] in f64: positions go up to 2^24, which f32 does not multiply."""
    pairs = torch.arange(rotary // 2, dtype=torch.float64, device=t.q.device)
    turn = torch.tensor(a.theta, dtype=torch.float64, device=t.q.device) ** (-2 * pairs / rotary)
    if a.llama31_factor != 1:
        wave = 2 * math.pi / turn
        smooth = (a.original_max / wave - a.low_freq_factor) / (a.high_freq_factor - a.low_freq_factor)
        turn = turn * (smooth.clamp(0, 1) * (1 - 1 / a.llama31_factor) + 1 / a.llama31_factor)
    return t.positions.double()[:, None] / a.scale * turn


def _rotate(x, cos, sin, interleaved):
    rotary = 2 * cos.shape[-1]
    turned, rest = x[..., :rotary], x[..., rotary:]
    first, second = (turned[..., ::2], turned[..., 1::2]) if interleaved else turned.chunk(2, -1)
    pair = (first * cos - second * sin, second * cos + first * sin)
    turned = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
    return turned if rest.shape[-1] == 0 else torch.cat((turned, rest), -1)


def _turns(t, a, d):
    """Rows of cos and sin for each token, in the dtype of what is turned."""
    given = vars(t)
    if any(given.get(name) is not None for name in ("frequencies", "mrope_positions", "indptr")):
        raise NotImplementedError("rope: torch's expression turns by theta, or by rows of cos and sin, at positions of tokens, expected these")
    if given.get("cos") is not None:
        tables = [table[t.positions.long()] for table in (t.cos, t.sin)]
    else:
        angles = _angles(t, a, a.rotary_dim or t.q.shape[-1])
        tables = [f(angles) * getattr(a, "cos_sin_scale", 1) for f in (torch.cos, torch.sin)]
    return {name: table.to(t.q.dtype)[:, None] for name, table in zip(("cos_of_tokens", "sin_of_tokens"), tables)}


def _rope(names):
    def expression(t, a, d):
        return {out: _rotate(getattr(t, name), t.cos_of_tokens, t.sin_of_tokens, a.interleaved) for name, out in names.items()}

    return Prepared(_turns, expression)


def _scaled(x, dims, dtype, a, upper=None, power_of_two=False):
    """(q, scale): x over the scale of its largest magnitudes along the dims, which stay with length 1."""
    integer = dtype == torch.int8
    largest = 127.0 if integer else torch.finfo(dtype).max
    most = x.float().abs().amax(dims, keepdim=True)
    if upper is not None:
        most = most.minimum(upper)
    scale = most.clamp_min(a.amax_floor) / largest
    if power_of_two:
        scale = torch.exp2(torch.ceil(torch.log2(scale)))
    return _quantised(x, scale, dtype, largest), scale


def _quantised(x, scale, dtype, largest):
    q = (x.float() * (1 / scale)).clamp(-largest, largest)
    return (q.round() if dtype == torch.int8 else q).to(dtype)


def _per_token(t, a, d):
    q, scales = _scaled(t.x, -1, d.q, a, t.scale_upper_bound)
    return {"q": q, "scales": scales}


def _per_tensor(t, a, d):
    if t.static_scale is not None:
        return {"q": _quantised(t.x, t.static_scale, d.q, 127.0 if d.q == torch.int8 else torch.finfo(d.q).max), "scale": t.static_scale.clone()}
    q, scale = _scaled(t.x, (0, 1), d.q, a)
    return {"q": q, "scale": scale.reshape(1)}


def _blocks(x, rows, columns):
    """[row blocks, rows, column blocks, columns]; behind the ends there are zeros."""
    m, k = x.shape
    x = F.pad(x, (0, -k % columns, 0, -m % rows)) if k % columns or m % rows else x
    return x.view(x.shape[0] // rows, rows, x.shape[1] // columns, columns)


def _per_block(rows, columns_of):
    def expression(t, a, d):
        if d.scales != torch.float32:
            raise NotImplementedError("torch's expression has no scales in E8M0")
        q, scales = _scaled(_blocks(t.x, rows, columns_of(a)), (1, 3), d.q, a, power_of_two=a.power_of_two)
        m, k = t.x.shape
        return {"q": q.reshape(q.shape[0] * q.shape[1], -1)[:m, :k], "scales": scales[:, 0, :, 0]}

    return expression


def _dense(t, a, d):
    out = F.linear(t.a, t.b, t.bias)
    if t.c is not None:
        out = out + t.c
    return out if a.activation == "none" else {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}[a.activation](out)


def _by_rank(t, rank):
    return [tensor for tensor in vars(t).values() if tensor is not None and tensor.dim() == rank]


def _diag_scale(t, a, d):
    (diagonal,), (matrix,) = _by_rank(t, 1), _by_rank(t, 2)
    return diagonal[:, None] * matrix


def _linear_rowsum(t, a, d):
    """As it is written where nobody sees that it needs no product of matrices; what else the op yields are the weight's column sums."""
    (x, weight), bias = _by_rank(t, 2), _by_rank(t, 1)
    (out, dtype), *sums = vars(d).items()
    return {out: F.linear(x, weight, *bias).sum(-1).to(dtype), **{name: weight.sum(0, dtype=of) for name, of in sums}}


_gelu_tanh = functools.partial(F.gelu, approximate="tanh")

TORCH = {
    "norm.rms_norm": lambda t, a, d: _rms_norm(t.x, t.weight, a),
    "norm.rms_norm_heads": lambda t, a, d: _rms_norm(t.x, t.weight, a),
    "norm.layer_norm": lambda t, a, d: _layer_norm(t.x, t, a),
    "norm.fused_add_rms_norm": _fused_add(lambda x, t, a: _rms_norm(x, t.weight, a)),
    "norm.fused_add_layer_norm": _fused_add(_layer_norm),
    "activation.silu": lambda t, a, d: F.silu(t.x),
    "activation.gelu": lambda t, a, d: F.gelu(t.x),
    "activation.gelu_tanh": lambda t, a, d: _gelu_tanh(t.x),
    "activation.relu2": lambda t, a, d: F.relu(t.x).square(),
    "activation.silu_and_mul": _gated(F.silu),
    "activation.gelu_and_mul": _gated(F.gelu),
    "activation.gelu_tanh_and_mul": _gated(_gelu_tanh),
    "activation.swiglu": lambda t, a, d: F.silu(t.gate) * t.x,
    "activation.clamped_swiglu": _clamped_swiglu,
    "sampling.softmax": _softmax,
    "rope.rope": _rope({"q": "q_out", "k": "k_out"}),
    "rope.rope_inplace": _rope({"q": "q", "k": "k"}),
    "elementwise.add": lambda t, a, d: t.x + t.y,
    "elementwise.scale": lambda t, a, d: t.x * a.factor,
    "elementwise.soft_cap": lambda t, a, d: a.cap * torch.tanh(t.x / a.cap),
    "elementwise.gather_rows": _gather_rows,
    "elementwise.diag_scale": _diag_scale,
    "quant.per_token": _per_token,
    "quant.per_tensor": _per_tensor,
    "quant.per_token_group": _per_block(1, lambda a: a.group_size),
    "quant.per_block": _per_block(128, lambda a: 128),
    "gemm.dense": _dense,
    "gemm.linear_rowsum": _linear_rowsum,
}


def _liger(module, function):
    return getattr(importlib.import_module("liger_kernel.ops." + module), function).apply


def _liger_norm(module, function, x, t, a):
    casting = "gemma" if a.weight_bias else "llama"
    return _liger(module, function)(*x, t.weight, a.eps, a.weight_bias, casting, False)


def _liger_fused_add(t, a, d):
    out, residual = _liger_norm("fused_add_rms_norm", "LigerFusedAddRMSNormFunction", (t.x, t.residual), t, a)
    return {"out": out, "residual": residual}


LIGER = {
    "norm.rms_norm": lambda t, a, d: _liger_norm("rms_norm", "LigerRMSNormFunction", (t.x,), t, a),
    "norm.fused_add_rms_norm": _liger_fused_add,
    "norm.layer_norm": lambda t, a, d: _liger("layer_norm", "LigerLayerNormFunction")(t.x, t.weight, t.bias, a.eps),
    "activation.silu_and_mul": lambda t, a, d: _liger("swiglu", "LigerSiLUMulFunction")(*t.x.chunk(2, -1)),
    "activation.swiglu": lambda t, a, d: _liger("swiglu", "LigerSiLUMulFunction")(t.gate, t.x),
    "activation.gelu_tanh_and_mul": lambda t, a, d: _liger("geglu", "LigerGELUMulFunction")(*t.x.chunk(2, -1)),
    "sampling.softmax": lambda t, a, d: _liger("softmax", "LigerSoftmaxFunction")(t.logits if t.temperatures is None and a.temperature == 1 else t.logits.float() / (a.temperature if t.temperatures is None else t.temperatures[:, None])),
}
