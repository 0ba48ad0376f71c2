// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What cases are given beside the words of their op: dependent launches around a call, hostile data. And stores into nowhere, which end a
// case and not the process.
#include "quern/testing/hostile.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <set>

#include "quern/base/guarded_memory.h"
#include "quern/base/host_dtype.h"
#include "quern/device/emulated.h"
#include "quern/jit/sources.h"
#include "quern/op/ref.h"
#include "quern/testing/check.h"
#include "quern/testing/fill.h"

namespace quern::planted {

/// What the kernel does before it waits, or instead.
enum class Deed : i32 { waits, reads_table, reads_x, writes_out, writes_scratch, no_wait, stray };

struct CopyArgs {
  TensorView out, x, table;
  Deed deed = Deed::waits;
};
struct CopyConfig {
  i32 threads;
};
struct CopyParams {
  const float *x, *table;
  float *out, *scratch;
  i64 count;
  i32 deed, unused;
};

const jit::EmbeddedSource kCopySource = {"planted/copy.cuh", R"(
#pragma once
#include "quern/kit/kit.cuh"
namespace quern::planted {
struct CopyConfig {
  i32 threads;
};
struct CopyParams {
  const float *x, *table;
  float *out, *scratch;
  i64 count;
  i32 deed, unused;
};
template <CopyConfig C> QN_DEVICE void copy_all(const CopyParams& p) {
  const i64 i = threadIdx.x;
  if (i >= p.count || p.deed == 5) return;
  f32 early = 0.f;  // used below, or the compiler leaves the load out
  if (p.deed == 1) early = ptx::ld_global<f32>(p.table + i);
  if (p.deed == 2) early = ptx::ld_global<f32>(p.x + i);
  if (p.deed == 3) ptx::st_global<f32>(p.out + i, f32(1.f));
  if (p.deed == 4) ptx::st_global<f32>(p.scratch + i, f32(1.f));
  ptx::grid_dependency_wait();
  ptx::st_global<f32>(p.out + (p.deed == 6 ? 1 << 20 : 0) + i, ptx::ld_global<f32>(p.x + i) + (early == f32(1e30f) ? f32(1.f) : f32(0.f)));
}
}  // namespace quern::planted
)"};
[[maybe_unused]] const int kCopyRegistered = (jit::register_sources(&kCopySource, 1), 0);

static const jit::Kernel<CopyConfig, CopyParams> copy_kernel{"planted/copy.cuh", "copy_all"};

static CopyParams copy_params(const Call<CopyArgs, Region>& c) {
  return {static_cast<const float*>(c.args.x.data),
          static_cast<const float*>(c.args.table.data),
          static_cast<float*>(c.args.out.data),
          reinterpret_cast<float*>(c.region(c.choice)),
          c.args.x.shape[0],
          i32(c.args.deed),
          0};
}
static Plan copy_plan(const Problem& p, const DeviceInfo&) {
  Plan plan;
  const Region scratch = plan.scratch("scratch", 4 * p[Axis::hidden]);
  plan.launch<copy_params>(copy_kernel, CopyConfig{64}, {.pdl = p.pdl}, scratch);
  return plan;
}
static void copy_reference(const CopyArgs& a, const CopyArgs&) {
  const Ref x(a.x);
  const RefOut out(a.out);
  for (i64 h = 0; h < x.dim(0) && a.deed != Deed::no_wait; ++h) out.set(x(h), h);
}

QN_OP(copy, CopyArgs, "planted.copy")
    .doc("out = x")
    .attr("deed", &CopyArgs::deed)
    .in("x", &CopyArgs::x, "hidden", {DType::f32})
    .in("table", &CopyArgs::table, "hidden", {DType::f32})
    .read_early()
    .out("out", &CopyArgs::out, "hidden", like("x"))
    .plan(copy_plan)
    .reference<copy_reference>()
    .unfit_all({DataKind::tails})
    .cases({{"hidden", {40, 1}}, {"deed", {0}}});

}  // namespace quern::planted

namespace quern::testing {
namespace {

using planted::Deed;
using ::testing::AllOf;
using ::testing::HasSubstr;

CheckResult result_of(Deed deed, bool pdl, bool is_checked) {
  const std::unique_ptr<Device> device = make_emulated_device(device_info_of(Arch{}), {.checked = is_checked});
  return check_case({.op = &find_op("planted.copy"), .given = {{"deed", int(deed)}, {"pdl", pdl}}, .devices = {{device.get(), ""}}}).at(0);
}

/// Each alone: a call that another one stood before would be judged without these too.
TEST(testing_hostile, what_a_kernel_touches_before_its_wait_is_reported) {
  for (const Deed deed : {Deed::waits, Deed::reads_table})
    EXPECT_TRUE(result_of(deed, true, true).ok()) << result_of(deed, true, true).message;
  EXPECT_THAT(result_of(Deed::reads_x, true, true).message,
              AllOf(HasSubstr("RACE"), HasSubstr("reads 'x'"), HasSubstr("a kernel launched before")));
  EXPECT_THAT(result_of(Deed::writes_out, true, true).message, AllOf(HasSubstr("RACE"), HasSubstr("writes 'out'")));
  EXPECT_THAT(result_of(Deed::writes_scratch, true, true).message, AllOf(HasSubstr("RACE"), HasSubstr("writes 'scratch'")));
  for (const Deed deed : {Deed::reads_x, Deed::writes_scratch})
    EXPECT_TRUE(result_of(deed, false, true).ok()) << "without pdl the launch before has ended";
}

TEST(testing_hostile, a_kernel_that_never_waits_leaves_the_one_before_to_the_one_behind) {
  EXPECT_THAT(result_of(Deed::no_wait, true, true).message,
              HasSubstr("RACE a dependent launch behind the call may run with the kernels launched before it"));
  EXPECT_TRUE(result_of(Deed::no_wait, false, true).ok());
}

/// In plain mode, where nobody judges each access.
TEST(testing_hostile, a_stray_store_ends_its_case_and_no_other) {
  for (int i = 0; i < 3; ++i) {
    const CheckResult r = result_of(Deed::stray, false, false);
    EXPECT_EQ(r.verdict, CheckResult::Verdict::wrong);
    EXPECT_THAT(r.message, HasSubstr("FAULT"));
    EXPECT_TRUE(result_of(Deed::waits, false, false).ok());
  }
}

/// The kernel of the system says EFAULT where a read would be a SIGSEGV.
bool can_be_read(const char* at) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const bool read = ::write(ends[1], at, 1) == 1;
  ::close(ends[0]), ::close(ends[1]);
  return read;
}

TEST(testing_hostile, memory_of_tensors_and_of_the_device_ends_at_a_guard) {
  const std::unique_ptr<Device> device = make_emulated_device(device_info_of(Arch{}), {});
  void* const memory = device->allocate(1000, "test");
  EXPECT_EQ((reinterpret_cast<u64>(memory) + 1024) % GuardedMemory::kPage, 0u);
  device->release(memory);
  CaseArgs args(find_op("planted.copy"), {}, 1);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ((reinterpret_cast<u64>(args.buffer(i).bytes.get()) + u64(args.buffer(i).size)) % GuardedMemory::kPage, 0u);
  const char *const first = args.buffer(0).bytes.get(), *const last = first + args.buffer(0).size - 1;
  EXPECT_TRUE(can_be_read(first) && can_be_read(last));
  EXPECT_FALSE(can_be_read(first - 1) || can_be_read(last + 1) || can_be_read(first - (64 << 20)) || can_be_read(last + (64 << 20)));
  EXPECT_FALSE(GuardedMemory(size_t(1) << 60));
}

TEST(testing_hostile, half_of_the_cases_are_made_so_and_never_the_first) {
  const Op& op = find_op("planted.copy");
  const std::vector<Case> plain(200, Case{{"hidden", 40}});
  std::vector<Case> some = plain, other = plain, fixed = plain;
  add_hostility(op, some, 1, {});
  add_hostility(op, other, 2, {});
  add_hostility(op, fixed, 1, {{"pdl", {0}}, {"fill", {0}}});
  EXPECT_EQ(some.size(), plain.size());
  EXPECT_EQ(some[0], plain[0]);
  EXPECT_EQ(fixed, plain);
  EXPECT_NE(some, other);
  size_t dependent = 0, hostile = 0;
  std::set<DataKind> kinds;
  for (const Case& c : some) dependent += c.count("pdl"), hostile += c.count("fill"), kinds.insert(data_kind_of(c));
  EXPECT_NEAR(double(dependent), 100, 25);
  EXPECT_NEAR(double(hostile), 100, 25);
  EXPECT_EQ(kinds, (std::set{DataKind::normal, DataKind::nan, DataKind::infinite, DataKind::small, DataKind::edges})) << "tails are unfit";
}

TEST(testing_hostile, words_of_data_are_read_and_written) {
  const Op& op = find_op("planted.copy");
  EXPECT_EQ(case_text(op, parse_case(op, {"fill=small", "hidden=3"})), "fill=small hidden=3");
  EXPECT_THROW(parse_case(op, {"fill=kind"}), Error);
}

/// What the kinds promise, for each dtype.
TEST(testing_hostile, data_is_what_its_kind_says) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    const auto filled = [&](DataKind kind) {
      std::vector<u8> memory(size_t(200 * 100 * size_of(dtype)));
      Random random(3);
      fill_tensor(TensorView(memory.data(), dtype, {200, 100}), Values::Kind::data, 0, random, Number::real, 0, kind);
      std::vector<double> values(200 * 100);
      read_row(memory.data(), dtype, i64(values.size()), 1, values.data());
      EXPECT_EQ(std::count(values.begin(), values.end(), 0.0), 0) << name(dtype);
      return values;
    };
    for (const DataKind kind : {DataKind::nan, DataKind::infinite}) {
      const std::vector<double> values = filled(kind);
      i64 odd = 0, whole_rows = 0;
      for (size_t row = 0; row < 200; ++row) {
        bool whole = true;
        for (size_t i = 100 * row; i < 100 * row + 100; ++i) {
          const bool found = kind == DataKind::nan ? std::isnan(values[i]) : std::isinf(values[i]) || std::abs(values[i]) >= 448;
          odd += found, whole &= !found;
        }
        whole_rows += whole;
      }
      EXPECT_GT(odd, 50) << name(dtype);
      EXPECT_GT(whole_rows, 80) << name(dtype);
    }
    const std::vector<double> tails = filled(DataKind::tails), small = filled(DataKind::small), edges = filled(DataKind::edges);
    EXPECT_GT(*std::max_element(tails.begin(), tails.end()), 100) << name(dtype);
    for (const double v : small) EXPECT_LT(std::abs(v), 0x1p-5) << name(dtype);
    EXPECT_LE(std::set<double>(edges.begin(), edges.end()).size(), 72u) << name(dtype);
  }
}

}  // namespace
}  // namespace quern::testing
