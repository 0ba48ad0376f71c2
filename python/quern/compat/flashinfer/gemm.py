# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Matrix products. Weights are [n, k], rows are outputs."""
import quern
from quern import _check
from quern.compat.flashinfer._base import asked, call, hint, one_of, restated, result_of, tensor, torch
from quern.compat.flashinfer._names import _SM100


def fp8_blockscale_gemm_sm90(input, weight, input_scale=None, weight_scale=None, out=None, out_dtype=None):
    """input [m, k] @ weight.T [n, k] of e4m3 with f32 scales: of input 1 x 128, of weight 128 x 128 or 1 x 128. An input of 16 bits is quantised first; a
    weight is e4m3. The result is bf16."""
    where = "fp8_blockscale_gemm_sm90"
    tensor(where, "input", input, 2), tensor(where, "weight", weight, 2), tensor(where, "weight_scale", weight_scale, 2)
    result = result_of(where, out, out_dtype, torch.bfloat16)
    if input.dtype in (torch.bfloat16, torch.float16):
        if input_scale is not None:
            raise ValueError(f"flashinfer.{where}: `input_scale` is given, expected None beside an input of 16 bits, which is quantised here")
        input, input_scale = call(where, quern.quant.per_token_group, {"x": "input"}, x=input)
    names = {"a": "input", "b": "weight", "scales_a": "input_scale", "scales_b": "weight_scale"}
    return call(where, quern.gemm.scaled, names, a=input, scales_a=input_scale, b=weight, scales_b=weight_scale, **result)


# FlashInfer's words for its kernels, and why there is none in the place of some. Those of the others are quern's.
_MM_BF16 = {**dict.fromkeys(("cudnn", "cublaslt", "tinygemm", "cutile", "auto")), **dict.fromkeys(("cutlass", "tgv", "cute-dsl"), _SM100)}
_BMM_BF16 = {**dict.fromkeys(("cudnn", "cutile", "auto")), **dict.fromkeys(("cutlass", "tgv", "cake"), _SM100)}
_BMM_FP8 = {**dict.fromkeys(("cublas", "cudnn", "auto")), **dict.fromkeys(("cutlass", "cute-dsl"), _SM100)}


@asked(_MM_BF16)
def mm_bf16(a, b, bias=None, pdl=False, out=None, out_dtype=None, backend="cudnn", *, skip_check=False):
    """a [m, k] @ b [k, n] + bias; b is column-major, as FlashInfer has it, or row-major. bf16 or f32. The backends are names of other libraries' kernels: the result
    is that of quern's."""
    where = "mm_bf16"
    hint(where, "pdl", pdl), _check.boolean(f"flashinfer.{where}", "skip_check", skip_check)
    one_of(where, "backend", backend, _MM_BF16)
    arguments = result_of(where, out, out_dtype, torch.bfloat16)
    return call(where, quern.gemm.dense, None, a=tensor(where, "a", a, 2), b=tensor(where, "b", b, 2).mT, bias=bias, skip_check=skip_check, **arguments)


@asked()
def tinygemm_bf16(input, weight, out, bias=None, use_pdl=False, *, skip_check=False):
    """out = input [m, k] @ weight.T [n, k] + bias."""
    hint("tinygemm_bf16", "use_pdl", use_pdl), _check.boolean("flashinfer.tinygemm_bf16", "skip_check", skip_check)
    call("tinygemm_bf16", quern.gemm.dense, {"a": "input", "b": "weight"}, a=input, b=weight, bias=bias, out=tensor("tinygemm_bf16", "out", out, 2), skip_check=skip_check)


def _dense(where, a, b, out, names, skip_check):
    """out = a [m, k] @ b.T [n, k]. The op writes a's dtype or f32: another is converted from f32."""
    if out.dtype in (a.dtype, torch.float32):
        call(where, quern.gemm.dense, names, a=a, b=b, out=out, skip_check=skip_check)
    else:
        out.copy_(call(where, quern.gemm.dense, names, a=a, b=b, out_dtype=torch.float32, skip_check=skip_check))


def _batch(where, A, B, out, dtype):
    """out [batch, m, n] for A [batch, m, k] @ B [batch, k, n]."""
    tensor(where, "A", A, 3), tensor(where, "B", B, 3)
    if B.size(0) != A.size(0) or B.size(1) != A.size(2):
        raise ValueError(f"flashinfer.{where}: `B` has shape {list(B.shape)}, expected [{A.size(0)}, {A.size(2)}, n], as `A` has {list(A.shape)}")
    shape = (A.size(0), A.size(1), B.size(2))
    if out is None:
        return torch.empty(shape, dtype=dtype, device=A.device)
    if tuple(tensor(where, "out", out, 3).shape) != shape:
        raise ValueError(f"flashinfer.{where}: `out` has shape {list(out.shape)}, expected {list(shape)}")
    return out


@asked(_BMM_BF16)
def bmm_bf16(A, B, out=None, out_dtype=None, backend="cudnn", *, skip_check=False):
    """A [batch, m, k] @ B [batch, k, n] of bf16; out of bf16, the default, f16 or f32. A batch of one is a call of gemm.dense. More are one launch of
    gemm.grouped_masked where B is column-major, as FlashInfer has it; of a row-major B, or of an A whose rows are not dense, a launch of gemm.dense for each."""
    where = "bmm_bf16"
    one_of(where, "backend", backend, _BMM_BF16), _check.boolean(f"flashinfer.{where}", "skip_check", skip_check)
    out = _batch(where, A, B, out, result_of(where, out, out_dtype, torch.bfloat16).get("out_dtype"))
    for name, t in (("A", A), ("B", B)):
        if t.dtype != torch.bfloat16:
            raise TypeError(f"flashinfer.{where}: `{name}` is {str(t.dtype)[6:]}, expected bfloat16")
    names = {"a": "A", "b": "B", "out_dtype": "out_dtype"}
    if len(A) > 1 and all(t.stride(2) == 1 for t in (A, B.mT, out)):
        rows = torch.full((len(A),), A.size(1), dtype=torch.int32, device=A.device)
        call(where, quern.gemm.grouped_masked, names, a=A, b=B.mT, masked_m=rows, expected_m=A.size(1), out=out, skip_check=skip_check)
    else:
        for a, b, c in zip(A, B, out):
            _dense(where, a, b.mT, c, names, skip_check)
    return out


@asked(_BMM_FP8)
def bmm_fp8(A, B, A_scale, B_scale, dtype, out=None, backend="cublas", *, skip_check=False):
    """A [batch, m, k] @ B [batch, k, n] * A_scale * B_scale of e4m3 or e5m2, B column-major, the scales tensors of one f32; out of bf16 or f16. Each matrix is a
    call of gemm.scaled: engines have a batch of one. f16 is converted from f32."""
    where = "bmm_fp8"
    one_of(where, "backend", backend, _BMM_FP8), _check.boolean(f"flashinfer.{where}", "skip_check", skip_check)
    if not isinstance(dtype, torch.dtype):
        _check.fail_type(f"flashinfer.{where}", "dtype", dtype, "a dtype of torch")
    given = {}
    for name, t in (("A_scale", A_scale), ("B_scale", B_scale)):
        if tensor(where, name, t).numel() != 1:
            raise ValueError(f"flashinfer.{where}: `{name}` has {t.numel()} elements, expected 1")
        given["scales_" + name[0].lower()] = t.float().reshape(1, 1)
    out = _batch(where, A, B, out, dtype)
    if out.dtype != dtype or dtype not in (torch.bfloat16, torch.float16):
        raise TypeError(f"flashinfer.{where}: `dtype` is {str(dtype)[6:]}, expected bfloat16 or float16, and that of `out`")
    names = {"a": "A", "b": "B", "scales_a": "A_scale", "scales_b": "B_scale"}
    for a, b, c in zip(A, B, out):
        if dtype == torch.bfloat16:
            call(where, quern.gemm.scaled, names, a=a, b=b.mT, out=c, skip_check=skip_check, **given)
        else:
            c.copy_(call(where, quern.gemm.scaled, names, a=a, b=b.mT, out_dtype=torch.float32, skip_check=skip_check, **given))
    return out


class SegmentGEMMWrapper:
    """y[i] = x[i] @ W[weight_indices[i]] for segments i of rows, by quern.gemm.grouped_contiguous, which reads on the device where they begin. Weights that
    indices choose are copied first: a pass over those of all segments. Nothing of the workspace is read."""

    def __init__(self, float_workspace_buffer, backend="auto"):
        one_of("SegmentGEMMWrapper", "backend", backend, {"auto": None, "sm80": None, "sm90": None})
        self.reset_workspace_buffer(float_workspace_buffer, None)

    def reset_workspace_buffer(self, float_workspace_buffer, int_workspace_buffer):
        """Another workspace, which is not read: memory is of the device's pool."""
        restated("SegmentGEMMWrapper", (("float_workspace_buffer", tensor("SegmentGEMMWrapper", "float_workspace_buffer", float_workspace_buffer)), ("int_workspace_buffer", int_workspace_buffer)))

    def run(self, x, weights, batch_size, weight_column_major, out=None, seg_lens=None, seg_indptr=None, weight_indices=None):
        """[rows, n] in x's dtype: x [rows, k] of bf16 or f16, weights [matrices, n, k] where they are column-major, else [matrices, k, n]. Segments are told by
        seg_indptr [batch_size + 1], or by their lengths; weight_indices [batch_size]: the matrix of each, else each has its own."""
        where = "SegmentGEMMWrapper.run"
        tensor(where, "x", x, 2), tensor(where, "weights", weights, 3)
        batch = _check.integer(f"flashinfer.{where}", "batch_size", batch_size, 0, 2**31 - 1)
        for name, t, size in (("seg_lens", seg_lens, batch), ("seg_indptr", seg_indptr, batch + 1), ("weight_indices", weight_indices, batch)):
            if t is not None and tensor(where, name, t, 1).numel() != size:
                raise ValueError(f"flashinfer.{where}: `{name}` has {t.numel()} elements, expected {size}, as `batch_size` is {batch}")
        if seg_indptr is None:
            if seg_lens is None:
                raise ValueError(f"flashinfer.{where}: `seg_lens` and `seg_indptr` are None, expected one")
            seg_indptr = torch.cat([seg_lens.new_zeros(1), seg_lens.cumsum(0)])
        if weight_indices is not None:
            weights = weights.index_select(0, weight_indices.to(weights.device))
        if not _check.boolean(f"flashinfer.{where}", "weight_column_major", weight_column_major):
            weights = weights.mT
        if len(weights) != batch:
            raise ValueError(f"flashinfer.{where}: `weights` has {len(weights)} matrices, expected {batch}, one for each segment")
        result = {"out_dtype": x.dtype} if out is None else {"out": tensor(where, "out", out, 2)}
        return call(where, quern.gemm.grouped_contiguous, {"a": "x", "b": "weights", "m_indptr": "seg_indptr"}, a=x, b=weights, m_indptr=seg_indptr.to(x.device).int(), **result)

    forward = run
