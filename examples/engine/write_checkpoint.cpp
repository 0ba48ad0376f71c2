// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "write_checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "quern/base/error.h"

namespace engine {

using quern::DType, quern::Error, quern::ErrorKind, quern::TensorView, quern::i64, quern::u64;

static const char* safetensors_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "F32";
    case DType::f16: return "F16";
    case DType::bf16: return "BF16";
    case DType::e4m3: return "F8_E4M3";
    case DType::e5m2: return "F8_E5M2";
    case DType::i32: return "I32";
    case DType::i64: return "I64";
    case DType::u8: return "U8";
    case DType::f64: return "F64";
    case DType::i8: return "I8";
  }
  return "?";
}

void write_safetensors(const std::string& file, const std::map<std::string, TensorView>& tensors) {
  std::vector<std::pair<std::string, TensorView>> sorted(tensors.begin(), tensors.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return size_of(a.second.dtype) > size_of(b.second.dtype); });

  nlohmann::json header = nlohmann::json::object();
  i64 end = 0;
  for (const auto& [name, view] : sorted) {
    const auto refuse = [&, &name = name](const std::string& got, const std::string& expected) {
      throw Error(ErrorKind::value, file, name, got, expected);
    };
    if (name == "__metadata__") refuse("is a tensor", "another name: this one is safetensors' own");
    if (view.device.type != quern::DeviceType::cpu) refuse("is on a device", "a tensor of host memory");
    if (!view.contiguous()) refuse("is not contiguous", "a contiguous tensor");
    if (!view.data && view.numel() > 0) refuse("has no data", "a tensor of host memory");
    const i64 begin = end;
    end += view.numel() * quern::size_of(view.dtype);
    header[name] = {{"dtype", safetensors_name(view.dtype)},
                    {"shape", std::vector<i64>(view.shape, view.shape + view.rank)},
                    {"data_offsets", {begin, end}}};
  }

  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& e) {  // names that are no UTF-8
    throw Error(ErrorKind::value, file, "", std::string("cannot have a header: ") + e.what(), "names in UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  char length[8];
  for (int i = 0; i < 8; ++i) length[i] = char(u64(text.size()) >> (8 * i) & 255);

  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(length, sizeof length).write(text.data(), std::streamsize(text.size()));
  for (const auto& [name, view] : sorted)
    if (view.numel() > 0) out.write(static_cast<const char*>(view.data), view.numel() * quern::size_of(view.dtype));
  out.close();
  if (!out) throw Error(ErrorKind::device, file, "", std::string("cannot be written: ") + std::strerror(errno), "");
}

}  // namespace engine
