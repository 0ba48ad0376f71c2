#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# Usage: tools/format.sh [--check]. Formats every .h, .cpp and .cuh file of the repository by .clang-format, or says which are not as it would write them. The
# clang-format is that of tools/format-requirements.txt, in a virtual environment of its own (.venv-format): other releases write other lines.
set -euo pipefail
cd "$(dirname "$0")/.."
venv="$PWD/.venv-format"
if ! cmp -s tools/format-requirements.txt "$venv/requirements.txt"; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r tools/format-requirements.txt >&2
  cp tools/format-requirements.txt "$venv/requirements.txt"
fi
files() { find . -mindepth 1 \( -path './build*' -o -path './.*' \) -prune -o -type f \( -name '*.h' -o -name '*.cpp' -o -name '*.cuh' \) -print0; }
case "${1:-}" in
  --check) files | xargs -0 -n 100 -P 2 "$venv/bin/clang-format" --dry-run -Werror || { echo "format: run tools/format.sh" >&2; exit 1; } ;;
  # A second time, as a comment that was broken may fit otherwise then.
  "") for _ in 1 2 3; do files | xargs -0 -n 100 -P 2 "$venv/bin/clang-format" -i; done ;;
  *) echo "usage: tools/format.sh [--check]" >&2; exit 2 ;;
esac
[ -z "${1:-}" ] || echo "format: ok"
