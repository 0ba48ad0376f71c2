// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/csv.h"

#include <fmt/format.h>

#include <cmath>

namespace quern::bench {

namespace {

/// Six digits; nothing for figures that were not measured.
Field number(const char* column, double value) {
  const bool known = value != 0 && std::isfinite(value);
  return {column, known ? fmt::format("{:.6g}", value) : "", true};
}

std::string quoted(const std::string& s) {
  if (s.find_first_of(",\"\n\r") == std::string::npos) return s;
  std::string q = "\"";
  for (const char c : s) q += c == '"' ? "\"\"" : std::string(1, c);
  return q + "\"";
}

template <class Text>
std::string line_of(const std::vector<Field>& fields, const Text& text) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) line += (i ? "," : "") + quoted(text(fields[i]));
  return line + "\n";
}

}  // namespace

std::vector<Field> fields_of(const BenchResult& r, const std::string& version) {
  const Timing& t = r.timing;
  Field error = number("error", r.error);
  if (r.timed() && std::isfinite(r.error)) error.text = fmt::format("{:.6g}", r.error);  // 0 is a figure here
  return {{"op", r.op},
          {"case", r.which},
          {"kernel", r.kernel},
          {"device", r.device},
          {"timer", t.timer},
          {"cold", r.cold ? "1" : "0", true},
          {"runs", std::to_string(t.runs), true},
          number("median_us", t.median_us),
          number("p10_us", t.p10_us),
          number("p90_us", t.p90_us),
          number("bytes", r.cost.bytes),
          number("flops", r.cost.flops),
          number("floor_us", r.floor_us),
          number("share_of_floor", r.share_of_floor()),
          number("copy_us", r.copy_us),
          number("share_of_copy", r.share_of_copy()),
          number("tflops", r.tflops()),
          number("gbps", r.gbps()),
          error,
          {"provider", r.provider},
          number("sm_clock_mhz", r.sm_clock_mhz),
          {"version", version},
          {"ok", r.ok ? "1" : "0", true},
          {"checked", r.checked},
          number("host_us", r.host.call_us),
          number("launch_us", r.host.launch_us),
          {"message", r.message}};
}

std::vector<std::vector<std::string>> parse_csv(const std::string& text, const std::string& path) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> line = {""};
  bool quoted = false, any = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') line.back() += text[++i];
    else if (c == '"') quoted = !quoted, any = true;
    else if (quoted) line.back() += c;
    else if (c == ',') line.emplace_back(), any = true;
    else if (c == '\n') {
      if (any) lines.push_back(line);
      line = {""}, any = false;
    } else if (c != '\r') line.back() += c, any = true;
  }
  if (quoted) throw Error(ErrorKind::value, "", "csv", "is " + path + ", in which a quote does not end", "a CSV file");
  if (any) lines.push_back(line);
  return lines;
}

std::string csv_header(const std::vector<Field>& fields) {
  return line_of(fields, [](const Field& f) { return f.column; });
}
std::string csv_line(const std::vector<Field>& fields) {
  return line_of(fields, [](const Field& f) { return f.text; });
}

}  // namespace quern::bench
