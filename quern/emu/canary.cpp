// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Instrumentation that does not reach our functions (a flag dropped, a compiler that calls others) would find nothing,
// silently. So an asan module is trusted only after it has made a few faults and each was reported.
#include "quern/base/error.h"
#include "quern/emu/launch.h"
#include "quern/emu/memory_map.h"
#include "quern/emu/module.h"

namespace quern::emu {

void require_asan_reports(void (*canary)(const void* params), const std::string& path) {
  using Fault = AsanCanary::Fault;
  struct Expected {
    Fault fault;
    const char* name;
    bool reported;
    ReportKind kind;
  };
  constexpr Expected kAll[] = {
      {Fault::none, "nothing", false, {}},
      {Fault::local, "a local array's overrun", true, ReportKind::local_oob},
      {Fault::global, "a store outside the call's memory", true, ReportKind::global_oob},
      {Fault::fill, "a memset there", true, ReportKind::global_oob},
      {Fault::shared, "a store past shared memory", true, ReportKind::smem_oob},
      {Fault::shift, "a shift too far", true, ReportKind::undefined},
      {Fault::float_cast, "a conversion out of range", true, ReportKind::undefined},
  };
  MemoryMap nothing({}, "canary", false);
  for (const Expected& expected : kAll) {
    u32 outside = 0;
    const AsanCanary params{expected.fault, &outside};
    LaunchRequest request;
    request.entry = canary;
    request.params = &params;
    request.smem = 16;
    request.options.asan = true;
    request.options.os_threads = 1;
    request.memory = &nothing;
    const std::vector<Report> reports = run_launch(request);
    const bool right = expected.reported ? reports.size() == 1 && reports[0].kind == expected.kind : reports.empty();
    if (!right)
      throw Error(ErrorKind::internal, "emulated device: " + path + ": of the canary's faults, " + expected.name + " was " +
                                           (reports.empty() ? "not reported" : "reported as " + describe(reports)));
  }
}

}  // namespace quern::emu
