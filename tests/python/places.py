# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Where the tests' arrays lie: the host, where they share a case's memory, or with QN_DEVICE=cuda a GPU, where they are copies in the same
layout and what a call wrote is copied back."""
import os

import numpy as np

ON_GPU = os.environ["QN_DEVICE"].startswith("cuda")
TORCH = "cuda" if ON_GPU else "cpu"  # torch's device
RUN_ON = None if ON_GPU else "emu"  # of testing.Case.run()


def bits_of(array):
    """The array as integers of its size: what frameworks take that do not know ml_dtypes."""
    return array if array.dtype.isbuiltin == 1 else array.view({2: np.uint16, 1: np.uint8}[array.dtype.itemsize])


def copy_bits(to, tensor):
    """Tensors of torch are copied as integers: it cannot copy fp8 between layouts."""
    import torch

    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[to.element_size()]
    to.view(integer).copy_(tensor.view(integer))


class Moved:
    """Arrays of NumPy on a GPU, each memory once: an output may be an input."""

    def __init__(self):
        self.moved = {}

    def once(self, array, move):
        """What move(array) gives as (there, handed over); the second of it."""
        key = array.ctypes.data, array.shape, array.strides
        if key not in self.moved:
            self.moved[key] = array, *move(array)
        return self.moved[key][2]


class Torch(Moved):
    """Tensors of torch for arrays, and the way back."""

    @staticmethod
    def shared(array):
        import torch

        if array.dtype.isbuiltin == 1:
            return torch.from_numpy(array)
        return torch.from_numpy(bits_of(array).view({2: np.int16, 1: np.uint8}[array.dtype.itemsize])).view(getattr(torch, array.dtype.name))

    def __call__(self, array):
        import torch

        shared = self.shared(array)
        if not ON_GPU:
            return shared

        def move(array):
            moved = torch.empty_strided(array.shape, [s // array.dtype.itemsize for s in array.strides], dtype=shared.dtype, device=TORCH)
            copy_bits(moved, shared)
            return moved, moved

        return self.once(array, move)

    def back(self):
        for array, moved, _ in self.moved.values():
            copy_bits(self.shared(array), moved)


class Cupy(Moved):
    """The same of CuPy. Dtypes that are ml_dtypes' are handed over as quern.typed()."""

    def __call__(self, array):
        return self.once(array, self.move)

    def move(self, array):
        import cupy

        import quern

        bits = bits_of(array)
        moved = cupy.empty(bits.shape, bits.dtype)
        if bits.size:
            extent = 1 + sum((n - 1) * s // bits.itemsize for n, s in zip(bits.shape, bits.strides))
            moved = cupy.lib.stride_tricks.as_strided(cupy.empty(extent, bits.dtype), bits.shape, bits.strides)
            moved[...] = cupy.asarray(np.ascontiguousarray(bits))
        return moved, moved if bits is array else quern.typed(moved, array.dtype.name)

    def back(self):
        for array, moved, _ in self.moved.values():
            bits_of(array)[...] = moved.get()


def run(case, arrays, **options):
    """Runs a case with outputs given, on arrays of a framework; what it wrote is then in the case's own memory."""
    result = case.run(convert=arrays, device=RUN_ON, **options)
    arrays.back()
    return result
