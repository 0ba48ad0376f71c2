# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""The command `quern` of the wheel: the program beside the library, `quern plot`, and `quern bench` where it needs Python."""
import os
import sys


def main():
    if sys.argv[1:2] == ["plot"]:
        from .plot import main as plot

        return plot(sys.argv[2:])
    if sys.argv[1:2] == ["bench"] and any(word.split("=")[0] in ("--provider", "--plot") for word in sys.argv[2:]):
        from .bench import main as bench

        return bench()
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "quern")
    os.execv(program, [program, *sys.argv[1:]])
