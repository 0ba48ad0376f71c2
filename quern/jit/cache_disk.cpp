// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/cache_disk.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
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
  return "/tmp/quern-" + std::to_string(getuid());
}

static const char* image_name(bool emulated) { return emulated ? "kernel.so" : "kernel.cubin"; }

std::string DiskCache::entry_folder(const KernelSpec& spec, const Digests& d) const {
  return root_ + "/" + spec.kernel->name + "." + d.identity + "." + d.provenance;
}

static Compiled parse(const std::string& folder, const std::string& text, const Digests& digests, const Target& target) {
  const auto meta = nlohmann::json::parse(text);
  if (meta.at("key") != digests.key_text) throw Error(ErrorKind::internal, "it belongs to another key");
  Compiled c;
  c.folder = folder;
  c.image_path = folder + "/" + image_name(target.emulated);
  const auto image = read_file(c.image_path);
  if (!image) throw Error(ErrorKind::internal, "its binary is missing");
  if (hash128_hex(*image) != meta.at("checksum")) throw Error(ErrorKind::internal, "its binary is damaged");
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

std::string DiskCache::begin() const {
  if (make_folders(root_)) {
    if (const std::string folder = make_private_folder(root_); !folder.empty()) return folder;
  }
  return {};
}

/// True when a published entry is whole and holds this key.
static bool whole(const std::string& folder, const Digests& d, const std::string& image) {
  const auto text = read_file(folder + "/meta.json"), bytes = read_file(folder + "/" + image);
  const auto meta = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
  return bytes && meta.is_object() && meta.value("key", "") == d.key_text && meta.value("checksum", "") == hash128_hex(*bytes);
}

std::string DiskCache::publish(const std::string& folder, const KernelSpec& spec, const Digests& d, const Compiled& c) const {
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
    // Somebody published first: both hold the same code. That entry stays, as its process may be about to open it.
    if (whole(target, d, std::filesystem::path(c.image_path).filename().string())) {
      remove_folder(folder);
      return target;
    }
    // A damaged one is moved away (a rename, so that a process that has it open keeps it) and ours takes its place.
    const std::string away = folder + ".old";
    if (std::rename(target.c_str(), away.c_str()) == 0) remove_folder(away);
  }
  log(LogLevel::warning, "cannot publish " + target + ": " + std::strerror(errno) + "; the kernel is used from " + folder);
  return folder;
}

}  // namespace quern::jit
