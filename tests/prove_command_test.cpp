// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// `quern prove` accepts the kernels as they are, and finds faults that `quern check` lets pass because their effect is
// smaller than the rounding of the result. A process a fault: QN_SOURCE_DIR holds the changed source.
#include <gmock/gmock.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "full_sweep.h"
#include "quern/base/fs.h"
#include "quern/base/subprocess.h"
#include "quern/jit/sources.h"
#include "quern/op/schema.h"
#include "quern/testing/parallel.h"

namespace quern {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

/// A textual change, and a case of an op on which it shows in a proof but not in a check.
struct SmallFault {
  const char* name;
  const char* file;  ///< below quern/
  const char* from;  ///< occurs once
  const char* to;
  const char* op;
  const char* words;
  const char* message;  ///< part of what the proof says
};

const SmallFault kSmallFaults[] = {
    {"one of 70000 squares left out", "ops/norm/norm_row/kernel.cuh", "for (int j = 0; j < C.vector; ++j) squares = ptx::fma",
     "for (int j = h == 640; j < C.vector; ++j) squares = ptx::fma", "norm.rms_norm", "tokens=1 hidden=70000", "not exact"},
    {"eps added to the sum instead of the mean", "ops/norm/norm_row/kernel.cuh", "ptx::div(sum, f32(float(p.hidden))) + f32(p.eps)",
     "ptx::div(sum + f32(p.eps), f32(float(p.hidden)))", "norm.rms_norm", "tokens=3 hidden=1000", "not exact"},
    {"log2(e) to 5 digits", "kit/activation.cuh", "-1.4426950408889634f", "-1.4427f", "activation.silu_and_mul",
     "tokens=3 intermediate=1000", "not exact"},
    {"a chunk that begins one token late", "ops/attention/paged/split_kv/kernel.cuh", "s.begin = r.first + unit * chunk,",
     "s.begin = r.first + unit * chunk + (unit == 1),", "attention.paged",
     "variant=portable batch=1 capacity=6000 head_dim=64 gqa=1 batch_invariant=1 out_lse.present=0", "not exact"},
    {"partial outputs weighed by 1 + 2^-12", "ops/attention/paged/split_kv/combine.cuh", "out[c] = ptx::fma(part[c], weights[k], out[c])",
     "out[c] = ptx::fma(part[c] * f32(1.000244140625f), weights[k], out[c])", "attention.paged",
     "variant=portable batch=1 capacity=600 head_dim=64 gqa=1", "not exact"},
    {"splits added in an order that depends on the batch", "ops/gemm/dense/portable/sum_splits.cuh", "from + s * p.m * p.partial_stride",
     "from + (p.m == 1 ? p.splits - s : s) * p.m * p.partial_stride", "gemm.dense", "variant=portable m=2 n=8 k=8192 batch_invariant=1",
     "m index 0 is summed in another order alone than among 2"},
};

/// Calls f(0) .. f(count - 1), as many at a time as there are CPUs.
void for_all(size_t count, const std::function<void(size_t)>& f) {
  testing::in_parallel(i64(count), 1, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) f(size_t(i));
  });
}

class ProveCommand : public ::testing::Test {
 protected:
  void SetUp() override { root_ = make_private_folder(::testing::TempDir() + "quern-test."); }
  void TearDown() override {
    if (!root_.empty()) remove_folder(root_);
  }

  ProcessResult command(const std::string& source_dir, std::vector<std::string> words, const char* parameters) const {
    std::vector<std::string> all = {"timeout", "300", "env", "QN_CACHE_DIR=" + root_ + "/cache"};
    if (!source_dir.empty()) all.push_back("QN_SOURCE_DIR=" + source_dir);
    all.push_back(QN_CLI);
    all.insert(all.end(), words.begin(), words.end());
    std::istringstream in(parameters);
    for (std::string word; in >> word;) all.push_back(word);
    return run_process(all);
  }

  /// A folder with the changed source.
  std::string planted(const SmallFault& fault) const {
    const std::string name = std::string("quern/") + fault.file;
    const std::string folder = root_ + "/" + std::to_string(std::hash<std::string>()(fault.name));
    std::string text = jit::source_text(name);
    const size_t at = text.find(fault.from);
    EXPECT_NE(at, std::string::npos) << name << " does not hold what '" << fault.name << "' changes";
    if (at == std::string::npos) return "";
    EXPECT_EQ(text.find(fault.from, at + 1), std::string::npos) << fault.name << " is not unique in " << name;
    text.replace(at, std::string(fault.from).size(), fault.to);
    EXPECT_TRUE(make_folders((folder + "/" + name).substr(0, (folder + "/" + name).rfind('/'))));
    write_file(folder + "/" + name, text);
    return folder;
  }

  std::string root_;
};

TEST_F(ProveCommand, finds_what_a_tolerance_lets_pass) {
  constexpr size_t kCount = std::size(kSmallFaults);
  ProcessResult checks[kCount], proofs[kCount];
  for_all(kCount, [&](size_t i) {
    const SmallFault& fault = kSmallFaults[i];
    const std::string folder = planted(fault);
    checks[i] = command(folder, {"check", fault.op, "--sample", "1", "--device", "emu", "--seeds", "3", "--no-nvrtc"}, fault.words);
    proofs[i] = command(folder, {"prove", fault.op, "--ways", "1"}, fault.words);
  });
  for (size_t i = 0; i < kCount; ++i) {
    const SmallFault& fault = kSmallFaults[i];
    EXPECT_EQ(checks[i].status, 0) << fault.name << " is found by check:\n" << checks[i].output;
    EXPECT_EQ(proofs[i].status, 1) << fault.name << " is not found:\n" << proofs[i].output;
    EXPECT_THAT(proofs[i].output, HasSubstr(fault.message)) << fault.name;
  }
}

/// Sizes at which every op's paths are taken and that take little time.
const char* small_case(const std::string& op) {
  if (op == "gemm.dense") return "m=17 n=77 k=600";
  if (op.starts_with("gemm.linear_rowsum")) return "m=5 n=70 k=136";
  if (op == "gemm.scaled") return "m=5 n=24 k=136";
  if (op == "gemm.grouped_contiguous") return "m=40 groups=3 n=24 k=136";
  if (op == "gemm.grouped_masked") return "max_m=20 groups=3 n=24 k=136";
  if (op == "gemm.k_grouped") return "m=5 n=24 k=300 groups=3";
  if (op == "quant.per_block") return "n=5 k=136";
  if (op == "quant.transform_scales") return "m=5 groups=3";
  if (op == "quant.dequantise_fp4") return "m=5 pairs=68";
  if (op == "quant.packbits" || op == "quant.segment_packbits") return "";
  if (op.starts_with("quant.")) return "m=5 k=136";
  if (op == "attention.ragged") return "batch=2 queries=5 keys=40 head_dim=64 gqa=1";
  if (op == "attention.paged") return "batch=2 capacity=300 head_dim=64 gqa=1";
  if (op == "kv_cache.batch_indices_positions") return "nnz=5";
  if (op.starts_with("sampling.") || op.starts_with("topk.") || op.starts_with("logits.")) return "";
  if (op.starts_with("activation.")) return "tokens=5 intermediate=264";
  if (op == "kv_cache.copy_pages") return "copies=5 heads_kv=3";
  if (op == "elementwise.gather_rows") return "tokens=5 rows=9 hidden=264";
  if (op.starts_with("elementwise.")) return "tokens=5 hidden=264";
  if (op == "norm.rms_norm_heads") return "tokens=5 heads=3";
  if (op.starts_with("norm.")) return "tokens=5 hidden=2056";
  return "tokens=5";
}

TEST_F(ProveCommand, accepts_every_op_as_it_is) {
  const bool full = full_sweep();
  std::vector<std::string> ids;
  for (const auto& [id, op] : registry()) ids.push_back(id);
  std::vector<ProcessResult> results(ids.size());
  for_all(ids.size(), [&](size_t i) {
    results[i] =
        command("", {"prove", ids[i], "--json", "--ways", full ? "0" : "2", "--sample", full ? "5" : "1"}, full ? "" : small_case(ids[i]));
  });
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& id = ids[i];
    const ProcessResult& r = results[i];
    ASSERT_EQ(r.status, 0) << id << ": " << r.output;
    for (const Json& proof : Json::parse(r.output.substr(r.output.find('[')))) {
      EXPECT_EQ(proof.contains("skipped"), find_op(id).not_proved != nullptr) << id;
      if (proof.contains("skipped")) continue;
      EXPECT_TRUE(proof["exact"]) << id;
      EXPECT_TRUE(proof["repeatable"]) << id;
      EXPECT_GE(proof["plans"], 1) << id;
      for (const Json& rows : proof["rows"]) EXPECT_TRUE(!rows["promised"] || rows["holds"]) << id;
    }
  }
}

TEST_F(ProveCommand, skips_ops_whose_results_are_integers_and_says_why) {
  const ProcessResult one = command("", {"prove", "sampling.sample"}, "");
  EXPECT_EQ(one.status, 0) << one.output;
  EXPECT_EQ(one.output, std::string("sampling.sample skipped: ") + find_op("sampling.sample").not_proved + "\n");
  const ProcessResult family = command("", {"prove", "sampling", "--ways", "1"}, "");
  EXPECT_EQ(family.status, 0) << family.output;
  EXPECT_THAT(family.output, HasSubstr("skipped: " + std::string(find_op("sampling.sample").not_proved)));
}

TEST_F(ProveCommand, says_what_is_not_promised_and_does_not_hold) {
  // With this seed a request begins in the middle of a block's share, so that it is cut elsewhere than alone
  const ProcessResult r = command("", {"prove", "attention.paged", "--json", "--ways", "1", "--seed", "2"},
                                  "batch=7 capacity=600 head_dim=64 gqa=1 heads_kv=1");
  ASSERT_EQ(r.status, 0) << r.output;
  const Json rows = Json::parse(r.output.substr(r.output.find('[')))[0]["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows[0]["promised"]);
  EXPECT_FALSE(rows[0]["holds"]);
  EXPECT_TRUE(rows[1]["batch_invariant"]);
  EXPECT_TRUE(rows[1]["holds"]);
}

/// Other data is drawn for each trial, but not other lengths: a fault of some lengths is no coincidence.
TEST_F(ProveCommand, finds_what_goes_wrong_for_some_lengths_only) {
  const SmallFault fault = {"the last token of some requests",
                            "ops/attention/paged/split_kv/kernel.cuh",
                            "s.end = min_of(r.keys.end, s.begin + taken * kTile)",
                            "s.end = min_of(r.keys.end - i32(r.keys.end % 3 == 2), s.begin + taken * kTile)",
                            "attention.paged",
                            "variant=portable batch=7 capacity=300 head_dim=64 gqa=1",
                            "not exact"};
  const std::string folder = planted(fault);
  for (const char* seed : {"10", "11", "14"}) {
    const ProcessResult r = command(folder, {"prove", fault.op, "--ways", "1", "--seed", seed}, fault.words);
    EXPECT_EQ(r.status, 1) << r.output;
    EXPECT_THAT(r.output, HasSubstr(fault.message));
  }
}

TEST_F(ProveCommand, proves_each_value_that_is_named) {
  const ProcessResult r = command("", {"prove", "activation.silu_and_mul", "--json", "--ways", "1"}, "tokens=2,5");
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_EQ(Json::parse(r.output.substr(r.output.find('['))).size(), 2u);
}

/// Rows are cut out of the offsets as well.
TEST_F(ProveCommand, cuts_rows_out_of_a_csr_form) {
  const ProcessResult r =
      command("", {"prove", "attention.paged", "--json", "--ways", "1"}, "batch=5 capacity=300 head_dim=64 gqa=1 csr=1 batch_invariant=1");
  ASSERT_EQ(r.status, 0) << r.output;
  const Json rows = Json::parse(r.output.substr(r.output.find('[')))[0]["rows"];
  EXPECT_TRUE(rows[1]["holds"]);
  EXPECT_GT(rows[1]["batches"], 5);
}

TEST_F(ProveCommand, shows_the_order_of_sums) {
  const ProcessResult r = command("", {"prove", "norm.rms_norm", "--ways", "1"}, "tokens=2 hidden=4096");
  EXPECT_THAT(r.output, HasSubstr("sums  16 fma in a row; 32 of these added in pairs; 8 of these added in order"));
}

}  // namespace
}  // namespace quern
