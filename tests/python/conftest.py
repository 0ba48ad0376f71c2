# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""The installed package is tested, never the checkout: it has no libraries."""
import os

import pytest

os.environ.setdefault("QN_DEVICE", "emu")


@pytest.fixture
def no_device(monkeypatch):
    monkeypatch.delenv("QN_DEVICE")
