// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/bench_case.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "quern/bench/csv.h"
#include "quern/bench/cublas.h"
#include "quern/bench/judge_timed.h"
#include "quern/bench/providers.h"

namespace quern::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

Device& emulated() { return device_from_name("emu"); }
BenchOptions quick() {
  BenchOptions o;
  o.timing.budget_ms = 1;
  o.timing.max_runs = 5;
  return o;
}

TEST(bench_sets, are_enough_to_leave_the_l2_and_fit_the_memory) {
  DeviceInfo device;  // 60 MB of L2
  device.memory_bytes = i64(10) << 30;
  EXPECT_EQ(sets_wanted(1 << 10, device, true), 8);
  EXPECT_EQ(sets_wanted(60 << 20, device, true), 3);
  EXPECT_EQ(sets_wanted(61 << 20, device, true), 3);
  EXPECT_EQ(sets_wanted(1e9, device, true), 2);
  EXPECT_EQ(sets_wanted(4e9, device, true), 1);  // half the memory holds one
  EXPECT_EQ(sets_wanted(1 << 10, device, false), 1);
  EXPECT_EQ(sets_wanted(0, device, true), 1);
}

TEST(bench_sets, have_memory_of_their_own_with_the_same_contents) {
  const Op& op = find_op("norm.fused_add_rms_norm");
  const testing::CaseArgs host(op, {{"tokens", 3}, {"hidden", 64}, {"x.pad", 8}}, 5);
  DeviceSets sets(host, emulated(), 3);
  ASSERT_EQ(sets.count(), 3);
  const size_t x = size_t(op.tensor_index("x")), residual = size_t(op.tensor_index("residual")), out = size_t(op.tensor_index("out"));
  EXPECT_NE(op.tensor(sets.args(0), x).data, op.tensor(sets.args(2), x).data);
  run(op, sets.args(2), {});
  for (const size_t i : {x, residual, out}) {
    const i64 bytes = host.buffer(i).size;
    const bool changed = std::memcmp(sets.download(0, i).bytes.get(), sets.download(2, i).bytes.get(), size_t(bytes)) != 0;
    EXPECT_EQ(changed, i != x) << op.tensors[i].name;
  }
  sets.restore(2);
  for (const size_t i : {x, residual, out})
    EXPECT_EQ(std::memcmp(host.buffer(i).initial.get(), sets.download(2, i).bytes.get(), size_t(host.buffer(i).size)), 0);
}

TEST(bench_judge, samples_the_first_the_last_and_some_between) {
  EXPECT_THAT(sampled_rows(3, 8, 1), ElementsAre(0, 1, 2));
  const std::vector<i64> rows = sampled_rows(1000, 8, 1);
  ASSERT_THAT(rows, SizeIs(8));
  EXPECT_EQ(rows.front(), 0);
  EXPECT_EQ(rows.back(), 999);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end()), rows.end());
  EXPECT_NE(rows, sampled_rows(1000, 8, 2));
}

/// An op whose reference is too slow to be run whole: its rows are sampled. 64 rows stand for more.
struct JudgedRows {
  const Op& op = find_op("norm.rms_norm");
  testing::CaseArgs host{op, {{"tokens", 64}, {"hidden", 64}}, 1};
  DeviceSets sets{host, emulated(), 1};
  Problem problem = bind(op, host.args(), {});
  TensorView out() { return op.tensor(sets.args(0), size_t(op.tensor_index("out"))); }
};

TEST(bench_judge, sees_wrong_values_unwritten_elements_and_overruns) {
  JudgedRows j;
  run(j.op, j.sets.args(0), {});
  const double all = HUGE_VAL, none = 0;
  Verdict right = judge_timed(j.host, j.sets, 0, j.problem, all);
  EXPECT_TRUE(right.comparison.ok) << right.comparison.message;
  EXPECT_EQ(right.checked, "all");
  right = judge_timed(j.host, j.sets, 0, j.problem, none);
  EXPECT_TRUE(right.comparison.ok) << right.comparison.message;
  EXPECT_EQ(right.checked, "8 of 64 rows");

  u16* data = static_cast<u16*>(j.out().data);
  const u16 kept = data[63 * 64 + 5];
  data[63 * 64 + 5] ^= 0x80;
  const Verdict wrong = judge_timed(j.host, j.sets, 0, j.problem, none);
  EXPECT_FALSE(wrong.comparison.ok);
  EXPECT_THAT(wrong.comparison.message, StartsWith("`out` row 63: "));
  data[63 * 64 + 5] = kept;

  // Not a sampled row, but poison is looked for everywhere
  const std::vector<i64> rows = sampled_rows(64, 8, 1);
  i64 unsampled = 1;
  while (std::find(rows.begin(), rows.end(), unsampled) != rows.end()) ++unsampled;
  const u16 written = data[unsampled * 64];
  data[unsampled * 64] = 0xFFFF;
  EXPECT_EQ(judge_timed(j.host, j.sets, 0, j.problem, none).comparison.message, "`out` has 1 elements that were not written");
  data[unsampled * 64] = written;
  data[-1] = 0;
  EXPECT_EQ(judge_timed(j.host, j.sets, 0, j.problem, none).comparison.message, "`out` was overrun before its start");
}

/// Rows of a grouped product belong together, columns do not; scales are of blocks of 128 columns.
TEST(bench_judge, samples_columns_where_rows_cannot_be_cut) {
  const Op& op = find_op("gemm.grouped_contiguous");
  testing::CaseArgs host(op, {{"m", 64}, {"groups", 3}, {"n", 264}, {"k", 200}}, 1);
  DeviceSets sets{host, emulated(), 1};
  const Problem problem = bind(op, host.args(), {});
  run(op, sets.args(0), {});
  const Verdict right = judge_timed(host, sets, 0, problem, 0);
  EXPECT_TRUE(right.comparison.ok) << right.comparison.message;
  EXPECT_EQ(right.checked, "8 of 264 columns");
  EXPECT_EQ(judge_timed(host, sets, 0, problem).checked, "all");

  const TensorView out = op.tensor(sets.args(0), size_t(op.tensor_index("out")));
  i64 row = 0;  // one that is of a group
  const auto bits = [&](i64 i) -> u16& { return static_cast<u16*>(out.data)[i * out.strides[0] + 263]; };
  while (row < 63 && (bits(row) == 0xFFFF || bits(row) == 0)) ++row;
  bits(row) ^= 0x8000;
  const Verdict wrong = judge_timed(host, sets, 0, problem, 0);
  EXPECT_FALSE(wrong.comparison.ok);
  EXPECT_THAT(wrong.comparison.message, StartsWith("`out` column 263: "));
  bits(row) ^= 0x8000;

  // Columns that are not sampled: every one leaves the same rows alone
  const std::vector<i64> columns = sampled_rows(264, 8, 1);
  i64 unsampled = 1;
  while (std::find(columns.begin(), columns.end(), unsampled) != columns.end()) ++unsampled;
  u16& element = static_cast<u16*>(out.data)[row * out.strides[0] + unsampled];
  const u16 kept = element;
  element = 0xFFFF;
  EXPECT_EQ(judge_timed(host, sets, 0, problem, 0).comparison.message, "`out` has 1 elements that were not written");
  element = kept;
  i64 left = 0;
  while (left < 63 && bits(left) != 0xFFFF) ++left;
  ASSERT_EQ(bits(left), 0xFFFF) << "no row of no group: the test needs one";
  static_cast<u16*>(out.data)[left * out.strides[0] + unsampled] = 0;
  EXPECT_EQ(judge_timed(host, sets, 0, problem, 0).comparison.message, "`out` has 1 elements that were to be left alone");
}

/// Packed operands of a product of groups of K: one column's part is no slice.
TEST(bench_judge, judges_all_where_columns_cannot_be_cut) {
  const Op& op = find_op("gemm.k_grouped");
  for (const double packed : {0, 1}) {
    testing::CaseArgs host(op, {{"m", 16}, {"groups", 2}, {"n", 264}, {"k", 400}, {"packed", packed}}, 1);
    DeviceSets sets{host, emulated(), 1};
    run(op, sets.args(0), {});
    const Verdict right = judge_timed(host, sets, 0, bind(op, host.args(), {}), 0);
    EXPECT_TRUE(right.comparison.ok) << right.comparison.message;
    EXPECT_EQ(right.checked, packed != 0 ? "all" : "8 of 264 columns");
  }
}

TEST(bench_case, times_and_judges_every_op_on_the_emulated_device) {
  ASSERT_GE(registry().size(), 10u);
  for (const auto& [id, op] : registry()) {
    const std::vector<BenchResult> results = bench_case(*op, {}, emulated(), {}, quick());
    ASSERT_THAT(results, SizeIs(1));
    const BenchResult& r = results[0];
    EXPECT_TRUE(r.ok) << id << ": " << r.message;
    EXPECT_TRUE(r.timed()) << id << ": " << r.message;
    EXPECT_EQ(r.checked, "all") << id;
    EXPECT_FALSE(r.cold);  // an emulated device has no L2
    EXPECT_THAT(r.device, HasSubstr("emulated"));
    EXPECT_THAT(r.kernel, HasSubstr("<")) << id;

    // The verdict is the reference's: one that writes nothing contradicts
    Op silent = *op;
    silent.reference = [](const void*, const void*, const void*) {};
    const BenchResult contradicted = bench_case(silent, {}, emulated(), {}, quick())[0];
    EXPECT_FALSE(contradicted.ok) << id;
    EXPECT_NE(contradicted.message, "") << id;
  }
}

TEST(bench_case, an_empty_case_and_a_refused_one_are_results) {
  const BenchResult empty = bench_case(find_op("norm.rms_norm"), {{"tokens", 0}, {"hidden", 64}}, emulated(), {}, quick())[0];
  EXPECT_TRUE(empty.ok);
  EXPECT_FALSE(empty.timed());
  EXPECT_THAT(empty.message, HasSubstr("no elements"));
  EXPECT_EQ(empty.asked, "hidden=64 tokens=0");
  const Case refused = {{"m", 3}, {"n", 7}, {"k", 64}, {"variant", 0}};  // TMA stores rows that are multiples of 16 bytes
  const BenchResult r = bench_case(find_op("gemm.dense"), refused, emulated(), {}, quick())[0];
  EXPECT_FALSE(r.ok);
  EXPECT_FALSE(r.timed());
  EXPECT_THAT(r.message, StartsWith("unsupported error: gemm.dense: "));
}

TEST(bench_case, words_make_every_combination) {
  const Op& op = find_op("norm.rms_norm");
  EXPECT_EQ(bench_cases(op, {}).size(), op.bench.size());
  const std::vector<Case> cases = bench_cases(op, {"tokens=1,64", "hidden=128,256"});
  ASSERT_THAT(cases, SizeIs(4));
  EXPECT_EQ(cases[3], (Case{{"tokens", 64}, {"hidden", 256}}));
  EXPECT_THROW(bench_cases(op, {"token=1"}), Error);
  EXPECT_DOUBLE_EQ(case_bytes(op, {{"tokens", 2}, {"hidden", 64}}), 2 * (2 * 64 * 2 + 64));
}

TEST(bench_providers, tell_names_and_absence) {
  const Op& norm = find_op("norm.rms_norm");
  EXPECT_EQ(find_provider("cublaslt", norm), nullptr);
  try {
    find_provider("cublas", norm);
    FAIL();
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "`peer` is 'cublas', expected one of cublaslt"); }
  if (registry().count("gemm.dense") == 0) return;
  const Op& dense = find_op("gemm.dense");
  ASSERT_NE(find_provider("cublaslt", dense), nullptr);
  if (cublaslt_available()) return;
  BenchOptions options = quick();
  options.peer = "cublaslt";
  const std::vector<BenchResult> results = bench_case(dense, {{"m", 3}, {"n", 16}, {"k", 64}}, emulated(), {}, options);
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_TRUE(results[0].ok) << results[0].message;
  EXPECT_EQ(results[1].provider, "cublaslt");
  EXPECT_FALSE(results[1].timed());
  EXPECT_THAT(results[1].message, StartsWith("not available: "));
}

TEST(bench_csv, has_its_columns_and_quotes_kernels) {
  BenchResult r;
  r.op = "norm.rms_norm", r.which = "tokens=1", r.kernel = "row<a=1, b=2>", r.device = "a \"GPU\"", r.provider = "quern";
  r.timing = {.median_us = 10, .p10_us = 9, .p90_us = 12, .min_us = 8, .runs = 15, .timer = "CUPTI activity"};
  r.cost = {1e6, 0}, r.floor_us = 5, r.copy_us = 8, r.checked = "all";
  const std::vector<Field> fields = fields_of(r, "0.1.0");
  EXPECT_EQ(csv_header(fields),
            "op,case,kernel,device,timer,cold,runs,median_us,p10_us,p90_us,bytes,flops,floor_us,share_of_floor,copy_us,"
            "share_of_copy,"
            "tflops,gbps,error,provider,sm_clock_mhz,version,ok,checked,host_us,launch_us,message\n");
  EXPECT_EQ(csv_line(fields),
            "norm.rms_norm,tokens=1,\"row<a=1, b=2>\",\"a \"\"GPU\"\"\",CUPTI "
            "activity,1,15,10,9,12,1e+06,,5,0.5,8,0.8,,100,0,quern,,0.1.0,1,all,,,\n");
  r.timing = {};
  r.error = HUGE_VAL;
  EXPECT_EQ(csv_line(fields_of(r, "0.1.0")),
            "norm.rms_norm,tokens=1,\"row<a=1, b=2>\",\"a \"\"GPU\"\"\",,1,0,,,,1e+06,,5,,8,,,,,quern,,0.1.0,1,all,,,\n");
}

}  // namespace
}  // namespace quern::bench
