// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Rows that lie 2^31 elements apart: an offset that a kernel computes in 32 bits leads to a place near the first row. The memory between
// rows is reserved, and never touched.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "quern/device/emulated.h"
#include "quern/op/tensor_bytes.h"
#include "quern/testing/check.h"
#include "quern/testing/pairwise.h"

namespace quern::testing {
namespace {

/// Address space for a tensor; pages that nobody touches take no memory.
class Reserved {
 public:
  explicit Reserved(size_t bytes) : bytes_(bytes) {
    memory_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) memory_ = nullptr;
  }
  ~Reserved() {
    if (memory_) ::munmap(memory_, bytes_);
  }
  Reserved(const Reserved&) = delete;
  void* get() const { return memory_; }

 private:
  size_t bytes_;
  void* memory_;
};

/// The dim whose steps are the longest, beside the one along which dense rows lie: its elements can be moved apart. -1: there is none.
int outer_dim(const TensorView& v) {
  if (!v.present() || v.numel() == 0) return -1;
  int dense = v.rank - 1, outer = -1;
  for (int d = 0; d < v.rank && v.strides[v.rank - 1] != 1; ++d)
    if (v.strides[d] == 1) dense = d;  // a transposed operand
  for (int d = 0; d < v.rank; ++d)
    if (d != dense && v.shape[d] >= 2 && (outer < 0 || v.strides[d] > v.strides[outer])) outer = d;
  return outer;
}

/// The same call with the rows of each tensor 2^31 elements apart, and what they had between them.
class FarArgs {
 public:
  explicit FarArgs(CaseArgs& near) : op_(near.op()), args(op_) {
    std::memcpy(args.get(), near.args(), op_.args_bytes);
    for (size_t i = 0; i < op_.tensors.size(); ++i) {
      const TensorView from = near.tensor(i);
      const int outer = outer_dim(from);
      if (outer < 0 || near.holder(i) != i) continue;
      TensorView& to = op_.tensor(args.get(), i);
      to.strides[outer] = (i64(1) << 31) + round_up<i64>(from.strides[outer], 64);
      auto memory = std::make_unique<Reserved>(size_t(to.extent() * size_of(to.dtype)));
      if (!memory->get()) {
        no_room = true;
        return;
      }
      to.data = memory->get();
      copy_elements(from, to);
      blocks_.push_back(std::move(memory));
    }
  }

 private:
  const Op& op_;
  std::vector<std::unique_ptr<Reserved>> blocks_;

 public:
  ArgsStorage args;
  bool no_room = false;
};

/// Small cases, without tensors in the place of others and without `packed` ones, which are contiguous, that together have rows of every
/// tensor that has some in any case, and that each variant runs one of.
std::vector<Case> cases_of(const Op& op, const DeviceInfo& device) {
  std::vector<Case> chosen;
  std::set<size_t> seen;
  std::set<std::string> able;
  for (const Case& given : pairwise(op.cases, [](const Case&) { return true; })) {
    ArgsStorage args = fake_args(op, derived(op, given));
    if (operand_bytes(op, args.get()) > 1 << 20 || std::any_of(given.begin(), given.end(), [](const auto& word) {
          return (word.first.ends_with(".in_place") || word.first == "packed") && word.second != 0;
        }))
      continue;
    const size_t before = seen.size();
    for (size_t i = 0; i < op.tensors.size(); ++i)
      if (outer_dim(op.tensor(args.get(), i)) >= 0) seen.insert(i);
    bool more = seen.size() > before;
    const Problem problem = bind(op, args.get(), options_of(op, derived(op, given)));
    for (const Variant& v : op.variants) more = (v.can(problem, device) && able.insert(v.name).second) || more;
    if (more) chosen.push_back(given);
  }
  return chosen;
}

class FarRows : public ::testing::TestWithParam<std::string> {
 protected:
  /// Whether the variant, or plan's choice where it has no name, ran the case.
  static bool ran(const Op& op, const Case& given, const std::string& variant, Device& device) {
    CaseArgs near(op, given, 1);
    const std::vector<Truth> truths = truth_of(near);  // before the call updates what lies where it was
    FarArgs far(near);
    EXPECT_FALSE(far.no_room) << "this test reserves some TB of address space";
    RunOptions options = options_of(op, near.which());
    options.device = &device;
    if (!variant.empty()) options.variant = variant.c_str();
    try {
      run(op, far.args.get(), options);
      device.synchronize({});
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();  // the variant, for reasons of its own
      return false;
    }
    const Problem problem = bind(op, far.args.get(), options);
    for (const Truth& t : truths) {
      const TensorView& v = op.tensor(far.args.get(), t.tensor);
      std::vector<char> bytes(size_t(v.numel() * size_of(v.dtype)));
      const TensorView packed(bytes.data(), v.dtype, v.shape, v.rank);
      copy_elements(v, packed);
      const Comparison c = compare(packed, t.values, t.magnitudes, budget_of(op, problem, t.tensor));
      EXPECT_TRUE(c.ok) << op.id << " " << variant << " " << case_text(op, near.given()) << ": " << op.tensors[t.tensor].name << " "
                        << c.message;
    }
    return true;
  }
};

TEST_P(FarRows, are_found) {
  const Op& op = find_op(GetParam());
  const std::unique_ptr<Device> device = make_emulated_device(device_info_of(Arch{}), {});
  std::set<std::string> variants = {""};
  for (const Variant& v : op.variants) variants.insert(v.name);
  std::set<std::string> did;
  const std::vector<Case> cases = cases_of(op, device->info());
  for (const Case& given : cases)
    for (const std::string& variant : variants)
      if (ran(op, given, variant, *device)) did.insert(variant);
      else EXPECT_NE(variant, "") << op.id << " refuses " << case_text(op, given) << " with rows far apart";
  EXPECT_EQ(did, cases.empty() ? std::set<std::string>() : variants);
}

std::vector<std::string> ids() {
  std::vector<std::string> all;
  for (const auto& [id, op] : registry())
    if (!id.starts_with("planted.")) all.push_back(id);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Ops, FarRows, ::testing::ValuesIn(ids()), [](const auto& info) {
  std::string name = info.param;
  name[name.find('.')] = '_';
  return name;
});

}  // namespace
}  // namespace quern::testing
