// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/bench/cublas.h"

#include <dlfcn.h>

#include <cstring>
#include <map>
#include <mutex>

#include "quern/base/error.h"
#include "quern/bench/cublas_abi.h"
#include "quern/device/cuda_device.h"
#include "quern/device/cuda_libraries.h"

namespace quern {
namespace {

struct CublasLt {
  i32 (*create)(void**) = nullptr;
  size_t (*get_version)() = nullptr;
  const char* (*get_status_name)(i32) = nullptr;
  i32 (*desc_create)(void**, i32 compute, i32 scale) = nullptr;
  i32 (*desc_destroy)(void*) = nullptr;
  i32 (*desc_set)(void*, i32 attribute, const void*, size_t) = nullptr;
  i32 (*layout_create)(void**, i32 type, u64 rows, u64 cols, i64 ld) = nullptr;
  i32 (*layout_destroy)(void*) = nullptr;
  i32 (*preference_create)(void**) = nullptr;
  i32 (*preference_destroy)(void*) = nullptr;
  i32 (*preference_set)(void*, i32 attribute, const void*, size_t) = nullptr;
  i32 (*get_heuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference, int wanted, cublas::HeuristicResult*,
                       int* found) = nullptr;
  i32 (*matmul)(void* handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b, void* b_layout, const void* beta,
                const void* c, void* c_layout, void* d, void* d_layout, const void* algorithm, void* workspace, size_t workspace_bytes,
                void* stream) = nullptr;
  std::string path;
  std::string why;  // empty: usable
};

template <class F>
bool take(void* handle, const char* symbol, F& slot) {
  slot = reinterpret_cast<F>(dlsym(handle, symbol));
  return slot != nullptr;
}

CublasLt open_cublaslt() {
  CublasLt c;
  if (cuda_device_count(&c.why) == 0) return c;
  c.why.clear();
  void* l = open_cuda_library({"libcublasLt", {"cu13", "cublas"}}, &c.path, &c.why);
  if (!l) return c;
  const bool complete =
      take(l, "cublasLtCreate", c.create) && take(l, "cublasLtGetVersion", c.get_version) &&
      take(l, "cublasLtGetStatusName", c.get_status_name) && take(l, "cublasLtMatmulDescCreate", c.desc_create) &&
      take(l, "cublasLtMatmulDescDestroy", c.desc_destroy) && take(l, "cublasLtMatmulDescSetAttribute", c.desc_set) &&
      take(l, "cublasLtMatrixLayoutCreate", c.layout_create) && take(l, "cublasLtMatrixLayoutDestroy", c.layout_destroy) &&
      take(l, "cublasLtMatmulPreferenceCreate", c.preference_create) && take(l, "cublasLtMatmulPreferenceDestroy", c.preference_destroy) &&
      take(l, "cublasLtMatmulPreferenceSetAttribute", c.preference_set) && take(l, "cublasLtMatmulAlgoGetHeuristic", c.get_heuristic) &&
      take(l, "cublasLtMatmul", c.matmul);
  if (!complete) c.why = c.path + " lacks functions of cuBLASLt 12";
  return c;
}

const CublasLt& cublaslt() {
  static const CublasLt* const library = new CublasLt(open_cublaslt());
  return *library;
}

void check(i32 status, const std::string& what) {
  if (status != cublas::kSuccess) throw Error(ErrorKind::device, what + " failed: " + cublaslt().get_status_name(status));
}

// A handle belongs to the device whose context was current when it was made; never destroyed.
void* handle_of(Device& device) {
  static std::mutex mutex;
  static auto* const handles = new std::map<int, void*>;
  const std::lock_guard lock(mutex);
  void*& handle = (*handles)[device.id().index];
  if (!handle) check(cublaslt().create(&handle), "cublasLtCreate");
  return handle;
}

i32 data_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return cublas::kR32F;
    case DType::f16: return cublas::kR16F;
    case DType::bf16: return cublas::kR16BF;
    case DType::e4m3: return cublas::kR8FE4M3;
    case DType::e5m2: return cublas::kR8FE5M2;
    default: throw Error(ErrorKind::type, std::string("cuBLASLt: no product of ") + name(dtype));
  }
}

}  // namespace

bool cublaslt_available(std::string* why) {
  if (why) *why = cublaslt().why;
  return cublaslt().why.empty();
}

std::string CublasLtMatmul::description() {
  if (!cublaslt_available()) return "cuBLASLt: " + cublaslt().why;
  const size_t version = cublaslt().get_version();  // 130100 is 13.1.0
  return "cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100) +
         " (" + cublaslt().path + ")";
}

CublasLtMatmul::CublasLtMatmul(Device& device, i64 m, i64 n, i64 k, DType in, DType out, Major a_major, Major b_major)
    : device_(device), m_(m), n_(n), k_(k) {
  std::string why;
  if (!cublaslt_available(&why)) throw Error(ErrorKind::device, "cuBLASLt is not available: " + why);
  const CudaDevice::ContextGuard guard(cuda_device(device, "cuBLASLt"));
  const CublasLt& lt = cublaslt();
  try {
    check(lt.desc_create(&description_, cublas::kCompute32F, cublas::kR32F), "cublasLtMatmulDescCreate");
    // Column-major, our d is D^T = b a^T: A is b, B is a, each of k rows where it is K-major, of k columns where it is not
    const bool b_k = b_major == Major::k, a_k = a_major == Major::k;
    const i32 transpose = cublas::kOpTranspose;
    if (b_k) check(lt.desc_set(description_, cublas::kDescTransA, &transpose, sizeof transpose), "setting TRANSA");
    if (!a_k) check(lt.desc_set(description_, cublas::kDescTransB, &transpose, sizeof transpose), "setting TRANSB");
    const u8 fast_accumulation = size_of(in) == 1;
    if (fast_accumulation)
      check(lt.desc_set(description_, cublas::kDescFastAccumulation, &fast_accumulation, sizeof fast_accumulation), "setting FAST_ACCUM");
    check(lt.layout_create(&layout_a_, data_type(in), u64(b_k ? k : n), u64(b_k ? n : k), b_k ? k : n), "cublasLtMatrixLayoutCreate");
    check(lt.layout_create(&layout_b_, data_type(in), u64(a_k ? k : m), u64(a_k ? m : k), a_k ? k : m), "cublasLtMatrixLayoutCreate");
    check(lt.layout_create(&layout_d_, data_type(out), u64(n), u64(m), n), "cublasLtMatrixLayoutCreate");
    choose_algorithm();
  } catch (...) {
    destroy();
    throw;
  }
}

void CublasLtMatmul::choose_algorithm() {
  const CublasLt& lt = cublaslt();
  void* preference = nullptr;
  check(lt.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  const size_t workspace = kWorkspaceBytes;
  i32 status = lt.preference_set(preference, cublas::kPreferenceMaxWorkspaceBytes, &workspace, sizeof workspace);
  cublas::HeuristicResult best = {};
  int found = 0;
  if (status == cublas::kSuccess)
    status = lt.get_heuristic(handle_of(device_), description_, layout_a_, layout_b_, layout_d_, layout_d_, preference, 1, &best, &found);
  lt.preference_destroy(preference);
  const std::string shape = std::to_string(m_) + "x" + std::to_string(n_) + "x" + std::to_string(k_);
  check(status, "cublasLtMatmulAlgoGetHeuristic for " + shape);
  if (found == 0) throw Error(ErrorKind::device, "cuBLASLt has no algorithm for " + shape);
  std::memcpy(algorithm_, best.algorithm, sizeof algorithm_);
}

void CublasLtMatmul::destroy() {
  const CublasLt& lt = cublaslt();
  for (void* layout : {layout_a_, layout_b_, layout_d_})
    if (layout) lt.layout_destroy(layout);
  if (description_) lt.desc_destroy(description_);
}

CublasLtMatmul::~CublasLtMatmul() { destroy(); }

void CublasLtMatmul::run(const void* a, const void* b, void* d, void* workspace, Stream stream) {
  const CudaDevice::ContextGuard guard(cuda_device(device_, "cuBLASLt"));
  const float one = 1, zero = 0;
  check(cublaslt().matmul(handle_of(device_), description_, &one, b, layout_a_, a, layout_b_, &zero, d, layout_d_, d, layout_d_, algorithm_,
                          workspace, kWorkspaceBytes, stream.handle),
        "cublasLtMatmul");
}

}  // namespace quern
