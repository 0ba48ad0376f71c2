// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/cache_entry.h"

#include <nlohmann/json.hpp>

#include "quern/base/error.h"
#include "quern/base/hash.h"
#include "quern/base/json_depth.h"
#include "quern/jit/denied_compilers.h"

namespace quern::jit {

using Json = nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EntryMeta, kernel, target, entry, key, identity, provenance, compiler, checksum, bytes, compile_ms,
                                   registers, spill_bytes, stack_bytes, serialised_wgmma, ignored_setmaxnreg)

static const char kOwnChecksum[] = "meta_checksum";

[[noreturn]] static void fail(const std::string& what) { throw Error(ErrorKind::internal, what); }

const char* image_name(bool emulated) { return emulated ? "kernel.so" : "kernel.cubin"; }

EntryMeta meta_of(const KernelSpec& spec, const Target& target, const Digests& d, const Compiled& c) {
  EntryMeta m;
  static_cast<CompileFacts&>(m) = c;
  m.kernel = print(spec);
  m.target = target.name();
  m.entry = c.entry;
  m.key = d.key_text;
  m.identity = d.identity;
  m.provenance = d.provenance;
  m.compiler = c.compiler;
  m.checksum = hash128_hex({c.image.data(), c.image.size()});
  m.bytes = i64(c.image.size());
  return m;
}

bool is_entry_name(const std::string& name) {
  const size_t last = name.rfind('.'), middle = last == std::string::npos || last == 0 ? last : name.rfind('.', last - 1);
  if (middle == std::string::npos || middle == 0 || last - middle != 17 || name.size() - last != 9) return false;
  const auto only = [](const std::string& s, const char* letters) { return s.find_first_not_of(letters) == std::string::npos; };
  constexpr char kHex[] = "0123456789abcdef", kWord[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  return only(name.substr(0, middle), kWord) && only(name.substr(middle + 1, 16), kHex) && only(name.substr(last + 1), kHex);
}

Digests digests_of(const EntryMeta& m) { return {m.key, m.identity, m.provenance, function_of(m.kernel), m.target == "emu"}; }

std::string meta_text(const EntryMeta& meta) {
  Json j = meta;
  j[kOwnChecksum] = hash128_hex(j.dump());
  return j.dump(1) + "\n";
}

EntryMeta parse_meta(const std::string& text) {
  if (!json_nests_well(text)) fail("its meta.json is damaged");
  Json j = Json::parse(text, nullptr, false);
  if (!j.is_object() || !j.contains(kOwnChecksum)) fail("its meta.json is damaged");
  const Json own = j[kOwnChecksum];
  j.erase(kOwnChecksum);
  if (own != hash128_hex(j.dump(-1, ' ', false, Json::error_handler_t::replace))) fail("its meta.json is damaged");
  EntryMeta meta;
  try {
    meta = j.get<EntryMeta>();
  } catch (const Json::exception& e) { fail(std::string("its meta.json is of another version: ") + e.what()); }
  if (!is_entry_name(digests_of(meta).folder_name())) fail("its meta.json names no entry");
  return meta;
}

EntryMeta check_entry(const EntryFiles& files) {
  const EntryMeta meta = parse_meta(files.meta);
  if (meta.bytes != i64(files.image.size()) || hash128_hex(files.image) != meta.checksum) fail("its binary is damaged");
  if (meta.target != "emu")  // "NVRTC 13.0.88", "nvcc 13.0.88"
    if (const std::string why = denial_of(meta.compiler.substr(meta.compiler.rfind(' ') + 1)); !why.empty())
      fail("its compiler, " + meta.compiler + ", " + why);
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
  static_cast<CompileFacts&>(c) = m;
  c.from_cache = true;
  c.entry = m.entry;
  c.compiler = m.compiler;
  c.provenance = m.provenance;
  return c;
}

}  // namespace quern::jit
