// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// For tests: compiles a kernel text for every world that this machine has (each host compiler for the emulated device,
// plain, checked and with asan; NVRTC where a GPU is usable) and runs it there.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "quern/base/error.h"
#include "quern/base/subprocess.h"
#include "quern/device/emulated.h"
#include "quern/jit/compiler_host.h"
#include "quern/jit/compiler_nvrtc.h"
#include "quern/kit/conform/params.h"
#include "tests/full_sweep.h"

namespace quern::conform {

namespace fs = std::filesystem;

struct World {
  std::string name;
  std::string compiler;  ///< empty: NVRTC, on the GPU
  EmulatedOptions options;
};
inline void PrintTo(const World& world, std::ostream* out) { *out << world.name; }

/// The repository's root, as the compiler saw this file.
inline fs::path source_root() { return fs::absolute(fs::path(__FILE__)).parent_path().parent_path().parent_path().parent_path(); }

inline std::vector<std::string> host_compilers() {
  std::vector<std::string> found;
  for (const char* name : {"g++", "clang++"})
    if (!find_program(name).empty()) found.push_back(name);
  return found;
}

/// The GPU where there is one, and of the emulated worlds in the full sweep all: each compiler plain, checked, with asan. In a
/// sample every compiler plain, one checked and the other with asan; `turn` exchanges these two.
inline std::vector<World> worlds(size_t turn) {
  const std::vector<std::string> compilers = host_compilers();
  std::vector<World> all;
  for (size_t i = 0; i < compilers.size(); ++i)
    for (const char* mode : {"", "_checked", "_asan"}) {
      World world{compilers[i] + mode, compilers[i], {}};
      for (char& c : world.name)
        if (c == '+') c = 'p';
      world.options.checked = mode == std::string("_checked");
      world.options.asan = mode == std::string("_asan");
      const size_t taken = world.options.checked ? turn : turn + 1;
      const bool plain = !world.options.checked && !world.options.asan;
      if (plain || full_sweep() || taken % compilers.size() == i) all.push_back(world);
    }
  if (cuda_device_count() > 0) all.push_back({"cuda", "", {}});
  return all;
}

/// A folder of its own, removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "quern-conform-XXXXXX").string();
    path = mkdtemp(pattern.data());
    fs::create_directory_symlink(source_root(), path / "source");
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path path;
};

/// Shared object of a kernel text for the emulated device.
inline std::string build_emulated(const Folder& folder, const std::string& text, const std::string& compiler, const jit::HostMode& mode) {
  std::ofstream(folder.path / "kernel.cu") << text;
  jit::HostCompiler::named(compiler).compile(folder.path.string(), "conform", mode);
  return (folder.path / "kernel.so").string();
}

inline jit::CompileResult compile_gpu(const std::string& text, Arch arch) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* room : {"kit", "bricks"})
    for (const auto& entry : fs::recursive_directory_iterator(source_root() / "quern" / room)) {
      const std::string name = entry.path().filename().string();
      if (entry.path().extension() != ".cuh" && name != "abi.h" && name != "params.h" && !name.ends_with("spec.h")) continue;
      std::ostringstream content;
      content << std::ifstream(entry.path()).rdbuf();
      files.emplace_back(fs::relative(entry.path(), source_root()).string(), content.str());
    }
  std::vector<jit::Header> headers;
  for (const auto& [name, content] : files) headers.push_back({name.c_str(), content.c_str()});
  jit::NvrtcCompiler* compiler = jit::NvrtcCompiler::get(arch);
  if (!compiler) throw std::runtime_error(jit::nvrtc_missing_text(arch));
  jit::CompileRequest request;
  request.name = "conform";
  request.source = text;
  request.headers = headers;
  request.arch = arch;
  return compiler->compile(request);
}
inline std::vector<char> build_cubin(const std::string& text, Arch arch) { return compile_gpu(text, arch).image; }

/// One kernel in one world. The text ends with QN_ENTRY(conform, ...).
class Kernel {
 public:
  /// assemble: where no GPU runs it, the text is at least assembled for one; once is enough.
  Kernel(const World& world, const std::string& text, u32 threads, u32 smem, const DeviceInfo& info = {}, bool assemble = true)
      : options_(world.options) {
    config.threads = threads;
    config.smem = smem;
    if (world.compiler.empty()) {
      device_ = &device_of({DeviceType::cuda, 0});
      const std::vector<char> image = build_cubin(text, device_->info().arch);
      function_ = device_->load(ImageKind::cubin, image, "", "conform", int(smem));
    } else {
      emulated_ = make_emulated_device(info, world.options);
      device_ = emulated_.get();
      path_ = build_emulated(folder_, text, world.compiler,
                             {.checked = world.options.checked, .asan = world.options.asan, .number = world.options.number});
      if (assemble && cuda_device_count() == 0 && world.name == worlds(0).front().name && jit::NvrtcCompiler::get(Arch{90, 1}))
        build_cubin(text, Arch{90, 1});
      function_ = device_->load(ImageKind::shared_object, {}, path_, "conform", int(smem));
    }
  }
  ~Kernel() {
    try {
      device_->unload(function_);
    } catch (const Error&) {  // the GPU's context has ended, which the test was told
    }
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  /// Calls visit() under each policy of asynchronous completion; a GPU has but its own.
  template <class Visit>
  void under_every_policy(const Visit& visit) {
    if (!emulated_) return visit();
    for (const AsyncPolicy policy : {AsyncPolicy::eager, AsyncPolicy::lazy, AsyncPolicy::random}) {
      SCOPED_TRACE("async policy " + std::to_string(int(policy)));
      device_->unload(function_);
      options_.async = policy;
      emulated_ = make_emulated_device(DeviceInfo(device_->info()), options_);
      device_ = emulated_.get();
      function_ = device_->load(ImageKind::shared_object, {}, path_, "conform", int(config.smem));
      visit();
    }
  }

  /// Runs on copies of `in` and `out`; `out` then holds the result. Checked worlds and asan watch both.
  template <class In, class Out>
  void run(const std::vector<In>& in, std::vector<Out>& out, i32 n) {
    run_with(in, out, [&](const void* from, void* to) { return Params{from, to, n}; });
  }
  /// The same with the parameters that make(from, to) returns for the copies.
  template <class In, class Out, class Make>
  void run_with(const std::vector<In>& in, std::vector<Out>& out, const Make& make) {
    const size_t in_bytes = in.size() * sizeof(In), out_bytes = out.size() * sizeof(Out);
    void* from = device_->allocate(in_bytes, "in");
    void* to = device_->allocate(out_bytes, "out");
    device_->copy(from, in.data(), in_bytes, {});
    device_->copy(to, out.data(), out_bytes, {});
    const MemoryRange ranges[] = {{TensorView(from, DType::u8, {i64(in_bytes)}), "in", MemoryRange::Access::read},
                                  {TensorView(to, DType::u8, {i64(out_bytes)}), "out", out_access}};
    const auto params = make(static_cast<const void*>(from), to);
    try {
      device_->begin_call(ranges, "conform");
      for (int i = 0; i < launches; ++i) device_->launch(function_, config, &params, sizeof(params), {});
      device_->end_call();
      device_->synchronize({});
      device_->copy(out.data(), to, out_bytes, {});
      device_->synchronize({});
    } catch (...) {
      device_->end_call();
      device_->release(from);
      device_->release(to);
      throw;
    }
    device_->release(from);
    device_->release(to);
  }

  int launches = 1;
  LaunchConfig config;
  MemoryRange::Access out_access = MemoryRange::Access::read_write;
  Device& device() { return *device_; }
  Function function() const { return function_; }

 private:
  Folder folder_;
  EmulatedOptions options_;
  std::unique_ptr<Device> emulated_;
  Device* device_ = nullptr;
  Function function_;
  std::string path_;
};

/// Text of a kernel file of this folder, or of a brick's, with one of its functions as the entry.
inline std::string kernel_text(const std::string& file, const std::string& function, u32 threads, const std::string& params = "Params") {
  return "#include \"" + (file.starts_with("quern/") ? file : "quern/kit/conform/" + file) +
         "\"\nQN_ENTRY(conform, quern::conform::" + params + ", " + std::to_string(threads) + ", 1, quern::conform::" + function + "(p))\n";
}

/// Fixture: one test, every world.
class Conform : public ::testing::TestWithParam<World> {};
inline std::string world_name(const ::testing::TestParamInfo<World>& info) { return info.param.name; }

}  // namespace quern::conform
