// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/replay.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "quern/base/host_dtype.h"
#include "quern/op/tensor_bytes.h"

namespace quern::testing {

namespace {

size_t size_on_host(const TracedMemory& m) { return size_t(round_up<i64>(m.bytes + m.misalignment + 2 * kGuardBytes, 256)); }

/// A system that promises more memory than it has would kill the process for filling it. The reference has tensors of its own
/// and writes doubles, values and magnitudes; outputs are compared packed, those of the record and of the replay.
void check_room(const TracedCall& call, bool reference) {
  size_t all = 0;
  for (const TracedMemory& m : call.memory) all += (1 + size_t(reference)) * size_on_host(m);
  for (size_t i = 0; i < call.places.size(); ++i) {
    const TensorView& v = call.op->tensor(call.args.get(), i);
    if (call.places[i].memory >= 0 && call.op->tensors[i].role != Role::in)
      all += size_t(v.numel()) * ((reference ? 2 * sizeof(double) : 0) + 2 * size_t(size_of(v.dtype)));
  }
  const size_t room = size_t(::sysconf(_SC_PHYS_PAGES)) * size_t(::sysconf(_SC_PAGESIZE));
  if (all > room)
    throw Error(ErrorKind::device,
                "the host has no " + std::to_string(all) + " bytes for the tensors of " + call.folder + " and what they are compared with");
}

/// The memory of a recorded call, as it was before the call: on the host, or on a GPU where the device is one.
class ReplayMemory {
 public:
  ReplayMemory(const TracedCall& call, Device& device) : device_(device), args(call.args) {
    for (const TracedMemory& m : call.memory) sizes_.push_back(size_on_host(m));
    for (const size_t size : sizes_) {
      host_.emplace_back(static_cast<char*>(std::aligned_alloc(256, size)), std::free);
      if (!host_.back())
        throw Error(ErrorKind::device, "the host has no " + std::to_string(size) + " bytes for the tensors of " + call.folder);
      std::memset(host_.back().get(), kPoison, size);
    }
    for (size_t i = 0; i < call.places.size(); ++i) place(call, i);
    if (device.id().type == DeviceType::cuda) move_to_gpu(call);
  }
  ~ReplayMemory() {
    for (void* block : on_gpu_) {
      try {
        device_.release(block);
      } catch (const Error&) {  // the device has failed; what made it fail was reported
      }
    }
  }
  ReplayMemory(const ReplayMemory&) = delete;

 private:
  void place(const TracedCall& call, size_t i) {
    const TracedPlace& at = call.places[i];
    if (at.memory < 0) return;
    TensorView& v = call.op->tensor(args.get(), i);
    v.device = {};
    v.data = host_[size_t(at.memory)].get() + kGuardBytes + call.memory[size_t(at.memory)].misalignment + at.offset;
    if (call.op->tensors[i].role == Role::out) return;
    std::string elements = call.elements(i, false);
    copy_elements(TensorView(elements.data(), v.dtype, v.shape, v.rank), v);
  }

  void move_to_gpu(const TracedCall& call) {
    for (size_t m = 0; m < host_.size(); ++m) {
      on_gpu_.push_back(device_.allocate(sizes_[m], "replay"));
      device_.copy(on_gpu_[m], host_[m].get(), sizes_[m], Stream{});
    }
    device_.synchronize(Stream{});
    for (size_t i = 0; i < call.places.size(); ++i) {
      if (call.places[i].memory < 0) continue;
      const size_t m = size_t(call.places[i].memory);
      TensorView& v = call.op->tensor(args.get(), i);
      v.data = static_cast<char*>(on_gpu_[m]) + (static_cast<char*>(v.data) - host_[m].get());
      v.device = device_.id();
    }
  }

  Device& device_;
  std::vector<std::unique_ptr<char, void (*)(void*)>> host_;
  std::vector<size_t> sizes_;
  std::vector<void*> on_gpu_;

 public:
  ArgsStorage args;
};

/// The packed elements of one output, as a tensor.
struct Elements {
  std::string bytes;
  TensorView view;
  Elements(std::string b, const TensorView& like) : bytes(std::move(b)), view(bytes.data(), like.dtype, like.shape, like.rank) {}
  Elements(const Elements&) = delete;
};

std::string index_text(const TensorView& v, i64 at) {
  std::string text;
  for (int d = v.rank - 1; d >= 0; --d) {
    text = std::to_string(at % v.shape[d]) + (text.empty() ? "" : ", ") + text;
    at /= v.shape[d];
  }
  return "[" + text + "]";
}

void compare_bits(const Elements& was, const Elements& is, ReplayedOutput& to) {
  to.has_bits = true;
  const i64 size = size_of(is.view.dtype);
  for (i64 i = 0; i < is.view.numel(); ++i) {
    const char *a = was.bytes.data() + i * size, *b = is.bytes.data() + i * size;
    if (std::memcmp(a, b, size_t(size)) == 0) continue;
    if (to.different++ == 0)
      to.first =
          fmt::format("{} is {:.9g} and was {:.9g}", index_text(is.view, i), load_value(b, is.view.dtype), load_value(a, is.view.dtype));
  }
}

bool same_kind(const TracedCall& call, const Device& device) {
  return call.emulated == bool(device.info().emulated) && call.arch == device.info().arch;
}

/// Another grid may split sums elsewhere, on a device of the same arch, too.
bool planned_alike(const TracedCall& call, const Plan& plan) {
  if (call.launches.size() != size_t(plan.count)) return false;
  for (i32 i = 0; i < plan.count; ++i) {
    const TracedLaunch& was = call.launches[size_t(i)];
    const Launch& is = plan.launches[i];
    if (was.kernel != jit::print(is.spec) || !std::equal(was.grid, was.grid + 3, is.config.grid) || was.cluster != is.config.cluster)
      return false;
  }
  return true;
}

}  // namespace

size_t ReplayResult::compared() const {
  return size_t(std::count_if(outputs.begin(), outputs.end(), [&](const ReplayedOutput& o) { return o.has_bits || has_reference; }));
}

ReplayResult::Verdict ReplayResult::verdict() const {
  for (const ReplayedOutput& o : outputs)
    if (o.different || (has_reference && !o.replayed.ok)) return Verdict::wrong;
  return compared() > 0 ? Verdict::right : Verdict::not_compared;
}

static void check_data(const TracedCall& call) {
  if (!call.left_out.empty())
    throw Error(ErrorKind::value, "", "trace", "'" + call.folder + "' has no data (" + call.left_out + ")", "one with data");
}

struct RecordedCall::Parts {
  Parts(const TracedCall& c, Device& device) : call(c), memory(c, device), options(c.options) { options.device = &device; }
  const TracedCall& call;
  ReplayMemory memory;
  RunOptions options;
};
RecordedCall::RecordedCall(const TracedCall& call, Device& device) {
  check_data(call);
  check_room(call, false);
  parts_ = std::make_unique<Parts>(call, device);
}
RecordedCall::~RecordedCall() = default;
void RecordedCall::run() { quern::run(*parts_->call.op, parts_->memory.args.get(), parts_->options); }

Cost cost_of(const TracedCall& call) {
  check_data(call);
  check_room(call, false);
  const ReplayMemory host(call, device_of(DeviceId{}));  // an op's cost may depend on the contents of index tensors
  RunOptions options = call.options;
  options.device = nullptr;
  return cost_of(*call.op, bind(*call.op, host.args.get(), options), host.args.get());
}

ReplayResult replay(const TracedCall& call, Device& device) {
  check_data(call);
  const Op& op = *call.op;
  check_room(call, call.finished);
  ReplayMemory memory(call, device);
  RunOptions options = call.options;
  options.device = &device;
  const Problem problem = bind(op, memory.args.get(), options);
  ReplayResult result;
  const Plan plan = make_plan(op, problem, device.info());
  result.kernels = kernels_text(plan);
  result.planned_alike = planned_alike(call, plan);
  run(op, memory.args.get(), options);
  device.synchronize(Stream{});
  result.has_recorded = call.has_outputs;
  result.has_reference = call.finished;
  if (!result.has_reference) return result;
  Device& host = device_of(DeviceId{});
  for (const Truth& t : truth_of(op, ReplayMemory(call, host).args.get())) {
    const TensorView& v = op.tensor(memory.args.get(), t.tensor);
    const Elements is({packed_elements(v, device, Stream{}).get(), size_t(packed_bytes(v))}, v);
    ReplayedOutput& o = result.outputs.emplace_back();
    o.name = op.tensors[t.tensor].name;
    const Budget budget = budget_of(op, problem, t.tensor);
    o.replayed = compare(is.view, t.values, t.magnitudes, budget);
    if (!result.has_recorded) continue;
    const Elements was(call.elements(t.tensor, true), v);
    if (same_kind(call, device) && result.planned_alike) compare_bits(was, is, o);
    o.recorded = compare(was.view, t.values, t.magnitudes, budget);
  }
  return result;
}

}  // namespace quern::testing
