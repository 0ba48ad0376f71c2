// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Continuous batching over a paged KV cache: each step decodes a token of every running request and fills what is left of its budget with
// chunks of prompts.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "model.h"

namespace engine {

struct Request {
  std::vector<i32> prompt;  ///< at least one token
  i64 max_new = 16;
  float temperature = 0;  ///< 0: the largest logit
  i32 top_k = 0;          ///< these as in sampling.sample: 0, 1 and 0 keep all
  float top_p = 1, min_p = 0;
  i64 seed = 0;  ///< with the position of a token, all that its random number depends on
};

enum class Finish { running, length, stop, invalid_logits };

struct Answer {
  std::vector<i32> tokens;  ///< a stop token included
  Finish finish = Finish::running;
};

struct EngineOptions {
  i64 step_tokens = 0;  ///< new tokens of a step; 0: 2048, of emulated devices 64
  i64 max_batch = 64;   ///< requests that run at once, at most step_tokens
  i64 page_size = 16;
  i64 kv_bytes = 0;    ///< memory of the KV cache; 0: what the requests' limits need, at most what is free but 1 GiB
  i64 max_length = 0;  ///< longest request, prompt and answer; 0: the model's
  bool ignore_stop = false;
  /// A request's logits, bit by bit, do not depend on the batch it runs in; prompts are cut at multiples of step_tokens / 2
  bool batch_invariant = false;
  bool graphs = true;  ///< steps that only decode replay a captured graph
};

/// What a step did: for progress, timing and checks.
struct StepReport {
  i64 tokens = 0;         ///< computed
  i64 decoded = 0;        ///< of these, behind a prompt
  i64 keys = 0;           ///< that attention read, of all layers
  double us = 0;          ///< host time, the copy of the results included
  bool graph = false;     ///< it replayed a graph
  bool captured = false;  ///< which was captured in this step: its time is not that of a step
  struct Row {
    i64 request;
    i64 first, count;  ///< positions of its tokens of this step
    bool sampled;      ///< its logits were asked for
    bool drawn;        ///< a token was: else the logits hold a NaN
    i32 token;
  };
  std::vector<Row> rows;
};

/// A stream for the time of an object.
class OwnStream {
 public:
  explicit OwnStream(quern::Device& device) : device_(device), stream_(device.create_stream()) {}
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  operator quern::Stream() const { return stream_; }

 private:
  quern::Device& device_;
  quern::Stream stream_;
};

class Engine {
 public:
  /// Weights stay the caller's. Throws quern::Error{value} for options that do not fit, and for a kv_bytes below one page, Error{device}
  /// where the device has no room.
  Engine(const ModelConfig& config, const Weights& weights, const EngineOptions& options, quern::Device& device);
  ~Engine();

  /// The number of the request. Throws quern::Error{value} where it could never run: a token that the model does not have, more tokens than
  /// the model's longest sequence, or than the KV cache has pages for.
  i64 add(const Request& request);
  /// Runs one step; false when nothing is left to do. `on_token` is called with each token that is drawn, when the step is over: it may add
  /// requests, and throw.
  bool step(const std::function<void(i64 request, i32 token)>& on_token = {});
  const Answer& answer(i64 request) const { return entries_[size_t(request)].answer; }
  const StepReport& last_step() const { return report_; }
  /// A token of a request's prompt or answer.
  i32 token(i64 request, i64 position) const { return entries_[size_t(request)].token(position); }
  /// Logits of a row of the last step, on the host.
  std::vector<float> logits(i64 row) const;
  i64 pages() const { return pages_; }
  i64 kv_bytes() const { return kv_bytes_; }

 private:
  struct Entry {
    Request request;
    Answer answer;
    std::vector<i32> pages;  ///< reserved when it is admitted
    i64 computed = 0;        ///< tokens whose K and V are in the cache
    i64 length() const { return i64(request.prompt.size() + answer.tokens.size()); }
    i32 token(i64 i) const {
      return i < i64(request.prompt.size()) ? request.prompt[size_t(i)] : answer.tokens[size_t(i) - request.prompt.size()];
    }
  };
  i64 pages_of(const Request& request) const;
  void allocate_cache();
  void admit();
  /// Chooses the rows of a step, and fills the inputs.
  void schedule();
  void add_row(i64 request, i64 count);
  void launch();
  void* graph_of(i64 rows);
  void finish_rows();
  void reserve_workspace();

  const ModelConfig& config_;
  EngineOptions options_;
  StepLimits limits_;
  quern::Device& device_;
  Memory memory_, cache_memory_;
  OwnStream stream_;
  StepInputs inputs_;
  Model model_;
  std::vector<LayerCache> caches_;
  i64 pages_ = 0, kv_bytes_ = 0;
  std::vector<i32> free_pages_;
  std::deque<Entry> entries_;  ///< answer() hands out references
  std::deque<i64> waiting_;
  std::vector<i64> running_;
  std::map<i64, void*> graphs_;      ///< by rows
  std::vector<i64> table_requests_;  ///< whose pages each row of the page table has; -1: nobody's
  StepReport report_;
};

}  // namespace engine
