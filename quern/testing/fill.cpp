// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>

#include "quern/base/host_dtype.h"
#include "quern/kit/order_free.h"
#include "quern/testing/case_args.h"
#include "quern/testing/parallel.h"

namespace quern::testing {

/// Sum of four uniforms, scaled to variance 1: one of 262141 values.
constexpr size_t kSums = 4 * 0xFFFF + 1;
static size_t sum_of(u64 bits) { return (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48); }
static double near_normal(size_t sum) { return (double(sum) - 131070.0) * (1.7320508075688772 / 65536.0); }

/// Never zero in the dtype: an unwritten or misplaced zero must not look right.
static void store_data(void* to, DType dtype, size_t sum) {
  store_value(to, dtype, near_normal(sum));
  if (load_value(to, dtype) == 0) store_value(to, dtype, 0.5);
}

/// What small formats make subnormals of: between two numbers there are this many units, and an odd count of units is halfway.
static double unit_of_subnormals(DType dtype, u64 choice) {
  switch (dtype) {
    case DType::e4m3: return 0x1p-9;
    case DType::e5m2: return 0x1p-16;
    case DType::f16: return choice % 2 ? 0x1p-10 : 0x1p-17;
    default: return choice % 3 == 0 ? 0x1p-10 : choice % 3 == 1 ? 0x1p-17 : 0x1p-25;  // halves of e4m3's, e5m2's and f16's
  }
}

/// See DataKind. `rarity`: of how many elements one is NaN, or infinite. `choice`: of the tensor.
static double hostile_value(DType dtype, DataKind kind, u64 bits, u64 choice, u64 rarity) {
  const u64 more = Random(bits).next();
  const double normal = near_normal(sum_of(bits)), sign = more >> 63 ? -1 : 1;
  switch (kind) {
    case DataKind::nan: return more % rarity ? normal : std::numeric_limits<double>::quiet_NaN();
    case DataKind::infinite: return more % rarity ? normal : sign * std::numeric_limits<double>::infinity();
    case DataKind::tails: return more % 32 ? normal : normal * double(32 << (more >> 32) % 4);
    case DataKind::small: return sign * unit_of_subnormals(dtype, choice) * double(1 + (more >> 32) % 15);
    case DataKind::edges: {
      // 7 / 4: the largest numbers of e4m3 and e5m2 are that times a power of two, so scales come to lie beside one
      const double step = dtype == DType::f32 ? 1e-6 : 2 * unit_roundoff(dtype), next[] = {1, 1 - step / 2, 1 + step};
      return sign * std::ldexp((more >> 40 & 1 ? 1.75 : 1) * next[more % (2 + choice % 2)], int((more >> 32) % 6) - 3);
    }
    default: return normal;
  }
}

static void store_hostile(void* to, DType dtype, double value) {
  store_value(to, dtype, value);
  if (load_value(to, dtype) == 0) store_value(to, dtype, 0.5);
}

/// The bits of each sum: rounding takes 20 ns an element, looking up 2, and a benchmark fills gigabytes.
static const u16* data_table(DType dtype) {
  static std::mutex mutex;
  static std::unique_ptr<u16[]> tables[kDTypeCount];
  const std::lock_guard lock(mutex);
  std::unique_ptr<u16[]>& table = tables[int(dtype)];
  if (!table) {
    table = std::make_unique<u16[]>(kSums);
    for (size_t i = 0; i < kSums; ++i) store_data(&table[i], dtype, i);
  }
  return table.get();
}

static char* row_address(const TensorView& view, i64 row) {
  i64 lead[kMaxRank] = {};
  for (int d = view.rank - 2; d >= 0; --d) lead[d] = row % view.shape[d], row /= view.shape[d];
  return static_cast<char*>(view.at(lead));
}

/// Calls store(address, 64 random bits) for every element on all CPUs. The bits depend on the element's place alone.
template <class Store>
static void each_element(const TensorView& view, u64 seed, const Store& store) {
  const i64 length = view.shape[view.rank - 1], step = view.strides[view.rank - 1] * size_of(view.dtype);
  in_parallel(view.numel(), 1 << 16, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end;) {
      const i64 row = i / length, row_end = std::min(end, (row + 1) * length);
      for (char* at = row_address(view, row) + (i - row * length) * step; i < row_end; ++i, at += step)
        store(at, Random(seed + u64(i)).next());
    }
  });
}

/// An element of another number type than float, any but 0 and NaN: all bits that the type gives a meaning.
static void store_code(void* to, DType dtype, Number number, u64 bits) {
  const bool order_free = number == Number::order_free;
  u32 word = 1 + u32(bits % (size_of(dtype) == 1 ? 0x7e : order_free ? OrderFree::kPrime - 1 : 0x7eff));
  if (size_of(dtype) == 4)
    word = order_free ? OrderFree::of(word, 1 + u32(bits >> 32) % (OrderFree::kExponents - 1)).word : word << 16 | u32(bits >> 48);
  std::memcpy(to, &word, size_t(size_of(dtype)));
}

static void fill_data(const TensorView& view, u64 seed, Number number, DataKind data) {
  const DType dtype = view.dtype;
  if (data != DataKind::normal && number == Number::real && !is_integer(dtype)) {
    const u64 choice = Random(seed ^ 1).next(), rarity = u64(std::max<i64>(64, 2 * view.shape[view.rank - 1]));  // some rows have none
    return each_element(view, seed,
                        [&](char* at, u64 bits) { store_hostile(at, dtype, hostile_value(dtype, data, bits, choice, rarity)); });
  }
  if (number != Number::real && !is_integer(dtype))
    return each_element(view, seed, [&](char* at, u64 bits) { store_code(at, dtype, number, bits); });
  if (is_integer(dtype)) return each_element(view, seed, [&](char* at, u64 bits) { store_value(at, dtype, double(1 + bits % 100)); });
  if (size_of(dtype) > 2 || view.numel() < i64(kSums) / 8)
    return each_element(view, seed, [&](char* at, u64 bits) { store_data(at, dtype, sum_of(bits)); });
  const u16* table = data_table(dtype);
  if (size_of(dtype) == 2) return each_element(view, seed, [&](char* at, u64 bits) { std::memcpy(at, &table[sum_of(bits)], 2); });
  each_element(view, seed, [&](char* at, u64 bits) { *at = char(table[sum_of(bits)]); });
}

/// Distinct values: over the whole tensor where they suffice, else within each row.
static bool fill_permutation(const TensorView& view, i64 extent, Random& random) {
  const i64 row = view.shape[view.rank - 1];
  const bool whole = view.numel() <= extent;
  if (!whole && row > extent) return false;
  std::vector<i64> values(static_cast<size_t>(extent));
  std::iota(values.begin(), values.end(), 0);
  size_t taken = 0;
  each_row(view, [&](char* at, const i64*) {
    if (!whole) taken = 0;
    for (i64 j = 0; j < row; ++j, ++taken) {
      std::swap(values[taken], values[taken + size_t(random.below(extent - i64(taken)))]);
      store_integer(at + j * view.strides[view.rank - 1] * size_of(view.dtype), view.dtype, values[taken]);
    }
  });
  return true;
}

bool fill_tensor(const TensorView& view, Values::Kind kind, i64 extent, Random& random, Number number, u64 redraw, DataKind data) {
  if (kind == Values::Kind::permutation) return fill_permutation(view, extent, random);
  const u64 seed = random.next();
  if (view.rank == 0 || view.numel() == 0) return true;
  const auto store = [&](char* at, i64 value) { store_integer(at, view.dtype, value); };
  switch (kind) {
    case Values::Kind::index:
      each_element(view, seed, [&](char* at, u64 bits) { store(at, extent > 0 ? i64(bits % u64(extent)) : 0); });
      break;
    case Values::Kind::length: each_element(view, seed, [&](char* at, u64 bits) { store(at, i64(bits % u64(extent + 1))); }); break;
    case Values::Kind::generated: each_element(view, seed, [&](char* at, u64) { store(at, 0); }); break;
    default: fill_data(view, is_integer(view.dtype) ? seed : seed + redraw * 0x9E3779B97F4A7C15ull, number, data);
  }
  return true;
}

}  // namespace quern::testing
