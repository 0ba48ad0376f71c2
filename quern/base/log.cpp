// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/log.h"

#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

#include "quern/base/env.h"

namespace quern {

bool log_enabled(LogLevel level) {
  static const int enabled = int(env_int(Env::log_level, 0));
  return int(level) <= enabled;
}

void log(LogLevel level, const std::string& text) {
  if (log_enabled(level)) log_always((level == LogLevel::warning ? "warning: " : "") + text);
}

void log_always(const std::string& text) {
  timeval now;
  gettimeofday(&now, nullptr);
  tm local;
  localtime_r(&now.tv_sec, &local);
  char time[32];
  strftime(time, sizeof time, "%H:%M:%S", &local);
  const std::string line = std::string("[quern ") + time + " " + std::to_string(getpid()) + "] " +
                           text + "\n";
  fwrite(line.data(), 1, line.size(), stderr);  // one write: lines of many processes do not mix
}

}  // namespace quern
