// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <sstream>

#include "quern/base/error.h"
#include "quern/base/fs.h"
#include "quern/base/hash.h"
#include "quern/base/log.h"

namespace quern::jit {

namespace {

struct Header {
  char magic[8];
  u64 index_offset, index_bytes;
  char index_digest[32];
};
constexpr char kMagic[] = "QUERNPK1";

/// Whole or nothing; pread, so that threads and forked children may share the descriptor.
bool read_at(int fd, u64 offset, char* into, u64 bytes) {
  while (bytes) {
    const ssize_t n = ::pread(fd, into, bytes, off_t(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    offset += u64(n), into += n, bytes -= u64(n);
  }
  return true;
}

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::value, "", "pack", path + " " + what, "a file that `quern cache pack` wrote");
}

}  // namespace

Pack Pack::read(const std::string& path) {
  Pack pack;
  pack.path_ = path;
  pack.fd_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (pack.fd_ < 0) fail(path, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat status = {};
  Header header;
  std::string index;
  const auto refuse = [&](const char* what) {
    ::close(pack.fd_);
    fail(path, what);
  };
  if (::fstat(pack.fd_, &status) != 0 || !S_ISREG(status.st_mode) ||
      !read_at(pack.fd_, 0, reinterpret_cast<char*>(&header), sizeof header) || std::memcmp(header.magic, kMagic, sizeof header.magic) != 0)
    refuse("is no pack");
  const u64 size = u64(status.st_size);
  if (header.index_offset > size || header.index_bytes > size - header.index_offset) refuse("is cut short");
  index.resize(header.index_bytes);
  if (!read_at(pack.fd_, header.index_offset, index.data(), index.size()) ||
      hash128_hex(index) != std::string(header.index_digest, sizeof header.index_digest))
    refuse("has a damaged index");
  std::istringstream lines(index);
  std::string name;
  for (Place p; lines >> name >> p.offset >> p.meta >> p.source >> p.image;) {
    if (!is_entry_name(name)) refuse("names what is no entry in its index");
    pack.index_[name] = p;
  }
  return pack;
}

const Pack* Pack::open(const std::string& path) {
  static std::mutex mutex;
  static auto* const opened = new std::map<std::string, std::unique_ptr<Pack>>;
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = opened->try_emplace(path);
  if (fresh) {
    try {
      at->second = std::make_unique<Pack>(read(path));
    } catch (const Error& e) { log(LogLevel::warning, std::string(e.what()) + "; it is not used"); }
  }
  return at->second.get();
}

EntryFiles Pack::files(const Place& p) const {
  EntryFiles f;
  u64 offset = p.offset;
  struct stat status = {};
  if (::fstat(fd_, &status) != 0) return f;
  for (const auto& [text, bytes] : {std::pair{&f.meta, p.meta}, {&f.source, p.source}, {&f.image, p.image}}) {
    if (bytes > u64(status.st_size)) return f;  // the file was cut since the index was read
    text->resize(bytes);
    if (!read_at(fd_, offset, text->data(), bytes)) text->clear();
    offset += bytes;
  }
  return f;
}

EntryFiles Pack::files(const std::string& name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? EntryFiles{} : files(at->second);
}

std::optional<EntryFiles> Pack::find(const Digests& d) const {
  const std::string prefix = d.prefix();
  for (auto at = index_.lower_bound(prefix); at != index_.end() && at->first.rfind(prefix, 0) == 0; ++at) {
    EntryFiles f = files(at->second);
    try {
      if (check_entry(f).key != d.key_text) throw Error(ErrorKind::internal, "it belongs to another key");
      return f;
    } catch (const Error& e) { log(LogLevel::warning, "entry " + at->first + " of the pack " + path_ + " is not used (" + e.what() + ")"); }
  }
  return std::nullopt;
}

std::vector<std::string> Pack::names() const {
  std::vector<std::string> all;
  for (const auto& [name, place] : index_) all.push_back(name);
  return all;
}

void write_pack(const std::string& path, const std::map<std::string, EntryFiles>& entries) {
  std::string bytes(sizeof(Header), '\0'), index;
  for (const auto& [name, f] : entries) {
    index += name + " " + std::to_string(bytes.size());
    for (const std::string* text : {&f.meta, &f.source, &f.image}) {
      index += " " + std::to_string(text->size());
      bytes += *text;
    }
    index += "\n";
  }
  Header header;
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  header.index_offset = bytes.size();
  header.index_bytes = index.size();
  std::memcpy(header.index_digest, hash128_hex(index).data(), sizeof header.index_digest);
  std::memcpy(bytes.data(), &header, sizeof header);
  const std::string beside = path + ".new." + std::to_string(getpid());
  bytes += index;
  try {
    write_file(beside, bytes);
  } catch (const Error&) {
    ::unlink(beside.c_str());
    throw;
  }
  if (::rename(beside.c_str(), path.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  ::unlink(beside.c_str());
  throw Error(ErrorKind::device, "cannot write " + path + ": " + why);
}

}  // namespace quern::jit
