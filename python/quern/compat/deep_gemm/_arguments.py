# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What the functions of this package take, by the names of their parameters: these mean the same in all of them. Names are DeepGEMM's."""
import functools
import inspect
import numbers

import torch

from quern import _check


def _tensor(where, name, value):
    if not isinstance(value, torch.Tensor):
        _check.fail_type(where, name, value, "a tensor")


def _operand(where, name, value):
    """Of FP8: scales_of() looks at the parts."""
    if not isinstance(value, (torch.Tensor, tuple, list)):
        _check.fail_type(where, name, value, f"a tensor and its scales, as ({name}, scales)")


def _written(where, name, value):
    """DeepGEMM allocates no result."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{where}: `{name}` is {'None' if value is None else 'a ' + type(value).__name__}, expected a tensor, which the product is written into")


def _integers(count):
    def check(where, name, value):
        if not isinstance(value, (tuple, list)) or len(value) != count or not all(isinstance(n, numbers.Integral) for n in value):
            _check.fail_type(where, name, value, f"{count} integers")

    return check


def _some_integers(where, name, value):
    if not isinstance(value, (tuple, list)) or not all(isinstance(n, numbers.Integral) for n in value):
        _check.fail_type(where, name, value, "a list of integers")


def _two_or_three(where, name, value):
    _integers(2 if isinstance(value, (tuple, list)) and len(value) == 2 else 3)(where, name, value)


def _tiles(where, name, value):
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        _integers(2)(where, name, value)


def _integer(least, most=2**31 - 1):
    return lambda where, name, value: _check.integer(where, name, value, least, most)


def _extent(where, name, value):
    """A size on the host, or several in a tensor."""
    if not isinstance(value, torch.Tensor):
        _check.integer(where, name, value, -2**63, 2**63 - 1)


def _divisor(where, name, value):
    if not isinstance(value, torch.Tensor):
        _check.integer(where, name, value, 1, 2**63 - 1)


def _text(where, name, value):
    _check.text(where, name, value, "text")


def _path(where, name, value):
    _check.path(where, name, value)


def _words(where, name, value):
    if not isinstance(value, (str, tuple, list)) or not all(isinstance(word, str) for word in value):
        _check.fail_type(where, name, value, "a text or a tuple of texts")


def _bytes_of(where, name, value):
    if value is not None and not isinstance(value, (torch.Tensor, tuple, list)):
        _check.fail_type(where, name, value, "a tensor, tensors in a tuple or list, or None")


def _mappings(count):
    def check(where, name, value):
        if not isinstance(value, (tuple, list)) or len(value) != count or not all(isinstance(t, torch.Tensor) for t in value):
            _check.fail_type(where, name, value, f"{count} tensors")

    return check


def _group(where, name, value):
    if not isinstance(value, torch.distributed.ProcessGroup):
        _check.fail_type(where, name, value, "None or a group of processes")


def _or_none(check):
    return lambda where, name, value: None if value is None else check(where, name, value)


_KINDS = {
    **dict.fromkeys(("a", "b", "x", "y", "sf", "masked_m", "m_indices", "tensor"), _tensor), "d": _written, "c": _or_none(_tensor), "grouped_layout": _or_none(_tensor),
    **dict.fromkeys(("disable_ue8m0_cast", "use_psum_layout", "psum_layout", "ensure_zero_padding", "use_ue8m0", "use_packed_ue8m0", "high_precision", "suppress_kineto_output", "flush_l2",
                     "with_multiple_kernels", "new_enable_pdl", "new_value", "enabled", "once_in_node", "accumulate"), _check.boolean),
    **dict.fromkeys(("expected_m_for_psum_layout", "num_groups"), _or_none(_integer(0))), **dict.fromkeys(("expected_m", "mn", "k", "num_warmups", "local_rank", "new_tc_util"), _integer(0)),
    **dict.fromkeys(("num_tests", "num_local_ranks", "gran_k", "element_size", "new_num_sms"), _integer(1)), "dim": _integer(-64, 63), "mode": _integer(0, 1),
    **dict.fromkeys(("recipe_a", "recipe_b"), _or_none(_integers(2))), "recipe": _or_none(_integers(3)), "dims": _some_integers, "ks_cpu": _or_none(_some_integers),
    **dict.fromkeys(("compiled_dims", "name", "label", "s"), _text), **dict.fromkeys(("library_root_path", "cuda_home_path_by_python"), _path), "trace_path": _or_none(_path),
    **dict.fromkeys(("fn", "condition"), _check.function), "barrier": _or_none(_check.function), "kernel_names": _words, "tensors": _bytes_of, "value": _tiles, "group": _or_none(_group),
    "is_sfa": _or_none(_check.boolean),
}
KINDS = {"operand": _operand, "written": _written, "at least 1": _integer(1), "extent": _extent, "divisor": _divisor, "two or three": _two_or_three, "mappings of rows": _mappings(2), "mappings of k": _mappings(3),
         "expected or not": _or_none(_integer(0))}


def checked(**of):
    """Decorator: arguments are looked at before the function sees them. `of`: parameters that mean something else here than elsewhere, each with its
    name in KINDS. A call costs about 1 us more; bind() of a signature would cost 5."""
    def decorate(function):
        where = "deep_gemm." + function.__name__.replace("fp8_fp4_", "fp8_")
        parameters = inspect.signature(function).parameters.values()
        checks = {p.name: KINDS[of[p.name]] if p.name in of else _KINDS[p.name] for p in parameters}
        names = tuple(checks)
        several = names[-1] if names and any(p.kind == inspect.Parameter.VAR_POSITIONAL for p in parameters) else None

        @functools.wraps(function)
        def call(*arguments, **keywords):
            for i, value in enumerate(arguments):
                if several:
                    checks[several](where, f"{several}[{i}]", value)
                elif i < len(names):
                    checks[names[i]](where, names[i], value)
            for name, value in keywords.items():
                if name in checks:
                    checks[name](where, name, value)
            return function(*arguments, **keywords)

        return call

    return decorate
