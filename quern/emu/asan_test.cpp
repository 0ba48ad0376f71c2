// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Asan finds each planted fault with every compiler and says nothing of correct kernels; without it the same faults go
// unseen or end as a crash that is a report.
#include <gmock/gmock.h>

#include "quern/emu/planted_asan.h"
#include "quern/emu/planted_run.h"

namespace quern::emu {
namespace {

using planted::kind_of;
using planted::Mutation;
using planted::run;
using planted::Sample;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr AsyncPolicy kAsync[] = {AsyncPolicy::eager, AsyncPolicy::lazy, AsyncPolicy::random};

EmulatedOptions asan_options(AsyncPolicy async = AsyncPolicy::eager, int os_threads = 1) {
  EmulatedOptions options;
  options.async = async;
  options.asan = true;
  options.os_threads = os_threads;
  return options;
}

class Asan : public ::testing::TestWithParam<std::string> {
 protected:
  std::string build(const Sample& sample, const std::string& body, const jit::HostMode& mode = {.asan = true}) const {
    return conform::build_emulated(folder_, planted::text_of(sample, body), GetParam(), mode);
  }
  /// Line of the sample's file that holds `part`.
  static i64 line_of(const Sample& sample, const std::string& body, const std::string& part) {
    const std::string text = planted::text_of(sample, body);
    return 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(text.find(part)), '\n');
  }
  const conform::Folder folder_;
};
INSTANTIATE_TEST_SUITE_P(Compilers, Asan, ::testing::ValuesIn(conform::host_compilers()),
                         [](const auto& info) { return info.param[0] == 'g' ? "gcc" : "clang"; });

TEST_P(Asan, correct_kernels_are_not_reported) {
  for (const auto* samples : {&planted::samples(), &planted::asan_samples()})
    for (const Sample& sample : *samples) {
      const conform::Folder folder;
      const std::string path = conform::build_emulated(folder, planted::text_of(sample, sample.body), GetParam(), {.asan = true});
      for (const AsyncPolicy async : kAsync)
        for (const int os_threads : {1, 3}) EXPECT_EQ(run(path, sample, asan_options(async, os_threads)), "") << sample.name;
    }
}

TEST_P(Asan, every_fault_is_reported_with_thread_and_line) {
  for (const Sample& sample : planted::asan_samples())
    for (const Mutation& mutation : sample.mutations) {
      const std::string body = planted::mutated(sample, mutation), path = build(sample, body);
      for (const AsyncPolicy async : kAsync) {
        const std::string report = run(path, sample, asan_options(async));
        EXPECT_THAT(mutation.kinds, Contains(kind_of(report))) << sample.name << ": " << mutation.name << ", reported: " << report;
        EXPECT_THAT(report, ::testing::ContainsRegex("^[-A-Z]+ block \\([01],0,0\\) thread [0-9]+ .*kernel\\.cu:[0-9]+"))
            << sample.name << ": " << mutation.name;
      }
    }
}

/// What only this mode finds: neither the emulator alone nor checked mode says anything of local variables and arithmetic.
TEST_P(Asan, the_same_faults_are_not_seen_without_it) {
  int unseen = 0;
  for (const Sample& sample : planted::asan_samples())
    for (const Mutation& mutation : sample.mutations) {
      const std::string body = planted::mutated(sample, mutation);
      for (const bool checked : {false, true}) {
        EmulatedOptions options;
        options.checked = checked;
        const std::string report = run(build(sample, body, {.checked = checked}), sample, options);
        unseen += report.empty();
        if (mutation.kinds[0] == "UNDEFINED" || mutation.kinds[0] == "LOCAL-OOB" || mutation.kinds[0] == "INDEX-OOB")
          EXPECT_THAT(report, ::testing::AnyOf("", HasSubstr("division by zero"))) << mutation.name;
        if (!checked) EXPECT_THAT(kind_of(report), ::testing::AnyOf("", "FAULT", "SMEM-OOB")) << mutation.name;
      }
    }
  EXPECT_GE(unseen, 40);
}

TEST_P(Asan, reports_say_what_and_where) {
  const auto report_of = [&](size_t sample, const char* name) {
    const Sample& s = planted::asan_samples()[sample];
    for (const Mutation& m : s.mutations)
      if (m.name == std::string(name)) return run(build(s, planted::mutated(s, m)), s, asan_options());
    ADD_FAILURE() << "no fault " << name;
    return std::string();
  };
  const auto at = [&](size_t sample, const char* part) {
    const Sample& s = planted::asan_samples()[sample];
    return "kernel.cu:" + std::to_string(line_of(s, s.body, part));
  };
  std::string report = report_of(0, "local array read past its end");
  EXPECT_THAT(report, HasSubstr("load of 4 bytes 0 bytes past the end of 'held' (32 bytes)"));
  EXPECT_THAT(report, HasSubstr(at(0, "sum += taken[i]")));
  report = report_of(0, "a variable used after its scope");
  EXPECT_THAT(report, HasSubstr("whose scope has ended"));
  report = report_of(0, "index past a local array");
  EXPECT_THAT(report, HasSubstr("index 4 of an array of type"));
  EXPECT_THAT(report, HasSubstr(at(0, "sum += from[")));
  report = report_of(1, "shift by the width");
  EXPECT_THAT(report, HasSubstr("shift of 32-bit type 'int' by 32 places"));
  EXPECT_THAT(report, HasSubstr(at(1, "1 << (n / 4)")));
  EXPECT_THAT(report_of(1, "shift by a negative number"), HasSubstr("shift by -4 places, a negative number"));
  EXPECT_THAT(report_of(1, "overflow of a product"), HasSubstr("overflow: 64 * 34000000 cannot be represented in type 'int'"));
  EXPECT_THAT(report_of(1, "float too large for an integer"), HasSubstr("2.2e+09 is outside the range of type 'int'"));
  EXPECT_THAT(report_of(1, "a bool that is neither"), HasSubstr("load of 63, which is no value of type 'bool'"));
  EXPECT_THAT(report_of(2, "null pointer"), HasSubstr("through a null pointer"));
  EXPECT_THAT(report_of(2, "pointer that is no multiple of its type"), HasSubstr("which is no multiple of 4"));
  EXPECT_THAT(report_of(2, "vector load past the row"), HasSubstr("of 'in' f32 [2, 64]"));
}

/// Overflows do no damage: the launch goes on and finds the others.
TEST_P(Asan, several_faults_of_one_launch_are_reported) {
  const Sample& sample = planted::asan_samples()[1];
  std::string body = sample.body;
  for (const int i : {0, 2, 6}) {
    const Mutation& m = sample.mutations[size_t(i)];
    body.replace(body.find(m.from), std::string(m.from).size(), m.to);
  }
  const std::string report = run(build(sample, body), sample, asan_options());
  EXPECT_EQ(std::count(report.begin(), report.end(), '\n'), 2) << report;
}

/// A stopped launch leaves marks on stacks, which the next one on the same stacks must not meet.
TEST_P(Asan, a_launch_after_a_fault_is_clean) {
  const Sample& sample = planted::asan_samples()[0];
  const std::string good = build(sample, sample.body);
  const conform::Folder folder;
  const std::string bad =
      conform::build_emulated(folder, planted::text_of(sample, planted::mutated(sample, sample.mutations[0])), GetParam(), {.asan = true});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(kind_of(run(bad, sample, asan_options())), "LOCAL-OOB");
    EXPECT_EQ(run(good, sample, asan_options()), "");
  }
}

// ---- what is refused ------------------------------------------------------------------------------------------------

TEST_P(Asan, an_object_whose_instrumentation_does_not_reach_us_is_refused) {
  const Sample& sample = planted::samples()[0];
  const auto device = make_emulated_device(DeviceInfo{}, asan_options());
  const auto refusal = [&](const std::string& path) {
    try {
      device->unload(device->load(ImageKind::shared_object, {}, path, "planted", 0));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(build(sample, sample.body)), "");
  EXPECT_THAT(refusal(build(sample, sample.body, {})), HasSubstr("lacks quern_asan_canary"));
  EXPECT_THAT(refusal(build(sample, sample.body, {.checked = true})), HasSubstr("lacks quern_asan_canary"));
  // The hooks without what calls them: each part of the instrumentation left out in turn.
  const auto without = [&](const std::vector<std::string>& extra) {
    const std::string stem = (folder_.path / "less").string();
    std::ofstream(stem + ".cu") << planted::text_of(sample, sample.body);
    std::vector<std::string> compile = {GetParam()};
    for (const std::string& option : jit::HostCompiler::options(GetParam() != "g++", {.asan = true})) compile.push_back(option);
    compile.insert(compile.end(), extra.begin(), extra.end());
    compile.insert(compile.end(), {"-I" + (folder_.path / "source").string(), "-x", "c++", "-c", stem + ".cu", "-o", stem + ".o"});
    const std::vector<std::string> link = {GetParam(), "-shared", "-Wl,--wrap=memcpy,--wrap=memset,--wrap=memmove", stem + ".o", "-o", stem + ".so"};
    for (const auto& command : {compile, link}) {
      const ProcessResult result = run_process(command);
      EXPECT_EQ(result.status, 0) << result.output;
    }
    return refusal(stem + ".so");
  };
  const std::string address = GetParam() == "g++" ? "kernel-address" : "address";
  EXPECT_THAT(without({"-fno-sanitize=" + address}), HasSubstr("a local array's overrun was not reported"));
  EXPECT_THAT(without({"-fno-sanitize=undefined"}), HasSubstr("a shift too far was not reported"));
  EXPECT_THAT(without({"-fno-sanitize=float-cast-overflow"}), HasSubstr("a conversion out of range was not reported"));
  if (GetParam() == "g++")
    EXPECT_THAT(without({"--param=asan-stack=0"}), HasSubstr("a local array's overrun was not reported"));
}

TEST(asan, does_not_go_together_with_checked) {
  EmulatedOptions options = asan_options();
  options.checked = true;
  try {
    make_emulated_device(DeviceInfo{}, options);
    FAIL() << "made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::value);
    EXPECT_THAT(error.what(), HasSubstr("`asan` is asked for together with checked"));
  }
}

}  // namespace
}  // namespace quern::emu
