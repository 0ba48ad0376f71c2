// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// --load takes a library with an op that was built with the headers of this libquern, and refuses one of other headers before anything of
// its op is read.
#include <gmock/gmock.h>

#include "cli_process.h"
#include "quern/base/fs.h"
#include "quern/base/version.h"

namespace quern {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// Of everything that a schema hands to libquern one.
const char* const kOp = R"(
#include "quern/op/schema.h"
namespace mine {
struct ScaleArgs {
  quern::TensorView out, x;
  float factor = 2;
};
static quern::Plan plan(const quern::Problem&, const quern::DeviceInfo&) { return {}; }
QN_OP(scale, ScaleArgs, "mine.scale")
    .doc("out = x * factor")
    .in("x", &ScaleArgs::x, "tokens hidden", {quern::DType::f32})
    .strided()
    .out("out", &ScaleArgs::out, "tokens hidden", quern::like("x"))
    .may_be("x")
    .attr("factor", &ScaleArgs::factor)
    .meaning("what x is multiplied by")
    .hint()
    .rows(quern::Axis::tokens)
    .plan(plan)
    .cases({{"tokens", {3}}, {"hidden", {8}}})
    .bench({{{"tokens", 3}, {"hidden", 8}}});
}
)";

class Headers : public ::testing::Test {
 protected:
  void SetUp() override { root_ = make_private_folder(::testing::TempDir() + "quern-test."); }
  void TearDown() override { remove_folder(root_); }

  /// `quern --load LIBRARY info mine.scale`, the library built with the headers but for one text in one of them.
  ProcessResult info_with(const std::string& header, const std::string& from, const std::string& to) {
    const std::string path = root_ + "/" + header;
    std::string text = read_file(QN_ROOT "/" + header).value();
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << header << " has no " << from;
    make_folders(path.substr(0, path.rfind('/')));
    write_file(path, text.replace(at, from.size(), to));
    write_file(root_ + "/op.cpp", op_);
    const std::string library = root_ + "/libop.so", quern = QN_LIBRARY, folder = quern.substr(0, quern.rfind('/'));
    const ProcessResult built = run_process({"g++", "-std=c++20", "-O1", "-fPIC", "-shared", "-I" + root_, "-I" QN_ROOT, root_ + "/op.cpp",
                                             "-L" + folder, "-lquern", "-Wl,-rpath," + folder, "-o", library});
    EXPECT_EQ(built.status, 0) << built.output;
    return command({"--load", library, "info", "mine.scale"});
  }

  std::string root_, op_ = kOp;
};

TEST_F(Headers, of_this_library_are_taken) {
  const ProcessResult info = info_with("quern/op/run.h", "#pragma once", "#pragma once");
  EXPECT_EQ(info.status, 0) << info.output;
  EXPECT_THAT(info.output, AllOf(HasSubstr("out = x * factor"), HasSubstr("what x is multiplied by")));
}

TEST_F(Headers, of_another_layout_are_refused) {
  const char* const changes[][3] = {{"quern/op/run.h", "bool skip_check = false;", "bool skip_check = false; void* more[2];"},
                                    {"quern/op/schema.h", "struct TensorDef {", "struct TensorDef { std::string more;"},
                                    {"quern/op/schema.h", "  bool hint = false; ", "  std::string more; bool hint = false; "}};
  for (const auto& [header, from, to] : changes) {
    const ProcessResult info = info_with(header, from, to);
    EXPECT_EQ(info.status, 2) << to;
    EXPECT_THAT(
        info.output,
        ContainsRegex(
            "^quern: value error: `--load` is .*/libop.so, whose `op` is mine.scale, built against quern's headers of version " QN_VERSION
            ", layout [0-9a-f]{16}, "
            "expected version " QN_VERSION ", layout [0-9a-f]{16}, those of this libquern: build it again\n$"));
    remove_folder(root_ + "/quern");
  }
}

/// Words come at the end of the glossary: a library that knows more or fewer of them than libquern is taken.
TEST_F(Headers, of_a_longer_or_shorter_glossary_are_taken) {
  const std::string last = "  word(max_m, \"rows that a matrix of a grouped GEMM has room for\")";
  const std::string changes[][2] = {{last, last + " word(joined_later, \"of a later version\")"}, {" \\\n" + last, ""}};
  for (const auto& [from, to] : changes) {
    const ProcessResult info = info_with("quern/op/axis.h", from, to);
    EXPECT_EQ(info.status, 0) << info.output;
    EXPECT_THAT(info.output, HasSubstr("what x is multiplied by"));
    remove_folder(root_ + "/quern");
  }
}

TEST_F(Headers, of_an_exchanged_glossary_are_refused) {
  const ProcessResult info = info_with("quern/op/axis.h", "word(intermediate, ", "word(outermost, \"another\") word(intermediate, ");
  EXPECT_EQ(info.status, 2) << info.output;
  EXPECT_THAT(info.output, HasSubstr("`op` is mine.scale, built with the axis outermost by number 2, which is intermediate here"));
}

/// What is wrong in a schema is an error of whoever loads the library, not the end of the process.
TEST_F(Headers, an_op_that_cannot_be_meant_is_refused) {
  op_ = kOp;
  const std::string dims = "\"tokens hidden\", quern::like";
  op_.replace(op_.find(dims), dims.size(), "\"tokens*factor hidden\", quern::like");
  const ProcessResult info = info_with("quern/op/run.h", "#pragma once", "#pragma once");
  EXPECT_EQ(info.status, 2) << info.output;
  // The first fault is told: the attribute `factor`, an axis by now, follows
  EXPECT_THAT(info.output, HasSubstr("`op` is mine.scale: mine.scale: `out` may be `x`, but an output may be an input of its dims"));
}

TEST_F(Headers, of_another_version_are_refused) {
  const ProcessResult info = info_with("quern/base/version.h", "\"" QN_VERSION "\"", "\"0.0.9\"");
  EXPECT_EQ(info.status, 2);
  EXPECT_THAT(info.output, AllOf(HasSubstr("of version 0.0.9, layout "), HasSubstr("expected version " QN_VERSION ", layout ")));
}

}  // namespace
}  // namespace quern
