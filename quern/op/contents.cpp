// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/contents.h"

#include <cstring>
#include <memory>
#include <unordered_map>

#include "quern/op/schema.h"

namespace quern {

namespace {

thread_local bool broken_allowed = false;

/// A word of a bound, numbered as formulas of extents are.
i64 number_of(const Op& op, const std::string& bound, const std::string& word) {
  for (size_t i = 0; i < op.axes.size(); ++i)
    if (word == name(op.axes[i])) return i64(i);
  if (const int at = op.attr_index(word); at >= 0 && op.attrs[size_t(at)].kind != AttrDef::Kind::f32) return kMaxAxes + at;
  throw Error(ErrorKind::internal, op.id, "", "states contents up to " + bound + ", where `" + word + "` is unknown",
              "axes and integer attributes of the op");
}

i64 value_of(const Op& op, const Problem& p, const std::string& bound) {
  const Expression expression(bound, [&](const std::string& word) { return number_of(op, bound, word); });
  i64 values[kMaxAxes + kMaxAttrs];
  std::memcpy(values, p.axes, sizeof(i64) * op.axes.size());
  for (size_t i = 0; i < op.attrs.size(); ++i) values[size_t(kMaxAxes) + i] = p.attrs[i].integer;
  return expression(values);
}

bool is_number(const std::string& text) { return text.find_first_not_of("0123456789") == std::string::npos; }

std::string text_of(const Contents& c) {
  std::string text = c.in_order ? "ascending, " : c.all_distinct ? "distinct, " : "";
  text += "in [" + c.least + ", " + c.end + (c.inclusive ? "]" : ")");
  if (c.negative_from) text += c.negative_from == -1 ? ", or -1" : ", or negative";
  return text + (c.where_read ? ", where a call reads it" : "");
}

/// Looks at the elements of one tensor in their order.
class ContentsJudge {
 public:
  ContentsJudge(const Contents& contents, i64 least, i64 most, const TensorDef& tensor)
      : c_(contents), least_(least), most_(most), tensor_(tensor) {}

  Breach judge(const TensorView& view) {
    std::vector<i64> index(size_t(view.rank), 0);
    for (i64 left = view.numel(); left > 0; --left) {
      const i64 value = load_integer(view.at(index.data()), view.dtype);
      if (std::string expected = expectation(value, index); !expected.empty()) return {tensor_.name, index, value, std::move(expected)};
      for (size_t d = size_t(view.rank); d-- > 0 && ++index[d] == view.shape[d];) index[d] = 0;
    }
    return {};
  }

 private:
  /// What was expected in the place of the value; empty: it is right.
  std::string expectation(i64 value, const std::vector<i64>& index) {
    if (value < 0 && value >= c_.negative_from) return "";
    if (value < least_ || value > most_) return range_expected();
    if (c_.in_order && value < before_) return "at least " + std::to_string(before_) + ", the element before it";
    before_ = value;
    if (!c_.all_distinct) return "";
    const auto [first, is_new] = seen_.emplace(value, index);
    return is_new ? "" : "another value than `" + tensor_.name + "`" + index_text(first->second);
  }
  std::string range_expected() const {
    std::string text = range_text(least_, most_);
    if (c_.negative_from) text += c_.negative_from == -1 ? " or -1" : " or negative";
    return is_number(c_.end) && is_number(c_.least) ? text : text + " (in [" + c_.least + ", " + c_.end + (c_.inclusive ? "])" : "))");
  }

 public:
  static std::string index_text(const std::vector<i64>& index) {
    std::string text = "[";
    for (size_t i = 0; i < index.size(); ++i) text += (i ? ", " : "") + std::to_string(index[i]);
    return text + "]";
  }

 private:
  const Contents& c_;
  const i64 least_, most_;
  const TensorDef& tensor_;
  i64 before_ = INT64_MIN;
  std::unordered_map<i64, std::vector<i64>> seen_;
};

}  // namespace

std::string range_text(i64 least, i64 most) {
  if (most < least) return "none";
  return most == least ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
}

std::string to_string(const Breach& b) {
  return "`" + b.tensor + "`" + ContentsJudge::index_text(b.index) + " is " + std::to_string(b.value) + ", expected " + b.expected;
}

Contents contents_of(const Op& op, const TensorDef& t) {
  // An axis that no tensor has is a word of the cases, a bound of what they draw
  if (t.contents.stated() || op.axis_slots[size_t(t.values.axis)] == kMaxAxes) return t.contents;
  const std::string axis = name(t.values.axis);
  switch (t.values.kind) {
    case Values::Kind::index: return each_below(axis);
    case Values::Kind::permutation: return each_below(axis).distinct();
    case Values::Kind::length: return each_within("0", axis);
    case Values::Kind::data:
    case Values::Kind::generated: break;
  }
  return {};
}

std::string contents_text(const Op& op, const TensorDef& tensor) {
  const Contents c = contents_of(op, tensor);
  return c.stated() ? text_of(c) : "";
}

std::vector<Breach> contents_breaches(const Op& op, const void* args, const Problem& problem) {
  std::vector<Breach> breaches;
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorView& view = op.tensor(args, i);
    const Contents c = contents_of(op, op.tensors[i]);
    if (!c.stated() || c.where_read || !view.present()) continue;
    const i64 least = value_of(op, problem, c.least), most = value_of(op, problem, c.end) - !c.inclusive;
    if (Breach breach = ContentsJudge(c, least, most, op.tensors[i]).judge(view)) breaches.push_back(std::move(breach));
  }
  if (breaches.empty() && op.contract)
    if (Breach breach = op.contract(args, problem)) breaches.push_back(std::move(breach));
  return breaches;
}

void judge_contents(const Op& op, const void* args, const Problem& problem, Device& device, Stream stream) {
  if (broken_allowed) return;
  const auto* bytes = static_cast<const char*>(args);
  // A captured call is judged when it is replayed; its Args are gone by then.
  struct alignas(64) Block {
    char bytes[64];
  };
  auto kept = std::make_shared<std::vector<Block>>(ceil_div<size_t>(op.args_bytes, sizeof(Block)));
  std::memcpy(kept->data(), bytes, op.args_bytes);
  device.judge(
      [&op, kept, problem] {
        std::string text;
        for (const Breach& breach : contents_breaches(op, kept->data(), problem))
          text += (text.empty() ? "INDEX: " : "\nINDEX: ") + to_string(breach);
        if (!text.empty()) throw Error(ErrorKind::device, op.id, "", text, "");
      },
      stream);
}

AllowBrokenContents::AllowBrokenContents(bool allow) : before_(broken_allowed) { broken_allowed |= allow; }
AllowBrokenContents::~AllowBrokenContents() { broken_allowed = before_; }

}  // namespace quern
