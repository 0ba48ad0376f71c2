// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/cli/bench_output.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "quern/bench/sweep_csv.h"

namespace quern::cli {

std::string us_text(double us) {
  if (us <= 0) return "-";
  return us < 100 ? fmt::format("{:.2f}", us) : us < 1000 ? fmt::format("{:.1f}", us) : fmt::format("{:.0f}", us);
}

std::string short_kernel(const std::string& kernels) {
  std::string text;
  int depth = 0;
  for (const char c : kernels) {
    depth += c == '<';
    if (depth == 0) text += c;
    depth -= c == '>' && depth > 0;
  }
  return text;
}

static nlohmann::ordered_json json_of(const std::vector<bench::Field>& fields) {
  nlohmann::ordered_json j;
  for (const bench::Field& f : fields) {
    if (f.text.empty()) continue;
    if (f.number) j[f.column] = nlohmann::ordered_json::parse(f.text);
    else j[f.column] = f.text;
  }
  return j;
}

static nlohmann::ordered_json json_of(const bench::Ceilings& c) {
  return {{"copy_gbps", c.bytes_per_us / 1e3}, {"copy_source", c.copy_source},        {"read_gbps", c.read_bytes_per_us / 1e3},
          {"read_source", c.read_source},      {"bf16_tflops", c.flops_per_us / 1e6}, {"flops_source", c.flops_source}};
}

void print_json(const bench::Ceilings& ceilings, const std::vector<std::vector<bench::Field>>& results) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& fields : results) list.push_back(json_of(fields));
  std::puts(nlohmann::ordered_json{{"ceilings", json_of(ceilings)}, {"results", list}}.dump(2).c_str());
}

void print_ceilings(const bench::Ceilings& c) {
  fmt::print("ceilings, measured now: copy {:.3f} TB/s ({}), read {:.3f} TB/s ({}), bf16 {:.0f} TFLOP/s ({})\n", c.bytes_per_us / 1e6,
             c.copy_source, c.read_bytes_per_us / 1e6, c.read_source, c.flops_per_us / 1e6, c.flops_source);
}

CsvFile::CsvFile(const std::string& path) {
  if (path.empty()) return;
  if (std::ifstream before(path); before) {
    std::string header;
    std::getline(before, header);
    if (bench::is_sweep_header(header))
      throw Error(ErrorKind::value, "", "csv", "is '" + path + "', which holds rows of sweeps",
                  "another file, or --sweep: sweeps add rows, this writes the file anew");
  }
  file_ = std::fopen(path.c_str(), "w");
  if (!file_) throw Error(ErrorKind::value, "", "csv", "is '" + path + "'", "a file that can be written");
}

CsvFile::~CsvFile() {
  if (file_) std::fclose(file_);
}

void CsvFile::add(const std::vector<bench::Field>& fields) {
  if (!file_) return;
  if (lines_++ == 0) std::fputs(bench::csv_header(fields).c_str(), file_);
  std::fputs(bench::csv_line(fields).c_str(), file_);
  std::fflush(file_);
}

}  // namespace quern::cli
