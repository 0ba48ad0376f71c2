# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Casts, and the layouts of scales."""
from . import layout, math  # noqa: F401
from .layout import *  # noqa: F401, F403
from .math import *  # noqa: F401, F403
