// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/module.h"

#include <dlfcn.h>
#include <link.h>

#include <mutex>

#include "quern/base/error.h"
#include "quern/emu/worker.h"

namespace quern::emu {

Module::Module(const std::string& path, const EmulatedOptions& options) : path(path) {
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) throw Error(ErrorKind::unsupported, std::string("emulated device: ") + dlerror());
  try {
    entry = find<void (*)(const void*)>("quern_entry");
    threads = *find<const int*>("quern_entry_threads");
    if (*find<const u32*>("quern_runtime_bytes") != sizeof(Runtime))
      throw Error(ErrorKind::unsupported, "emulated device: " + path + " was compiled for another function table");
    registers = *find<const u32*>("quern_entry_registers");
    if (options.checked) check_hooks();
    find<void (*)(const Runtime*)>("quern_bind")(&kRuntime);
    if (options.asan) require_asan_reports(find<void (*)(const void*)>("quern_asan_canary"), path);
  } catch (...) {
    dlclose(handle_);
    throw;
  }
  const link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) || !map) return;
  base_ = map->l_addr;
  struct Search {
    u64 base, low, high;
  } search{base_, ~u64(0), 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Search& s = *static_cast<Search*>(data);
        if (info->dlpi_addr != s.base) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          s.low = min_of<u64>(s.low, s.base + segment.p_vaddr);
          s.high = max_of<u64>(s.high, s.base + segment.p_vaddr + segment.p_memsz);
        }
        return 1;
      },
      &search);
  low_ = search.low;
  high_ = search.high;
}

Module::~Module() { dlclose(handle_); }

template <class Symbol>
Symbol Module::find(const char* name) const {
  void* symbol = dlsym(handle_, name);
  if (!symbol) throw Error(ErrorKind::internal, "emulated device: " + path + " lacks " + name);
  return reinterpret_cast<Symbol>(symbol);
}

/// Instrumentation that does not reach our hooks (another tsan runtime took the symbols, a flag was dropped) would
/// check nothing, silently. So each checked module brings accesses that must be seen. Devices that load one file share its
/// counters, hence the lock.
void Module::check_hooks() const {
  static std::mutex one_at_a_time;
  std::lock_guard lock(one_at_a_time);
  const int missed = find<int (*)()>("quern_canary")();
  if (missed)
    throw Error(ErrorKind::internal, "emulated device: " + path + ": " + std::to_string(missed) +
                                         " of the canary's accesses did not reach the checked mode's hooks");
}

}  // namespace quern::emu
