#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
#
# What is run on a GPU before a change of kernels or kit is done: every op and case, the tests that need a GPU, the sanitizer
# on a case of each kernel, compile times, the demo, and the benchmarks whose CSV is committed under bench/results/.
# Usage: record.sh FOLDER_WITH_BINARIES OUT_FOLDER [COMMIT]   (quern and the *_test programs, built elsewhere, at that commit;
# without it the one that is checked out)
set -u
bin="$1" out="$2" commit="${3:-$(git -C "$(dirname "$0")" rev-parse --short HEAD)}"
export QN_CACHE_DIR="${QN_CACHE_DIR:-$(mktemp -d)}"
failed=0
step() { echo "== $1"; shift; "$@" || { echo "FAILED ($?): $*"; failed=1; }; }
quiet() { "$@" >"$out/last" 2>&1; local status=$?; grep -vE '^\[ +(RUN|OK)|Skipped|^needs' "$out/last" | tail -"${LINES_SHOWN:-14}"; return $status; }

# Each conformance test in a process of its own, as a fault ends the context: what the H200 column of docs/proof/conformance.md says.
conform() {
  local failed=0 name result
  local names="$("$bin/kit_test" --gtest_list_tests --gtest_filter="${CONFORM_FILTER:-*/cuda*}" | awk '/^[^ ]/ {suite = $1} /^ / {print suite $1}')"
  [ -n "$names" ] || { echo "no conformance test is for this machine's GPU"; return 1; }
  echo test,result,commit >"$out/conform.csv"
  for name in $names; do
    result=passed
    timeout 100 "$bin/kit_test" --gtest_filter="$name" >"$out/one" 2>&1 || { result=failed failed=1; echo "$name:"; tail -4 "$out/one"; }
    grep -q SKIPPED "$out/one" && result=skipped
    echo "$name,$result,$commit" >>"$out/conform.csv"
  done
  rm -f "$out/one"
  return $failed
}
step "conformance" quiet conform
step "kit tests" quiet timeout 200 "$bin/kit_test" --gtest_brief=1 --gtest_filter='-Worlds/*'
for t in device jit bench ops; do step "$t tests" quiet timeout 200 "$bin/${t}_test" --gtest_brief=1; done
step "every case of every op" quiet timeout 300 "$bin/quern" check all --device cuda --quiet
# One case for each kernel; the ops of a tool at once, as the sanitizer keeps one CPU busy and the GPU idle.
sanitize() {
  local failed=0 op
  for op in $("$bin/quern" list --json | python3 -c 'import json,sys; print(*[o["op"] for o in json.load(sys.stdin)])'); do
    timeout 280 compute-sanitizer --tool "$1" --error-exitcode 9 "$bin/quern" check "$op" --device cuda --quiet \
      --each-kernel --threads 1 >"$out/$1.$op" 2>&1 &
  done
  for job in $(jobs -p); do wait "$job" || failed=1; done
  for log in "$out/$1".*; do echo "${log##*/}:"; grep -E "ERROR|WRONG|right|^[a-z_]+\.[a-z_]+ |SUMMARY" "$log"; rm "$log"; done
  return $failed
}
for tool in memcheck racecheck; do LINES_SHOWN=40 step "$tool" quiet sanitize $tool; done
step "compile" quiet timeout 280 "$bin/quern" bench --compile --threads "${COMPILE_THREADS:-4}"
step "demo" quiet timeout 100 "$bin/quern" demo
step "benchmarks" quiet timeout 250 "$bin/quern" bench all --device cuda --csv "$out/bench.csv"
step "gemm beside cuBLASLt" quiet timeout 150 "$bin/quern" bench gemm.dense --device cuda --peer cublaslt --csv "$out/gemm_peer.csv"
step "decoder layer" quiet timeout 250 "$bin/quern" bench layer --device cuda --csv "$out/layer.csv"
step "host cost" quiet timeout 100 "$bin/quern" bench all --device cuda --host --csv "$out/host.csv"
rm -f "$out/last"
exit $failed
