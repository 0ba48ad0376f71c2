// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Every argument of every op matters, and an argument that does not is found. The device of the second part computes
// nothing by itself: at a launch it writes what the test says.
#include "quern/testing/arguments.h"

#include <gmock/gmock.h>

#include <cstring>

#include "quern/base/host_dtype.h"
#include "quern/device/emulated.h"
#include "quern/testing/null_device.h"

namespace quern::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class EveryOp : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOp, heeds_every_argument) {
  const std::unique_ptr<Device> device = make_emulated_device(device_info_of(Arch{}), {.checked = true});
  EXPECT_THAT(ignored_arguments(find_op(GetParam()), *device), IsEmpty());
}

TEST_P(EveryOp, has_hints_that_change_no_result) {
  const std::unique_ptr<Device> device = make_emulated_device(device_info_of(Arch{}), {});
  EXPECT_THAT(misleading_hints(find_op(GetParam()), *device, 40), IsEmpty());
}

std::vector<std::string> ids() {
  std::vector<std::string> all;
  for (const auto& [id, op] : registry())
    if (!id.starts_with("planted.")) all.push_back(id);  // those are wrong on purpose
  return all;
}
INSTANTIATE_TEST_SUITE_P(testing_arguments, EveryOp, ::testing::ValuesIn(ids()), [](const auto& info) {
  std::string name = info.param;
  name[name.find('.')] = '_';
  return name;
});

struct MixArgs {
  TensorView out, x, bias, sums;
  float scale = 2;
  i64 limit = 0;
  i32 group = 2;
  bool flag = false;
};

/// An op on a device that reads what `uses` names: out = x * scale + bias.
class Mix : public NullDevice {
 public:
  explicit Mix(std::vector<std::string> uses) : NullDevice(device_info_of(Arch{})), uses_(std::move(uses)) { wants_memory_ranges_ = true; }
  void begin_call(std::span<const MemoryRange> ranges, const char*) override {
    for (const MemoryRange& r : ranges) views_[r.name] = r.view;
  }
  void end_call() override {
    const TensorView &x = views_["x"], &out = views_["out"];
    for (i64 i = 0; i < x.shape[0]; ++i) {
      double value = uses("x") ? load_element(x, &i) : 1;
      if (uses("scale")) value *= scale;
      if (uses("bias") && views_.count("bias")) value += load_element(views_["bias"], &i);
      store_element(out, &i, value);
    }
    views_.clear();
  }
  static double scale;

 private:
  bool uses(const char* name) const { return std::find(uses_.begin(), uses_.end(), name) != uses_.end(); }
  std::vector<std::string> uses_;
  std::map<std::string, TensorView> views_;
};
double Mix::scale = 0;

/// No launch: what the device does it does when the call ends.
const Op& mix() {
  static Op op = [] {
    Op o;
    o.id = "test.arguments";
    o.args_bytes = sizeof(MixArgs);
    o.construct = [](void* p) { new (p) MixArgs(); };
    add_tensor(o, "x", offsetof(MixArgs, x), "tokens", Role::in, {DType::f32}, "");
    add_tensor(o, "bias", offsetof(MixArgs, bias), "tokens", Role::in, {DType::f32}, "");
    o.tensors.back().optional = true;
    add_tensor(o, "out", offsetof(MixArgs, out), "tokens", Role::out, {DType::f32}, "");
    add_attr(o, {"scale", offsetof(MixArgs, scale), AttrDef::Kind::f32, 2, ""});
    add_attr(o, {"limit", offsetof(MixArgs, limit), AttrDef::Kind::i64, 0, ""});
    o.requirements.push_back(
        [](const Problem& p) { return p.attrs[1].integer == 0 ? Rejection{} : Rejection{"limit", p.attrs[1].integer, "0"}; });
    o.variants = {{"portable", nullptr, [](const Problem& p, const DeviceInfo&) {
                     Mix::scale = p.attrs[0].real;
                     return Plan();
                   }}};
    o.cases = {{"tokens", {4, 7}}, {"bias.present", {false, true}}};
    return o;
  }();
  return op;
}

TEST(testing_arguments, an_ignored_argument_is_found) {
  const auto ignored = [](std::vector<std::string> uses) {
    Mix device(std::move(uses));
    return ignored_arguments(mix(), device);
  };
  EXPECT_THAT(ignored({"x", "bias", "scale"}), IsEmpty());  // limit: every other value is refused
  EXPECT_THAT(ignored({"x", "scale"}), ElementsAre("bias"));
  EXPECT_THAT(ignored({"x", "bias"}), ElementsAre("scale"));
  EXPECT_THAT(ignored({"bias", "scale"}), ElementsAre("x"));
}

/// Of 4 tokens groups of 2 and of 3 are as many, and nothing reads which; groups of 4 are refused, as `sums` has another size then.
TEST(testing_arguments, an_attribute_that_tells_a_size_is_heeded_where_sizes_are_refused) {
  Op op = mix();
  op.id = "test.grouped";
  add_attr(op, {"group", offsetof(MixArgs, group), AttrDef::Kind::i32, 2, ""});
  add_tensor(op, "sums", offsetof(MixArgs, sums), "ceil_div(tokens,group)", Role::in, {DType::f32}, "");
  Mix device({"x", "bias", "scale"});
  EXPECT_THAT(ignored_arguments(op, device), ElementsAre("sums"));
  op.formulas.clear();  // an attribute of no dims
  op.tensors.pop_back();
  EXPECT_THAT(ignored_arguments(op, device), ElementsAre("group"));
}

/// mix() with a reference, and `limit` as a hint.
Op hinted() {
  Op o = mix();
  o.id = "test.hint";
  o.attrs[1].hint = true;
  o.requirements.clear();
  o.reference = [](const void* args, const void*, const void*) {
    const MixArgs& a = *static_cast<const MixArgs*>(args);
    for (i64 i = 0; i < a.x.shape[0]; ++i)
      store_element(a.out, &i, load_element(a.x, &i) * a.scale + (a.bias.present() ? load_element(a.bias, &i) : 0));
  };
  return o;
}

TEST(testing_arguments, a_hint_that_changes_results_is_found) {
  Mix device({"x", "scale", "bias"});
  const Op innocent = hinted();
  EXPECT_THAT(misleading_hints(innocent, device, 8), IsEmpty());

  Op bits = hinted();  // within the tolerance, but not the same
  bits.variants = {{"portable", nullptr, [](const Problem& p, const DeviceInfo&) {
                      Mix::scale = p.attrs[0].real * (p.attrs[1].integer == 0 ? 1 : 1 + 0x1p-23);
                      return Plan();
                    }}};
  bits.budget = [](const Problem&) { return Budget{.of_value = 1e-3, .of_magnitude = 1e-3, .absolute = 1e-3}; };
  EXPECT_THAT(misleading_hints(bits, device, 8),
              ElementsAre(StartsWith("limit: 1 in the place of 0 changes the bits of variant portable in ")));

  Op chosen = hinted();  // each variant heeds its arguments alone, but one of them is wrong
  chosen.variants = {{"right",
                      [](const Problem& p, const DeviceInfo&) {
                        return p.attrs[1].integer == 0 ? Rejection{} : Rejection{"limit", p.attrs[1].integer, "0"};
                      },
                      mix().variants[0].plan},
                     {"halved", nullptr, [](const Problem& p, const DeviceInfo&) {
                        Mix::scale = p.attrs[0].real / 2;
                        return Plan();
                      }}};
  EXPECT_THAT(misleading_hints(chosen, device, 8), ElementsAre(HasSubstr("limit: 1 in the place of 0 makes a call wrong in ")));
}

}  // namespace
}  // namespace quern::testing
