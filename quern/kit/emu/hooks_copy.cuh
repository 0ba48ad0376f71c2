// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Calls of memcpy, memset and memmove in builds with hooks: the linker redirects them here (--wrap), and each tells
// on_access, which the including file has defined, what it reads and writes.
#pragma once

extern "C" {
void* __real_memcpy(void*, const void*, unsigned long);
void* __real_memset(void*, int, unsigned long);
void* __real_memmove(void*, const void*, unsigned long);
QN_UNWATCHED void* __wrap_memcpy(void* to, const void* from, unsigned long bytes) {
  ::quern::emu::on_access(from, bytes, false);
  ::quern::emu::on_access(to, bytes, true);
  return __real_memcpy(to, from, bytes);
}
QN_UNWATCHED void* __wrap_memset(void* to, int value, unsigned long bytes) {
  ::quern::emu::on_access(to, bytes, true);
  return __real_memset(to, value, bytes);
}
QN_UNWATCHED void* __wrap_memmove(void* to, const void* from, unsigned long bytes) {
  ::quern::emu::on_access(from, bytes, false);
  ::quern::emu::on_access(to, bytes, true);
  return __real_memmove(to, from, bytes);
}
}
