// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/arguments.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "quern/op/tensor_bytes.h"
#include "quern/testing/case_args.h"
#include "quern/testing/check.h"
#include "quern/testing/pairwise.h"

namespace quern::testing {

namespace {

constexpr u64 kSeed = 1, kOtherSeed = 2;

bool is_refusal(const Error& e) {
  return e.kind() == ErrorKind::value || e.kind() == ErrorKind::type || e.kind() == ErrorKind::unsupported;
}

/// Bits of every output after a call, outside of which nothing is looked at.
std::string output_bits(const CaseArgs& c, Device& device) {
  std::string bits;
  for (size_t i = 0; i < c.op().tensors.size(); ++i) {
    if (c.op().tensors[i].role == Role::in || !c.tensor(i).present()) continue;
    bits.append(packed_elements(c.tensor(i), device, {}).get(), size_t(packed_bytes(c.tensor(i))));
  }
  return bits;
}

/// Values of the op's cases, and near ones, but `now`.
std::vector<Scalar> other_values(const Op& op, const AttrDef& attr, const Scalar& now) {
  if (attr.kind == AttrDef::Kind::boolean) return {now == 0};
  std::vector<Scalar> values = {0, 1, 3};
  if (attr.kind == AttrDef::Kind::f32) values.insert(values.begin(), {2 * now, now + 1, now / 2});
  else if (std::fabs(now) < 0x1p30) values.insert(values.begin(), {2 * now.integer(), now.integer() + 1, now.integer() / 2});
  else values.insert(values.begin(), {now.integer() / 2, now.integer() ^ 1});
  for (const CaseAxis& axis : op.cases)
    if (axis.name == attr.name) values.insert(values.end(), axis.values.begin(), axis.values.end());
  std::erase(values, now);
  return values;
}

/// The op's pairwise cases of few bytes that run on the device.
std::vector<Case> small_cases(const Op& op, const DeviceInfo& device, double most_bytes) {
  return pairwise(op.cases, [&](const Case& given) {
    return operand_bytes(op, fake_args(op, derived(op, given)).get()) <= most_bytes && runs(op, given, device);
  });
}

/// What one argument has shown so far.
struct Argument {
  std::string name;
  bool in_dims = false;  ///< an attribute that tells a tensor's size: another value alone is refused, or accepted where sizes are the same
  bool matters = false, accepted = false, refused = false;
  bool ignored() const { return !matters && !(refused && (!accepted || in_dims)); }
};

class ArgumentTest {
 public:
  ArgumentTest(const Op& op, Device& device) : op_(op), device_(device) {
    for (const TensorDef& t : op.tensors)
      if (t.role != Role::out && !t.any_shape()) arguments_.push_back({t.name});
    for (size_t i = 0; i < op.attrs.size(); ++i)
      arguments_.push_back({op.attrs[i].name, std::any_of(op.formulas.begin(), op.formulas.end(),
                                                          [&](const Expression& f) { return f.uses(size_t(kMaxAxes) + i); })});
    for (const CaseAxis& axis : op.cases)
      if (axis.name == "batch_invariant") arguments_.push_back({axis.name});
  }

  void try_case(const Case& which) {
    std::string before;
    try {
      before = outputs(which, [](CaseArgs&) {});
    } catch (const Error&) {
      return;  // a case that is refused shows nothing
    }
    if (before.empty()) return;
    for (Argument& a : arguments_)
      if (!a.matters) try_argument(a, which, before);
  }

  /// Whether the plan of some case or bench shape depends on batch_invariant and on hints.
  void try_plans(const Case& given) {
    for (Argument& a : arguments_) {
      const int at = op_.attr_index(a.name);
      if (a.matters || !(a.name == "batch_invariant" || is_hint(at))) continue;
      const Case which = derived(op_, given);
      ArgsStorage args = fake_args(op_, which);
      RunOptions options = options_of(op_, which);
      const auto planned = [&](const Scalar& value) {
        if (at >= 0) set_attr(op_.attrs[size_t(at)], args.get(), value);
        else options.batch_invariant = value != 0;
        const Problem problem = bind(op_, args.get(), options);
        return problem.empty ? Plan() : make_plan(op_, problem, device_.info());
      };
      const Plan fast = planned(0), other = planned(1);
      a.matters = fast.workspace != other.workspace || fast.count != other.count;
      for (i32 i = 0; i < fast.count && !a.matters; ++i)
        a.matters =
            !(fast.launches[i].spec == other.launches[i].spec) || fast.launches[i].config.cluster != other.launches[i].config.cluster;
    }
  }

  bool all_matter() const {
    for (const Argument& a : arguments_)
      if (!a.matters) return false;
    return true;
  }
  std::vector<std::string> ignored() const {
    std::vector<std::string> names;
    for (const Argument& a : arguments_)
      if (a.ignored()) names.push_back(a.name);
    return names;
  }

 private:
  bool is_hint(int attr) const { return attr >= 0 && op_.attrs[size_t(attr)].hint; }

  void try_argument(Argument& a, const Case& which, const std::string& before) {
    if (const int i = op_.tensor_index(a.name); i >= 0) {
      if (CaseArgs(op_, which, kSeed).tensor(size_t(i)).present()) try_change(a, which, before, [&](CaseArgs& c) { refill(c, size_t(i)); });
    } else if (const int at = op_.attr_index(a.name); at >= 0 && !is_hint(at)) {
      const AttrDef& attr = op_.attrs[size_t(at)];
      const CaseArgs args(op_, which, kSeed);
      for (const Scalar& value : other_values(op_, attr, attr_value(attr, args.args())))
        if (!a.matters) try_change(a, which, before, [&](CaseArgs& c) { set_attr(attr, c.args(), value); });
    }
  }

  void try_change(Argument& a, const Case& which, const std::string& before, const std::function<void(CaseArgs&)>& change) {
    try {
      const bool changed = outputs(which, change) != before;
      a.accepted = true;
      a.matters |= changed;
    } catch (const Error& e) { (is_refusal(e) ? a.refused : a.matters) = true; }
  }

  /// Bits of every output after a call with changed arguments; empty when there is nothing to do.
  std::string outputs(const Case& which, const std::function<void(CaseArgs&)>& change) {
    CaseArgs c(op_, which, kSeed);
    change(c);
    RunOptions options = options_of(op_, c.which());
    options.device = &device_;
    const AllowBrokenContents allow;  // a refused call would not show whether the kernels read the argument
    run(op_, c.args(), options);
    return output_bits(c, device_);
  }

  /// What another seed gives; where that is the same, the elements in another order.
  void refill(CaseArgs& c, size_t i) {
    const TensorView v = c.tensor(i);
    std::string now(packed_elements(v, device_, {}).get(), size_t(packed_bytes(v)));
    copy_elements(CaseArgs(c.op(), c.given(), kOtherSeed).tensor(i), v);
    if (now != std::string(packed_elements(v, device_, {}).get(), now.size())) return;
    std::rotate(now.begin(), now.begin() + size_of(v.dtype), now.end());
    copy_elements(TensorView(now.data(), v.dtype, v.shape, v.rank), v);
  }

  const Op& op_;
  Device& device_;
  std::vector<Argument> arguments_;
};

/// A hint of an op on one device.
class HintTest {
 public:
  HintTest(const Op& op, const AttrDef& hint, Device& device) : op_(op), hint_(hint), device_(device) {}

  /// What is wrong in the case; empty: nothing.
  std::string fault(const Case& which) {
    CaseArgs args(op_, which, kSeed);
    const Scalar now = attr_value(hint_, args.args());
    const std::vector<Truth> truths = truth_of(args);
    std::vector<const char*> variants = {options_of(op_, args.which()).variant};  // null: plan's choice
    if (!variants[0])
      for (const Variant& v : op_.variants) variants.push_back(v.name);
    for (const char* variant : variants) {
      std::string before;
      if (!call(args, variant, now, truths, before)) continue;
      for (const Scalar& value : other_values(op_, hint_, now)) {
        std::string bits, wrong;
        if (!call(args, variant, value, truths, bits, &wrong)) continue;
        const std::string text = to_string(value) + " in the place of " + to_string(now) + " ", in = " in " + case_text(op_, args.given());
        if (!wrong.empty()) return text + "makes a call wrong" + in + ": " + wrong;
        if (variant && bits != before) return text + "changes the bits of variant " + variant + in;
      }
    }
    return "";
  }

 private:
  /// False where the variant refuses the call.
  bool call(CaseArgs& args, const char* variant, const Scalar& value, const std::vector<Truth>& truths, std::string& bits,
            std::string* wrong = nullptr) {
    args.reset();
    set_attr(hint_, args.args(), value);
    RunOptions options = options_of(op_, args.which());
    options.device = &device_, options.variant = variant;
    try {
      run(op_, args.args(), options);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::unsupported) return false;
      throw;
    }
    bits = output_bits(args, device_);
    if (wrong) *wrong = judge(args, truths, bind(op_, args.args(), options)).message;
    return true;
  }

  const Op& op_;
  const AttrDef& hint_;
  Device& device_;
};

}  // namespace

std::vector<std::string> ignored_arguments(const Op& op, Device& device, double most_bytes) {
  ArgumentTest test(op, device);
  for (const Case& shape : op.bench) test.try_plans(shape);
  const std::vector<Case> pairs = small_cases(op, device.info(), most_bytes);
  for (const Case& which : pairs) {
    if (test.all_matter()) break;
    test.try_plans(which);
    test.try_case(which);
  }
  // An argument may matter only beside values of two others, as min_p_first does beside top_p and min_p: no case of pairs need have all
  // three.
  Random random(kSeed);
  for (int more = 0; more < 300 && !pairs.empty() && !test.ignored().empty(); ++more) {
    Case mixed;
    for (const CaseAxis& axis : op.cases)
      if (!axis.values.empty()) mixed[axis.name] = axis.values[size_t(random.below(i64(axis.values.size())))];
    if (operand_bytes(op, fake_args(op, derived(op, mixed)).get()) <= most_bytes && runs(op, mixed, device.info())) test.try_case(mixed);
  }
  return test.ignored();
}

std::vector<std::string> misleading_hints(const Op& op, Device& device, size_t most_cases, double most_bytes) {
  std::vector<std::string> faults;
  for (const AttrDef& attr : op.attrs) {
    if (!attr.hint) continue;
    HintTest test(op, attr, device);
    const std::vector<Case> cases = small_cases(op, device.info(), most_bytes);
    const size_t count = std::min(most_cases, cases.size());
    std::string fault;
    for (size_t i = 0; i < count && fault.empty(); ++i) fault = test.fault(cases[i * cases.size() / count]);
    if (!fault.empty()) faults.push_back(attr.name + ": " + fault);
  }
  return faults;
}

}  // namespace quern::testing
