// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Indices, extents and enums that a caller hands in are refused with their values where they are none.
#include "quern/base/tensor_view.h"

#include <gtest/gtest.h>

#include <functional>

#include "quern/base/error.h"
#include "quern/base/host_dtype.h"
#include "quern/base/log.h"

namespace quern {
namespace {

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::value);
    return e.what();
  }
  return "nothing thrown";
}

TEST(tensor_view, a_slice_lies_within_the_view) {
  float memory[24] = {};
  const TensorView view(memory, DType::f32, {3, 8});
  const TensorView part = view.slice(1, 2, 5);
  EXPECT_EQ(part.data, memory + 2);
  EXPECT_EQ(shape_string(part), "[3, 3]");
  EXPECT_EQ(shape_string(view.slice(0, 3, 3)), "[0, 8]");
  const auto refused = [&](int dim, i64 begin, i64 end) { return error_of([&] { view.slice(dim, begin, end); }); };
  EXPECT_EQ(refused(0, 2, 9), "TensorView::slice: `begin, end` are 2 and 9 at dim 0 of [3, 8], expected 0 <= begin <= end <= 3");
  EXPECT_EQ(refused(0, 2, 1), "TensorView::slice: `begin, end` are 2 and 1 at dim 0 of [3, 8], expected 0 <= begin <= end <= 3");
  EXPECT_EQ(refused(1, -4, 4), "TensorView::slice: `begin, end` are -4 and 4 at dim 1 of [3, 8], expected 0 <= begin <= end <= 8");
  EXPECT_EQ(refused(7, 0, 1), "TensorView::slice: `dim` is 7 of [3, 8], expected 0 to 1");
  EXPECT_EQ(refused(-1, 0, 1), "TensorView::slice: `dim` is -1 of [3, 8], expected 0 to 1");
  EXPECT_EQ(error_of([] { TensorView().slice(0, 0, 0); }), "TensorView::slice: `dim` is 0 of [], expected a view with dims");
}

TEST(tensor_view, a_shape_has_extents_and_not_too_many) {
  const i64 six[6] = {1, 1, 1, 1, 1, 1};
  EXPECT_EQ(error_of([&] { TensorView(nullptr, DType::f32, six, 6); }), "TensorView: `shape` has 6 dims, expected at most 5");
  EXPECT_EQ(error_of([&] { TensorView(nullptr, DType::f32, six, -1); }), "TensorView: `shape` has -1 dims, expected 0 or more");
  EXPECT_EQ(error_of([] { TensorView(nullptr, DType::f32, {2, -3}); }), "TensorView: `shape` has -3 at dim 1, expected 0 or more");
}

TEST(tensor_view, what_is_no_dtype_is_told) {
  double value = 0;
  const DType none = DType(77);
  const std::string text = "`dtype` is 77, expected 0 to 9";
  EXPECT_EQ(error_of([&] { name(none); }), text);
  EXPECT_EQ(error_of([&] { load_value(&value, none); }), text);
  EXPECT_EQ(error_of([&] { store_value(&value, none, 1); }), text);
  EXPECT_EQ(error_of([&] { read_row(&value, none, 1, 1, &value); }), text);
}

TEST(log, a_level_is_one_of_those_there_are) {
  EXPECT_EQ(error_of([] { set_log_level(-1); }), "`log level` is -1, expected 0 to 5");
  EXPECT_EQ(error_of([] { set_log_level(6); }), "`log level` is 6, expected 0 to 5");
}

}  // namespace
}  // namespace quern
