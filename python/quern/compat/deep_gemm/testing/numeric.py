# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
import torch

from quern.compat.deep_gemm._arguments import checked


@checked()
def calc_diff(x, y):
    """0 for equal tensors: |x - y|^2 / (|x|^2 + |y|^2), in double. Two tensors of zeros are equal; NaN gives NaN."""
    x, y = x.double(), y.double()
    size = (x.square() + y.square()).sum()
    return torch.where(size == 0, 0.0, (x - y).square().sum() / size)


@checked()
def assert_bitwise_equal(x, y, label=""):
    """AssertionError where shape, dtype or a bit differs; it names the first element that does. NaNs of the same bits are equal."""
    of = f"{label}: " if label else ""
    if x.shape != y.shape or x.dtype != y.dtype:
        raise AssertionError(f"{of}{x.dtype} {list(x.shape)} and {y.dtype} {list(y.shape)}, expected the same")
    bits = [t.contiguous().reshape(-1, 1).view(torch.uint8) if t.numel() else t.new_empty((0, 1), dtype=torch.uint8) for t in (x, y)]
    differs = (bits[0] != bits[1]).any(1)
    if differs.any():
        first = int(differs.nonzero()[0])
        index = [int(i) for i in torch.unravel_index(torch.tensor(first), x.shape)]
        shown = [f"{t.flatten()[first].item()} (0x{bytes(b[first].tolist()[::-1]).hex()})" for t, b in zip((x.contiguous(), y.contiguous()), bits)]
        raise AssertionError(f"{of}element {index} is {shown[0]}, expected {shown[1]}; {int(differs.sum())} of {x.numel()} elements differ")


@checked()
def count_bytes(*tensors):
    """Bytes of tensors, and of those in tuples and lists; None has none."""
    return sum(count_bytes(*t) if isinstance(t, (tuple, list)) else t.nbytes for t in tensors if t is not None)
