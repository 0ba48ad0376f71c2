// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/fault.h"

#include <signal.h>

#include <cstdlib>
#include <mutex>

#include "quern/emu/worker.h"

namespace quern::emu {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction previous[3];
thread_local Worker* running_worker = nullptr;

/// A fault on a small stack needs another one to be handled on. One for each OS thread that ever ran a kernel.
struct SignalStack {
  static constexpr size_t kBytes = 64 << 10;
  void* memory = std::malloc(kBytes);
  stack_t outer{};
  SignalStack() {
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = kBytes;
    sigaltstack(&stack, &outer);
  }
  ~SignalStack() {
    sigaltstack(&outer, nullptr);
    std::free(memory);
  }
};

void pass_on(int signal, siginfo_t* info, void* context) {
  for (int i = 0; i < 3; ++i) {
    if (kSignals[i] != signal) continue;
    const struct sigaction& before = previous[i];
    if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
    // The default action happens when the faulting instruction runs again.
    sigaction(signal, &before, nullptr);
  }
}

void on_signal(int signal, siginfo_t* info, void* context) {
  Worker* worker = running_worker;
  if (!worker || !worker->running()) return pass_on(signal, info, context);
  worker->fault_address = info->si_addr;
  worker->fault_signal = signal;
  siglongjmp(worker->fault_return, 1);
}

void install_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action{};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 3; ++i) sigaction(kSignals[i], &action, &previous[i]);
  });
}

}  // namespace

FaultGuard::FaultGuard(Worker& worker) : outer_(running_worker) {
  install_once();
  static thread_local SignalStack stack;
  running_worker = &worker;
}
FaultGuard::~FaultGuard() { running_worker = outer_; }

void Worker::report_fault() {
  const Fiber* fiber = running_;
  running_ = nullptr;
  if (!fiber) return;
  const char* what = fault_signal == SIGFPE ? "division by zero or overflow of an integer division" : "invalid access";
  std::string text = text_of("%s at %p", what, fault_address);
  const u8* address = static_cast<const u8*>(fault_address);
  const bool below_stack = address < fiber->stack && address >= fiber->stack - kStackBytes;
  if (arena_.holds_smem(address))
    text += text_of(" (smem%+lld; the block has %u bytes)", (long long)(address - fiber->block->smem), fiber->thread->smem_bytes);
  if (below_stack) text += text_of(" below the thread's %u KiB of stack", u32(kStackBytes >> 10));
  report(below_stack ? ReportKind::stack : ReportKind::fault, *fiber, std::move(text), reinterpret_cast<u64>(fault_address));
  launch_->stop();
}

}  // namespace quern::emu
