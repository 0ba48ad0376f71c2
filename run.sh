#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# Installs what is needed, builds quern and runs its demo: one decode step of a Llama-3.1-8B decoder layer, on a CUDA GPU when
# there is one, else on the emulated device; then a tiny language model with random weights. Arguments go to `quern demo`, which then
# runs alone.
set -euo pipefail
cd "$(dirname "$0")"

tools/install_dependencies.sh
cmake -S . -B build -G Ninja -DQN_BUILD_TESTS=OFF >/dev/null
echo "building"
cmake --build build
if [ -z "${QN_JIT_NVRTC:-}" ] && { [ -e /dev/nvidia0 ] || ldconfig -p | grep -q libcuda.so.1; }; then
  nvrtc="$(tools/install_nvrtc.sh build/quern)"
  [ -z "$nvrtc" ] || export QN_JIT_NVRTC="$nvrtc"
fi
build/quern demo "$@"
if [ $# -eq 0 ]; then
  echo
  build/quern generate --random examples/engine/configs/tiny-llama.json --ids 1,2,3 --random-prompts 20 --max-new 8
fi
