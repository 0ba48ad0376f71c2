// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/log.h"

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <mutex>

#include "quern/base/env.h"
#include "quern/base/error.h"

namespace quern {

namespace {

constexpr size_t kSuspects = 4;

std::atomic<int> g_level = -1;  // -1: QN_LOG_LEVEL was not read yet

std::mutex g_sink_mutex;
std::shared_ptr<const LogSink>& sink() {
  static std::shared_ptr<const LogSink>* const kept = new std::shared_ptr<const LogSink>;
  return *kept;
}
std::shared_ptr<const LogSink> current_sink() {
  const std::lock_guard lock(g_sink_mutex);
  return sink();
}

std::mutex g_calls_mutex;
std::deque<std::string>& calls() {
  static std::deque<std::string>* const last = new std::deque<std::string>;
  return *last;
}

[[gnu::cold, gnu::noinline]] int read_level() {
  const int level = int(env_int(Env::log_level, 0));
  g_level.store(level, std::memory_order_relaxed);
  return level;
}

std::string line_of(const std::string& text) {
  timeval now;
  gettimeofday(&now, nullptr);
  tm local;
  localtime_r(&now.tv_sec, &local);
  char time[32];
  strftime(time, sizeof time, "%H:%M:%S", &local);
  return std::string("[quern ") + time + " " + std::to_string(getpid()) + "] " + text + "\n";
}

void write_line(int file, const std::string& text) {
  const std::string line = line_of(text);
  // One write: lines of many threads and processes do not mix. There is nobody to tell when it fails.
  [[maybe_unused]] const ssize_t written = ::write(file, line.data(), line.size());
}

/// "%i" becomes the process id.
std::string with_process_id(std::string path) {
  for (size_t at; (at = path.find("%i")) != std::string::npos;) path.replace(at, 2, std::to_string(getpid()));
  return path;
}

/// What env_path says of a path that cannot be one goes to stderr with the log: a line of the log is no reason for a call to fail.
std::string wanted_destination() {
  try {
    return env_path(Env::log_dest);
  } catch (const Error& e) {
    write_line(STDERR_FILENO, std::string("warning: ") + e.what() + "; the log goes to stderr");
    return "";
  }
}

int open_destination() {
  const std::string wanted = wanted_destination();
  if (wanted.empty() || wanted == "stderr") return STDERR_FILENO;
  if (wanted == "stdout") return STDOUT_FILENO;
  const std::string path = with_process_id(wanted);
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file >= 0) return file;
  write_line(STDERR_FILENO, "warning: QN_LOG_DEST: cannot write " + path + ": " + std::strerror(errno) + "; the log goes to stderr");
  return STDERR_FILENO;
}

}  // namespace

bool log_enabled(LogLevel level) {
  const int enabled = g_level.load(std::memory_order_relaxed);
  return int(level) <= (enabled >= 0 ? enabled : read_level());
}

static void write_log(LogLevel level, const std::string& text) {
  if (const std::shared_ptr<const LogSink> to = current_sink(); to && (*to)(level, text)) return;
  static const int file = open_destination();
  write_line(file, (level == LogLevel::warning ? "warning: " : "") + text);
}

void log(LogLevel level, const std::string& text) {
  if (log_enabled(level)) write_log(level, text);
}

void log_always(const std::string& text) { write_log(LogLevel::call, text); }

void set_log_level(int level) {
  if (level < 0 || level > 5) throw Error(ErrorKind::value, "", "log level", "is " + std::to_string(level), "0 to 5");
  g_level.store(level, std::memory_order_relaxed);
}

void set_log_sink(LogSink to) {
  std::shared_ptr<const LogSink> kept = to ? std::make_shared<const LogSink>(std::move(to)) : nullptr;
  const std::lock_guard lock(g_sink_mutex);
  sink().swap(kept);
}

void remember_call(const std::string& text) {
  const std::lock_guard lock(g_calls_mutex);
  if (calls().size() == kSuspects) calls().pop_back();
  calls().push_front(text);
}

std::string suspects() {
  const std::lock_guard lock(g_calls_mutex);
  if (calls().empty())
    return "an earlier launch of this process is at fault; set QN_LOG_LEVEL=1 to be told the last calls, or QN_TRACE=folder to "
           "be told the call and to have its data";
  std::string text = "an earlier launch of this process is at fault; the last calls were, newest first: ";
  for (size_t i = 0; i < calls().size(); ++i) text += (i ? ", " : "") + calls()[i];
  return text;
}

}  // namespace quern
