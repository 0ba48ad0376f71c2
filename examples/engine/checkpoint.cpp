// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// A file of safetensors: 8 bytes, the length of the header, lowest first; the header, JSON {name: {dtype, shape, data_offsets: [begin,
// end]}}, which may have strings of "__metadata__" beside tensors and ends in spaces; the data, which the tensors fill without holes.
#include "checkpoint.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "json_file.h"
#include "quern/base/error.h"
#include "quern/base/nearest.h"

namespace engine {

using Json = nlohmann::json;
using quern::DType, quern::Error, quern::ErrorKind, quern::TensorView, quern::u64;

constexpr u64 kLengthBytes = 8;
constexpr u64 kMostHeaderBytes = 100'000'000;  // as safetensors' own reader has it

/// A mapped file. Its tensors lie in it as the header says.
struct Checkpoint::Mapping {
  std::string path;
  char* begin = nullptr;
  size_t bytes = 0;
  std::map<std::string, std::string> others;        ///< tensors that no view can be of, and why
  std::map<std::string, std::vector<char>> copies;  ///< of tensors whose elements lie across their natural boundaries

  explicit Mapping(std::string path);
  ~Mapping() {
    if (begin) ::munmap(begin, bytes);
  }
  Mapping(const Mapping&) = delete;
};

namespace {

[[noreturn]] void fail(const std::string& where, const std::string& tensor, const std::string& got, const std::string& expected) {
  throw Error(ErrorKind::value, where, tensor, got, expected);
}

std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 120 ? text : text.substr(0, 120) + "...";
}

std::string shape_text(const std::vector<i64>& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? ", " : "") + std::to_string(shape[i]);
  return s + "]";
}

/// One tensor as a header states it; offsets are within the data.
struct Entry {
  std::string name, dtype;
  std::vector<i64> shape;
  u64 begin = 0, end = 0;
};

/// Bytes of an element; 0 of a dtype that is unknown or has parts of bytes.
u64 element_bytes(const std::string& dtype) {
  static const std::map<std::string, u64> known = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
                                                   {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
                                                   {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8}};
  const auto found = known.find(dtype);
  return found == known.end() ? 0 : found->second;
}

/// Null where quern has no such dtype, or the engine nothing to do with it.
const DType* dtype_of(const std::string& name) {
  static const std::map<std::string, DType> known = {
      {"BF16", DType::bf16}, {"F16", DType::f16}, {"F32", DType::f32}, {"F8_E4M3", DType::e4m3}};
  const auto found = known.find(name);
  return found == known.end() ? nullptr : &found->second;
}

u64 offset_of(const Json& value) { return value.is_number_unsigned() ? value.get<u64>() : UINT64_MAX; }

Entry read_entry(const std::string& path, const std::string& name, const Json& json, u64 data_bytes) {
  if (!json.is_object()) fail(path, name, "is " + shown(json), "an object with dtype, shape and data_offsets");
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!json.contains(key)) fail(path, name, "has no " + std::string(key), "an object with dtype, shape and data_offsets");
  Entry e;
  e.name = name;
  if (!json["dtype"].is_string()) fail(path, name, "has dtype " + shown(json["dtype"]), "a string");
  e.dtype = json["dtype"].get<std::string>();

  const Json& shape = json["shape"];
  if (!shape.is_array()) fail(path, name, "has shape " + shown(shape), "a list of whole numbers from 0");
  u64 count = 1;  // of elements
  bool fits = true, empty = false;
  for (const Json& extent : shape) {
    const u64 n = offset_of(extent);
    if (n > u64(INT64_MAX)) fail(path, name, "has shape " + shown(shape), "a list of whole numbers from 0");
    e.shape.push_back(i64(n));
    empty |= n == 0;
    fits &= !__builtin_mul_overflow(count, std::max<u64>(n, 1), &count);  // strides are made of the extents beside 0, too
  }
  if (!fits || count > (u64(1) << 60)) fail(path, name, "has shape " + shown(shape), "at most 2^60 elements");

  const Json& offsets = json["data_offsets"];
  const bool pair = offsets.is_array() && offsets.size() == 2;
  e.begin = pair ? offset_of(offsets[0]) : UINT64_MAX, e.end = pair ? offset_of(offsets[1]) : UINT64_MAX;
  if (e.begin > e.end || e.end > data_bytes)
    fail(path, name, "has data_offsets " + shown(offsets),
         "[begin, end] within the file's " + std::to_string(data_bytes) + " bytes of data");
  const u64 element = element_bytes(e.dtype), bytes = empty ? 0 : count * element;
  if (element > 0 && e.end - e.begin != bytes)
    fail(path, name, "has " + std::to_string(e.end - e.begin) + " bytes",
         std::to_string(bytes) + " of " + e.dtype + " " + shape_text(e.shape));
  return e;
}

/// The tensors of a mapped file, in the order of their data.
std::vector<Entry> read_entries(const std::string& path, const char* file, u64 bytes, u64* data) {
  if (bytes < kLengthBytes) fail(path, "", "has " + std::to_string(bytes) + " bytes", "8 at least: the length of a header");
  u64 length = 0;
  for (u64 i = 0; i < kLengthBytes; ++i) length |= u64(static_cast<unsigned char>(file[i])) << (8 * i);
  const u64 most = std::min(kMostHeaderBytes, bytes - kLengthBytes);
  if (length < 2 || length > most)
    fail(path, "", "states a header of " + std::to_string(length) + " bytes",
         "2 to " + std::to_string(most) + ", as the file has " + std::to_string(bytes));
  if (file[kLengthBytes] != '{') fail(path, "", "has a header that does not begin with {", "a file of safetensors");
  *data = kLengthBytes + length;
  const u64 data_bytes = bytes - *data;

  const Json header = parse_json(std::string(file + kLengthBytes, length), path);
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") entries.push_back(read_entry(path, name, value, data_bytes));
    else if (!value.is_object()) fail(path, name, "is " + shown(value), "an object of strings");
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
  u64 end = 0;
  for (const Entry& e : entries) {
    if (e.begin != end)
      fail(path, e.name, "begins at byte " + std::to_string(e.begin) + " of the data",
           std::to_string(end) + ", where the tensor before it ends: data has no holes and no overlaps");
    end = e.end;
  }
  if (end != data_bytes)
    fail(path, "", "has " + std::to_string(data_bytes) + " bytes of data", std::to_string(end) + ", where its last tensor ends");
  return entries;
}

/// The files of a folder, and the file that the index places each tensor in; none without an index.
std::vector<std::string> files_of(const std::string& folder, std::map<std::string, std::string>* places) {
  const std::string single = folder + "/model.safetensors", index = single + ".index.json";
  struct stat status;
  const auto exists = [&](const std::string& path) { return ::lstat(path.c_str(), &status) == 0; };
  if (exists(single)) return {"model.safetensors"};  // as transformers, where there are both
  if (!exists(index)) fail(folder, "", "has no model.safetensors and no model.safetensors.index.json", "one of them");
  const Json json = read_json(index);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object() || map->empty())
    fail(index, "weight_map", map == json.end() ? "is missing" : "is " + shown(*map), "an object of tensors and their files");
  std::set<std::string> files;
  for (const auto& [name, file] : map->items()) {
    const std::string text = file.is_string() ? file.get<std::string>() : "";
    if (text.empty() || text.find('/') != std::string::npos || text.find("..") != std::string::npos || text.find('\0') != std::string::npos)
      fail(index, name, "is in " + shown(file), "a file of the same folder: a name without / and ..");
    (*places)[name] = text;
    files.insert(text);
  }
  return {files.begin(), files.end()};
}

/// The three names that are nearest to `name`, without those that share less than half of it.
std::string nearest_names(const std::string& name, const std::map<std::string, bool>& known) {
  std::vector<std::pair<size_t, std::string>> near;
  for (const auto& [other, used] : known) {
    if (other.size() > 2 * name.size()) continue;
    if (const size_t distance = quern::edit_distance(name, other); distance <= name.size() / 2) near.emplace_back(distance, other);
  }
  std::sort(near.begin(), near.end());
  std::string text;
  for (size_t i = 0; i < near.size() && i < 3; ++i) text += (i ? ", " : "") + near[i].second;
  return text;
}

}  // namespace

Checkpoint::Mapping::Mapping(std::string path_) : path(std::move(path_)) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // NONBLOCK: a pipe of that name does not keep us waiting
  if (fd < 0) fail(path, "", std::string("cannot be opened: ") + std::strerror(errno), "a file of safetensors");
  struct stat status = {};
  const bool regular = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  bytes = regular ? size_t(status.st_size) : 0;
  void* const mapped = bytes > 0 ? ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
  const std::string why = mapped == MAP_FAILED ? std::strerror(errno) : "";
  ::close(fd);
  if (!regular) fail(path, "", "is no regular file", "a file of safetensors");
  if (mapped == MAP_FAILED) fail(path, "", "cannot be mapped: " + why, "a file of safetensors");
  begin = static_cast<char*>(mapped);
}

Checkpoint::Checkpoint(const std::string& folder) {
  std::map<std::string, std::string> places, owners;  // file of each tensor: as the index says, and as the headers do
  for (const std::string& file : files_of(folder, &places)) {
    files_.push_back(std::make_unique<Mapping>(folder + "/" + file));
    Mapping& m = *files_.back();
    u64 data = 0;
    for (const Entry& e : read_entries(m.path, m.begin, m.bytes, &data)) {
      const auto [owner, first] = owners.emplace(e.name, file);
      if (!first) fail(m.path, e.name, "is in this file and in " + owner->second, "one of them");
      const auto place = places.find(e.name);
      if (place != places.end() && place->second != file)
        fail(m.path, e.name, "is in this file", place->second + ", where the index places it");
      const DType* const dtype = dtype_of(e.dtype);
      if (!dtype) m.others[e.name] = "is " + e.dtype;
      else if (e.shape.size() > size_t(quern::kMaxRank)) m.others[e.name] = "has shape " + shape_text(e.shape);
      else tensors_[e.name] = TensorView(m.begin + data + e.begin, *dtype, e.shape.data(), int(e.shape.size()));
      used_[e.name] = false;
    }
  }
  for (const auto& [name, file] : places)
    if (!owners.count(name)) fail(folder + "/" + file, name, "is not in this file", "a tensor that the index places here");
}

Checkpoint::~Checkpoint() = default;

TensorView Checkpoint::get(const std::string& name, const std::vector<i64>& shape) {
  const auto used = used_.find(name);
  if (used == used_.end()) {
    const std::string near = nearest_names(name, used_), &path = files_.front()->path;
    fail(path.substr(0, path.rfind('/')), name, "is not in the checkpoint",
         near.empty() ? "one of its " + std::to_string(used_.size()) + " tensors" : "one of its tensors; near are " + near);
  }
  for (const auto& m : files_)
    if (const auto other = m->others.find(name); other != m->others.end())
      fail(m->path, name, other->second, "BF16, F16, F32 or F8_E4M3, of 5 dims at most");

  TensorView view = tensors_.at(name);
  char* const data = static_cast<char*>(view.data);
  Mapping* owner = nullptr;
  for (const auto& m : files_)
    if (std::less_equal<>()(m->begin, data) && std::less_equal<>()(data, m->begin + m->bytes)) owner = m.get();
  if (!std::equal(shape.begin(), shape.end(), view.shape, view.shape + view.rank))
    fail(owner->path, name, "has shape " + quern::shape_string(view), shape_text(shape));
  used->second = true;
  if (reinterpret_cast<uintptr_t>(data) % size_t(quern::size_of(view.dtype)) != 0) {  // early writers did not pad their headers
    std::vector<char>& copy = owner->copies[name];
    if (copy.empty()) copy.assign(data, data + view.numel() * quern::size_of(view.dtype));
    view.data = copy.data();
  }
  return view;
}

bool Checkpoint::has(const std::string& name) const { return used_.count(name) > 0; }

std::vector<std::string> Checkpoint::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, used] : used_)
    if (!used) names.push_back(name);
  return names;
}

}  // namespace engine
