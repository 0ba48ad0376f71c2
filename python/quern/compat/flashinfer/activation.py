# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Gated activations of [..., 2 * d]: the first half is the gate."""
import quern
from quern.compat.flashinfer._base import call, hint, rows, tensor, torch


def _gated(where, op, input, out, enable_pdl):
    hint(where, "enable_pdl", enable_pdl)
    x = rows(where, "input", input)
    if out is None:
        out = torch.empty((*input.shape[:-1], input.size(-1) // 2), dtype=input.dtype, device=input.device)
    call(where, op, {"x": "input"}, x=x, out=rows(where, "out", tensor(where, "out", out)))
    return out


def silu_and_mul(input, out=None, enable_pdl=None):
    """silu(input[..., :d]) * input[..., d:]."""
    return _gated("silu_and_mul", quern.activation.silu_and_mul, input, out, enable_pdl)


def gelu_tanh_and_mul(input, out=None, enable_pdl=None):
    """The same of gelu by tanh."""
    return _gated("gelu_tanh_and_mul", quern.activation.gelu_tanh_and_mul, input, out, enable_pdl)


def gelu_and_mul(input, out=None, enable_pdl=None):
    """The same of gelu by erf."""
    return _gated("gelu_and_mul", quern.activation.gelu_and_mul, input, out, enable_pdl)
