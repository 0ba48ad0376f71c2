#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""gemm.grouped_contiguous and gemm.grouped_masked at DeepGEMM's shapes and, where its package can be imported (gemm_peers.py), beside it, and gemm.k_grouped beside a
loop of torch.mm over the groups: kernel time, L2 cold, random data and group sizes, all calls of one shape in turns of one run. One group's first rows, up to 64, are
compared with the product in double before they are timed.

Usage: grouped.py [--csv FILE] [--budget MS]"""
import argparse
import csv
import random

import torch

import quern
from gemm_peers import DEEP_GEMM, deep_gemm, right
from quern.testing import bench_gpu_time

COLUMNS = ["product", "by", "median_us", "p10_us", "p90_us", "runs", "tflops", "floor_us", "error"]
BYTES_PER_US = 4.28e6
E4M3 = torch.float8_e4m3fn
DTYPES = {"fp8": E4M3, "bf16": torch.bfloat16}
draw = random.Random(1)


def values(*shape, dtype):
    return torch.randn(*shape, device="cuda").to(dtype)


def scale(*shape):
    return torch.rand(*shape, device="cuda") + 0.5


def blocks(scales, rows, columns):
    """One scale for each element."""
    return scales.repeat_interleave(128, 0)[:rows].repeat_interleave(128, 1)[:, :columns].double()


def error_of(out, a, b, scales_a=None, scales_b=None, rows=64):
    """The largest difference of a group's first rows from a b^T in double, of the largest value there."""
    a, b = a[:rows].double(), b.double()
    if scales_a is not None:
        a, b = a * scales_a[:rows].repeat_interleave(128, 1)[:, : a.shape[1]].double(), b * blocks(scales_b, *b.shape)
    reference = a @ b.T
    return float((out[:rows].double() - reference).abs().max() / reference.abs().max())


def record(calls, by, call, size, out, error):
    """calls[by] = the call, the error() of what it makes of results poisoned before it, and the bytes that it moves."""
    out.fill_(float("nan"))
    call()
    calls[by] = (call, right(error(), out, by), size)


def group_sizes(groups, rows, unit):
    """Random ones, multiples of `unit` that together are `rows`."""
    shares = [draw.uniform(0.7, 1.3) for _ in range(groups)]
    bounds = [round(rows // unit * sum(shares[:g]) / sum(shares)) for g in range(groups + 1)]
    return [unit * (end - begin) for begin, end in zip(bounds, bounds[1:])]


def contiguous(rows, groups, n, k):
    sizes = group_sizes(groups, rows, 128)
    ends = [sum(sizes[: g + 1]) for g in range(groups)]
    indptr = torch.tensor([0] + ends, dtype=torch.int32, device="cuda")
    of_row = torch.repeat_interleave(torch.arange(groups, dtype=torch.int32, device="cuda"), torch.tensor(sizes, device="cuda"))
    out, last = torch.empty(rows, n, device="cuda", dtype=torch.bfloat16), slice(ends[-2], ends[-1])
    calls = {}
    for name, dtype in DTYPES.items():
        a, b = values(rows, k, dtype=dtype), values(groups, n, k, dtype=dtype)
        of = {} if dtype != E4M3 else {"scales_a": scale(-(-k // 128), rows).t(), "scales_b": scale(groups, -(-n // 128), -(-k // 128))}
        size = a.element_size() * (a.numel() + b.numel()) + 2 * out.numel()

        def error(a=a, b=b, of=of):
            return error_of(out[last], a[last], b[-1], *((of["scales_a"][last], of["scales_b"][-1]) if of else ()))

        for layout in ({"m_indptr": indptr}, {"group_of_row": of_row, "alignment": 128}) if of else ({"m_indptr": indptr},):
            def call(a=a, b=b, of=of, layout=layout):
                return quern.gemm.grouped_contiguous(a, b, out=out, **of, **layout)

            record(calls, f"quern {name} {next(iter(layout))}", call, size, out, error)
        if deep_gemm is None:
            continue

        def theirs(a=a, b=b, of=of):
            if of:
                deep_gemm.m_grouped_fp8_gemm_nt_contiguous((a, of["scales_a"]), (b, of["scales_b"]), out, of_row)
            else:
                deep_gemm.m_grouped_bf16_gemm_nt_contiguous(a, b, out, of_row)

        record(calls, f"{DEEP_GEMM} {name}", theirs, size, out, error)

    def loop(a=a, b=b):
        for g in range(groups):
            torch.mm(a[ends[g] - sizes[g] : ends[g]], b[g].t(), out=out[ends[g] - sizes[g] : ends[g]])

    calls["loop of torch.mm bf16"] = (loop, None, calls["quern bf16 m_indptr"][2])
    return f"contiguous m={rows} groups={groups} n={n} k={k}", rows, calls


def masked(groups, rows, n, k):
    """max_m = 4096 rows for each group, as DeepGEMM has it."""
    counts, expected = group_sizes(groups, rows, 1), -(-rows // groups)
    masked_m = torch.tensor(counts, dtype=torch.int32, device="cuda")
    out, calls = torch.empty(groups, 4096, n, device="cuda", dtype=torch.bfloat16), {}
    most = max(range(groups), key=counts.__getitem__)
    for name, dtype in DTYPES.items():
        a, b = values(groups, 4096, k, dtype=dtype), values(groups, n, k, dtype=dtype)
        of = {} if dtype != E4M3 else {"scales_a": scale(groups, -(-k // 128), 4096).transpose(1, 2), "scales_b": scale(groups, -(-n // 128), -(-k // 128))}

        def call(a=a, b=b, of=of):
            return quern.gemm.grouped_masked(a, b, masked_m, out=out, expected_m=expected, **of)

        def error(a=a, b=b, of=of):
            return error_of(out[most], a[most], b[most], *((of["scales_a"][most], of["scales_b"][most]) if of else ()), rows=min(64, counts[most]))

        size = a.element_size() * (rows * k + b.numel()) + 2 * rows * n
        record(calls, f"quern {name}", call, size, out, error)
        if deep_gemm is None:
            continue

        def theirs(a=a, b=b, of=of):
            if of:
                deep_gemm.fp8_m_grouped_gemm_nt_masked((a, of["scales_a"]), (b, of["scales_b"]), out, masked_m, expected)
            else:
                deep_gemm.m_grouped_bf16_gemm_nt_masked(a, b, out, masked_m, expected)

        record(calls, f"{DEEP_GEMM} {name}", theirs, size, out, error)
    return f"masked groups={groups} rows={rows} n={n} k={k}", rows, calls


def k_grouped(groups, m, n, k):
    sizes = group_sizes(groups, k, 128)
    indptr = torch.tensor([0] + [sum(sizes[: g + 1]) for g in range(groups)], dtype=torch.int32, device="cuda")
    out, calls = torch.empty(groups, m, n, device="cuda"), {}
    last = slice(k - sizes[-1], k)
    for name, dtype in DTYPES.items():
        a, b = values(m, k, dtype=dtype), values(n, k, dtype=dtype)
        of = {} if dtype != E4M3 else {"scales_a": scale(k // 128, m).t(), "scales_b": scale(k // 128, n).t()}

        def call(a=a, b=b, of=of):
            return quern.gemm.k_grouped(a, b, k_indptr=indptr, alignment=128, out=out, **of)

        wide = [t[:, last].double() for t in (a[:64], b)]
        if of:
            part = slice(last.start // 128, k // 128)
            wide = [t * s[: len(t), part].repeat_interleave(128, 1).double() for t, s in zip(wide, of.values())]
        reference = wide[0] @ wide[1].T
        size = a.element_size() * (a.numel() + b.numel()) + 4 * out.numel()
        record(calls, f"quern {name}", call, size, out, lambda: float((out[-1, :64].double() - reference).abs().max() / reference.abs().max()))
    results = torch.empty(groups, m, n, device="cuda", dtype=torch.bfloat16)

    def loop(a=a, b=b):
        for g in range(groups):
            part = slice(sum(sizes[:g]), sum(sizes[: g + 1]))
            torch.mm(a[:, part], b[:, part].t(), out=results[g])

    calls["loop of torch.mm bf16, bf16 results"] = (loop, None, calls["quern bf16"][2])
    return f"k_grouped groups={groups} m={m} n={n} k={k}", m, calls


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv")
    parser.add_argument("--budget", type=float, default=30)
    options = parser.parse_args()
    jobs = [lambda: contiguous(35968, 4, 4096, 7168), lambda: contiguous(33792, 8, 7168, 2048)]
    jobs += [lambda s=s: masked(*s) for s in ((1, 866, 4096, 7168), (4, 1067, 4096, 7168), (16, 986, 7168, 2048), (32, 128, 7168, 2048))]
    jobs += [lambda: k_grouped(4, 7168, 2048, 32768), lambda: k_grouped(8, 4096, 7168, 32768)]
    table = []
    for job in jobs:
        product, rows, calls = job()
        words = dict(word.split("=") for word in product.split()[1:])
        flops = 2 * rows * int(words["n"]) * int(words["k"])
        for (by, (_, error, size)), t in zip(calls.items(), bench_gpu_time(*(call for call, _, _ in calls.values()), budget_ms=options.budget)):
            table.append([product, by, f"{t.median_us:.1f}", f"{t.p10_us:.1f}", f"{t.p90_us:.1f}", t.runs, f"{flops / t.median_us / 1e6:.1f}", f"{size / BYTES_PER_US:.1f}", "" if error is None else f"{error:.2g}"])
            print("  ".join(map(str, table[-1])), flush=True)
        torch.cuda.empty_cache()
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as f:
            csv.writer(f).writerows([COLUMNS] + table)


if __name__ == "__main__":
    main()
