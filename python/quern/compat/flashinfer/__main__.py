# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Prints the table of names in docs/flashinfer.md."""
from quern.compat.flashinfer._names import tables

if __name__ == "__main__":
    print(tables(), end="")
