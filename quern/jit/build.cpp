// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/build.h"

#include <array>
#include <filesystem>
#include <mutex>

#include "quern/base/env.h"
#include "quern/base/error.h"
#include "quern/base/fs.h"
#include "quern/base/hash.h"
#include "quern/base/log.h"
#include "quern/base/subprocess.h"
#include "quern/jit/cache_disk.h"
#include "quern/jit/cache_hooks.h"
#include "quern/jit/cache_locks.h"
#include "quern/jit/cache_roots.h"
#include "quern/jit/compiler.h"
#include "quern/jit/compiler_host.h"
#include "quern/jit/denied_compilers.h"
#include "quern/jit/freeze.h"
#include "quern/jit/kernel_source.h"

namespace quern::jit {

/// "sm_90a", "the emulated device".
static std::string world_name(const Target& target) { return target.emulated ? "the emulated device" : target.arch.name(); }

/// QN_JIT_DUMP: source, log, binary and, where a disassembler is found, SASS, by the kernel's name.
static void dump(const KernelSpec& spec, const Target& target, const std::string& source, const Compiled& c) {
  const std::string folder = env_path(Env::jit_dump);
  if (folder.empty() || !make_folders(folder)) return;
  const std::string stem = folder + "/" + entry_name(spec) + (target.emulated ? "" : "." + target.arch.name());
  write_file(stem + ".cu", source);
  write_file(stem + ".log", c.log);
  if (target.emulated) return;
  if (c.image.empty()) return;  // it did not compile
  write_file(stem + ".ptx", c.ptx);
  write_file(stem + ".cubin", {c.image.data(), c.image.size()});
  for (const char* tool : {"cuobjdump", "/usr/local/cuda/bin/cuobjdump"}) {
    if (find_program(tool).empty()) continue;
    write_file(stem + ".sass", run_process({tool, "--dump-sass", stem + ".cubin"}).output);
    break;
  }
}

static void warn(const KernelSpec& spec, const Target& target, const Compiled& c) {
  const std::string where = print(spec) + " for " + target.arch.name();
  if (c.spill_bytes > 0) log(LogLevel::warning, where + " spills " + std::to_string(c.spill_bytes) + " bytes of registers");
  if (c.stack_bytes > 0) log(LogLevel::warning, where + " uses " + std::to_string(c.stack_bytes) + " bytes of local memory");
  if (c.serialised_wgmma) log(LogLevel::warning, where + ": wgmma is serialised (C7510)");
  if (c.ignored_setmaxnreg) log(LogLevel::warning, where + ": setmaxnreg is ignored (C7508)");
}

/// Calls `compile`, which fills c, and tells about it as the environment asks; also when it throws.
template <class F>
static void observed(const KernelSpec& spec, const Target& target, const std::string& source, Compiled& c, F compile) {
  try {
    compile();
  } catch (const Error& e) {
    c.log = e.what();
    c.image.clear();
    dump(spec, target, source, c);
    throw;
  }
  dump(spec, target, source, c);
  warn(spec, target, c);
  const std::string line = "compiled " + print(spec) + " with " + c.compiler + (target.emulated ? "" : " for " + target.arch.name()) +
                           " in " + std::to_string(int(c.compile_ms)) + " ms";
  if (env_flag(Env::jit_verbose)) log_always(line + "\n" + c.log);
  else log(LogLevel::call, line);
}

static std::vector<Header> views_of(const std::vector<Source>& sources) {
  std::vector<Header> views;
  for (const Source& s : sources) views.push_back({s.name.c_str(), s.text.c_str()});
  return views;
}

/// A cubin is bytes in memory, so the kernel works whatever becomes of the files.
static Compiled build_cubin(const KernelSpec& spec, const Target& target, const KernelSource& source, const DiskCache& cache, Digests d,
                            bool replace) {
  Compiled c;
  c.entry = source.entry;
  observed(spec, target, source.text, c, [&] {
    const std::vector<Header> views = views_of(source.headers);
    CompileRequest request;
    request.name = source.name;
    request.source = source.text;
    request.headers = views;
    request.arch = target.arch;
    request.debug = debug_level();
    request.want_ptx = !env_path(Env::jit_dump).empty();
    CompileResult result = gpu_compiler(target.arch).compile(request);
    // A candidate that does not load gives way to the next: the entry names the compiler that made it.
    d.provenance = short_provenance(result.provenance);
    static_cast<CompileFacts&>(c) = result;
    c.image = std::move(result.image);
    c.log = result.log;
    c.ptx = result.ptx;
    c.compiler = result.compiler + " " + result.version;
    if (const std::string why = denial_of(result.version); !why.empty()) throw Error(ErrorKind::compile, c.compiler + " " + why);
  });
  c.provenance = d.provenance;
  c.folder = cache.put(d, meta_of(spec, target, d, c), source.text, {c.image.data(), c.image.size()}, replace);
  c.kept = c.folder == cache.folder_of(d);
  if (!c.folder.empty()) c.image_path = c.folder + "/" + image_name(false);
  return c;
}

static void compile_shared_object(const Target& target, const KernelSource& source, Compiled& c) {
  write_file(c.folder + "/kernel.cu", source.text);
  write_headers(c.folder + "/source", views_of(source.headers));
  const HostCompiler::Result result = host_compiler(target).compile(c.folder, source.name, mode_of(target));
  c.log = result.log;
  c.compile_ms = result.milliseconds;
  c.compiler = host_compiler(target).path();
  remove_folder(c.folder + "/source");
  std::error_code error;
  std::filesystem::remove(c.folder + "/kernel.o", error);
  const auto image = read_file(c.image_path);
  if (!image) throw Error(ErrorKind::device, "the compiler left no " + c.image_path);
  c.image.assign(image->begin(), image->end());
}

/// A disk that is full, or a limit of the process, makes compilers fail in words of their own.
static bool has_room(const std::string& folder) {
  try {
    write_file(folder + "/room", std::string(1 << 20, '\0'));
    return true;
  } catch (const Error&) { return false; }
}

/// A host compiler writes files: beside the entries where that is possible, else into a folder of this process.
static Compiled build_shared_object(const KernelSpec& spec, const Target& target, const KernelSource& source, const DiskCache& cache,
                                    const Digests& d, bool replace) {
  host_compiler(target);  // no compiler is an error before anything is written
  Compiled c;
  c.entry = "quern_entry";
  c.provenance = d.provenance;
  const auto compile_in = [&](const std::string& folder) {
    c.folder = folder;
    c.image_path = folder + "/" + image_name(true);
    try {
      compile_shared_object(target, source, c);
      return true;
    } catch (const Error&) {
      const bool room = has_room(folder);
      remove_folder(folder);
      if (room) throw;
      return false;
    }
  };
  observed(spec, target, source.text, c, [&] {
    const std::string beside = cache.begin();
    if (!beside.empty() && compile_in(beside)) return;
    log(LogLevel::warning,
        "the cache folder " + cache.root() + (beside.empty() ? " cannot be written" : " is full") + "; compiled kernels are not kept");
    if (!compile_in(folder_of_process()))
      throw Error(ErrorKind::device, "neither the cache folder " + cache.root() + " nor /tmp has room for a kernel");
    c.kept = false;
  });
  if (!c.kept) return c;
  reached(CacheStep::image_written);
  c.folder = cache.publish(c.folder, d, meta_of(spec, target, d, c), replace);
  c.kept = c.folder == cache.folder_of(d);
  c.image_path = c.folder + "/" + image_name(true);
  return c;
}

/// Where a look-up looks: "/a, /b.pack, /cache".
static std::string places() {
  std::string all;
  for (const std::string& root : read_only_roots()) all += root + ", ";
  return all + cache_folder();
}

static Compiled compile_and_publish(const KernelSpec& spec, const Target& target, const KernelSource& source, const Digests& d,
                                    bool replace) {
  if (frozen())
    throw Error(ErrorKind::frozen, print(spec) + " for " + world_name(target) + " is not in the cache (" + d.folder_name() + " in " +
                                       places() + ") and would be compiled, which is frozen");
  const DiskCache cache(cache_folder());
  return target.emulated ? build_shared_object(spec, target, source, cache, d, replace)
                         : build_cubin(spec, target, source, cache, d, replace);
}

/// The keys under which a kernel may lie: where no compiler is known, that of each kind of compiler.
static std::vector<Digests> keys_of(const KernelSource& source, const Target& target) {
  std::vector<Digests> keys = {digests(source, target)};
  if (target.emulated && keys[0].provenance.empty() && target.host_compiler.empty()) {
    Target clang = target;
    clang.host_compiler = "clang++";
    keys.push_back(digests(source, clang));
  }
  return keys;
}

/// Other processes that want the same entry wait, where locks work; none is needed to be right.
class CompileScope {
 public:
  explicit CompileScope(const Digests& d) : locks_(*made(cache_folder())), entry_(d.identity + d.provenance) {
    locked_ = locks_.begin_compile(entry_);
    reached(CacheStep::locked);
  }
  ~CompileScope() {
    if (locked_) locks_.end_compile(entry_);
  }
  CompileScope(const CompileScope&) = delete;

 private:
  /// Of a folder that is there. A pointer: g++ 14 takes a reference for one to the argument.
  static const CacheLocks* made(const std::string& root) {
    make_folders(root);
    return &CacheLocks::of(root);
  }
  const CacheLocks& locks_;
  const std::string entry_;
  bool locked_ = false;
};

/// Threads that want the same kernel wait for one compile; different kernels rarely share a lock and compile in parallel.
static std::mutex& lock_of(const Digests& d) {
  static std::array<std::mutex, 64> locks;
  return locks[hash64(d.identity.data(), d.identity.size()) % locks.size()];
}

/// In any root.
static std::optional<Compiled> find_kept(const std::vector<Digests>& keys, const std::set<std::string>& bad) {
  for (const Digests& key : keys)
    if (auto found = find_read_only(key, bad)) return found;
  const DiskCache cache(cache_folder());
  for (const Digests& key : keys)
    if (auto found = cache.find(key, bad)) return found;
  return std::nullopt;
}

/// Unless another process was first. A good entry keeps its place, one of `bad` gives way.
static Compiled compile_alone(const KernelSpec& spec, const Target& target, const KernelSource& source, const std::vector<Digests>& keys,
                              const std::set<std::string>& bad) {
  std::optional<CompileScope> scope;
  if (!frozen()) {
    scope.emplace(keys[0]);
    const DiskCache cache(cache_folder());
    for (const Digests& key : keys)
      if (auto found = cache.find(key, bad)) return *found;
  }
  return compile_and_publish(spec, target, source, keys[0], !bad.empty());
}

Compiled build(const KernelSpec& spec, const Target& target, bool fresh) {
  const KernelSource source = read_source(spec, target.emulated);  // once: the wait for the lock may be long
  const std::vector<Digests> keys = keys_of(source, target);
  const Digests& d = keys[0];
  const std::lock_guard lock(lock_of(d));
  if (fresh) return compile_and_publish(spec, target, source, d, false);
  if (auto found = find_kept(keys, {})) return *found;  // waits for nobody
  return compile_alone(spec, target, source, keys, {});
}

Compiled rebuild(const KernelSpec& spec, const Target& target, const std::set<std::string>& bad) {
  const KernelSource source = read_source(spec, target.emulated);
  const std::vector<Digests> keys = keys_of(source, target);
  const std::lock_guard lock(lock_of(keys[0]));
  if (auto found = find_kept(keys, bad)) return *found;
  return compile_alone(spec, target, source, keys, bad);
}

}  // namespace quern::jit
