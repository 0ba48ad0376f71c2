# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Operands of matrix products by torch, and the verdict on a product."""
import places
import torch


def randn(*shape, seed=1, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(places.TORCH)


def poisoned(*shape, dtype):
    return torch.full(shape, float("nan"), dtype=dtype, device=places.TORCH)


def block_scales(scales, rows, columns):
    """Scales of 1 or 128 rows and 128 columns, one for each element."""
    scales = scales.double().repeat_interleave(128, -1)[..., :columns]
    return scales if scales.size(-2) == rows else scales.repeat_interleave(128, -2)[..., :rows, :]


def real(operand):
    """The values of (tensor, scales), or of a tensor, in double."""
    if not isinstance(operand, tuple):
        return operand.double()
    return operand[0].double() * block_scales(operand[1], *operand[0].shape[-2:])


def judge(d, a, b, c=None):
    """d is c + a @ b.T: one rounding to d's dtype of a sum in f32. Each rounding of that is relative to at most the sum of all magnitudes; a tensor
    core's sum of 128 products of FP8 is off by up to 2^-11 of theirs (quern/ops/gemm/README.md)."""
    expected, magnitude = real(a) @ real(b).mT, real(a).abs() @ real(b).abs().mT
    if c is not None:
        expected, magnitude = expected + c.double(), magnitude + c.double().abs()
    k = real(a).size(-1)
    of_products = 2**-11 / max(1, -(-k // 128)) ** 0.5 if (a[0] if isinstance(a, tuple) else a).element_size() == 1 else 0
    tolerance = torch.finfo(d.dtype).eps / 2 * expected.abs() + (of_products + (k + 4) * 2**-24) * magnitude + 1e-30
    worst = ((d.double() - expected).abs() / tolerance).max() if d.numel() else torch.tensor(0.0)
    assert worst <= 1, f"{worst} times the tolerance"  # NaN is not
