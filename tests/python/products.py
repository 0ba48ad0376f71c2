# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Operands of matrix products by torch, and the verdict on a product."""
import places
import torch


def randn(*shape, seed=1, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(places.TORCH)


def poisoned(*shape, dtype):
    return torch.full(shape, float("nan"), dtype=dtype, device=places.TORCH)


def fp8_operands(dg, m, n, k, gran_n=128, ue8m0=False):
    a = dg.per_token_cast_to_fp8(randn(m, k), use_ue8m0=ue8m0, gran_k=128, use_packed_ue8m0=False)
    x = randn(n, k, seed=2)
    return a, dg.per_block_cast_to_fp8(x, use_ue8m0=ue8m0, gran_k=128) if gran_n == 128 else dg.per_token_cast_to_fp8(x, use_ue8m0=ue8m0)


def contiguous(sizes, alignment, psum):
    """(rows, grouped layout) with a few rows behind the last group."""
    ends, layout, row = [], [], 0
    for group, size in enumerate(sizes):
        padded = -(-size // alignment) * alignment
        ends.append(row + size)
        layout += [group] * size + [-1] * (padded - size)
        row += padded
    layout += [-1] * alignment
    return len(layout), torch.tensor(ends if psum else layout, dtype=torch.int32, device=places.TORCH), layout


def grouped_operands(dg, rows, groups, n, k, kind):
    """(a, b, b's parts of each group) of bf16 or of FP8 with scales."""
    a, b = randn(rows, k), randn(groups, n, k, seed=2)
    if kind == "bf16":
        return a.to(torch.bfloat16), b.to(torch.bfloat16), list(b.to(torch.bfloat16))
    parts = [dg.per_block_cast_to_fp8(x, use_ue8m0=False) for x in b]
    return dg.per_token_cast_to_fp8(a, use_ue8m0=False), (torch.stack([p[0] for p in parts]), torch.stack([p[1] for p in parts])), parts


def block_scales(scales, rows, columns):
    """Scales of 1 or 128 rows and 128 columns, one for each element."""
    scales = scales.double().repeat_interleave(128, -1)[..., :columns]
    return scales if scales.size(-2) == rows else scales.repeat_interleave(128, -2)[..., :rows, :]


def real(operand):
    """The values of (tensor, scales), or of a tensor, in double."""
    if not isinstance(operand, tuple):
        return operand.double()
    return operand[0].double() * block_scales(operand[1], *operand[0].shape[-2:])


def product(a, b, dtype, c=None):
    """(c + a @ b.T in double, what a kernel's may differ): one rounding to dtype of a sum in f32. Each rounding of that is relative to at most the sum of
    all magnitudes; a tensor core's sum of 128 products of FP8 is off by up to 2^-11 of theirs (quern/ops/gemm/README.md)."""
    expected, magnitude = real(a) @ real(b).mT, real(a).abs() @ real(b).abs().mT
    if c is not None:
        expected, magnitude = expected + c.double(), magnitude + c.double().abs()
    k = real(a).size(-1)
    of_products = 2**-11 / max(1, k / 128) ** 0.5 if (a[0] if isinstance(a, tuple) else a).element_size() == 1 else 0
    return expected, torch.finfo(dtype).eps / 2 * expected.abs() + (of_products + (k + 4) * 2**-24) * magnitude + 1e-30


def judge(d, a, b, c=None):
    """d is c + a @ b.T."""
    expected, tolerance = product(a, b, d.dtype, c)
    worst = ((d.double() - expected).abs() / tolerance).max() if d.numel() else torch.tensor(0.0)
    assert worst <= 1, f"{worst} times the tolerance"  # NaN is not
