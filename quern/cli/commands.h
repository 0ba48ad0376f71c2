// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The commands of `quern`, each with its options. They return exit codes and throw quern::Error.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quern/op/warm.h"
#include "quern/testing/check.h"

namespace quern::cli {

/// Exit codes.
constexpr int kRight = 0, kWrong = 1, kBadInput = 2, kEnvironment = 3, kNotCompared = 4;
int exit_code(ErrorKind kind);
/// "WRONG".
std::string upper(std::string word);

struct ListOptions {
  bool json = false;
};
int list(const ListOptions& options);

struct InfoOptions {
  std::string op;
  bool json = false;
};
int info(const InfoOptions& options);

/// Which devices, and how the emulated one behaves.
struct DeviceOptions {
  std::string device;                 ///< "emu", "emu:sm_80", "cuda:1", "all"; empty: the command's standard
  std::vector<std::string> async;     ///< eager, lazy, random
  std::vector<std::string> schedule;  ///< warp, fifo, shuffled
  long long emu_seed = 1;
  bool checked = false, asan = false;
  std::string host_compiler;
};
/// Devices made for one command.
class Devices {
 public:
  explicit Devices(const DeviceOptions& options, int os_threads = 0);
  const std::vector<testing::CheckDevice>& list() const { return list_; }
  bool any_cuda() const { return any_cuda_; }

 private:
  void add_emulated(const DeviceOptions& options, const std::string& name, int os_threads);
  void add_cuda(const std::string& name);
  std::vector<std::unique_ptr<Device>> owned_;
  std::vector<testing::CheckDevice> list_;
  bool any_cuda_ = false;
};

struct PlanOptions {
  std::string op;
  std::vector<std::string> words;
  std::string arch, device;
  bool json = false, source = false;
  bool compile = false;  ///< also put the kernels into the cache
};
int plan(const PlanOptions& options);

struct RunCommandOptions {
  std::string op;
  std::vector<std::string> words;
  DeviceOptions on;
  unsigned long long seed = 1;
  int iterations = 1;
  std::string replay;        ///< folder of a recorded call, in place of op and words
  bool trust_hooks = false;  ///< that are recorded in it, whoever wrote them
  bool json = false;
};
int run_op(const RunCommandOptions& options);
int replay(const RunCommandOptions& options);

struct CheckCommandOptions {
  std::vector<std::string> words;  ///< op, family or "all" (or nothing), then parameters
  DeviceOptions on;
  unsigned long long seed = 1;
  int seeds = 1;
  int sample = 0;      ///< 0: every pairwise case
  u64 rotate = 0;      ///< which sample, see sample.h
  double seconds = 0;  ///< for the cases of an op; 0: no limit
  bool each_kernel = false;
  bool no_nvrtc = false;  ///< compile for no GPU what runs on the emulated device
  int threads = 0;
  bool full = false, json = false, quiet = false;
};
int check(const CheckCommandOptions& options);

struct CheckModelOptions {
  std::string model;
  std::vector<std::string> limits;
  DeviceOptions on;
  long long calls = 500;
  unsigned long long seed = 1;
  bool frozen = false, json = false;
};
int check_model(const CheckModelOptions& options);

struct ProveOptions {
  std::vector<std::string> words;  ///< op, family or "all" (or nothing), then parameters
  unsigned long long seed = 1;
  int sample = 1;  ///< cases of each op
  int ways = 0;    ///< of running a case; 0: all
  bool json = false;
};
int prove(const ProveOptions& options);

struct GenerateOptions {
  std::string folder;  ///< of a checkpoint
  std::string random;  ///< instead: a config.json, and random weights
  unsigned long long weights_seed = 1;
  std::vector<std::string> ids;           ///< a prompt each: "1,2,3"
  std::vector<long long> random_prompts;  ///< a prompt of so many random tokens each
  long long max_new = 16;
  float temperature = 0, top_p = 1, min_p = 0;
  int top_k = 0;
  unsigned long long seed = 0;
  bool ignore_eos = false, batch_invariant = false, no_graphs = false;
  long long step_tokens = 0, max_batch = 0, page_size = 16;  ///< 0: the engine's own
  double kv_memory = 0;                                      ///< GB; 0: what is needed, at most what is free but 1 GiB
  DeviceOptions on;
  std::string logits;  ///< file that gets the logits of each answer
  bool floor = false;  ///< measure the read rate, and tell the time that the bytes of a decode step need
  bool check = false, stream = false, json = false;
};
int generate(const GenerateOptions& options);

struct TraceReportOptions {
  std::string folder;  ///< that QN_TRACE named
  std::string device;
  bool trust_hooks = false, json = false;
};
int trace_report(const TraceReportOptions& options);

struct FuzzCommandOptions {
  long long calls = 1000;
  unsigned long long seed = 1;
  std::string op;
  DeviceOptions on;
  bool json = false;
};
int fuzz(const FuzzCommandOptions& options);

struct BenchCompileOptions {
  std::string op;                  ///< op, family or empty: all
  std::vector<std::string> archs;  ///< empty: every known one
  int threads = 0;
  int sample = 0;  ///< so many kernels of each op and arch; 0: all
  u64 rotate = 0;  ///< which sample, see sample.h
  bool json = false;
};
int bench_compile(const BenchCompileOptions& options);

struct BenchLoadOptions {
  std::string op, device;
  int sample = 0;    ///< so many kernels of each op; 0: all
  int repeats = 15;  ///< a kernel
  bool json = false;
};
int bench_load(const BenchLoadOptions& options);

struct DemoOptions {
  std::string model = "llama-3.1-8b";
  std::string device;              ///< empty: the best one found
  std::vector<long long> lengths;  ///< tokens of each request; empty: four of up to 300
  std::vector<long long> queries;  ///< tokens of each request in this step; empty: one each
  bool prefill = false;            ///< instead: a step of prompts, and one that mixes a prompt with decode
  unsigned long long seed = 1;
  bool json = false;
};
int demo(const DemoOptions& options);

struct BenchTimeOptions {
  std::vector<std::string> words;  ///< op, family or "all" (or nothing), then parameters; without any the bench shapes
  std::string device;
  std::string csv, peer;  ///< a file; a provider of bench/providers.h
  bool hot = false, host = false, json = false;
  double budget_ms = 200;  ///< of the timed runs of a case
  unsigned long long seed = 1;
};
int bench_time(const BenchTimeOptions& options);

struct BenchSweepOptions {
  std::vector<std::string> words;  ///< ops, families or all, then parameters
  std::vector<std::string> modes = {"forward"}, metrics = {"speed"}, providers = {"quern"};
  std::vector<std::string> sweeps;   ///< "hidden=1024:16384:x2"; the first is x
  std::vector<std::string> set;      ///< "tokens=4096", "dtype=bf16"
  std::vector<std::string> filters;  ///< "provider=quern": only these
  std::string device, csv;
  bool overwrite = false, plot = false, hot = false, json = false;
  double budget_ms = 200;  ///< of the timed runs of a provider at a point
  unsigned long long seed = 1;
};
int bench_sweep(BenchSweepOptions options);

struct BenchLayerOptions {
  std::vector<std::string> words;  ///< batch=1,4 length=512 page_size=16; empty: three cases
  std::string model = "llama-3.1-8b";
  std::string device, csv;
  double rate = 0;  ///< TB/s of the memory floor; 0: measured
  bool hot = false, json = false;
  double budget_ms = 200;  ///< of the timed runs of a way
  unsigned long long seed = 1;
};
int bench_layer(const BenchLayerOptions& options);

struct DoctorOptions {
  bool json = false;
  bool has_nvrtc = false;  ///< print nothing; right when a usable NVRTC was found, for scripts
};
int doctor(const DoctorOptions& options);

struct WarmCommandOptions {
  WarmOptions what;
  std::vector<std::string> archs;
  std::string trace;         ///< folder that QN_TRACE wrote; empty: none
  bool trust_hooks = false;  ///< that are recorded in it, whoever wrote them
  std::string device;        ///< with no archs and empty: the standard device
  bool json = false;
};
int warm(const WarmCommandOptions& options);

/// Subcommands with their options, as the parser knows them.
using CommandWords = std::map<std::string, std::vector<std::string>>;
/// Prints the completion script of bash, zsh or fish.
int completion(const std::string& shell);
/// What may stand for the last of `words` (those behind "quern"), which may be begun or empty, one a line.
std::vector<std::string> next_words(const CommandWords& known, const std::vector<std::string>& words);

struct CacheCommandOptions {
  std::string action;      ///< ls, verify, prune, clear, pack, unpack
  std::string file, arch;  ///< of a pack
  long long limit_mb = -1, idle_days = -1;
  bool json = false;
};
int cache(const CacheCommandOptions& options);

struct NewOptions {
  std::string op;
  std::string checkout = ".";
  std::string project;   ///< root of a project of the user's; empty: a checkout of quern
  std::string based_on;  ///< an op whose kernels take hooks; empty: an op with kernels of its own
};
int new_op(const NewOptions& options);

/// Ops named by an id, a family or "all" (also empty). Throws Error{value} with the nearest.
std::vector<const Op*> ops_named(const std::string& word);

}  // namespace quern::cli
