// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// For tests: runs a planted kernel on an emulated device.
#pragma once
#include <map>

#include "quern/base/error.h"
#include "quern/emu/planted_copies.h"
#include "quern/emu/planted_hopper.h"
#include "quern/emu/planted_kernels.h"
#include "quern/emu/planted_luck.h"
#include "quern/emu/planted_wgmma.h"
#include "quern/kit/conform/runner.h"

namespace quern::emu::planted {

struct Params {
  const float* in;
  float* out;
  float* scratch;
  u32* flags;
  i32 n, which;
  TensorMap rows, results;
};

/// Those of every file but planted_asan.h.
inline std::vector<const Sample*> all_samples() {
  std::vector<const Sample*> all;
  for (const auto* of_file : {&samples(), &copy_samples(), &wgmma_samples(), &hopper_samples(), &luck_samples()})
    for (const Sample& sample : *of_file) all.push_back(&sample);
  return all;
}

/// Replaces what the mutation names.
inline std::string mutated(const Sample& sample, const Mutation& mutation) {
  std::string body = sample.body;
  const size_t at = body.find(mutation.from);
  EXPECT_NE(at, std::string::npos) << sample.name << ": " << mutation.name;
  if (at != std::string::npos) body.replace(at, std::string(mutation.from).size(), mutation.to);
  return body;
}

/// Shared object of a kernel text; each is compiled once in the process.
inline const std::string& object_of(const std::string& text, const std::string& compiler, const jit::HostMode& mode) {
  struct Object {
    conform::Folder folder;
    std::string path;
  };
  static std::map<std::string, Object> made;
  Object& object = made[compiler + (mode.checked ? " checked\n" : mode.asan ? " asan\n" : "\n") + text];
  if (object.path.empty()) object.path = conform::build_emulated(object.folder, text, compiler, mode);
  return object.path;
}

/// A sample and those of its mutations that `wanted` takes, in one object: its i-th is chosen by which = i + 1.
struct Bodies {
  template <class Wanted>
  Bodies(const Sample& of, const Wanted& wanted) : sample(of), bodies{of.body} {
    for (const Mutation& mutation : of.mutations)
      if (wanted(mutation)) {
        mutations.push_back(&mutation);
        bodies.push_back(mutated(of, mutation));
      }
  }
  std::string text() const { return text_of(sample, bodies); }
  const Sample& sample;
  std::vector<const Mutation*> mutations;
  std::vector<std::string> bodies;
};

/// The report's text, or empty.
inline std::string run(const std::string& path, const Sample& sample, const EmulatedOptions& options, int which = 0) {
  const auto device = make_emulated_device(DeviceInfo{}, options);
  const Function function = device->load(ImageKind::shared_object, {}, path, "planted", int(sample.smem));
  const i64 blocks = sample.blocks;
  std::vector<float> in(size_t(80 * blocks), 0.5f), out(size_t(blocks), 0.0f);
  struct alignas(256) {
    float values[64];
  } scratch{};
  std::vector<u32> flags(64, 0);
  TensorView rows(in.data(), DType::f32, {blocks, 64});
  rows.strides[0] = 80;
  using Access = MemoryRange::Access;
  const MemoryRange ranges[] = {{rows, "in", Access::read},
                                {TensorView(out.data(), DType::f32, {blocks}), "out", Access::write},
                                {TensorView(scratch.values, DType::f32, {64}), "scratch", Access::scratch},
                                {TensorView(flags.data(), DType::i32, {64}), "flags", Access::read_write}};
  const TensorMap map_of_rows = device->make_tensor_map({DType::f32, 2, in.data(), {64, blocks}, {320}, {32, 1}, Swizzle::none});
  const TensorMap map_of_results = device->make_tensor_map({DType::f32, 2, scratch.values, {32, 2}, {128}, {32, 1}, Swizzle::none});
  const Params params{in.data(), out.data(), scratch.values, flags.data(), 64, which, map_of_rows, map_of_results};
  LaunchConfig config;
  config.grid[0] = sample.blocks;
  config.threads = sample.threads;
  config.smem = sample.smem;
  config.cluster = sample.cluster;
  config.pdl = sample.dependent_launches > 0;
  std::string report;
  device->begin_call(ranges, sample.name);
  try {
    for (int i = 0; i < std::max(1, sample.dependent_launches); ++i) device->launch(function, config, &params, sizeof(params), {});
  } catch (const Error& error) { report = error.what(); }
  device->end_call();
  device->unload(function);
  return report;
}

/// The kind of a report: "RACE".
inline std::string kind_of(const std::string& report) { return report.substr(0, report.find_first_of(" :")); }

}  // namespace quern::emu::planted
