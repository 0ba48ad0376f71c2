// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What a broken kernel does must be called wrong. The device here computes nothing by itself: at a launch it writes
// what the test says into the call's tensors.
#include "quern/testing/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "quern/base/host_dtype.h"
#include "quern/testing/null_device.h"
#include "quern/testing/pairwise.h"

namespace quern::testing {
namespace {

using Deed = std::function<void(const TensorView& x, const TensorView& weight, const TensorView& out)>;

class Puppet : public NullDevice {
 public:
  explicit Puppet(Deed deed) : NullDevice(device_info_of(Arch{})), deed_(std::move(deed)) { wants_memory_ranges_ = true; }
  void begin_call(std::span<const MemoryRange> ranges, const char*) override {
    for (const MemoryRange& r : ranges)
      for (int i = 0; i < 3; ++i)
        if (std::strcmp(r.name, kNames[i]) == 0) views_[i] = r.view;
  }
  void launch(Function, const LaunchConfig&, const void*, size_t, Stream) override { deed_(views_[0], views_[1], views_[2]); }

 private:
  static constexpr const char* kNames[] = {"x", "weight", "out"};
  TensorView views_[3];
  Deed deed_;
};

/// out of norm.rms_norm, row by row.
void right_answer(const TensorView& x, const TensorView& weight, const TensorView& out) {
  const i64 hidden = x.shape[1];
  const size_t n = size_t(hidden);
  std::vector<double> row(n), w(n);
  read_row(weight.data, weight.dtype, hidden, 1, w.data());
  for (i64 t = 0; t < x.shape[0]; ++t) {
    const i64 at[] = {t, 0};
    read_row(x.at(at), x.dtype, hidden, 1, row.data());
    double squares = 0;
    for (const double v : row) squares += v * v;
    for (size_t h = 0; h < row.size(); ++h) row[h] *= w[h] / std::sqrt(squares / double(hidden) + double(1e-6f));
    write_row(out.at(at), out.dtype, hidden, 1, row.data());
  }
}

CheckResult checked(const Deed& deed, bool in_place = false) {
  Puppet device(deed);
  CheckJob job;
  job.op = &find_op("norm.rms_norm");
  job.given = {
      {"tokens", 3}, {"hidden", 64}, {"x.pad", 8}, {"out.pad", 16}, {"x.dtype", double(int(DType::f32))}, {"out.in_place", in_place}};
  job.devices = {{&device, "--device puppet"}};
  const std::vector<CheckResult> results = check_case(job);
  return results.empty() ? CheckResult{} : results[0];
}

/// The right answer, and then `also`.
CheckResult spoiled(const Deed& also) {
  return checked([&](const TensorView& x, const TensorView& w, const TensorView& out) {
    right_answer(x, w, out);
    also(x, w, out);
  });
}

void expect_wrong(const CheckResult& r, const char* text) {
  EXPECT_EQ(r.verdict, CheckResult::Verdict::wrong);
  EXPECT_NE(r.message.find(text), std::string::npos) << r.message;
  EXPECT_NE(r.repro.find("quern check norm.rms_norm hidden=64"), std::string::npos) << r.repro;
  EXPECT_NE(r.repro.find("--seed 1 --device puppet"), std::string::npos) << r.repro;
}

TEST(testing_check, the_right_answer_passes) {
  const CheckResult r = checked(right_answer);
  EXPECT_EQ(r.verdict, CheckResult::Verdict::right) << r.message;
  EXPECT_LE(r.error, 1);
}

TEST(testing_check, doing_nothing_is_wrong) {
  expect_wrong(checked([](auto&...) {}), "`out` [0, 0] is ");
}

TEST(testing_check, one_wrong_element_is_wrong) {
  expect_wrong(spoiled([](auto&, auto&, const TensorView& out) {
                 const i64 at[] = {2, 63};
                 store_element(out, at, load_element(out, at) * 1.001);
               }),
               "`out` [2, 63] is ");
}

TEST(testing_check, zeros_are_wrong) {
  expect_wrong(checked([](auto&, auto&, const TensorView& out) {
                 for (i64 t = 0; t < 3; ++t) std::memset(static_cast<char*>(out.data) + t * out.strides[0] * 4, 0, 256);
               }),
               "is 0, expected");
}

TEST(testing_check, writing_into_a_gap_is_wrong) {
  expect_wrong(spoiled([](auto&, auto&, const TensorView& out) { static_cast<float*>(out.data)[64] = 0; }), "`out` was overrun");
}

TEST(testing_check, writing_past_the_end_is_wrong) {
  expect_wrong(spoiled([](auto&, auto&, const TensorView& out) { static_cast<float*>(out.data)[out.extent()] = 0; }), "behind its end");
}

TEST(testing_check, writing_an_input_is_wrong) {
  expect_wrong(spoiled([](auto&, const TensorView& w, auto&) { static_cast<float*>(w.data)[5] += 1; }), "`weight` is an input");
}

TEST(testing_check, a_row_with_other_bits_in_the_batch_is_wrong) {
  expect_wrong(spoiled([](const TensorView& x, auto&, const TensorView& out) {
                 if (x.shape[0] == 1) *static_cast<u32*>(out.data) ^= 1;  // one bit, well within the tolerance
               }),
               "not batch invariant: tokens index 1");
}

TEST(testing_check, a_thrown_error_is_wrong) {
  expect_wrong(checked([](auto&...) { throw Error(ErrorKind::device, "the puppet broke"); }), "the puppet broke");
}

TEST(testing_null_device, counts_launches_and_runs_nothing) {
  NullDevice device(device_info_of(Arch{}));
  CaseArgs args(find_op("norm.rms_norm"), {{"tokens", 2}, {"hidden", 64}}, 1);
  run(args.op(), args.args(), {.device = &device});
  run(args.op(), args.args(), {.device = &device});
  EXPECT_EQ(device.launches(), 2);
  EXPECT_EQ(args.damage(), "");
}

/// An output in the place of its input: a kernel that writes before it has read is right elsewhere only, and what lies
/// around the shared memory stays guarded.
TEST(testing_check, an_output_in_place_of_an_input) {
  EXPECT_TRUE(checked(right_answer, true).ok());
  const Deed writes_early = [](const TensorView& x, const TensorView& w, const TensorView& out) {
    const i64 first[] = {0, 0};
    store_element(out, first, 0);
    right_answer(x, w, out);
  };
  EXPECT_TRUE(checked(writes_early, false).ok());
  expect_wrong(checked(writes_early, true), "`out` [0, ");
  const Deed overruns = [](const TensorView& x, const TensorView& w, const TensorView& out) {
    right_answer(x, w, out);
    static_cast<float*>(out.data)[64] = 1;
  };
  expect_wrong(checked(overruns, true), "was overrun");
}

}  // namespace
}  // namespace quern::testing
