// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <iterator>
#include <string>
#include <string_view>

#include "quern/base/api.h"
#include "quern/kit/abi.h"

namespace quern {

/// The glossary: how well-known axes are spelled, and what they mean. An op may use words that are not in it (axis_of).
/// New words come at the end: libraries that were built before have the numbers of those above them in their code.
// clang-format off: it takes each line for a part of the one before
#define QN_GLOSSARY(word) \
  word(tokens, "rows of activations") \
  word(hidden, "width of the residual stream") \
  word(intermediate, "width of the gated MLP") \
  word(heads_q, "query heads") \
  word(heads_kv, "key and value heads") \
  word(head_dim, "elements of a head") \
  word(batch, "requests") \
  word(seq_q, "query tokens of a request") \
  word(seq_kv, "cached tokens of a request") \
  word(pages, "pages of the KV cache") \
  word(page_size, "tokens of a page") \
  word(max_pages, "columns of a dense page table") \
  word(page_indices, "entries of a CSR page table") \
  word(positions, "bound of token positions in index tensors") \
  word(m, "rows of a GEMM's result") \
  word(n, "columns of a GEMM's result") \
  word(k, "summed axis of a GEMM") \
  word(groups, "scales of a row; matrices of a grouped GEMM") \
  word(scale_rows_a, "rows of the scales of a GEMM's a") \
  word(scale_columns_a, "columns of the scales of a GEMM's a") \
  word(scale_rows_b, "rows of the scales of a GEMM's b") \
  word(scale_columns_b, "columns of the scales of a GEMM's b") \
  word(max_m, "rows that a matrix of a grouped GEMM has room for")
// clang-format on

/// A word for one quantity, the same number in all ops of the process. An op's axes are the words of its tensors' dims.
enum class Axis : u16 {
#define QN_WORD(word, meaning) word,
  QN_GLOSSARY(QN_WORD)
#undef QN_WORD
};

struct GlossaryWord {
  const char *word, *meaning;
};
/// By number, as whoever includes this was compiled with it.
constexpr GlossaryWord kGlossary[] = {
#define QN_WORD(word, meaning) {#word, meaning},
    QN_GLOSSARY(QN_WORD)
#undef QN_WORD
};

constexpr int kGlossaryRoom = 256;  ///< numbers below belong to the glossary; those of other words follow
constexpr int kMaxAxisWords = 512;
static_assert(std::size(kGlossary) <= kGlossaryRoom);

QN_API const char* name(Axis axis);
/// What a word of the glossary means; empty for others.
QN_API const char* meaning(Axis axis);
/// The axis of that word; one outside the glossary gets the next free number. Takes a lock: keep what it returns in a
/// static. Throws Error{internal} past kMaxAxisWords.
QN_API Axis axis_of(std::string_view word);

/// Makes sure that the words which a library was compiled with are those of this process, number by number; words that
/// this libquern does not know yet join its glossary. The texts must outlive the process. Empty, or what is wrong.
QN_API std::string join_glossary(const GlossaryWord* words, size_t count);

}  // namespace quern
