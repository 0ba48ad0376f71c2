// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the sources of op that register things share.
#pragma once
#include "quern/op/schema.h"

namespace quern {

/// The ops that are registered so far; registry() also says what could not be.
Registry& registered_ops();
/// Keeps an error for the first that asks registry(): while a library is loaded an exception would end the process.
void refuse_registration(std::string got, std::string expected);
/// A variant that joins an op which is not there, or has the name of another of its op. Empty: none.
std::string variants_fault();

}  // namespace quern
