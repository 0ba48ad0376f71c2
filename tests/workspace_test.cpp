// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What workspace_bytes() says is what a call takes: no byte less.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "quern/op/schema.h"
#include "quern/op/workspace.h"
#include "quern/ops/attention/paged.h"
#include "quern/ops/norm/rms_norm.h"
#include "quern/testing/case_args.h"
#include "quern/testing/check.h"

namespace quern {
namespace {

/// 256-byte aligned.
struct Memory {
  explicit Memory(i64 bytes) : data(std::aligned_alloc(256, size_t(round_up<i64>(bytes + 256, 256))), std::free) {}
  std::unique_ptr<void, void (*)(void*)> data;
};

const char* const kLong[] = {"batch=3", "capacity=3000", "heads_kv=2", "out.pad=0"};

testing::CaseArgs long_decode() {
  return testing::CaseArgs(find_op("attention.paged"),
                           testing::parse_case(find_op("attention.paged"), {std::begin(kLong), std::end(kLong)}), 1);
}

TEST(op_workspace, is_what_the_call_takes) {
  testing::CaseArgs args = long_decode();
  const Op& op = args.op();
  RunOptions options = testing::options_of(op, args.which());
  const i64 bytes = workspace_bytes(op, args.args(), options);
  const Problem problem = bind(op, args.args(), options);
  ASSERT_GT(bytes, 0);
  EXPECT_EQ(bytes, make_plan(op, problem, device_of(problem.device).info()).workspace);
  const Memory memory(bytes);
  options.workspace = {memory.data.get(), bytes};
  run(op, args.args(), options);
  EXPECT_TRUE(testing::judge(args, testing::truth_of(args), problem).ok);
  options.workspace.bytes = bytes - 1;
  try {
    run(op, args.args(), options);
    FAIL() << "a workspace that is a byte too small was taken";
  } catch (const Error& e) { EXPECT_EQ(e.argument(), "workspace"); }
}

TEST(op_workspace, follows_the_options) {
  testing::CaseArgs args = long_decode();
  const Op& op = args.op();
  RunOptions options = testing::options_of(op, args.which());
  const i64 free = workspace_bytes(op, args.args(), options);
  options.batch_invariant = true;
  const Problem problem = bind(op, args.args(), options);
  EXPECT_EQ(workspace_bytes(op, args.args(), options), make_plan(op, problem, device_of(problem.device).info()).workspace);
  EXPECT_NE(workspace_bytes(op, args.args(), options), free);
}

TEST(op_workspace, by_name_and_args) {
  testing::CaseArgs args = long_decode();
  const auto& decode = *static_cast<const attention::PagedArgs*>(args.args());
  EXPECT_EQ(workspace_bytes("attention.paged", decode), workspace_bytes(args.op(), args.args()));
  float x[8] = {}, weight[4] = {}, out[8];
  norm::RmsNormArgs small{.out = {out, DType::f32, {2, 4}}, .x = {x, DType::f32, {2, 4}}, .weight = {weight, DType::f32, {4}}};
  EXPECT_EQ(workspace_bytes("norm.rms_norm", small), 0);
  small.out.shape[0] = small.x.shape[0] = 0;
  EXPECT_EQ(workspace_bytes("norm.rms_norm", small), 0) << "nothing is launched";
}

TEST(op_workspace, refuses_what_the_call_would_refuse) {
  const auto text = [](const auto& asked) {
    try {
      asked();
    } catch (const Error& e) { return std::string(name(e.kind())) + ": " + e.what(); }
    return std::string("nothing");
  };
  norm::RmsNormArgs none;
  EXPECT_EQ(text([&] { workspace_bytes("norm.rms_norm", none); }),
            "value: norm.rms_norm: `x` is missing, expected a tensor [tokens hidden]");
  EXPECT_NE(text([&] { workspace_bytes("norm.rms_nrom", none); }).find("the nearest is norm.rms_norm"), std::string::npos);
  const std::string other = text([&] { workspace_bytes("attention.paged", none); });
  EXPECT_EQ(other.find("type: attention.paged: `args` is a "), 0u) << other;
}

}  // namespace
}  // namespace quern
