# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""FP8 linear layers of vLLM: scales for blocks of 128, for rows and for whole tensors. x is quantised by quern.quant, the product is quern.gemm.scaled."""
import json

import torch
from vllm.model_executor.kernels import linear
from vllm.model_executor.kernels.linear.scaled_mm.BlockScaledMMLinearKernel import Fp8BlockScaledMMLinearKernel
from vllm.model_executor.kernels.linear.scaled_mm.ScaledMMLinearKernel import FP8ScaledMMLinearKernel
from vllm.model_executor.layers.quantization.utils.quant_utils import GroupShape
from vllm.model_executor.utils import replace_parameter
from vllm.platforms import PlatformEnum, current_platform

import quern
import quern.torch  # torch.compile follows the calls
from quern.integrations.vllm import _settings, warmup

_BLOCK, _ROW = 128, GroupShape.PER_TOKEN
_LEAST_OF_GROUP, _LEAST_OF_ROW = 1e-10, 1.0 / 512  # vLLM's bounds of a scale: the latter over 448
_LARGEST = 448.0  # of e4m3
_DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}


def _supported(compute_capability):
    if not _settings.runs_here():
        return False, "needs a GPU, or the host with QN_DEVICE=emu"
    if compute_capability is None and current_platform.is_cuda():
        capability = current_platform.get_device_capability()
        compute_capability = capability.major * 10 + capability.minor
    if compute_capability is not None and not quern.gemm.scaled.is_compute_capability_supported(compute_capability):
        return False, f"quern.gemm.scaled does not run on compute capability {compute_capability}"
    return True, None


def _in_a_graph(x):
    """Whether the call becomes part of a graph. quant.per_tensor needs memory to find the largest of all elements, which a graph does not give while it is captured."""
    return torch.compiler.is_compiling() or (x.is_cuda and torch.cuda.is_current_stream_capturing())


def _refusal(config):
    """Why quern does not compute such a layer, beside its scales; None: it does."""
    if not _settings.asked("linear"):
        return "additional_config['quern']['layers'] does not have 'linear'"
    if config.out_dtype not in (torch.bfloat16, torch.float32):
        return f"the result is {config.out_dtype}, expected torch.bfloat16 or torch.float32"
    if config.weight_quant_key.dtype != torch.float8_e4m3fn or config.activation_quant_key.dtype != torch.float8_e4m3fn:
        return f"weights are {config.weight_quant_key.dtype} and activations {config.activation_quant_key.dtype}, expected torch.float8_e4m3fn"
    if not config.weight_quant_key.symmetric or not config.activation_quant_key.symmetric:
        return "numbers have a zero point, expected none"
    return None


def _warm_later(quantiser, q_words, columns_a, rows_b, columns_b, config):
    """Notes the calls of a layer for the warm-up."""
    n, k = config.weight_shape
    calls = [("quantiser", f"quant.{quantiser}", {"m": "tokens", "k": k, "x.dtype": _DTYPES[config.input_dtype], "q.dtype": "e4m3", **q_words}),
             ("product", "gemm.scaled", {"m": "tokens", "n": n, "k": k, "a.dtype": "e4m3", "b.dtype": "e4m3", "out.dtype": _DTYPES[config.out_dtype], "scale_rows_a": 1 if quantiser == "per_tensor" else "tokens",
                                         "scale_columns_a": columns_a, "scale_rows_b": rows_b, "scale_columns_b": columns_b})]
    warmup.LINEAR.update(json.dumps(call) for call in calls)
    warmup.KERNELS.register_warmup()


class QuernFp8BlockLinear(Fp8BlockScaledMMLinearKernel):
    """Weights with a scale for 128 x 128, activations with one for 128 of a row."""

    def __init__(self, config):
        super().__init__(config)
        n, k = config.weight_shape
        ceil = lambda x: -(-x // _BLOCK)  # noqa: E731
        _warm_later("per_token_group", {}, ceil(k), ceil(n), ceil(k), config)

    @classmethod
    def is_supported(cls, compute_capability=None):
        return _supported(compute_capability)

    @classmethod
    def can_implement(cls, config):
        fits, reason = super().can_implement(config)
        if not fits:
            return fits, reason
        activation, weight = config.activation_quant_key.scale.group_shape, config.weight_quant_key.scale.group_shape
        if activation != GroupShape(1, _BLOCK) or weight != GroupShape(_BLOCK, _BLOCK):
            return False, f"scales are of {tuple(activation)} and {tuple(weight)}, expected (1, {_BLOCK}) and ({_BLOCK}, {_BLOCK})"
        reason = _refusal(config)
        return reason is None, reason

    def process_weights_after_loading(self, layer):
        """Scales that are powers of two in 8 bits become f32."""
        super().process_weights_after_loading(layer)
        params = self._get_layer_params(layer)
        if params.block_scale.dtype != torch.float32:
            replace_parameter(layer, params.block_scale_attr, params.block_scale.to(torch.float32))

    def apply_weights(self, layer, x, bias=None, **others):
        params = self._get_layer_params(layer)
        rows = x.reshape(-1, x.shape[-1])
        q, scales = quern.quant.per_token_group(rows, amax_floor=_LEAST_OF_GROUP)
        out = quern.gemm.scaled(q, scales, params.weight, params.block_scale, bias, out_dtype=self.config.out_dtype)
        return out.view(*x.shape[:-1], params.weight.shape[0])

    def apply_block_scaled_mm(self, A, B, As, Bs):
        """A @ B.T of operands that are quantised."""
        return quern.gemm.scaled(A, As, B, Bs, out_dtype=self.config.out_dtype)


class QuernFp8Linear(FP8ScaledMMLinearKernel):
    """Weights with one scale or one for each output, activations with one, static or computed, or one for each row."""

    def __init__(self, c, layer_param_names):
        super().__init__(c, layer_param_names)
        self.quant_fp8 = self._quantise
        self._by_row = c.activation_quant_key.scale.group_shape == _ROW
        rows_b = 1 if c.weight_quant_key.scale.group_shape.is_per_tensor() else c.weight_shape[0]
        _warm_later("per_token" if self._by_row else "per_tensor", {"static_scale.present": 1} if c.activation_quant_key.scale.static else {}, 1, rows_b, 1, c)

    @classmethod
    def is_supported(cls, compute_capability=None):
        return _supported(compute_capability)

    @classmethod
    def can_implement(cls, c):
        activation, weight = c.activation_quant_key.scale, c.weight_quant_key.scale
        if not (activation.group_shape.is_per_tensor() or (activation.group_shape == _ROW and not activation.static)):
            return False, f"activations have {'static ' if activation.static else ''}scales of {tuple(activation.group_shape)}, expected one of all, or a computed one of each row"
        if not (weight.group_shape.is_per_tensor() or weight.group_shape.is_per_channel() or weight.group_shape == _ROW):
            return False, f"weights have scales of {tuple(weight.group_shape)}, expected one of all, or one of each output"
        reason = _refusal(c)
        return reason is None, reason

    def _quantise(self, x, scale=None, scale_ub=None):
        """x [m, k] in FP8 and its scales, [m, 1] or [1]."""
        if self._by_row:
            return quern.quant.per_token(x, scale_upper_bound=None if scale_ub is None else scale_ub.reshape(1), amax_floor=_LEAST_OF_ROW)
        if scale_ub is not None:
            raise ValueError("quern.integrations.vllm: `scale_ub` is given for one scale of all activations, expected None: vLLM bounds scales of rows alone")
        if scale is None and _in_a_graph(x):
            scale = (x.abs().amax() if x.numel() else x.new_zeros(())).float().clamp(min=_LEAST_OF_ROW) / _LARGEST
        return quern.quant.per_tensor(x, static_scale=None if scale is None else scale.reshape(1), amax_floor=_LEAST_OF_ROW)

    def apply_scaled_mm(self, *, A, B, out_dtype, As, Bs, bias, output_shape):
        """A @ B of B [k, n], the transpose of a weight [n, k]."""
        return quern.gemm.scaled(A, As.reshape(-1, 1), B.t(), Bs.reshape(-1, 1), bias, out_dtype=out_dtype).view(output_shape)


def register():
    """In front of vLLM's own kernels, which come into question where the configuration does not ask for quern's."""
    for lists, ours in ((linear._POSSIBLE_FP8_BLOCK_KERNELS, QuernFp8BlockLinear), (linear._POSSIBLE_FP8_KERNELS, QuernFp8Linear)):
        for platform in (PlatformEnum.CUDA, PlatformEnum.CPU):
            if ours not in lists[platform]:
                lists[platform].insert(0, ours)
