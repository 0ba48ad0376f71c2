// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// How the family's kernels call hooks, and how hooks read their tensors. A kernel calls each point by the function
// named after it, hooked_POINT<H>(...), with the class H that it was compiled with.
#pragma once
#include "quern/kit/kit.cuh"
#include "quern/ops/attention/hooks_spec.h"

namespace quern::attention {

/// has_logit<H>, ..: whether the class has the point, with its signature.
#define QN_HAS_POINT(name, signature, arguments, call, hint) \
  template <class H> \
  constexpr bool has_##name = \
    requires arguments \
  { \
    call; \
  };
QN_ATTENTION_HOOK_POINTS(QN_HAS_POINT)
#undef QN_HAS_POINT

/// A member of a wrong signature, or without QN_DEVICE, would be a hook that is silently not called.
template <class H>
QN_DEVICE constexpr bool hooks_are_sound() {
#define QN_POINT_IS_SOUND(name, signature, arguments, call, hint) \
  static_assert(has_##name<H> || !requires { &H::name; }, "hooks: `" #name "` is another, expected QN_DEVICE " signature);
  QN_ATTENTION_HOOK_POINTS(QN_POINT_IS_SOUND)
#undef QN_POINT_IS_SOUND
#define QN_OR_HAS_POINT(name, signature, arguments, call, hint) || has_##name<H>
#define QN_POINT_NAME(name, signature, arguments, call, hint) " `" signature "`"
  static_assert(
      requires(H* h, NoHooks* none) { none = h; } QN_ATTENTION_HOOK_POINTS(QN_OR_HAS_POINT),
      "hooks: none of these is a member, expected one or more:" QN_ATTENTION_HOOK_POINTS(QN_POINT_NAME));
#undef QN_POINT_NAME
#undef QN_OR_HAS_POINT
  return true;
}

template <class H>
QN_DEVICE f32 hooked_logit(f32 x, const HookContext& at) {
  static_assert(hooks_are_sound<H>());
  if constexpr (has_logit<H>) x = H::logit(x, at);
  return x;
}
template <class H>
QN_DEVICE bool hooked_visible(const HookContext& at) {
  static_assert(hooks_are_sound<H>());
  bool visible = true;
  if constexpr (has_visible<H>) visible = H::visible(at);
  return visible;
}

template <class H>
QN_DEVICE TileVisibility hooked_tile(const HookTile& at) {
  static_assert(hooks_are_sound<H>());
  static_assert(!has_tile<H> || has_visible<H>,
                "hooks: `tile` without `visible`, expected both: tile says of many keys what visible says of one");
  TileVisibility visibility = TileVisibility::partial;
  if constexpr (has_tile<H>) visibility = H::tile(at);
  return visibility;
}

/// Whether the caller gave the tensor. Hooks that ask may be called without it; of others a missing tensor is an error
/// of the call.
QN_DEVICE bool is_given(const HookTensor& tensor) { return tensor.data != nullptr; }

template <class I>
QN_HOST_DEVICE const HookTensor& HookTensors::operator[](I i) const {
  if constexpr (QN_JUDGES_READS) {
    if (i < I(0) || i64(i) >= kHookTensors) QN_BAD_READ(tensor, nullptr, i64(i), kHookTensors, 0);
  }
  return first[i];
}

/// Address of the element. An index of another rank than the tensor's, or outside of an extent, is reported by the emulated
/// device; on a GPU the address is null for the one, and nobody looks at the other.
template <class... I>
QN_DEVICE const u8* hook_element(const HookTensor& tensor, I... index) {
  static_assert(sizeof...(I) <= kHookTensorRank);
  if (tensor.rank != i32(sizeof...(I))) {
    QN_BAD_READ(dims, tensor.data, int(sizeof...(I)), tensor.rank, 0);
    return nullptr;
  }
  int d = 0;
  if constexpr (QN_JUDGES_READS) {
    const i64 indices[] = {i64(index)...};
    for (; d < tensor.rank; ++d)
      if (indices[d] < 0 || indices[d] >= tensor.sizes[d]) QN_BAD_READ(index, tensor.data, indices[d], tensor.sizes[d], u32(d));
    d = 0;
  }
  i64 offset = 0;
  ((offset += i64(index) * tensor.strides[d++]), ...);
  return static_cast<const u8*>(tensor.data) + offset * size_of(tensor.dtype);
}

/// The value of an element, real_at(at.tensors[0], i, j), of whatever dtype. An index of another rank than the tensor's
/// is NaN on a GPU.
template <class... I>
QN_DEVICE f32 real_at(const HookTensor& tensor, I... index) {
  const u8* element = hook_element(tensor, index...);
  if (!element) return ptx::f32_of_bits(0x7fc00000u);
  f32 value[1];
  switch (tensor.dtype) {
    case DType::f16: load_f32<f16, 1>(reinterpret_cast<const f16*>(element), value); break;
    case DType::bf16: load_f32<bf16, 1>(reinterpret_cast<const bf16*>(element), value); break;
    case DType::i32: value[0] = f32(float(ptx::ld_global<i32>(element))); break;
    case DType::i64: value[0] = f32(float(ptx::ld_global<i64>(element))); break;
    case DType::u8: value[0] = f32(float(ptx::ld_global<u8>(element))); break;
    default: load_f32<f32, 1>(reinterpret_cast<const f32*>(element), value);
  }
  return value[0];
}

/// The value of an element of i32, i64 or u8. Any other dtype is reported by the emulated device; on a GPU it, and an
/// index of another rank than the tensor's, is -2^63.
template <class... I>
QN_DEVICE i64 integer_at(const HookTensor& tensor, I... index) {
  const u8* element = hook_element(tensor, index...);
  if (element && tensor.dtype == DType::i32) return ptx::ld_global<i32>(element);
  if (element && tensor.dtype == DType::i64) return ptx::ld_global<i64>(element);
  if (element && tensor.dtype == DType::u8) return ptx::ld_global<u8>(element);
  if (element) QN_BAD_READ(dtype, tensor.data, 0, 0, 0);
  return i64(u64(1) << 63);
}

}  // namespace quern::attention
