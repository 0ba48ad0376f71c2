// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Step 1: tensors become a Problem. Runs on every call, so the path without an error allocates nothing and formats nothing.
#include <sstream>
#include <string>

#include "quern/jit/hook_text.h"
#include "quern/op/requirement.h"
#include "quern/op/variants.h"

namespace quern {

namespace {

std::string quoted(const std::string& name) { return "`" + name + "`"; }

[[noreturn, gnu::cold, gnu::noinline]] void fail(const Op& op, const TensorDef& t, ErrorKind kind, std::string got, std::string expected) {
  throw Error(kind, op.id, t.name, std::move(got), std::move(expected));
}

/// The word of `t.extents_text` that dim `dim` is.
std::string dim_text(const TensorDef& t, int dim) {
  std::istringstream words(t.extents_text);
  std::string word;
  for (int d = 0; d <= dim; ++d) words >> word;
  return word;
}

/// Where the values in an extent are from: " (tokens was set by `x` [3, 8]; topk is 4)".
std::string origins(const Op& op, const void* args, const TensorDef& t, const Extent& e) {
  std::string text;
  for (const Axis axis : op.axes) {
    const TensorDef* teller = op.uses(e, axis) ? teller_of(op, args, axis) : nullptr;
    if (teller && teller != &t) text += (text.empty() ? "" : "; ") + teller_text(op, args, axis, *teller);
  }
  for (size_t i = 0; e.formula >= 0 && i < op.attrs.size(); ++i)
    if (op.formulas[size_t(e.formula)].uses(size_t(kMaxAxes) + i))
      text += (text.empty() ? "" : "; ") + op.attrs[i].name + " is " + to_string(attr_value(op.attrs[i], args));
  return text.empty() ? text : " (" + text + ")";
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_extent(const Op& op, const void* args, const TensorDef& t, const TensorView& view, int dim,
                                                        i64 wanted) {
  const Extent& e = t.extents[dim];
  const std::string expected = (e.is_number() ? "" : dim_text(t, dim) + "=") + std::to_string(wanted) + " at dim " + std::to_string(dim);
  fail(op, t, ErrorKind::value, "has shape " + shape_string(view), expected + origins(op, args, t, e));
}

/// An extent that no shape can have: its axis is not told, or its formula has no value.
[[noreturn, gnu::cold, gnu::noinline]] void fail_formula(const Op& op, const void* args, const TensorDef& t, const TensorView& view,
                                                         int dim, const std::string& why) {
  fail(op, t, ErrorKind::value, "has shape " + shape_string(view),
       dim_text(t, dim) + " at dim " + std::to_string(dim) + ", " + why + origins(op, args, t, t.extents[dim]));
}

/// The extent by the axes that are `set`, and the attributes.
i64 late_extent(const Op& op, const void* args, const Problem& p, u64 set, const TensorDef& t, const TensorView& view, int dim) {
  for (size_t slot = 0; slot < op.axes.size(); ++slot)
    if (!(set >> slot & 1) && op.uses(t.extents[dim], op.axes[slot]))
      fail_formula(op, args, t, view, dim, "but no tensor that is given tells " + quoted(name(op.axes[slot])));
  try {
    return extent_of(op, t.extents[dim], p);
  } catch (const Error& e) { fail_formula(op, args, t, view, dim, "but it " + e.got()); }
}

[[gnu::noinline]] void check_late_extents(const Op& op, const void* args, const Problem& p, u64 set) {
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorDef& t = op.tensors[i];
    const TensorView& view = op.tensor(args, i);
    for (int d = 0; d < t.rank && view.present(); ++d) {
      if (!t.extents[d].late) continue;
      const i64 wanted = late_extent(op, args, p, set, t, view, d);
      if (view.shape[d] != wanted) fail_extent(op, args, t, view, d, wanted);
    }
  }
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_dtype(const Op& op, const TensorDef& t, const TensorView& view, const Problem& p) {
  std::string expected;
  if (t.like >= 0) expected = std::string(name(p.tensors[t.like].dtype)) + " like " + quoted(op.tensors[size_t(t.like)].name);
  if (t.like >= 0 && !t.dtypes.empty()) expected += t.dtypes.size() == 1 ? " or " : ", ";
  for (size_t i = 0; i < t.dtypes.size(); ++i)
    expected += (i ? i + 1 == t.dtypes.size() ? " or " : ", " : "") + std::string(name(t.dtypes[i]));
  fail(op, t, ErrorKind::type, std::string("is ") + name(view.dtype), expected);
}

/// Far beyond any memory, and small enough that factors of extents do not overflow.
constexpr i64 kMaxExtent = i64(1) << 56;

bool dtype_allowed(const TensorDef& t, DType dtype, const Problem& p) {
  if (t.like >= 0 && dtype == p.tensors[t.like].dtype) return true;
  for (DType d : t.dtypes)
    if (d == dtype) return true;
  return false;
}

void bind_extents(const Op& op, const void* args, const TensorDef& t, const TensorView& view, Problem& p, u64& set) {
  for (int d = 0; d < t.rank; ++d) {
    const Extent& e = t.extents[d];
    const i64 size = view.shape[d];
    if (size < 0 || size > kMaxExtent) fail(op, t, ErrorKind::value, "has shape " + shape_string(view), "extents in [0, 2^56]");
    if (e.late) continue;
    if (e.factor == 0) {
      if (size != e.offset) fail_extent(op, args, t, view, d, e.offset);
      continue;
    }
    i64& axis = p.axes[e.slot];
    if (!(set >> e.slot & 1)) {
      axis = e.factor == 1 ? size - e.offset : (size - e.offset) / e.factor;  // divisions by 1 were a third of bind's time
      if (size < e.offset || axis * e.factor != size - e.offset)
        fail(op, t, ErrorKind::value, "has " + std::to_string(size) + " at dim " + std::to_string(d), dim_text(t, d));
      set |= u64(1) << e.slot;
    } else if (size != e.size(axis)) {
      fail_extent(op, args, t, view, d, e.size(axis));
    }
  }
}

/// The dims of more than one index, by ascending stride; how many.
[[gnu::always_inline]] inline int dims_by_stride(const TensorView& view, int* order) {
  int count = 0;
  for (int d = 0; d < view.rank; ++d) {
    if (view.shape[d] == 1) continue;
    int at = count++;
    for (; at > 0 && view.strides[order[at - 1]] > view.strides[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  return count;
}

/// Two elements of an output must not share memory: with the dims ordered by stride, each stride steps over all that the
/// smaller ones reach (HND and other permuted layouts pass).
void check_overlap(const Op& op, const TensorDef& t, const TensorView& view) {
  int order[kMaxRank];
  const int count = dims_by_stride(view, order);
  i64 reach = 1;
  for (int i = 0; i < count; ++i) {
    const int d = order[i];
    if (view.strides[d] < reach)
      fail(op, t, ErrorKind::value,
           "has stride " + std::to_string(view.strides[d]) + " at dim " + std::to_string(d) + ", so that its rows overlap",
           "at least " + std::to_string(reach));
    reach = view.strides[d] * (view.shape[d] - 1) + reach;
  }
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_dense(const Op& op, const TensorDef& t, const TensorView& view) {
  const std::string stride = std::to_string(view.strides[t.rank - 1]);
  if (!t.either_major) fail(op, t, ErrorKind::value, "has stride " + stride + " at its last dim", "1 (dense rows)");
  fail(op, t, ErrorKind::value, "has strides " + std::to_string(view.strides[t.rank - 2]) + " and " + stride + " at its last two dims",
       "1 at one of them (dense rows or columns)");
}

/// Of the tensors that have elements: the address of the first byte and of the one behind the last, and which are written.
struct Spans {
  u64 begin[kMaxTensors], end[kMaxTensors];
  u8 tensor[kMaxTensors];
  u32 count = 0, written = 0;
};

/// Strides: the innermost dimension dense (unless the schema says otherwise), none negative, outputs without overlap.
void bind_strides(const Op& op, const TensorDef& t, const TensorView& view, TensorFacts& facts, u64& bytes_spanned) {
  u64 bits = u64(reinterpret_cast<uintptr_t>(view.data));
  i64 dense = 1;
  u64 reach = 1;
  facts.contiguous = 1;
  facts.transposed = lies_transposed(t, view);
  const int inner = view.rank - 1 - facts.transposed;
  for (int d = view.rank - 1; d >= 0; --d) {
    if (view.shape[d] == 1) continue;
    const i64 stride = view.strides[d];
    if (d == view.rank - 1 && stride != 1 && !t.strided && !facts.transposed) fail_dense(op, t, view);
    if (stride < 0 || (stride == 0 && t.role != Role::in))
      fail(op, t, ErrorKind::value, "has stride " + std::to_string(stride) + " at dim " + std::to_string(d),
           t.role == Role::in ? ">= 0" : "> 0 in an output");
    i64 elements, bytes;
    if (__builtin_mul_overflow(stride, view.shape[d], &elements) || __builtin_mul_overflow(elements, i64(8), &bytes))
      fail(op, t, ErrorKind::value,
           "has shape " + shape_string(view) + " and stride " + std::to_string(stride) + " at dim " + std::to_string(d),
           "a size below 2^63 bytes");
    reach += u64(elements - stride);
    if (stride != dense) facts.contiguous = 0;
    if (d != inner) bits |= u64(stride) * u64(size_of(view.dtype));
    if (__builtin_mul_overflow(dense, view.shape[d], &dense)) dense = -1;  // no stride equals it
  }
  if (t.role != Role::in) check_overlap(op, t, view);
  bytes_spanned = reach * u64(size_of(view.dtype));
  const u64 lowest = bits & (~bits + 1);
  facts.alignment = lowest == 0 || lowest > 16 ? 16 : i32(lowest);
}

/// A tensor for hooks: what its schema does not say.
[[gnu::cold, gnu::noinline]] void bind_any_shape(const Op& op, const TensorDef& t, const TensorView& view, const Problem& p) {
  if (!p.hooks) fail(op, t, ErrorKind::value, "is given", "none, as the call has no hooks");
  if (view.rank > kMaxHookRank) fail(op, t, ErrorKind::value, "has shape " + shape_string(view), t.extents_text);
  for (int d = 0; d < view.rank; ++d)
    if (view.shape[d] < 0 || view.shape[d] > kMaxExtent)
      fail(op, t, ErrorKind::value, "has shape " + shape_string(view), "extents in [0, 2^56]");
}

/// How a tensor is read by hooks, where their text shows it: by so many indices, as integers.
void check_hook_reads(const Op& op, const TensorDef& t, const TensorView& view, const jit::Hooks& hooks, const jit::HookUse& use,
                      ptrdiff_t at) {
  const u32 dims = at < jit::HookUse::kTensors ? use.dims[at] : 0;
  if (dims && !(dims >> view.rank & 1)) {
    std::string expected;
    for (int n = 1; n < 8; ++n)
      if (dims >> n & 1) expected += (expected.empty() ? "" : " or ") + std::to_string(n);
    fail(op, t, ErrorKind::value, "has shape " + shape_string(view),
         expected + (expected == "1" ? " dim" : " dims") + ", by which the hooks " + hooks.name + " read it");
  }
  const bool has_integers = view.dtype == DType::i32 || view.dtype == DType::i64 || view.dtype == DType::u8;
  if (use.integer >> at & 1 && !has_integers)
    fail(op, t, ErrorKind::type, std::string("is ") + name(view.dtype),
         std::string("i32, i64 or u8, which the hooks ") + hooks.name + " read by integer_at");
}

/// The tensors that the hooks read are there, and are what they read.
[[gnu::cold, gnu::noinline]] void check_hook_tensors(const Op& op, const void* args, const jit::Hooks& hooks) {
  const jit::HookUse use = jit::use_of(hooks);
  for (size_t i = 0; i < op.tensors.size(); ++i) {
    const TensorDef& t = op.tensors[i];
    const ptrdiff_t at = (t.offset - op.hook_tensors_offset) / ptrdiff_t(sizeof(TensorView));
    if (at < 0 || at >= op.hook_tensors) continue;
    const TensorView& view = op.tensor(args, i);
    if (view.present()) check_hook_reads(op, t, view, hooks, use, at);
    else if (t.any_shape() && use.tensors >> at & 1)
      fail(op, t, ErrorKind::value, "is missing", std::string("a tensor, which the hooks ") + hooks.name + " read");
  }
  if (use.params_bytes > op.hook_params_bytes)
    throw Error(ErrorKind::value, op.id, "hooks",
                std::string("is ") + hooks.name + ", which reads " + std::to_string(use.params_bytes) + " bytes of at.params",
                "at most " + std::to_string(op.hook_params_bytes));
  if (use.last_tensor >= op.hook_tensors)
    throw Error(ErrorKind::value, op.id, "hooks",
                std::string("is ") + hooks.name + ", which reads at.tensors[" + std::to_string(use.last_tensor) + "]",
                "at.tensors[0] to at.tensors[" + std::to_string(op.hook_tensors - 1) + "]");
}

void bind_tensor(const Op& op, const void* args, size_t i, Problem& p, u64& set, bool& placed, Spans& spans) {
  const TensorDef& t = op.tensors[i];
  const TensorView& view = op.tensor(args, i);
  TensorFacts& facts = p.tensors[i];
  if (!view.present()) {
    if (!t.optional) fail(op, t, ErrorKind::value, "is missing", "a tensor [" + t.extents_text + "]");
    facts = {view.dtype, 0, 16, 1, 0};
    if (t.like >= 0) facts.dtype = p.tensors[t.like].dtype;
    else if (!t.dtypes.empty()) facts.dtype = t.dtypes[0];
    return;
  }
  if (t.any_shape()) bind_any_shape(op, t, view, p);
  else if (view.rank != t.rank)
    fail(op, t, ErrorKind::value, "has shape " + shape_string(view),
         std::to_string(t.rank) + (t.rank == 1 ? " dim [" : " dims [") + t.extents_text + "]");
  if (!dtype_allowed(t, view.dtype, p)) fail_dtype(op, t, view, p);
  facts.dtype = view.dtype;
  facts.present = 1;
  bind_extents(op, args, t, view, p, set);
  bool empty = false;
  for (int d = 0; d < view.rank; ++d) empty |= view.shape[d] == 0;  // not numel(): a product may overflow to 0
  if (!empty) {
    u64 bytes;
    bind_strides(op, t, view, facts, bytes);
    const u32 at = spans.count++;
    spans.begin[at] = u64(reinterpret_cast<uintptr_t>(view.data)), spans.end[at] = spans.begin[at] + bytes, spans.tensor[at] = u8(i);
    spans.written |= u32(t.role != Role::in) << at;
    if (view.data == nullptr) fail(op, t, ErrorKind::value, "has no data", "a pointer, its shape is " + shape_string(view));
    if (u64(reinterpret_cast<uintptr_t>(view.data)) & u64(size_of(view.dtype) - 1))  // sizes are powers of two
      fail(op, t, ErrorKind::value, "starts at an address that is no multiple of " + std::to_string(size_of(view.dtype)),
           "natural alignment");
  } else {
    facts.alignment = 16;
    facts.contiguous = 1;
    facts.transposed = 0;
  }
  if (t.role != Role::in && !empty) p.empty = 0;
  if (!placed) {
    p.device = view.device;
    placed = true;
  } else if (!(view.device == p.device)) {
    fail(op, t, ErrorKind::value, "is on " + place_name(view.device), place_name(p.device) + " like the tensors before it");
  }
}

/// `count` runs of `bytes` bytes, `pitch` apart: all of a tensor, or the densest two levels of one that has more.
struct Runs {
  u64 bytes, pitch = 0, count = 1;
};

Runs runs_of(const TensorView& view) {
  const u64 size = u64(size_of(view.dtype));
  Runs runs{size};
  int order[kMaxRank];
  const int dims = dims_by_stride(view, order);
  for (int i = 0; i < dims; ++i) {
    const u64 step = u64(view.strides[order[i]]) * size, extent = u64(view.shape[order[i]]);
    if (runs.count == 1 && step <= runs.bytes) runs.bytes += step * (extent - 1);
    else if (runs.count == 1) runs.pitch = step, runs.count = extent;
    else if (step == runs.pitch * runs.count) runs.count *= extent;
    else break;
  }
  return runs;
}

/// Whether two tensors share memory: whether the first run of the one that begins later lies on a run of the other. This is exact if both
/// consist of runs of one pitch, or if one of them is a single run. Of other pairs some are not found. Slices of one buffer without a
/// common element, as q, k and v of a fused projection, are told apart.
bool share_memory(const TensorView& a, const TensorView& b) {
  const TensorView &early = a.data <= b.data ? a : b, &late = a.data <= b.data ? b : a;
  const Runs runs = runs_of(early);
  const u64 ahead = u64(static_cast<char*>(late.data) - static_cast<char*>(early.data));
  const u64 last_before = runs.count == 1 ? 0 : min_of(runs.count - 1, (ahead + runs_of(late).bytes - 1) / runs.pitch);
  return ahead < last_before * runs.pitch + runs.bytes;
}

/// Schema::may_be: the same elements at the same addresses.
bool is_itself(const TensorView& a, const TensorView& b) {
  bool same = a.data == b.data && size_of(a.dtype) == size_of(b.dtype);
  for (int d = 0; d < a.rank; ++d) same &= a.shape[d] == 1 || a.strides[d] == b.strides[d];
  return same;
}

void check_written(const Op& op, const void* args, size_t written, size_t other) {
  const TensorDef& t = op.tensors[written];
  const TensorView &view = op.tensor(args, written), &beside = op.tensor(args, other);
  if ((size_t(t.may_be) == other && is_itself(view, beside)) || !share_memory(view, beside)) return;
  const std::string itself =
      t.may_be < 0 ? "" : ", or " + quoted(op.tensors[size_t(t.may_be)].name) + " itself (its address, element size and strides)";
  fail(op, t, ErrorKind::value, "overlaps " + quoted(op.tensors[other].name) + " in memory", "memory of its own" + itself);
}

bool meet(const Spans& spans, u32 a, u32 b) { return (spans.begin[a] < spans.end[b]) & (spans.begin[b] < spans.end[a]); }

[[gnu::noinline]] void check_met(const Op& op, const void* args, const Spans& spans) {
  for (u32 i = 0; i < spans.count; ++i) {
    for (u32 j = 0; j < spans.count && spans.written >> i & 1; ++j) {
      const bool seen = j < i && spans.written >> j & 1;
      if (i != j && !seen && meet(spans, i, j)) check_written(op, args, spans.tensor[i], spans.tensor[j]);
    }
  }
}

/// What a call writes shares no memory with its other tensors. Spans tell most of them apart: each that is written meets itself alone.
void check_spans(const Op& op, const void* args, const Spans& spans) {
  u32 meetings = 0;
  for (u32 written = spans.written; written; written &= written - 1) {
    const u32 i = u32(__builtin_ctz(written));
    for (u32 j = 0; j < spans.count; ++j) meetings += meet(spans, i, j);
  }
  if (meetings != u32(__builtin_popcount(spans.written))) [[unlikely]]
    check_met(op, args, spans);
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_attr(const Op& op, const AttrDef& attr, i64 value) {
  throw Error(ErrorKind::value, op.id, attr.name, "is " + std::to_string(value), attr.words_text());
}

AttrWord bind_attr(const Op& op, const AttrDef& attr, const void* args) {
  const char* at = static_cast<const char*>(args) + attr.offset;
  AttrWord word{0};
  switch (attr.kind) {
    case AttrDef::Kind::f32: word.real = double(*reinterpret_cast<const float*>(at)); return word;
    case AttrDef::Kind::i32: word.integer = *reinterpret_cast<const i32*>(at); break;
    case AttrDef::Kind::i64: word.integer = *reinterpret_cast<const i64*>(at); break;
    case AttrDef::Kind::boolean: word.integer = *reinterpret_cast<const bool*>(at); break;
  }
  if (!attr.words.empty() && (word.integer < 0 || word.integer >= i64(attr.words.size()))) fail_attr(op, attr, word.integer);
  return word;
}

[[noreturn, gnu::cold, gnu::noinline]] void fail_op(const Op& op) { throw Error(ErrorKind::internal, op.fault); }

void choose_variant(const Op& op, const char* wanted, Problem& p) {
  p.variant = p.candidate = -1;
  if (!wanted) return;
  const NamedVariant named = named_variant(op, wanted);
  if (named.variant < 0) throw Error(ErrorKind::value, op.id, "variant", std::string("is '") + wanted + "'", variants_text(op, wanted));
  p.variant = named.variant, p.candidate = named.candidate;
}

}  // namespace

bool lies_transposed(const TensorDef& t, const TensorView& view) {
  if (!t.either_major) return false;
  const auto dense = [&](int d) { return view.shape[d] == 1 || view.strides[d] == 1; };
  return !dense(t.rank - 1) && dense(t.rank - 2);
}

Problem bind(const Op& op, const void* args, const RunOptions& options) {
  if (!op.fault.empty()) fail_op(op);
  Problem p;
  p.op = &op;
  p.axis_slots = op.axis_slots;
  std::memset(p.axes, 0, sizeof p.axes);
  p.device = {};
  p.batch_invariant = options.batch_invariant;
  p.pdl = options.pdl;
  p.empty = 1;
  if (op.hooks_offset >= 0) std::memcpy(&p.hooks, static_cast<const char*>(args) + op.hooks_offset, sizeof p.hooks);
  if (!p.hooks) p.hooks = op.hooks;
  choose_variant(op, options.variant, p);
  u64 set = 0;
  bool placed = false;
  Spans spans;
  for (size_t i = 0; i < op.tensors.size(); ++i) bind_tensor(op, args, i, p, set, placed, spans);
  for (size_t i = 0; i < op.attrs.size(); ++i) p.attrs[i] = bind_attr(op, op.attrs[i], args);
  if (op.late_extents) check_late_extents(op, args, p, set);
  if (p.hooks && op.hook_tensors_offset >= 0) [[unlikely]]
    check_hook_tensors(op, args, *p.hooks);
  if (!options.skip_check) {
    for (const auto check : op.requirements) {
      if (const Rejection r = check(p)) fail_requirement(op, args, r);
    }
    check_spans(op, args, spans);
  }
  return p;
}

}  // namespace quern
