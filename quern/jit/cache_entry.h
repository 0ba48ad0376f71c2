// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>

#include "quern/jit/build.h"

namespace quern::jit {

/// meta.json: what an entry says of its binary.
struct EntryMeta : CompileFacts {
  std::string kernel;  ///< as print() writes it
  std::string target;  ///< "sm_90a", or "emu"
  std::string entry;   ///< symbol
  std::string key;     ///< Digests::key_text
  std::string identity, provenance;
  std::string compiler;  ///< "NVRTC 13.0.88", "g++"
  std::string checksum;  ///< of the binary
  i64 bytes = 0;         ///< of the binary
};
/// True for what Digests::folder_name() may return: a folder of its own, directly below the root.
bool is_entry_name(const std::string& name);

/// Files of an entry. The binary is kernel.cubin or kernel.so.
struct EntryFiles {
  std::string meta, source, image;
};
const char* image_name(bool emulated);

EntryMeta meta_of(const KernelSpec& spec, const Target& target, const Digests& digests, const Compiled& compiled);
/// The digests that the entry was made with.
Digests digests_of(const EntryMeta& meta);
/// Text of meta.json with a checksum of itself.
std::string meta_text(const EntryMeta& meta);
/// Throws Error{internal} with what is wrong: "its meta.json is damaged", "its meta.json names no entry".
EntryMeta parse_meta(const std::string& text);
/// parse_meta, and the binary is the one that it speaks of, by a compiler that is not denied. Throws Error{internal}.
EntryMeta check_entry(const EntryFiles& files);
/// check_entry, and the source is the one that the key speaks of: nothing runs it, so loads do not read it.
EntryMeta check_whole_entry(const EntryFiles& files);
/// What build() returns of a checked entry.
Compiled compiled_of(const EntryMeta& meta);

}  // namespace quern::jit
