// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/graph.h"

#include <bit>
#include <cmath>

#include "quern/base/error.h"

namespace quern::emu {

static bool is_constant(u32 word) { return (word & 0x7fffffff) <= Graph::kFirstWord || (word & 0x7fffffff) == Graph::kNaN; }

/// op(a, b) of floats, where both are constants.
static float computed(NumberOp op, float a, float b) {
  switch (op) {
    case NumberOp::add:
    case NumberOp::fma:
    case NumberOp::products:
    case NumberOp::mma: return a + b;
    case NumberOp::multiply: return a * b;
    case NumberOp::divide: return a / b;
    case NumberOp::exp2: return std::exp2(a);
    case NumberOp::log2: return std::log2(a);
    case NumberOp::reciprocal: return 1 / a;
    case NumberOp::rsqrt: return 1 / std::sqrt(a);
    case NumberOp::sqrt: return std::sqrt(a);
    case NumberOp::tanh: return std::tanh(a);
    case NumberOp::sin: return std::sin(a);
    case NumberOp::cos: return std::cos(a);
    case NumberOp::round: return std::rint(a);
    case NumberOp::power_of_two_above: return std::exp2(std::ceil(std::log2(a)));
    default: return a;
  }
}

u32 Graph::word(NumberOp op, u32 a, u32 b) {
  if (op == NumberOp::widen) return word_of_code(u16(a));
  if (op == NumberOp::narrow) return code(a);
  if (op != NumberOp::leaf && is_constant(a) && is_constant(b)) {
    const float x = computed(op, std::bit_cast<float>(a), std::bit_cast<float>(b));
    return std::isnan(x) ? kNaN : std::bit_cast<u32>(x);
  }
  const Node node{op, a, b};
  if (const auto at = known_.find(node); at != known_.end()) return at->second;
  if (nodes_.size() >= kMostNodes)
    throw Error(ErrorKind::device,
                "the graph of expressions has " + std::to_string(kMostNodes) + " nodes and is full; choose smaller sizes");
  nodes_.push_back(node);
  return known_[node] = kFirstWord + u32(nodes_.size());
}

u16 Graph::code(u32 word) {
  constexpr size_t kMost = 32000;
  if (const auto at = codes_.find(word); at != codes_.end()) return at->second;
  if (words_of_codes_.size() >= kMost)
    throw Error(ErrorKind::device, "16 bits tell " + std::to_string(kMost) + " expressions apart and there are more; choose smaller sizes");
  words_of_codes_.push_back(word);
  return codes_[word] = u16(words_of_codes_.size());
}

const Graph::Node* Graph::node(u32 word) const {
  const u32 number = (word & 0x7fffffff) - kFirstWord;
  return is_constant(word) || number > nodes_.size() ? nullptr : &nodes_[number - 1];
}

u32 Graph::word_of_code(u16 code) const { return code == 0 || code > words_of_codes_.size() ? 0 : words_of_codes_[size_t(code) - 1]; }

}  // namespace quern::emu
