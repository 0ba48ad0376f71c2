// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The schema language: an op states its tensors, attributes, requirements and variants once; binding, errors, the command
// line, checks, benchmarks and docs are derived from it.
#pragma once
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "quern/base/host_dtype.h"
#include "quern/op/contents.h"
#include "quern/op/expression.h"
#include "quern/op/extent.h"
#include "quern/op/layout.h"
#include "quern/op/plan.h"
#include "quern/op/random.h"
#include "quern/op/run.h"
#include "quern/op/scalar.h"

namespace quern {

enum class Role : i32 { in, out, inout };
constexpr const char* name(Role role) { return role == Role::in ? "in" : role == Role::out ? "out" : "inout"; }

/// What checks, benchmarks and fuzzing fill an index tensor with; its contract, where `.contents` states none.
struct Values {
  enum class Kind { data, index, permutation, length, generated };
  Kind kind = Kind::data;
  Axis axis = Axis::tokens;
};
inline Values index_of(Axis axis) { return {Values::Kind::index, axis}; }              ///< each in [0, axis)
inline Values permutation_of(Axis axis) { return {Values::Kind::permutation, axis}; }  ///< distinct, in [0, axis)
inline Values length_upto(Axis axis) { return {Values::Kind::length, axis}; }          ///< each in [0, axis]
inline Values generated() { return {Values::Kind::generated, Axis::tokens}; }          ///< by the op's `.generate`

/// Error bound of one output element: of_value * |expected| + of_magnitude * magnitude + absolute, where magnitude is what
/// the reference writes as the sum of the absolute terms of the element's last reduction (|expected| where it writes none).
struct Budget {
  double of_value = 0, of_magnitude = 0, absolute = 0;
  bool exact = false;  ///< the op copies: not even the dtype's own rounding is allowed
};

/// What floating data of a case is: close to normal, or hostile in one way.
enum class DataKind : i32 {
  normal,
  nan,       ///< normal, but for a few NaN
  infinite,  ///< normal, but for a few infinities
  tails,     ///< normal, but for a few elements some hundred times as large
  small,     ///< about the subnormals of small formats, many halfway between two of their numbers
  edges,     ///< powers of two and what lies next to them, many equal
};
constexpr const char* kDataKinds[] = {"normal", "nan", "infinite", "tails", "small", "edges"};
/// A set of them.
struct DataKinds {
  u32 bits = 0;
  constexpr DataKinds() = default;
  constexpr DataKinds(std::initializer_list<DataKind> kinds) {
    for (const DataKind kind : kinds) bits |= 1u << u32(kind);
  }
  constexpr bool has(DataKind kind) const { return bits >> u32(kind) & 1; }
};

struct TensorDef {
  std::string name;
  ptrdiff_t offset = 0;  ///< in Args
  Role role = Role::in;
  std::vector<DType> dtypes;  ///< allowed ones, beside that of `like`
  int like = -1;              ///< tensor whose dtype is allowed, and the default
  bool optional = false;
  bool strided = false;       ///< also the innermost dimension may have any stride
  bool either_major = false;  ///< see Schema::either_major
  bool early = false;         ///< see Schema::read_early
  int may_be = -1;            ///< tensor that this output may be itself: the same memory and strides
  i32 column_bytes = 0;       ///< see Schema::column_major; 0: row-major
  i32 rank = 0;
  Extent extents[kMaxRank];
  std::string extents_text;  ///< "tokens 2*intermediate"
  /// A tensor that only hooks read: optional, of any shape. Its name is no word of cases and no parameter of functions.
  bool any_shape() const { return rank == 0; }
  Values values;
  DataKinds unfit;               ///< see Schema::unfit
  Contents contents;             ///< see Schema::contents
  std::optional<Budget> budget;  ///< of this output; else the op's
  std::string doc;
};

struct AttrDef {
  enum class Kind { f32, i32, i64, boolean };
  std::string name;
  ptrdiff_t offset = 0;
  Kind kind = Kind::f32;
  Scalar standard = 0;  ///< the default
  std::string doc;
  bool hint = false;                    ///< see Schema::hint
  std::vector<std::string> words = {};  ///< names of the values 0, 1, .. of an i32; empty: any number
  /// The value of that name; -1: none.
  QN_API int value_named(const std::string& word) const;
  /// "none, relu or gelu".
  QN_API std::string words_text() const;
};

/// A value of a case parameter: an extent, dtype, attribute or switch.
using CaseValue = Scalar;
/// One case: parameter names with values. Parameters: axes ("tokens"), dtypes ("x.dtype"), row padding in elements
/// ("x.pad"), pointer offset in elements ("x.shift"), the last two dims exchanged in memory ("x.transposed", of a tensor that may
/// be), presence of an optional tensor ("bias.present"), an output in the place of the input that it may be ("out.in_place"), attributes,
/// the options "batch_invariant" and "variant" (by index), and words that `derive` turns into those.
using Case = std::map<std::string, Scalar>;

struct CaseAxis {
  std::string name;
  std::vector<CaseValue> values;  ///< none: only who types the word gives it one
  std::string meaning = {};       ///< of a word that `derive` or `generate` reads
};

/// Bytes that must move and operations that must be done, for the speed of light.
struct Cost {
  double bytes = 0, flops = 0;
};

/// An op that computes gradients of another op. Its inputs are gradients of the op's outputs, and tensors of the op by their names; its
/// outputs are gradients of the op's inputs, those that may be left out optional; its attributes are the op's.
struct Backward {
  std::string op;                                ///< its id
  std::map<std::string, std::string> gradients;  ///< its tensor -> the op's tensor, of which it is the gradient
};

/// An operator: data that the five steps walk. Made by QN_OP.
struct Op {
  Op() { std::memset(axis_slots, kMaxAxes, sizeof axis_slots); }
  std::string id;      ///< "norm.rms_norm"
  std::string doc;     ///< formula and meaning
  std::string source;  ///< where the algorithm comes from
  size_t args_bytes = 0;
  const char* args_type = "";               ///< Args' type, as typeid names it
  void (*construct)(void* args) = nullptr;  ///< default-made Args
  std::vector<TensorDef> tensors;
  std::vector<AttrDef> attrs;
  std::vector<Axis> axes;            ///< words of the tensors' dims, in order of first use
  u8 axis_slots[kMaxAxisWords];      ///< index of each word in `axes`; kMaxAxes: the op does not have it
  std::vector<Expression> formulas;  ///< of extents; names are axes by slot, and kMaxAxes + index of an attribute
  bool late_extents = false;         ///< a tensor has one
  std::string fault;                 ///< what is wrong with the schema; empty: nothing
  i32 tensor_offsets[kMaxTensors] = {}, attr_offsets[kMaxAttrs] = {};  ///< the defs' offsets side by side: read on every call
  std::vector<Rejection (*)(const Problem&)> requirements;
  std::vector<Variant> variants;      ///< those that joined (op/variants.h), then its own
  std::vector<Variant> own_variants;  ///< that the schema states
  void (*reference)(const void* args, const void* magnitudes, const void* given) = nullptr;
  void (*order_free)(const void* args, const void* magnitudes, const void* given) = nullptr;  ///< the reference in OrderFree numbers
  void (*generate)(void* args, const Case& which, Random& random) = nullptr;
  Breach (*contract)(const void* args, const Problem& problem) = nullptr;          ///< see Schema::contract
  bool (*keep_token)(void* args, i64 token, std::vector<i32>& indices) = nullptr;  ///< see Schema::token
  DataKinds unfit;                                                                 ///< see Schema::unfit_all
  CaseAxis broken;                                                                 ///< see Schema::broken_contents; no name: none
  Cost (*cost)(const Problem& problem, const void* host_args) = nullptr;
  Budget (*budget)(const Problem& problem) = nullptr;
  const char* not_proved = nullptr;  ///< see Schema::exact; null: `quern prove` has something to show
  std::vector<CaseAxis> cases;
  void (*derive)(Case& which) = nullptr;
  std::vector<Case> bench;            ///< shapes that `bench` times when none is given
  ptrdiff_t hooks_offset = -1;        ///< in Args, of a `const jit::Hooks*`; -1: the op takes none
  const jit::Hooks* hooks = nullptr;  ///< for calls whose Args name none
  const Op* base = nullptr;           ///< the op that this one is based on
  ptrdiff_t hook_params_offset = -1;  ///< in Args, of the bytes that its kernels hand to the hooks
  i32 hook_params_bytes = 0;
  i32 hook_params_used = -1;                     ///< how many of them the op's own hooks read; -1: not stated
  ptrdiff_t hook_tensors_offset = -1;            ///< in Args, of the TensorViews that its kernels hand to the hooks
  i32 hook_tensors = 0;                          ///< how many they are
  const jit::HookPoints* hook_points = nullptr;  ///< what hooks of its kernels may be
  std::vector<Backward> backward;                ///< each computes some of the gradients, no two the same
  bool has_rows = false;
  Axis rows = Axis::tokens;         ///< outputs of one index along it depend on that index of the inputs alone
  Axis rows_or_one = Axis::tokens;  ///< equal to `rows`, or an axis that is as long, or 1 where all rows share its one index
  ptrdiff_t row_offsets = -1;       ///< see Schema::rows, in Args; -1: none
  Axis row_tokens = Axis::tokens;
  bool has_columns = false;
  Axis columns = Axis::n;                             ///< see Schema::columns
  ptrdiff_t columns_unless = -1;                      ///< in Args, of the bool with which columns cannot be cut; -1: none
  std::map<std::string, std::string> axis_otherwise;  ///< see Schema::otherwise

  const TensorView& tensor(const void* args, size_t i) const {
    return *reinterpret_cast<const TensorView*>(static_cast<const char*>(args) + tensors[i].offset);
  }
  TensorView& tensor(void* args, size_t i) const { return *reinterpret_cast<TensorView*>(static_cast<char*>(args) + tensors[i].offset); }
  QN_API int tensor_index(const std::string& name) const;  ///< -1: none
  QN_API int attr_index(const std::string& name) const;
  /// Whether the extent depends on the axis.
  QN_API bool uses(const Extent& extent, Axis axis) const;
};

// An offset in a struct that holds a std::map is right with g++ and clang++, though the standard does not promise it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
/// Headers that this source is compiled with: the version, and sizes and offsets of what libquern and the library of an op read of each
/// other.
constexpr Headers kHeaders = {QN_VERSION, layout_word({sizeof(TensorView),
                                                       offsetof(TensorView, dtype),
                                                       offsetof(TensorView, rank),
                                                       offsetof(TensorView, device),
                                                       offsetof(TensorView, shape),
                                                       offsetof(TensorView, strides),
                                                       sizeof(RunOptions),
                                                       offsetof(RunOptions, stream),
                                                       offsetof(RunOptions, variant),
                                                       offsetof(RunOptions, workspace),
                                                       offsetof(RunOptions, batch_invariant),
                                                       offsetof(RunOptions, skip_check),
                                                       sizeof(Problem),
                                                       offsetof(Problem, axis_slots),
                                                       offsetof(Problem, axes),
                                                       offsetof(Problem, tensors),
                                                       offsetof(Problem, attrs),
                                                       offsetof(Problem, device),
                                                       offsetof(Problem, variant),
                                                       offsetof(Problem, candidate),
                                                       offsetof(Problem, hooks),
                                                       sizeof(TensorFacts),
                                                       offsetof(TensorFacts, alignment),
                                                       offsetof(TensorFacts, transposed),
                                                       sizeof(AttrWord),
                                                       size_t(kDTypeCount),
                                                       sizeof(DeviceInfo),
                                                       offsetof(DeviceInfo, smem_block),
                                                       offsetof(DeviceInfo, l2_bytes),
                                                       offsetof(DeviceInfo, emulated),
                                                       sizeof(Device),
                                                       u64(kDeviceSlots),
                                                       sizeof(Plan),
                                                       offsetof(Plan, workspace),
                                                       offsetof(Plan, launches),
                                                       offsetof(Plan, fills),
                                                       offsetof(Plan, regions),
                                                       sizeof(Fill),
                                                       sizeof(RegionFacts),
                                                       sizeof(Launch),
                                                       offsetof(Launch, config),
                                                       offsetof(Launch, params),
                                                       offsetof(Launch, choice),
                                                       sizeof(LaunchConfig),
                                                       offsetof(LaunchConfig, threads),
                                                       sizeof(jit::KernelSpec),
                                                       offsetof(jit::KernelSpec, config),
                                                       sizeof(jit::KernelInfo),
                                                       offsetof(jit::KernelInfo, config_bytes),
                                                       offsetof(jit::KernelInfo, threads),
                                                       sizeof(jit::Hooks),
                                                       sizeof(jit::HookPoints),
                                                       offsetof(jit::HookPoints, none),
                                                       offsetof(jit::HookPoints, list),
                                                       sizeof(jit::HookPoint),
                                                       offsetof(jit::HookPoint, signature),
                                                       sizeof(Rejection),
                                                       offsetof(Rejection, got),
                                                       offsetof(Rejection, text),
                                                       sizeof(Budget),
                                                       offsetof(Budget, exact),
                                                       sizeof(Cost),
                                                       sizeof(Variant),
                                                       offsetof(Variant, plan),
                                                       offsetof(Variant, slower),
                                                       sizeof(TensorDef),
                                                       offsetof(TensorDef, role),
                                                       offsetof(TensorDef, like),
                                                       offsetof(TensorDef, column_bytes),
                                                       offsetof(TensorDef, extents),
                                                       offsetof(TensorDef, values),
                                                       offsetof(TensorDef, contents),
                                                       sizeof(Contents),
                                                       offsetof(TensorDef, doc),
                                                       sizeof(AttrDef),
                                                       offsetof(AttrDef, kind),
                                                       offsetof(AttrDef, standard),
                                                       offsetof(AttrDef, hint),
                                                       offsetof(AttrDef, words),
                                                       sizeof(Extent),
                                                       offsetof(Extent, axis),
                                                       offsetof(Extent, formula),
                                                       sizeof(Values),
                                                       sizeof(CaseAxis),
                                                       sizeof(Scalar),
                                                       sizeof(Op),
                                                       offsetof(Op, args_bytes),
                                                       offsetof(Op, construct),
                                                       offsetof(Op, tensors),
                                                       offsetof(Op, attrs),
                                                       offsetof(Op, axis_slots),
                                                       offsetof(Op, fault),
                                                       offsetof(Op, requirements),
                                                       offsetof(Op, variants),
                                                       offsetof(Op, reference),
                                                       offsetof(Op, generate),
                                                       offsetof(Op, contract),
                                                       offsetof(Op, keep_token),
                                                       offsetof(Op, broken),
                                                       offsetof(Op, cost),
                                                       offsetof(Op, budget),
                                                       offsetof(Op, not_proved),
                                                       offsetof(Op, cases),
                                                       offsetof(Op, bench),
                                                       offsetof(Op, hooks),
                                                       offsetof(Op, backward),
                                                       offsetof(Op, rows),
                                                       offsetof(Op, row_offsets),
                                                       offsetof(Op, columns)})};
#pragma GCC diagnostic pop

/// What is wrong with op.backward: a tensor or attribute that one of them cannot be given, a gradient of another shape or
/// one that two compute. Empty: nothing.
QN_API std::string backward_fault(const Op& op);

/// All ops of the process by id. Throws Error{value} when one could not be registered.
using Registry = std::map<std::string, const Op*, std::less<>>;
QN_API const Registry& registry();
/// Throws Error{value} with the nearest ids.
QN_API const Op& find_op(std::string_view id);
/// Enters the op, unless `built_with` are not this library's headers or the id is taken: then registry() throws from now on. False
/// where the headers differ: nothing that lies in `op` may be handed over then.
QN_API bool register_op(const char* id, const Op* op, const Headers& built_with);
/// Joins the glossary that the op's library was compiled with (join_glossary). Where that cannot be, registry() throws from now on.
QN_API void register_glossary(const char* id, const GlossaryWord* words, size_t count);

/// A part of the op could not be stated: it refuses calls, and registry() throws from now on.
QN_API void refuse_op(Op& op, const Error& why);

/// Whether the dimension before the last is the dense one; where both could be, the last is.
QN_API bool lies_transposed(const TensorDef& tensor, const TensorView& view);
/// Steps 1 and 2. bind throws on bad input; make_plan throws Error{unsupported} with every rejection.
QN_API Problem bind(const Op& op, const void* args, const RunOptions& options);
QN_API Plan make_plan(const Op& op, const Problem& problem, const DeviceInfo& device);
/// All five steps.
QN_API void run(const Op& op, const void* args, const RunOptions& options);
/// Value of an attribute in Args.
QN_API Scalar attr_value(const AttrDef& attr, const void* args);
/// Throws Error{value} for a value that the attribute's type does not hold.
QN_API void set_attr(const AttrDef& attr, void* args, const Scalar& value);
/// As a Problem holds it.
QN_API AttrWord attr_word(const AttrDef& attr, const Scalar& value);
/// The extent where axes (by slot) and attributes (from kMaxAxes on) have these values, or those of the problem. Throws
/// Error{value} where its formula divides with a remainder or overflows.
QN_API i64 extent_of(const Op& op, const Extent& extent, const i64* values);
QN_API i64 extent_of(const Op& op, const Extent& extent, const Problem& problem);

/// dtype of another tensor of the op, or one of `also`.
struct like {
  std::string tensor;
  std::vector<DType> also;
  explicit like(std::string name, std::vector<DType> others = {}) : tensor(std::move(name)), also(std::move(others)) {}
};

/// Adds a tensor whose dims are Expressions without spaces: "tokens 2*intermediate", "tokens*topk", "m ceil_div(k,group_size)".
/// A word is an attribute that the op has by now, else an axis. Throws Error{internal} for what is not understood, and
/// beyond kMaxTensors, kMaxRank and kMaxAxes.
QN_API void add_tensor(Op& op, const char* name, ptrdiff_t offset, const char* dims, Role role, std::vector<DType> dtypes,
                       const std::string& like_name);
/// Throws Error{internal} beyond kMaxAttrs, and where dims have the attribute's name as an axis.
QN_API void add_attr(Op& op, const AttrDef& attr);
/// See Schema::may_be. Throws Error{internal}.
QN_API void set_may_be(Op& op, const char* input);

// The same for a schema, which is stated while a library is loaded: what is wrong is kept in Op::fault and for registry().
QN_API void state_tensor(Op& op, const char* name, ptrdiff_t offset, const char* dims, Role role, std::vector<DType> dtypes,
                         const std::string& like_name);
QN_API void state_attr(Op& op, const AttrDef& attr);
QN_API void state_may_be(Op& op, const char* input);
/// The variants that the schema states, behind those that join the op.
QN_API void state_variants(Op& op, std::vector<Variant> own);

/// Makes `op` a copy of the registered op `base` under its own id, with hooks for its kernels.
QN_API void base_on(Op& op, const char* base, const jit::Hooks* hooks);
/// Adds `hook_tensors[0]` and so on, each of any shape.
QN_API void add_hook_tensors(Op& op, ptrdiff_t offset, int count);
/// Makes the hook tensor of that index one of the op's, of a name and a shape.
QN_API void name_hook_tensor(Op& op, int index, const char* name, const char* axes, std::vector<DType> dtypes);
/// Most dims of a tensor for hooks.
constexpr int kMaxHookRank = 4;
/// The bytes, between 0 and those that the kernels take, or the op is refused.
QN_API void set_hook_params(Op& op, i32 bytes);

/// Builds an Op; see QN_OP.
template <class Args> class Schema {
 public:
  /// `built_with` is the caller's by default: of two libraries that instantiate this template for one Args, one's code serves both.
  explicit Schema(Op& op, const char* id, const Headers& built_with = kHeaders) : op_(op) {
    op.id = id;
    op.args_bytes = sizeof(Args);
    op.args_type = typeid(Args).name();
    op.construct = [](void* p) { new (p) Args(); };
    registered_ = register_op(id, &op, built_with);
    if (registered_) register_glossary(id, kGlossary, std::size(kGlossary));
  }
  /// Starts as a copy of the op `base`, one of this library or of one that was loaded before, of the same Args; `hooks` are
  /// plugged into its kernels where a call's Args name none. What follows replaces what the base states, but `generate`
  /// runs after the base's. State at least `reference`: the base's knows nothing of the hooks.
  Schema& based_on(const char* base, const jit::Hooks* hooks) {
    if (registered_) base_on(op_, base, hooks);
    last_doc_ = &op_.doc;
    return *this;
  }
  Schema& doc(std::string text) { return op_.doc = std::move(text), *this; }
  /// Paper or document that the algorithm comes from.
  Schema& source(std::string text) { return op_.source = std::move(text), *this; }
  Schema& in(const char* name, TensorView Args::* m, const char* axes, std::vector<DType> dtypes) {
    return add(name, m, axes, Role::in, std::move(dtypes), "");
  }
  Schema& in(const char* name, TensorView Args::* m, const char* axes, like l) { return add(name, m, axes, Role::in, l.also, l.tensor); }
  Schema& out(const char* name, TensorView Args::* m, const char* axes, std::vector<DType> dtypes) {
    return add(name, m, axes, Role::out, std::move(dtypes), "");
  }
  Schema& out(const char* name, TensorView Args::* m, const char* axes, like l) { return add(name, m, axes, Role::out, l.also, l.tensor); }
  Schema& inout(const char* name, TensorView Args::* m, const char* axes, std::vector<DType> dtypes) {
    return add(name, m, axes, Role::inout, std::move(dtypes), "");
  }
  Schema& inout(const char* name, TensorView Args::* m, const char* axes, like l) {
    return add(name, m, axes, Role::inout, l.also, l.tensor);
  }
  // These speak of the tensor or attribute stated last.
  Schema& optional() { return op_.tensors.back().optional = true, *this; }
  Schema& strided() { return op_.tensors.back().strided = true, *this; }
  /// Of this input the last dimension is dense or the one before it, as the transpose of a row-major tensor has it; see
  /// TensorFacts::transposed.
  Schema& either_major() { return op_.tensors.back().either_major = true, *this; }
  /// This output may be `input` itself; with any other tensor what a call writes shares no memory. `check` then runs its cases both ways.
  Schema& may_be(const char* input) {
    if (registered_) state_may_be(op_, input);
    return *this;
  }
  /// With pdl, kernels may read this input before the kernels before have ended: a weight, which none of those writes. Of what else a call
  /// touches, checked mode reports an access before griddepcontrol.wait.
  Schema& read_early() {
    op_.tensors.back().early = true;
    *last_doc_ += std::string(last_doc_->empty() ? "" : "; ") + "with pdl, read before the kernels before have ended";
    return *this;
  }
  /// Where this output of two dims is allocated for the caller, it lies column by column, and each column starts at a multiple
  /// of `bytes`, as TMA reads it; a caller's own may have any strides.
  Schema& column_major(i32 bytes) { return op_.tensors.back().strided = true, op_.tensors.back().column_bytes = bytes, *this; }
  Schema& values(Values v) { return op_.tensors.back().values = v, *this; }
  /// The contract of the elements of this index tensor, which checked mode judges and documents show. Without: what `values` says, where
  /// the op has that axis.
  Schema& contents(Contents c) { return op_.tensors.back().contents = std::move(c), *this; }
  /// Data of these kinds is none for this tensor: checks fill it with normal data instead. Say why in a comment.
  Schema& unfit(DataKinds kinds) { return op_.tensors.back().unfit.bits |= kinds.bits, *this; }
  /// The same of all tensors: the op says nothing of what then comes out, or not as exactly as its budget.
  Schema& unfit_all(DataKinds kinds) { return op_.unfit.bits |= kinds.bits, *this; }
  Schema& within(Budget b) { return op_.tensors.back().budget = b, *this; }  ///< this output's own, in place of the op's
  Schema& meaning(std::string text) { return *last_doc_ = std::move(text), *this; }

  template <class T> Schema& attr(const char* name, T Args::* m) {
    AttrDef a;
    a.name = name;
    a.offset = member_offset(m);
    if constexpr (std::is_same_v<T, float>) a.kind = AttrDef::Kind::f32;
    else if constexpr (std::is_same_v<T, bool>) a.kind = AttrDef::Kind::boolean;
    else if constexpr (std::is_same_v<T, i32> || (std::is_enum_v<T> && sizeof(T) == 4)) a.kind = AttrDef::Kind::i32;
    else if constexpr (std::is_same_v<T, i64>) a.kind = AttrDef::Kind::i64;
    else static_assert(sizeof(T) == 0, "attributes are float, bool, i32, i64 or an enum of 4 bytes");
    const Args standard{};
    if (registered_) a.standard = attr_value(a, &standard), state_attr(op_, a);
    else op_.attrs.push_back(a);
    last_doc_ = &op_.attrs.back().doc;
    return *this;
  }
  /// The names of an enum attribute's values, in their order; others are refused. The command line and Python take the names.
  Schema& words(std::vector<std::string> names) { return op_.attrs.back().words = std::move(names), *this; }
  /// This attribute chooses the plan, and never the result of a variant.
  Schema& hint() { return op_.attrs.back().hint = true, *this; }
  /// A condition beyond shapes and dtypes; the first that rejects is thrown as Error{value}.
  Schema& require(Rejection (*check)(const Problem&)) { return op_.requirements.push_back(check), *this; }
  /// Kernels in the order in which plan asks them. Variants that join the op from sources of their own are asked before (op/variants.h).
  Schema& variants(std::vector<Variant> v) {
    if (registered_) state_variants(op_, std::move(v));
    return *this;
  }
  /// One variant that runs everything.
  Schema& plan(Plan (*p)(const Problem&, const DeviceInfo&)) { return variants({{"portable", nullptr, p, nullptr}}); }
  /// Truth in double: host tensors in, outputs (f64, contiguous) written. `magnitudes` is Args as well, whose outputs may be
  /// written with the sums of absolute terms (see Budget). `order_free`: the same function over OrderFree (op/ref.h).
  template <void (*f)(const Args& args, const Args& magnitudes), void (*order_free)(const Args&, const Args&) = nullptr>
  Schema& reference() {
    op_.reference = [](const void* a, const void* m, const void*) { f(*static_cast<const Args*>(a), *static_cast<const Args*>(m)); };
    op_.order_free = nullptr;  // that of a base is not this op's
    if constexpr (order_free != nullptr)
      op_.order_free = [](const void* a, const void* m, const void*) {
        order_free(*static_cast<const Args*>(a), *static_cast<const Args*>(m));
      };
    return *this;
  }
  /// The same where the result depends on an output's dtype: `given` are the call's own tensors.
  template <void (*f)(const Args& args, const Args& magnitudes, const Args& given),
            void (*order_free)(const Args&, const Args&, const Args&) = nullptr>
  Schema& reference() {
    op_.reference = [](const void* a, const void* m, const void* g) {
      f(*static_cast<const Args*>(a), *static_cast<const Args*>(m), *static_cast<const Args*>(g));
    };
    op_.order_free = nullptr;
    if constexpr (order_free != nullptr)
      op_.order_free = [](const void* a, const void* m, const void* g) {
        order_free(*static_cast<const Args*>(a), *static_cast<const Args*>(m), *static_cast<const Args*>(g));
      };
    return *this;
  }
  /// Fills tensors whose values are generated(), and may reshape what a random fill would get wrong. Host tensors. The case has
  /// the word `proof`: 1 where f32 is no float (Number), and only zeros may be put among data.
  template <void (*f)(Args& args, const Case& which, Random& random)> Schema& generate() {
    op_.generate = [](void* a, const Case& c, Random& r) { f(*static_cast<Args*>(a), c, r); };
    return *this;
  }
  /// The part of the contract that `contents` cannot say: the first element that breaks it. Called where each tensor keeps to its
  /// `contents`, with tensors in host memory.
  template <Breach (*f)(const Args& args, const Problem& problem)> Schema& contract() {
    op_.contract = [](const void* a, const Problem& p) { return f(*static_cast<const Args*>(a), p); };
    return *this;
  }
  /// Restricts Args in host memory to one index, `token`, of the axis that `rows` calls tokens. f slices the tensors. It writes index
  /// tensors whose contents change anew, into `indices`. It returns false if the outputs of one token cannot be computed alone. `bench`
  /// judges large results by it.
  template <bool (*f)(Args& args, i64 token, std::vector<i32>& indices)> Schema& token() {
    op_.keep_token = [](void* a, i64 token, std::vector<i32>& indices) { return f(*static_cast<Args*>(a), token, indices); };
    return *this;
  }
  /// Cases with this value of a word have contents that break the contract, where the op says what becomes of these: checked mode then lets
  /// them pass in `check` and `fuzz`.
  Schema& broken_contents(const char* word, Scalar value) { return op_.broken = {word, {value}}, *this; }
  /// Replaces "every operand once, no operations". `args` are host tensors, so contents of index tensors may be counted.
  template <Cost (*f)(const Problem& problem, const Args& args)> Schema& cost() {
    op_.cost = [](const Problem& p, const void* a) { return f(p, *static_cast<const Args*>(a)); };
    return *this;
  }
  Schema& budget(Budget (*f)(const Problem&)) { return op_.budget = f, *this; }
  /// Results are integers, or made of integers by stated roundings: outputs are compared with the reference bit for bit. Other number types
  /// have no such bits, so `quern prove` skips the op and says `why`.
  Schema& exact(const char* why) {
    return op_.not_proved = why, budget([](const Problem&) { return Budget{.exact = true}; });
  }
  /// Members of Args by which callers plug code into the op's kernels, bytes and tensors that the code is handed, and the points where
  /// it may plug in; plan finds the first in Problem::hooks. Stated behind all tensors.
  template <size_t n, size_t m>
  Schema& hooks(const jit::Hooks* Args::* h, u8 (Args::*params)[n], TensorView (Args::*tensors)[m], const jit::HookPoints& points) {
    op_.hooks_offset = member_offset(h);
    op_.hook_params_offset = member_offset(params), op_.hook_params_bytes = i32(n);
    op_.hook_tensors_offset = member_offset(tensors), op_.hook_tensors = i32(m), op_.hook_points = &points;
    if (registered_) add_hook_tensors(op_, op_.hook_tensors_offset, int(m));
    return *this;
  }
  /// For an op that is based on another: states the tensor that its hooks read as `at.tensors[index]`. Checks fill this tensor, `generate`
  /// may write it, and functions have a parameter of its name. Statements that follow speak of it, as of any tensor.
  Schema& hook_tensor(int index, const char* name, const char* axes, std::vector<DType> dtypes) {
    if (registered_) name_hook_tensor(op_, index, name, axes, std::move(dtypes));
    else op_.tensors.emplace_back();
    last_doc_ = &op_.tensors.back().doc;
    return *this;
  }
  /// Of an op that is based on another: its hooks read a T from `at.params`; void: nothing.
  template <class T> Schema& hook_params() {
    i32 bytes = 0;
    if constexpr (!std::is_void_v<T>) bytes = i32(sizeof(T));
    if (registered_) set_hook_params(op_, bytes);
    return *this;
  }
  /// Names an op that computes gradients of this op. `gradients` maps each of its tensors that is a gradient to the tensor of this op that
  /// it belongs to. Stated again for another op, which computes other gradients.
  Schema& backward(const char* op, std::map<std::string, std::string> gradients) {
    return op_.backward.push_back({op, std::move(gradients)}), *this;
  }
  /// Outputs of one index along this axis depend on that index of the inputs alone.
  Schema& rows(Axis axis) { return rows(axis, axis); }
  /// The same; tensors have `or_one` instead of the axis where one index may stand for all of them.
  Schema& rows(Axis axis, Axis or_one) { return op_.has_rows = true, op_.rows = axis, op_.rows_or_one = or_one, *this; }
  /// The same where a row has several indices of `tokens`: those from offsets[row] to offsets[row + 1], an index tensor of one element more
  /// than rows. Where `offsets` is absent, a row has the one of its own number.
  Schema& rows(Axis axis, Axis tokens, TensorView Args::* offsets) {
    return op_.row_offsets = member_offset(offsets), op_.row_tokens = tokens, rows(axis);
  }
  /// For an axis that only outputs have: it is as long as the axis `other`. Whoever allocates outputs, as Python does, needs this.
  Schema& otherwise(const char* axis, const char* other) { return op_.axis_otherwise[axis] = other, *this; }
  /// Outputs of one index along this axis depend only on the same index of the inputs, or on the index of its block. `bench` judges large
  /// results by it where an op has no `rows`.
  Schema& columns(Axis axis) { return op_.has_columns = true, op_.columns = axis, *this; }
  /// The same of calls without `flag`; with it, one index's part of a tensor is no slice of its view.
  Schema& columns(Axis axis, bool Args::* flag) { return op_.columns_unless = member_offset(flag), columns(axis); }
  /// Parameters and values whose pairwise combinations `check` runs.
  Schema& cases(std::vector<CaseAxis> list, void (*derive)(Case&) = nullptr) {
    op_.cases = std::move(list);
    op_.derive = derive;
    for (const TensorDef& t : op_.tensors)
      if (t.may_be >= 0) op_.cases.push_back({t.name + ".in_place", {false, true}});
    return *this;
  }
  /// What several ops state alike, at its place in the chain: `f` states it and returns its argument.
  Schema& with(Schema& (*f)(Schema& schema)) { return f(*this); }
  /// Shapes that `bench` times.
  Schema& bench(std::vector<Case> shapes) { return op_.bench = std::move(shapes), *this; }

 private:
  Schema& add(const char* name, TensorView Args::* m, const char* axes, Role role, std::vector<DType> dtypes,
              const std::string& like_name) {
    if (registered_) state_tensor(op_, name, member_offset(m), axes, role, std::move(dtypes), like_name);
    else op_.tensors.emplace_back();
    last_doc_ = &op_.tensors.back().doc;
    return *this;
  }
  Op& op_;
  bool registered_ = false;  ///< else libquern has other headers: what is stated stays in this library's own op_, which nobody reads
  std::string* last_doc_ = nullptr;
};

}  // namespace quern

/// Defines the public function `void function(const Args&, const RunOptions&)` and registers the op; a chain of Schema's
/// members follows.
#define QN_OP(function, Args, id) \
  static ::quern::Op& function##_op() { \
    static ::quern::Op op; \
    return op; \
  } \
  void function(const Args& args, const ::quern::RunOptions& options) { ::quern::run(function##_op(), &args, options); } \
  static const ::quern::Schema<Args> function##_schema = ::quern::Schema<Args>(function##_op(), id)
