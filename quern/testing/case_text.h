// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Cases as words: "tokens=3 x.dtype=bf16 eps=1e-5".
#pragma once
#include <string>
#include <vector>

#include "quern/op/schema.h"

namespace quern::testing {

/// Every parameter that a case of the op may set.
std::vector<std::string> parameter_names(const Op& op);

/// Value of one parameter from its text: a number, a dtype's name, true or false, a variant's name. Throws
/// Error{value}.
Scalar parse_value(const Op& op, const std::string& name, const std::string& text);
/// Parses "name=value" and "name=value,value" words. Throws Error{value} naming the known parameters.
std::vector<CaseAxis> parse_words(const Op& op, const std::vector<std::string>& words);
/// The same with one value a name.
Case parse_case(const Op& op, const std::vector<std::string>& words);

/// "tokens=3 x.dtype=bf16", parseable again.
std::string case_text(const Op& op, const Case& which);

/// `given`, then the first value of each parameter of op.cases that it leaves out.
Case complete(const Op& op, Case given);
/// complete() and then the op's derive: the parameters that tensors are made from. What `given` states beside the words of
/// the op's cases (heads_q=32 where these have heads_kv and gqa) is taken as it is.
Case derived(const Op& op, const Case& given);
/// What the op makes of parameters that the completed case states, "k=128 n=19008"; empty where all run as they are stated.
std::string made_of(const Op& op, const Case& given);
/// Whether the contents of a case's index tensors may break their contract (Schema::broken_contents).
bool breaks_contract(const Op& op, const Case& which);
/// The case's word `fill`.
DataKind data_kind_of(const Case& which);
/// A parameter's value, or `otherwise`.
double value_or(const Case& which, const std::string& name, double otherwise);

}  // namespace quern::testing
