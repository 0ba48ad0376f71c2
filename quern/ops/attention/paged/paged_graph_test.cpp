// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// One captured call serves every set of lengths and pages: replays are bitwise equal to eager calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "quern/device/emulated.h"
#include "quern/testing/case_args.h"
#include "quern/testing/compare.h"
#include "quern/testing/truth.h"

namespace quern {
namespace {

using testing::CaseArgs;
using testing::DeviceArgs;

class attention_paged_graph : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr i64 kBatch = 4, kPageSize = 16, kCapacity = 528;
};

/// Lengths of set `round`: all 0, all the maximum, then random ones, page edges among them.
void write_lengths(i32* lengths, i64 batch, i64 capacity, int round, Random& random) {
  for (i64 b = 0; b < batch; ++b) {
    const i64 edge = 16 * random.below(capacity / 16);
    const i64 choices[] = {random.below(capacity + 1), edge, edge + 1, std::max<i64>(edge - 1, 0), 1, capacity};
    lengths[b] = i32(round == 0 ? 0 : round == 1 ? capacity : choices[random.below(6)]);
  }
}

void shuffle_pages(i32* table, i64 entries, i64 pages, Random& random) {
  std::vector<i32> order(static_cast<size_t>(pages));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[size_t(random.below(i64(i)))]);
  std::copy_n(order.begin(), entries, table);
}

TEST_P(attention_paged_graph, replays_are_bitwise_the_eager_result) {
  std::string why;
  if (std::string(GetParam()) == "cuda" && cuda_device_count(&why) == 0) GTEST_SKIP() << "needs a GPU: " << why;
  Device& device = device_from_name(GetParam());
  const Op& op = find_op("attention.paged");
  const Case given{{"batch", kBatch}, {"capacity", kCapacity}, {"page_size", kPageSize}, {"heads_kv", 2}, {"gqa", 4}, {"head_dim", 128},
                   {"csr", 0},        {"out_lse.present", 1}};
  CaseArgs host(op, given, 7);
  DeviceArgs on_device(host, device);
  // The whole cache holds data: any page may become reachable.
  const size_t k = size_t(op.tensor_index("k_cache")), v = size_t(op.tensor_index("v_cache"));
  Random random(11);
  for (const size_t cache : {k, v}) {
    u16* values = static_cast<u16*>(host.tensor(cache).data);
    for (i64 i = 0; i < host.tensor(cache).extent(); ++i) values[i] = u16(0x3c00 + random.below(0x700) + (random.below(2) << 15));
  }
  on_device.upload();

  const TensorView lengths = host.tensor(size_t(op.tensor_index("seq_lens"))), table = host.tensor(size_t(op.tensor_index("page_table")));
  const i64 pages = host.tensor(k).shape[0];
  const size_t out = size_t(op.tensor_index("out")), lse = size_t(op.tensor_index("out_lse"));
  RunOptions options;
  options.device = &device;
  options.stream = device.create_stream();
  const Plan plan = make_plan(op, bind(op, on_device.args(), options), device.info());
  void* workspace = device.allocate(size_t(std::max<i64>(plan.workspace, 256)), "workspace");
  options.workspace = {workspace, plan.workspace};
  run(op, on_device.args(), options);  // loads the kernels: a capture may not
  device.synchronize(options.stream);
  device.begin_capture(options.stream);
  run(op, on_device.args(), options);
  void* graph = device.end_capture(options.stream);

  const auto outputs = [&] {
    device.synchronize(options.stream);
    on_device.download();
    std::vector<char> bytes;
    for (const size_t i : {out, lse}) {
      const TensorView view = host.tensor(i);
      const char* data = static_cast<const char*>(view.data);
      bytes.insert(bytes.end(), data, data + view.extent() * size_of(view.dtype));
    }
    return bytes;
  };
  const auto poison = [&] {
    for (const size_t i : {out, lse})
      std::memset(host.tensor(i).data, 0xFF, size_t(host.tensor(i).extent() * size_of(host.tensor(i).dtype)));
    on_device.upload();
  };
  for (int round = 0; round < 20; ++round) {
    write_lengths(static_cast<i32*>(lengths.data), kBatch, kCapacity, round, random);
    shuffle_pages(static_cast<i32*>(table.data), table.numel(), pages, random);
    poison();
    run(op, on_device.args(), options);
    const std::vector<char> eager = outputs();
    poison();
    device.replay(graph, options.stream);
    EXPECT_EQ(outputs(), eager) << "round " << round;
    EXPECT_NE(std::count(eager.begin(), eager.end(), char(0xFF)), i64(eager.size())) << "nothing was written";
  }
  device.destroy_graph(graph);
  device.release(workspace);
  device.destroy(options.stream);
}

INSTANTIATE_TEST_SUITE_P(devices, attention_paged_graph, ::testing::Values("emu", "cuda"));

/// A kernel that is not loaded yet cannot be loaded while the stream is capturing.
TEST(attention_paged, a_first_call_during_capture_is_frozen) {
  const auto device = make_emulated_device(device_info_of(Arch::parse("sm_90a")), {});
  const Op& op = find_op("attention.paged");
  CaseArgs host(op, {{"batch", 1}, {"capacity", 16}}, 1);
  RunOptions options;
  options.device = device.get();
  options.stream = device->create_stream();
  device->begin_capture(options.stream);
  try {
    run(op, host.args(), options);
    FAIL() << "no error";
  } catch (const Error& e) { EXPECT_EQ(e.kind(), ErrorKind::frozen) << e.what(); }
  device->end_capture(options.stream);
}

}  // namespace
}  // namespace quern
