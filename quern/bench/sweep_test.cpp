// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Sweeps: what their words mean, their points, and the rows of their CSV.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "quern/base/fs.h"
#include "quern/bench/data_sheet.h"
#include "quern/bench/sweep_csv.h"

namespace quern::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

const Op& norm() { return find_op("norm.rms_norm"); }
/// An op of one dtype.
const Op& mean() { return find_op("planted.mean"); }

SweepPoint at(const Op& op, const std::string& sweep, const Case& fixed = {}) {
  return sweep_points(op, {parse_sweep(op, sweep)}, fixed).at(0);
}

/// What an Error says; "none" where there is none.
template <class F> std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) { return e.what(); }
  return "none";
}
std::vector<i64> values_of(const std::string& sweep) {
  std::vector<i64> values;
  for (const CaseValue& v : parse_sweep(norm(), sweep).values) values.push_back(v.integer());
  return values;
}

TEST(sweep_words, are_progressions_and_lists) {
  EXPECT_THAT(values_of("hidden=1024:16384:x2"), ElementsAre(1024, 2048, 4096, 8192, 16384));
  EXPECT_THAT(values_of("hidden=96:1000:x2"), ElementsAre(96, 192, 384, 768)) << "an end that no step meets is not in it";
  EXPECT_THAT(values_of("hidden=3:30:x3"), ElementsAre(3, 9, 27));
  EXPECT_THAT(values_of("tokens=1:9:+4"), ElementsAre(1, 5, 9));
  EXPECT_THAT(values_of("tokens=5:5:+4"), ElementsAre(5));
  EXPECT_THAT(parse_sweep(find_op("sampling.sample"), "seed=9223372036854775806:9223372036854775807:+1").values, SizeIs(2))
      << "up to the end of 64 bits";
  EXPECT_THAT(values_of("hidden=1k:4k:x2"), ElementsAre(1024, 2048, 4096));
  EXPECT_THAT(values_of("hidden=96,768,5120"), ElementsAre(96, 768, 5120));
  EXPECT_THAT(values_of("hidden=7"), ElementsAre(7));
  EXPECT_EQ(parse_sweep(norm(), "dtype=f32,bf16").name, "x.dtype");
  EXPECT_EQ(dtype_parameter(find_op("sampling.softmax")), "logits.dtype");
  EXPECT_EQ(dtype_parameter(mean()), "");
  EXPECT_EQ(dtype_name(mean(), {}), "f32");
}

TEST(sweep_words, that_are_none_are_errors_with_what_was_got) {
  const auto sweep = [](const char* text) { return error_of([&] { parse_sweep(norm(), text); }); };
  const std::string form = "expected axis=FROM:TO:xFACTOR, axis=FROM:TO:+STEP or axis=VALUE,VALUE, as in hidden=1024:16384:x2";
  for (const char* text : {"hidden", "hidden=", "=3", "hidden=1:2", "hidden=1:2:3", "hidden=1:2:x", "hidden=1:2:x-2", "hidden=1:2:x2:3",
                           "hidden=1:2:*2", "hidden=1:8:x2.5"})
    EXPECT_EQ(sweep(text), "norm.rms_norm: `sweep` is '" + std::string(text) + "', " + form) << text;
  EXPECT_EQ(sweep("hidden=1:8:x1"), "norm.rms_norm: `sweep` steps by x1 in 'hidden=1:8:x1', expected a factor of at least 2");
  EXPECT_EQ(sweep("hidden=1:8:+0"), "norm.rms_norm: `sweep` steps by +0 in 'hidden=1:8:+0', expected a step of at least 1");
  EXPECT_EQ(sweep("hidden=8:1:x2"), "norm.rms_norm: `sweep` goes from 8 to 1, expected a start of at least 1 and no smaller end");
  EXPECT_EQ(sweep("hidden=0:8:x2"), "norm.rms_norm: `sweep` goes from 0 to 8, expected a start of at least 1 and no smaller end");
  EXPECT_EQ(sweep("hidden=8:1:+1"), "norm.rms_norm: `sweep` goes from 8 to 1, expected no smaller end");
  EXPECT_EQ(sweep("hidden=a:8:x2"), "norm.rms_norm: `hidden` is 'a', expected a number");
  EXPECT_EQ(sweep("hidden=96,96"), "norm.rms_norm: `sweep` has 96 twice in 'hidden=96,96', expected each value once");
  EXPECT_THAT(sweep("hidden=1:1000000:+1"), StartsWith("norm.rms_norm: `sweep` has more than 1000 values"));
  EXPECT_THAT(sweep("hiden=1:8:x2"), StartsWith("norm.rms_norm: `hiden` is no parameter of this op, expected `hidden`"));
  EXPECT_EQ(error_of([] { parse_sweep(mean(), "dtype=f32"); }),
            "planted.mean: `dtype` is given, expected none: this op has no choice of dtypes");
  EXPECT_EQ(error_of([] { mode_from_name("both"); }), "`mode` is 'both', expected one of forward, backward, full");
  EXPECT_EQ(error_of([] { metric_from_name("time"); }), "`metric` is 'time', expected one of speed, memory");
  EXPECT_EQ(error_of([] { sweep_points(norm(), {parse_sweep(norm(), "dtype=f32,bf16")}, {}); }),
            "norm.rms_norm: `sweep` begins with x.dtype, whose values are words, expected an axis of numbers first: it is x");
  EXPECT_EQ(error_of([] { sweep_points(norm(), {parse_sweep(norm(), "hidden=1,2")}, {{"hidden", 3}}); }),
            "norm.rms_norm: `hidden` is given twice, expected one --sweep or one --set");
}

TEST(sweep_points, are_a_grid_whose_rows_are_told_apart_by_their_config) {
  const std::vector<SweepPoint> points = sweep_points(norm(), {parse_sweep(norm(), "hidden=96,768"), parse_sweep(norm(), "dtype=f32,bf16")},
                                                      parse_fixed(norm(), {"tokens=5"}));
  ASSERT_THAT(points, SizeIs(4));
  EXPECT_EQ(points[1].text(norm(), "hidden"), "768") << "x comes innermost";
  EXPECT_THAT(points[0].config(norm()), ElementsAre(Pair("dtype", "f32"), Pair("tokens", "5")));
  EXPECT_THAT(points[2].config(norm()), ElementsAre(Pair("dtype", "bf16"), Pair("tokens", "5")));
  EXPECT_THAT(at(norm(), "hidden=96").config(norm()), ElementsAre(Pair("dtype", "bf16"), Pair("tokens", "1")))
      << "what the op's cases complete is in it";
}

TEST(sweep_points, of_no_sweep_are_the_bench_shapes) {
  Case fixed = {{"x.dtype", int(DType::f32)}};
  const CaseAxis x = standard_sweep(norm(), fixed, false);
  EXPECT_EQ(x.name, "tokens");
  EXPECT_EQ(x.values.front(), CaseValue(1));
  EXPECT_EQ(x.values.back(), CaseValue(65536));
  EXPECT_EQ(fixed.at("hidden"), Scalar(4096));
  EXPECT_EQ(fixed.at("x.dtype"), Scalar(int(DType::f32)));
  Case nothing;
  EXPECT_EQ(standard_sweep(norm(), nothing, true).values, (std::vector<CaseValue>{1, 3, 64, 101})) << "its cases, but for no rows";
  EXPECT_THAT(nothing, IsEmpty());
}

TEST(sweep_points, are_made_small_for_an_emulated_device_by_their_rows) {
  std::vector<SweepPoint> points = sweep_points(norm(), {parse_sweep(norm(), "hidden=1024:4096:x2")}, parse_fixed(norm(), {"tokens=4096"}));
  EXPECT_EQ(shrink(norm(), points, 1 << 20), "tokens is 32 instead of 4096");
  ASSERT_THAT(points, SizeIs(3));
  for (const SweepPoint& p : points) EXPECT_EQ(p.given.at("tokens"), Scalar(32)) << "one config for all";
  EXPECT_EQ(shrink(norm(), points, 1 << 20), "") << "they are small now";
  points = sweep_points(norm(), {parse_sweep(norm(), "tokens=1:4096:x8")}, parse_fixed(norm(), {"hidden=2048"}));
  EXPECT_EQ(shrink(norm(), points, 1 << 20), "2 points are left to GPUs") << "an x is what was asked for";
  EXPECT_THAT(points, SizeIs(3));
}

TEST(sweep_sheet, knows_whole_names) {
  EXPECT_EQ(data_sheet_bytes_per_us("NVIDIA H200"), 4.8e6);
  EXPECT_EQ(data_sheet_bytes_per_us("NVIDIA H200 NVL"), 0);
}

/// A file that is gone behind the test.
struct SweepCsv : ::testing::Test {
  std::string path = ::testing::TempDir() + "/sweep" + std::to_string(getpid()) + ".csv";
  SweepRun run{.gpu_name = "NVIDIA H200", .arch = "sm_90a", .version = "0.1.0", .timestamp = "2026-01-02 03:04:05", .device = "cuda:0"};
  void TearDown() override { std::remove(path.c_str()); }
  std::vector<Field> row(double us, const std::string& provider = "quern", const std::string& gpu = "NVIDIA H200",
                         Metric metric = Metric::speed) {
    SweepResult r;
    r.op = norm().id, r.provider = provider, r.spec = "norm_row<a=1, b=2>";
    r.timing = {.median_us = us, .p20_us = us * 0.9, .p80_us = us * 1.1, .runs = 15, .timer = "CUPTI activity"};
    r.memory_bytes = 3 << 20, r.planned_bytes = 3 << 20, r.cost = {1e6, 0}, r.floor_us = us / 2, r.sheet_us = us / 4;
    run.gpu_name = gpu;
    return row_of(norm(), at(norm(), "hidden=1024", parse_fixed(norm(), {"tokens=4096", "dtype=bf16"})), r, metric, run);
  }
  std::string text() { return read_file(path).value_or("none"); }
};

TEST_F(SweepCsv, has_the_14_columns_first_and_a_command_that_repeats_the_row) {
  EXPECT_EQ(
      csv_header(row(10)),
      "kernel_name,kernel_provider,kernel_operation_mode,metric_name,metric_unit,x_name,x_label,x_value,y_value_50,y_value_20,y_value_80,extra_benchmark_config_str,gpu_name,timestamp,"
      "version,arch,dtype,spec,bytes,flops,sol_ms,pct_sol,repro,sheet_ms,timer\n");
  EXPECT_EQ(
      csv_line(row(10)),
      "norm.rms_norm,quern,forward,speed,ms,hidden,width of the residual stream,1024,0.01,0.009,0.011,\"{\"\"dtype\"\":\"\"bf16\"\",\"\"tokens\"\":4096}\",NVIDIA H200,2026-01-02 03:04:05,"
      "0.1.0,sm_90a,bf16,\"norm_row<a=1, b=2>\",1e+06,,0.005,50,\"quern bench norm.rms_norm --mode forward --sweep hidden=1024 --set tokens=4096,dtype=bf16 --provider quern --metric speed --seed 1 --device cuda:0\",0.0025,CUPTI activity\n");
  EXPECT_THAT(csv_line(row(10, "quern", "NVIDIA H200", Metric::memory)),
              HasSubstr(",memory,MB,hidden,width of the residual stream,1024,3,3,3,"));
}

TEST_F(SweepCsv, keeps_rows_by_their_key) {
  {
    SweepFile file(path);
    file.put(row(10)), file.put(row(20, "torch")), file.put(row(30, "quern", "NVIDIA L4"));
  }
  EXPECT_EQ(key_of(row(10)), key_of(row(99))) << "figures are no part of it";
  EXPECT_NE(key_of(row(10)), key_of(row(10, "torch")));
  EXPECT_NE(key_of(row(10)), key_of(row(10, "quern", "NVIDIA L4")));
  EXPECT_NE(key_of(row(10)), key_of(row(10, "quern", "NVIDIA H200", Metric::memory)));
  SweepFile again(path);
  EXPECT_TRUE(again.has(key_of(row(1))) && again.has(key_of(row(1, "torch"))));
  EXPECT_FALSE(again.has(key_of(row(1, "liger"))));
  again.put(row(40));
  const std::vector<std::vector<std::string>> lines = parse_csv(text(), path);
  ASSERT_THAT(lines, SizeIs(4)) << "the row was replaced";
  EXPECT_EQ(lines[1][8], "0.04");
  EXPECT_EQ(lines[2][8], "0.02");
  again.remove(key_of(row(1, "torch")));
  EXPECT_THAT(parse_csv(text(), path), SizeIs(3));
  EXPECT_THAT(text(), Not(HasSubstr("torch")));
}

TEST_F(SweepCsv, takes_files_of_the_14_columns_alone) {
  const std::string header = csv_header(row(10)), line = csv_line(row(10));
  std::ofstream(path) << header.substr(0, header.find(",version")) + "\r\n" << line.substr(0, line.find(",0.1.0")) + "\r\n";
  SweepFile file(path);
  EXPECT_TRUE(file.has(key_of(row(5))));
  file.put(row(20, "torch"));
  EXPECT_THAT(text(), StartsWith(header));
  EXPECT_THAT(parse_csv(text(), path), SizeIs(3));
}

TEST_F(SweepCsv, refuses_what_is_no_file_of_sweeps) {
  const auto refused = [&](const std::string& content) {
    std::ofstream(path) << content;
    const std::string said = error_of([&] { SweepFile file(path); });
    EXPECT_EQ(text(), content) << "it is as it was";
    return said;
  };
  EXPECT_EQ(refused("op,case\nnorm,x\n"),
            "`csv` is '" + path + "', whose column 1 is 'op', expected the columns of a sweep, here kernel_name");
  EXPECT_EQ(refused("kernel_name\n"),
            "`csv` is '" + path + "', which has 1 columns, expected the columns of a sweep, here kernel_provider");
  const std::string header = csv_header(row(10));
  EXPECT_EQ(refused(header.substr(0, header.size() - 1) + ",mine\n"),
            "`csv` is '" + path + "', whose column 26 is 'mine', expected the columns of a sweep, here one of those behind timestamp");
  EXPECT_EQ(refused(header + "a,b\n"), "`csv` is '" + path + "', which has 2 fields in row 1, expected 25");
  EXPECT_EQ(refused(header + "\"a"), "`csv` is " + path + ", in which a quote does not end, expected a CSV file");
  EXPECT_THAT(error_of([&] { SweepFile file(::testing::TempDir() + "/no/such/folder/a.csv"); }),
              HasSubstr("whose folder is not there, expected a file that can be written"));
}

TEST(bench_csv, is_read_as_it_is_written) {
  const std::vector<Field> fields = {{"a", "1, 2"}, {"b", "say \"x\"\nagain"}, {"c", ""}};
  EXPECT_THAT(parse_csv(csv_header(fields) + csv_line(fields), "f"),
              ElementsAre(ElementsAre("a", "b", "c"), ElementsAre("1, 2", "say \"x\"\nagain", "")));
}

}  // namespace
}  // namespace quern::bench
