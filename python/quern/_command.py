# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""The command `quern` of the wheel: the program beside the library, and `quern plot`."""
import os
import sys


def main():
    if sys.argv[1:2] == ["plot"]:
        from .plot import main as plot

        return plot(sys.argv[2:])
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "quern")
    os.execv(program, [program, *sys.argv[1:]])
