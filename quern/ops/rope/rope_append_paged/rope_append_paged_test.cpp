// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/op/schema.h"
#include "quern/testing/case_args.h"

namespace quern::rope {
namespace {

using testing::ArgsStorage;
using testing::CaseArgs;

const Op& fused() { return find_op("rope.rope_append_paged"); }

/// Gives an op what another one has by the same name.
void take_over(const Op& to_op, ArgsStorage& to, const CaseArgs& from) {
  for (const TensorDef& t : to_op.tensors)
    if (const int i = from.op().tensor_index(t.name); i >= 0)
      to_op.tensor(to.get(), size_t(to_op.tensor_index(t.name))) = from.tensor(size_t(i));
  for (const AttrDef& a : to_op.attrs)
    if (const int i = from.op().attr_index(a.name); i >= 0) set_attr(a, to.get(), attr_value(from.op().attrs[size_t(i)], from.args()));
}

TensorView& tensor_of(const Op& op, ArgsStorage& args, const char* name) { return op.tensor(args.get(), size_t(op.tensor_index(name))); }

/// Memory with the extents and strides of a view, and its bytes.
struct Copy {
  explicit Copy(const TensorView& view) : bytes(size_t(view.extent() * size_of(view.dtype)) + 16), is(view) {
    is.data = bytes.data() + (16 - reinterpret_cast<uintptr_t>(bytes.data()) % 16) % 16;
    if (view.numel() > 0) std::memcpy(is.data, view.data, size_t(view.extent() * size_of(view.dtype)));
  }
  std::vector<char> bytes;
  TensorView is;
};

/// Where elements of the two differ; empty: nowhere.
std::string difference(const TensorView& a, const TensorView& b) {
  std::string found;
  const i64 size = size_of(a.dtype), last = a.rank - 1;
  testing::each_row(a, [&](char* row, const i64* lead) {
    const char* other = static_cast<const char*>(b.at(lead));
    for (i64 j = 0; j < a.shape[last]; ++j)
      if (found.empty() && std::memcmp(row + j * a.strides[last] * size, other + j * b.strides[last] * size, size_t(size)) != 0) {
        for (int d = 0; d < last; ++d) found += std::to_string(lead[d]) + " ";
        found += std::to_string(j);
      }
  });
  return found;
}

/// q_out and both caches of the fused call against rope.rope and kv_cache.append_paged one after the other.
void expect_bits_of_two_calls(const Case& which) {
  CaseArgs c(fused(), which, 7);
  const auto view = [&](const char* name) { return c.tensor(size_t(fused().tensor_index(name))); };
  Copy q_out(view("q_out")), k_out(view("k")), k_cache(view("k_cache")), v_cache(view("v_cache"));
  const Copy before(view("k_cache"));

  const Op &rope = find_op("rope.rope"), &append = find_op("kv_cache.append_paged");
  ArgsStorage first(rope), second(append);
  take_over(rope, first, c);
  tensor_of(rope, first, "q_out") = q_out.is, tensor_of(rope, first, "k_out") = k_out.is;
  if (view("mrope_positions").present()) tensor_of(rope, first, "positions") = {};
  run(rope, first.get(), {});
  take_over(append, second, c);
  tensor_of(append, second, "k") = k_out.is, tensor_of(append, second, "k_cache") = k_cache.is,
                            tensor_of(append, second, "v_cache") = v_cache.is;
  if (view("slot_mapping").present()) tensor_of(append, second, "positions") = {};
  run(append, second.get(), {});

  run(fused(), c.args(), {});
  EXPECT_NE(difference(before.is, k_cache.is), "") << "nothing was appended";
  EXPECT_EQ(difference(view("q_out"), q_out.is), "") << "q_out";
  EXPECT_EQ(difference(view("k_cache"), k_cache.is), "") << "k_cache";
  EXPECT_EQ(difference(view("v_cache"), v_cache.is), "") << "v_cache";
}

const Case kSmall = {{"tokens", 9}, {"heads_q", 5}, {"heads_kv", 2}, {"head_dim", 64}, {"page_size", 7}};
Case with(Case which, const Case& more) {
  for (const auto& [word, value] : more) which[word] = value;
  return which;
}

TEST(rope_append_paged, has_the_bits_of_two_calls) {
  expect_bits_of_two_calls(with(kSmall, {{"slots", 1}}));
  expect_bits_of_two_calls(with(kSmall, {{"csr", 1}, {"interleaved", 1}, {"q.dtype", int(DType::f16)}}));
  expect_bits_of_two_calls(with(kSmall, {{"head_dim", 80}, {"rotary_dim", 22}, {"q.pad", 1}, {"angles", 2}}));
}

/// k is rounded to its dtype before it is divided by its scale.
TEST(rope_append_paged, has_the_bits_of_two_calls_in_fp8) {
  expect_bits_of_two_calls(with(kSmall, {{"slots", 1}, {"fp8", 1}, {"scales", 2}, {"angles", 3}}));
  expect_bits_of_two_calls(with(kSmall, {{"fp8", 2}, {"scales", 1}, {"rotary_dim", 32}, {"places", 2}}));
  expect_bits_of_two_calls(with(kSmall, {{"fp8", 1}, {"q.dtype", int(DType::f32)}, {"angles", 1}, {"cos_sin_scale", 1.25}}));
}

std::string refusal(const Case& which, const std::function<void(ArgsStorage&)>& change) {
  CaseArgs c(fused(), with(kSmall, which), 1);
  ArgsStorage args(fused());
  std::memcpy(args.get(), c.args(), fused().args_bytes);
  change(args);
  try {
    run(fused(), args.get(), {});
  } catch (const Error& e) { return e.what(); }
  return "";
}

TEST(rope_append_paged, says_what_it_refuses) {
  const auto absent = [](const char* name) { return [name](ArgsStorage& a) { tensor_of(fused(), a, name) = {}; }; };
  const auto attribute = [](const char* name, const Scalar& value) {
    return [name, value](ArgsStorage& a) { set_attr(fused().attrs[size_t(fused().attr_index(name))], a.get(), value); };
  };
  const std::string op = "rope.rope_append_paged: ";
  EXPECT_EQ(refusal({{"slots", 1}}, absent("positions")), op + "`positions` is absent, expected positions or mrope_positions");
  EXPECT_EQ(refusal({{"slots", 1}}, absent("slot_mapping")),
            op + "`slot_mapping` is absent, expected slot_mapping, or batch_indices with positions and a page table");
  EXPECT_EQ(refusal({}, absent("page_table")), op + "`page_table` is absent, expected page_table, or page_indptr with page_indices");
  EXPECT_EQ(refusal({{"angles", 2}}, absent("sin")), op + "`sin` is absent, expected a tensor, as cos is given");
  EXPECT_EQ(refusal({{"angles", 2}}, attribute("theta", 500000.0)), op + "`theta` is 500000, expected its default beside cos and sin");
  EXPECT_EQ(refusal({{"angles", 2}}, attribute("cos_sin_scale", 2.0)),
            op + "`cos_sin_scale` is 2, expected 1 beside cos and sin, which have it in them");
  EXPECT_EQ(refusal({{"angles", 2}}, attribute("rotary_dim", 32)), op + "`rotary_dim` is 32, expected twice the pairs of the table: 64");
  EXPECT_EQ(refusal({}, attribute("weight_bias", 1.0)), op + "`weight_bias` is 1, expected 0 without q_weight and k_weight");
  EXPECT_EQ(refusal({}, attribute("mrope_section_h", 4)), op + "`mrope_section_h` is 4, expected 0 without mrope_positions");
  EXPECT_EQ(refusal({{"places", 1}}, attribute("mrope_section_t", 1)),
            op + "`mrope_section_t` is 1, expected what the other sections leave of rotary_dim / 2: 12");
}

/// Of a head of equal numbers the norm is the weight.
TEST(rope_append_paged, normalises_before_it_rotates) {
  CaseArgs c(fused(),
             with(kSmall, {{"slots", 1},
                           {"norms", 2},
                           {"q.dtype", int(DType::f32)},
                           {"head_dim", 80},
                           {"rotary_dim", 64},
                           {"theta", 1.0},
                           {"llama31_factor", 1.0}}),
             3);
  const auto view = [&](const char* name) { return c.tensor(size_t(fused().tensor_index(name))); };
  const TensorView q = view("q"), weight = view("q_weight"), positions = view("positions"), out = view("q_out");
  for (i64 t = 0; t < q.shape[0]; ++t) {
    store_integer(positions.at(&t), positions.dtype, 0);
    for (i64 h = 0; h < q.shape[1]; ++h)
      for (i64 d = 0; d < q.shape[2]; ++d) {
        const i64 at[] = {t, h, d};
        store_element(q, at, 3.0);
      }
  }
  run(fused(), c.args(), {});
  for (i64 h = 0; h < q.shape[1]; ++h)
    for (i64 d = 0; d < q.shape[2]; ++d) {
      const i64 at[] = {2, h, d};
      const double w = load_value(weight.at(&d), weight.dtype);
      EXPECT_NEAR(load_value(out.at(at), out.dtype), w, 1e-5 * (std::abs(w) + 1)) << h << " " << d;  // position 0: cosine 1, sine 0
    }
}

}  // namespace
}  // namespace quern::rope
