# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Casts, the layouts of scales, and several processes."""
from . import dist, layout, math  # noqa: F401
from .dist import init_dist, uneven_all_gather  # noqa: F401
from .layout import *  # noqa: F401, F403
from .math import *  # noqa: F401, F403
