// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/device/cuda_libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "quern/base/env.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Sub-folders whose name starts with `prefix`, newest version first by name.
std::vector<fs::path> folders_in(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().rfind(prefix, 0) == 0 && is_folder(it->path())) found.push_back(it->path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

void add_root(std::vector<std::string>& roots, const fs::path& packages) {
  if (!is_folder(packages / "nvidia")) return;
  if (std::find(roots.begin(), roots.end(), packages.string()) == roots.end()) roots.push_back(packages.string());
}

// The package folders of a Python prefix; found by name, since running an interpreter costs 20 ms and may fail.
void add_prefix(std::vector<std::string>& roots, const fs::path& prefix) {
  if (prefix.empty()) return;
  for (const fs::path& lib : {prefix / "lib", prefix / "lib64"})
    for (const fs::path& python : folders_in(lib, "python3"))
      for (const char* packages : {"site-packages", "dist-packages"}) add_root(roots, python / packages);
}

std::vector<std::string> pip_roots() {
  std::vector<std::string> roots;
  add_prefix(roots, system_variable("VIRTUAL_ENV"));
  add_prefix(roots, system_variable("CONDA_PREFIX"));
  // Inside a wheel, quern lies at site-packages/quern/[lib/]libquern.so, with `nvidia` two or three folders up.
  Dl_info self = {};
  std::error_code error;
  if (dladdr(reinterpret_cast<const void*>(&is_file), &self) && self.dli_fname) {
    fs::path folder = fs::absolute(self.dli_fname, error).parent_path();
    for (int up = 0; up < 3 && folder.has_relative_path(); ++up) add_root(roots, folder = folder.parent_path());
  }
  // The interpreter that loaded us: <prefix>/bin/python3.
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error && program.filename().string().rfind("python", 0) == 0) add_prefix(roots, program.parent_path().parent_path());
  const fs::path home = home_folder();
  if (!home.empty()) {
    add_prefix(roots, home / ".local");
    for (const fs::path& version : folders_in(home / ".pyenv" / "versions", "")) add_prefix(roots, version);
  }
  for (const char* prefix : {"/usr/local", "/usr", "/opt/conda", "/opt/venv"}) add_prefix(roots, prefix);
  return roots;
}

int remember_loaded(dl_phdr_info* info, size_t, void* list) {
  if (info->dlpi_name && *info->dlpi_name) static_cast<std::vector<std::string>*>(list)->push_back(info->dlpi_name);
  return 0;
}

// "libnvrtc.so.13" or "libnvrtc.so", not "libnvrtc-builtins.so.13.0" and not "libnvrtc.alt.so.13".
bool is_named(const std::string& path, const CudaLibraryName& name) {
  const std::string file = fs::path(path).filename().string();
  const std::string prefix = name.stem + ".so";
  return file == prefix || file.rfind(prefix + ".", 0) == 0;
}

class Places {
 public:
  void add(const std::string& origin, const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(path, error);
    if (seen_.insert(error ? path.string() : real.string()).second) list_.push_back({origin, path.string()});
  }
  // The library in the first folder that has it; false when none does.
  bool add_first(const std::string& origin, const CudaLibraryName& name, const std::vector<fs::path>& folders) {
    for (const int major : name.majors) {
      for (const fs::path& folder : folders) {
        const fs::path path = folder / (name.stem + ".so." + std::to_string(major));
        if (!is_file(path)) continue;
        add(origin, path);
        return true;
      }
    }
    return false;
  }
  std::vector<LibraryPlace> take() { return std::move(list_); }
  void add_name(const std::string& file) { list_.push_back({"loader", file}); }

 private:
  std::vector<LibraryPlace> list_;
  std::set<std::string> seen_;
};

std::vector<fs::path> toolkit_folders(const std::string& toolkit) {
  const fs::path root = toolkit;
  return {root / "lib64", root / "lib", root / "extras" / "CUPTI" / "lib64", root / "targets/x86_64-linux/lib",
          root / "targets/sbsa-linux/lib"};
}

}  // namespace

SearchPlaces search_places() {
  SearchPlaces places;
  dl_iterate_phdr(remember_loaded, &places.loaded);
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string folder = system_variable(name); !folder.empty()) places.chosen.push_back({name, folder});
  places.pip_roots = pip_roots();
  places.installed.push_back({"/usr/local/cuda", "/usr/local/cuda"});
  for (const fs::path& folder : folders_in("/usr/local", "cuda-")) places.installed.push_back({folder.string(), folder.string()});
  return places;
}

std::vector<LibraryPlace> find_cuda_library(const CudaLibraryName& name, const SearchPlaces& places) {
  Places found;
  for (const std::string& path : places.loaded)
    if (is_named(path, name)) found.add("loaded", path);
  for (const SearchPlaces::Toolkit& toolkit : places.chosen)
    if (!found.add_first(toolkit.origin, name, toolkit_folders(toolkit.folder)))
      found.add(toolkit.origin, fs::path(toolkit.folder) / "lib64" / (name.stem + ".so"));
  for (const std::string& root : places.pip_roots)
    for (const std::string& folder : name.pip_folders) found.add_first("pip", name, {fs::path(root) / "nvidia" / folder / "lib"});
  for (const int major : name.majors) found.add_name(name.stem + ".so." + std::to_string(major));
  found.add_name(name.stem + ".so");
  for (const SearchPlaces::Toolkit& toolkit : places.installed) found.add_first(toolkit.origin, name, toolkit_folders(toolkit.folder));
  return found.take();
}

void* open_cuda_library(const CudaLibraryName& name, std::string* path, std::string* why) {
  std::string reasons;
  for (const LibraryPlace& place : find_cuda_library(name, search_places())) {
    if (void* handle = dlopen(place.path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      if (path) *path = place.path;
      return handle;
    }
    const char* reason = dlerror();
    reasons += (reasons.empty() ? "" : "; ") + place.origin + ": " + (reason ? reason : "does not load");
  }
  if (why) *why = reasons;
  return nullptr;
}

}  // namespace quern
