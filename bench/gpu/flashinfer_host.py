#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What a call costs the host, by FlashInfer's names: quern.compat.flashinfer and FlashInfer itself in one process, in turns, on the same small tensors.

Usage: flashinfer_host.py [--csv FILE] [--batches N]. FlashInfer's compiled modules are found as bench/gpu/attention_peers.py says. Calls are queued in
batches of 100 that the device works off before the next; figures are microseconds a call, median and p10..p90 of the batches. A call of which the
device's time exceeds the host's would be timed wrong: the shapes keep kernels below about 5 us, and a column has the time with a wait for the device."""
import argparse
import csv
import statistics
import sys
import time

import torch

import quern.compat.flashinfer

COLUMNS = ["call", "by", "median_us", "p10_us", "p90_us", "with_wait_us", "batches", "times_flashinfer"]
BF16 = torch.bfloat16


def calls_of(fi):
    """{what: call} by the names of `fi`; a call is made once, so that what it allocates and compiles is there."""
    g = torch.Generator("cuda").manual_seed(1)

    def random(*shape, dtype=BF16):
        return torch.randn(*shape, device="cuda", generator=g).to(dtype)

    def i32(*values):
        return torch.tensor(values, dtype=torch.int32, device="cuda")

    batch, pages, page, heads_q, heads_kv, dim = 4, 16, 16, 8, 2, 128
    q, cache = random(batch, heads_q, dim), random(pages, 2, page, heads_kv, dim)
    indptr, indices, last = i32(0, 4, 8, 12, 16), torch.arange(16, dtype=torch.int32, device="cuda"), i32(16, 16, 16, 16)
    out = torch.empty_like(q)
    space = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
    x, weight, residual, gated = random(4, 1024), random(1024), random(4, 1024), random(4, 2048)
    logits = random(4, 1024, dtype=torch.float32)

    def decode():
        w = fi.BatchDecodeWithPagedKVCacheWrapper(space, "NHD", use_tensor_cores=True)

        def plan():
            w.plan(indptr, indices, last, heads_q, heads_kv, dim, page, pos_encoding_mode="NONE", q_data_type=BF16, kv_data_type=BF16)
        plan()
        return plan, lambda: w.run(q, cache, out=out)

    def prefill():
        rows = i32(0, 2, 4, 6, 8)
        w = fi.BatchPrefillWithPagedKVCacheWrapper(space, "NHD", backend="fa2")
        queries = random(8, heads_q, dim)
        result = torch.empty_like(queries)

        def plan():
            w.plan(rows, indptr, indices, last, heads_q, heads_kv, dim, page, causal=True, q_data_type=BF16, kv_data_type=BF16)
        plan()
        return plan, lambda: w.run(queries, cache, out=result)

    makers = {
        "decode wrapper, run": lambda: decode()[1], "decode wrapper, plan": lambda: decode()[0],
        "prefill wrapper, run": lambda: prefill()[1], "prefill wrapper, plan": lambda: prefill()[0],
        "rmsnorm": lambda: lambda: fi.norm.rmsnorm(x, weight, 1e-6, out=residual),
        "fused_add_rmsnorm": lambda: lambda: fi.norm.fused_add_rmsnorm(x, residual, weight, 1e-6),
        "silu_and_mul": lambda: lambda: fi.activation.silu_and_mul(gated, out=x),
        "append_paged_kv_cache": lambda: (lambda k, v, b, p: lambda: fi.append_paged_kv_cache(k, v, b, p, cache, indices, indptr, last))(
            random(4, heads_kv, dim), random(4, heads_kv, dim), i32(0, 1, 2, 3), i32(63, 63, 63, 63)),
        "apply_rope_pos_ids_inplace": lambda: (lambda q, k, p: lambda: fi.rope.apply_rope_pos_ids_inplace(q, k, p))(
            random(4, heads_q, dim), random(4, heads_kv, dim), i32(5, 6, 7, 8)),
        "softmax": lambda: lambda: fi.sampling.softmax(logits),
        "top_k_top_p_sampling_from_probs": lambda: (lambda p: lambda: fi.sampling.top_k_top_p_sampling_from_probs(p, 20, 0.9))(logits.softmax(-1)),
    }
    calls = {}
    for what, make in makers.items():
        try:
            call = make()
            call()
            torch.cuda.synchronize()
            calls[what] = call
        except Exception as error:  # noqa: BLE001  # what a peer cannot do is told and left out
            print(f"{what}: {type(error).__name__} {str(error)[:200]}")
    return calls


def batch_of(call, wait, calls=100):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
        if wait:
            torch.cuda.synchronize()
    return (time.perf_counter() - begin) / calls * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv")
    parser.add_argument("--batches", type=int, default=15)
    arguments = parser.parse_args()
    quern_calls = calls_of(quern.compat.flashinfer)
    try:
        import flashinfer
        peer_calls = calls_of(flashinfer)
    except ImportError as error:
        print("without FlashInfer:", error)
        peer_calls = {}
    rows = []
    for what, call in quern_calls.items():
        sides = {"quern": call} | ({"FlashInfer": peer_calls[what]} if what in peer_calls else {})
        times = {by: [] for by in sides}
        for by, side in sides.items():
            batch_of(side, False)
        for turn in range(arguments.batches):
            for by in list(sides)[:: 1 if turn % 2 else -1]:
                times[by].append(batch_of(sides[by], False))
        medians = {by: statistics.median(t) for by, t in times.items()}
        for by, side in sides.items():
            t = sorted(times[by])
            rows.append([what, by, f"{medians[by]:.2f}", f"{t[len(t) // 10]:.2f}", f"{t[-1 - len(t) // 10]:.2f}", f"{batch_of(side, True):.2f}", len(t),
                         f"{medians['FlashInfer'] / medians[by]:.2f}" if "FlashInfer" in medians else ""])
        print(f"{what:34}", "  ".join(f"{by} {us:.2f} us" for by, us in medians.items()),
              f"  {medians['FlashInfer'] / medians['quern']:.2f}x" if "FlashInfer" in medians else "")
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(rows)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
