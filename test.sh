#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# Sets itself up and runs everything that needs no GPU. --full: the whole sweep of seeds, cases and archs (hours on two
# cores); without it they are sampled. --with-torch: the Python package is also tested with torch and inside the classes of vLLM and SGLang (a
# download of 2.8 GB, 6 GB on disk). --changed: what passed before in this build folder on the same sources is not run again.
set -euo pipefail
cd "$(dirname "$0")"

full=0
torch=
changed=
for argument in "$@"; do
  case "$argument" in
    --full) full=1 ;;
    --changed) changed=--changed ;;
    --with-torch) torch=--with-torch; export QN_TEST_TORCH=1 ;;
    *) echo "usage: ./test.sh [--full] [--with-torch] [--changed]" >&2; exit 2 ;;
  esac
done

tools/install_dependencies.sh --test
python3 tools/check_layers.py
tools/format.sh --check
export CCACHE_NOHASHDIR=1  # the wheel's build takes what this one compiled
cmake -S . -B build -G Ninja -DQN_BUILD_TESTS=ON >/dev/null
cmake --build build
if [ -z "${QN_JIT_NVRTC:-}" ]; then
  nvrtc="$(tools/install_nvrtc.sh build/quern)"
  [ -z "$nvrtc" ] || export QN_JIT_NVRTC="$nvrtc"
fi
QN_TEST_PYTHON="$(tools/install_python.sh $torch)"
export QN_TEST_PYTHON
if [ -n "$torch" ]; then
  QN_TEST_ENGINES="$(tools/install_engines.sh)"
  export QN_TEST_ENGINES
fi
QN_TEST_NVCC="$(tools/install_nvcc.sh)"
export QN_TEST_NVCC
QN_TEST_FULL=$full python3 tools/run_tests.py $changed build
