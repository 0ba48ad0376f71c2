#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# Installs the engines whose Python classes the tests of quern.integrations call into .venv-engines and prints that Python's path. It is behind
# .venv-python, which tools/install_python.sh --with-torch made: quern and torch are those. The engines ask for another build of torch, so nothing is
# installed but what tools/engines-requirements.txt lists (1 GB on disk).
set -euo pipefail
cd "$(dirname "$0")/.."

venv="$PWD/.venv-engines"
if ! cmp -s tools/engines-requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --no-deps -r tools/engines-requirements.txt >&2
  site='import sysconfig; print(sysconfig.get_path("purelib"))'
  .venv-python/bin/python -c "$site" >"$("$venv/bin/python" -c "$site")/beside.pth"
  cp tools/engines-requirements.txt "$venv/requirements.txt"
fi
"$venv/bin/python" -c 'import quern, torch' >&2
echo "$venv/bin/python"
