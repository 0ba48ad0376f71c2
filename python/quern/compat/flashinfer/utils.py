# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Words and small functions that programs import from flashinfer.utils."""
import enum

from quern import _check
from quern.compat.flashinfer._base import refusing_class, torch
from quern.compat.flashinfer._names import _FP4


class PosEncodingMode(enum.Enum):
    """How attention encodes positions: FlashInfer's numbers."""
    NONE = 0
    ROPE_LLAMA = 1
    ALIBI = 2


class MaskMode(enum.Enum):
    """Which keys a query sees: FlashInfer's numbers."""
    NON_CAUSAL = 0
    CAUSAL = 1
    CUSTOM = 2
    MULTIITEMSCORING = 3


class TensorLayout(enum.Enum):
    """The order of dims of keys and values: FlashInfer's numbers."""
    NHD = 0
    HND = 1


FP4Tensor = refusing_class("utils.FP4Tensor", _FP4)


def next_positive_power_of_2(x):
    """The least power of two that is not below x; 1 for x below 1."""
    x = _check.integer("flashinfer.next_positive_power_of_2", "x", x, -2**63, 2**63 - 1)
    return 1 if x < 1 else 1 << (x - 1).bit_length()


def get_compute_capability(device):
    """(major, minor) of a GPU; (9, 0) where that is emulated."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_capability(device)
    return 9, 0


def is_sm90a_supported(device):
    """Whether the device is of sm_90, or emulated."""
    return get_compute_capability(device)[0] == 9


def is_sm100a_supported(device):
    """False: what asks would take kernels for that GPU, and there are none."""
    return False


is_sm110a_supported = is_sm120a_supported = is_sm121a_supported = is_sm100a_supported
