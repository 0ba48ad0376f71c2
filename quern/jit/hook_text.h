// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// What the text of hooks says before a compiler reads it: which types it defines, which members they have, what they
// read. Names are found by words and brackets. Where the text does not show a type, as behind a macro, the compiler
// judges alone.
#pragma once
#include <string>
#include <vector>

#include "quern/jit/sources.h"
#include "quern/jit/spec.h"

namespace quern::jit {

/// A struct or class that a text defines.
struct HookType {
  std::string name;                  ///< qualified: "my::AlibiHooks"
  bool derived = false;              ///< it has a base, whose members are not seen
  std::vector<std::string> members;  ///< functions
};
/// Types that are defined in a namespace or in another type, in the order of their ends.
std::vector<HookType> hook_types_of(const std::string& text);

/// Throws Error{value} where the type is seen in its text or in `headers` and has none of the points, or a member whose
/// name is nearly that of a point.
void check_hooks(const Hooks& hooks, const HookPoints& points, const std::vector<Source>& headers);

/// "`f32 logit(f32 x, const HookContext& at)` or `bool visible(const HookContext& at)`".
QN_API std::string points_text(const HookPoints& points);

/// What hooks read of what a call hands them. Where the text does not show it, nothing is said: a pointer to the parameters that
/// is kept, a reference to a tensor, indices with templates.
struct HookUse {
  static constexpr int kTensors = 8;  ///< of which is said how they are read
  bool params = false;                ///< `at.params`
  i32 params_bytes = 0;               ///< of which at least so many: *reinterpret_cast<const P*>(at.params) of P's size
  i32 last_tensor = -1;               ///< the largest i of `at.tensors[i]`
  u32 tensors = 0;                    ///< bit i: `at.tensors[i]`, but for those that the text asks for by is_given(at.tensors[i])
  u32 integer = 0;                    ///< bit i: of tensor i, only integer_at() reads it
  u8 dims[kTensors] = {};             ///< bit n of dims[i]: real_at() or integer_at() reads tensor i with n indices; 0: not known
};
/// Of the text and what it includes but quern's own files. One that was asked for before is found by the text.
QN_API HookUse use_of(const Hooks& hooks);

/// The same object for the same texts, for as long as the process lives: kernels refer to hooks, and two with equal
/// hooks are one kernel.
QN_API const Hooks* lasting_hooks(const std::string& type, const std::string& name, const std::string& text);

/// Hooks from a text alone, or from the name of shipped ones: of the one type in it that has a point. A type in no namespace is put into
/// one inside `points.scope`, so that it sees its names. Throws Error{value} where no type or several could be meant, and what
/// check_hooks() throws.
QN_API const Hooks* hooks_of_text(const HookPoints& points, const std::string& text);

}  // namespace quern::jit
