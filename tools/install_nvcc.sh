#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# Prints the path of an nvcc: the one on PATH or of /usr/local/cuda, else that of the pinned wheels, checked by their hashes,
# in a virtual environment of its own (.venv-nvcc). Only tests need it.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
command -v nvcc && exit 0
[ -x /usr/local/cuda/bin/nvcc ] && echo /usr/local/cuda/bin/nvcc && exit 0
venv="$root/.venv-nvcc"
nvcc() { find "$venv" -name nvcc -type f 2>/dev/null | head -1; }
if [ -z "$(nvcc)" ]; then
  echo "installing nvidia-cuda-nvcc 13.0.88 into $venv" >&2
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --no-deps --require-hashes -r "$root/tools/nvcc-requirements.txt" >&2
fi
nvcc
