// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#pragma once
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "quern/base/api.h"
#include "quern/kit/abi.h"

namespace quern::jit {

constexpr int kMaxConfigBytes = 96;

/// Code that a user plugs into a kernel (logits transform, mask): a type whose members the kernel calls. Its text is part
/// of the identity digest.
struct Hooks {
  const char* type;  ///< qualified name, e.g. "my::AlibiHooks"
  const char* name;  ///< short name for entries and errors
  const char* text;  ///< source that defines it; it may include kit
};

/// A member that a type of hooks may have, which kernels call.
struct HookPoint {
  const char* name;       ///< "logit"
  const char* signature;  ///< "f32 logit(f32 x, const HookContext& at)"
  bool hint = false;      ///< changes no result, only what is read for it; `quern new` leaves it out
};
/// Hooks that ship with a family, whose name stands for their text.
struct ShippedHooks {
  const char* name;
  const char* text;
};
/// What a family's kernels take as hooks. Static data.
struct HookPoints {
  const char* scope;  ///< the family's namespace, whose names a hook's text may use: "quern::attention"
  const char* none;   ///< the type of a kernel without hooks
  std::span<const HookPoint> list;
  std::span<const ShippedHooks> shipped = {};
};

/// One kernel: a function template over its Config (and optionally Hooks). Static data, made once by Kernel<...>.
struct KernelInfo {
  std::string header;                       ///< "quern/ops/norm/rms_norm.cuh"
  std::string function;                     ///< "quern::norm::rms_norm_row_block"
  std::string name;                         ///< "rms_norm_row_block"
  std::string config_type;                  ///< "quern::norm::RmsNormConfig"
  std::string params_type;                  ///< "quern::norm::RmsNormParams"
  const HookPoints* hook_points = nullptr;  ///< null: the kernel takes no hooks
  u32 config_bytes = 0, params_bytes = 0;
  std::string (*initialiser)(const void* config) = nullptr;  ///< "quern::DType(2), 256"
  std::string (*values)(const void* config) = nullptr;       ///< "bf16 256": one word a field
  i32 (*threads)(const void* config) = nullptr;
  i32 (*min_blocks)(const void* config) = nullptr;
  const char* (*purpose)(const void* config) = nullptr;  ///< "fp8_gemm": what users search for in a profiler's output; null: nothing
};

/// What is compiled: a kernel with the values of its Config. A plain value that is compared by its bytes.
struct KernelSpec {
  const KernelInfo* kernel = nullptr;
  const Hooks* hooks = nullptr;
  alignas(8) char config[kMaxConfigBytes] = {};

  template <class Config> const Config& config_as() const { return *reinterpret_cast<const Config*>(config); }
  friend bool operator==(const KernelSpec& a, const KernelSpec& b) {
    return a.kernel == b.kernel && a.hooks == b.hooks && std::memcmp(a.config, b.config, kMaxConfigBytes) == 0;
  }
};

/// "rms_norm_row_block<x_dtype=bf16, vector=8, threads=256>".
QN_API std::string print(const KernelSpec& spec);
/// "rms_norm_row_block" of that.
std::string function_of(const std::string& printed);
/// The kernel's symbol, shown by profilers: "rms_norm_row_block__bf16_vector8_threads256"; where the Config has a purpose,
/// "tile_product__fp8_gemm_e4m3_threads256".
std::string entry_name(const KernelSpec& spec);
/// The five-line source that owns the only entry.
std::string render(const KernelSpec& spec);

}  // namespace quern::jit

// Type names come from a root namespace of their own: GCC prints them relative to the enclosing one.
namespace quern_reflect {

template <class T> std::string type_name() {
  std::string_view s = __PRETTY_FUNCTION__;
  s.remove_prefix(s.find("T = ") + 4);
  return std::string(s.substr(0, s.find_first_of(";]")));
}

struct Any {
  template <class T> constexpr operator T() const;
};
/// Number of members of an aggregate: the most initialisers that it takes.
template <class T, class... A> constexpr int field_count() {
  if constexpr (requires { T{A{}..., Any{}}; }) return field_count<T, A..., Any>();
  else return sizeof...(A);
}

/// Calls f with each field of an aggregate, in order: i32, u32, DType or another 4-byte enum, or a nested aggregate of such fields.
template <class T, class F> void each_field(const T& c, F f) {
  constexpr int n = field_count<T>();
  static_assert(n <= 20, "a Config has at most 20 fields; a nested one counts as one");
  // clang-format off: it takes each line for a part of the one before
#define QN_FIELDS(count, ...) \
  if constexpr (n == count) { auto& [__VA_ARGS__] = c; [&](auto&... v) { (f(v), ...); }(__VA_ARGS__); }
  QN_FIELDS(1, a) QN_FIELDS(2, a, b) QN_FIELDS(3, a, b, d) QN_FIELDS(4, a, b, d, e) QN_FIELDS(5, a, b, d, e, g)
  QN_FIELDS(6, a, b, d, e, g, h) QN_FIELDS(7, a, b, d, e, g, h, i) QN_FIELDS(8, a, b, d, e, g, h, i, j)
  QN_FIELDS(9, a, b, d, e, g, h, i, j, k) QN_FIELDS(10, a, b, d, e, g, h, i, j, k, l)
  QN_FIELDS(11, a, b, d, e, g, h, i, j, k, l, m) QN_FIELDS(12, a, b, d, e, g, h, i, j, k, l, m, o)
  QN_FIELDS(13, a, b, d, e, g, h, i, j, k, l, m, o, q) QN_FIELDS(14, a, b, d, e, g, h, i, j, k, l, m, o, q, r)
  QN_FIELDS(15, a, b, d, e, g, h, i, j, k, l, m, o, q, r, s)
  QN_FIELDS(16, a, b, d, e, g, h, i, j, k, l, m, o, q, r, s, t)
  QN_FIELDS(17, a, b, d, e, g, h, i, j, k, l, m, o, q, r, s, t, u)
  QN_FIELDS(18, a, b, d, e, g, h, i, j, k, l, m, o, q, r, s, t, u, v)
  QN_FIELDS(19, a, b, d, e, g, h, i, j, k, l, m, o, q, r, s, t, u, v, w)
  QN_FIELDS(20, a, b, d, e, g, h, i, j, k, l, m, o, q, r, s, t, u, v, w, x)
#undef QN_FIELDS
  // clang-format on
}

QN_API std::string dtype_word(quern::DType t);

/// "quern::DType(2), {64, 128}, 4": what stands between the braces of a Config.
template <class C> std::string initialiser_of(const C& config) {
  std::string s;
  each_field(config, [&](const auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    if (!s.empty()) s += ", ";
    if constexpr (std::is_class_v<V>) {
      s += "{" + initialiser_of(v) + "}";
    } else {
      static_assert(sizeof(V) == 4, "Config fields are 4 bytes each");
      if constexpr (std::is_enum_v<V>) s += type_name<V>() + "(" + std::to_string(int(v)) + ")";
      else s += std::to_string(v);
    }
  });
  return s;
}
/// "bf16 64 128 4": one word a field; those of a nested Config stand in its place.
template <class C> std::string values_of(const C& config) {
  std::string s;
  each_field(config, [&](const auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    if (!s.empty()) s += ' ';
    if constexpr (std::is_class_v<V>) s += values_of(v);
    else if constexpr (std::is_same_v<V, quern::DType>) s += dtype_word(v);
    else s += std::to_string(int(v));
  });
  return s;
}

}  // namespace quern_reflect

namespace quern::jit {

/// Declares a kernel to the host: `static const jit::Kernel<RmsNormConfig, RmsNormParams> row_block{"quern/ops/norm/rms_norm.cuh",
/// "rms_norm_row_block"};`. The function lives in Config's namespace; Config has a field `threads` (the block's size, the
/// launch bound) and may have `min_blocks` (resident blocks per SM asked of the compiler, default 1). Its other fields
/// are 4 bytes each or nested Configs, the parts that bricks are templates on. Where its namespace has a
/// `constexpr const char* purpose_of(const Config&)`, declared before the Kernel is, that text is part of the symbol.
template <class Config, class Params> class Kernel {
 public:
  using ConfigType = Config;
  using ParamsType = Params;
  static_assert(std::is_trivially_copyable_v<Params>);
  static_assert(std::is_trivially_copyable_v<Config> && std::has_unique_object_representations_v<Config> &&
                    sizeof(Config) <= kMaxConfigBytes,
                "Config is the cache key: no padding, no floats, at most kMaxConfigBytes");

  Kernel(const char* header, const char* function, const HookPoints* hook_points = nullptr) {
    info_.header = header;
    info_.name = function;
    info_.config_type = quern_reflect::type_name<Config>();
    info_.params_type = quern_reflect::type_name<Params>();
    info_.function = info_.config_type.substr(0, info_.config_type.rfind("::") + 2) + function;
    info_.hook_points = hook_points;
    info_.config_bytes = sizeof(Config);
    info_.params_bytes = sizeof(Params);
    info_.initialiser = [](const void* c) { return quern_reflect::initialiser_of(*static_cast<const Config*>(c)); };
    info_.values = [](const void* c) { return quern_reflect::values_of(*static_cast<const Config*>(c)); };
    info_.threads = [](const void* c) { return i32(static_cast<const Config*>(c)->threads); };
    info_.min_blocks = [](const void* c) {
      if constexpr (requires(const Config& x) { x.min_blocks; }) return i32(static_cast<const Config*>(c)->min_blocks);
      else return (void)c, i32(1);
    };
    if constexpr (requires(const Config& x) { purpose_of(x); })
      info_.purpose = [](const void* c) { return purpose_of(*static_cast<const Config*>(c)); };
  }
  Kernel(const Kernel&) = delete;  // specs point at info_

  KernelSpec operator()(const Config& config, const Hooks* hooks = nullptr) const {
    KernelSpec spec;
    spec.kernel = &info_;
    spec.hooks = hooks;
    std::memcpy(spec.config, &config, sizeof config);
    return spec;
  }
  const KernelInfo& info() const { return info_; }

 private:
  KernelInfo info_;
};

}  // namespace quern::jit
