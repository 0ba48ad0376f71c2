// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The expressions that kernels of a device of Number::graph compute, each kept once.
#pragma once
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "quern/kit/emu/runtime.h"

namespace quern::emu {

/// A node's number is the payload of a NaN: word = 0x7f800000 + number, with the sign in bit 31; every other word is a
/// constant, kNaN among them (a NaN's own payload would be that of node 4194304). Operands are words as well. For kernels that run on one
/// OS thread.
class Graph {
 public:
  static constexpr u32 kFirstWord = 0x7f800000, kNaN = 0x7fffffff, kMostNodes = 5000000;
  static_assert(kFirstWord + kMostNodes < kNaN);
  struct Node {
    NumberOp op;
    u32 a, b;  ///< words; of a leaf: tensor and index
  };

  /// The word of op(a, b); constants are computed. Throws Error{device} when the graph is full.
  u32 word(NumberOp op, u32 a, u32 b);
  /// The 16-bit code that stands for a word. Throws Error{device} past 32 000 of them.
  u16 code(u32 word);

  /// Of a word with bit 31 cleared; null for constants.
  const Node* node(u32 word) const;
  /// What a 16-bit code stands for, 0 for the code 0.
  u32 word_of_code(u16 code) const;

 private:
  struct Hash {
    std::size_t operator()(const Node& n) const { return std::size_t(n.op) + n.a * 0x9E3779B97F4A7C15ull + n.b * 0xBF58476D1CE4E5B9ull; }
  };
  struct Same {
    bool operator()(const Node& x, const Node& y) const { return x.op == y.op && x.a == y.a && x.b == y.b; }
  };
  std::vector<Node> nodes_;
  std::unordered_map<Node, u32, Hash, Same> known_;
  std::vector<u32> words_of_codes_;
  std::unordered_map<u32, u16> codes_;
};

}  // namespace quern::emu
