#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# Builds the Python wheel into build-wheel/wheels and prints its path. TVM-FFI is not in it: pip installs it beside.
set -euo pipefail
cd "$(dirname "$0")/.."

# One name of the compiler: ccache then serves what the build of the library compiled.
export CC="${CC:-cc}" CXX="${CXX:-c++}"  # the names that CMake takes by itself
venv=.venv-wheel
if ! cmp -s tools/wheel-requirements.txt "$venv/requirements.txt"; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r tools/wheel-requirements.txt >&2
  cp tools/wheel-requirements.txt "$venv/requirements.txt"
fi
PATH="$PWD/$venv/bin:$PATH"
rm -rf build-wheel/unrepaired build-wheel/wheels
pip wheel -q --no-deps --no-build-isolation -w build-wheel/unrepaired . >&2
auditwheel repair --exclude libtvm_ffi.so --exclude libquern.so.0 -w build-wheel/wheels build-wheel/unrepaired/*.whl >build-wheel/auditwheel.log 2>&1 ||
  { cat build-wheel/auditwheel.log >&2; exit 1; }
ls -d "$PWD"/build-wheel/wheels/*.whl
