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
/// registered earlier or later, in this library or one that is loaded before. An op of that name that is never registered, and a second variant of one name,
/// are errors of registry().
class JoinVariant {
 public:
  JoinVariant(const char* op, i32 rank, const Variant& variant, const Headers& built_with = kHeaders);
};

/// Index of the op's variant of that name, as cases and Problem::variant have it. Throws Error{value} with the names that there are.
QN_API i32 variant_index(const Op& op, std::string_view name);
QN_API i32 variant_index(std::string_view op, std::string_view name);
/// Whether the problem is that of the variant of this name; false where none is asked for.
QN_API bool is_of_variant(const Problem& problem, std::string_view name);

/// What JoinVariant does, where `built_with` are this library's headers.
QN_API void join_variant(const char* op, i32 rank, const Variant& variant, const Headers& built_with);

inline JoinVariant::JoinVariant(const char* op, i32 rank, const Variant& variant, const Headers& built_with) { join_variant(op, rank, variant, built_with); }

}  // namespace quern
