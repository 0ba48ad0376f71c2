// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Variants that join an op from sources of their own, and variants by name. A folder with a kernel and its plan adds a variant; nothing
// of the op is edited.
#pragma once
#include <string_view>

#include "quern/op/schema.h"

namespace quern {

/// Adds a variant to an op, in a static object of the source that plans it:
///
///     static const JoinVariant join("gemm.dense", 20, {"swap_ab_sm90", rejects, plan, slower});
///
/// Joined variants are asked in ascending rank, those of one rank by name, and all before those that the op's schema states. The op may be
/// registered earlier or later, in this library or one that is loaded before. An op of that name that is never registered, and a second
/// variant of one name, are errors of registry().
class JoinVariant {
 public:
  JoinVariant(const char* op, i32 rank, const Variant& variant, const Headers& built_with = kHeaders);
};

/// A variant of an op, and where one of its candidates is meant that one, by index; -1: none.
struct NamedVariant {
  i32 variant = -1, candidate = -1;
};
/// The variant of that name, "swap_ab_sm90", or one of its candidates, "swap_ab_sm90:128x64"; where the op has none of that name, none.
QN_API NamedVariant named_variant(const Op& op, std::string_view name);
/// What error texts expect in the place of such a name that is none: the op's variants, or where the name is of a variant its candidates.
QN_API std::string variants_text(const Op& op, std::string_view name);

/// A named variant as cases have it, one number: the index of the variant, and kVariantCodes more for each candidate up to it.
constexpr i32 kVariantCodes = 64;
/// That of the op's variant, or candidate, of that name; without a candidate the variant's index. Throws Error{value} with the names that
/// there are.
QN_API i32 variant_index(const Op& op, std::string_view name);
QN_API i32 variant_index(std::string_view op, std::string_view name);
/// The name that a case's number stands for, which lasts; null: none.
QN_API const char* variant_name(const Op& op, double code);
/// Whether the problem is that of the variant of this name; false where none is asked for.
QN_API bool is_of_variant(const Problem& problem, std::string_view name);

/// What JoinVariant does, where `built_with` are this library's headers.
QN_API void join_variant(const char* op, i32 rank, const Variant& variant, const Headers& built_with);

inline JoinVariant::JoinVariant(const char* op, i32 rank, const Variant& variant, const Headers& built_with) {
  join_variant(op, rank, variant, built_with);
}

}  // namespace quern
