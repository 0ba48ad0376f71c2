// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/testing/model_run.h"

#include <algorithm>

#include "quern/base/env.h"
#include "quern/jit/kernel_table.h"
#include "quern/testing/call_chain.h"

namespace quern::testing {

namespace {

constexpr double kMostReferenceFlops = 1e8;  // a second of plain loops

struct Size {
  double bytes, flops;
};
/// Of the operands; operations that depend on contents, which are not there yet, are counted as one for each byte.
Size size_of(const ModelDraw& draw) {
  const ArgsStorage args = fake_args(*draw.op, draw.which);
  const double bytes = operand_bytes(*draw.op, args.get());
  if (draw.op->generate) return {bytes, bytes};
  const Problem problem = bind(*draw.op, args.get(), options_of(*draw.op, draw.which));
  return {bytes, cost_of(*draw.op, problem, args.get()).flops};
}

/// Index tensors of distinct values need an axis as large as they are.
void make_room(ModelDraw& draw) {
  const ArgsStorage args = fake_args(*draw.op, draw.which);
  for (size_t i = 0; i < draw.op->tensors.size(); ++i) {
    const TensorDef& t = draw.op->tensors[i];
    const TensorView& v = draw.op->tensor(args.get(), i);
    if (t.values.kind != Values::Kind::permutation || !v.present()) continue;
    Scalar& room = draw.which[name(t.values.axis)];
    room = max_of(i64(room), v.numel());
  }
}

/// A call of index `call` that fits; nothing in call's place when none of many draws does.
bool draw_that_fits(ModelCalls& calls, size_t call, const Size& most, ModelDraw& draw, Size& size) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    draw = calls.draw(call);
    make_room(draw);
    size = size_of(draw);
    if (size.bytes <= most.bytes && size.flops <= most.flops) return true;
  }
  return false;
}

/// Runs it; compares it where the reference is cheap. The text is empty where nothing is wrong.
ModelFailure run_one(const ModelDraw& draw, const Size& size, u64 seed, Device& device, bool& compared) {
  using Verdict = CheckResult::Verdict;
  try {
    CaseArgs args = CaseArgs::of_derived(*draw.op, draw.which, seed);
    RunOptions options = options_of(*draw.op, draw.which);
    DeviceArgs device_args(args, device);
    const bool compare = size.flops <= kMostReferenceFlops && size.bytes <= kMostReferenceFlops / 8;
    // A call that the op refuses has no truth, and its reference would write outside of its tensors
    bind(*draw.op, args.args(), options);
    std::vector<Truth> truths;
    if (compare) truths = truth_of(args);
    CallChain(device).run(*draw.op, device_args.args(), options);
    device_args.download();
    if (!compare) return {Verdict::right, ""};
    compared = true;
    const Comparison c = judge(args, truths, bind(*draw.op, args.args(), options));
    return c.ok ? ModelFailure{Verdict::right, ""} : ModelFailure{Verdict::wrong, "wrong: " + c.message};
  } catch (const Error& e) {
    return {verdict_of(e.kind()), std::string(name(e.kind())) + " error: " + e.what()};
  } catch (const std::bad_alloc&) { return {Verdict::wrong, "out of host memory"}; }
}

}  // namespace

ModelRunReport run_model(const Model& model, const ModelRunOptions& options, const std::function<void(const ModelDraw&)>& progress) {
  Device& device = *options.on.device;
  const bool emulated = device.info().emulated;
  const Size most = {options.most_bytes ? options.most_bytes
                     : emulated         ? 0x1p26
                                        : 0x1p29,
                     options.most_flops ? options.most_flops
                     : emulated         ? 1e9
                                        : 1e300};
  ModelCalls calls(model, options.seed);
  const jit::Counters before = jit::counters();
  ModelRunReport report;
  std::vector<bool> too_large(calls.size());
  for (i64 i = 0, at = 0; i < options.calls && at < options.calls * 64; ++at) {
    const size_t call = size_t(at) % calls.size();
    if (too_large[call]) continue;
    ModelDraw draw;
    Size size{};
    if (!draw_that_fits(calls, call, most, draw, size)) {
      too_large[call] = true;
      report.left_out[calls.call(call).does] = calls.call(call).op + ", as " + case_text(*draw.op, draw.which);
      continue;
    }
    bool compared = false;
    const u64 seed = options.seed + u64(i);
    const ModelFailure failure = run_one(draw, size, seed, device, compared);
    const std::string again =
        "quern run " + draw.op->id + " " + case_text(*draw.op, draw.which) + " --seed " + std::to_string(seed) + " " + options.on.words;
    if (!failure.text.empty())
      report.failures.push_back({failure.verdict, draw.call->does + ": " + with_environment(again) + "\n  " + failure.text});
    report.compared += compared;
    report.calls = ++i;
    if (progress) progress(draw);
  }
  const jit::Counters after = jit::counters();
  report.compiled = after.compiled - before.compiled;
  report.from_disk = after.from_disk - before.from_disk;
  return report;
}

}  // namespace quern::testing
