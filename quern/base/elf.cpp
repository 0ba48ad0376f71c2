// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "quern/base/error.h"
#include "quern/kit/abi.h"

namespace quern {
namespace {

/// Reads pieces of a file: libraries of 100 MB and more are asked for a few hundred bytes.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    Elf64_Ehdr header;
    if (!read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof(Elf64_Phdr))
      return;
    segments_.resize(header.e_phnum);
    if (!read(header.e_phoff, segments_.data(), segments_.size() * sizeof(Elf64_Phdr))) segments_.clear();
  }
  ~ElfFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  bool valid() const { return !segments_.empty(); }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }

  bool read(u64 offset, void* to, size_t bytes) const {
    return descriptor_ >= 0 && pread(descriptor_, to, bytes, off_t(offset)) == ssize_t(bytes);
  }
  std::vector<char> content(const Elf64_Phdr& segment) const {
    constexpr u64 kLimit = 1 << 20;  // notes and dynamic sections are a few KB; a damaged header may claim anything
    std::vector<char> bytes(segment.p_filesz <= kLimit ? segment.p_filesz : 0);
    if (!read(segment.p_offset, bytes.data(), bytes.size())) bytes.clear();
    return bytes;
  }
  /// Offset in the file of a virtual address, or -1.
  i64 offset_of(u64 address) const {
    for (const Elf64_Phdr& s : segments_)
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) return i64(address - s.p_vaddr + s.p_offset);
    return -1;
  }
  std::string string_at(u64 offset) const {
    std::string text;
    for (char c; text.size() < 4096 && read(offset + text.size(), &c, 1) && c;) text += c;
    return text;
  }

 private:
  int descriptor_;
  std::vector<Elf64_Phdr> segments_;
};

std::string hex(const char* bytes, size_t count) {
  static const char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[u8(bytes[i]) >> 4];
    text += kDigits[u8(bytes[i]) & 15];
  }
  return text;
}

std::string build_id_in(const std::vector<char>& notes) {
  size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    const u64 name = at + sizeof note;
    const u64 content = name + round_up<u64>(note.n_namesz, 4);
    if (content + note.n_descsz > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0)
      return hex(notes.data() + content, note.n_descsz);
    at = content + round_up<u64>(note.n_descsz, 4);
  }
  return {};
}

}  // namespace

std::string elf_build_id(const std::string& path) {
  const ElfFile file(path);
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_NOTE) continue;
    if (std::string id = build_id_in(file.content(segment)); !id.empty()) return id;
  }
  return {};
}

std::vector<std::string> elf_needed(const std::string& path) {
  const ElfFile file(path);
  if (!file.valid()) throw Error(ErrorKind::value, path + " is no readable 64-bit ELF file");
  std::vector<u64> offsets;
  i64 strings = -1;
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_DYNAMIC) continue;
    const std::vector<char> content = file.content(segment);
    for (size_t at = 0; at + sizeof(Elf64_Dyn) <= content.size(); at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      std::memcpy(&entry, content.data() + at, sizeof entry);
      if (entry.d_tag == DT_NEEDED) offsets.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) strings = file.offset_of(entry.d_un.d_ptr);
    }
  }
  std::vector<std::string> names;
  for (const u64 offset : offsets)
    if (strings >= 0) names.push_back(file.string_at(u64(strings) + offset));
  return names;
}

}  // namespace quern
