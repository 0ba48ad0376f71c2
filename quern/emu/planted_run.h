// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// For tests: runs a planted kernel on an emulated device.
#pragma once
#include "quern/base/error.h"
#include "quern/emu/planted_kernels.h"
#include "quern/kit/conform/runner.h"

namespace quern::emu::planted {

struct Params {
  const float* in;
  float* out;
  float* scratch;
  u32* flags;
  i32 n, which;
};

/// Replaces what the mutation names.
inline std::string mutated(const Sample& sample, const Mutation& mutation) {
  std::string body = sample.body;
  const size_t at = body.find(mutation.from);
  EXPECT_NE(at, std::string::npos) << sample.name << ": " << mutation.name;
  if (at != std::string::npos) body.replace(at, std::string(mutation.from).size(), mutation.to);
  return body;
}

/// The report's text, or empty.
inline std::string run(const std::string& path, const Sample& sample, const EmulatedOptions& options, int which = 0) {
  const auto device = make_emulated_device(DeviceInfo{}, options);
  const Function function = device->load(ImageKind::shared_object, {}, path, "planted", int(sample.smem));
  const i64 blocks = sample.blocks;
  std::vector<float> in(size_t(80 * blocks), 0.5f), out(size_t(blocks), 0.0f), scratch(64, 0.0f);
  std::vector<u32> flags(64, 0);
  TensorView rows(in.data(), DType::f32, {blocks, 64});
  rows.strides[0] = 80;
  using Access = MemoryRange::Access;
  const MemoryRange ranges[] = {{rows, "in", Access::read},
                                {TensorView(out.data(), DType::f32, {blocks}), "out", Access::write},
                                {TensorView(scratch.data(), DType::f32, {64}), "scratch", Access::scratch},
                                {TensorView(flags.data(), DType::i32, {64}), "flags", Access::read_write}};
  const Params params{in.data(), out.data(), scratch.data(), flags.data(), 64, which};
  LaunchConfig config;
  config.grid[0] = sample.blocks;
  config.threads = sample.threads;
  config.smem = sample.smem;
  std::string report;
  device->begin_call(ranges, sample.name);
  try {
    device->launch(function, config, &params, sizeof(params), {});
  } catch (const Error& error) {
    report = error.what();
  }
  device->end_call();
  device->unload(function);
  return report;
}

/// The kind of a report: "RACE".
inline std::string kind_of(const std::string& report) { return report.substr(0, report.find_first_of(" :")); }

}  // namespace quern::emu::planted
