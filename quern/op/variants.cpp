// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/variants.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "quern/op/registration.h"

namespace quern {

namespace {

struct JoinedVariant {
  i32 rank;
  Variant variant;
};

/// All that joined, by op. Variants are added while libraries are loaded.
std::map<std::string, std::vector<JoinedVariant>, std::less<>>& joined() {
  static std::map<std::string, std::vector<JoinedVariant>, std::less<>> all;
  return all;
}

bool comes_first(const JoinedVariant& a, const JoinedVariant& b) {
  return std::tuple(a.rank, std::string_view(a.variant.name)) < std::tuple(b.rank, std::string_view(b.variant.name));
}

/// Those of the op, and of the one that it is based on, then its own.
void place_variants(Op& op) {
  op.variants.clear();
  if (const auto found = joined().find(op.base ? op.base->id : op.id); found != joined().end())
    for (const JoinedVariant& j : found->second) op.variants.push_back(j.variant);
  op.variants.insert(op.variants.end(), op.own_variants.begin(), op.own_variants.end());
}

}  // namespace

void state_variants(Op& op, std::vector<Variant> own) {
  op.own_variants = std::move(own);
  place_variants(op);
}

void join_variant(const char* op, i32 rank, const Variant& variant, const Headers& built_with) {
  if (!built_with.agree_with(kHeaders))
    return refuse_registration(std::string("is ") + op + " with the variant " + variant.name + ", built against other headers",
                               "a library that is built again with those of this libquern");
  std::vector<JoinedVariant>& all = joined()[op];
  all.insert(std::upper_bound(all.begin(), all.end(), JoinedVariant{rank, variant}, comes_first), {rank, variant});
  for (const auto& [id, registered] : registered_ops())
    if (id == op || (registered->base && registered->base->id == op))
      place_variants(const_cast<Op&>(*registered));  // QN_OP's objects are not const
}

std::string variants_fault() {
  for (const auto& [id, all] : joined())
    if (!registered_ops().contains(id)) return std::string(id) + ", which the variant " + all.front().variant.name + " joins, is not there";
  for (const auto& [id, op] : registered_ops())
    for (size_t i = 0; i < op->variants.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (std::strcmp(op->variants[i].name, op->variants[j].name) == 0) return id + ", which has two variants " + op->variants[i].name;
  return "";
}

NamedVariant named_variant(const Op& op, std::string_view name) {
  const size_t colon = name.find(':');
  for (size_t i = 0; i < op.variants.size(); ++i) {
    const Variant& v = op.variants[i];
    if (name.substr(0, colon) != v.name) continue;
    if (colon == name.npos) return {i32(i), -1};
    for (size_t c = 0; c < v.candidates.size(); ++c)
      if (name.substr(colon + 1) == v.candidates[c]) return {i32(i), i32(c)};
  }
  return {};
}

std::string variants_text(const Op& op, std::string_view name) {
  const size_t colon = name.find(':');
  const NamedVariant of = colon == name.npos ? NamedVariant{} : named_variant(op, name.substr(0, colon));
  std::string known;
  const auto add = [&](std::string_view one) { known += (known.empty() ? "one of " : ", ") + std::string(one); };
  if (of.variant < 0) {
    for (const Variant& v : op.variants) add(v.name);
    return known;
  }
  const Variant& v = op.variants[size_t(of.variant)];
  for (const char* candidate : v.candidates) add(std::string(v.name) + ":" + candidate);
  return known.empty() ? std::string(v.name) + ", which has no candidates" : known;
}

i32 variant_index(const Op& op, std::string_view name) {
  const NamedVariant named = named_variant(op, name);
  if (named.variant < 0) throw Error(ErrorKind::value, op.id, "variant", "is '" + std::string(name) + "'", variants_text(op, name));
  return named.variant + kVariantCodes * (named.candidate + 1);
}

const char* variant_name(const Op& op, double code) {
  if (!(code >= 0 && code < 1 << 30) || code != double(i32(code))) return nullptr;
  const size_t variant = size_t(i32(code) % kVariantCodes), candidate = size_t(i32(code) / kVariantCodes);
  if (variant >= op.variants.size()) return nullptr;
  const Variant& v = op.variants[variant];
  if (candidate == 0) return v.name;
  if (candidate > v.candidates.size()) return nullptr;
  static std::mutex mutex;
  static std::set<std::string> names;  // a set's elements stay where they are
  const std::lock_guard lock(mutex);
  return names.insert(std::string(v.name) + ":" + v.candidates[candidate - 1]).first->c_str();
}
i32 variant_index(std::string_view op, std::string_view name) { return variant_index(find_op(op), name); }

bool is_of_variant(const Problem& p, std::string_view name) {
  return p.variant >= 0 && size_t(p.variant) < p.op->variants.size() && name == p.op->variants[size_t(p.variant)].name;
}

}  // namespace quern
