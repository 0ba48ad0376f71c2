// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// quern cache: what lies in the cache folders, whether it is whole, and packs of it.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "quern/cli/commands.h"
#include "quern/cli/table.h"
#include "quern/jit/cache_disk.h"
#include "quern/jit/cache_locks.h"
#include "quern/jit/cache_roots.h"
#include "quern/jit/pack.h"

namespace quern::cli {

using Json = nlohmann::ordered_json;

namespace {

bool is_folder(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// How much of an entry is read: what it says of itself; all of it, compared with its checksums; and kept after that.
enum class Depth { meta, whole, contents };

/// One entry of one root, judged.
struct Item {
  std::string root, name;
  i64 bytes = 0, idle_seconds = -1;  ///< -1: packs do not know
  jit::EntryFiles files;
  jit::EntryMeta meta;
  std::string problem;  ///< why it is not used; empty: it is whole
};

void judge(Item& item, Depth depth) {
  try {
    item.meta = jit::parse_meta(item.files.meta);
    if (depth != Depth::meta) jit::check_whole_entry(item.files);
    if (jit::digests_of(item.meta).folder_name() != item.name) throw Error(ErrorKind::internal, "it is not the entry of its name");
  } catch (const Error& e) { item.problem = e.what(); }
  if (depth != Depth::contents) item.files = {};
}

/// All entries of a folder or pack.
std::vector<Item> items_of(const std::string& root, Depth depth) {
  std::vector<Item> items;
  if (is_folder(root)) {
    const jit::DiskCache cache(root, true);
    for (const jit::EntryStat& e : cache.list()) {
      items.push_back(
          {root, e.name, e.bytes, e.idle_seconds, depth == Depth::meta ? cache.meta_file(e.name) : cache.files(e.name), {}, {}});
      judge(items.back(), depth);
    }
  } else {
    const jit::Pack pack = jit::Pack::read(root);
    for (const std::string& name : pack.names()) {
      Item item{root, name, 0, -1, pack.files(name)};
      item.bytes = i64(item.files.meta.size() + item.files.source.size() + item.files.image.size());
      judge(item, depth);
      items.push_back(std::move(item));
    }
  }
  return items;
}

/// The roots in the order of a look-up. A missing one is nothing: a look-up says so.
std::vector<std::string> roots() {
  std::vector<std::string> all = jit::read_only_roots();
  all.push_back(jit::cache_folder());
  std::erase_if(all, [](const std::string& root) {
    struct stat status;
    return ::stat(root.c_str(), &status) != 0;
  });
  return all;
}

std::vector<Item> all_items(Depth depth) {
  std::vector<Item> all;
  for (const std::string& root : roots())
    for (Item& item : items_of(root, depth)) all.push_back(std::move(item));
  return all;
}

Json to_json(const Item& item) {
  Json j = {{"root", item.root}, {"name", item.name}, {"bytes", item.bytes}};
  if (item.idle_seconds >= 0) j["idle_seconds"] = item.idle_seconds;
  if (item.problem.empty()) {
    j["kernel"] = item.meta.kernel;
    j["target"] = item.meta.target;
    j["compiler"] = item.meta.compiler;
    j["compile_ms"] = item.meta.compile_ms;
  } else {
    j["problem"] = item.problem;
  }
  return j;
}

std::string duration(i64 seconds) {
  if (seconds < 0) return "";
  if (seconds < 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} days", seconds / 86400);
}

int ls(bool json) {
  const std::vector<Item> items = all_items(Depth::meta);
  if (json) {
    Json list = Json::array();
    for (const Item& item : items) list.push_back(to_json(item));
    std::puts(list.dump(2).c_str());
    return kRight;
  }
  for (const std::string& root : roots()) {
    Table table({"kernel", "target", "bytes", "unused for", "compiler"});
    i64 bytes = 0;
    for (const Item& item : items) {
      if (item.root != root) continue;
      bytes += item.bytes;
      const bool whole = item.problem.empty();
      table.add({whole ? item.meta.kernel : item.name, item.meta.target, std::to_string(item.bytes), duration(item.idle_seconds),
                 whole ? item.meta.compiler : item.problem});
    }
    fmt::print("{}: {} kernels, {:.1f} MB\n", root, table.size(), double(bytes) / 1e6);
    if (table.size()) std::fputs(table.text().c_str(), stdout);
  }
  return kRight;
}

int verify(bool json) {
  Json damaged = Json::array();
  const std::vector<Item> items = all_items(Depth::whole);
  for (const Item& item : items) {
    if (item.problem.empty()) continue;
    if (!json) fmt::print("damaged {}/{}: {}\n", item.root, item.name, item.problem);
    damaged.push_back(to_json(item));
  }
  const size_t count = damaged.size();
  if (json) std::puts(Json{{"entries", items.size()}, {"damaged", damaged}}.dump(2).c_str());
  else
    fmt::print("{} kernels, {} damaged{}\n", items.size(), count,
               count ? " (never used: compiled again when needed; `quern cache prune` removes them)" : "");
  return count ? kWrong : kRight;
}

int report_removed(const char* what, int count, bool json) {
  if (json) std::puts(Json{{"removed", count}}.dump().c_str());
  else fmt::print("{} {} kernels from {}\n", what, count, jit::cache_folder());
  return kRight;
}

int prune(const CacheCommandOptions& o) {
  const jit::DiskCache cache(jit::cache_folder());
  int count = 0;
  cache.remove_abandoned();
  for (const Item& item : is_folder(cache.root()) ? items_of(cache.root(), Depth::whole) : std::vector<Item>{}) {
    const bool old = o.idle_days >= 0 && item.idle_seconds >= o.idle_days * 86400 && item.idle_seconds >= jit::kFreshSeconds &&
                     !jit::CacheLocks::of(cache.root()).in_use(item.name);
    if (old || !item.problem.empty()) count += cache.remove(item.name);
  }
  count += cache.evict(o.limit_mb >= 0 ? i64(o.limit_mb) << 20 : jit::cache_limit_bytes());
  return report_removed("pruned", count, o.json);
}

int clear(bool json) {
  const jit::DiskCache cache(jit::cache_folder());
  int count = 0;
  cache.remove_abandoned();
  for (const jit::EntryStat& e : cache.list())
    if (!jit::CacheLocks::of(cache.root()).in_use(e.name)) count += cache.remove(e.name);
  return report_removed("removed", count, json);
}

/// The target to pack: the one asked for, else the only one there is.
std::string target_of(const std::vector<Item>& items, const std::string& wanted) {
  std::set<std::string> known;
  for (const Item& item : items)
    if (item.problem.empty()) known.insert(item.meta.target);
  const std::string target = wanted.empty() || wanted == "emu" ? wanted : Arch::parse(wanted).name();
  if (target.empty() && known.size() == 1) return *known.begin();
  if (known.count(target)) return target;
  throw Error(ErrorKind::value, "", "arch", target.empty() ? "is not given" : "is " + target,
              known.empty() ? "a cache that holds kernels"
                            : fmt::format("one of those that the cache has kernels for: {}", fmt::join(known, ", ")));
}

int pack(const CacheCommandOptions& o) {
  const std::vector<Item> items = all_items(Depth::contents);
  const std::string target = target_of(items, o.arch);
  std::map<std::string, jit::EntryFiles> entries;
  i64 bytes = 0;
  int damaged = 0;
  for (const Item& item : items) {
    if (!item.problem.empty()) {
      fmt::print(stderr, "left out {}/{}: {}\n", item.root, item.name, item.problem);
      ++damaged;
    } else if (item.meta.target == target && entries.emplace(item.name, item.files).second) {
      bytes += item.bytes;
    }
  }
  jit::write_pack(o.file, entries);
  if (o.json)
    std::puts(
        Json{{"file", o.file}, {"target", target}, {"kernels", entries.size()}, {"bytes", bytes}, {"damaged", damaged}}.dump().c_str());
  else fmt::print("packed {} kernels for {} into {}, {:.2f} MB\n", entries.size(), target, o.file, double(bytes) / 1e6);
  return damaged ? kWrong : kRight;
}

int unpack(const CacheCommandOptions& o) {
  const jit::DiskCache cache(jit::cache_folder());
  int count = 0, damaged = 0;
  std::set<std::string> whole;
  if (is_folder(cache.root()))
    for (const Item& item : items_of(cache.root(), Depth::whole))
      if (item.problem.empty()) whole.insert(item.name);
  for (const Item& item : items_of(o.file, Depth::contents)) {
    if (!item.problem.empty()) {
      fmt::print(stderr, "left out {}: {}\n", item.name, item.problem);
      ++damaged;
      continue;
    }
    if (whole.count(item.name)) continue;
    const jit::Digests d = jit::digests_of(item.meta);
    if (cache.put(d, item.meta, item.files.source, item.files.image, false) != cache.folder_of(d))
      throw Error(ErrorKind::device, "cannot write " + cache.root());
    ++count;
  }
  if (o.json) std::puts(Json{{"unpacked", count}, {"damaged", damaged}}.dump().c_str());
  else fmt::print("unpacked {} kernels into {}\n", count, cache.root());
  return damaged ? kWrong : kRight;
}

}  // namespace

int cache(const CacheCommandOptions& o) {
  if (o.action == "ls") return ls(o.json);
  if (o.action == "verify") return verify(o.json);
  if (o.action == "prune") return prune(o);
  if (o.action == "clear") return clear(o.json);
  return o.action == "pack" ? pack(o) : unpack(o);
}

}  // namespace quern::cli
