// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/device/cuda_libraries.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace quern {
namespace {

namespace fs = std::filesystem;

class device_cuda_libraries : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("cuda_libraries_" + std::to_string(getpid()));
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string file(const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << path;
    return (root_ / path).string();
  }
  std::string folder(const std::string& path) { return (root_ / path).string(); }

  static std::vector<std::string> paths(const std::vector<LibraryPlace>& found) {
    std::vector<std::string> list;
    for (const LibraryPlace& place : found) list.push_back(place.origin + "=" + place.path);
    return list;
  }

  CudaLibraryName nvrtc_ = {"libnvrtc", {"cu13", "cuda_nvrtc"}};
  fs::path root_;
};

TEST_F(device_cuda_libraries, come_in_the_stated_order) {
  SearchPlaces places;
  places.loaded = {"/lib/libc.so.6", file("torch/libnvrtc-builtins.so.12.8"), file("torch/libnvrtc.so.12")};
  places.chosen = {{"CUDA_HOME", folder("toolkit")}};
  places.pip_roots = {folder("site")};
  places.installed = {{"/usr/local/cuda", folder("local")}};
  const std::string home = file("toolkit/lib64/libnvrtc.so.13"), new_wheel = file("site/nvidia/cu13/lib/libnvrtc.so.13"),
                    old_wheel = file("site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"), local = file("local/lib64/libnvrtc.so.12");
  EXPECT_EQ(
      paths(find_cuda_library(nvrtc_, places)),
      (std::vector<std::string>{"loaded=" + folder("torch/libnvrtc.so.12"), "CUDA_HOME=" + home, "pip=" + new_wheel, "pip=" + old_wheel,
                                "loader=libnvrtc.so.13", "loader=libnvrtc.so.12", "loader=libnvrtc.so", "/usr/local/cuda=" + local}));
}

TEST_F(device_cuda_libraries, prefer_the_newer_major_and_name_a_file_once) {
  SearchPlaces places;
  file("toolkit/lib64/libnvrtc.so.12");
  const std::string newer = file("toolkit/lib64/libnvrtc.so.13");
  fs::create_directory_symlink(folder("toolkit"), folder("link"));
  places.chosen = {{"CUDA_HOME", folder("toolkit")}, {"CUDA_PATH", folder("link")}};
  const auto found = paths(find_cuda_library(nvrtc_, places));
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0], "CUDA_HOME=" + newer);
}

TEST_F(device_cuda_libraries, name_a_chosen_toolkit_that_lacks_the_library) {
  SearchPlaces places;
  places.chosen = {{"CUDA_PATH", folder("empty")}};
  EXPECT_EQ(paths(find_cuda_library(nvrtc_, places))[0], "CUDA_PATH=" + folder("empty/lib64/libnvrtc.so"));
}

TEST_F(device_cuda_libraries, are_found_in_the_cupti_folder_of_a_toolkit) {
  SearchPlaces places;
  places.installed = {{"/usr/local/cuda", folder("local")}};
  const std::string cupti = file("local/extras/CUPTI/lib64/libcupti.so.12");
  EXPECT_EQ(paths(find_cuda_library({"libcupti", {"cuda_cupti"}}, places)).back(), "/usr/local/cuda=" + cupti);
}

TEST_F(device_cuda_libraries, are_sought_in_a_virtual_environment) {
  fs::create_directories(folder("venv/lib/python3.11/site-packages/nvidia"));
  const char* before = std::getenv("VIRTUAL_ENV");
  const std::string kept = before ? before : "";
  setenv("VIRTUAL_ENV", folder("venv").c_str(), 1);
  const SearchPlaces places = search_places();
  before ? setenv("VIRTUAL_ENV", kept.c_str(), 1) : unsetenv("VIRTUAL_ENV");
  ASSERT_FALSE(places.pip_roots.empty());
  EXPECT_EQ(places.pip_roots[0], folder("venv/lib/python3.11/site-packages"));
}

TEST_F(device_cuda_libraries, that_do_not_exist_are_reported_place_by_place) {
  std::string why;
  EXPECT_EQ(open_cuda_library({"libquernnosuch", {}}, nullptr, &why), nullptr);
  EXPECT_NE(why.find("loader: libquernnosuch.so.13"), std::string::npos) << why;
}

}  // namespace
}  // namespace quern
