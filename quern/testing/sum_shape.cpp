// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/sum_shape.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <unordered_map>

#include "quern/device/emulated.h"
#include "quern/emu/graph.h"
#include "quern/testing/case_args.h"
#include "quern/testing/rows.h"

namespace quern::testing {

namespace {

using emu::Graph;
using emu::NumberOp;

/// term: anything that is no sum. row: `count` operations of one kind, each adding a term to what is there. pairs: 2^count
/// shapes added two by two. ordered: `count` shapes added one after another. other: two shapes that are not alike.
struct Shape;
using ShapePtr = std::shared_ptr<const Shape>;
struct Shape {
  enum Kind { term, row, pairs, ordered, other } kind = term;
  NumberOp op = NumberOp::add;  ///< of a row
  i64 least = 0, most = 0;      ///< count; they differ where lanes have more or less to do
  ShapePtr inner, second;       ///< second: of other
};

ShapePtr make(Shape s) { return std::make_shared<const Shape>(std::move(s)); }

/// A shape that both are instances of, or null.
ShapePtr unified(const ShapePtr& a, const ShapePtr& b) {
  if (a == b) return a;
  if (!a || !b || a->kind != b->kind || a->op != b->op) return nullptr;
  if (a->kind == Shape::term) return a;
  if (a->kind == Shape::pairs && a->most != b->most) return nullptr;
  Shape both = *a;
  both.least = std::min(a->least, b->least), both.most = std::max(a->most, b->most);
  both.inner = unified(a->inner, b->inner);
  if (!both.inner) return nullptr;
  if (a->kind == Shape::other && !(both.second = unified(a->second, b->second))) return nullptr;
  return make(both);
}

/// One of the two equal shapes that a pair was made from.
ShapePtr half_of(const Shape& pairs) {
  if (pairs.most == 1) return pairs.inner;
  return make({Shape::pairs, NumberOp::add, pairs.most - 1, pairs.most - 1, pairs.inner, nullptr});
}

class Shaper {
 public:
  explicit Shaper(const Graph& graph) : graph_(graph), term_(make({})) {}

  /// Follows factors and functions down to the largest sum.
  ShapePtr of_largest_sum(u32 word) {
    for (;;) {
      const Graph::Node* n = graph_.node(word & 0x7fffffff);
      if (!n || n->op == NumberOp::leaf) return term_;
      const bool sum = is_sum(n->op);
      if (sum && graph_.node(n->a & 0x7fffffff) && graph_.node(n->b & 0x7fffffff)) return of(word);
      word = leaves(n->b) > leaves(n->a) ? n->b : n->a;
    }
  }

 private:
  static bool is_sum(NumberOp op) { return op == NumberOp::add || op == NumberOp::fma || op == NumberOp::products || op == NumberOp::mma; }
  static bool takes_two(NumberOp op) { return is_sum(op) || op == NumberOp::multiply || op == NumberOp::divide; }

  /// Leaves of the expression written out as a tree.
  double leaves(u32 word) {
    word &= 0x7fffffff;
    const Graph::Node* n = graph_.node(word);
    if (!n) return 0;
    if (n->op == NumberOp::leaf) return 1;
    if (const auto at = leaves_.find(word); at != leaves_.end()) return at->second;
    const double count = leaves(n->a) + (takes_two(n->op) ? leaves(n->b) : 0);
    return leaves_[word] = count;
  }

  ShapePtr of(u32 word) {
    word &= 0x7fffffff;
    const Graph::Node* n = graph_.node(word);
    if (!n || n->op == NumberOp::leaf || !takes_two(n->op)) return term_;
    if (const auto at = known_.find(word); at != known_.end()) return at->second;
    return known_[word] = of_node(*n);
  }

  ShapePtr of_node(const Graph::Node& n) {
    if (n.op == NumberOp::products) return row(NumberOp::mma, term_);
    const ShapePtr a = of(n.a), b = of(n.b);
    if (n.op == NumberOp::mma) return row(NumberOp::mma, b);
    if (n.op == NumberOp::multiply || n.op == NumberOp::divide) return a->kind == Shape::term ? b : a;
    if (a->kind == Shape::term) return row(n.op, b);
    if (b->kind == Shape::term) return row(n.op, a);
    return sum(a, b);
  }

  /// One more operation that adds a term to what `base` is; the first fma of a row is a product.
  ShapePtr row(NumberOp op, const ShapePtr& base) {
    Shape s{Shape::row, op, 1, 1, base, nullptr};
    if (base->kind == Shape::row && base->op == op) s = *base, ++s.least, ++s.most;
    else if (base->kind == Shape::term && op != NumberOp::mma) s.least = s.most = 2;
    return make(s);
  }

  ShapePtr sum(const ShapePtr& a, const ShapePtr& b) {
    // A third shape after a pair, or one more after those in order
    const auto joins = [](const ShapePtr& many, const ShapePtr& one) -> ShapePtr {
      const bool two = many->kind == Shape::pairs;
      if (!two && many->kind != Shape::ordered) return nullptr;
      const ShapePtr inner = unified(two ? half_of(*many) : many->inner, one);
      const i64 count = two ? 3 : many->most + 1;
      return inner ? make({Shape::ordered, NumberOp::add, count, count, inner, nullptr}) : nullptr;
    };
    if (const ShapePtr both = unified(a, b)) {
      if (both->kind == Shape::pairs) return make({Shape::pairs, NumberOp::add, both->most + 1, both->most + 1, both->inner, nullptr});
      return make({Shape::pairs, NumberOp::add, 1, 1, both, nullptr});
    }
    if (const ShapePtr more = joins(a, b)) return more;
    if (const ShapePtr more = joins(b, a)) return more;
    return make({Shape::other, NumberOp::add, 0, 0, a, b});
  }

  const Graph& graph_;
  const ShapePtr term_;
  std::unordered_map<u32, double> leaves_;
  std::unordered_map<u32, ShapePtr> known_;
};

std::string range(i64 least, i64 most) { return least == most ? std::to_string(most) : fmt::format("{} to {}", least, most); }

std::string text_of(const Shape& s, int depth = 0) {
  if (depth > 8) return "...";
  const std::string inner = s.inner && s.inner->kind != Shape::term ? text_of(*s.inner, depth + 1) + "; " : "";
  switch (s.kind) {
    case Shape::term: return "no sum";
    case Shape::row: {
      const char* name = s.op == NumberOp::mma ? "mma" : s.op == NumberOp::fma ? "fma" : "added";
      const char* what = s.op == NumberOp::add ? (inner.empty() ? " terms" : " more terms") : "";
      return fmt::format("{}{}{} {} in a row", inner, range(s.least, s.most), what, name);
    }
    case Shape::pairs:
      if (s.most == 1) return inner + "2 of these added";
      return fmt::format("{}{} of these added in pairs", inner, i64(1) << s.most);
    case Shape::ordered: return fmt::format("{}{} of these added in order", inner, range(s.least, s.most));
    case Shape::other: return fmt::format("({}) + ({})", text_of(*s.inner, depth + 1), text_of(*s.second, depth + 1));
  }
  return "";
}

/// A tensor's elements become leaves of the graph. 16 bits tell 32000 words apart, and stored intermediate results need
/// some of them: elements share leaves, all rows of the op's rows axis the same ones.
void fill_leaves(const CaseArgs& args, size_t tensor, u32 most, Graph& graph) {
  const TensorView v = args.tensor(tensor);
  i64 row_elements = 1;
  for (int d = rows_dim(args.op(), args.op().tensors[tensor]) == 0 ? 1 : 0; d < v.rank; ++d) row_elements *= v.shape[d];
  i64 at = 0;
  each_row(v, [&](char* row, const i64*) {
    for (i64 j = 0; j < v.shape[v.rank - 1]; ++j, ++at) {
      char* element = row + j * v.strides[v.rank - 1] * size_of(v.dtype);
      const u32 word = graph.word(NumberOp::leaf, u32(tensor), u32(at % row_elements) % most);
      u16 code = 0;
      std::memcpy(&code, element, 2);
      if (size_of(v.dtype) == 4) std::memcpy(element, &word, 4);
      if (size_of(v.dtype) != 2 || (code & 0x7fff) == 0x7fff) continue;  // what the op says must not be read
      code = graph.code(word);
      std::memcpy(element, &code, 2);
    }
  });
}

}  // namespace

std::string sum_text(const Graph& graph, u32 word) { return text_of(*Shaper(graph).of_largest_sum(word)); }

std::string sum_text_of(const Op& op, const Case& given, u64 seed) {
  Graph graph;
  EmulatedOptions how;
  how.number = Number::graph, how.graph = &graph, how.os_threads = 1;
  const auto device = make_emulated_device(device_info_of(Arch{}), how);
  CaseArgs args(op, given, seed);
  u32 inputs = 0;
  for (size_t i = 0; i < op.tensors.size(); ++i) inputs += op.tensors[i].role != Role::out && !op.tensors[i].any_shape();
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const bool data = op.tensors[i].values.kind == Values::Kind::data && !is_integer(args.tensor(i).dtype);
    if (op.tensors[i].role != Role::out && data && args.tensor(i).present() && args.tensor(i).numel() > 0)
      fill_leaves(args, i, 10007 / inputs, graph);
  }
  RunOptions options = options_of(op, args.which());
  options.device = device.get();
  run(op, args.args(), options);
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorView v = args.tensor(i);
    if (op.tensors[i].role == Role::in || !v.present() || v.numel() == 0) continue;
    u32 bits = 0;
    std::memcpy(&bits, v.data, size_t(min_of(size_of(v.dtype), 4)));
    return sum_text(graph, size_of(v.dtype) == 4 ? bits : size_of(v.dtype) == 2 ? graph.word_of_code(u16(bits & 0x7fff)) : 0);
  }
  return "no output";
}

}  // namespace quern::testing
