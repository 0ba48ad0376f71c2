#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# Builds the wheel, installs it and what its tests need into .venv-python and prints that Python's path. --with-torch: torch as
# well (some GB).
set -euo pipefail
cd "$(dirname "$0")/.."

wheel="$(tools/build_wheel.sh)"
venv="$PWD/.venv-python"
if ! cmp -s tools/python-requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r tools/python-requirements.txt >&2
  cp tools/python-requirements.txt "$venv/requirements.txt"
fi
if [ "${1:-}" = --with-torch ] && ! cmp -s tools/torch-requirements.txt "$venv/torch-requirements.txt"; then
  "$venv/bin/pip" install -q -r tools/torch-requirements.txt >&2
  cp tools/torch-requirements.txt "$venv/torch-requirements.txt"
fi
"$venv/bin/pip" install -q --force-reinstall --no-deps "$wheel" >&2
"$venv/bin/pip" check -q >&2
echo "$venv/bin/python"
