// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/cache_entry.h"

#include <nlohmann/json.hpp>

#include "quern/base/error.h"
#include "quern/base/hash.h"
#include "quern/jit/denied_compilers.h"

namespace quern::jit {

using Json = nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EntryMeta, kernel, target, entry, key, identity, provenance, compiler, checksum, bytes,
                                   compile_ms, registers, spill_bytes, stack_bytes, serialised_wgmma, ignored_setmaxnreg)

static const char kOwnChecksum[] = "meta_checksum";

[[noreturn]] static void fail(const std::string& what) { throw Error(ErrorKind::internal, what); }

std::string EntryMeta::folder_name() const { return kernel.substr(0, kernel.find('<')) + "." + identity + "." + provenance; }

const char* image_name(bool emulated) { return emulated ? "kernel.so" : "kernel.cubin"; }

EntryMeta meta_of(const KernelSpec& spec, const Target& target, const Digests& d, const Compiled& c) {
  EntryMeta m;
  m.kernel = print(spec);
  m.target = target.emulated ? "emu" : target.arch.name();
  m.entry = c.entry;
  m.key = d.key_text;
  m.identity = d.identity;
  m.provenance = d.provenance;
  m.compiler = c.compiler;
  m.checksum = hash128_hex({c.image.data(), c.image.size()});
  m.bytes = i64(c.image.size());
  m.compile_ms = c.compile_ms;
  m.registers = c.registers;
  m.spill_bytes = c.spill_bytes;
  m.stack_bytes = c.stack_bytes;
  m.serialised_wgmma = c.serialised_wgmma;
  m.ignored_setmaxnreg = c.ignored_setmaxnreg;
  return m;
}

std::string meta_text(const EntryMeta& meta) {
  Json j = meta;
  j[kOwnChecksum] = hash128_hex(j.dump());
  return j.dump(1) + "\n";
}

EntryMeta parse_meta(const std::string& text) {
  Json j = Json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains(kOwnChecksum)) fail("its meta.json is damaged");
  const Json own = j[kOwnChecksum];
  j.erase(kOwnChecksum);
  if (own != hash128_hex(j.dump(-1, ' ', false, Json::error_handler_t::replace))) fail("its meta.json is damaged");
  try {
    return j.get<EntryMeta>();
  } catch (const Json::exception& e) {
    fail(std::string("its meta.json is of another version: ") + e.what());
  }
}

EntryMeta check_entry(const EntryFiles& files) {
  const EntryMeta meta = parse_meta(files.meta);
  if (meta.bytes != i64(files.image.size()) || hash128_hex(files.image) != meta.checksum) fail("its binary is damaged");
  if (meta.target != "emu")  // "NVRTC 13.0.88", "nvcc 13.0.88"
    if (const std::string why = denial_of(meta.compiler.substr(meta.compiler.rfind(' ') + 1)); !why.empty()) fail("its compiler, " + meta.compiler + ", " + why);
  return meta;
}

EntryMeta check_whole_entry(const EntryFiles& files) {
  EntryMeta meta = check_entry(files);
  if (hash128_hex(meta.key).substr(0, 16) != meta.identity) fail("its key is not that of its name");
  if (meta.key.find("\nkernel.cu " + hash128_hex(files.source) + "\n") == std::string::npos) fail("its source is damaged");
  return meta;
}

Compiled compiled_of(const EntryMeta& m) {
  Compiled c;
  c.from_cache = true;
  c.entry = m.entry;
  c.compiler = m.compiler;
  c.provenance = m.provenance;
  c.compile_ms = m.compile_ms;
  c.registers = m.registers;
  c.spill_bytes = m.spill_bytes;
  c.stack_bytes = m.stack_bytes;
  c.serialised_wgmma = m.serialised_wgmma;
  c.ignored_setmaxnreg = m.ignored_setmaxnreg;
  return c;
}

}  // namespace quern::jit
