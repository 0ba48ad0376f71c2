// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Textual changes that break a kernel of an op, a brick or a part of the kit, each with a case of an op on which checked mode or asan must
// report it. They stand beside the kernels, as planted_faults.cpp of the folder: an object of Checked or Asan lists them, and
// tests/planted_faults_test.cpp plants each of all those that are linked in.
#pragma once
#include <string>
#include <vector>

namespace quern::planted {

/// What stands for a kind of report where only the comparison with the reference can tell.
inline const char* const kWrongResult = "wrong result";

struct Fault {
  const char* name;
  const char* from;  ///< occurs once in the file
  const char* to;
  std::vector<std::string> kinds;  ///< any of these reports is right
};
/// Faults of one source, shown on one case.
struct FaultyCase {
  const char* file;  ///< below quern/
  const char* op;    ///< checked with the first values of the parameters that `words` leaves out
  const char*
      words;  ///< of `quern check`; pdl=true shows a missing wait for the launch before, which no result of an emulated stream shows
  std::vector<Fault> faults;
  int sms = 0;  ///< of the emulated device, where that decides the plan, or how many tiles a block makes
};

/// All that are linked in, in no order.
inline std::vector<FaultyCase>& checked_faults() {
  static std::vector<FaultyCase> all;
  return all;
}
inline std::vector<FaultyCase>& asan_faults() {
  static std::vector<FaultyCase> all;
  return all;
}

/// Faults that checked mode must report.
struct Checked {
  explicit Checked(const std::vector<FaultyCase>& some) { checked_faults().insert(checked_faults().end(), some.begin(), some.end()); }
};
/// Faults that asan must report.
struct Asan {
  explicit Asan(const std::vector<FaultyCase>& some) { asan_faults().insert(asan_faults().end(), some.begin(), some.end()); }
};

}  // namespace quern::planted
