// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Prints what a cached call of each op costs the host before the launch.
#include <benchmark/benchmark.h>

#include "quern/bench/null_call.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const auto& [id, op] : quern::registry()) {
    benchmark::RegisterBenchmark(id.c_str(), [op = op](benchmark::State& state) {
      quern::bench::NullCall call(*op);
      for (auto _ : state) call();
      state.SetLabel(quern::testing::case_text(*op, call.which()));
    });
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
