// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/cache_disk.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "quern/base/env.h"
#include "quern/base/error.h"
#include "quern/base/fs.h"
#include "quern/base/hash.h"
#include "quern/base/log.h"

namespace quern::jit {

std::string cache_folder() {
  if (const std::string wanted = env(Env::cache_dir); !wanted.empty()) return wanted;
  if (const std::string user = user_cache_folder(); !user.empty()) return user;
  // No home: a folder in /tmp, if it is ours alone. Somebody else's could hold kernels of theirs.
  const std::string shared = "/tmp/quern-" + std::to_string(getuid());
  ::mkdir(shared.c_str(), 0700);
  struct stat status;
  const bool ours = ::lstat(shared.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
                    (status.st_mode & 022) == 0;
  static const std::string kept = ours ? shared : make_private_folder("/tmp/quern.");
  return kept;
}

static const char* image_name(bool emulated) { return emulated ? "kernel.so" : "kernel.cubin"; }

std::string DiskCache::entry_folder(const KernelSpec& spec, const Digests& d) const {
  return root_ + "/" + spec.kernel->name + "." + d.identity + "." + d.provenance;
}

static Compiled parse(const std::string& folder, const std::string& text, const Digests& digests, const Target& target) {
  const auto meta = nlohmann::json::parse(text);
  if (meta.at("key").get<std::string>() != digests.key_text) throw Error(ErrorKind::internal, "it belongs to another key");
  Compiled c;
  c.folder = folder;
  c.image_path = folder + "/" + image_name(target.emulated);
  const auto image = read_file(c.image_path);
  if (!image) throw Error(ErrorKind::internal, "its binary is missing");
  if (hash128_hex(*image) != meta.at("checksum").get<std::string>()) throw Error(ErrorKind::internal, "its binary is damaged");
  if (!target.emulated) c.image.assign(image->begin(), image->end());
  c.entry = meta.at("entry");
  c.compile_ms = meta.at("compile_ms");
  c.registers = meta.at("registers");
  c.spill_bytes = meta.at("spill_bytes");
  c.stack_bytes = meta.at("stack_bytes");
  c.serialised_wgmma = meta.at("serialised_wgmma");
  c.ignored_setmaxnreg = meta.at("ignored_setmaxnreg");
  c.from_cache = true;
  return c;
}

std::optional<Compiled> DiskCache::find(const KernelSpec& spec, const Digests& d, const Target& target) const {
  const std::string folder = entry_folder(spec, d);
  const auto text = read_file(folder + "/meta.json");
  std::error_code error;
  if (!text && !std::filesystem::exists(folder, error)) return std::nullopt;
  try {
    if (!text) throw Error(ErrorKind::internal, "meta.json is missing");
    return parse(folder, *text, d, target);
  } catch (const std::exception& e) {
    log(LogLevel::warning, "cache entry " + folder + " is not used (" + e.what() + "); compiling again");
    return std::nullopt;
  }
}

/// Builds happen in ".quern-build.<pid>.XXXXXX" beside the entries.
static const char kBuildPrefix[] = ".quern-build.";

/// Removes what builds that were killed left behind: folders of our own name whose process is gone. Those of another machine
/// on a shared disk may be in use, so only ones older than a day go as well.
static void remove_abandoned(const std::string& root) {
  std::error_code error;
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  for (std::filesystem::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.rfind(kBuildPrefix, 0) != 0) continue;
    const int pid = std::atoi(name.c_str() + sizeof kBuildPrefix - 1);
    std::error_code ignored;
    const bool gone = pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
    if (gone && it->last_write_time(ignored) < old && !ignored) remove_folder(it->path().string());
  }
}

std::string DiskCache::begin() const {
  if (make_folders(root_)) {
    remove_abandoned(root_);
    if (const std::string folder = make_private_folder(root_ + "/" + kBuildPrefix + std::to_string(getpid()) + "."); !folder.empty()) {
      ::chmod(folder.c_str(), 0755);  // mkdtemp's 0700 would keep other users of a shared cache out
      return folder;
    }
  }
  return {};
}

std::string DiskCache::publish(const std::string& folder, const KernelSpec& spec, const Digests& d, const Target& t,
                               const Compiled& c) const {
  nlohmann::json meta;
  const auto image = read_file(c.image_path);
  meta["kernel"] = print(spec);
  meta["entry"] = c.entry;
  meta["key"] = d.key_text;
  meta["identity"] = d.identity;
  meta["provenance"] = d.provenance;
  meta["checksum"] = hash128_hex(image.value_or(""));
  meta["bytes"] = image.value_or("").size();
  meta["compile_ms"] = c.compile_ms;
  meta["registers"] = c.registers;
  meta["spill_bytes"] = c.spill_bytes;
  meta["stack_bytes"] = c.stack_bytes;
  meta["serialised_wgmma"] = c.serialised_wgmma;
  meta["ignored_setmaxnreg"] = c.ignored_setmaxnreg;
  try {
    write_file(folder + "/meta.json", meta.dump(1) + "\n");
  } catch (const Error& e) {
    log(LogLevel::warning, std::string(e.what()) + "; the kernel is used from " + folder + " and not kept");
    return folder;
  }
  const std::string target = entry_folder(spec, d);
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (std::rename(folder.c_str(), target.c_str()) == 0) return target;
    if (errno != EEXIST && errno != ENOTEMPTY) break;
    if (find(spec, d, t)) {  // somebody published first
      remove_folder(folder);
      return target;
    }
    // A damaged entry: move it away (a rename, so that a process that has it open keeps it) and put ours in its place.
    const std::string away = folder + ".old";
    if (std::rename(target.c_str(), away.c_str()) == 0) remove_folder(away);
  }
  log(LogLevel::warning, "cannot publish " + target + ": " + std::strerror(errno) + "; the kernel is used from " + folder);
  return folder;
}

}  // namespace quern::jit
