#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""gemm.dense and gemm.scaled beside torch's products (cuBLASLt) of the same operands and, where its package can be imported, DeepGEMM's: kernel time, L2 cold, random
data. All shapes of one product and number of rows take turns of one run, theirs and quern's, as no model calls one kernel several times in a row; with turns of
five, where its instructions are still in the multiprocessors, cuBLASLt takes 3 to 5 % less for few rows. Weights lie in several copies, so that none is in the L2;
the first 64 rows of quern's and DeepGEMM's products are compared with torch's in double before they are timed.

DeepGEMM is what the wheel sgl-deep-gemm brings (a fork of it with kernels built beforehand for torch), which compiles a kernel by nvcc in 2 to 6 s.

Usage: gemm_peers.py [--csv FILE] [--only dense,forms,scaled] [--rows 1,16,64,128,4096] [--budget MS]"""
import argparse
import csv
import itertools
import math
from importlib.metadata import version

import torch

import quern
from quern.testing import bench_gpu_time

try:
    import deep_gemm

    DEEP_GEMM = f"DeepGEMM, sgl-deep-gemm {version('sgl-deep-gemm')}"
except ImportError:
    deep_gemm = DEEP_GEMM = None

WIDE = [(2112, 7168), (24576, 1536), (32768, 512), (7168, 16384), (4096, 7168), (7168, 2048)]
LAYER = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]  # of Llama 3.1 8B
COLUMNS = ["product", "m", "n", "k", "by", "median_us", "p10_us", "p90_us", "runs", "times_quern", "floor_us", "error"]
BYTES_PER_US = 4.28e6
E4M3 = torch.float8_e4m3fn


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda").to(dtype)


def copies(n, k, dtype):
    """An endless walk over copies of b that together exceed the L2 by far."""
    size = n * k * torch.empty(0, dtype=dtype).element_size()
    return itertools.cycle([random(n, k, dtype=dtype) for _ in range(max(2, min(8, int(6e8 // size))))])


def error_of(out, reference, rows):
    """The largest difference in the first rows, of the largest value there, if right."""
    reference = reference(rows)
    return right(float((out[:rows].double() - reference).abs().max() / reference.abs().max()), out)


def right(error, out, *what):
    """The error, of the largest value, if no more than results like `out` may have: rounding takes half of a unit in the last place; sums of e4m3 on Hopper 2^-11 of the terms
    of each group of 128 columns, in turns up and down, which with random data is about 1.6 * 2^-11 of the largest sum, whatever K is."""
    bound = torch.finfo(out.dtype).eps / 2 + 2**-10
    assert error < bound, (*what, tuple(out.shape), out.dtype, error, bound)
    return error


def with_deep_gemm(calls, product, first, b, out, reference, rows):
    """`calls`, and DeepGEMM's where it is there and right: product(b, out) makes out."""
    if deep_gemm is None:
        return calls
    out = torch.full_like(out, float("nan"))
    product(first, out)
    error_of(out, reference, rows)
    return {**calls, DEEP_GEMM: lambda: product(next(b), out)}


def dense(m, n, k):
    a, b, out = random(m, k), copies(n, k, torch.bfloat16), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    first = next(b)
    quern.gemm.dense(a, first, out=out.fill_(float("nan")))
    reference = lambda rows: a[:rows].double() @ first.double().T  # noqa: E731
    calls = {"quern": lambda: quern.gemm.dense(a, next(b), out=out), f"cuBLASLt, torch {torch.__version__}": lambda: torch.nn.functional.linear(a, next(b))}
    rows = min(m, 64)
    return error_of(out, reference, rows), with_deep_gemm(calls, lambda b, out: deep_gemm.bf16_gemm_nt(a, b, out), first, b, out, reference, rows)


def forms(m, n, k):
    """Plain nt, and what may be at most 5 % slower."""
    a, b, out = random(m, k), copies(n, k, torch.bfloat16), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    b_nn, bias, c = itertools.cycle([next(b).t().contiguous().t() for _ in range(2)]), random(n), random(m, n)
    a16, b16, out16 = a.half(), itertools.cycle([next(b).half() for _ in range(2)]), out.half()
    calls = {"quern": lambda: quern.gemm.dense(a, next(b), out=out), "nn": lambda: quern.gemm.dense(a, next(b_nn), out=out), "bias": lambda: quern.gemm.dense(a, next(b), bias=bias, out=out),
             "c": lambda: quern.gemm.dense(a, next(b), c=c, out=out), "f16": lambda: quern.gemm.dense(a16, next(b16), out=out16)}
    for name in ("gelu", "silu"):
        calls[name] = lambda name=name: quern.gemm.dense(a, next(b), activation=name, out=out)
    calls["batch_invariant"] = lambda: quern.gemm.dense(a, next(b), batch_invariant=True, out=out)
    return None, calls


RECIPES = ("1x128,128x128", "1x128,1x128", "row,column", "tensor")


def scaled(recipe, m, n, k):
    a, b, out = random(m, k, dtype=E4M3), copies(n, k, E4M3), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    groups = -(-k // 128)
    scale = lambda *shape: torch.rand(*shape, device="cuda") + 0.5  # noqa: E731
    if recipe == "1x128,128x128":
        padded = scale(-(-n // 128), -(-groups // 4) * 4)  # torch wants rows of 16 bytes
        scales_a, scales_b = scale(groups, m).t(), padded[:, :groups]
        theirs = scales_b.t()
    elif recipe == "1x128,1x128":
        scales_a, scales_b = scale(groups, m).t(), scale(groups, n).t()
        theirs = scales_b.t()
    elif recipe == "row,column":
        scales_a, scales_b = scale(m, 1), scale(n, 1)
        theirs = scales_b.t()
    else:
        scales_a, scales_b = scale(1, 1), scale(1, 1)
        theirs = scales_b
    first = next(b)
    quern.gemm.scaled(a, scales_a, first, scales_b, out=out.fill_(float("nan")))

    def reference(rows):
        of_b = scales_b.repeat_interleave(128, 0)[:n] if recipe == "1x128,128x128" else scales_b
        of_b = of_b.repeat_interleave(128, 1)[:, :k].double() if of_b.shape[1] > 1 else of_b.double()
        of_a = scales_a.repeat_interleave(128, 1)[:, :k].double() if scales_a.shape[1] > 1 else scales_a.double()
        return (a.double() * of_a)[:rows] @ (first.double() * of_b).T

    error = error_of(out, reference, min(m, 64))
    peer = lambda: torch._scaled_mm(a, next(b).t(), scales_a if recipe != "tensor" else scales_a.view(()), theirs if recipe != "tensor" else theirs.view(()), out_dtype=torch.bfloat16, use_fast_accum=False)  # noqa: E731
    calls = {"quern": lambda: quern.gemm.scaled(a, scales_a, next(b), scales_b, out=out), f"cuBLASLt, torch {torch.__version__}": peer}
    if recipe == "1x128,128x128" and deep_gemm is not None:
        aligned, dense_b = deep_gemm.get_mn_major_tma_aligned_tensor(scales_a), scales_b.contiguous()
        calls = with_deep_gemm(calls, lambda b, out: deep_gemm.fp8_gemm_nt((a, aligned), (b, dense_b), out), first, b, out, reference, min(m, 64))
    return error, calls


def shapes(rows, layer):
    for m in rows:
        yield from ((m, n, k) for n, k in WIDE + (LAYER if layer and m < 4096 else []))
        if m == 4096:
            yield 8192, 8192, 8192


def prepared(product, make, m, n, k):
    """The error of quern's result where it was compared, and the calls that work."""
    error, calls = make(m, n, k)
    there = {}
    for by, call in calls.items():
        try:
            call()
            there[by] = call
        except (RuntimeError, ValueError) as e:
            print(f"{product} {m} {n} {k}: {by} does not: {str(e).splitlines()[0][:120]}")
    return error, there


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv")
    parser.add_argument("--only", default="dense,forms,scaled")
    parser.add_argument("--rows", default="1,16,64,128,4096")
    parser.add_argument("--budget", type=float, default=20)
    options = parser.parse_args()
    m_of, only = [int(m) for m in options.rows.split(",")], options.only.split(",")
    jobs = []
    if "dense" in only:
        jobs += [("dense", 2, dense, shape) for shape in shapes(m_of, True)]
    if "forms" in only:
        jobs += [("dense, forms", 2, forms, (4096, 4096, 7168)), ("dense, forms", 2, forms, (4096, 7168, 2048))]
    if "scaled" in only:
        for recipe in RECIPES:
            some = m_of if recipe == RECIPES[0] else [m for m in m_of if m == 4096] if recipe == RECIPES[1] else [m for m in m_of if m in (16, 128, 4096)]
            jobs += [(recipe, 1, lambda *shape, recipe=recipe: scaled(recipe, *shape), shape) for shape in shapes(some, False)]
    rows, ratios = [], {}
    for _, together in itertools.groupby(jobs, key=lambda job: (job[0], job[3][0])):
        made = [(product, shape, *prepared(product, make, *shape), element) for product, element, make, shape in together]
        calls = [call for _, _, _, there, _ in made for call in there.values()]
        timed = bench_gpu_time(*calls, budget_ms=options.budget)
        timed = iter(timed if len(calls) > 1 else [timed])
        for product, (m, n, k), error, there, element in made:
            floor = ((m + n) * k * element + 2 * m * n) / BYTES_PER_US
            timings = {by: next(timed) for by in there}
            for by, t in timings.items():
                times = t.median_us / timings["quern"].median_us
                rows.append(dict(zip(COLUMNS, [product, m, n, k, by, f"{t.median_us:.2f}", f"{t.p10_us:.2f}", f"{t.p90_us:.2f}", t.runs, f"{times:.3f}", f"{floor:.2f}", f"{error:.2g}" if by == "quern" and error is not None else ""])))
                if by != "quern" and product != "dense, forms":
                    ratios.setdefault((product, by, m), []).append((times, timings["quern"].median_us - floor))
            print(f"{product:14} {m:5} {n:5} {k:5} floor {floor:7.2f}  " + "  ".join(f"{by.split(',')[0]} {t.median_us:.2f} [{t.p10_us:.2f} {t.p90_us:.2f}]" for by, t in timings.items()), flush=True)
    for (product, by, m), values in ratios.items():
        print(f"{product} m={m} beside {by}: {math.exp(sum(math.log(r) for r, _ in values) / len(values)):.3f} geomean, {min(r for r, _ in values):.3f} least, {sum(o for _, o in values) / len(values):.2f} us over the floor")
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as f:
            writer = csv.DictWriter(f, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
