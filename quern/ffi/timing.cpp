// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Times of callers' own calls on a device, for quern.testing.
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "quern/bench/time_call.h"
#include "quern/ffi/error.h"

namespace quern::ffi {

namespace {

using tvm::ffi::Array;
using tvm::ffi::Function;
using tvm::ffi::String;

/// Calls in turns of one run, [{"median_us", "p10_us", "p90_us", "min_us", "runs", "timer"}, ..]. `stream` is the handle of the one on
/// which they work.
String time_calls(const Array<Function>& calls, bool cold, double budget_ms, const String& on, int64_t stream) {
  return translated([&] {
    Device& device = device_from_name(on);
    bench::TimingOptions options{.cold = cold, .budget_ms = budget_ms};
    options.stream.handle = reinterpret_cast<void*>(stream);
    std::vector<std::unique_ptr<bench::CallTimer>> timers;
    for (const Function& call : calls) timers.push_back(std::make_unique<bench::CallTimer>(device, [call](int) { call(); }, options));
    std::vector<int> left;
    for (const auto& timer : timers) left.push_back(timer->affordable());
    for (bool any = true; any;) {
      any = false;
      for (size_t i = 0; i < timers.size(); ++i) {
        if (left[i] <= 0) continue;
        timers[i]->run(1);
        any |= --left[i] > 0;
      }
    }
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& timer : timers) {
      const bench::Timing t = timer->timing();
      list.push_back({{"median_us", t.median_us},
                      {"p10_us", t.p10_us},
                      {"p90_us", t.p90_us},
                      {"min_us", t.min_us},
                      {"runs", t.runs},
                      {"timer", t.timer}});
    }
    return String(list.dump());
  });
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(time_calls, time_calls)

}  // namespace quern::ffi
