# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What programs of DeepGEMM measure and compare with."""
from . import numeric, utils  # noqa: F401
from .bench import bench, bench_kineto, empty_suppress, suppress_stdout_stderr  # noqa: F401
from .numeric import assert_bitwise_equal, calc_diff, count_bytes  # noqa: F401
from .utils import get_arch_major, ignore_env, test_filter  # noqa: F401
