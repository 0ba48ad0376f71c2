#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""gemm.dense and gemm.scaled beside torch's products (cuBLASLt) of the same operands and, where its package can be imported, DeepGEMM's: kernel time, L2 cold, random
data. All shapes of one product and number of rows take turns of one run, theirs and quern's, as no model calls one kernel several times in a row; with turns of
five, where its instructions are still in the multiprocessors, cuBLASLt takes 3 to 5 % less for few rows. Weights lie in several copies, so that none is in the L2;
the first 64 rows of quern's and DeepGEMM's products are compared with torch's in double before they are timed.

DeepGEMM is what the wheel sgl-deep-gemm brings (a fork of it with kernels built beforehand for torch), which compiles a kernel by nvcc in 2 to 6 s.

--random SEED is for 40 shapes between 129 and 2048 rows of layers that models have, by tensor-parallel 1 to 8, in the place of the named ones. --candidates also times each kernel that quern's plan chooses among
(docs/benchmarks.md), but those that make many more blocks than there are places for, or rows that are not there, and compares its results with those of the chosen one.

Usage: gemm_peers.py [--csv FILE] [--only dense,forms,scaled] [--rows 1,16,64,128,4096] [--shapes M,N,K:M,N,K...] [--random SEED] [--recipes 1x128,128x128:tensor...] [--candidates] [--budget MS]"""
import argparse
import csv
import itertools
import json
import math
import random as random_numbers
import subprocess
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
# (hidden, intermediate, columns of q and of k and v together, columns that attention's output projection reads) of models, and what is no layer of that form
MODELS = {"Llama-3 8B": (4096, 14336, 4096, 2048), "Llama-3 70B": (8192, 28672, 8192, 2048), "Qwen2.5 7B": (3584, 18944, 3584, 1024), "Qwen3 14B": (5120, 17408, 5120, 2048), "Mistral 7B": (4096, 14336, 4096, 2048), "gpt-oss 120B": (2880, 2880, 4096, 1024)}
DEEPSEEK_V3 = {(2112, 7168): None, (24576, 1536): 0, (32768, 512): 0, (7168, 16384): 1, (36864, 7168): 0, (7168, 18432): 1, (4096, 7168): 0, (7168, 2048): 1}  # the dim that tensor-parallel divides
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
    try:
        product(first, out)
    except RuntimeError as e:
        print(f"DeepGEMM does not: {tuple(out.shape)} {str(e).splitlines()[0][:160]}")
        return calls
    error_of(out, reference, rows)
    return {**calls, DEEP_GEMM: lambda: product(next(b), out)}


def ours(product, b, first):
    """A call of product(b, **options) with the next b. of_first(**options): the result of the first one."""
    call = lambda **options: product(next(b), **options)  # noqa: E731
    call.of_first = lambda **options: product(first, **options)
    return call


def dense(m, n, k):
    a, b, out = random(m, k), copies(n, k, torch.bfloat16), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    first = next(b)
    quern.gemm.dense(a, first, out=out.fill_(float("nan")))
    reference = lambda rows: a[:rows].double() @ first.double().T  # noqa: E731
    calls = {"quern": ours(lambda b, **options: quern.gemm.dense(a, b, out=out, **options), b, first), f"cuBLASLt, torch {torch.__version__}": lambda: torch.nn.functional.linear(a, next(b))}
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
    calls = {"quern": ours(lambda b, **options: quern.gemm.scaled(a, scales_a, b, scales_b, out=out, **options), b, first), f"cuBLASLt, torch {torch.__version__}": peer}
    if recipe == "1x128,128x128" and deep_gemm is not None:
        aligned, dense_b = deep_gemm.get_mn_major_tma_aligned_tensor(scales_a), scales_b.contiguous()
        calls = with_deep_gemm(calls, lambda b, out: deep_gemm.fp8_gemm_nt((a, aligned), (b, dense_b), out), first, b, out, reference, min(m, 64))
    return error, calls


def layers():
    """(n, k) of all layers, tensor-parallel 1, 2, 4 and 8, that quern's and DeepGEMM's kernels for Hopper take: n a multiple of 8, k of 128."""
    all_of = set()
    for tp in (1, 2, 4, 8):
        for hidden, intermediate, q, kv in MODELS.values():
            all_of |= {((q + kv) // tp, hidden), (hidden, q // tp), (2 * intermediate // tp, hidden), (hidden, intermediate // tp)}
        for nk, divided in DEEPSEEK_V3.items():
            all_of.add(tuple(x // tp if i == divided else x for i, x in enumerate(nk)))
    return sorted((n, k) for n, k in all_of if n % 8 == 0 and k % 128 == 0)


def random_shapes(seed, count=40):
    """m log-uniform in 129 .. 2048, layers evenly; in order of m, so that shapes of similar times take turns."""
    numbers = random_numbers.Random(seed)
    return sorted((round(math.exp(numbers.uniform(math.log(129), math.log(2048)))), *numbers.choice(layers())) for _ in range(count))


def candidates(op, m, n, sms):
    """Names of the kernels that are worth a measurement."""
    facts = json.loads(subprocess.run(["quern", "info", op, "--json"], check=True, capture_output=True, text=True).stdout)["candidates"]
    for variant, names in facts.items():
        heights = {int(name.split("x")[0]) for name in names}
        for name in names:
            size, *words = name.split("_")
            height, width = map(int, size.split("x"))
            if variant == "warp_specialised_sm90":
                yield f"{variant}:{name}"
                continue
            high, places = -(-m // height), sms * (2 if "two" in words else 1)
            share, parts = -(-m // high), next((int(w[5:]) for w in words if w.startswith("parts")), 1)
            blocks = high * -(-n // width) * parts
            smaller = any(other < height and other >= share for other in heights)
            if blocks <= (places if parts > 1 else 5 * places) and not smaller:
                yield f"{variant}:{name}"


def shapes(rows, layer):
    for m in rows:
        yield from ((m, n, k) for n, k in WIDE + (LAYER if layer and m < 4096 else []))
        if m == 4096:
            yield 8192, 8192, 8192


def prepared(product, make, m, n, k, every):
    """The error of quern's result where it was compared, and the calls that work."""
    error, calls = make(m, n, k)
    if every:
        op, chosen = "gemm.dense" if product == "dense" else "gemm.scaled", calls["quern"]
        result = chosen.of_first()
        expected = result.double()
        for name in candidates(op, m, n, torch.cuda.get_device_properties(0).multi_processor_count):
            try:
                result.fill_(float("nan"))
                chosen.of_first(backend=name)
                right(float((result.double() - expected).abs().max() / expected.abs().max()) / 2, result, name)  # either may be off by the bound
            except (RuntimeError, NotImplementedError, ValueError, AssertionError) as e:
                print(f"{product} {m} {n} {k}: {name} {'is WRONG' if isinstance(e, AssertionError) else 'does not'}: {str(e).splitlines()[0][:160]}")
                continue
            calls[f"quern {name}"] = lambda name=name: chosen(backend=name)
    there = {}
    for by, call in calls.items():
        try:
            call()
            there[by] = call
        except (RuntimeError, ValueError) as e:
            print(f"{product} {m} {n} {k}: {by} does not: {str(e).splitlines()[0][:120]}")
    return error, there


def write(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as f:
        writer = csv.DictWriter(f, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv")
    parser.add_argument("--only", default="dense,forms,scaled")
    parser.add_argument("--rows", default="1,16,64,128,4096")
    parser.add_argument("--shapes")
    parser.add_argument("--random")
    parser.add_argument("--recipes", default=":".join(RECIPES))
    parser.add_argument("--candidates", action="store_true")
    parser.add_argument("--budget", type=float, default=20)
    options = parser.parse_args()
    m_of, only = [int(m) for m in options.rows.split(",")], options.only.split(",")
    given = [tuple(map(int, shape.split(","))) for shape in options.shapes.split(":")] if options.shapes else random_shapes(options.random) if options.random else None
    jobs = []
    if given:
        jobs += [("dense", 2, dense, shape) for shape in given if "dense" in only]
        jobs += [(recipe, 1, lambda *shape, recipe=recipe: scaled(recipe, *shape), shape) for recipe in options.recipes.split(":") if "scaled" in only for shape in given]
    elif "dense" in only:
        jobs += [("dense", 2, dense, shape) for shape in shapes(m_of, True)]
    if "forms" in only and not given:
        jobs += [("dense, forms", 2, forms, (4096, 4096, 7168)), ("dense, forms", 2, forms, (4096, 7168, 2048))]
    if "scaled" in only and not given:
        for recipe in options.recipes.split(":"):
            some = m_of if recipe == RECIPES[0] else [m for m in m_of if m == 4096] if recipe == RECIPES[1] else [m for m in m_of if m in (16, 128, 4096)]
            jobs += [(recipe, 1, lambda *shape, recipe=recipe: scaled(recipe, *shape), shape) for shape in shapes(some, False)]
    rows, ratios = [], {}
    together_of = (lambda at, job: (job[0], at // 4)) if given else (lambda at, job: (job[0], job[3][0]))
    for _, together in itertools.groupby(enumerate(jobs), key=lambda pair: together_of(*pair)):
        made = [(product, shape, *prepared(product, make, *shape, options.candidates), element) for _, (product, element, make, shape) in together]
        calls = [call for _, _, _, there, _ in made for call in there.values()]
        timed = bench_gpu_time(*calls, budget_ms=options.budget)
        timed = iter(timed if len(calls) > 1 else [timed])
        for product, (m, n, k), error, there, element in made:
            floor = ((m + n) * k * element + 2 * m * n) / BYTES_PER_US
            timings = {by: next(timed) for by in there}
            for by, t in timings.items():
                times = t.median_us / timings["quern"].median_us
                rows.append(dict(zip(COLUMNS, [product, m, n, k, by, f"{t.median_us:.2f}", f"{t.p10_us:.2f}", f"{t.p90_us:.2f}", t.runs, f"{times:.3f}", f"{floor:.2f}", f"{error:.2g}" if by == "quern" and error is not None else ""])))
                if not by.startswith("quern") and product != "dense, forms":
                    ratios.setdefault((product, by, m), []).append((times, timings["quern"].median_us - floor))
            print(f"{product:14} {m:5} {n:5} {k:5} floor {floor:7.2f}  " + "  ".join(f"{by.split(',')[0]} {t.median_us:.2f} [{t.p10_us:.2f} {t.p90_us:.2f}]" for by, t in timings.items()), flush=True)
        if options.csv:
            write(options.csv, rows)
    if given:  # all rows together
        ratios = {(product, by, "all"): [r for (p, b, _), values in ratios.items() if (p, b) == (product, by) for r in values] for product, by, _ in ratios}
    for (product, by, m), values in ratios.items():
        print(f"{product} m={m} beside {by}: {math.exp(sum(math.log(r) for r, _ in values) / len(values)):.3f} geomean, {min(r for r, _ in values):.3f} least, {sum(o for _, o in values) / len(values):.2f} us over the floor")


if __name__ == "__main__":
    main()
