// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <string>
#include <vector>

namespace quern {

/// The GNU build id of an ELF file as lower-case hex, read from its notes without loading it; empty when the file has
/// none, or is no 64-bit ELF file.
std::string elf_build_id(const std::string& path);

/// The libraries that an ELF file names as needed (DT_NEEDED), in its order. Throws Error{value} when the file cannot
/// be read or is no 64-bit ELF file.
std::vector<std::string> elf_needed(const std::string& path);

}  // namespace quern
