// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/sweep_csv.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "quern/base/fs.h"

namespace quern::bench {

namespace {

struct Column {
  const char* name;
  bool number = false, key = false;
};
/// The first 14 are those that other tools read.
constexpr Column kColumns[] = {
    {"kernel_name", false, true},
    {"kernel_provider", false, true},
    {"kernel_operation_mode", false, true},
    {"metric_name", false, true},
    {"metric_unit"},
    {"x_name", false, true},
    {"x_label"},
    {"x_value", true, true},
    {"y_value_50", true},
    {"y_value_20", true},
    {"y_value_80", true},
    {"extra_benchmark_config_str", false, true},
    {"gpu_name", false, true},
    {"timestamp"},
    {"version"},
    {"arch"},
    {"dtype"},
    {"spec"},
    {"bytes", true},
    {"flops", true},
    {"sol_ms", true},
    {"pct_sol", true},
    {"repro"},
    {"sheet_ms", true},
    {"timer"},
};
constexpr size_t kFirst = 14;

std::string figure(double value) { return value > 0 && std::isfinite(value) ? fmt::format("{:.6g}", value) : ""; }

/// "true" is a bool, "4096" a number, "bf16" a string.
nlohmann::json json_value(const std::string& text) {
  const nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_number() || value.is_boolean() ? value : nlohmann::json(text);
}

std::string config_text(const Op& op, const SweepPoint& point, const SweepRun& run) {
  nlohmann::json j = nlohmann::json::object();  // its names are sorted: equal configs are equal texts
  for (const auto& [parameter, text] : point.config(op)) j[parameter] = json_value(text);
  if (run.hot) j["l2"] = "hot";
  return j.dump();
}

/// The command that makes this row again.
std::string repro_of(const Op& op, const SweepPoint& point, const SweepResult& r, Metric metric, const SweepRun& run) {
  std::string fixed;
  const std::string dtype = dtype_parameter(op);
  for (const auto& [parameter, value] : point.given)
    if (parameter != point.x)
      fixed += (fixed.empty() ? "" : ",") + (parameter == dtype ? "dtype" : parameter) + "=" + point.text(op, parameter);
  return fmt::format("quern bench {} --mode {} --sweep {}={}{} --provider {} --metric {}{} --seed {} --device {}", op.id, name(r.mode),
                     point.x, point.text(op, point.x), fixed.empty() ? "" : " --set " + fixed, r.provider, name(metric),
                     run.hot ? " --hot" : "", run.seed, run.device);
}

/// The meaning of an axis in the glossary, else its name.
std::string label_of(const std::string& axis) {
  for (const GlossaryWord& g : kGlossary)
    if (axis == g.word) return g.meaning;
  return axis;
}

std::vector<Field> row_from(const std::map<std::string, std::string>& texts) {
  std::vector<Field> row;
  for (const Column& c : kColumns) {
    const auto at = texts.find(c.name);
    row.push_back({c.name, at == texts.end() ? "" : at->second, c.number});
  }
  return row;
}

[[noreturn]] void fail_file(const std::string& path, const std::string& why, const std::string& expected) {
  throw Error(ErrorKind::value, "", "csv", "is '" + path + "', " + why, expected);
}

}  // namespace

const char* name(Metric metric) { return metric == Metric::speed ? "speed" : "memory"; }

Metric metric_from_name(const std::string& text) {
  for (const Metric metric : {Metric::speed, Metric::memory})
    if (text == name(metric)) return metric;
  throw Error(ErrorKind::value, "", "metric", "is '" + text + "'", "one of speed, memory");
}

SweepRun sweep_run(const Device& device, const std::string& named, const std::string& version, const SweepOptions& options) {
  char stamp[32];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &utc);
  const bool emulated = device.info().emulated;
  return {.gpu_name = std::string(device.info().name) + (emulated ? " (emulated)" : ""),
          .arch = device.info().arch.name(),
          .version = version,
          .timestamp = stamp,
          .device = !named.empty() ? named
                    : emulated     ? "emu"
                                   : "cuda:" + std::to_string(device.id().index),
          .hot = !options.timing.cold,
          .seed = options.seed};
}

bool is_sweep_header(const std::string& line) { return line.rfind(std::string(kColumns[0].name) + ",", 0) == 0; }

std::string key_of(const std::vector<Field>& row) {
  std::string key;
  for (const Field& f : row)
    for (const Column& c : kColumns)
      if (c.key && f.column == c.name) key += f.text + '\x1f';
  return key;
}

std::vector<Field> row_of(const Op& op, const SweepPoint& point, const SweepResult& r, Metric metric, const SweepRun& run) {
  const bool speed = metric == Metric::speed;
  const double scale = speed ? 1e-3 : 1.0 / (1 << 20);
  const double memory = max_of(r.memory_bytes, 0.0);
  const double y[3] = {speed ? r.timing.median_us : memory, speed ? r.timing.p20_us : memory, speed ? r.timing.p80_us : memory};
  const bool floor = speed && r.timed() && r.floor_us > 0;
  return row_from({{"kernel_name", op.id},
                   {"kernel_provider", r.provider},
                   {"kernel_operation_mode", name(r.mode)},
                   {"metric_name", name(metric)},
                   {"metric_unit", speed ? "ms" : "MB"},
                   {"x_name", point.x},
                   {"x_label", label_of(point.x)},
                   {"x_value", point.text(op, point.x)},
                   {"y_value_50", figure(y[0] * scale)},
                   {"y_value_20", figure(y[1] * scale)},
                   {"y_value_80", figure(y[2] * scale)},
                   {"extra_benchmark_config_str", config_text(op, point, run)},
                   {"gpu_name", run.gpu_name},
                   {"timestamp", run.timestamp},
                   {"version", run.version},
                   {"arch", run.arch},
                   {"dtype", dtype_name(op, point.given)},
                   {"spec", r.spec},
                   {"bytes", figure(speed ? r.cost.bytes : r.planned_bytes)},
                   {"flops", speed ? figure(r.cost.flops) : ""},
                   {"sol_ms", floor ? figure(r.floor_us * 1e-3) : ""},
                   {"pct_sol", floor ? figure(100 * r.floor_us / r.timing.median_us) : ""},
                   {"repro", repro_of(op, point, r, metric, run)},
                   {"sheet_ms", speed && r.timed() ? figure(r.sheet_us * 1e-3) : ""},
                   {"timer", speed ? r.timing.timer : ""}});
}

SweepFile::SweepFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  if (!std::filesystem::exists(path_)) {
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    if (!folder.empty() && !std::filesystem::is_directory(folder))
      fail_file(path_, "whose folder is not there", "a file that can be written");
    return;
  }
  const std::optional<std::string> text = read_regular_file(path_);
  if (!text) fail_file(path_, "which cannot be read", "a CSV file of sweeps");
  const std::vector<std::vector<std::string>> lines = parse_csv(*text, path_);
  if (lines.empty()) return;
  const std::vector<std::string>& header = lines[0];
  for (size_t i = 0; i < header.size() || i < kFirst; ++i) {
    const bool known =
        i < header.size() &&
        (i < kFirst ? header[i] == kColumns[i].name
                    : std::any_of(std::begin(kColumns), std::end(kColumns), [&](const Column& c) { return header[i] == c.name; }));
    if (!known)
      fail_file(path_,
                i < header.size() ? "whose column " + std::to_string(i + 1) + " is '" + header[i] + "'"
                                  : "which has " + std::to_string(header.size()) + " columns",
                std::string("the columns of a sweep, here ") + (i < kFirst ? kColumns[i].name : "one of those behind timestamp"));
  }
  for (size_t l = 1; l < lines.size(); ++l) {
    if (lines[l].size() != header.size())
      fail_file(path_, "which has " + std::to_string(lines[l].size()) + " fields in row " + std::to_string(l),
                std::to_string(header.size()));
    std::map<std::string, std::string> texts;
    for (size_t i = 0; i < header.size(); ++i) texts[header[i]] = lines[l][i];
    rows_.push_back(row_from(texts));
  }
}

bool SweepFile::has(const std::string& key) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const std::vector<Field>& row) { return key_of(row) == key; });
}

void SweepFile::put(const std::vector<Field>& row) {
  if (path_.empty()) return;
  const std::string key = key_of(row);
  const auto at = std::find_if(rows_.begin(), rows_.end(), [&](const std::vector<Field>& known) { return key_of(known) == key; });
  if (at != rows_.end()) *at = row;
  else rows_.push_back(row);
  write();
}

void SweepFile::remove(const std::string& key) {
  if (std::erase_if(rows_, [&](const std::vector<Field>& row) { return key_of(row) == key; }) > 0) write();
}

void SweepFile::write() const {
  std::string text = csv_header(row_from({}));
  for (const std::vector<Field>& row : rows_) text += csv_line(row);
  const std::string beside = path_ + "." + std::to_string(getpid());
  try {
    write_file(beside, text);
  } catch (const Error& e) { fail_file(path_, "which cannot be written: " + std::string(e.what()), "a file that can be written"); }
  if (std::rename(beside.c_str(), path_.c_str()) == 0) return;
  std::remove(beside.c_str());
  fail_file(path_, "which cannot be replaced", "a file that can be written");
}

}  // namespace quern::bench
