// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// packbits and segment_packbits.
#include "quern/ops/quant/packbits.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "quern/op/schema.h"
#include "quern/ops/quant/segment_packbits.h"

namespace quern::quant {
namespace {

using Pair = std::pair<ErrorKind, std::string>;
template <class F> Pair error_of(F f) {
  try {
    f();
  } catch (const Error& e) { return {e.kind(), e.what()}; }
  return {ErrorKind::internal, "no error"};
}

std::vector<u8> packed(std::vector<u8> x, BitOrder order) {
  std::vector<u8> out((x.size() + 7) / 8, 0xFF);
  packbits({.out = TensorView(out.data(), DType::u8, {i64(out.size())}),
            .x = TensorView(x.data(), DType::u8, {i64(x.size())}),
            .bit_order = order});
  return out;
}

TEST(quant_packbits, the_first_element_is_the_highest_or_the_lowest_bit) {
  const std::vector<u8> x = {1, 0, 0, 2, 0, 0, 0, 128, 0, 255};
  EXPECT_EQ(packed(x, BitOrder::big), (std::vector<u8>{0x91, 0x40}));
  EXPECT_EQ(packed(x, BitOrder::little), (std::vector<u8>{0x89, 0x02}));
}

/// Each element alone, at every place of a word.
TEST(quant_packbits, an_element_is_one_bit) {
  for (size_t at = 0; at < 16; ++at)
    for (const u8 value : {1, 0x10, 0x7F, 0x80, 0xFF}) {
      std::vector<u8> x(16, 0);
      x[at] = value;
      std::vector<u8> big(2, 0), little(2, 0);
      big[at / 8] = u8(0x80 >> at % 8), little[at / 8] = u8(1 << at % 8);
      EXPECT_EQ(packed(x, BitOrder::big), big) << at << " " << int(value);
      EXPECT_EQ(packed(x, BitOrder::little), little) << at << " " << int(value);
    }
}

struct quant_segment_packbits : testing::Test {
  std::vector<u8> x = std::vector<u8>(20, 1);
  std::vector<i32> indptr = {0, 3, 3, 12, 20}, out_indptr = std::vector<i32>(5, -1);
  std::vector<u8> out = std::vector<u8>(7, 0xEE);
  SegmentPackbitsArgs args() {
    return {.out = TensorView(out.data(), DType::u8, {7}),
            .out_indptr = TensorView(out_indptr.data(), DType::i32, {5}),
            .x = TensorView(x.data(), DType::u8, {20}),
            .indptr = TensorView(indptr.data(), DType::i32, {5})};
  }
};

TEST_F(quant_segment_packbits, segments_start_at_bytes_and_the_rest_is_zero) {
  segment_packbits(args());
  EXPECT_EQ(out_indptr, (std::vector<i32>{0, 1, 1, 3, 4}));
  EXPECT_EQ(out, (std::vector<u8>{0xE0, 0xFF, 0x80, 0xFF, 0, 0, 0}));
  x[4] = 0;
  SegmentPackbitsArgs a = args();
  a.bit_order = BitOrder::little;
  segment_packbits(a);
  EXPECT_EQ(out, (std::vector<u8>{0x07, 0xFD, 0x01, 0xFF, 0, 0, 0}));
}

/// Every segment has one element more than fills bytes: all of out is needed.
TEST_F(quant_segment_packbits, out_has_room_for_the_worst_segments) {
  indptr = {0, 1, 2, 3, 20};
  segment_packbits(args());
  EXPECT_EQ(out_indptr, (std::vector<i32>{0, 1, 2, 3, 6}));
  EXPECT_EQ(out, (std::vector<u8>{0x80, 0x80, 0x80, 0xFF, 0xFF, 0x80, 0}));
}

TEST_F(quant_segment_packbits, no_segment_and_no_element) {
  SegmentPackbitsArgs a = args();
  a.indptr.shape[0] = a.out_indptr.shape[0] = 1;
  a.out.shape[0] = 3;
  segment_packbits(a);
  EXPECT_EQ(out_indptr[0], 0);
  EXPECT_EQ(out, (std::vector<u8>{0, 0, 0, 0xEE, 0xEE, 0xEE, 0xEE}));
}

TEST_F(quant_segment_packbits, rejects_an_out_that_is_too_small) {
  SegmentPackbitsArgs a = args();
  a.out.shape[0] = 4;
  EXPECT_EQ(error_of([&] { segment_packbits(a); }).first, ErrorKind::value);
  EXPECT_EQ(
      error_of([&] { segment_packbits(a); }).second,
      "quant.segment_packbits: `out` has shape [4], expected ceil_div(bits,8)+segments=7 at dim 0 (bits was set by `x` [20]; segments was set by `indptr` [5])");
  a = args();
  a.bit_order = BitOrder(2);
  EXPECT_EQ(error_of([&] { segment_packbits(a); }),
            Pair(ErrorKind::value, "quant.segment_packbits: `bit_order` is 2, expected big or little"));
}

}  // namespace
}  // namespace quern::quant
