# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""The installed package is tested, never the checkout: it has no libraries.

Tests run on the emulated device. With QN_DEVICE=cuda those marked `anywhere` run on a GPU instead, and those marked `gpu` run at all."""
import contextlib
import importlib.util
import os

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
