// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Contracts of index tensors: each breach is reported in checked mode with its element and bound, and no case of an op has one but those
// that say so.
#include "quern/op/contents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <sstream>

#include "quern/device/emulated.h"
#include "quern/op/ref.h"
#include "quern/testing/check.h"
#include "quern/testing/host_case.h"

namespace quern::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Device& checked_device() {
  static const std::unique_ptr<Device> device = make_emulated_device(device_info_of(Arch{}), {.checked = true});
  return *device;
}

using Elements = std::vector<i64>;
/// The first elements of tensors, and values of attributes.
struct Given {
  std::vector<std::pair<const char*, Elements>> tensors;
  std::vector<std::pair<const char*, Scalar>> attributes = {};
};

struct Fault {
  const char* name;
  const char* op;
  Case which;
  Given right;       ///< contents that keep the contract
  Given wrong;       ///< and then those that break it
  const char* text;  ///< what is reported
};

void set(CaseArgs& c, const Given& given) {
  for (const auto& [tensor, elements] : given.tensors) {
    const TensorView v = c.tensor(size_t(c.op().tensor_index(tensor)));
    ASSERT_TRUE(v.present() && v.contiguous() && i64(elements.size()) <= v.numel()) << tensor;
    for (size_t i = 0; i < elements.size(); ++i)
      store_integer(static_cast<char*>(v.data) + i64(i) * size_of(v.dtype), v.dtype, elements[i]);
  }
  for (const auto& [attribute, value] : given.attributes) set_attr(c.op().attrs[size_t(c.op().attr_index(attribute))], c.args(), value);
}

std::vector<std::string> breaches_of(CaseArgs& c) {
  std::vector<std::string> texts;
  const RunOptions options = options_of(c.op(), c.which());
  for (const Breach& breach : contents_breaches(c.op(), c.args(), bind(c.op(), c.args(), options))) texts.push_back(to_string(breach));
  return texts;
}

/// Runs of equal values.
Elements rows(std::initializer_list<std::pair<i64, i64>> runs) {
  Elements all;
  for (const auto& [value, count] : runs) all.insert(all.end(), size_t(count), value);
  return all;
}

const Case kRope = {{"tokens", 4}, {"heads_q", 1}, {"heads_kv", 1}, {"head_dim", 64}};
/// Two requests of two pages of 16 tokens; the cache has 7.
const Case kAppend = {{"tokens", 4}, {"batch", 2}, {"heads_kv", 1}, {"head_dim", 64}, {"page_size", 16}};
const Given kDenseAppend = {{{"batch_indices", {0, 1, -5, 1}}, {"positions", {31, 0, -9, 1}}, {"page_table", {6, 0, 1, -1}}}};
const Given kDenseRopeAppend = {{{"batch_indices", {0, 1, -5, 1}}, {"positions", {31, 0, 9, 1}}, {"page_table", {6, 0, 1, -1}}}};
const Given kSlotsAppend = {{{"slot_mapping", {0, 111, -1, -1000}}}};
const Given kCsrAppend = {
    {{"batch_indices", {0, 1, -1, 1}}, {"positions", {31, 0, 77, 1}}, {"page_indptr", {0, 2, 3}}, {"page_indices", {6, 0, 1, 99}}}};
/// Two requests of up to 40 tokens, pages of 16; the cache has 8.
const Case kDecode = {{"batch", 2},     {"heads_kv", 1},   {"gqa", 1},         {"head_dim", 64},
                      {"capacity", 40}, {"page_size", 16}, {"window_left", -1}};
const Given kDenseDecode = {{{"seq_lens", {48, 1}}, {"page_table", {7, 0, 1, 2, -1, 999}}}};
const Given kCsrDecode = {{{"page_indptr", {0, 3, 3}}, {"page_indices", {7, 0, 1, -1}}, {"last_page_len", {16, 999}}}};
const Case kSteps = {{"batch", 2}, {"heads_kv", 1}, {"gqa", 1}, {"head_dim", 64}, {"queries", 5}, {"keys", 9}, {"bits", 1}, {"spare", 0}};
const Given kRaggedStep = {{{"q_indptr", {0, 5, 10}}, {"kv_indptr", {0, 9, 18}}, {"mask_indptr", {0, 6, 12}}}};
const Case kRows = {{"m", 48}, {"n", 8}, {"k", 128}, {"groups", 3}, {"alignment", 16}};
const Given kGroupOfRow = {{{"group_of_row", rows({{2, 20}, {-1, 12}, {0, 7}, {-1, 9}})}}};
const Case kMasked = {{"max_m", 16}, {"n", 8}, {"k", 128}, {"groups", 3}};
const Case kColumns = {{"m", 8}, {"n", 8}, {"k", 260}, {"groups", 3}, {"bits8", 0}, {"alignment", 8}};

Case with(Case which, const Case& more) {
  for (const auto& [word, value] : more) which[word] = value;
  return which;
}
const Case kCsr = {{"csr", true}};
Case layout(int i) { return with(kRows, {{"layout", i}}); }
const Case kSizes = with(kColumns, {{"sizes", 1}});
const Case kColumns8 = with(kColumns, {{"bits8", 1}});

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all = {
      {"rope_position_past_the_last",
       "rope.rope_inplace",
       kRope,
       {{{"positions", {0, 5, 5, 16777215}}}},
       {{{"positions", {0, 5, 5, 16777216}}}},
       "`positions`[3] is 16777216, expected 0 to 16777215"},
      {"rope_negative_position", "rope.rope_inplace", kRope, {}, {{{"positions", {-1}}}}, "`positions`[0] is -1, expected 0 to 16777215"},

      {"rope_position_past_the_table",
       "rope.rope",
       with(kRope, {{"angles", 2}}),
       {{{"positions", {0, 5, 5, 299}}}},
       {{{"positions", {0, 5, 300, 299}}}},
       "`positions`[2] is 300, expected 0 to 299, the rows of `cos`"},
      {"rope_position_of_a_section",
       "rope.rope",
       with(kRope, {{"places", 1}}),
       {},
       {{{"mrope_positions", {0, 1, 2, 3, 4, 5, -6, 7, 8, 9, 10, 11}}}},
       "`mrope_positions`[1, 2] is -6, expected 0 to 16777215"},
      {"rope_offset_of_a_request",
       "rope.rope",
       with(kRope, {{"places", 3}, {"batch", 2}}),
       {{{"indptr", {0, 2, 4}}, {"offsets", {0, 16777214}}}},
       {{{"offsets", {0, 16777215}}}},
       "`offsets`[1] is 16777215, expected 0 to 16777214: the request has 2 tokens, and positions are 0 to 16777215"},
      {"rope_requests_in_order",
       "rope.rope",
       with(kRope, {{"places", 3}, {"batch", 2}}),
       {{{"indptr", {0, 2, 4}}, {"offsets", {0, 0}}}},
       {{{"indptr", {3, 2, 4}}}},
       "`indptr`[1] is 2, expected at least 3, the element before it"},
      {"rope_append_position_past_the_pages",
       "rope.rope_append_paged",
       with(kAppend, {{"heads_q", 1}}),
       kDenseRopeAppend,
       {{{"positions", {32}}}},
       "`positions`[0] is 32, expected 0 to 31: request 0 has 2 pages of 16 tokens"},
      {"rope_append_position_of_a_skipped_token",
       "rope.rope_append_paged",
       with(kAppend, {{"heads_q", 1}}),
       kDenseRopeAppend,
       {{{"positions", {31, 0, -9}}}},
       "`positions`[2] is -9, expected 0 to 16777215"},
      {"rope_append_slot_past_the_cache",
       "rope.rope_append_paged",
       with(kAppend, {{"heads_q", 1}, {"slots", 1}}),
       kSlotsAppend,
       {{{"slot_mapping", {0, 112}}}},
       "`slot_mapping`[1] is 112, expected 0 to 111 or negative (in [0, pages*page_size))"},

      {"append_request_past_the_batch",
       "kv_cache.append_paged",
       kAppend,
       kDenseAppend,
       {{{"batch_indices", {0, 2}}}},
       "`batch_indices`[1] is 2, expected 0 to 1 or negative (in [0, batch))"},
      {"append_position_past_the_pages",
       "kv_cache.append_paged",
       kAppend,
       kDenseAppend,
       {{{"positions", {32}}}},
       "`positions`[0] is 32, expected 0 to 31: request 0 has 2 pages of 16 tokens"},
      {"append_negative_position",
       "kv_cache.append_paged",
       kAppend,
       kDenseAppend,
       {{{"positions", {31, -1}}}},
       "`positions`[1] is -1, expected 0 to 31: request 1 has 2 pages of 16 tokens"},
      {"append_page_past_the_cache",
       "kv_cache.append_paged",
       kAppend,
       kDenseAppend,
       {{{"page_table", {6, 7}}}},
       "`page_table`[0, 1] is 7, expected 0 to 6, as token 0 is written there"},
      {"append_csr_position_past_the_pages",
       "kv_cache.append_paged",
       with(kAppend, kCsr),
       kCsrAppend,
       {{{"positions", {31, 16}}}},
       "`positions`[1] is 16, expected 0 to 15: request 1 has 1 pages of 16 tokens"},
      {"append_csr_page_past_the_cache",
       "kv_cache.append_paged",
       with(kAppend, kCsr),
       kCsrAppend,
       {{{"page_indices", {6, 0, -1}}}},
       "`page_indices`[2] is -1, expected 0 to 6, as token 1 is written there"},
      {"append_csr_pointer_past_the_end",
       "kv_cache.append_paged",
       with(kAppend, kCsr),
       kCsrAppend,
       {{{"page_indptr", {0, 2, 5}}}},
       "`page_indptr`[2] is 5, expected 0 to 4 (in [0, page_indices])"},
      {"append_slot_past_the_cache",
       "kv_cache.append_paged",
       with(kAppend, {{"slots", true}}),
       kSlotsAppend,
       {{{"slot_mapping", {111, 112}}}},
       "`slot_mapping`[1] is 112, expected 0 to 111 or negative (in [0, pages*page_size))"},
      {"append_csr_descending",
       "kv_cache.append_paged",
       with(kAppend, kCsr),
       kCsrAppend,
       {{{"page_indptr", {0, 3, 2}}}},
       "`page_indptr`[2] is 2, expected at least 3, the element before it"},

      {"decode_length_past_the_table",
       "attention.paged",
       kDecode,
       kDenseDecode,
       {{{"seq_lens", {49}}}},
       "`seq_lens`[0] is 49, expected 0 to 48"},
      {"decode_negative_length",
       "attention.paged",
       kDecode,
       kDenseDecode,
       {{{"seq_lens", {48, -1}}}},
       "`seq_lens`[1] is -1, expected 0 to 48"},
      {"decode_page_past_the_cache",
       "attention.paged",
       kDecode,
       kDenseDecode,
       {{{"page_table", {7, 8}}}},
       "`page_table`[0, 1] is 8, expected 0 to 7 (in [0, pages)): request 0 has 48 tokens"},
      {"decode_csr_descending",
       "attention.paged",
       with(kDecode, kCsr),
       kCsrDecode,
       {{{"page_indptr", {0, 3, 2}}}},
       "`page_indptr`[2] is 2, expected at least 3, the element before it"},
      {"decode_csr_pointer_past_the_end",
       "attention.paged",
       with(kDecode, kCsr),
       kCsrDecode,
       {{{"page_indptr", {0, 3, 7}}}},
       "`page_indptr`[2] is 7, expected 0 to 6 (in [0, page_indices])"},
      {"decode_csr_page_past_the_cache",
       "attention.paged",
       with(kDecode, kCsr),
       kCsrDecode,
       {{{"page_indices", {7, 0, 8}}}},
       "`page_indices`[2] is 8, expected 0 to 7 (in [0, pages)): request 0 has 48 tokens"},
      {"decode_last_page_empty",
       "attention.paged",
       with(kDecode, kCsr),
       kCsrDecode,
       {{{"last_page_len", {0}}}},
       "`last_page_len`[0] is 0, expected 1 to 16 (in [1, page_size])"},
      {"decode_last_page_overfull",
       "attention.paged",
       with(kDecode, kCsr),
       kCsrDecode,
       {{{"last_page_len", {17}}}},
       "`last_page_len`[0] is 17, expected 1 to 16 (in [1, page_size])"},
      {"decode_longer_than_stated",
       "attention.paged",
       with(kDecode, kCsr),
       {kCsrDecode.tensors, {{"max_seq_kv", 48}}},
       {{}, {{"max_seq_kv", 47}}},
       "`page_indptr`[1] is 3, expected fewer pages: request 0 has 48 tokens, and max_seq_kv allows 47"},

      {"ragged_queries_descending",
       "attention.ragged",
       kSteps,
       kRaggedStep,
       {{{"q_indptr", {0, 5, 4}}}},
       "`q_indptr`[2] is 4, expected at least 5, the element before it"},
      {"ragged_queries_past_the_end",
       "attention.ragged",
       kSteps,
       kRaggedStep,
       {{{"q_indptr", {0, 5, 11}}}},
       "`q_indptr`[2] is 11, expected 0 to 10 (in [0, tokens])"},
      {"ragged_keys_past_the_end",
       "attention.ragged",
       kSteps,
       kRaggedStep,
       {{{"kv_indptr", {0, 9, 19}}}},
       "`kv_indptr`[2] is 19, expected 0 to 18 (in [0, tokens_kv])"},
      {"ragged_mask_too_short",
       "attention.ragged",
       kSteps,
       kRaggedStep,
       {{{"mask_indptr", {0, 12, 12}}}},
       "`mask_indptr`[1] is 12, expected at most 10: request 1 needs 6 bytes, for 5 x 9 bits, and mask has 16"},
      {"paged_queries_past_the_end",
       "attention.paged",
       with(kDecode, {{"queries", 3}, {"spare", 0}}),
       {{{"q_indptr", {0, 3, 6}}, {"seq_lens", {48, 1}}, {"page_table", {7, 0, 1, 2, -1, 999}}}},
       {{{"q_indptr", {0, 3, 7}}}},
       "`q_indptr`[2] is 7, expected 0 to 6 (in [0, tokens])"},

      {"rows_group_off_the_alignment",
       "gemm.grouped_contiguous",
       layout(0),
       kGroupOfRow,
       {{{"group_of_row", rows({{2, 20}, {0, 28}})}}},
       "`group_of_row`[20] is 0, expected 2 or -1: groups begin at multiples of alignment=16"},
      {"rows_group_off_the_alignment_behind_none",
       "gemm.grouped_contiguous",
       layout(0),
       kGroupOfRow,
       {{{"group_of_row", rows({{-1, 1}, {0, 1}})}}},
       "`group_of_row`[1] is 0, expected -1: groups begin at multiples of alignment=16"},
      {"rows_group_twice",
       "gemm.grouped_contiguous",
       layout(0),
       kGroupOfRow,
       {{{"group_of_row", rows({{2, 16}, {0, 16}, {2, 16}})}}},
       "`group_of_row`[32] is 2, expected 0 or -1: group 2 began at row 0, and its rows follow each other"},
      {"rows_label_past_the_groups",
       "gemm.grouped_contiguous",
       layout(0),
       kGroupOfRow,
       {{{"group_of_row", {3}}}},
       "`group_of_row`[0] is 3, expected 0 to 2 or -1 (in [0, groups))"},
      {"rows_label_below_none",
       "gemm.grouped_contiguous",
       layout(0),
       kGroupOfRow,
       {{{"group_of_row", {-2}}}},
       "`group_of_row`[0] is -2, expected 0 to 2 or -1 (in [0, groups))"},
      {"rows_end_past_the_last",
       "gemm.grouped_contiguous",
       layout(1),
       {{{"group_ends", {5, 5, 48}}}},
       {{{"group_ends", {5, 5, 49}}}},
       "`group_ends`[2] is 49, expected 0 to 48 (in [0, m])"},
      {"rows_ends_descend",
       "gemm.grouped_contiguous",
       layout(1),
       {{{"group_ends", {5, 16, 20}}}},
       {{{"group_ends", {5, 16, 15}}}},
       "`group_ends`[2] is 15, expected at least 16, the element before it"},
      {"rows_pointer_past_the_last",
       "gemm.grouped_contiguous",
       layout(2),
       {{{"m_indptr", {3, 5, 5, 48}}}},
       {{{"m_indptr", {3, 5, 5, 49}}}},
       "`m_indptr`[3] is 49, expected 0 to 48 (in [0, m])"},
      {"rows_pointers_descend",
       "gemm.grouped_contiguous",
       layout(2),
       {},
       {{{"m_indptr", {3, 5, 4, 48}}}},
       "`m_indptr`[2] is 4, expected at least 5, the element before it"},
      {"masked_too_many",
       "gemm.grouped_masked",
       kMasked,
       {{{"masked_m", {0, 16, 3}}}},
       {{{"masked_m", {0, 16, 17}}}},
       "`masked_m`[2] is 17, expected 0 to 16 (in [0, max_m])"},
      {"masked_negative",
       "gemm.grouped_masked",
       kMasked,
       {},
       {{{"masked_m", {-1}}}},
       "`masked_m`[0] is -1, expected 0 to 16 (in [0, max_m])"},

      {"columns_pointer_past_the_last",
       "gemm.k_grouped",
       kColumns,
       {{{"k_indptr", {8, 8, 64, 260}}}},
       {{{"k_indptr", {8, 8, 64, 261}}}},
       "`k_indptr`[3] is 261, expected 0 to 260 (in [0, k])"},
      {"columns_pointers_descend",
       "gemm.k_grouped",
       kColumns,
       {},
       {{{"k_indptr", {8, 64, 56, 260}}}},
       "`k_indptr`[2] is 56, expected at least 64, the element before it"},
      {"columns_off_the_alignment",
       "gemm.k_grouped",
       kColumns,
       {{{"k_indptr", {8, 16, 64, 256}}}},
       {{{"k_indptr", {8, 15, 64, 260}}}},
       "`k_indptr`[1] is 15, expected a multiple of 8, the alignment, or k=260"},
      {"columns_of_8_bits_off_the_scales",
       "gemm.k_grouped",
       kColumns8,
       {{{"k_indptr", {0, 128, 256, 260}}}},
       {{{"k_indptr", {0, 128, 200, 260}}}},
       "`k_indptr`[2] is 200, expected a multiple of 128, by alignment=8 and the 128 columns of a scale, or k=260"},
      {"sizes_past_the_last",
       "gemm.k_grouped",
       kSizes,
       {{{"k_sizes", {64, 0, 196}}}},
       {{{"k_sizes", {64, 8, 196}}}},
       "`k_sizes`[2] is 196, expected at most 188, as the groups before have 72 of k=260 columns"},
      {"sizes_off_the_alignment",
       "gemm.k_grouped",
       kSizes,
       {},
       {{{"k_sizes", {64, 7, 8}}}},
       "`k_sizes`[1] is 7, expected a multiple of 8, the alignment, or the rest of k=260"},
      {"sizes_negative", "gemm.k_grouped", kSizes, {}, {{{"k_sizes", {64, -8, 8}}}}, "`k_sizes`[1] is -8, expected 0 to 260 (in [0, k])"},

      {"an_op_that_states_values_alone",
       "routed.rows",
       {{"tokens", 3}, {"topk", 2}},
       {{{"indices", {2, 2, 0, 1, 2, 0}}}},
       {{{"indices", {2, 2, 3}}}},
       "`indices`[2] is 3, expected 0 to 2 (in [0, tokens))"},
  };
  return all;
}

class Contract : public ::testing::TestWithParam<Fault> {};

TEST_P(Contract, is_judged) {
  const Fault& fault = GetParam();
  CaseArgs c(find_op(fault.op), fault.which, 1);
  set(c, fault.right);
  EXPECT_THAT(breaches_of(c), IsEmpty());
  set(c, fault.wrong);
  RunOptions options = options_of(c.op(), c.which());
  options.device = &checked_device();
  try {
    run(c.op(), c.args(), options);
    ADD_FAILURE() << "nothing reported";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::device);
    EXPECT_EQ(e.op(), fault.op);
    EXPECT_EQ(e.what(), std::string(fault.op) + ": INDEX: " + fault.text);
  }
}
INSTANTIATE_TEST_SUITE_P(contents, Contract, ::testing::ValuesIn(faults()), [](const auto& info) { return info.param.name; });

TEST(contents, of_each_tensor_the_first_breach_is_told) {
  CaseArgs c(find_op("kv_cache.append_paged"), with(kAppend, kCsr), 1);
  set(c, kCsrAppend);
  set(c, {{{"batch_indices", {9, 9}}, {"page_indptr", {-1, 7}}}});
  EXPECT_THAT(breaches_of(c), ::testing::ElementsAre("`batch_indices`[0] is 9, expected 0 to 1 or negative (in [0, batch))",
                                                     "`page_indptr`[0] is -1, expected 0 to 4 (in [0, page_indices])"));
}

TEST(contents, distinct_values_are_told_apart) {
  Op op = find_op("routed.rows");
  op.tensors[size_t(op.tensor_index("indices"))].values = permutation_of(Axis::tokens);
  CaseArgs c(op, {{"tokens", 6}, {"topk", 1}}, 1);
  EXPECT_THAT(breaches_of(c), IsEmpty());
  set(c, {{{"indices", {5, 3, 1, 3}}}});
  EXPECT_THAT(breaches_of(c), ::testing::ElementsAre("`indices`[3] is 3, expected another value than `indices`[1]"));
  EXPECT_EQ(contents_text(op, op.tensors[size_t(op.tensor_index("indices"))]), "distinct, in [0, tokens)");
}

TEST(contents, of_a_window_only_pages_in_it_matter) {
  CaseArgs c(find_op("attention.paged"), kDecode, 1);
  set(c, {{{"seq_lens", {48, 0}}, {"page_table", {-1, 8, 1}}}, {{"window_left", 15}}});
  EXPECT_THAT(breaches_of(c), IsEmpty());
  set(c, {{}, {{"window_left", 16}}});
  EXPECT_THAT(breaches_of(c), ::testing::ElementsAre(HasSubstr("`page_table`[0, 1] is 8")));
}

/// A padded request of a step has no query tokens: its length is not read.
TEST(contents, a_request_without_queries_may_have_any_length) {
  CaseArgs c(find_op("attention.paged"), with(kDecode, {{"queries", 3}, {"spare", 0}}), 1);
  set(c, {{{"q_indptr", {0, 6, 6}}, {"seq_lens", {48, 1 << 20}}, {"page_table", {7, 0, 1, -1, -1, -1}}}});
  EXPECT_THAT(breaches_of(c), IsEmpty());
}

/// What the texts of the contracts say can be evaluated for each op, cases keep to it, and those that say that they do not are some that do
/// not.
TEST(contents, cases_keep_the_contracts) {
  for (const auto& [id, op] : registry()) {
    bool any_broken = op->broken.name.empty();
    for (const std::string& words : small_cases(*op, 60, 1e6)) {
      std::istringstream stream(words);
      const std::vector<std::string> list{std::istream_iterator<std::string>(stream), {}};
      CaseArgs c(*op, parse_case(*op, list), 1);
      const std::vector<std::string> found = breaches_of(c);
      if (breaks_contract(*op, c.which())) any_broken |= !found.empty();
      else EXPECT_THAT(found, IsEmpty()) << id << " " << words;
    }
    EXPECT_TRUE(any_broken) << id;
  }
}

/// A stated bound of lengths is one for the cases too.
TEST(contents, lengths_of_cases_keep_to_max_seq_kv) {
  CaseArgs c(find_op("attention.paged"), with(kDecode, {{"csr", true}, {"max_seq_kv", 17}}), 1);
  EXPECT_THAT(breaches_of(c), IsEmpty());
  EXPECT_EQ(Ref<>(c.tensor(size_t(c.op().tensor_index("page_indptr")))).index(1), 2);
}

TEST(contents, every_index_tensor_has_a_contract) {
  for (const auto& [id, op] : registry())
    for (const TensorDef& t : op->tensors)
      if (const bool integers =
              t.role == Role::in && !t.any_shape() && !t.dtypes.empty() && std::all_of(t.dtypes.begin(), t.dtypes.end(), is_integer);
          integers) {
        EXPECT_TRUE(!contents_text(*op, t).empty() || (op->contract && !t.doc.empty())) << id << " " << t.name;
      }
}

TEST(contents, check_lets_broken_ones_pass_where_the_case_says_so) {
  CheckJob job{&find_op("gemm.grouped_masked"), with(kMasked, {{"spread", 3}}), 0, {{&checked_device(), "--checked"}}};
  for (bool broken = false; !broken; broken = !breaches_of(*std::make_unique<CaseArgs>(*job.op, job.given, job.seed)).empty()) ++job.seed;
  for (const CheckResult& r : check_case(job)) EXPECT_EQ(r.verdict, CheckResult::Verdict::right) << r.message;
}

TEST(contents, of_a_captured_call_are_judged_at_each_replay) {
  Device& device = checked_device();
  const Stream stream = device.create_stream();
  CaseArgs c(find_op("rope.rope_inplace"), kRope, 1);
  RunOptions options;
  options.device = &device, options.stream = stream;
  run(c.op(), c.args(), options);
  set(c, {{{"positions", {-1}}}});
  device.begin_capture(stream);
  run(c.op(), c.args(), options);
  void* const graph = device.end_capture(stream);
  try {
    device.replay(graph, stream);
    ADD_FAILURE() << "nothing reported";
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "rope.rope_inplace: INDEX: `positions`[0] is -1, expected 0 to 16777215"); }
  set(c, {{{"positions", {1}}}});
  EXPECT_NO_THROW(device.replay(graph, stream));
  device.destroy_graph(graph);
  device.destroy(stream);
}

TEST(contents, other_devices_do_not_look) {
  CaseArgs c(find_op("rope.rope_inplace"), kRope, 1);
  set(c, {{{"positions", {-1}}}});
  EXPECT_NO_THROW(run(c.op(), c.args(), {}));
}

}  // namespace
}  // namespace quern::testing
