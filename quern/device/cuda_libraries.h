// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Where the libraries of a CUDA toolkit (NVRTC, CUPTI, cuBLASLt) may lie: one order of search for all of them.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "quern/base/api.h"

namespace quern {

/// A toolkit library as its files are called.
struct CudaLibraryName {
  std::string stem;                      ///< "libnvrtc": the file is <stem>.so.<major>
  std::vector<std::string> pip_folders;  ///< folders of the pip tree: site-packages/nvidia/<folder>/lib
  std::vector<int> majors = {13, 12};    ///< in order of preference
};

/// The places of one machine and process; tests make their own.
struct SearchPlaces {
  struct Toolkit {
    std::string origin;  ///< "CUDA_HOME"
    std::string folder;
  };
  std::vector<std::string> loaded;     ///< files of the libraries in this process
  std::vector<Toolkit> chosen;         ///< CUDA_HOME, CUDA_PATH
  std::vector<std::string> pip_roots;  ///< folders that hold `nvidia`
  std::vector<Toolkit> installed;      ///< /usr/local/cuda, /usr/local/cuda-*
};
/// Read from the environment, the loaded libraries and the file system at each call.
SearchPlaces search_places();

struct LibraryPlace {
  std::string origin;  ///< "loaded", "CUDA_HOME", "pip", "loader", "/usr/local/cuda"
  std::string path;    ///< a bare file name for "loader": dlopen searches for it
};
/// Where the library may be, first choice first: loaded, chosen toolkits, pip trees, the loader's path, installed
/// toolkits. But for "loader" every path exists; a file found twice is named once. A chosen toolkit without the library
/// appears with the path at which it was expected, so that a report can say so.
std::vector<LibraryPlace> find_cuda_library(const CudaLibraryName& name, const SearchPlaces& places);

/// dlopen of the first place that works; nullptr with every reason in *why. Libraries are never closed.
void* open_cuda_library(const CudaLibraryName& name, std::string* path, std::string* why);

}  // namespace quern
