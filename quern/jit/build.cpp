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
#include "quern/jit/compiler.h"
#include "quern/jit/compiler_host.h"
#include "quern/jit/compiler_nvrtc.h"
#include "quern/jit/sources.h"

namespace quern::jit {

/// Raised when the rendered file, the function table of the emulated device or the entry's meaning changes.
static constexpr int kAbi = 1;

Target target_of(const Device& device) {
  Target target;
  target.arch = device.info().arch;
  target.emulated = device.info().emulated;
  target.checked = device.wants_memory_ranges();
  return target;
}

static int debug_level() { return int(env_int(Env::jit_debug, 0)); }

static const HostCompiler& host_compiler(const Target& target) {
  return target.host_compiler.empty() ? HostCompiler::standard() : HostCompiler::named(target.host_compiler);
}

static NvrtcCompiler& nvrtc(Arch arch) {
  if (NvrtcCompiler* compiler = NvrtcCompiler::get(arch)) return *compiler;
  throw Error(ErrorKind::compile, nvrtc_missing_text(arch));
}

Digests digests(const KernelSpec& spec, const Target& target) {
  Digests d;
  const std::string source = render(spec);
  d.key_text = "abi " + std::to_string(kAbi) + "\nkernel " + print(spec) + "\n";
  if (target.emulated) {
    // The kernel's code does not depend on the arch there, but plan's choices for it may: one entry serves all archs.
    for (const std::string& option : host_compiler(target).options(target.checked, debug_level())) d.key_text += option + " ";
    d.provenance = hash128_hex(host_compiler(target).provenance()).substr(0, 8);
  } else {
    d.key_text += target.arch.name() + " debug=" + std::to_string(debug_level());
    d.provenance = hash128_hex(nvrtc(target.arch).provenance()).substr(0, 8);
  }
  d.key_text += "\nkernel.cu " + hash128_hex(source) + "\n";
  for (const Source& header : included_sources(source, target.emulated)) d.key_text += header.name + " " + hash128_hex(header.text) + "\n";
  d.identity = hash128_hex(d.key_text).substr(0, 16);
  return d;
}

/// NVRTC: cubin bytes and statistics into `c`, the file into its folder.
static void compile_cubin(const KernelSpec& spec, const Target& target, const std::string& source, Compiled& c) {
  const std::vector<Source> headers = included_sources(source, false);
  std::vector<Header> views;
  for (const Source& h : headers) views.push_back({h.name.c_str(), h.text.c_str()});
  CompileRequest request;
  request.name = print(spec);
  request.source = source;
  request.headers = views;
  request.arch = target.arch;
  request.debug = debug_level();
  request.want_ptx = !env(Env::jit_dump).empty();
  CompileResult result = nvrtc(target.arch).compile(request);
  c.image = std::move(result.image);
  c.log = result.log;
  c.ptx = result.ptx;
  c.provenance = result.provenance;
  c.compile_ms = result.milliseconds;
  c.registers = result.registers;
  c.spill_bytes = result.spill_bytes;
  c.stack_bytes = result.stack_bytes;
  c.serialised_wgmma = result.serialised_wgmma;
  c.ignored_setmaxnreg = result.ignored_setmaxnreg;
  write_file(c.image_path, {c.image.data(), c.image.size()});
}

static void compile_shared_object(const KernelSpec& spec, const Target& target, const std::string& source, Compiled& c) {
  for (const Source& header : included_sources(source, true)) {
    const std::string path = c.folder + "/source/" + header.name;
    make_folders(std::filesystem::path(path).parent_path().string());
    write_file(path, header.text);
  }
  const HostCompiler::Result result = host_compiler(target).compile(c.folder, print(spec), target.checked, debug_level());
  c.log = result.log;
  c.compile_ms = result.milliseconds;
  remove_folder(c.folder + "/source");
  std::error_code error;
  std::filesystem::remove(c.folder + "/kernel.o", error);
}

/// QN_JIT_DUMP: source, log, binary and, where a disassembler is found, SASS, by the kernel's name.
static void dump(const KernelSpec& spec, const Target& target, const std::string& source, const Compiled& c) {
  const std::string folder = env(Env::jit_dump);
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

static Compiled compile_and_publish(const KernelSpec& spec, const Target& target, const DiskCache& cache, Digests d) {
  const std::string source = render(spec);
  Compiled c;
  c.entry = target.emulated ? "quern_entry" : entry_name(spec);
  c.folder = cache.begin();
  if (c.folder.empty()) {  // the root cannot be written: the kernel still runs, from a folder of this process
    c.folder = make_private_folder("/tmp/quern-kernel.");
    if (c.folder.empty()) throw Error(ErrorKind::compile, "neither the cache folder " + cache_folder() + " nor /tmp can be written");
    log(LogLevel::warning, "the cache folder " + cache_folder() + " cannot be written; compiled kernels are not kept");
  }
  c.image_path = c.folder + (target.emulated ? "/kernel.so" : "/kernel.cubin");
  try {
    write_file(c.folder + "/kernel.cu", source);
    if (target.emulated) compile_shared_object(spec, target, source, c);
    else compile_cubin(spec, target, source, c);
  } catch (const Error& e) {
    c.log = e.what();
    c.image.clear();
    dump(spec, target, source, c);
    remove_folder(c.folder);
    throw;
  }
  dump(spec, target, source, c);
  warn(spec, target, c);
  const std::string what = target.emulated ? host_compiler(target).path() : "NVRTC for " + target.arch.name();
  const std::string line = "compiled " + print(spec) + " with " + what + " in " + std::to_string(int(c.compile_ms)) + " ms";
  if (env_flag(Env::jit_verbose)) log_always(line + "\n" + c.log);
  else log(LogLevel::info, line);
  // A candidate that does not load gives way to the next: the entry names the compiler that made it.
  if (!c.provenance.empty()) d.provenance = hash128_hex(c.provenance).substr(0, 8);
  const std::string folder = cache.publish(c.folder, spec, d, target, c);
  c.image_path = folder + c.image_path.substr(c.folder.size());
  c.folder = folder;
  return c;
}

Compiled build(const KernelSpec& spec, const Target& target, bool fresh) {
  // Threads that want the same kernel wait for one compile; different kernels rarely share a lock and compile in parallel.
  static std::array<std::mutex, 64> locks;
  const Digests d = digests(spec, target);
  const DiskCache cache(cache_folder());
  std::lock_guard lock(locks[hash64(d.identity.data(), d.identity.size()) % locks.size()]);
  if (!fresh) {
    if (auto found = cache.find(spec, d, target)) return *found;
  }
  return compile_and_publish(spec, target, cache, d);
}

}  // namespace quern::jit
