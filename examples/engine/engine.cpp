// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "engine.h"

#include <algorithm>
#include <chrono>

#include "quern/base/error.h"

namespace engine {

using quern::Error, quern::ErrorKind;

namespace {

i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

EngineOptions completed(EngineOptions options, const ModelConfig& config, const quern::Device& device) {
  const auto within = [](const char* what, i64 got, i64 least, i64 most) {
    if (got < least || got > most)
      throw Error(ErrorKind::value, "engine", what, "is " + std::to_string(got), std::to_string(least) + " to " + std::to_string(most));
  };
  if (options.step_tokens == 0) options.step_tokens = device.info().emulated ? 64 : 2048;
  if (options.max_length == 0) options.max_length = config.max_positions;
  within("max_batch", options.max_batch, 1, 1024);
  within("step_tokens", options.step_tokens, 1, 1 << 20);
  options.max_batch = std::min(options.max_batch, options.step_tokens);
  within("page_size", options.page_size, 1, 1024);
  within("max_length", options.max_length, 2, config.max_positions);
  within("kv_bytes", options.kv_bytes, 0, i64(1) << 50);
  return options;
}

}  // namespace

Engine::Engine(const ModelConfig& config, const Weights& weights, const EngineOptions& options, quern::Device& device)
    : config_(config),
      options_(completed(options, config, device)),
      limits_{options_.step_tokens, options_.max_batch, ceil_div(options_.max_length, options_.page_size)},
      device_(device),
      memory_(device),
      cache_memory_(device),
      stream_(device),
      inputs_(limits_, memory_),
      model_(config, weights, limits_, options_.batch_invariant, memory_),
      table_requests_(size_t(limits_.rows), -1) {
  reserve_workspace();
  allocate_cache();
  for (i64 page = pages_; page-- > 0;) free_pages_.push_back(i32(page));
}

Engine::~Engine() {
  try {
    for (const auto& [rows, graph] : graphs_) device_.destroy_graph(graph);
  } catch (const Error&) {  // the device has failed; what made it fail was thrown before
  }
}

OwnStream::~OwnStream() {
  try {
    device_.destroy(stream_);
  } catch (const Error&) {}
}

/// The workspace is there before the cache takes what is free. Few requests may be cut into more parts than many, so several numbers are
/// asked for.
void Engine::reserve_workspace() {
  Memory one_page(device_);
  std::vector<LayerCache> caches;
  for (i64 i = 0; i < config_.layers; ++i) {
    const auto page = [&] {
      return one_page.tensor(config_.dtype, {1, options_.page_size, config_.heads_kv, config_.head_dim}, "one page");
    };
    caches.push_back({page(), page()});
  }
  for (i64 rows = 1;; rows = std::min(2 * rows, limits_.rows)) {
    model_.reserve(inputs_, rows, rows, caches);
    if (limits_.tokens > rows) model_.reserve(inputs_, limits_.tokens, rows, caches);
    if (rows == limits_.rows) break;
  }
}

void Engine::allocate_cache() {
  const i64 page_bytes = config_.layers * 2 * options_.page_size * config_.heads_kv * config_.head_dim * quern::size_of(config_.dtype);
  const i64 wanted = limits_.rows * limits_.pages, free = std::max<i64>(0, device_.free_memory() - (i64(1) << 30));
  const i64 nameable = ((i64(1) << 31) - 1) / options_.page_size;  // slots are i32
  pages_ = std::min({wanted, nameable, (options_.kv_bytes > 0 ? options_.kv_bytes : free) / page_bytes});
  if (pages_ < 1)
    throw options_.kv_bytes > 0 ? Error(ErrorKind::value, "engine", "kv_bytes", "is " + std::to_string(options_.kv_bytes),
                                        "at least one page of " + std::to_string(page_bytes) + " bytes")
                                : Error(ErrorKind::device, "engine: the device has " + std::to_string(free) +
                                                               " bytes for the KV cache, a page needs " + std::to_string(page_bytes));
  for (i64 i = 0; i < config_.layers; ++i) {
    const auto cache = [&](const char* label) {
      return cache_memory_.tensor(config_.dtype, {pages_, options_.page_size, config_.heads_kv, config_.head_dim}, label);
    };
    caches_.push_back({cache("k_cache"), cache("v_cache")});
  }
  kv_bytes_ = pages_ * page_bytes;
}

i64 Engine::pages_of(const Request& request) const {
  return ceil_div(i64(request.prompt.size()) + request.max_new - 1, options_.page_size);
}  // the last token is drawn, not stored

i64 Engine::add(const Request& request) {
  const auto fail = [](const char* what, const std::string& got, const std::string& expected) {
    throw Error(ErrorKind::value, "engine", what, got, expected);
  };
  if (request.prompt.empty()) fail("prompt", "is empty", "at least one token");
  for (const i32 token : request.prompt)
    if (token < 0 || token >= config_.vocab)
      fail("prompt", "has token " + std::to_string(token), "0 to " + std::to_string(config_.vocab - 1));
  if (request.max_new < 1) fail("max_new", "is " + std::to_string(request.max_new), "at least 1");
  if (request.max_new > options_.max_length || i64(request.prompt.size()) + request.max_new > options_.max_length)
    fail("prompt and max_new", "are " + std::to_string(request.prompt.size()) + " + " + std::to_string(request.max_new) + " tokens",
         "at most " + std::to_string(options_.max_length));
  if (pages_of(request) > pages_)
    fail("prompt and max_new", "need " + std::to_string(pages_of(request)) + " pages of the KV cache",
         "at most its " + std::to_string(pages_));
  if (!(request.temperature >= 0 && request.temperature <= 3.4e38f))
    fail("temperature", "is " + std::to_string(request.temperature), "a finite number, 0 or more");
  if (!(request.top_p >= 0 && request.top_p <= 1)) fail("top_p", "is " + std::to_string(request.top_p), "0 to 1");
  if (!(request.min_p >= 0 && request.min_p <= 1)) fail("min_p", "is " + std::to_string(request.min_p), "0 to 1");
  if (request.top_k < 0) fail("top_k", "is " + std::to_string(request.top_k), "0 (all) or more");
  entries_.push_back({request, {}, {}, 0});
  waiting_.push_back(i64(entries_.size()) - 1);
  return waiting_.back();
}

void Engine::admit() {
  while (!waiting_.empty() && i64(running_.size()) < limits_.rows) {
    Entry& entry = entries_[size_t(waiting_.front())];
    const i64 pages = pages_of(entry.request);
    if (pages > i64(free_pages_.size())) return;  // the first in line waits, and those behind it
    entry.pages.assign(free_pages_.end() - pages, free_pages_.end());
    free_pages_.resize(free_pages_.size() - size_t(pages));
    running_.push_back(waiting_.front());
    waiting_.pop_front();
  }
}

void Engine::add_row(i64 request, i64 count) {
  const Entry& entry = entries_[size_t(request)];
  const size_t row = report_.rows.size();
  for (i64 i = 0; i < count; ++i) {
    const i64 position = entry.computed + i, token = report_.tokens + i;
    inputs_.ids.host[size_t(token)] = entry.token(position);
    inputs_.positions.host[size_t(token)] = i32(position);
    inputs_.slots.host[size_t(token)] =
        i32(entry.pages[size_t(position / options_.page_size)] * options_.page_size + position % options_.page_size);
  }
  const i64 length = entry.computed + count;
  report_.tokens += count;
  report_.decoded += entry.computed >= i64(entry.request.prompt.size());
  for (const i64 window : config_.windows) report_.keys += window > 0 ? std::min(length, window + count - 1) : length;
  report_.rows.push_back({request, entry.computed, count, length == entry.length(), false, 0});
  inputs_.q_indptr.host[row + 1] = i32(report_.tokens);
  inputs_.seq_lens.host[row] = i32(length);
  inputs_.last.host[row] = i32(report_.tokens - 1);
  if (table_requests_[row] != request) {
    std::copy(entry.pages.begin(), entry.pages.end(), inputs_.pages_of_row(i64(row)).begin());
    table_requests_[row] = request;
  }
  inputs_.temperature.host[row] = entry.request.temperature;
  inputs_.top_k.host[row] = entry.request.top_k, inputs_.top_p.host[row] = entry.request.top_p,
  inputs_.min_p.host[row] = entry.request.min_p;
  inputs_.seeds.host[row] = entry.request.seed, inputs_.offsets.host[row] = length;
}

void Engine::schedule() {
  admit();
  report_ = {};
  inputs_.clear();
  for (const i64 request : running_)
    if (entries_[size_t(request)].length() - entries_[size_t(request)].computed == 1) add_row(request, 1);
  for (const i64 request : running_) {
    const i64 left = entries_[size_t(request)].length() - entries_[size_t(request)].computed, room = limits_.tokens - report_.tokens;
    // A prompt's sums depend on where it is cut. Where they must not depend on the batch, the places are its own, and a part waits for
    // room.
    const i64 part = options_.batch_invariant ? std::max<i64>(1, limits_.tokens / 2) : room;
    const i64 count = std::min(left, part - (options_.batch_invariant ? entries_[size_t(request)].computed % part : 0));
    if (left > 1 && count > 0 && count <= room) add_row(request, count);
  }
}

/// A graph of the least power of two of rows. Rows that no request has write nothing but their own logits.
void* Engine::graph_of(i64 rows) {
  i64 padded = 1;
  while (padded < rows) padded *= 2;
  padded = std::min(padded, limits_.rows);
  if (const auto found = graphs_.find(padded); found != graphs_.end()) return found->second;
  model_.reserve(inputs_, padded, padded, caches_);
  model_.launch(inputs_, padded, padded, caches_,
                stream_);  // compiles and loads what a capture may not; it writes what the graph will write again
  device_.begin_capture(stream_);
  try {
    model_.launch(inputs_, padded, padded, caches_, stream_);
  } catch (...) {
    device_.destroy_graph(device_.end_capture(stream_));
    throw;
  }
  report_.captured = true;
  return graphs_[padded] = device_.end_capture(stream_);
}

void Engine::launch() {
  const i64 rows = i64(report_.rows.size());
  inputs_.upload(stream_);
  report_.graph = options_.graphs && report_.tokens == rows;
  if (report_.graph) {
    device_.replay(graph_of(rows), stream_);
  } else {
    model_.reserve(inputs_, report_.tokens, rows, caches_);
    model_.launch(inputs_, report_.tokens, rows, caches_, stream_);
  }
}

void Engine::finish_rows() {
  const size_t rows = report_.rows.size();
  std::vector<i32> tokens(rows);
  std::vector<u8> valid(rows);
  device_.copy(tokens.data(), model_.sampled().data, rows * sizeof(i32), stream_);
  device_.copy(valid.data(), model_.valid().data, rows, stream_);
  device_.synchronize(stream_);
  for (size_t i = 0; i < rows; ++i) {
    StepReport::Row& row = report_.rows[i];
    Entry& entry = entries_[size_t(row.request)];
    entry.computed += row.count;
    if (!row.sampled) continue;  // a part of a prompt
    row.token = tokens[i], row.drawn = valid[i] != 0;
    Answer& answer = entry.answer;
    if (valid[i] == 0) {
      answer.finish = Finish::invalid_logits;
    } else {
      answer.tokens.push_back(tokens[i]);
      const bool stops = !options_.ignore_stop &&
                         std::find(config_.stop_tokens.begin(), config_.stop_tokens.end(), tokens[i]) != config_.stop_tokens.end();
      answer.finish = stops ? Finish::stop : i64(answer.tokens.size()) == entry.request.max_new ? Finish::length : Finish::running;
    }
    if (answer.finish != Finish::running) free_pages_.insert(free_pages_.end(), entry.pages.begin(), entry.pages.end());
  }
  std::erase_if(running_, [&](i64 request) { return entries_[size_t(request)].answer.finish != Finish::running; });
}

bool Engine::step(const std::function<void(i64, i32)>& on_token) {
  schedule();
  if (report_.rows.empty()) return false;
  const auto begin = std::chrono::steady_clock::now();
  launch();
  finish_rows();
  report_.us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  if (on_token) {
    const std::vector<StepReport::Row> rows = report_.rows;
    for (const StepReport::Row& row : rows)
      if (row.drawn) on_token(row.request, row.token);
  }
  return true;
}

std::vector<float> Engine::logits(i64 row) const {
  std::vector<float> out(static_cast<size_t>(config_.vocab));
  device_.copy(out.data(), static_cast<float*>(model_.logits().data) + row * config_.vocab, out.size() * sizeof(float), stream_);
  device_.synchronize(stream_);
  return out;
}

}  // namespace engine
