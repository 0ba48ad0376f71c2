# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Operands of FP8: a tensor and its scales, as recipes describe them."""
import re

import torch

from quern.compat.deep_gemm._arguments import KINDS

BLOCK = 128
# quern's names of arguments that callers know by others.
_NAMES = {"out": "d", "scales_a": "a[1]", "scales_b": "b[1]", "group_of_row": "grouped_layout", "group_ends": "grouped_layout", "k_sizes": "grouped_layout"}


def check_written(caller, d):
    """TypeError where d is no tensor: DeepGEMM allocates none."""
    KINDS["written"](f"deep_gemm.{caller}", "d", d)


def write(caller, op, d, **arguments):
    """Calls an op of quern that writes d. Its errors name DeepGEMM's function and arguments."""
    check_written(caller, d)
    try:
        op(**arguments, out=d)
    except (ValueError, TypeError, NotImplementedError) as e:
        text = re.sub("`(" + "|".join(_NAMES) + ")`", lambda name: f"`{_NAMES[name[1]]}`", str(e))
        raise type(e)(f"deep_gemm.{caller}: {text}") from None


def ceil_div(x, y):
    """x / y, rounded up."""
    return -(-x // y)


def gran_n_of(caller, recipe, recipe_a=None, recipe_b=None):
    """Rows of b that share a scale, 1 or 128, or None where no recipe says so. ValueError for two styles or half of one, NotImplementedError for a recipe
    that sm_90a does not have."""
    if recipe is None and recipe_a is None and recipe_b is None:
        return None
    if (recipe_a is None) != (recipe_b is None) or (recipe is None) == (recipe_a is None):
        raise ValueError(f"deep_gemm.{caller}: `recipe` is {recipe}, `recipe_a` {recipe_a} and `recipe_b` {recipe_b}, expected `recipe` alone or the other two")
    gran_m, gran_n, *gran_k = recipe if recipe is not None else (recipe_a[0], recipe_b[0], recipe_a[1], recipe_b[1])
    if gran_m != 1 or gran_n not in (1, BLOCK) or set(gran_k) != {BLOCK}:
        raise NotImplementedError(f"deep_gemm.{caller}: `recipe` is {recipe or (tuple(recipe_a), tuple(recipe_b))}, expected (1, 128, 128) or (1, 1, 128): others are of SM100")
    return gran_n


def scales_of(caller, name, operand, gran):
    """(tensor, scales) of an operand [..., mn, k], looked at. `gran`: rows that share a scale; None: 1 or 128, their shape tells."""
    if not isinstance(operand, (tuple, list)) or len(operand) != 2 or not all(isinstance(t, torch.Tensor) for t in operand):
        raise TypeError(f"deep_gemm.{caller}: `{name}` is a {type(operand).__name__}, expected a tensor and its scales, as ({name}, scales)")
    tensor, scales = operand
    if tensor.dtype == torch.int8:
        raise NotImplementedError(f"deep_gemm.{caller}: `{name}` is int8, expected float8_e4m3fn: packed FP4 needs SM100")
    if scales.dtype != torch.float32:
        raise NotImplementedError(f"deep_gemm.{caller}: scales of `{name}` are {str(scales.dtype)[6:]}, expected float32: packed UE8M0 needs SM100")
    if tensor.dim() > 1 and tensor.stride(-1) != 1 and tensor.size(-1) > 1:
        raise NotImplementedError(f"deep_gemm.{caller}: `{name}` has stride {tensor.stride(-1)} along K, expected 1: FP8 that is MN-major needs SM100")
    *groups, mn, k = tensor.shape
    allowed = [(*groups, ceil_div(mn, g), ceil_div(k, BLOCK)) for g in ((gran,) if gran else (BLOCK, 1))]
    if tuple(scales.shape) not in allowed:
        raise ValueError(f"deep_gemm.{caller}: scales of `{name}` have shape {list(scales.shape)}, expected {' or '.join(str(list(s)) for s in allowed)}")
    return tensor, scales


def transposed(operand):
    """Both parts of an operand with its last two dims exchanged."""
    return tuple(t.mT for t in operand)
