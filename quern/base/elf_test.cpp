// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/base/elf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "quern/base/error.h"

namespace quern {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string file_with(const std::string& content) {
  const std::string path = testing::TempDir() + "elf_test_" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(base_elf, names_the_needed_libraries_of_this_program) {
  EXPECT_THAT(elf_needed("/proc/self/exe"), Contains(HasSubstr("libc.so")));
  EXPECT_THAT(elf_needed("/proc/self/exe"), Contains(HasSubstr("libstdc++.so")));
}

TEST(base_elf, reads_a_build_id_from_a_note) {
  // A program header table with one note: name "GNU", type 3, four bytes of content.
  std::string file(64 + 56, '\0');
  file.replace(0, 6,
               std::string("\x7f"
                           "ELF\x02\x01",
                           6));
  file[32] = 64;       // e_phoff
  file[54] = 56;       // e_phentsize
  file[56] = 1;        // e_phnum
  file[64] = 4;        // PT_NOTE
  file[64 + 8] = 120;  // p_offset
  file[64 + 32] = 20;  // p_filesz
  const char note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\x65\xbe\x0d\xb3";
  file.append(note, 20);
  EXPECT_EQ(elf_build_id(file_with(file)), "65be0db3");
  file.resize(file.size() - 2);
  EXPECT_EQ(elf_build_id(file_with(file)), "") << "a note that ends beyond the file";
}

TEST(base_elf, takes_other_files_for_what_they_are) {
  EXPECT_EQ(elf_build_id("/nowhere"), "");
  const std::string path = file_with("no ELF file, but longer than the header of one, which has 64 bytes in all.....");
  EXPECT_EQ(elf_build_id(path), "");
  EXPECT_THROW(elf_needed(path), Error);
  EXPECT_THROW(elf_needed("/nowhere"), Error);
}

}  // namespace
}  // namespace quern
