# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
import torch


def calc_diff(x, y):
    """0 for equal tensors: |x - y|^2 / (|x|^2 + |y|^2), in double. Two tensors of zeros are equal; NaN gives NaN."""
    x, y = x.double(), y.double()
    size = (x.square() + y.square()).sum()
    return torch.where(size == 0, 0.0, (x - y).square().sum() / size)


def count_bytes(*tensors):
    """Bytes of tensors, and of those in tuples and lists; None has none."""
    return sum(count_bytes(*t) if isinstance(t, (tuple, list)) else t.nbytes for t in tensors if t is not None)
