// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/fs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "quern/base/error.h"

namespace quern {

/// Closes the descriptor.
static std::optional<std::string> read_all(int fd) {
  struct stat status = {};
  const bool sized = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  std::string bytes(sized ? size_t(status.st_size) + 1 : 4096, '\0');  // one more: the end is seen without growing
  size_t done = 0;
  for (;;) {
    const ssize_t n = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      ::close(fd);
      return std::nullopt;
    }
    if (n == 0) break;
    done += size_t(n);
    if (done == bytes.size()) bytes.resize(2 * bytes.size());
  }
  ::close(fd);
  bytes.resize(done);
  return bytes;
}

std::optional<std::string> read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return read_all(fd);
}

std::optional<std::string> read_regular_file(const std::string& path, size_t most) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat status = {};
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && size_t(status.st_size) <= most) return read_all(fd);
  ::close(fd);
  return std::nullopt;
}

namespace {

/// A write past the process's file size limit shall fail, not end the process: SIGXFSZ is for the thread that writes.
class FileSizeSignal {
 public:
  FileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileSizeSignal() {
    if (sigismember(&before_, SIGXFSZ)) return;
    const timespec now = {};
    while (sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {}
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  FileSizeSignal(const FileSizeSignal&) = delete;

 private:
  sigset_t signal_, before_;
};

}  // namespace

void write_file(const std::string& path, std::string_view bytes) {
  const FileSizeSignal blocked;
  const auto fail = [&] {
    const std::string why = std::strerror(errno);
    throw Error(ErrorKind::device, "cannot write " + path + ": " + why);
  };
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) fail();
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = errno;
      ::close(fd);
      errno = error;
      fail();
    }
    done += size_t(n);
  }
  if (::close(fd) != 0) fail();
}

bool make_folders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return std::filesystem::is_directory(path, error);
}

std::string make_private_folder(const std::string& prefix) {
  std::string path = prefix + "XXXXXX";
  return ::mkdtemp(path.data()) ? path : std::string();
}

void remove_folder(const std::string& path) noexcept {
  std::error_code error;
  std::filesystem::remove_all(path, error);
}

}  // namespace quern
