// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/device_sets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace quern::bench {

int sets_wanted(double set_bytes, const DeviceInfo& device, bool cold) {
  if (!cold || set_bytes <= 0) return 1;
  const double wanted = std::clamp(std::ceil(3.0 * double(device.l2_bytes) / set_bytes), 2.0, 8.0);
  const double held = std::floor(double(device.memory_bytes) / 2 / set_bytes);
  return int(std::max(1.0, std::min(wanted, held)));
}

DeviceSets::DeviceSets(const testing::CaseArgs& host, Device& device, int count) : host_(host), device_(device) {
  for (int i = 0; i < count; ++i) sets_.push_back(make(i));
  device_.synchronize({});
}

DeviceSets::Set DeviceSets::make(int set) {
  const Op& op = host_.op();
  Set made{testing::ArgsStorage(op), {}};
  std::memcpy(made.args.get(), host_.args(), op.args_bytes);
  made.blocks.resize(op.tensors.size());
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    TensorView& view = op.tensor(made.args.get(), i);
    const testing::CaseArgs::Buffer& buffer = host_.buffer(i);
    if (!view.present()) continue;
    if (host_.holder(i) != i)
      throw Error(ErrorKind::unsupported, op.id, op.tensors[i].name, "is in the place of an input",
                  "an output of its own: timed runs would feed on their results");
    DeviceMemory& block = made.blocks[i] = DeviceMemory(device_, size_t(buffer.size), op.tensors[i].name.c_str());
    const void* from = set == 0 ? buffer.initial.get() : sets_[0].blocks[i].data();
    device_.copy(block.data(), from, size_t(buffer.size), {});
    view.data = block.data() + buffer.offset;
    view.device = device_.id();
  }
  return made;
}

void DeviceSets::restore(int set) {
  const Op& op = host_.op();
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const DeviceMemory& block = sets_[size_t(set)].blocks[i];
    if (!block.data() || op.tensors[i].role == Role::in) continue;
    if (op.tensors[i].role == Role::out) device_.fill(block.data(), testing::kPoison, block.bytes(), {});
    else device_.copy(block.data(), host_.buffer(i).initial.get(), block.bytes(), {});
  }
  device_.synchronize({});
}

Downloaded DeviceSets::download(int set, size_t tensor) {
  const testing::CaseArgs::Buffer& buffer = host_.buffer(tensor);
  Downloaded d;
  d.bytes = {static_cast<char*>(std::aligned_alloc(256, size_t(buffer.size))), std::free};
  if (!d.bytes) throw Error(ErrorKind::device, "no host memory for " + std::to_string(buffer.size) + " bytes");
  device_.synchronize({});
  device_.copy(d.bytes.get(), sets_[size_t(set)].blocks[tensor].data(), size_t(buffer.size), {});
  device_.synchronize({});
  d.view = host_.tensor(tensor);
  d.view.data = d.bytes.get() + buffer.offset;
  return d;
}

}  // namespace quern::bench
