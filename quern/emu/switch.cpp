// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/switch.h"

#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
.globl quern_jump_fcontext
.hidden quern_jump_fcontext
.type quern_jump_fcontext, @function
quern_jump_fcontext:
  leaq 1f(%rip), %rax
  pushq %rax
  jmp jump_fcontext@PLT
1:
  ret
.size quern_jump_fcontext, .-quern_jump_fcontext
)");
#endif
