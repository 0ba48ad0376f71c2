# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Wrong arguments of every function of quern.compat.deep_gemm: each parameter of each refuses an object that nobody knows, by its name."""
import inspect
import re

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from products import poisoned, randn  # noqa: E402

import quern.compat.deep_gemm  # noqa: E402

pytestmark = pytest.mark.anywhere


class Thing:
    """An object of which nobody knows anything."""


def public(module, found=None):
    """{full name: function} of a module and those below it."""
    found = {} if found is None else found
    for name, value in vars(module).items():
        if inspect.ismodule(value) and value.__name__.removeprefix("quern.compat.") == f"{module.__name__.removeprefix('quern.compat.')}.{name}" and not name.startswith("_"):
            public(value, found)
        elif callable(value) and not name.startswith("_") and getattr(value, "__module__", "").startswith(("quern.compat.", "deep_gemm.")):
            found[f"{module.__name__.removeprefix('quern.compat.')}.{name}"] = value
    return found


INTERNAL = {"deep_gemm.testing.bench.checked", "deep_gemm.testing.utils.checked", "deep_gemm.testing.numeric.checked", "deep_gemm.utils.math.checked", "deep_gemm.utils.layout.checked",
            "deep_gemm.utils.dist.checked", "deep_gemm.legacy.checked", "deep_gemm.legacy.k_grouped_of_bounds", "deep_gemm.utils.layout.ceil_div", "deep_gemm.testing.utils.arch_major"}


def test_every_parameter_refuses_a_thing():
    functions = {name: f for name, f in public(quern.compat.deep_gemm).items() if name not in INTERNAL and not f.__module__.endswith("._absent")}
    assert len(functions) > 90
    taken = []
    for name, function in functions.items():
        if inspect.isclass(function):
            continue  # contextlib's
        for parameter in inspect.signature(function).parameters.values():
            several = parameter.kind == inspect.Parameter.VAR_POSITIONAL
            try:
                function(Thing()) if several else function(**{parameter.name: Thing()})
            except TypeError as e:
                if not re.match(rf"deep_gemm\.\w+: `{parameter.name}(\[0\])?` is a \S*Thing, expected .+", str(e)):
                    taken.append(f"{name}({parameter.name}): {e}")
            else:
                taken.append(f"{name}({parameter.name})")
    assert not taken


def test_wrong_values():
    dg = quern.compat.deep_gemm
    x, d = randn(16, 64, dtype=torch.bfloat16), poisoned(16, 16, dtype=torch.bfloat16)
    wrong = [
        (TypeError, r"deep_gemm\.bf16_gemm_nt: `a` is None, expected a tensor", lambda: dg.bf16_gemm_nt(None, x, d)),
        (TypeError, r"deep_gemm\.bf16_gemm_nn: `b` is a tuple, expected a tensor", lambda: dg.bf16_gemm_nn(x, (x, x), d)),
        (TypeError, r"deep_gemm\.bf16_gemm_nt: `compiled_dims` is 5 \(int\), expected text", lambda: dg.bf16_gemm_nt(x, x, d, compiled_dims=5)),
        (TypeError, r"deep_gemm\.fp8_gemm_nt: `disable_ue8m0_cast` is 1 \(int\), expected True or False", lambda: dg.fp8_gemm_nt((x, x), (x, x), d, disable_ue8m0_cast=1)),
        (TypeError, r"deep_gemm\.fp8_gemm_nt: `recipe` is \(1, 128\) \(tuple\), expected 3 integers", lambda: dg.fp8_gemm_nt((x, x), (x, x), d, recipe=(1, 128))),
        (TypeError, r"deep_gemm\.m_grouped_bf16_gemm_nt_contiguous: `ensure_zero_padding` is 'no' \(str\), expected True or False", lambda: dg.m_grouped_bf16_gemm_nt_contiguous(x, x, d, x, ensure_zero_padding="no")),
        (ValueError, r"deep_gemm\.set_tc_util: `new_tc_util` is -1, expected 0 to \d+", lambda: dg.set_tc_util(-1)),
        (ValueError, r"deep_gemm\.set_compile_mode: `mode` is 2, expected 0 to 1", lambda: dg.set_compile_mode(2)),
        (ValueError, r"deep_gemm\.ceil_div: `y` is 0, expected 1 to \d+", lambda: dg.ceil_div(3, 0)),
        (TypeError, r"deep_gemm\.count_bytes: `tensors\[1\]` is 3 \(int\), expected a tensor, .*", lambda: dg.testing.count_bytes(x, 3)),
    ]
    for kind, text, call in wrong:
        with pytest.raises(kind) as caught:
            call()
        assert re.fullmatch(text, str(caught.value)), str(caught.value)
    assert d.isnan().all()
