// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <dlfcn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>

#include "quern/base/env.h"
#include "quern/base/nearest.h"
#include "quern/base/version.h"
#include "quern/cli/command_line.h"
#include "quern/cli/commands.h"

namespace quern::cli {

namespace {

using Action = std::function<int()>;

/// A list of values: an occurrence takes one word, with commas in it for several, so that a positional word may stand behind it.
CLI::Option* list_option(CLI::Option* option) { return option->allow_extra_args(false)->delimiter(','); }

/// A whole number of a range; CLI11 puts the option's name before the text.
CLI::Validator whole(u64 least, u64 most) {
  return CLI::Validator(
      [=](std::string& text) {
        u64 value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return std::string();
        return "is '" + text + "', expected a whole number from " + std::to_string(least) + " to " + std::to_string(most);
      },
      "");
}
constexpr u64 kMostSeed = ~u64(0) >> 1, kMostCount = 1000000000, kMostThreads = 1024;
CLI::Validator seed() { return whole(0, kMostSeed); }

/// A number above 0.
CLI::Validator positive() {
  return CLI::Validator(
      [](std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        return end != text.c_str() && !*end && value > 0 && value <= 1e9 ? std::string()
                                                                         : "is '" + text + "', expected a number above 0, up to 1e9";
      },
      "");
}

void add_device_options(CLI::App& c, DeviceOptions& o, const std::string& standard) {
  c.add_option("--device", o.device, "emu, emu:ARCH, cuda, cuda:N or all (default: " + standard + ")");
  list_option(c.add_option("--async", o.async,
                           "emulated device: when asynchronous copies complete: eager, lazy, random (one or more, with commas)"));
  list_option(
      c.add_option("--schedule", o.schedule, "emulated device: order of ready threads: warp, fifo, shuffled (one or more, with commas)"));
  c.add_option("--emu-seed", o.emu_seed, "emulated device: seed of its random choices")->check(seed());
  c.add_flag("--checked", o.checked, "emulated device: report races, uninitialised and out-of-bounds accesses");
  c.add_flag("--asan", o.asan,
             "emulated device: report accesses outside of tensors, shared memory and local arrays, and undefined behaviour");
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
  plan_command->add_flag("--compile", plan_options->compile, "also compile the kernels into the cache");
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
  auto* run_op_option = run_command->add_option("op", run_options->op);
  run_command->add_option("parameters", run_options->words, "tokens=64 x.dtype=bf16 ...");
  run_command->add_option("--seed", run_options->seed, "seed of the data")->check(seed());
  run_command->add_flag("--json", run_options->json);
  run_command->add_option("--iters", run_options->iterations, "how often")->check(whole(1, kMostCount));
  add_device_options(*run_command, run_options->on, "QN_DEVICE, else the first GPU, else emu");
  auto* replayed = run_command->add_option("--replay", run_options->replay, "instead: the call recorded in this folder (see QN_TRACE)");
  replayed->excludes(run_op_option);
  run_command->add_flag("--trust-hooks", run_options->trust_hooks, "--replay: also run code that is recorded in the folder")
      ->needs(replayed);
  run_command->callback([&action, run_options] {
    if (run_options->replay.empty() && run_options->op.empty()) throw CLI::RequiredError("op");
    action = [=] { return run_options->replay.empty() ? run_op(*run_options) : replay(*run_options); };
  });

  auto* check_command = app.add_subcommand("check", "compare ops with their references over their cases");
  auto check_options = std::make_shared<CheckCommandOptions>();
  check_command->add_option("words", check_options->words, "ops, families or all; then parameters that are fixed: tokens=1,64");
  check_command->add_option("--seed", check_options->seed, "seed of the data")->check(seed());
  const std::vector<CLI::Option*> of_cases = {
      check_command->add_option("--seeds", check_options->seeds, "seeds a case")->check(whole(1, kMostCount)),
      check_command->add_option("--sample", check_options->sample, "only so many cases of each op; 0: all")->check(whole(0, kMostCount)),
      check_command->add_option("--rotate", check_options->rotate, "--sample: which of the samples of that size")->needs("--sample"),
      check_command
          ->add_option("--seconds", check_options->seconds,
                       "leave out the other cases of an op when its cases have taken so long together; 0: none")
          ->check(CLI::Range(0.0, 1e6)),
      check_command->add_flag("--each-kernel", check_options->each_kernel, "only the first case that reaches each kernel"),
      check_command->add_option("--threads", check_options->threads, "cases at a time (0, the default: one per CPU)")
          ->check(whole(0, kMostThreads)),
      check_command->add_flag("--no-nvrtc", check_options->no_nvrtc, "do not also compile for a GPU what runs on the emulated device"),
      check_command->add_flag("--full", check_options->full, "every combination instead of every pair"),
      check_command->add_flag("--quiet", check_options->quiet, "only what is wrong, and the summary")};
  check_command->add_flag("--json", check_options->json);
  auto model_options = std::make_shared<CheckModelOptions>();
  auto* model =
      check_command->add_option("--model", model_options->model,
                                "instead: random calls within the limits of a model file, which the words replace: tokens=1..64 tp=1");
  for (CLI::Option* option : of_cases) model->excludes(option);
  check_command->add_option("--calls", model_options->calls, "--model: how many")->check(whole(1, kMostCount))->needs(model);
  check_command->add_flag("--frozen", model_options->frozen, "--model: compile nothing, as a server after its warm-up")->needs(model);
  add_device_options(*check_command, check_options->on, "emu and every GPU; --model: the first GPU, else emu");
  check_command->callback([&action, check_options, model_options] {
    if (model_options->model.empty()) {
      action = [=] { return check(*check_options); };
      return;
    }
    model_options->limits = check_options->words;
    model_options->on = check_options->on;
    model_options->seed = check_options->seed;
    model_options->json = check_options->json;
    action = [=] { return check_model(*model_options); };
  });

  check_command->footer(
      "Exit codes: 1 when a result is WRONG or a GPU's compiler refuses a kernel (COMPILE), else 2 when a call was REFUSED, else 3 when a kernel was FROZEN or nothing ran, else 0. Cases that a device has no variant for are UNSUPPORTED.");

  auto* prove_command = app.add_subcommand("prove", "show that plans agree exactly and what the order of sums depends on");
  auto prove_options = std::make_shared<ProveOptions>();
  prove_command->add_option("words", prove_options->words, "ops, families or all; then parameters that are fixed: tokens=64");
  prove_command->add_option("--seed", prove_options->seed, "seed of the data")->check(seed());
  prove_command->add_option("--sample", prove_options->sample, "so many cases of each op (default: 1)")->check(whole(1, kMostCount));
  prove_command->add_option("--ways", prove_options->ways, "only so many layouts, modes and devices of each case; 0: all")
      ->check(whole(0, kMostCount));
  prove_command->add_flag("--json", prove_options->json);
  prove_command->callback([&action, prove_options] { action = [=] { return prove(*prove_options); }; });

  auto* demo_command = app.add_subcommand("demo", "one step of a decoder layer, every op checked");
  auto demo_options = std::make_shared<DemoOptions>();
  demo_command->add_option("--model", demo_options->model, "model inside the library, or a model file");
  demo_command->add_option("--device", demo_options->device, "emu, cuda:N (default: the first GPU, else emu)");
  list_option(demo_command->add_option("--lengths", demo_options->lengths, "tokens of each request, those of this step included: 37,129"));
  list_option(demo_command->add_option("--queries", demo_options->queries,
                                       "tokens of each request in this step (default: one each, decode): 20,1"));
  demo_command->add_flag("--prefill", demo_options->prefill, "instead: a step of two prompts, and one that mixes a prompt with decode")
      ->excludes("--lengths")
      ->excludes("--queries");
  demo_command->add_option("--seed", demo_options->seed, "seed of weights and activations")->check(seed());
  demo_command->add_flag("--json", demo_options->json);
  demo_command->callback([&action, demo_options] { action = [=] { return demo(*demo_options); }; });

  auto* generate_command = app.add_subcommand("generate", "a language model, from a folder or with random weights: token ids in and out");
  auto o = std::make_shared<GenerateOptions>();
  generate_command->add_option("folder", o->folder, "checkpoint: config.json and safetensors of Llama, Mistral, Qwen2 or Qwen3");
  generate_command->add_option("--random", o->random, "instead: this config.json, and random weights");
  generate_command->add_option("--weights-seed", o->weights_seed, "seed of random weights")->check(seed());
  generate_command->add_option("--ids", o->ids, "a prompt: 1,2,3, or @FILE; once for each request")->allow_extra_args(false);
  list_option(generate_command->add_option("--random-prompts", o->random_prompts, "prompts of so many random tokens: 16,5"))
      ->check(whole(1, kMostCount));
  generate_command->add_option("--max-new", o->max_new, "most tokens of an answer (default: 16)")->check(whole(1, kMostCount));
  generate_command->add_option("--temperature", o->temperature, "0, the default: the largest logit");
  generate_command->add_option("--top-k", o->top_k, "0: all");
  generate_command->add_option("--top-p", o->top_p, "1: all");
  generate_command->add_option("--min-p", o->min_p, "0: all");
  generate_command->add_option("--seed", o->seed, "of random prompts, and of the first request's random numbers; the next one has the next")
      ->check(seed());
  generate_command->add_flag("--ignore-eos", o->ignore_eos, "stop tokens do not end an answer");
  generate_command->add_flag("--batch-invariant", o->batch_invariant, "a request's logits do not depend on those that run beside it");
  generate_command->add_option("--step-tokens", o->step_tokens, "most tokens of a step (default: 2048, emulated 64)")
      ->check(whole(1, 1 << 20));
  generate_command->add_option("--max-batch", o->max_batch, "most requests that run at once (default: all, at most 64)")
      ->check(whole(1, 1024));
  generate_command->add_option("--page-size", o->page_size, "tokens of a page of the KV cache (default: 16)")->check(whole(1, 1024));
  generate_command->add_option("--kv-memory", o->kv_memory, "GB of the KV cache (default: what is needed, at most what is free)")
      ->check(positive());
  generate_command->add_flag("--no-graphs", o->no_graphs, "launch every step instead of replaying captured ones");
  generate_command->add_flag("--check", o->check, "compare each step's logits with the model in double: for small models");
  generate_command->add_option("--logits", o->logits,
                               "write the logits behind each drawn token to this file: safetensors, request.N [tokens, vocab] f32");
  generate_command->add_flag(
      "--floor", o->floor,
      "on a GPU: also measure the read rate, and print the time that reading weights and cache takes in steps that decode");
  generate_command->add_flag("--stream", o->stream, "print each token when it is there");
  generate_command->add_flag("--json", o->json);
  add_device_options(*generate_command, o->on, "the first GPU, else emu");
  generate_command->callback([&action, o] { action = [=] { return generate(*o); }; });

  auto* report_command =
      app.add_subcommand("trace-report", "where the time of recorded calls goes: each distinct one is made again and timed");
  auto report_options = std::make_shared<TraceReportOptions>();
  report_command->add_option("folder", report_options->folder, "what QN_TRACE named")->required();
  report_command->add_option("--device", report_options->device, "emu, cuda:N (default: the first GPU, else emu)");
  report_command->add_flag("--trust-hooks", report_options->trust_hooks, "also run code that is recorded in the folder");
  report_command->add_flag("--json", report_options->json);
  report_command->callback([&action, report_options] { action = [=] { return trace_report(*report_options); }; });

  auto* fuzz_command = app.add_subcommand("fuzz", "random calls, also broken ones: each is right or a typed error");
  auto fuzz_options = std::make_shared<FuzzCommandOptions>();
  fuzz_command->add_option("calls", fuzz_options->calls)->check(whole(1, kMostCount));
  fuzz_command->add_option("--seed", fuzz_options->seed)->check(seed());
  fuzz_command->add_option("--op", fuzz_options->op, "op or family (default: all)");
  fuzz_command->add_flag("--json", fuzz_options->json);
  add_device_options(*fuzz_command, fuzz_options->on, "emu");
  fuzz_command->callback([&action, fuzz_options] { action = [=] { return fuzz(*fuzz_options); }; });
}

void add_cache(CLI::App& app, Action& action) {
  auto* cache_command = app.add_subcommand("cache", "the compiled kernels: list, verify, prune, clear, pack, unpack");
  cache_command->require_subcommand(1);
  auto options = std::make_shared<CacheCommandOptions>();
  const auto add = [&](const char* name, const char* does) {
    auto* command = cache_command->add_subcommand(name, does);
    command->add_flag("--json", options->json);
    command->callback([&action, options, name] {
      options->action = name;
      action = [=] { return cache(*options); };
    });
    return command;
  };
  add("ls", "the kernels of each root: QN_CACHE_ROOTS, then QN_CACHE_DIR");
  add("verify", "compare every file of every kernel with its checksum; 1 when one is damaged");
  auto* prune = add("prune", "remove what is damaged or left behind, and what was not used for longest beyond the limit");
  prune->add_option("--limit-mb", options->limit_mb, "megabytes that may stay (default: QN_CACHE_LIMIT_MB)")->check(whole(0, u64(1) << 40));
  prune->add_option("--idle-days", options->idle_days, "also what was not used for so many days")->check(whole(0, 100000));
  add("clear", "remove all kernels that no process has mapped");
  auto* pack = add("pack", "write the kernels of one target into one file, for QN_CACHE_ROOTS");
  pack->add_option("file", options->file)->required();
  pack->add_option("--arch", options->arch, "sm_90a, ..., or emu (default: the only one that the cache has kernels for)");
  add("unpack", "put the kernels of a pack into QN_CACHE_DIR")->add_option("file", options->file)->required();
}

void add_bench(CLI::App& app, Action& action) {
  auto* bench_command = app.add_subcommand(
      "bench", "time ops beside what the device sustains, along an axis and beside other libraries, or what compiling them takes");
  auto time_options = std::make_shared<BenchTimeOptions>();
  auto compile_options = std::make_shared<BenchCompileOptions>();
  auto compile = std::make_shared<bool>(false);
  bench_command->add_option("words", time_options->words,
                            "ops, families or all; then parameters: tokens=1,64 (default: the ops' bench shapes). Or layer: the "
                            "decoder layer of a model as a whole; then batch=1,4 length=512 page_size=16");
  bench_command->add_option("--device", time_options->device,
                            "emu, emu:ARCH, cuda or cuda:N (default: QN_DEVICE, else the first GPU, else emu)");
  bench_command->add_flag("--hot", time_options->hot, "leave the L2 as the last run left it");
  bench_command->add_flag("--host", time_options->host, "also the host's time: a whole call, a bare launch, the difference");
  bench_command->add_option("--peer", time_options->peer, "also another library's kernel where it has one: cublaslt");
  bench_command->add_option("--csv", time_options->csv, "write the results to this file");
  bench_command->add_option("--budget", time_options->budget_ms, "milliseconds of timed runs a case")->check(positive());
  bench_command->add_option("--seed", time_options->seed, "seed of the data")->check(seed());
  bench_command->add_flag("--json", time_options->json);
  bench_command->add_flag("--compile", *compile, "instead: time of compiling each kernel that the cases reach");
  list_option(bench_command->add_option("--arch", compile_options->archs, "--compile only for these: sm_80,sm_90a (default: all known)"));
  bench_command->add_option("--sample", compile_options->sample, "--compile, --load: only so many kernels of each op and arch; 0: all")
      ->check(whole(0, kMostCount));
  bench_command->add_option("--rotate", compile_options->rotate, "--compile: which of the samples of that size")
      ->needs("--compile")
      ->needs("--sample");
  bench_command->add_option("--threads", compile_options->threads, "--compile so many at a time (default: 1)")
      ->check(whole(1, kMostThreads));
  auto load = std::make_shared<bool>(false);
  bench_command->add_flag("--load", *load, "instead: time of loading each kernel that the cases reach from the cache")
      ->excludes("--compile");
  auto layer_options = std::make_shared<BenchLayerOptions>();
  auto* model = bench_command->add_option("--model", layer_options->model, "layer: model inside the library, or a model file");
  auto* rate =
      bench_command->add_option("--rate", layer_options->rate, "layer: TB/s of the memory floor (default: as measured)")->check(positive());
  auto sweep_options = std::make_shared<BenchSweepOptions>();
  BenchSweepOptions& s = *sweep_options;
  bench_command
      ->add_option("--sweep", s.sweeps,
                   "along an axis, hidden=1024:16384:x2, tokens=1:9:+4 or hidden=96,768; again: a grid (the first is x)")
      ->type_size(1)
      ->allow_extra_args(false);
  list_option(bench_command->add_option("--set", s.set, "what is the same everywhere: tokens=4096,dtype=bf16"));
  list_option(bench_command->add_option("--mode", s.modes, "forward, backward, full (both, captured as one graph) (default: forward)"));
  list_option(bench_command->add_option("--provider", s.providers,
                                        "quern, cublaslt; with the Python package also torch, torch_compile, liger (default: quern)"));
  list_option(bench_command->add_option("--metric", s.metrics, "speed, memory (default: speed)"));
  bench_command->add_option("--filter", s.filters, "only where key=value, as provider=quern or hidden=1024; again: all must hold")
      ->type_size(1)
      ->allow_extra_args(false);
  bench_command->add_flag("--overwrite", s.overwrite, "replace rows that the file of --csv has");
  bench_command->add_flag("--plot", s.plot, "also draw it; with the Python package");
  bench_command->footer(
      "One of --sweep, --set, --mode, --provider, --metric, --filter, --overwrite and --plot makes it a sweep: docs/benchmarks.md.\n"
      "Exit codes: 1 when a result is WRONG, else 2 when a call was REFUSED or UNSUPPORTED, else 3 when a kernel was FROZEN, else 0.");
  std::vector<CLI::Option*> of_sweeps;
  for (const char* name : {"--sweep", "--set", "--mode", "--provider", "--metric", "--filter", "--overwrite", "--plot"})
    of_sweeps.push_back(bench_command->get_option(name)->group("Of a sweep"));
  std::vector<CLI::Option*> of_others;
  for (const char* name : {"--peer", "--host", "--compile", "--load", "--arch", "--sample", "--rotate", "--threads", "--model", "--rate"})
    of_others.push_back(bench_command->get_option(name));
  bench_command->callback([=, &action] {
    const BenchTimeOptions& t = *time_options;
    const auto is_given = [](const CLI::Option* option) { return option->count() > 0; };
    if (const auto one = std::find_if(of_sweeps.begin(), of_sweeps.end(), is_given); one != of_sweeps.end()) {
      if (const auto other = std::find_if(of_others.begin(), of_others.end(), is_given); other != of_others.end())
        throw CLI::ValidationError("bench " + (*one)->get_name(), "makes it a sweep, which has no " + (*other)->get_name());
      BenchSweepOptions o = *sweep_options;
      o.words = t.words;
      o.device = t.device, o.csv = t.csv, o.hot = t.hot, o.json = t.json, o.budget_ms = t.budget_ms, o.seed = t.seed;
      action = [=] { return bench_sweep(o); };
      return;
    }
    if (!*load && !*compile && !t.words.empty() && t.words[0] == "layer") {
      if (!t.peer.empty()) throw CLI::ValidationError("bench layer", "has no peer");
      BenchLayerOptions o = *layer_options;
      o.words.assign(t.words.begin() + 1, t.words.end());
      o.device = t.device, o.csv = t.csv, o.hot = t.hot, o.json = t.json, o.budget_ms = t.budget_ms, o.seed = t.seed;
      action = [=] { return bench_layer(o); };
      return;
    }
    if (model->count() || rate->count()) throw CLI::ValidationError("bench", "--model and --rate are for bench layer");
    if (*load) {
      if (time_options->words.size() > 1) throw CLI::ValidationError("bench --load", "takes one op or family");
      BenchLoadOptions o{"", time_options->device, compile_options->sample};
      if (!time_options->words.empty()) o.op = time_options->words[0];
      o.json = time_options->json;
      action = [=] { return bench_load(o); };
      return;
    }
    if (!*compile) {
      action = [=] { return bench_time(*time_options); };
      return;
    }
    if (time_options->words.size() > 1) throw CLI::ValidationError("bench --compile", "takes one op or family");
    if (!time_options->words.empty()) compile_options->op = time_options->words[0];
    compile_options->json = time_options->json;
    action = [=] { return bench_compile(*compile_options); };
  });
}

/// Drawn by python/quern/plot.py, which alone knows the options.
void add_plot(CLI::App& app, Action& action) {
  auto* plot_command = app.add_subcommand("plot", "draw a CSV of bench or of a sweep: times, floors, peers; a part of the Python package");
  plot_command->allow_extras()->fallthrough(false);
  plot_command->set_help_flag();
  plot_command->callback([&action] {
    action = []() -> int {
      throw Error(ErrorKind::unsupported,
                  "plot: this program does not draw, the Python package does: `quern plot` where it is installed, "
                  "`python3 python/quern/plot.py` in a checkout");
    };
  });
}

void add_building(CLI::App& app, Action& action) {
  auto* warm_command = app.add_subcommand("warm", "compile all kernels that serving a model can need");
  auto warm_options = std::make_shared<WarmCommandOptions>();
  warm_command->add_option("limits", warm_options->what.limits, "in the place of the model file's: tokens=1..64 tp=1,2 alignment=16");
  warm_command->add_option("--model", warm_options->what.model, "model inside the library, or a model file");
  auto* trace = warm_command->add_option("--trace", warm_options->trace, "also what calls recorded by QN_TRACE need: their folder");
  warm_command->add_flag("--trust-hooks", warm_options->trust_hooks, "--trace: also compile code that is recorded in the folder")
      ->needs(trace);
  list_option(warm_command->add_option("--arch", warm_options->archs, "for these GPUs, which need not be here: sm_90a,..."));
  warm_command->add_option("--device", warm_options->device, "for this device: emu, cuda:N (default: the first GPU, else emu)");
  warm_command->add_option("-j,--jobs", warm_options->what.processes, "worker processes (default: one per CPU)")
      ->check(whole(1, kMostThreads));
  warm_command->add_flag("--list", warm_options->what.list_only, "compile nothing");
  warm_command->add_flag("--json", warm_options->json);
  warm_command->callback([&action, warm_options] { action = [=] { return warm(*warm_options); }; });

  auto* completion_command = app.add_subcommand("completion", "print a completion script for bash, zsh or fish");
  auto shell = std::make_shared<std::string>();
  completion_command->add_option("shell", *shell)->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion_command->callback([&action, shell] { action = [=] { return completion(*shell); }; });
  add_cache(app, action);

  auto* new_command = app.add_subcommand("new", "start an op: writes its files into a checkout or a project");
  auto new_options = std::make_shared<NewOptions>();
  new_command->add_option("op", new_options->op, "family.name")->required();
  auto* project = new_command->add_option("--project", new_options->project, "root of a project of your own, in place of a checkout");
  new_command->add_option("--checkout", new_options->checkout, "root of the checkout (default: here)");
  new_command
      ->add_option("--based-on", new_options->based_on, "an op whose kernels take hooks: the new one is that with hooks, in three files")
      ->needs(project);
  new_command->callback([&action, new_options] { action = [=] { return new_op(*new_options); }; });
}

CommandWords words_of(const CLI::App& app) {
  CommandWords words;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames()) words[command->get_name()].push_back("--" + name);
  return words;
}

/// Of a line whose command is missing or none: which there are.
void say_commands(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  std::string list;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
    list += "  " + command->get_name() + std::string(command->get_name().size() < 12 ? 12 - command->get_name().size() : 1, ' ') +
            command->get_description() + "\n";
  }
  size_t at = 0;
  while (at < words.size() && (words[at] == "--load" || words[at].starts_with("--load="))) at += words[at] == "--load" ? 2 : 1;
  std::string what = "a command is missing";
  if (at < words.size() && words[at].starts_with("-")) {
    what = "'" + words[at] + "' stands where a command should, and is no option of quern itself";
  } else if (at < words.size()) {
    const std::string near = nearest(words[at], known);
    what = "'" + words[at] + "' is no command" + (near.empty() ? "" : "; the nearest is " + near);
  }
  std::fprintf(stderr, "quern: %s. The commands:\n%s", what.c_str(), list.c_str());
}

}  // namespace

void load_ops(const std::string& path) {
  if (!dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL))
    throw Error(ErrorKind::value, "", "--load", std::string("cannot be loaded: ") + dlerror(), "a library that links with libquern");
  try {
    registry();
  } catch (const Error& e) { throw Error(ErrorKind::value, "", "--load", "is " + path + ", whose `op` " + e.got(), e.expected()); }
}

/// Those of QN_LOAD and those named, which QN_LOAD has then too: a command that is printed to repeat a failure begins with it.
static void load_libraries(const std::vector<std::string>& named) {
  std::string loaded;
  const auto load = [&loaded](const std::string& path) {
    load_ops(path);
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::canonical(path, error);
    loaded += (loaded.empty() ? "" : ":") + (error ? path : whole.string());
  };
  for (const std::string& path : env_paths(Env::load)) load(path);
  for (const std::string& all : named) {
    std::istringstream paths(all);
    for (std::string path; std::getline(paths, path, ':');)
      if (!path.empty()) load(path);
  }
  if (!named.empty() && !loaded.empty()) setenv("QN_LOAD", loaded.c_str(), 1);
}

int command_line(int argc, char** argv) {
  CLI::App app("quern: GPU kernels for LLM serving");
  app.set_version_flag("--version", "quern " QN_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  std::vector<std::string> libraries;
  app.add_option("--load", libraries, "library with ops of your own, before the command; repeatable")
      ->type_size(1)
      ->allow_extra_args(false);
  app.get_formatter()->column_width(34);
  app.footer(
      "Exit codes: 0 right, 1 a wrong result, 2 bad input or a refused call, 3 the environment (a GPU, compiler or kernel is missing, frozen), 4 a replay with nothing to compare.");
  Action action;
  add_explaining(app, action);
  add_running(app, action);
  add_bench(app, action);
  add_plot(app, action);
  add_building(app, action);
  if (argc > 2 && std::string(argv[1]) == "completion" && std::string(argv[2]) == "next") {  // the rest is a line half typed
    for (const std::string& word : next_words(words_of(app), {argv + 3, argv + argc})) std::puts(word.c_str());
    return kRight;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0 && app.get_subcommands().empty()) return say_commands(app, {argv + 1, argv + argc}), kBadInput;
    return app.exit(e) == 0 ? kRight : kBadInput;
  }
  try {
    load_libraries(libraries);
    const int code = action();
    if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
    std::fprintf(stderr, "quern: the output cannot be written\n");
    return kEnvironment;
  } catch (const Error& e) {
    std::fprintf(stderr, "quern: %s error: %s\n", name(e.kind()), e.what());
    return exit_code(e.kind());
  } catch (const std::exception& e) {  // out of memory, mostly
    std::fprintf(stderr, "quern: %s\n", e.what());
    return kEnvironment;
  }
}

}  // namespace quern::cli
