// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace quern {

/// Whole file, or nothing when it cannot be read.
std::optional<std::string> read_file(const std::string& path);
/// The same of a file; nothing, without waiting, of a pipe, a device or a folder, and, without reading, of more than `most` bytes.
std::optional<std::string> read_regular_file(const std::string& path, size_t most = SIZE_MAX);
/// Throws Error{device} with the path and errno's text. Not synced to the disk: whoever keeps files past a crash of the machine
/// must be able to tell a half one.
void write_file(const std::string& path, std::string_view bytes);
/// mkdir -p. False when it cannot be made.
bool make_folders(const std::string& path);
/// A folder of a fresh name that begins with `prefix` (mkdtemp, mode 0700), or empty when it cannot be made.
std::string make_private_folder(const std::string& prefix);
/// rm -r of a folder that quern made; errors are ignored.
void remove_folder(const std::string& path) noexcept;

}  // namespace quern
