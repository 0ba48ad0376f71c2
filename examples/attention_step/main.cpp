// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Attention in an engine's steps: one captured graph appends a step's keys and values to a paged cache and attends over it, and serves
// steps that prefill, that decode, and that mix both. Every result is compared with attention in double.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/device/device.h"
#include "quern/op/workspace.h"
#include "quern/ops/attention/paged.h"
#include "quern/ops/kv_cache/append_paged.h"

using quern::DType, quern::i32, quern::i64, quern::TensorView;

/// The engine's limits. Steps are smaller; a graph is captured for these.
constexpr i64 kTokens = 32, kBatch = 4, kPages = 24, kPageSize = 16, kMaxPages = 20, kHeadsQ = 4, kHeadsKv = 2, kDim = 64;

/// What a step brings of a request: the tokens that are new. Its cached ones are known from before.
struct Request {
  std::vector<i32> pages;
  i64 length = 0;  // keys, this step's included
};

/// Memory of the device with a copy on the host.
template <class T> struct Buffer {
  Buffer(quern::Device& on, size_t count, const char* name) : device(on), host(count), memory(on.allocate(count * sizeof(T), name)) {}
  ~Buffer() { device.release(memory); }
  void upload(quern::Stream stream) { device.copy(memory, host.data(), host.size() * sizeof(T), stream); }
  void download(quern::Stream stream) { device.copy(host.data(), memory, host.size() * sizeof(T), stream); }
  quern::Device& device;
  std::vector<T> host;
  void* memory;
};

double number(i64 token, i64 head, i64 d, int salt) { return std::sin(double(token * 37 + head * 11 + d * 3 + salt)); }

int main() try {
  quern::Device& device = quern::device_from_name(std::getenv("QN_DEVICE") ? std::getenv("QN_DEVICE") : "emu");
  const quern::Stream stream = device.create_stream();
  using Half = std::uint16_t;  // bf16 that host_dtype.h reads and writes
  Buffer<Half> q(device, kTokens * kHeadsQ * kDim, "q"), k(device, kTokens * kHeadsKv * kDim, "k"),
      v(device, kTokens * kHeadsKv * kDim, "v"), out(device, kTokens * kHeadsQ * kDim, "out");
  Buffer<Half> k_cache(device, kPages * kPageSize * kHeadsKv * kDim, "k_cache"),
      v_cache(device, kPages * kPageSize * kHeadsKv * kDim, "v_cache");
  Buffer<i32> q_indptr(device, kBatch + 1, "q_indptr"), seq_lens(device, kBatch, "seq_lens"),
      table(device, kBatch * kMaxPages, "page_table"), slots(device, kTokens, "slot_mapping");
  k_cache.upload(stream), v_cache.upload(stream);

  const quern::DeviceId on = device.id();
  const quern::kv_cache::AppendPagedArgs append = {.k_cache = {k_cache.memory, DType::bf16, {kPages, kPageSize, kHeadsKv, kDim}, on},
                                                   .v_cache = {v_cache.memory, DType::bf16, {kPages, kPageSize, kHeadsKv, kDim}, on},
                                                   .k = {k.memory, DType::bf16, {kTokens, kHeadsKv, kDim}, on},
                                                   .v = {v.memory, DType::bf16, {kTokens, kHeadsKv, kDim}, on},
                                                   .slot_mapping = {slots.memory, DType::i32, {kTokens}, on}};
  const quern::attention::PagedArgs attend = {.out = {out.memory, DType::bf16, {kTokens, kHeadsQ, kDim}, on},
                                              .q = {q.memory, DType::bf16, {kTokens, kHeadsQ, kDim}, on},
                                              .k_cache = append.k_cache,
                                              .v_cache = append.v_cache,
                                              .q_indptr = {q_indptr.memory, DType::i32, {kBatch + 1}, on},
                                              .page_table = {table.memory, DType::i32, {kBatch, kMaxPages}, on},
                                              .seq_lens = {seq_lens.memory, DType::i32, {kBatch}, on},
                                              .causal = true};

  // Once: the workspace for the limits, and a first call that compiles. It has no requests, so it reads and writes nothing.
  quern::RunOptions options{.device = &device, .stream = stream};
  options.workspace.bytes = quern::workspace_bytes("attention.paged", attend, options);
  options.workspace.data = device.allocate(size_t(std::max<i64>(options.workspace.bytes, 256)), "workspace");
  std::fill(slots.host.begin(), slots.host.end(), -1);
  q_indptr.upload(stream), seq_lens.upload(stream), table.upload(stream), slots.upload(stream);
  const auto step_on_device = [&] {
    quern::kv_cache::append_paged(append, options);
    quern::attention::paged(attend, options);
  };
  step_on_device();
  device.begin_capture(stream);
  step_on_device();
  void* graph = device.end_capture(stream);

  std::vector<Request> requests(kBatch);
  i32 next_page = 0;
  double worst = 0;
  // New tokens of each request: two prompts, then their first tokens beside a third prompt, then decode alone
  const i64 steps[][kBatch] = {{20, 7, 0, 0}, {1, 1, 25, 0}, {1, 1, 1, 3}, {1, 1, 1, 1}};
  for (const auto& step : steps) {
    i64 token = 0;
    for (i64 b = 0; b < kBatch; ++b) {
      Request& r = requests[size_t(b)];
      q_indptr.host[size_t(b)] = i32(token);
      for (i64 i = 0; i < step[b]; ++i, ++token, ++r.length) {
        if (r.length % kPageSize == 0) r.pages.push_back(next_page++);
        slots.host[size_t(token)] = i32(r.pages.back() * kPageSize + r.length % kPageSize);
        for (i64 h = 0; h < kHeadsQ; ++h)
          for (i64 d = 0; d < kDim; ++d)
            quern::store_value(&q.host[size_t((token * kHeadsQ + h) * kDim + d)], DType::bf16, number(r.length, h, d, int(b)));
        for (i64 h = 0; h < kHeadsKv; ++h)
          for (i64 d = 0; d < kDim; ++d) {
            quern::store_value(&k.host[size_t((token * kHeadsKv + h) * kDim + d)], DType::bf16, number(r.length, h, d, int(b) + 100));
            quern::store_value(&v.host[size_t((token * kHeadsKv + h) * kDim + d)], DType::bf16, number(r.length, h, d, int(b) + 200));
          }
      }
      seq_lens.host[size_t(b)] = i32(r.length);
      std::copy(r.pages.begin(), r.pages.end(), table.host.begin() + b * kMaxPages);
    }
    q_indptr.host[kBatch] = i32(token);
    std::fill(slots.host.begin() + token, slots.host.end(), -1);  // rows of no token: nothing is stored
    for (auto* buffer : {&q, &k, &v}) buffer->upload(stream);
    for (auto* buffer : {&q_indptr, &seq_lens, &table, &slots}) buffer->upload(stream);
    device.replay(graph, stream);
    out.download(stream), k_cache.download(stream), v_cache.download(stream);
    device.synchronize(stream);

    for (i64 b = 0; b < kBatch; ++b)
      for (i64 i = 0; i < step[b]; ++i)
        for (i64 h = 0; h < kHeadsQ; ++h) {
          const Request& r = requests[size_t(b)];
          const i64 t = q_indptr.host[size_t(b)] + i, keys = r.length - step[b] + i + 1;  // causal: up to its own
          const auto cached = [&](const Buffer<Half>& cache, i64 j, i64 d) {
            return quern::load_value(
                &cache.host[size_t(((r.pages[size_t(j / kPageSize)] * kPageSize + j % kPageSize) * kHeadsKv + h / 2) * kDim + d)],
                DType::bf16);
          };
          double sum = 0, expected = 0;
          for (i64 j = 0; j < keys; ++j) {
            double x = 0;
            for (i64 d = 0; d < kDim; ++d)
              x += quern::load_value(&q.host[size_t((t * kHeadsQ + h) * kDim + d)], DType::bf16) * cached(k_cache, j, d);
            const double p = std::exp(x / 8);
            sum += p, expected += p * cached(v_cache, j, 5);
          }
          worst =
              std::max(worst, std::fabs(quern::load_value(&out.host[size_t((t * kHeadsQ + h) * kDim + 5)], DType::bf16) - expected / sum));
        }
  }
  std::printf("4 steps by one graph, %lld bytes of workspace, largest error %.4f\n", static_cast<long long>(options.workspace.bytes),
              worst);
  device.destroy_graph(graph);
  device.release(options.workspace.data);
  device.destroy(stream);
  return worst < 0.01 ? 0 : 1;
} catch (const quern::Error& e) {
  std::fprintf(stderr, "%s error: %s\n", quern::name(e.kind()), e.what());
  return 1;
}
