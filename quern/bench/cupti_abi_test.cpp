// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/cupti_abi.h"

#include <gtest/gtest.h>

#if __has_include(<cupti.h>)
#include <cupti.h>
#endif

#if __has_include(<cupti.h>)
namespace quern::cupti {
namespace {

template <class Record>
void expect_offsets() {
  EXPECT_EQ(kKindOffset, offsetof(Record, kind));
  EXPECT_EQ(kStartOffset, offsetof(Record, start));
  EXPECT_EQ(kEndOffset, offsetof(Record, end));
  EXPECT_EQ(kNameOffset, offsetof(Record, name));
}

TEST(bench_cupti_abi, fields_lie_at_one_place_in_every_record_version) {
  expect_offsets<CUpti_ActivityKernel5>();
  expect_offsets<CUpti_ActivityKernel6>();
  expect_offsets<CUpti_ActivityKernel7>();
  expect_offsets<CUpti_ActivityKernel8>();
  expect_offsets<CUpti_ActivityKernel9>();
#if CUPTI_API_VERSION >= 130000
  expect_offsets<CUpti_ActivityKernel10>();
#endif
}

TEST(bench_cupti_abi, values_are_those_of_the_headers) {
  EXPECT_EQ(int(kSuccess), int(CUPTI_SUCCESS));
  EXPECT_EQ(int(kErrorMaxLimitReached), int(CUPTI_ERROR_MAX_LIMIT_REACHED));
  EXPECT_EQ(int(kKernel), int(CUPTI_ACTIVITY_KIND_KERNEL));
  EXPECT_EQ(int(kConcurrentKernel), int(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_EQ(int(kFlushForced), int(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT_EQ(sizeof(CUpti_ActivityKind), sizeof(ActivityKind));
}

}  // namespace
}  // namespace quern::cupti
#else
TEST(bench_cupti_abi, agrees_with_cupti_h) { GTEST_SKIP() << "needs CUDA's headers"; }
#endif
