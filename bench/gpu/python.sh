#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# The Python package on a GPU: all of tests/python with torch, CuPy and JAX as they are installed there, then what a call costs the
# host. Needs no network: FOLDER_WITH_WHEELS holds the wheel that tools/build_wheel.sh made, apache-tvm-ffi for that machine's Python,
# jax-tvm-ffi, and whatever else is missing there.
# Usage: python.sh FOLDER_WITH_WHEELS OUT_FOLDER   (PYTHON: the Python that has torch, else python3)
set -u
root="$(cd "$(dirname "$0")/../.." && pwd)"
wheels="$(cd "$1" && pwd)" out="$(mkdir -p "$2" && cd "$2" && pwd)" python="${PYTHON:-python3}"
site="$(mktemp -d)"
"$python" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$site" "$wheels"/*.whl || exit
# The command of the wheel stands beside the Python that the tests call.
export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}" PATH="$site/bin:$PATH" QN_DEVICE="${QN_DEVICE:-cuda}" QN_CACHE_DIR="${QN_CACHE_DIR:-$(mktemp -d)}" PYTHONUNBUFFERED=1
failed=0
step() { echo "== $1"; shift; "$@" || { echo "FAILED ($?): $*"; failed=1; }; }

"$python" - <<'END'
import importlib, importlib.metadata as m, platform
print("python", platform.python_version())
for name in ("quern", "apache-tvm-ffi", "jax-tvm-ffi", "torch", "cupy-cuda13x", "jax", "numpy", "ml_dtypes", "pytest"):
    try:
        print(name, m.version(name))
    except m.PackageNotFoundError:
        print(name, "is not there")
END
step "GPU" timeout 300 "$python" -m pytest -q -p no:cacheprovider --durations=8 -m "gpu or anywhere" --junitxml "$out/gpu.xml" "$root/tests/python"
step "host arrays" timeout 250 "$python" -m pytest -q -p no:cacheprovider --durations=8 -m "not gpu and not anywhere" --junitxml "$out/host.xml" "$root/tests/python"
step "host cost" timeout 200 "$python" "$root/bench/gpu/python_host.py" --csv "$out/python_host.csv"
exit $failed
