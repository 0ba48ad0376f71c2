// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/trace.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "quern/base/env.h"
#include "quern/base/fs.h"
#include "quern/base/hash.h"
#include "quern/base/log.h"
#include "quern/base/version.h"
#include "quern/jit/spec.h"
#include "quern/op/tensor_bytes.h"

namespace quern {

namespace {

using Json = nlohmann::ordered_json;

TraceOptions options_from_env() {
  TraceOptions o;
  o.folder = env_path(Env::trace);
  o.max_calls = env_int(Env::trace_max, o.max_calls);
  o.max_bytes = env_int(Env::trace_max_mb, o.max_bytes >> 20) << 20;
  return o;
}

/// What this process records and has recorded.
struct Recorder {
  struct Kept {
    std::string folder;
    i64 bytes;
  };
  std::mutex mutex;
  TraceOptions options = options_from_env();
  pid_t process = ::getpid();  // that `kept` is of
  std::deque<Kept> kept;       // oldest first, since the last set_trace()
  i64 kept_bytes = 0, next = 0;
  std::set<std::string> seen;  // digests of calls recorded without data (call_digest)

  void forget_kept() { kept.clear(), kept_bytes = 0; }
};

Recorder& recorder() {
  static Recorder* const r = new Recorder;
  return *r;
}

TraceOptions current_options() {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  return r.options;
}

// ---- memory: tensors that overlap share a block, so that a replay aliases what the call aliased ----------------------

struct Block {
  u64 begin, end;
};

u64 address(const TensorView& v) { return u64(reinterpret_cast<uintptr_t>(v.data)); }
u64 end_of(const TensorView& v) { return address(v) + u64(v.extent() * size_of(v.dtype)); }

std::vector<Block> blocks_of(const ObservedCall& call) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < call.op.tensors.size(); ++i)
    if (const TensorView& v = call.op.tensor(call.args, i); v.present()) blocks.push_back({address(v), end_of(v)});
  std::sort(blocks.begin(), blocks.end(),
            [](const Block& a, const Block& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  std::vector<Block> merged;
  for (const Block& b : blocks) {
    if (merged.empty() || b.begin >= merged.back().end) merged.push_back(b);
    else merged.back().end = std::max(merged.back().end, b.end);
  }
  return merged;
}

size_t block_of(const std::vector<Block>& blocks, const TensorView& v) {
  size_t i = blocks.size() - 1;
  while (blocks[i].begin > address(v)) --i;
  return i;
}

// ---- call.json ------------------------------------------------------------------------------------------------------

Json number(double value) {  // JSON has no NaN and no infinity
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json attribute_json(const AttrDef& a, const void* args) {
  switch (a.kind) {
    case AttrDef::Kind::f32: return number(attr_value(a, args));
    case AttrDef::Kind::boolean: return attr_value(a, args) != 0;
    case AttrDef::Kind::i32:
    case AttrDef::Kind::i64: return attr_value(a, args).integer();
  }
  return nullptr;
}

Json tensors_json(const ObservedCall& call, const std::vector<Block>& blocks) {
  Json list = Json::array();
  for (size_t i = 0; i < call.op.tensors.size(); ++i) {
    const TensorView& v = call.op.tensor(call.args, i);
    if (!v.present()) continue;
    const TensorDef& t = call.op.tensors[i];
    const size_t block = block_of(blocks, v);
    list.push_back({{"name", t.name},
                    {"role", name(t.role)},
                    {"dtype", name(v.dtype)},
                    {"shape", std::vector<i64>(v.shape, v.shape + v.rank)},
                    {"strides", std::vector<i64>(v.strides, v.strides + v.rank)},
                    {"memory", block},
                    {"offset", address(v) - blocks[block].begin}});
  }
  return list;
}

Json plan_json(const ObservedCall& call) {
  Json launches = Json::array();
  for (i32 i = 0; i < call.plan.count; ++i) {
    const Launch& l = call.plan.launches[i];
    const KernelNames& names = kernel_names(l.spec);
    launches.push_back({{"kernel", names.printed},
                        {"entry", names.entry},
                        {"grid", {l.config.grid[0], l.config.grid[1], l.config.grid[2]}},
                        {"cluster", {l.config.cluster.x, l.config.cluster.y, l.config.cluster.z}},
                        {"threads", l.config.threads},
                        {"smem", l.config.smem},
                        {"pdl", l.config.pdl}});
  }
  return {{"variant", call.op.variants[size_t(call.plan.variant)].name}, {"workspace", call.plan.workspace}, {"launches", launches}};
}

Json hooks_json(const ObservedCall& call) {
  const jit::Hooks& hooks = *call.problem.hooks;
  Json parameters = Json::array();
  const u8* bytes = static_cast<const u8*>(call.args) + call.op.hook_params_offset;
  for (i32 i = 0; i < call.op.hook_params_bytes; ++i) parameters.push_back(bytes[i]);
  return {{"type", hooks.type}, {"name", hooks.name}, {"text", hooks.text}, {"parameters", parameters}};
}

/// Everything but what is of this one call: equal for calls that are planned and run alike.
Json call_json(const ObservedCall& call) {
  const std::vector<Block> blocks = blocks_of(call);
  const DeviceInfo& info = call.device.info();
  Json attributes = Json::object(), memory = Json::array();
  for (const AttrDef& a : call.op.attrs) attributes[a.name] = attribute_json(a, call.args);
  for (const Block& b : blocks) memory.push_back({{"bytes", b.end - b.begin}, {"misalignment", b.begin % 256}});
  const RunOptions& o = call.options;
  Json j = {
      {"format", kTraceFormat},
      {"quern", QN_VERSION},
      {"op", call.op.id},
      {"device",
       {{"kind", info.emulated ? "emu" : "cuda"}, {"index", call.device.id().index}, {"arch", info.arch.name()}, {"name", info.name}}},
      {"options",
       {{"variant", o.variant ? Json(o.variant) : Json()},
        {"batch_invariant", o.batch_invariant},
        {"pdl", o.pdl},
        {"skip_check", o.skip_check},
        {"workspace", o.workspace.data ? o.workspace.bytes : 0}}},
      {"attributes", attributes},
      {"tensors", tensors_json(call, blocks)},
      {"memory", memory},
      {"plan", plan_json(call)}};
  if (call.problem.hooks) j["hooks"] = hooks_json(call);
  return j;
}

/// Of all that call_json() says, of each thing as it is in memory: a call that was seen costs no document.
class Digest {
 public:
  template <class T> void add(const T& value) {
    static_assert(std::has_unique_object_representations_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add(const char* text) { bytes_.append(text ? text : "\x01", text ? std::strlen(text) + 1 : 1); }  // null is no text
  void add(const void* from, size_t size) { bytes_.append(static_cast<const char*>(from), size); }
  std::string text() const { return hash128_hex(bytes_); }

 private:
  std::string bytes_;
};

void add_tensors(const ObservedCall& call, Digest& to) {
  const std::vector<Block> blocks = blocks_of(call);
  to.add(blocks.size());
  for (const Block& b : blocks) to.add(b.end - b.begin), to.add(b.begin % 256);
  for (size_t i = 0; i < call.op.tensors.size(); ++i) {
    const TensorView& v = call.op.tensor(call.args, i);
    to.add(i32(v.present()));
    if (!v.present()) continue;
    const size_t block = block_of(blocks, v);
    to.add(v.dtype), to.add(v.rank), to.add(block), to.add(address(v) - blocks[block].begin);
    to.add(v.shape, size_t(v.rank) * sizeof v.shape[0]);
    to.add(v.strides, size_t(v.rank) * sizeof v.strides[0]);
  }
}

std::string call_digest(const ObservedCall& call) {
  Digest d;
  const DeviceInfo& info = call.device.info();
  d.add(call.op.id.c_str());
  d.add(info.emulated), d.add(call.device.id().index), d.add(info.arch.name().c_str()), d.add(info.name);
  const RunOptions& o = call.options;
  d.add(o.variant);
  d.add(i32(o.batch_invariant) | i32(o.pdl) << 1 | i32(o.skip_check) << 2);
  d.add(o.workspace.data ? o.workspace.bytes : i64(0));
  for (const AttrDef& a : call.op.attrs) {
    const Scalar value = attr_value(a, call.args);
    if (value.is_real()) d.add(std::bit_cast<u64>(double(value)));
    else d.add(value.integer());
  }
  add_tensors(call, d);
  d.add(call.plan.variant), d.add(call.plan.workspace), d.add(call.plan.count), d.add(call.plan.fill_count);
  for (i32 i = 0; i < call.plan.count; ++i) {
    const Launch& l = call.plan.launches[i];
    d.add(l.spec.kernel), d.add(l.spec.config);
    d.add(l.config.grid), d.add(l.config.cluster), d.add(l.config.threads), d.add(l.config.smem), d.add(i32(l.config.pdl));
  }
  if (const jit::Hooks* hooks = call.problem.hooks) {
    d.add(hooks->type), d.add(hooks->name), d.add(hooks->text);
    d.add(static_cast<const char*>(call.args) + call.op.hook_params_offset, size_t(call.op.hook_params_bytes));
  }
  return d.text();
}

i64 data_bytes(const ObservedCall& call) {
  i64 bytes = 0;
  for (size_t i = 0; i < call.op.tensors.size(); ++i)
    bytes += packed_bytes(call.op.tensor(call.args, i)) * (call.op.tensors[i].role == Role::inout ? 2 : 1);
  return bytes;
}

std::string left_out(const ObservedCall& call, const TraceOptions& options) {
  if (options.max_bytes == 0) return "no data was asked for";
  if (call.capturing) return "the stream was capturing";
  if (const i64 bytes = data_bytes(call); bytes > options.max_bytes)
    return std::to_string(bytes >> 20) + " MB are more than the " + std::to_string(options.max_bytes >> 20) +
           " that may be kept (QN_TRACE_MAX_MB)";
  return "";
}

// ---- folders --------------------------------------------------------------------------------------------------------

void write_tensors(const ObservedCall& call, const std::string& folder, bool after) {
  for (size_t i = 0; i < call.op.tensors.size(); ++i) {
    const TensorView& v = call.op.tensor(call.args, i);
    if (!v.present() || call.op.tensors[i].role == (after ? Role::in : Role::out)) continue;
    const std::unique_ptr<char[]> bytes = packed_elements(v, call.device, call.options.stream);
    write_file(folder + "/" + call.op.tensors[i].name + (after ? ".after" : ".before"), {bytes.get(), size_t(packed_bytes(v))});
  }
}

/// Written beside and renamed, so that a reader never sees half of it.
void write_result(const std::string& folder, const Json& result) {
  write_file(folder + "/.result.json", result.dump(1) + "\n");
  if (::rename((folder + "/.result.json").c_str(), (folder + "/result.json").c_str()) != 0)
    throw Error(ErrorKind::device, "cannot write " + folder + "/result.json: " + std::strerror(errno));
}

/// Gives a finished private folder its name: "000012-norm.rms_norm-4711". Other processes, also of another machine or an
/// earlier run with the same id, may record to the same place, so a name that is taken leads to the next number.
std::string publish(const std::string& from, const std::string& to, const std::string& op) {
  for (;;) {
    i64 number;
    {
      Recorder& r = recorder();
      const std::lock_guard lock(r.mutex);
      number = r.next++;
    }
    std::string digits = std::to_string(number);
    if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
    const std::string path = to + "/" + digits + "-" + op + "-" + std::to_string(getpid());
    if (::rename(from.c_str(), path.c_str()) == 0) return path;
    if (errno != EEXIST && errno != ENOTEMPTY) throw Error(ErrorKind::device, "cannot publish " + path + ": " + std::strerror(errno));
  }
}

/// Removes the oldest folders beyond the bounds, but none that a parent process or another recording made. Calls without data
/// are a list, which is of use when it is whole.
void keep(const std::string& folder, i64 bytes, const TraceOptions& options) {
  std::vector<std::string> old;
  {
    Recorder& r = recorder();
    const std::lock_guard lock(r.mutex);
    if (r.process != ::getpid()) r.process = ::getpid(), r.forget_kept();  // since a fork
    if (r.options.folder != options.folder) return;                        // since a set_trace() beside this call
    r.kept.push_back({folder, bytes});
    r.kept_bytes += bytes;
    while (r.kept.size() > 1 && (i64(r.kept.size()) > r.options.max_calls || r.kept_bytes > r.options.max_bytes)) {
      old.push_back(r.kept.front().folder);
      r.kept_bytes -= r.kept.front().bytes;
      r.kept.pop_front();
    }
  }
  for (const std::string& path : old) remove_folder(path);
}

/// Claims a call that is recorded without data; false when it was before, or is now by another thread.
bool claim(const std::string& digest) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  return r.seen.insert(digest).second;
}

/// It was not written: the next such call tries again.
void release_claim(const std::string& digest) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  r.seen.erase(digest);
}

std::string write_call(const ObservedCall& call, const TraceOptions& options, const std::string& text, bool with_data) {
  if (!make_folders(options.folder)) throw Error(ErrorKind::device, "cannot make the folder " + options.folder);
  const std::string folder = make_private_folder(options.folder + "/.call-");
  if (folder.empty()) throw Error(ErrorKind::device, "cannot make a folder in " + options.folder + ": " + std::strerror(errno));
  try {
    if (with_data) write_tensors(call, folder, false);
    write_file(folder + "/call.json", text);
    const std::string published = publish(folder, options.folder, call.op.id);
    if (options.max_bytes > 0) keep(published, with_data ? data_bytes(call) : 0, options);
    return published;
  } catch (...) {
    remove_folder(folder);
    throw;
  }
}

/// What is written of the call, with why its data is left out, if it is.
std::string call_text(const ObservedCall& call, const std::string& why_not) {
  Json j = call_json(call);
  j["data"] = why_not.empty() ? Json("recorded") : Json("left out: " + why_not);
  return j.dump(1) + "\n";
}

std::string record(const ObservedCall& call, const TraceOptions& options) {
  const std::string why_not = left_out(call, options);
  if (options.max_bytes > 0) return write_call(call, options, call_text(call, why_not), why_not.empty());
  const std::string digest = call_digest(call);
  if (!claim(digest)) return "";
  try {
    return write_call(call, options, call_text(call, why_not), false);
  } catch (...) {
    release_claim(digest);
    throw;
  }
}

}  // namespace

std::string trace_left_out(const ObservedCall& call) { return left_out(call, current_options()); }

void set_trace(const TraceOptions& options) {
  if (options.max_calls < 1) throw Error(ErrorKind::value, "", "max_calls", "is " + std::to_string(options.max_calls), "1 or more");
  if (options.max_bytes < 0) throw Error(ErrorKind::value, "", "max_bytes", "is " + std::to_string(options.max_bytes), "0 or more");
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  r.options = options;
  r.seen.clear();
  r.forget_kept();
  set_observed(!r.options.folder.empty());
}

void look_for_tracing() {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  set_observed(!r.options.folder.empty());
}

bool tracing() { return !current_options().folder.empty(); }

std::string record_inputs(const ObservedCall& call) {
  try {
    return record(call, current_options());
  } catch (const std::exception& e) {
    log(LogLevel::warning, "QN_TRACE: " + call.op.id + " is not recorded: " + e.what());
    return "";
  }
}

void record_outputs(const ObservedCall& call, const std::string& folder) {
  call.device.synchronize(call.options.stream);
  try {
    write_tensors(call, folder, true);
    write_result(folder, {{"status", "finished"}});
    return;
  } catch (const std::exception& e) { log(LogLevel::warning, "QN_TRACE: the outputs of " + call.op.id + " are not recorded: " + e.what()); }
  for (const TensorDef& t : call.op.tensors) remove_folder(folder + "/" + t.name + ".after");  // and a full disk has room again
  try {
    write_result(folder, {{"status", kOutputsNotRecorded}});
  } catch (const std::exception& e) { log(LogLevel::warning, std::string("QN_TRACE: ") + e.what()); }
}

void record_failure(const std::string& folder, const Error& error) {
  try {
    write_result(folder, {{"status", "failed"}, {"kind", name(error.kind())}, {"error", error.what()}});
  } catch (const std::exception& e) { log(LogLevel::warning, std::string("QN_TRACE: ") + e.what()); }
}

}  // namespace quern
