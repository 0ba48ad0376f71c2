#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# What is run on a GPU before a change of kernels or kit is done: every op and case, the tests that need a GPU, the sanitizer
# on small cases of each op, compile times, the demo, and the benchmarks whose CSV is committed under bench/results/.
# Usage: record.sh FOLDER_WITH_BINARIES OUT_FOLDER   (quern and the *_test programs, built elsewhere)
set -u
bin="$1" out="$2"
export QN_CACHE_DIR="${QN_CACHE_DIR:-$(mktemp -d)}"
failed=0
step() { echo "== $1"; shift; "$@" || { failed=1; echo "FAILED ($?): $*"; }; }
quiet() { "$@" >"$out/last" 2>&1; local status=$?; grep -vE '^\[ +(RUN|OK)|Skipped|^needs' "$out/last" | tail -"${LINES_SHOWN:-14}"; return $status; }

for t in device jit bench kit ops; do step "$t tests" quiet timeout 200 "$bin/${t}_test" --gtest_brief=1; done
step "every case of every op" quiet timeout 300 "$bin/quern" check all --device cuda --quiet
for op in $("$bin/quern" list --json | python3 -c 'import json,sys; print(*[o["op"] for o in json.load(sys.stdin)])'); do
  for tool in memcheck racecheck; do
    LINES_SHOWN=3 step "$tool $op" quiet timeout 120 compute-sanitizer --tool $tool --error-exitcode 9 \
      "$bin/quern" check "$op" --device cuda --quiet --sample 4 --threads 1
  done
done
step "compile" quiet timeout 280 "$bin/quern" bench --compile --threads "${COMPILE_THREADS:-4}"
step "demo" quiet timeout 100 "$bin/quern" demo
step "benchmarks" quiet timeout 250 "$bin/quern" bench all --device cuda --csv "$out/bench.csv"
step "gemm beside cuBLASLt" quiet timeout 150 "$bin/quern" bench gemm.dense --device cuda --peer cublaslt --csv "$out/gemm_peer.csv"
step "host cost" quiet timeout 100 "$bin/quern" bench all --device cuda --host --csv "$out/host.csv"
rm -f "$out/last"
exit $failed
