// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/variants.h"

#include <algorithm>
#include <cstring>
#include <map>
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
    return refuse_registration(std::string("is ") + op + " with the variant " + variant.name + ", built against other headers", "a library that is built again with those of this libquern");
  std::vector<JoinedVariant>& all = joined()[op];
  all.insert(std::upper_bound(all.begin(), all.end(), JoinedVariant{rank, variant}, comes_first), {rank, variant});
  for (const auto& [id, registered] : registered_ops())
    if (id == op || (registered->base && registered->base->id == op)) place_variants(const_cast<Op&>(*registered));  // QN_OP's objects are not const
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

i32 variant_index(const Op& op, std::string_view name) {
  std::string known;
  for (size_t i = 0; i < op.variants.size(); ++i) {
    if (name == op.variants[i].name) return i32(i);
    known += (i ? ", " : "") + std::string(op.variants[i].name);
  }
  throw Error(ErrorKind::value, op.id, "variant", "is '" + std::string(name) + "'", "one of " + known);
}
i32 variant_index(std::string_view op, std::string_view name) { return variant_index(find_op(op), name); }

bool is_of_variant(const Problem& p, std::string_view name) { return p.variant >= 0 && size_t(p.variant) < p.op->variants.size() && name == p.op->variants[size_t(p.variant)].name; }

}  // namespace quern
