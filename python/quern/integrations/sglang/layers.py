# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""SGLang's norms, activations and RoPE: hooks around their CUDA paths, which act where the attention backend quern was made."""
import torch
from sglang.srt.plugins.hook_registry import HookRegistry, HookType

import quern
import quern.torch  # torch.compile follows the calls

_used = False


def use():
    """From now on the layers are quern's."""
    global _used
    _used = True


def _rows(x):
    return x.reshape(-1, x.shape[-1])


def _normed(self, x, residual, addition, weight_bias):
    """As SGLang's: with a residual the sum is in its memory, and both are returned."""
    if residual is None:
        return quern.norm.rms_norm(_rows(x), self.weight.data, eps=self.variance_epsilon, weight_bias=weight_bias).view(x.shape)
    if addition is not None:
        residual = residual + addition
    out, total = quern.norm.fused_add_rms_norm(_rows(x), _rows(residual), self.weight.data, eps=self.variance_epsilon, weight_bias=weight_bias)
    return out.view(x.shape), total.view(residual.shape)


def _takes(self, x, residual):
    return _used and x.numel() > 0 and self.weight.dtype in (x.dtype, torch.float32) and (residual is None or residual.dtype == x.dtype)


def rms_norm(original, self, x, residual=None, post_residual_addition=None, quant_linear=None):
    """RMSNorm.forward_cuda. SGLang's own where a variance of fewer elements, a rounding before the weight, a residual in f32 or a quantised result is wanted."""
    if not _takes(self, x, residual) or quant_linear is not None or self._quant_linear is not None or self.variance_size_override is not None or self.cast_x_before_out_mul \
            or self.fp32_residual or self.override_orig_dtype is not None:
        return original(self, x, residual, post_residual_addition, quant_linear)
    return _normed(self, x, residual, post_residual_addition, 0.0)


def gemma_rms_norm(original, self, x, residual=None, post_residual_addition=None):
    """GemmaRMSNorm.forward_cuda."""
    if not _takes(self, x, residual):
        return original(self, x, residual, post_residual_addition)
    return _normed(self, x, residual, post_residual_addition, 1.0)


def _activation(compute):
    def forward(original, self, x):
        if not _used:
            return original(self, x)
        rows = compute(self, _rows(x))
        return rows.view(*x.shape[:-1], rows.shape[-1])
    return forward


def rope(original, self, positions, query, key, offsets=None, fused_set_kv_buffer_arg=None):
    """RotaryEmbedding.forward_cuda, in place; fused_set_kv_buffer_arg: the rotated keys and the values are stored into the pool's buffers too."""
    if not _used or positions.dim() != 1:
        return original(self, positions, query, key, offsets, fused_set_kv_buffer_arg)
    if offsets is not None:
        positions = positions + offsets
    tokens = positions.shape[0]
    cos, sin = self.cos_sin_cache.to(query.device).chunk(2, dim=-1)
    if cos.dtype not in (torch.float32, query.dtype):
        cos, sin = cos.float(), sin.float()
    q, k = query.view(tokens, -1, self.head_size), key.view(tokens, -1, self.head_size)
    quern.rope.rope(q, k, positions, cos, sin, interleaved=not self.is_neox_style, q_out=q, k_out=k)
    if fused_set_kv_buffer_arg is not None:
        to = fused_set_kv_buffer_arg
        caches = (buffer.view(buffer.shape[0], 1, -1, self.head_size) for buffer in (to.k_buffer, to.v_buffer))
        quern.kv_cache.append_paged(k, to.value.view(tokens, -1, self.head_size), *caches, slot_mapping=to.cache_loc)
    return query, key


# {SGLang's function: what is called in its place, with it}
HOOKS = {
    "sglang.srt.layers.layernorm.RMSNorm.forward_cuda": rms_norm,
    "sglang.srt.layers.layernorm.GemmaRMSNorm.forward_cuda": gemma_rms_norm,
    "sglang.srt.layers.activation.SiluAndMul.forward_cuda": _activation(lambda self, x: quern.activation.silu_and_mul(x)),
    "sglang.srt.layers.activation.GeluAndMul.forward_cuda":
        _activation(lambda self, x: (quern.activation.gelu_tanh_and_mul if self.approximate == "tanh" else quern.activation.gelu_and_mul)(x)),
    "sglang.srt.layers.activation.NewGELU.forward_cuda": _activation(lambda self, x: quern.activation.gelu_tanh(x)),
    "sglang.srt.layers.activation.ReLU2.forward_cuda": _activation(lambda self, x: quern.activation.relu2(x)),
    "sglang.srt.layers.rotary_embedding.base.RotaryEmbedding.forward_cuda": rope,
}


def register():
    """Hands the hooks to SGLang, once a process; it puts them in place behind all plugins."""
    for target, hook in HOOKS.items():
        if all(given is not hook for _, given, _ in HookRegistry._hooks.get(target, ())):
            HookRegistry.register(target, hook, HookType.AROUND)
