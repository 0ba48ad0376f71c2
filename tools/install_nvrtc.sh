#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# Prints the path of an NVRTC for QN_JIT_NVRTC, or nothing when `quern doctor` finds a usable one by itself. Where there is
# none it installs the pinned wheel, checked by its hash, into a virtual environment of its own (.venv-nvrtc).
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
quern="${1:?usage: install_nvrtc.sh PATH_OF_QUERN}"

"$quern" doctor --has-nvrtc >/dev/null 2>&1 && exit 0
venv="$root/.venv-nvrtc"
library() { find "$venv" -name 'libnvrtc.so.13' 2>/dev/null | head -1; }
if [ -z "$(library)" ]; then
  echo "installing nvidia-cuda-nvrtc 13.0.88 into $venv" >&2
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --require-hashes -r "$root/tools/nvrtc-requirements.txt" >&2
fi
library
