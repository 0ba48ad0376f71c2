// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/ptxas_log.h"

#include <gtest/gtest.h>

namespace quern::jit {
namespace {

CompileResult read(const char* log) {
  CompileResult result;
  result.log = log;
  read_ptxas_log(result);
  return result;
}

TEST(jit_ptxas_log, gives_registers_spills_and_stack) {
  const CompileResult r = read(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     400 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads\n"
      "ptxas info    : Used 25 registers, used 1 barriers, 400 bytes cumulative stack size\n");
  EXPECT_EQ(r.registers, 25);
  EXPECT_EQ(r.spill_bytes, 52);
  EXPECT_EQ(r.stack_bytes, 400);
  EXPECT_FALSE(r.serialised_wgmma);
  EXPECT_FALSE(r.ignored_setmaxnreg);
  EXPECT_TRUE(r.warnings.empty());
}

TEST(jit_ptxas_log, sees_the_losses_that_ptxas_remarks_on) {
  const CompileResult serialised = read(
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
      "insufficient register resources for the wgmma pipeline in the function 'k'\n");
  EXPECT_TRUE(serialised.serialised_wgmma);
  EXPECT_FALSE(serialised.ignored_setmaxnreg);
  EXPECT_EQ(serialised.warnings.size(), 1u);
  const CompileResult ignored = read("ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; ...\n");
  EXPECT_TRUE(ignored.ignored_setmaxnreg);
  EXPECT_FALSE(ignored.serialised_wgmma);
}

TEST(jit_ptxas_log, starts_at_the_first_error) {
  const char* log = "k.cu(1): warning #177-D: unused\n\nk.cu(2): error: one\n  line\n\nk.cu(3): error: two\n";
  EXPECT_EQ(first_error_lines(log, 10), "k.cu(2): error: one\n  line\nk.cu(3): error: two");
  EXPECT_EQ(first_error_lines(log, 1), "k.cu(2): error: one");
  EXPECT_EQ(first_error_lines("something else\nmore\n", 1), "something else");
  EXPECT_EQ(first_error_lines("", 3), "");
}

}  // namespace
}  // namespace quern::jit
