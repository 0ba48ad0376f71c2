// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What this machine offers to quern, and why not more: the page to put into a bug report.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "quern/base/env.h"
#include "quern/base/fs.h"
#include "quern/base/subprocess.h"
#include "quern/base/version.h"
#include "quern/cli/as_json.h"
#include "quern/cli/commands.h"
#include "quern/jit/build.h"
#include "quern/jit/cache_disk.h"
#include "quern/jit/cache_roots.h"
#include "quern/jit/compiler_nvcc.h"
#include "quern/jit/compiler_nvrtc.h"
#include "quern/jit/pack.h"
#include "quern/testing/pairwise.h"

namespace quern::cli {

using Json = nlohmann::ordered_json;

namespace {

Json device_json(const std::string& name, const DeviceInfo& d) {
  return {{"name", name},
          {"model", d.name},
          {"arch", d.arch.name()},
          {"sms", d.sms},
          {"smem_block", d.smem_block},
          {"l2_bytes", d.l2_bytes},
          {"memory_bytes", d.memory_bytes},
          {"emulated", d.emulated != 0}};
}

Json devices() {
  Json list = Json::array();
  std::string why;
  const int count = cuda_device_count(&why);
  for (int i = 0; i < count; ++i) {
    const std::string name = "cuda:" + std::to_string(i);
    try {
      list.push_back(device_json(name, device_from_name(name).info()));
    } catch (const Error& e) { list.push_back({{"name", name}, {"missing", e.what()}}); }
  }
  if (count == 0) list.push_back({{"name", "cuda"}, {"missing", why}});
  list.push_back(device_json("emu", device_from_name("emu").info()));
  return list;
}

Json nvrtc() {
  Json list = Json::array();
  for (const jit::NvrtcCandidate& c : jit::nvrtc_candidates())
    list.push_back({{"origin", c.origin},
                    {"path", c.path},
                    {"accepted", c.accepted},
                    {"version", c.minor < 0 ? fmt::format("{}", c.major) : fmt::format("{}.{}", c.major, c.minor)},
                    {"reason", c.reason}});
  return list;
}

/// Only the places where there is one, or the one that was asked for.
Json nvcc() {
  Json list = Json::array();
  for (const jit::NvccCandidate& c : jit::nvcc_candidates())
    if (c.reason != "not found" || c.origin == "QN_JIT_NVCC")
      list.push_back({{"origin", c.origin}, {"path", c.path}, {"accepted", c.accepted}, {"version", c.version}, {"reason", c.reason}});
  return list;
}

Json host_compilers() {
  Json list = Json::array();
  for (const char* name : {"g++", "clang++"}) {
    const std::string path = find_program(name);
    if (path.empty()) {
      list.push_back({{"name", name}, {"missing", "not on PATH"}});
      continue;
    }
    const std::string version = run_process({path, "--version"}).output;
    list.push_back({{"name", name}, {"path", path}, {"version", version.substr(0, version.find('\n'))}});
  }
  return list;
}

/// What QN_CACHE_ROOTS names, in its order.
Json read_only_roots() {
  Json list = Json::array();
  for (const std::string& path : jit::read_only_roots()) {
    Json root = {{"path", path}};
    std::error_code error;
    try {
      if (std::filesystem::is_directory(path, error)) root["kind"] = "folder", root["entries"] = jit::DiskCache(path, true).list().size();
      else if (std::filesystem::exists(path, error)) root["kind"] = "pack", root["entries"] = jit::Pack::read(path).names().size();
      else root["problem"] = "is not there";
    } catch (const Error& e) { root["problem"] = e.what(); }
    list.push_back(root);
  }
  return list;
}

Json cache() {
  namespace fs = std::filesystem;
  const std::string folder = jit::cache_folder();
  i64 entries = 0, bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    entries += entry.is_directory(error) && fs::exists(entry.path() / "meta.json", error);
  for (auto at = fs::recursive_directory_iterator(folder, error); !error && at != fs::recursive_directory_iterator(); at.increment(error))
    if (at->is_regular_file(error)) bytes += i64(at->file_size(error));
  make_folders(folder);
  return {{"folder", folder},
          {"writable", access(folder.c_str(), W_OK) == 0},
          {"entries", entries},
          {"bytes", bytes},
          {"read_only", read_only_roots()}};
}

Json environment() {
  Json set = Json::object();
  for (const EnvInfo& e : env_table())
    if (const std::string value = env(e.id); !value.empty()) set[e.name] = value;
  return set;
}

std::string disassembler() {
  for (const char* tool : {"cuobjdump", "/usr/local/cuda/bin/cuobjdump", "nvdisasm", "/usr/local/cuda/bin/nvdisasm"})
    if (const std::string path = find_program(tool); !path.empty()) return path;
  return "";
}

/// Compiles one small kernel, the same whatever ops there are: times of two machines and versions can be compared.
Json test_compile(const std::string& name, const jit::Target& target) {
  const DeviceInfo device = device_info_of(target.arch);
  const Op& op = find_op("norm.rms_norm");
  const Case which = testing::derived(op, {});
  const testing::ArgsStorage args = testing::fake_args(op, which);
  const Plan plan = make_plan(op, bind(op, args.get(), testing::options_of(op, which)), device);
  Json result = {{"toolchain", name}, {"kernel", jit::print(plan.launches[0].spec)}};
  try {
    result["ms"] = jit::build(plan.launches[0].spec, target, true).compile_ms;
  } catch (const Error& e) { result["error"] = e.what(); }
  return result;
}

Json test_compiles(const Json& compilers, const char* gpu_compiler, const Json& candidates) {
  Json list = Json::array();
  for (const Json& c : compilers)
    if (c.contains("path")) list.push_back(test_compile(c["name"], {Arch{}, true, false, c["path"]}));
  for (const Json& c : candidates) {
    if (!c["accepted"]) continue;
    list.push_back(test_compile(gpu_compiler + (" " + c["version"].get<std::string>()), {Arch{}, false, false, ""}));
    break;
  }
  return list;
}

std::string megabytes(i64 bytes) { return fmt::format("{:.1f} MB", double(bytes) / 1e6); }

void print_devices(const Json& j) {
  fmt::print("devices\n");
  for (const Json& d : j) {
    const std::string name = d["name"];
    if (d.contains("missing")) fmt::print("  {}: none, {}\n", name, d["missing"].get<std::string>());
    else
      fmt::print("  {}: {} ({}, {} SMs, {} B shared memory a block, {} GiB)\n", name, d["model"].get<std::string>(),
                 d["arch"].get<std::string>(), d["sms"].get<int>(), d["smem_block"].get<int>(), d["memory_bytes"].get<i64>() >> 30);
  }
}

void print(const Json& j) {
  const auto text = [](const Json& x, const char* key) { return x.contains(key) ? x[key].get<std::string>() : std::string(); };
  fmt::print("quern {}, {} ops\n", text(j, "version"), j["ops"].get<size_t>());
  print_devices(j["devices"]);
  const auto print_candidates = [&](const char* title, const char* key) {
    fmt::print("{}\n", title);
    for (const Json& c : j[key])
      fmt::print("  {} {} from {}: {}\n", text(c, "path"), text(c, "version"), text(c, "origin"),
                 c["accepted"].get<bool>() ? "usable" : "rejected, " + text(c, "reason"));
  };
  print_candidates("NVRTC (compiles for GPUs)", "nvrtc");
  if (j["nvrtc"].empty()) fmt::print("  none found: pip install nvidia-cuda-nvrtc, or set QN_JIT_NVRTC\n");
  print_candidates("nvcc (compiles for GPUs with QN_JIT_COMPILER=nvcc)", "nvcc");
  if (j["nvcc"].empty())
    fmt::print("  none found at QN_JIT_NVCC, CUDA_HOME, CUDA_PATH, on PATH, in /usr/local/cuda or pip's nvidia trees\n");
  fmt::print("host compilers (compile for the emulated device)\n");
  for (const Json& c : j["host_compilers"])
    fmt::print("  {}: {}\n", text(c, "name"),
               c.contains("missing") ? text(c, "missing") : text(c, "version") + " (" + text(c, "path") + ")");
  const Json& cache = j["cache"];
  fmt::print("cache\n  {}: {} entries, {}, {}\n", text(cache, "folder"), cache["entries"].get<i64>(), megabytes(cache["bytes"].get<i64>()),
             cache["writable"].get<bool>() ? "writable" : "NOT writable: kernels are compiled anew in each process");
  for (const Json& root : cache["read_only"])
    fmt::print("  {}: {}\n", text(root, "path"),
               root.contains("problem") ? text(root, "problem")
                                        : fmt::format("read-only {} of {} entries", text(root, "kind"), root["entries"].get<i64>()));
  fmt::print("disassembler\n  {}\n", text(j, "disassembler").empty() ? "none found (cuobjdump, nvdisasm)" : text(j, "disassembler"));
  fmt::print("environment\n");
  for (const auto& [name, value] : j["environment"].items()) fmt::print("  {}={}\n", name, value.get<std::string>());
  if (j["environment"].empty()) fmt::print("  no QN_ variable is set\n");
  fmt::print("test compiles\n");
  for (const Json& t : j["test_compiles"])
    fmt::print("  {}: {}\n", text(t, "toolchain"),
               t.contains("error") ? "FAILED, " + text(t, "error") : fmt::format("{:.0f} ms {}", t["ms"].get<double>(), text(t, "kernel")));
}

Json report() {
  Json j = {{"version", QN_VERSION}, {"ops", registry().size()}};
  j["devices"] = devices();
  j["nvrtc"] = nvrtc();
  j["nvcc"] = nvcc();
  j["host_compilers"] = host_compilers();
  j["cache"] = cache();
  j["disassembler"] = disassembler();
  j["environment"] = environment();
  const bool by_nvcc = env_choice(Env::jit_compiler, {"nvrtc", "nvcc"}) == 1;
  j["test_compiles"] = test_compiles(j["host_compilers"], by_nvcc ? "nvcc" : "NVRTC", j[by_nvcc ? "nvcc" : "nvrtc"]);
  return j;
}

}  // namespace

std::string doctor_json() { return report().dump(2); }

int doctor(const DoctorOptions& options) {
  if (options.has_nvrtc) return jit::NvrtcCompiler::get() ? kRight : kEnvironment;
  const Json j = report();
  bool any = false, failed = false;
  for (const Json& t : j["test_compiles"]) (t.contains("error") ? failed : any) = true;
  if (options.json) std::puts(j.dump(2).c_str());
  else print(j);
  return any && !failed ? kRight : kEnvironment;
}

}  // namespace quern::cli
