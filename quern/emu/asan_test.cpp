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

/// With each of its mutations.
planted::Bodies bodies_of(const Sample& sample) {
  return {sample, [](const Mutation&) { return true; }};
}
/// What the checked mode's samples do outside memory.
planted::Bodies outside_of(const Sample& sample) {
  return {sample, [](const Mutation& mutation) {
            const std::string& kind = mutation.kinds[0];
            return mutation.kinds.size() == 1 && (kind == "GLOBAL-OOB" || kind == "SMEM-OOB" || kind == "WRITE-TO-INPUT");
          }};
}

class Asan : public ::testing::TestWithParam<std::string> {
 protected:
  std::string build(const std::string& text, const jit::HostMode& mode = {.asan = true}) const {
    return planted::object_of(text, GetParam(), mode);
  }
  const conform::Folder folder_;
};
INSTANTIATE_TEST_SUITE_P(Compilers, Asan, ::testing::ValuesIn(conform::host_compilers()),
                         [](const auto& info) { return info.param[0] == 'g' ? "gcc" : "clang"; });

TEST_P(Asan, correct_kernels_are_not_reported) {
  for (const Sample* sample : planted::all_samples()) {
    const std::string path = build(outside_of(*sample).text());
    for (const AsyncPolicy async : kAsync)
      for (const int os_threads : {1, 3}) EXPECT_EQ(run(path, *sample, asan_options(async, os_threads)), "") << sample->name;
  }
}

/// Copies, clusters and warpgroups are judged by the same bounds.
TEST_P(Asan, an_access_outside_is_reported_as_checked_mode_does) {
  size_t found = 0;
  for (const Sample* sample : planted::all_samples()) {
    const planted::Bodies bodies = outside_of(*sample);
    found += bodies.mutations.size();
    for (size_t i = 0; i < bodies.mutations.size(); ++i)
      for (const AsyncPolicy async : kAsync)
        EXPECT_EQ(kind_of(run(build(bodies.text()), *sample, asan_options(async), int(i + 1))), bodies.mutations[i]->kinds[0])
            << sample->name << ": " << bodies.mutations[i]->name;
  }
  EXPECT_GE(found, 8u);
}

/// Faults and clean launches in turn: a stopped launch leaves marks on stacks, which the next one must not meet.
TEST_P(Asan, every_fault_is_reported_with_thread_and_line) {
  for (const Sample& sample : planted::asan_samples()) {
    const std::string path = build(bodies_of(sample).text());
    for (const AsyncPolicy async : kAsync) {
      EXPECT_EQ(run(path, sample, asan_options(async)), "") << sample.name;
      for (size_t i = 0; i < sample.mutations.size(); ++i) {
        const Mutation& mutation = sample.mutations[i];
        const std::string report = run(path, sample, asan_options(async), int(i + 1));
        EXPECT_THAT(mutation.kinds, Contains(kind_of(report))) << sample.name << ": " << mutation.name << ", reported: " << report;
        EXPECT_THAT(report, ::testing::ContainsRegex("^[-A-Z]+ block \\([01],0,0\\) thread [0-9]+ .*kernel\\.cu:[0-9]+"))
            << sample.name << ": " << mutation.name;
        EXPECT_EQ(run(path, sample, asan_options(async, 2)), "") << sample.name << " after " << mutation.name;
      }
    }
  }
}

/// What only this mode finds: neither the emulator alone nor checked mode says anything of local variables and arithmetic.
TEST_P(Asan, the_same_faults_are_not_seen_without_it) {
  int unseen = 0;
  for (const Sample& sample : planted::asan_samples())
    for (const bool checked : {false, true}) {
      const std::string path = build(bodies_of(sample).text(), {.checked = checked});
      EmulatedOptions options;
      options.checked = checked;
      for (size_t i = 0; i < sample.mutations.size(); ++i) {
        const std::string report = run(path, sample, options, int(i + 1)), kind = sample.mutations[i].kinds[0];
        unseen += report.empty();
        if (kind == "UNDEFINED" || kind == "LOCAL-OOB" || kind == "INDEX-OOB") {
          EXPECT_THAT(report, ::testing::AnyOf("", HasSubstr("division by zero"))) << sample.mutations[i].name;
        }
        if (!checked) { EXPECT_THAT(kind_of(report), ::testing::AnyOf("", "FAULT", "SMEM-OOB")) << sample.mutations[i].name; }
      }
    }
  EXPECT_GE(unseen, 40);
}

TEST_P(Asan, reports_say_what_and_where) {
  for (const Sample& sample : planted::asan_samples()) {
    const std::string text = bodies_of(sample).text(), path = build(text);
    const auto expect = [&](const char* name, const char* where, const std::vector<const char*>& words) {
      for (size_t i = 0; i < sample.mutations.size(); ++i) {
        if (sample.mutations[i].name != std::string(name)) continue;
        const size_t at = text.find(where, text.find("body" + std::to_string(i + 1) + "("));
        const auto line = 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(at), '\n');
        const std::string report = run(path, sample, asan_options(), int(i + 1));
        EXPECT_THAT(report, HasSubstr("kernel.cu:" + std::to_string(line)));
        for (const char* word : words) EXPECT_THAT(report, HasSubstr(word));
      }
    };
    expect("local array written past its end", "taken[p.n / 8] =", {"store of ", "4 bytes past the end of 'held' (32 bytes)"});
    // Where g++ 14 knows the object it checks its size before the access, and its scope no longer.
    const bool sizes_first = GetParam() == "g++" && std::stoi(run_process({GetParam(), "-dumpversion"}).output) >= 14;
    expect("a variable used after its scope", "sum += kept",
           {"load of ", sizes_first ? "its object has too few bytes" : "whose scope has ended"});
    expect("index past a local array", "inner[p.n / 16]", {"index 4 of an array of type", "[4]"});
    expect("another thread's variable", "if (t == 1)", {"load of 4 bytes in another thread's stack"});
    expect("shift by the width", "1 << (n / 2)", {"shift of 32-bit type 'int' by 32 places"});
    expect("shift by a negative number", "1 << (n / 4 - 20)", {"shift by -4 places, a negative number"});
    expect("overflow of a product", "n * (34", {"overflow: 64 * 34000000 cannot be represented in type 'int'"});
    expect("division by zero", "n / (n - 64", {"division: 64 / 0 "});
    expect("float too large for an integer", "4.4e9f", {"2.2e+09 is outside the range of type 'int'"});
    expect("a bool that is neither", "const bool*>(p.in)", {"load of 63, which is no value of type"});
    expect("null pointer", "maybe[t]", {"null"});
    expect("pointer that is no multiple of its type", "odd[0]", {"which is no multiple of 4"});
    expect("vector load past the row", "<u32x4>", {"'in' f32 [2, 64] + 0x10", ", between its elements"});
  }
}

/// Overflows do no damage: the launch goes on and finds the others.
TEST_P(Asan, several_faults_of_one_launch_are_reported) {
  const Sample& sample = planted::asan_samples()[1];
  std::string body = sample.body;
  for (const int i : {0, 2, 6}) {
    const Mutation& m = sample.mutations[size_t(i)];
    body.replace(body.find(m.from), std::string(m.from).size(), m.to);
  }
  const std::string report = run(build(planted::text_of(sample, body)), sample, asan_options());
  EXPECT_EQ(std::count(report.begin(), report.end(), '\n'), 2) << report;
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
  const std::string text = planted::text_of(sample, sample.body);
  EXPECT_EQ(refusal(build(text)), "");
  EXPECT_THAT(refusal(build(text, {})), HasSubstr("lacks quern_asan_canary"));
  EXPECT_THAT(refusal(build(text, {.checked = true})), HasSubstr("lacks quern_asan_canary"));
  // The hooks without what calls them: each part of the instrumentation left out in turn.
  const bool gcc = GetParam() == "g++";
  const auto with = [&](const std::vector<std::pair<std::string, std::string>>& changes) {
    const std::string stem = (folder_.path / "less").string();
    std::ofstream(stem + ".cu") << text;
    std::vector<std::string> compile = {GetParam()};
    for (std::string option : jit::HostCompiler::options(!gcc, {.asan = true})) {
      for (const auto& [begin, instead] : changes)
        if (option.starts_with(begin)) option = instead;
      if (!option.empty()) compile.push_back(option);
    }
    compile.insert(compile.end(), {"-I" + (folder_.path / "source").string(), "-x", "c++", "-c", stem + ".cu", "-o", stem + ".o"});
    const std::vector<std::string> link = {GetParam(),  "-shared", "-Wl,--wrap=memcpy,--wrap=memset,--wrap=memmove",
                                           stem + ".o", "-o",      stem + ".so"};
    for (const auto& command : {compile, link}) {
      const ProcessResult result = run_process(command);
      EXPECT_EQ(result.status, 0) << result.output;
    }
    return refusal(stem + ".so");
  };
  // g++ takes the offset of a shadow only where there is one.
  const std::string no_local = "a local array's overrun was not reported", undefined = "-fsanitize=undefined,float-cast-overflow";
  if (gcc) {
    EXPECT_THAT(with({{"-fsanitize=kernel-address", ""}, {"-fasan-shadow-offset", ""}}), HasSubstr(no_local));
    EXPECT_THAT(with({{"--param=asan-stack=1", "--param=asan-stack=0"}}), HasSubstr(no_local));
    EXPECT_THAT(with({{undefined, "-fsanitize=undefined"}}), HasSubstr("a conversion out of range was not reported"));
  } else {
    EXPECT_THAT(with({{"-fsanitize=address", ""}}), HasSubstr(no_local));
  }
  EXPECT_THAT(with({{undefined, "-fsanitize=float-cast-overflow"}}), HasSubstr("a shift too far was not reported"));
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
