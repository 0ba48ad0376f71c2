// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// The approximate instructions against the errors that the PTX ISA documents (9.7.3), in every world. A GPU may be better;
// the emulated device must be as bad.
#include <cfloat>
#include <cmath>
#include <functional>

#include "quern/kit/conform/runner.h"

namespace quern::conform {
namespace {

class Approximations : public Conform {
 protected:
  static bool emulated() { return !GetParam().compiler.empty(); }
};
INSTANTIATE_TEST_SUITE_P(Worlds, Approximations, ::testing::ValuesIn(worlds(0)), world_name);

/// Distance of neighbouring f32 at a normal number.
double ulp(double x) { return std::ldexp(1.0, std::ilogb(x) - 23); }

struct Instruction {
  const char* name;
  std::function<double(double)> exact;
  std::function<double(double x, double exact)> bound;
  std::vector<double> exactly;  ///< arguments whose result has no error
};

/// The functions of math_all, as it applies them.
std::vector<Instruction> of_all() {
  return {{"ex2", [](double x) { return std::exp2(x); }, [](double, double y) { return 2 * ulp(y); }, {-126, -7, 0, 1, 30, 127}},
          {"lg2",
           [](double x) { return std::log2(std::fabs(x)); },
           [](double x, double y) { return std::fabs(x) > 0.5 && std::fabs(x) < 2 ? 0x1p-22 : 0x1p-22 * std::fabs(y); },
           {1}},
          {"rcp", [](double x) { return 1 / x; }, [](double, double y) { return ulp(y); }, {-0x1p-120, 0.5, 1, -1, 4, 0x1p120}},
          {"rsqrt",
           [](double x) { return 1 / std::sqrt(std::fabs(x)); },
           [](double, double y) { return std::exp2(-22.9) * y; },
           {0x1p-120, 0.25, 1, 4, 1024}},
          {"tanh", [](double x) { return std::tanh(x); }, [](double, double y) { return 0x1p-11 * std::fabs(y); }, {}}};
}
/// The last functions of math_more.
std::vector<Instruction> of_more() {
  const auto bound = [](double x, double) { return std::exp2(std::fabs(x) <= 6.2831853 ? -20.5 : -14.7); };
  return {{"sin", [](double x) { return std::sin(x); }, bound, {}}, {"cos", [](double x) { return std::cos(x); }, bound, {0}}};
}

/// Arguments whose results are normal numbers: evenly spaced up to `far`, and of every size up to there.
std::vector<float> arguments(float far) {
  std::vector<float> in;
  for (int i = -1000; i <= 1000; ++i) in.push_back(far * (float(i) + 0.37f) / 1001);
  for (float x = 0x1p-60f; x < far; x *= 1.05f) in.push_back(x), in.push_back(-x);
  return in;
}

/// `out` has `columns` results an argument, the instruction's in column `at`.
void expect_error(const Instruction& f, const std::vector<float>& in, const std::vector<float>& out, size_t columns, size_t at,
                  bool as_bad) {
  double worst = 0;
  int above = 0, below = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double x = in[i], y = f.exact(x), error = double(out[columns * i + at]) - y;
    const double share = std::fabs(error) / f.bound(x, y);
    EXPECT_LE(share, 1.0000001) << f.name << " of " << x << " is " << out[columns * i + at];
    worst = std::max(worst, share);
    above += share > 0.5 && error > 0, below += share > 0.5 && error < 0;
  }
  if (!as_bad) return;
  EXPECT_GE(worst, 0.9) << f.name << " is better than a GPU's may be";
  EXPECT_GE(std::min(above, below), int(in.size() / 10)) << f.name << " errs to one side";
}

TEST_P(Approximations, err_as_documented) {
  const std::vector<float> in = arguments(25), angles = arguments(300);
  std::vector<float> out(9 * in.size(), NAN), more(6 * angles.size(), NAN);
  Kernel all(GetParam(), kernel_text("memory.cuh", "math_all", 64), 64, 0);
  all.run(in, out, i32(in.size()));
  const std::vector<Instruction> some = of_all(), others = of_more();
  for (size_t k = 0; k < some.size(); ++k) expect_error(some[k], in, out, 9, k, emulated());
  Kernel rest(GetParam(), kernel_text("memory.cuh", "math_more", 64), 64, 0);
  rest.run(angles, more, i32(angles.size()));
  for (size_t k = 0; k < others.size(); ++k) expect_error(others[k], angles, more, 6, 4 + k, emulated());
}

TEST_P(Approximations, special_values_are_exact) {
  const std::vector<Instruction> some = of_all();
  std::vector<float> in;
  for (const Instruction& f : some) in.insert(in.end(), f.exactly.begin(), f.exactly.end());
  const size_t first = in.size();
  for (const float x : {0.f, INFINITY, NAN, 0x1p-130f, FLT_MAX, -INFINITY}) in.push_back(x);
  std::vector<float> out(9 * in.size(), -7);
  Kernel kernel(GetParam(), kernel_text("memory.cuh", "math_all", 64), 64, 0);
  kernel.run(in, out, i32(in.size()));
  size_t i = 0;
  for (size_t k = 0; k < some.size(); ++k)
    for (const double x : some[k].exactly) EXPECT_EQ(double(out[9 * i++ + k]), some[k].exact(x)) << some[k].name << " of " << x;
  const float* got = &out[9 * first];
  const float expected[][5] = {{1, -INFINITY, INFINITY, INFINITY, 0},  // ex2, lg2, rcp, rsqrt, tanh of 0
                               {INFINITY, INFINITY, 0, 0, 1},          // of infinity
                               {NAN, NAN, NAN, NAN, NAN},
                               {1, -INFINITY, INFINITY, INFINITY, got[9 * 3 + 4]},  // of a subnormal; FLT_MAX
                               {INFINITY, got[9 * 4 + 1], 0, got[9 * 4 + 3], got[9 * 4 + 4]},
                               {0, INFINITY, 0, 0, -1}};
  EXPECT_NEAR(double(got[9 * 3 + 4]), 0x1p-130, 0x1p-141) << "tanh.approx.f32 does not flush";
  for (size_t which = 0; which < std::size(expected); ++which)
    for (size_t k = 0; k < 5; ++k) {
      const float value = got[9 * which + k], wanted = expected[which][k];
      EXPECT_TRUE(std::isnan(wanted) ? std::isnan(value) : value == wanted)
          << some[k].name << " of special value " << which << " is " << value;
    }
}

}  // namespace
}  // namespace quern::conform
