# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""The installed package is tested, never the checkout: it has no libraries.

Tests run on the emulated device. With QN_DEVICE=cuda those marked `anywhere` run on a GPU instead, and those marked `gpu` run at all."""
import contextlib
import importlib
import importlib.util
import os
import sys

import pytest

os.environ.setdefault("QN_DEVICE", "emu")
# Where JAX finds a GPU it takes most of its memory, unless told.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def pytest_configure(config):
    config.addinivalue_line("markers", "anywhere: runs where QN_DEVICE says, on arrays that lie there")
    config.addinivalue_line("markers", "gpu: needs a GPU, that is QN_DEVICE=cuda")


@pytest.fixture(autouse=True)
def place(request, monkeypatch):
    import places

    on_host = contextlib.nullcontext()
    if request.node.get_closest_marker("gpu"):
        if not places.ON_GPU:
            pytest.skip("needs a GPU")
    elif places.ON_GPU and not request.node.get_closest_marker("anywhere"):
        monkeypatch.setenv("QN_DEVICE", "emu")
        if importlib.util.find_spec("jax"):
            import jax

            on_host = jax.default_device(jax.devices("cpu")[0])
    with on_host:
        yield


@pytest.fixture
def no_device(monkeypatch, place):
    monkeypatch.delenv("QN_DEVICE")


@pytest.fixture
def dg(monkeypatch):
    """What a program gets that says `import deep_gemm`."""
    import quern.compat.deep_gemm

    monkeypatch.setitem(sys.modules, "deep_gemm", quern.compat.deep_gemm)
    module = importlib.import_module("deep_gemm")
    yield module
    module.set_num_sms(quern.compat.deep_gemm._settings._all_sms())
    module.set_tc_util(100)
    module.set_pdl(False)
    module.set_mk_alignment_for_contiguous_layout(128)
    for name in [n for n in sys.modules if n.startswith("deep_gemm.")]:
        del sys.modules[name]


@pytest.fixture
def fi():
    """What a program gets that says `import flashinfer` after install()."""
    import quern.compat.flashinfer

    quern.compat.flashinfer.install()
    yield importlib.import_module("flashinfer")
    for name in [n for n in sys.modules if n == "flashinfer" or n.startswith("flashinfer.")]:
        del sys.modules[name]
