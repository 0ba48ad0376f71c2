// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>

#include "quern/cli/commands.h"

namespace quern::cli {

namespace {

using Action = std::function<int()>;

void add_device_options(CLI::App& c, DeviceOptions& o, const std::string& standard) {
  c.add_option("--device", o.device, "emu, emu:ARCH, cuda, cuda:N or all (default: " + standard + ")");
  c.add_option("--async", o.async,
               "emulated device: when asynchronous copies complete: eager, lazy, random (one or more)")
      ->delimiter(',');
  c.add_option("--schedule", o.schedule, "emulated device: order of ready threads: warp, fifo, shuffled (one or more)")
      ->delimiter(',');
  c.add_option("--emu-seed", o.emu_seed, "emulated device: seed of its random choices");
  c.add_flag("--checked", o.checked, "emulated device: report races, uninitialised and out-of-bounds accesses");
  c.add_option("--host-compiler", o.host_compiler, "compiler for the emulated device: g++ or clang++");
}

void add_explaining(CLI::App& app, Action& action) {
  auto* list_command = app.add_subcommand("list", "the ops, with their formulas");
  auto list_options = std::make_shared<ListOptions>();
  list_command->add_flag("--json", list_options->json);
  list_command->callback([&action, list_options] { action = [=] { return list(*list_options); }; });

  auto* info_command = app.add_subcommand("info", "tensors, attributes, variants and cases of an op");
  auto info_options = std::make_shared<InfoOptions>();
  info_command->add_option("op", info_options->op)->required();
  info_command->add_flag("--json", info_options->json);
  info_command->callback([&action, info_options] { action = [=] { return info(*info_options); }; });

  auto* plan_command = app.add_subcommand("plan", "what a call would launch, and why");
  auto plan_options = std::make_shared<PlanOptions>();
  plan_command->add_option("op", plan_options->op)->required();
  plan_command->add_option("parameters", plan_options->words, "tokens=64 x.dtype=bf16 ...");
  plan_command->add_option("--arch", plan_options->arch, "plan for a GPU that is not here: sm_80, sm_90a, ...");
  plan_command->add_option("--device", plan_options->device, "plan for this device");
  plan_command->add_flag("--json", plan_options->json);
  plan_command->add_flag("--source", plan_options->source, "also the rendered kernels");
  plan_command->callback([&action, plan_options] { action = [=] { return plan(*plan_options); }; });

  auto* doctor_command = app.add_subcommand("doctor", "what this machine offers: devices, compilers, cache");
  auto doctor_options = std::make_shared<DoctorOptions>();
  doctor_command->add_flag("--json", doctor_options->json);
  doctor_command->add_flag("--has-nvrtc", doctor_options->has_nvrtc, "print nothing; exit 0 when a usable NVRTC is found");
  doctor_command->callback([&action, doctor_options] { action = [=] { return doctor(*doctor_options); }; });
}

void add_running(CLI::App& app, Action& action) {
  auto* run_command = app.add_subcommand("run", "run an op once on random data and compare it with its reference");
  auto run_options = std::make_shared<RunCommandOptions>();
  run_command->add_option("op", run_options->op)->required();
  run_command->add_option("parameters", run_options->words, "tokens=64 x.dtype=bf16 ...");
  run_command->add_option("--seed", run_options->seed, "seed of the data");
  run_command->add_option("--iters", run_options->iterations, "how often")->check(CLI::PositiveNumber);
  add_device_options(*run_command, run_options->on, "QN_DEVICE, else the first GPU, else emu");
  run_command->callback([&action, run_options] { action = [=] { return run_op(*run_options); }; });

  auto* check_command = app.add_subcommand("check", "compare ops with their references over their cases");
  auto check_options = std::make_shared<CheckCommandOptions>();
  check_command->add_option("words", check_options->words,
                            "ops, families or all; then parameters that are fixed: tokens=1,64");
  check_command->add_option("--seed", check_options->seed, "seed of the data");
  check_command->add_option("--seeds", check_options->seeds, "seeds a case")->check(CLI::PositiveNumber);
  check_command->add_option("--sample", check_options->sample, "only so many cases of each op");
  check_command->add_option("--threads", check_options->threads, "cases at a time (default: one per CPU)");
  check_command->add_flag("--full", check_options->full, "every combination instead of every pair");
  check_command->add_flag("--json", check_options->json);
  check_command->add_flag("--quiet", check_options->quiet, "only what is wrong, and the summary");
  add_device_options(*check_command, check_options->on, "emu and every GPU");
  check_command->callback([&action, check_options] { action = [=] { return check(*check_options); }; });

  auto* demo_command = app.add_subcommand("demo", "one decode step of a decoder layer, every op checked");
  auto demo_options = std::make_shared<DemoOptions>();
  demo_command->add_option("--model", demo_options->model, "model inside the library, or a model file");
  demo_command->add_option("--device", demo_options->device, "emu, cuda:N (default: the first GPU, else emu)");
  demo_command->add_option("--lengths", demo_options->lengths, "tokens of each request")->delimiter(',');
  demo_command->add_option("--seed", demo_options->seed, "seed of weights and activations");
  demo_command->callback([&action, demo_options] { action = [=] { return demo(*demo_options); }; });

  auto* fuzz_command = app.add_subcommand("fuzz", "random calls, also broken ones: each is right or a typed error");
  auto fuzz_options = std::make_shared<FuzzCommandOptions>();
  fuzz_command->add_option("calls", fuzz_options->calls)->check(CLI::PositiveNumber);
  fuzz_command->add_option("--seed", fuzz_options->seed);
  fuzz_command->add_option("--op", fuzz_options->op, "op or family (default: all)");
  fuzz_command->add_flag("--json", fuzz_options->json);
  add_device_options(*fuzz_command, fuzz_options->on, "emu");
  fuzz_command->callback([&action, fuzz_options] { action = [=] { return fuzz(*fuzz_options); }; });
}

void add_building(CLI::App& app, Action& action) {
  auto* bench_command =
      app.add_subcommand("bench", "time ops beside what the device sustains, or what compiling them takes");
  auto time_options = std::make_shared<BenchTimeOptions>();
  auto compile_options = std::make_shared<BenchCompileOptions>();
  auto compile = std::make_shared<bool>(false);
  bench_command->add_option("words", time_options->words,
                            "ops, families or all; then parameters: tokens=1,64 (default: the ops' bench shapes)");
  bench_command->add_option("--device", time_options->device,
                            "emu, emu:ARCH, cuda or cuda:N (default: QN_DEVICE, else the first GPU, else emu)");
  bench_command->add_flag("--hot", time_options->hot, "leave the L2 as the last run left it");
  bench_command->add_flag("--host", time_options->host,
                          "also the host's time: a whole call, a bare launch, the difference");
  bench_command->add_option("--peer", time_options->peer, "also another library's kernel where it has one: cublaslt");
  bench_command->add_option("--csv", time_options->csv, "write the results to this file");
  bench_command->add_option("--budget", time_options->budget_ms, "milliseconds of timed runs a case")
      ->check(CLI::PositiveNumber);
  bench_command->add_option("--seed", time_options->seed, "seed of the data");
  bench_command->add_flag("--json", time_options->json);
  bench_command->add_flag("--compile", *compile, "instead: time of compiling each kernel that the cases reach");
  bench_command->add_option("--arch", compile_options->archs, "--compile only for these (default: all known)")
      ->delimiter(',');
  bench_command->add_option("--sample", compile_options->sample, "--compile only so many kernels of each op and arch");
  bench_command->add_option("--threads", compile_options->threads, "--compile so many at a time (default: 1)");
  bench_command->callback([&action, time_options, compile_options, compile] {
    if (!*compile) {
      action = [=] { return bench_time(*time_options); };
      return;
    }
    if (time_options->words.size() > 1) throw CLI::ValidationError("bench --compile", "takes one op or family");
    if (!time_options->words.empty()) compile_options->op = time_options->words[0];
    compile_options->json = time_options->json;
    action = [=] { return bench_compile(*compile_options); };
  });

  auto* new_command = app.add_subcommand("new", "start an op: writes its five files into a checkout");
  auto new_options = std::make_shared<NewOptions>();
  new_command->add_option("op", new_options->op, "family.name")->required();
  new_command->add_option("--checkout", new_options->checkout, "root of the checkout (default: here)");
  new_command->callback([&action, new_options] { action = [=] { return new_op(*new_options); }; });
}

}  // namespace

static int main_of(int argc, char** argv) {
  CLI::App app("quern: GPU kernels for LLM serving");
  app.set_version_flag("--version", "quern " QN_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Action action;
  add_explaining(app, action);
  add_running(app, action);
  add_building(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kRight : kBadInput;
  }
  try {
    return action();
  } catch (const Error& e) {
    std::fprintf(stderr, "quern: %s error: %s\n", name(e.kind()), e.what());
    return exit_code(e.kind());
  } catch (const std::exception& e) {  // out of memory, mostly
    std::fprintf(stderr, "quern: %s\n", e.what());
    return kEnvironment;
  }
}

}  // namespace quern::cli

int main(int argc, char** argv) { return quern::cli::main_of(argc, argv); }
