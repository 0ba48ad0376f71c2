// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
//
// Names of CUDA that kernels and hooks do not use, each with what they write instead: a call is a compile error that says so, in both
// worlds. Without this the emulated device would not know the name, and NVRTC would take it silently: the kernel then runs where no test
// looks. A `.cu` of nvcc may hold other code and is left alone. tools/gen_docs.py makes the table of docs/own_ops.md of these lines.
#pragma once

#if defined(QN_EMU) || defined(__CUDACC_RTC__)

// A template, so that only a call is an error, at its line.
#define QN_NOT_IN_KERNELS(name, instead) \
  template <class... T> QN_DEVICE ::quern::f32 qn_not_in_kernels_##name(T...) { \
    static_assert(sizeof...(T) == 99, #name " is CUDA's, which kernels and hooks do not call: write " instead); \
    return {}; \
  }

// Arithmetic.
QN_NOT_IN_KERNELS(expf, "ptx::exp2_approx(x * 1.44269504f)")
QN_NOT_IN_KERNELS(__expf, "ptx::exp2_approx(x * 1.44269504f)")
QN_NOT_IN_KERNELS(exp2f, "ptx::exp2_approx(x)")
QN_NOT_IN_KERNELS(logf, "ptx::log2_approx(x) * 0.69314718f")
QN_NOT_IN_KERNELS(__logf, "ptx::log2_approx(x) * 0.69314718f")
QN_NOT_IN_KERNELS(log2f, "ptx::log2_approx(x)")
QN_NOT_IN_KERNELS(__log2f, "ptx::log2_approx(x)")
QN_NOT_IN_KERNELS(powf, "ptx::exp2_approx(y * ptx::log2_approx(x))")
QN_NOT_IN_KERNELS(__powf, "ptx::exp2_approx(y * ptx::log2_approx(x))")
QN_NOT_IN_KERNELS(sinf, "ptx::sincos(x, sine, cosine)")
QN_NOT_IN_KERNELS(cosf, "ptx::sincos(x, sine, cosine)")
QN_NOT_IN_KERNELS(sincosf, "ptx::sincos(x, sine, cosine)")
QN_NOT_IN_KERNELS(__sinf, "ptx::sin_approx(x) (|x| at most pi)")
QN_NOT_IN_KERNELS(__cosf, "ptx::cos_approx(x) (|x| at most pi)")
QN_NOT_IN_KERNELS(tanhf, "accurate_tanh(x), or ptx::tanh_approx(x) (error 2^-21 and 2^-11)")
QN_NOT_IN_KERNELS(sqrtf, "ptx::sqrt(x)")
QN_NOT_IN_KERNELS(__fsqrt_rn, "ptx::sqrt(x)")
QN_NOT_IN_KERNELS(rsqrtf, "ptx::rsqrt_approx(x)")
QN_NOT_IN_KERNELS(__frcp_rn, "ptx::rcp_approx(x)")
QN_NOT_IN_KERNELS(__fdividef, "ptx::div(a, b), or a * ptx::rcp_approx(b)")
QN_NOT_IN_KERNELS(__fdiv_rn, "ptx::div(a, b)")
QN_NOT_IN_KERNELS(fmaf, "ptx::fma(a, b, c)")
QN_NOT_IN_KERNELS(__fmaf_rn, "ptx::fma(a, b, c)")
QN_NOT_IN_KERNELS(fmaxf, "ptx::fmax(a, b), or ptx::fmax_nan(a, b)")
QN_NOT_IN_KERNELS(fminf, "ptx::fmin(a, b)")
QN_NOT_IN_KERNELS(fabsf, "ptx::fabs(x)")
QN_NOT_IN_KERNELS(rintf, "ptx::round(x)")
QN_NOT_IN_KERNELS(roundf, "ptx::round(x) (ties to even)")

// Bits and small formats, which are storage: arithmetic is in f32.
QN_NOT_IN_KERNELS(__float_as_uint, "ptx::bits_of(x)")
QN_NOT_IN_KERNELS(__uint_as_float, "ptx::f32_of_bits(bits)")
QN_NOT_IN_KERNELS(__float2bfloat16, "from_f32<bf16>(x)")
QN_NOT_IN_KERNELS(__bfloat162float, "to_f32(x)")
QN_NOT_IN_KERNELS(__float2half, "from_f32<f16>(x)")
QN_NOT_IN_KERNELS(__half2float, "to_f32(x)")

// Lanes and threads.
QN_NOT_IN_KERNELS(__shfl_sync, "ptx::shfl(value, source)")
QN_NOT_IN_KERNELS(__shfl_xor_sync, "ptx::shfl_xor(value, bits), or warp_sum(x)")
QN_NOT_IN_KERNELS(__shfl_up_sync, "ptx::shfl_up(value, delta)")
QN_NOT_IN_KERNELS(__shfl_down_sync, "ptx::shfl_down(value, delta)")
QN_NOT_IN_KERNELS(__ballot_sync, "ptx::ballot(vote)")
QN_NOT_IN_KERNELS(__any_sync, "ptx::any(vote)")
QN_NOT_IN_KERNELS(__all_sync, "ptx::all(vote)")
QN_NOT_IN_KERNELS(__syncwarp, "ptx::sync_warp()")
QN_NOT_IN_KERNELS(__syncthreads, "ptx::sync_block()")
QN_NOT_IN_KERNELS(__syncthreads_or, "ptx::sync_block_or(vote)")
QN_NOT_IN_KERNELS(__threadfence, "ptx::fence_gpu()")
QN_NOT_IN_KERNELS(__threadfence_block, "ptx::fence_block()")

// Memory.
QN_NOT_IN_KERNELS(__ldg, "ptx::ld_global_nc<T>(address), or load_f32(from, values)")
QN_NOT_IN_KERNELS(__cvta_generic_to_shared, "ptx::smem_address(pointer)")
QN_NOT_IN_KERNELS(atomicAdd, "ptx::atomic_add(address, value)")
QN_NOT_IN_KERNELS(atomicMax, "ptx::atomic_max(address, value)")
QN_NOT_IN_KERNELS(atomicMin, "ptx::atomic_min(address, value)")
QN_NOT_IN_KERNELS(atomicExch, "ptx::atomic_exch(address, value)")
QN_NOT_IN_KERNELS(atomicCAS, "ptx::atomic_cas(address, compare, value)")

#undef QN_NOT_IN_KERNELS

// The overloaded names, some of which quern::ptx has too, so they are no macros. Kernels and hooks lie in quern, where these hide CUDA's.
#define QN_HIDDEN_IN_KERNELS(name, instead) \
  namespace quern { \
  template <class... T> QN_DEVICE f32 name(T...) { \
    static_assert(sizeof...(T) == 99, #name " is CUDA's, which kernels and hooks do not call: write " instead); \
    return {}; \
  } \
  }
QN_HIDDEN_IN_KERNELS(exp, "ptx::exp2_approx(x * 1.44269504f)")
QN_HIDDEN_IN_KERNELS(exp2, "ptx::exp2_approx(x)")
QN_HIDDEN_IN_KERNELS(log, "ptx::log2_approx(x) * 0.69314718f")
QN_HIDDEN_IN_KERNELS(log2, "ptx::log2_approx(x)")
QN_HIDDEN_IN_KERNELS(pow, "ptx::exp2_approx(y * ptx::log2_approx(x))")
QN_HIDDEN_IN_KERNELS(sin, "ptx::sincos(x, sine, cosine)")
QN_HIDDEN_IN_KERNELS(cos, "ptx::sincos(x, sine, cosine)")
QN_HIDDEN_IN_KERNELS(tanh, "accurate_tanh(x), or ptx::tanh_approx(x) (error 2^-21 and 2^-11)")
QN_HIDDEN_IN_KERNELS(sqrt, "ptx::sqrt(x)")
QN_HIDDEN_IN_KERNELS(rsqrt, "ptx::rsqrt_approx(x)")
QN_HIDDEN_IN_KERNELS(fma, "ptx::fma(a, b, c)")
QN_HIDDEN_IN_KERNELS(fmax, "ptx::fmax(a, b), or ptx::fmax_nan(a, b)")
QN_HIDDEN_IN_KERNELS(fmin, "ptx::fmin(a, b)")
QN_HIDDEN_IN_KERNELS(max, "max_of(a, b), or ptx::fmax(a, b)")
QN_HIDDEN_IN_KERNELS(min, "min_of(a, b), or ptx::fmin(a, b)")
QN_HIDDEN_IN_KERNELS(fabs, "ptx::fabs(x)")
QN_HIDDEN_IN_KERNELS(abs, "ptx::fabs(x), or max_of(x, -x)")
QN_HIDDEN_IN_KERNELS(rint, "ptx::round(x)")
QN_HIDDEN_IN_KERNELS(round, "ptx::round(x) (ties to even)")
#undef QN_HIDDEN_IN_KERNELS

// Behind the functions: these names would be replaced in their own.
#define expf(...) qn_not_in_kernels_expf(__VA_ARGS__)
#define __expf(...) qn_not_in_kernels___expf(__VA_ARGS__)
#define exp2f(...) qn_not_in_kernels_exp2f(__VA_ARGS__)
#define logf(...) qn_not_in_kernels_logf(__VA_ARGS__)
#define __logf(...) qn_not_in_kernels___logf(__VA_ARGS__)
#define log2f(...) qn_not_in_kernels_log2f(__VA_ARGS__)
#define __log2f(...) qn_not_in_kernels___log2f(__VA_ARGS__)
#define powf(...) qn_not_in_kernels_powf(__VA_ARGS__)
#define __powf(...) qn_not_in_kernels___powf(__VA_ARGS__)
#define sinf(...) qn_not_in_kernels_sinf(__VA_ARGS__)
#define cosf(...) qn_not_in_kernels_cosf(__VA_ARGS__)
#define sincosf(...) qn_not_in_kernels_sincosf(__VA_ARGS__)
#define __sinf(...) qn_not_in_kernels___sinf(__VA_ARGS__)
#define __cosf(...) qn_not_in_kernels___cosf(__VA_ARGS__)
#define tanhf(...) qn_not_in_kernels_tanhf(__VA_ARGS__)
#define sqrtf(...) qn_not_in_kernels_sqrtf(__VA_ARGS__)
#define __fsqrt_rn(...) qn_not_in_kernels___fsqrt_rn(__VA_ARGS__)
#define rsqrtf(...) qn_not_in_kernels_rsqrtf(__VA_ARGS__)
#define __frcp_rn(...) qn_not_in_kernels___frcp_rn(__VA_ARGS__)
#define __fdividef(...) qn_not_in_kernels___fdividef(__VA_ARGS__)
#define __fdiv_rn(...) qn_not_in_kernels___fdiv_rn(__VA_ARGS__)
#define fmaf(...) qn_not_in_kernels_fmaf(__VA_ARGS__)
#define __fmaf_rn(...) qn_not_in_kernels___fmaf_rn(__VA_ARGS__)
#define fmaxf(...) qn_not_in_kernels_fmaxf(__VA_ARGS__)
#define fminf(...) qn_not_in_kernels_fminf(__VA_ARGS__)
#define fabsf(...) qn_not_in_kernels_fabsf(__VA_ARGS__)
#define rintf(...) qn_not_in_kernels_rintf(__VA_ARGS__)
#define roundf(...) qn_not_in_kernels_roundf(__VA_ARGS__)
#define __float_as_uint(...) qn_not_in_kernels___float_as_uint(__VA_ARGS__)
#define __uint_as_float(...) qn_not_in_kernels___uint_as_float(__VA_ARGS__)
#define __float2bfloat16(...) qn_not_in_kernels___float2bfloat16(__VA_ARGS__)
#define __bfloat162float(...) qn_not_in_kernels___bfloat162float(__VA_ARGS__)
#define __float2half(...) qn_not_in_kernels___float2half(__VA_ARGS__)
#define __half2float(...) qn_not_in_kernels___half2float(__VA_ARGS__)
#define __shfl_sync(...) qn_not_in_kernels___shfl_sync(__VA_ARGS__)
#define __shfl_xor_sync(...) qn_not_in_kernels___shfl_xor_sync(__VA_ARGS__)
#define __shfl_up_sync(...) qn_not_in_kernels___shfl_up_sync(__VA_ARGS__)
#define __shfl_down_sync(...) qn_not_in_kernels___shfl_down_sync(__VA_ARGS__)
#define __ballot_sync(...) qn_not_in_kernels___ballot_sync(__VA_ARGS__)
#define __any_sync(...) qn_not_in_kernels___any_sync(__VA_ARGS__)
#define __all_sync(...) qn_not_in_kernels___all_sync(__VA_ARGS__)
#define __syncwarp(...) qn_not_in_kernels___syncwarp(__VA_ARGS__)
#define __syncthreads(...) qn_not_in_kernels___syncthreads(__VA_ARGS__)
#define __syncthreads_or(...) qn_not_in_kernels___syncthreads_or(__VA_ARGS__)
#define __threadfence(...) qn_not_in_kernels___threadfence(__VA_ARGS__)
#define __threadfence_block(...) qn_not_in_kernels___threadfence_block(__VA_ARGS__)
#define __ldg(...) qn_not_in_kernels___ldg(__VA_ARGS__)
#define __cvta_generic_to_shared(...) qn_not_in_kernels___cvta_generic_to_shared(__VA_ARGS__)
#define atomicAdd(...) qn_not_in_kernels_atomicAdd(__VA_ARGS__)
#define atomicMax(...) qn_not_in_kernels_atomicMax(__VA_ARGS__)
#define atomicMin(...) qn_not_in_kernels_atomicMin(__VA_ARGS__)
#define atomicExch(...) qn_not_in_kernels_atomicExch(__VA_ARGS__)
#define atomicCAS(...) qn_not_in_kernels_atomicCAS(__VA_ARGS__)

#endif
