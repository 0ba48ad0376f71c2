# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Flags of `vllm serve`: python -m quern.integrations.vllm [--freeze] [LAYER..]"""
import shlex
import sys

from quern.integrations.vllm import flags


def main(words):
    try:
        print(shlex.join(flags(*(w for w in words if w != "--freeze"), freeze="--freeze" in words)))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
