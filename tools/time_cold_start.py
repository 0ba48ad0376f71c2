#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Times a process that runs one op whose kernel is cached, from exec to its end, the check of the result included.

Usage: time_cold_start.py QUERN OP [word...] [--device D]    e.g. build/quern norm.rms_norm tokens=4 hidden=4096"""
import statistics
import subprocess
import sys
import time

RUNS = 21

if len(sys.argv) < 3:
    sys.exit(__doc__)
command = [sys.argv[1], "run", *sys.argv[2:]]


def seconds():
    begin = time.perf_counter()
    result = subprocess.run(command, capture_output=True, text=True)
    took = time.perf_counter() - begin
    if result.returncode != 0:
        sys.exit(result.stdout + result.stderr)
    return took


first = seconds()
times = sorted(seconds() for _ in range(RUNS))
print(f"{' '.join(command[1:])}: first process {first * 1e3:.0f} ms, then median {statistics.median(times) * 1e3:.1f} ms, "
      f"fastest {times[0] * 1e3:.1f} ms, slowest {times[-1] * 1e3:.1f} ms of {RUNS}")
