// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace quern::cli {

Progress::Progress(long long total)
    : total_(total), terminal_(isatty(STDERR_FILENO) != 0), start_(std::chrono::steady_clock::now()), drawn_(start_) {
  draw();  // the first may take long
}

Progress::~Progress() { erase(); }

void Progress::erase() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void Progress::draw() {
  constexpr long long kWidth = 24;
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || total_ <= 0 || (shown_ && done_ < total_ && now - drawn_ < std::chrono::milliseconds(60))) return;
  drawn_ = now;
  const long long full = kWidth * done_ / total_;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::string bar;
  for (long long i = 0; i < kWidth; ++i) bar += i < full ? "#" : ".";
  const std::string left = seconds_left_ >= 0 ? fmt::format(", {:.0f}s left", seconds_left_) : "";
  std::string text = fmt::format("[{}] {}/{} {:.0f}s{} {}", bar, done_, total_, seconds, left, what_);
  if (text.size() > 110) text.resize(110);
  std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
  shown_ = true;
}

void Progress::step(const std::string& what, double seconds_left) {
  ++done_;
  what_ = what;
  seconds_left_ = seconds_left;
  draw();
}

void Progress::line(const std::string& text) {
  erase();
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace quern::cli
