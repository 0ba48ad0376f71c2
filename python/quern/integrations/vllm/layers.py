# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""vLLM's norms as a provider of its IR ops; activations and RoPE as its custom ops."""
import torch
from vllm import ir
from vllm.model_executor.custom_op import CustomOp, op_registry_oot
from vllm.model_executor.layers import activation, rotary_embedding
from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding

import quern
import quern.torch  # torch.compile and vLLM's passes follow the calls
from quern.integrations.vllm import _settings


def _rows(x):
    return x.reshape(-1, x.shape[-1])


# ---- norms: in graphs and eager, chosen by ir_op_priority


def _takes(x, weight, variance_size):
    return variance_size is None and weight is not None and weight.dtype in (x.dtype, torch.float32)


def _rms_norm_takes(x, weight, epsilon, variance_size=None):
    return _takes(x, weight, variance_size)


def _fused_takes(x, x_residual, weight, epsilon, variance_size=None):
    return _takes(x, weight, variance_size) and x_residual.dtype == x.dtype and x_residual.shape == x.shape


def rms_norm(x: torch.Tensor, weight: torch.Tensor | None, epsilon: float, variance_size: int | None = None) -> torch.Tensor:
    """x / sqrt(mean(x^2) + epsilon) * weight of the last dim."""
    return quern.norm.rms_norm(_rows(x), weight, eps=epsilon).view(x.shape)


def fused_add_rms_norm(x: torch.Tensor, x_residual: torch.Tensor, weight: torch.Tensor | None, epsilon: float, variance_size: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of x + x_residual, and that sum, which is in x_residual's memory where its rows lie one after the other."""
    residual = _rows(x_residual)
    out, residual = quern.norm.fused_add_rms_norm(_rows(x), residual, weight, eps=epsilon)
    return out.view(x.shape), residual.view(x.shape)


# ---- custom ops: chosen by custom_ops and by additional_config


def _swigluoai(self, x):
    return quern.activation.clamped_swiglu(_rows(x), alpha=self.alpha, limit=self.limit, beta=1.0, interleaved=True)


# {vLLM's class: what its forward is of rows}
_ACTIVATIONS = {
    activation.SiluAndMul: lambda self, x: quern.activation.silu_and_mul(x),
    activation.GeluAndMul: lambda self, x: (quern.activation.gelu_tanh_and_mul if self.approximate == "tanh" else quern.activation.gelu_and_mul)(x),
    activation.SwigluOAIAndMul: _swigluoai,
    activation.NewGELU: lambda self, x: quern.activation.gelu_tanh(x),
    activation.ReLUSquaredActivation: lambda self, x: quern.activation.relu2(x),
}
# RoPE of a table of cosines and sines: all classes that compute as the first does.
_ROTARY = [cls for cls in vars(rotary_embedding).values() if isinstance(cls, type) and issubclass(cls, RotaryEmbedding)
           and cls.forward_cuda is RotaryEmbedding.forward_cuda and cls.forward_native is RotaryEmbedding.forward_native]
# vLLM's names of them, in custom_ops.
CUSTOM_OPS = {"activation": sorted({cls.name for cls in _ACTIVATIONS}), "rope": sorted({cls.name for cls in _ROTARY})}


def _activated(compute):
    def forward(self, x):
        rows = compute(self, _rows(x))
        return rows.view(*x.shape[:-1], rows.shape[-1])
    return forward


def _rotated(self, positions, query, key=None):
    """In place, as vLLM's kernel. A key may be absent where layers share their cache."""
    cos, sin = self._match_cos_sin_cache_dtype(query).chunk(2, dim=-1)
    positions = positions.flatten()
    q = query.view(positions.shape[0], -1, self.head_size)
    k = q[:, :0] if key is None else key.view(positions.shape[0], -1, self.head_size)
    quern.rope.rope(q, k, positions, cos, sin, interleaved=not self.is_neox_style, q_out=q, k_out=k)
    return query, key


def _substitute(cls, layer, forward):
    """A subclass of vLLM's class whose instances compute with quern, if the configuration that builds them asks for it, and else as before."""
    def __init__(self, *arguments, **keywords):
        self.__dict__["_quern"] = _settings.asked(layer)  # vLLM asks for the forward function while the module is built
        cls.__init__(self, *arguments, **keywords)

    def of_platform(name):
        def call(self, *arguments, **keywords):
            return (forward if self._quern else getattr(cls, name))(self, *arguments, **keywords)
        return call

    return type("Quern" + cls.__name__, (cls,), {"__init__": __init__, "__module__": __name__, **{name: of_platform(name) for name in ("forward_cuda", "forward_cpu")}})


def register():
    """Both kinds, once a process. vLLM keeps its names of custom ops: `+silu_and_mul` means what it meant."""
    if "quern" not in ir.ops.rms_norm.impls:
        here = _settings.runs_here()
        ir.ops.rms_norm.register_impl("quern", supported=here, supports_args=_rms_norm_takes)(rms_norm)
        ir.ops.fused_add_rms_norm.register_impl("quern", supported=here, supports_args=_fused_takes, inplace=True)(fused_add_rms_norm)
    substitutes = {**{cls: ("activation", _activated(compute)) for cls, compute in _ACTIVATIONS.items()}, **{cls: ("rope", _rotated) for cls in _ROTARY}}
    for cls, (layer, forward) in substitutes.items():
        if cls.__name__ not in op_registry_oot:
            name, ours = cls.name, _substitute(cls, layer, forward)
            CustomOp.register_oot(ours, name=cls.__name__)
            ours.name = name
