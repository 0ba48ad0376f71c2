// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The symbol of a kernel, as profilers show it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quern/jit/build.h"
#include "quern/jit/kernel_source.h"
#include "quern/jit/spec.h"

namespace quern::named {

struct PlainConfig {
  DType dtype;
  i32 threads;
};
struct MinedConfig {
  DType dtype;
  i32 threads;
};
struct SpacedConfig {
  i32 threads;
};
struct TileOfNested {
  i32 rows, columns;
};
struct NestedConfig {
  DType dtype;
  TileOfNested tile;
  i32 threads = 128;
};
struct Params {
  void* out;
};
constexpr const char* purpose_of(const MinedConfig& c) { return size_of(c.dtype) == 1 ? "coal_mine" : "gold_mine"; }
constexpr const char* purpose_of(const SpacedConfig&) { return "wide <open> \xc3\xa4"; }

const jit::Kernel<PlainConfig, Params> plain{"quern/ops/nowhere/none.cuh", "plain_row"};
const jit::Kernel<MinedConfig, Params> mined{"quern/ops/nowhere/none.cuh", "mined_row"};
const jit::Kernel<SpacedConfig, Params> spaced{"quern/ops/nowhere/none.cuh", "spaced_row"};
const jit::Kernel<NestedConfig, Params> nested{"quern/ops/nowhere/none.cuh", "nested_row"};

}  // namespace quern::named

namespace quern::jit {
namespace {

using named::mined, named::nested, named::plain, named::spaced;

TEST(jit_render, the_symbol_is_the_kernel_its_purpose_and_its_config) {
  EXPECT_EQ(entry_name(plain({DType::bf16, 64})), "plain_row__bf16_f164");
  EXPECT_EQ(plain.info().purpose, nullptr);
  EXPECT_EQ(entry_name(mined({DType::bf16, 64})), "mined_row__gold_mine_bf16_f164");
  EXPECT_EQ(entry_name(mined({DType::e4m3, 64})), "mined_row__coal_mine_e4m3_f164") << "the values decide";
  const Hooks hooks{"my::Hooks", "hooked", ""};
  EXPECT_EQ(entry_name(mined({DType::bf16, 64}, &hooks)), "mined_row__gold_mine_bf16_f164_hooked");
  EXPECT_EQ(entry_name(spaced({64})), "spaced_row__wide__open_____f064") << "a symbol has letters, digits and underscores";
}

TEST(jit_render, a_nested_config_stands_in_braces_and_is_told_flat) {
  const KernelSpec spec = nested({DType::bf16, {64, 192}, 256});
  EXPECT_THAT(render(spec), ::testing::HasSubstr("constexpr quern::named::NestedConfig config{quern::DType(2), {64, 192}, 256};"));
  EXPECT_EQ(print(spec), "nested_row<f0=bf16, f1=64, f2=192, f3=256>");
  EXPECT_FALSE(spec == nested({DType::bf16, {64, 128}, 256}));
}

TEST(jit_render, the_purpose_is_in_the_symbol_alone) {
  const KernelSpec spec = mined({DType::bf16, 64});
  EXPECT_EQ(print(spec), "mined_row<f0=bf16, f1=64>");
  EXPECT_EQ(function_of(print(spec)), "mined_row") << "the name of cache folders";
  EXPECT_THAT(
      render(spec),
      ::testing::HasSubstr("QN_ENTRY(mined_row__gold_mine_bf16_f164, quern::named::Params, 64, 1, quern::named::mined_row<config>(p))"));
  EXPECT_EQ(read_source(spec, false).entry, entry_name(spec));
}

/// A cached kernel is found by its symbol: one that was compiled under another must not be served.
TEST(jit_render, another_purpose_is_another_key) {
  const KernelSpec spec = mined({DType::bf16, 64});
  KernelInfo renamed = mined.info();
  renamed.purpose = [](const void*) { return "salt_mine"; };
  KernelSpec other = spec;
  other.kernel = &renamed;
  for (const bool emulated : {false, true}) {
    Target target;
    target.emulated = emulated;
    EXPECT_NE(digests(spec, target).identity, digests(other, target).identity);
    renamed.purpose = mined.info().purpose;
    EXPECT_EQ(digests(spec, target).identity, digests(other, target).identity);
    renamed.purpose = [](const void*) { return "salt_mine"; };
  }
}

}  // namespace
}  // namespace quern::jit
