// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <chrono>
#include <string>

namespace quern::cli {

/// How far a command has come: on a terminal one bar that is redrawn on stderr, otherwise nothing but what `line`
/// prints.
class Progress {
 public:
  explicit Progress(long long total);
  ~Progress();
  Progress(const Progress&) = delete;
  /// One more is done; `what` is shown beside the bar, and the seconds that are left where they are known.
  void step(const std::string& what = {}, double seconds_left = -1);
  bool terminal() const { return terminal_; }
  /// A line of output on stdout, above the bar.
  void line(const std::string& text);

 private:
  void draw();
  void erase();
  long long total_, done_ = 0;
  bool terminal_, shown_ = false;
  std::string what_;
  double seconds_left_ = -1;
  std::chrono::steady_clock::time_point start_, drawn_;
};

}  // namespace quern::cli
