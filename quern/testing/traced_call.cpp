// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/traced_call.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "quern/base/fs.h"
#include "quern/base/json_depth.h"
#include "quern/jit/hook_text.h"
#include "quern/op/tensor_bytes.h"
#include "quern/op/trace.h"
#include "quern/op/variants.h"

namespace quern::testing {

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& folder, const std::string& got, const std::string& expected) {
  throw Error(ErrorKind::value, "", "trace", "'" + folder + "' " + got, expected);
}

/// Most bytes of one memory: the stand-in addresses of two of them lie twice as far apart.
constexpr i64 kMostBytes = i64(1) << 47;
/// Most bytes of call.json and result.json; what varies in them is the text of hooks.
constexpr size_t kMostText = size_t(16) << 20;

/// The document in a file; a key that an object has twice is refused, which JSON's parser would take the last of.
Json parse(const std::string& path, const std::string& text) {
  if (!json_nests_well(text)) fail(path, "is nested deeper than " + std::to_string(kMostJsonDepth), "what QN_TRACE writes");
  std::vector<std::set<std::string>> keys;  // of the objects that are open, by depth
  return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.resize(size_t(depth) + 1), keys.emplace_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      fail(path, "has the key " + value.dump() + " twice in one object", "it once");
    if (event == Json::parse_event_t::object_end) keys.resize(size_t(depth) + 1);
    return true;
  });
}

[[noreturn]] void fail_in_call(const TracedCall& call, const std::string& got, const std::string& expected) {
  fail(call.folder + "/call.json", got, expected);
}

i64 integer(const TracedCall& call, const std::string& what, const Json& j, i64 least, i64 most) {
  const bool fits = j.is_number_unsigned() ? j.get<u64>() <= u64(std::numeric_limits<i64>::max()) : j.is_number_integer();
  if (!fits || j.get<i64>() < least || j.get<i64>() > most)
    fail_in_call(call, "has " + what + " " + j.dump(), "an integer in [" + std::to_string(least) + ", " + std::to_string(most) + "]");
  return j.get<i64>();
}

/// A float; JSON has no NaN and no infinities, so words stand for them.
float real(const TracedCall& call, const std::string& what, const Json& j) {
  if (j == "nan") return NAN;
  if (j == "inf") return HUGE_VALF;
  if (j == "-inf") return -HUGE_VALF;
  if (!j.is_number() || !std::isfinite(j.get<float>()))
    fail_in_call(call, "has " + what + " " + j.dump(), "a number of f32, \"nan\", \"inf\" or \"-inf\"");
  return j.get<float>();
}

void read_attribute(const AttrDef& a, const Json& j, TracedCall& call) {
  const std::string what = "the attribute " + a.name + " of";
  switch (a.kind) {
    case AttrDef::Kind::f32: return set_attr(a, call.args.get(), real(call, what, j));
    case AttrDef::Kind::i32:
      return set_attr(a, call.args.get(), integer(call, what, j, std::numeric_limits<i32>::min(), std::numeric_limits<i32>::max()));
    case AttrDef::Kind::i64:
      return set_attr(a, call.args.get(), integer(call, what, j, std::numeric_limits<i64>::min(), std::numeric_limits<i64>::max()));
    case AttrDef::Kind::boolean:
      if (!j.is_boolean()) fail_in_call(call, "has " + what + " " + j.dump(), "true or false");
      return set_attr(a, call.args.get(), j.get<bool>());
  }
}

void read_attributes(const Json& j, TracedCall& call) {
  for (const auto& item : j.items())
    if (call.op->attr_index(item.key()) < 0)
      fail_in_call(call, "has the attribute " + item.key(), "those of " + call.op->id + ", as this version knows it");
  for (const AttrDef& a : call.op->attrs) {
    if (!j.contains(a.name)) fail_in_call(call, "lacks the attribute " + a.name, "all of " + call.op->id);
    read_attribute(a, j[a.name], call);
  }
}

/// Addresses that look like real ones: of the recorded alignment, apart from each other.
u64 fake_address(const TracedCall& call, const TracedPlace& place) {
  const size_t m = size_t(place.memory);
  return (u64(m) + 1) << 48 | u64(call.memory[m].misalignment + place.offset);
}

/// Bytes from the first element to the end of the last, and of all elements packed; false when one is above kMostBytes.
bool bytes_of(const TensorView& v, i64& reach, i64& packed) {
  const i64 size = size_of(v.dtype);
  reach = packed = 0;
  if (std::find(v.shape, v.shape + v.rank, 0) != v.shape + v.rank) return true;
  reach = packed = size;
  for (int d = 0; d < v.rank; ++d) {
    i64 step;
    if (__builtin_mul_overflow(v.shape[d] - 1, v.strides[d], &step) || __builtin_mul_overflow(step, size, &step) ||
        __builtin_add_overflow(reach, step, &reach) || __builtin_mul_overflow(packed, v.shape[d], &packed))
      return false;
  }
  return reach <= kMostBytes && packed <= kMostBytes;
}

/// Shape and strides. A dim of one element, and any of an empty tensor, may have any stride.
TensorView read_layout(const Json& j, const std::string& tensor, const TracedCall& call) {
  constexpr i64 kAny = std::numeric_limits<i64>::min(), kMost = std::numeric_limits<i64>::max();
  const Json &shape = j.at("shape"), &strides = j.at("strides");
  if (!shape.is_array() || shape.empty() || shape.size() > size_t(kMaxRank))
    fail_in_call(call, "has the shape " + shape.dump() + " of " + tensor, "1 to " + std::to_string(kMaxRank) + " extents");
  if (!strides.is_array() || strides.size() != shape.size())
    fail_in_call(call, "has the strides " + strides.dump() + " of " + tensor, "one a dim of " + shape.dump());
  TensorView v;
  v.dtype = dtype_from_name(j.at("dtype"));
  v.rank = i32(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::string dim = " of dim " + std::to_string(d) + " of " + tensor;
    v.shape[d] = integer(call, "the extent" + dim, shape[d], 0, kMost);
  }
  const bool empty = std::find(v.shape, v.shape + v.rank, 0) != v.shape + v.rank;
  for (size_t d = 0; d < shape.size(); ++d)
    v.strides[d] =
        integer(call, "the stride of dim " + std::to_string(d) + " of " + tensor, strides[d], empty || v.shape[d] == 1 ? kAny : 0, kMost);
  return v;
}

void read_tensor(const Json& j, DeviceId device, TracedCall& call) {
  const std::string name = j.at("name");
  const int i = call.op->tensor_index(name);
  if (i < 0) fail_in_call(call, "has the tensor " + name, "those of " + call.op->id + ", as this version knows it");
  TracedPlace& place = call.places[size_t(i)];
  if (place.memory >= 0) fail_in_call(call, "has the tensor " + name + " twice", "it once");
  TensorView v = read_layout(j, name, call);
  v.device = device;
  place.memory = i32(integer(call, "the memory of " + name, j.at("memory"), 0, i64(call.memory.size()) - 1));
  const i64 room = call.memory[size_t(place.memory)].bytes;
  place.offset = integer(call, "the offset of " + name, j.at("offset"), 0, kMostBytes);
  i64 reach, packed;
  if (!bytes_of(v, reach, packed) || place.offset + reach > room)
    fail_in_call(call,
                 "has the tensor " + name + " of shape " + j["shape"].dump() + " and strides " + j["strides"].dump() + " at offset " +
                     std::to_string(place.offset) + " outside its memory",
                 "it inside the " + std::to_string(room) + " bytes");
  v.data = reinterpret_cast<void*>(fake_address(call, place));
  call.op->tensor(call.args.get(), size_t(i)) = v;
}

void read_memory(const Json& j, TracedCall& call) {
  if (j.size() > call.op->tensors.size()) fail_in_call(call, "has " + std::to_string(j.size()) + " memories", "at most one a tensor");
  for (const Json& m : j) {
    const std::string which = " of memory " + std::to_string(call.memory.size());
    call.memory.push_back({integer(call, "the bytes" + which, m.at("bytes"), 0, kMostBytes),
                           integer(call, "the misalignment" + which, m.at("misalignment"), 0, 255)});
  }
}

void read_tensors(const Json& j, DeviceId device, TracedCall& call) {
  call.places.resize(call.op->tensors.size());
  for (const Json& t : j) read_tensor(t, device, call);
  for (size_t i = 0; i < call.places.size(); ++i)
    if (const TensorDef& t = call.op->tensors[i]; call.places[i].memory < 0 && !t.optional)
      fail_in_call(call, "lacks the tensor " + t.name, "all that " + call.op->id + " needs");
}

/// Those of a registered op with that code, whose name is then of no matter; null: none.
const jit::Hooks* registered_hooks(const Json& j) {
  for (const auto& [id, op] : registry())
    if (op->hooks && j.at("type") == op->hooks->type && j.at("text") == op->hooks->text) return op->hooks;
  return nullptr;
}

void read_hooks(const Json& j, bool trust_hooks, TracedCall& call) {
  const Op& op = *call.op;
  const Json& parameters = j.at("parameters");
  if (op.hooks_offset < 0 || i32(parameters.size()) != op.hook_params_bytes)
    fail_in_call(call, "has hooks", "none, or hooks that " + op.id + " takes");
  const jit::Hooks* hooks = registered_hooks(j);
  if (!hooks && !trust_hooks)
    fail_in_call(call, "has the hooks " + j.at("name").dump() + ", code that no registered op has",
                 "--trust-hooks (trust_hooks in C++) from whoever trusts the writer of that folder: the code is compiled and run");
  if (!hooks) hooks = jit::lasting_hooks(j.at("type"), j.at("name"), j.at("text"));
  std::memcpy(static_cast<char*>(call.args.get()) + op.hooks_offset, &hooks, sizeof hooks);
  u8* into = static_cast<u8*>(call.args.get()) + op.hook_params_offset;
  for (const Json& p : parameters) *into++ = u8(integer(call, "the hook parameter", p, 0, 255));
}

void read_options(const Json& j, TracedCall& call) {
  call.options.batch_invariant = j.at("batch_invariant");
  call.options.pdl = j.at("pdl");
  call.options.skip_check = j.at("skip_check");
  if (j.at("variant").is_null()) return;
  const NamedVariant named = j["variant"].is_string() ? named_variant(*call.op, j["variant"].get<std::string>()) : NamedVariant{};
  if (named.variant >= 0) call.options.variant = variant_name(*call.op, variant_index(*call.op, j["variant"].get<std::string>()));
  else fail_in_call(call, "asks for the variant " + j["variant"].dump(), "one that " + call.op->id + " has");
}

void read_launch(const Json& j, TracedCall& call) {
  constexpr i64 kMost = std::numeric_limits<u32>::max();
  TracedLaunch& l = call.launches.emplace_back();
  l.kernel = j.at("kernel");
  for (size_t d = 0; d < 3; ++d) l.grid[d] = u32(integer(call, "the grid of " + l.kernel, j.at("grid").at(d), 0, kMost));
  const auto along = [&](size_t d) { return u32(integer(call, "the cluster of " + l.kernel, j.at("cluster").at(d), 0, kMost)); };
  l.cluster = {along(0), along(1), along(2)};
  call.kernels += (call.kernels.empty() ? "" : " + ") + l.kernel;
}

void read_call(const Json& j, bool trust_hooks, TracedCall& call) {
  const Json& device = j.at("device");
  call.emulated = device.at("kind") == "emu";
  call.arch = Arch::parse(device.at("arch"));
  const DeviceId id =
      call.emulated
          ? DeviceId{}
          : DeviceId{DeviceType::cuda, i32(integer(call, "the device's index", device.at("index"), 0, std::numeric_limits<i32>::max()))};
  read_memory(j.at("memory"), call);
  read_tensors(j.at("tensors"), id, call);
  read_attributes(j.at("attributes"), call);
  read_options(j.at("options"), call);
  if (j.contains("hooks")) read_hooks(j["hooks"], trust_hooks, call);
  for (const Json& l : j.at("plan").at("launches")) read_launch(l, call);
  const std::string data = j.at("data");
  if (data != "recorded") call.left_out = data;
}

void read_result(TracedCall& call) {
  const std::string path = call.folder + "/result.json";
  const std::optional<std::string> text = read_regular_file(path, kMostText);
  if (std::error_code error; !text && fs::exists(path, error)) fail(path, "is no file that can be read", "what QN_TRACE writes");
  if (!text) {
    call.error = call.left_out.empty() ? "it did not come to an end" : "";
    return;
  }
  const Json j = parse(path, *text);
  call.has_outputs = j.at("status") == "finished";
  call.finished = call.has_outputs || j.at("status") == kOutputsNotRecorded;
  if (!call.finished) call.error = j.at("error");
}

}  // namespace

std::string TracedCall::elements(size_t tensor, bool after) const {
  const std::string path = folder + "/" + op->tensors[tensor].name + (after ? ".after" : ".before");
  const i64 wanted = packed_bytes(op->tensor(args.get(), tensor));
  std::optional<std::string> bytes = read_regular_file(path, size_t(wanted));
  if (bytes && i64(bytes->size()) == wanted) return std::move(*bytes);
  std::error_code no_file;
  const auto size = fs::file_size(path, no_file);
  fail(folder, no_file ? "has no file " + path : "has " + std::to_string(size) + " bytes in " + path, std::to_string(wanted) + " bytes");
}

TracedCall read_traced_call(const std::string& folder, bool trust_hooks) {
  const std::optional<std::string> text = read_regular_file(folder + "/call.json", kMostText);
  if (!text) fail(folder, "has no call.json that can be read", "a folder of one call in the folder that QN_TRACE named");
  try {
    const Json j = parse(folder + "/call.json", *text);
    if (j.at("format") != kTraceFormat) fail(folder, "is of format " + j.at("format").dump(), "format " + std::to_string(kTraceFormat));
    TracedCall call(find_op(j.at("op").get<std::string>()));
    call.folder = folder;
    read_call(j, trust_hooks, call);
    read_result(call);
    return call;
  } catch (const Json::exception& e) { fail(folder, std::string("cannot be read: ") + e.what(), "what QN_TRACE writes"); }
}

std::vector<std::string> traced_calls(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;  // a path that is too long or may not be read holds no calls
  if (fs::exists(folder + "/call.json", error)) return {folder};
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code none;
    if (entry->path().filename().string()[0] != '.' && fs::exists(entry->path() / "call.json", none))
      found.push_back(entry->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace quern::testing
