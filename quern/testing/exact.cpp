// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/exact.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "quern/kit/order_free.h"
#include "quern/op/ref.h"

namespace quern::testing {

/// The elements' bits, row-major.
static std::vector<u32> bits_of(const TensorView& view) {
  std::vector<u32> bits;
  bits.reserve(size_t(view.numel()));
  const i64 size = size_of(view.dtype);
  each_row(view, [&](char* row, const i64*) {
    for (i64 j = 0; j < view.shape[view.rank - 1]; ++j) {
      u32 element = 0;
      std::memcpy(&element, row + j * view.strides[view.rank - 1] * size, size_t(std::min<i64>(size, 4)));
      bits.push_back(element);
    }
  });
  return bits;
}

/// An element's bits where nothing was written.
static u32 untouched(DType dtype) { return size_of(dtype) >= 4 ? ~0u : (1u << 8 * size_of(dtype)) - 1; }

static u32 stored(OrderFree x, DType dtype) {
  switch (size_of(dtype)) {
    case 4: return x.word;
    case 2: return x.half();
    default: return x.byte();
  }
}

std::vector<Expected> meaning_of(const CaseArgs& args) {
  const Op& op = args.op();
  ArgsStorage wide(op), unused(op);
  std::memcpy(wide.get(), args.args(), op.args_bytes);
  std::vector<std::vector<double>> words(op.tensors.size());
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorView v = args.tensor(i);
    op.tensor(unused.get(), i) = TensorView();
    if (op.tensors[i].role == Role::in || !v.present()) continue;
    words[i].assign(size_t(std::max<i64>(1, v.numel())), std::bit_cast<double>(kUnwrittenBits));
    size_t at = 0;
    if (op.tensors[i].role == Role::inout)
      each_row(v, [&](char* row, const i64*) {
        for (i64 j = 0; j < v.shape[v.rank - 1]; ++j)
          words[i][at++] = load_number<OrderFree>(row + j * v.strides[v.rank - 1] * size_of(v.dtype), v.dtype).word;
      });
    op.tensor(wide.get(), i) = TensorView(words[i].data(), DType::f64, v.shape, v.rank);
  }
  op.order_free(wide.get(), unused.get(), args.args());
  std::vector<Expected> all;
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorView v = args.tensor(i);
    if (words[i].empty()) continue;
    Expected& e = all.emplace_back();
    e.tensor = i;
    for (i64 at = 0; at < v.numel(); ++at) {
      const u64 pattern = std::bit_cast<u64>(words[i][size_t(at)]);
      e.certain.push_back(pattern != kUnspecifiedBits);
      e.bits.push_back(pattern == kUnwrittenBits || !e.certain.back() ? untouched(v.dtype)
                                                                      : stored(OrderFree::of_word(u32(words[i][size_t(at)])), v.dtype));
    }
  }
  return all;
}

std::vector<Expected> outputs_of(const CaseArgs& args) {
  std::vector<Expected> all;
  for (size_t i = 0; i < args.op().tensors.size(); ++i) {
    if (args.op().tensors[i].role == Role::in || !args.tensor(i).present()) continue;
    Expected e{i, bits_of(args.tensor(i)), {}};
    e.certain.assign(e.bits.size(), 1);
    all.push_back(std::move(e));
  }
  return all;
}

static OrderFree number_of(u32 bits, DType dtype) {
  switch (size_of(dtype)) {
    case 4: return OrderFree::of_word(bits);
    case 2: return OrderFree::of_half(bits);
    default: return OrderFree::of_byte(bits);
  }
}

static std::string number_text(u32 bits, DType dtype) {
  const OrderFree x = number_of(bits, dtype);
  if (x.is_nan()) return fmt::format("NaN ({:#x})", bits);
  if (x.is_infinite()) return bits >> 31 ? "-inf" : "inf";
  if (x.is_logarithm()) return fmt::format("log2 of {}2^{}", x.value() ? "-" : "", x.exponent());
  return std::to_string(x.value()) + (x.has_exponent() ? fmt::format(" (exponent {})", x.exponent()) : "");
}

static std::string index_text(const TensorView& v, i64 at) {
  std::string text;
  for (int d = v.rank - 1; d >= 0; --d) text = std::to_string(at % v.shape[d]) + (text.empty() ? "" : ", ") + text, at /= v.shape[d];
  return "[" + text + "]";
}

std::string difference(const CaseArgs& args, const std::vector<Expected>& expected) {
  for (const Expected& e : expected) {
    const TensorView v = args.tensor(e.tensor);
    const std::vector<u32> got = bits_of(v);
    i64 worst = -1, count = 0;
    for (size_t i = 0; i < got.size(); ++i)
      if (e.certain[i] && got[i] != e.bits[i] && count++ == 0) worst = i64(i);
    if (count > 0)
      return fmt::format("`{}` {} is {}, expected {}; {} of {} elements differ", args.op().tensors[e.tensor].name, index_text(v, worst),
                         number_text(got[size_t(worst)], v.dtype), number_text(e.bits[size_t(worst)], v.dtype), count, got.size());
  }
  return args.damage();
}

std::string without_meaning(const CaseArgs& args, const std::vector<Expected>& expected) {
  for (const Expected& e : expected) {
    const TensorView v = args.tensor(e.tensor);
    if (is_integer(v.dtype) || args.op().tensors[e.tensor].role != Role::out) continue;
    for (size_t i = 0; i < e.bits.size(); ++i)
      if (e.certain[i] && number_of(e.bits[i], v.dtype).is_nan() && e.bits[i] != untouched(v.dtype))
        return fmt::format("`{}` {} has no meaning in order-free numbers", args.op().tensors[e.tensor].name, index_text(v, i64(i)));
  }
  return "";
}

}  // namespace quern::testing
