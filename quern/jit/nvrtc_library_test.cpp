// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/jit/nvrtc_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace quern::jit {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class jit_nvrtc_library : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("nvrtc_library_" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string file(const std::string& name) {
    std::ofstream(root_ / name) << name;
    return (root_ / name).string();
  }
  fs::path root_;
};

TEST_F(jit_nvrtc_library, named_by_the_user_is_the_only_one) {
  SearchPlaces places;
  places.chosen = {{"CUDA_HOME", "/usr/local/cuda"}};
  const auto found = nvrtc_places("/my/libnvrtc.so", places);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].origin, "QN_JIT_NVRTC");
  EXPECT_EQ(found[0].path, "/my/libnvrtc.so");
}

TEST_F(jit_nvrtc_library, is_judged_by_the_builtins_beside_it) {
  const std::string path = file("libnvrtc.so.13");
  file("libnvrtc-builtins.alt.so.13.7");
  file("libnvrtc-builtins.so.13.2");
  const NvrtcCandidate c = judge_nvrtc({"pip", path}, 0);
  EXPECT_TRUE(c.accepted) << c.reason;
  EXPECT_EQ(c.major, 13);
  EXPECT_EQ(c.minor, 2);
  EXPECT_TRUE(judge_nvrtc({"pip", path}, 13000).accepted);
  const NvrtcCandidate above = judge_nvrtc({"pip", path}, 12080);
  EXPECT_FALSE(above.accepted);
  EXPECT_EQ(above.reason, "is 13.2, the driver supports CUDA 12.8 and would not load its kernels");
}

TEST_F(jit_nvrtc_library, older_than_12_8_is_rejected) {
  const std::string path = file("libnvrtc.so.12");
  file("libnvrtc-builtins.so.12.6");
  const NvrtcCandidate c = judge_nvrtc({"loaded", path}, 12090);
  EXPECT_FALSE(c.accepted);
  EXPECT_EQ(c.reason, "is 12.6, older than 12.8");
}

TEST_F(jit_nvrtc_library, without_builtins_is_judged_by_its_own_name) {
  file("libnvrtc.so.11.8.89");
  fs::create_symlink("libnvrtc.so.11.8.89", root_ / "libnvrtc.so.11");
  EXPECT_EQ(judge_nvrtc({"pip", (root_ / "libnvrtc.so.11").string()}, 0).reason, "is 11.8, older than 12.8");
  EXPECT_TRUE(judge_nvrtc({"pip", file("libnvrtc.so.12")}, 0).accepted) << "12.x may be new enough: loading tells";
}

TEST_F(jit_nvrtc_library, that_is_missing_or_does_not_load_says_so) {
  EXPECT_EQ(judge_nvrtc({"QN_JIT_NVRTC", "/nowhere/libnvrtc.so"}, 0).reason, "not found");
  NvrtcCandidate c = judge_nvrtc({"QN_JIT_NVRTC", file("libnvrtc.so.13")}, 0);
  EXPECT_TRUE(c.accepted);
  EXPECT_EQ(load_nvrtc(c, 0), nullptr);
  EXPECT_FALSE(c.accepted);
  EXPECT_THAT(c.reason, HasSubstr("does not load: "));
  NvrtcCandidate other = judge_nvrtc({"QN_JIT_NVRTC", "/proc/self/exe"}, 0);
  EXPECT_EQ(load_nvrtc(other, 0), nullptr) << "a program is no NVRTC";
}

TEST_F(jit_nvrtc_library, has_a_provenance_that_follows_its_bytes) {
  const std::string one = file("one"), two = file("two");
  EXPECT_EQ(nvrtc_provenance(one).size(), 32u);
  EXPECT_NE(nvrtc_provenance(one), nvrtc_provenance(two));
  EXPECT_EQ(nvrtc_provenance("/nowhere"), "");
}

}  // namespace
}  // namespace quern::jit
