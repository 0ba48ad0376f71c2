# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Matrix products. Weights are [n, k], rows are outputs."""
import quern
from quern import _check
from quern.compat.flashinfer._base import call, hint, one_of, tensor, torch


def fp8_blockscale_gemm_sm90(input, weight, input_scale=None, weight_scale=None, out=None, out_dtype=None):
    """input [m, k] @ weight.T [n, k] of e4m3 with f32 scales: of input 1 x 128, of weight 128 x 128 or 1 x 128. An input of 16 bits is quantised first; a
    weight is e4m3. The result is bf16."""
    where = "fp8_blockscale_gemm_sm90"
    tensor(where, "input", input, 2), tensor(where, "weight", weight, 2), tensor(where, "weight_scale", weight_scale, 2)
    if input.dtype in (torch.bfloat16, torch.float16):
        if input_scale is not None:
            raise ValueError(f"flashinfer.{where}: `input_scale` is given, expected None beside an input of 16 bits, which is quantised here")
        input, input_scale = call(where, quern.quant.per_token_group, {"x": "input"}, x=input)
    names = {"a": "input", "b": "weight", "scales_a": "input_scale", "scales_b": "weight_scale"}
    if out is not None:
        return call(where, quern.gemm.scaled, names, a=input, scales_a=input_scale, b=weight, scales_b=weight_scale, out=out)
    return call(where, quern.gemm.scaled, names, a=input, scales_a=input_scale, b=weight, scales_b=weight_scale, out_dtype=out_dtype or torch.bfloat16)


def mm_bf16(a, b, bias=None, pdl=False, out=None, out_dtype=None, backend="cudnn"):
    """a [m, k] @ b [k, n] + bias; b is column-major, as FlashInfer has it, or row-major. bf16 or f32. The backends are names of other libraries' kernels: the result
    is that of quern's."""
    where = "mm_bf16"
    hint(where, "pdl", pdl)
    one_of(where, "backend", backend, dict.fromkeys(("cudnn", "cublaslt", "tinygemm", "auto", "cutile", "cute-dsl")) | dict.fromkeys(("cutlass", "tgv"), "it needs SM100"))
    if out_dtype is not None and not isinstance(out_dtype, torch.dtype):
        _check.fail_type(f"flashinfer.{where}", "out_dtype", out_dtype, "a dtype of torch")
    arguments = {"out": out} if out is not None else {"out_dtype": out_dtype or torch.bfloat16}
    return call(where, quern.gemm.dense, None, a=tensor(where, "a", a, 2), b=tensor(where, "b", b, 2).mT, bias=bias, **arguments)


def tinygemm_bf16(input, weight, out, bias=None, use_pdl=False):
    """out = input [m, k] @ weight.T [n, k] + bias."""
    hint("tinygemm_bf16", "use_pdl", use_pdl)
    call("tinygemm_bf16", quern.gemm.dense, {"a": "input", "b": "weight"}, a=input, b=weight, bias=bias, out=tensor("tinygemm_bf16", "out", out, 2))
