#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""attention.ragged beside torch's scaled_dot_product_attention with its FlashAttention-2 and cuDNN kernels, in turns: kernel times by CUPTI, L2 cold, random data.

Usage: prefill_peers.py QUERN [--csv FILE] [--seed HEX] [--random N]
QUERN is the command. Without --random the shapes of the documents; with it N shapes of real models' heads, drawn by the seed."""
import argparse
import csv
import os
import random
import statistics
import subprocess
import sys
import tempfile

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile

SHAPES = [  # batch, queries, keys, causal, head_dim, heads_kv, group
    (1, 1024, 1024, True, 128, 8, 4), (1, 4096, 4096, True, 128, 8, 4), (1, 4096, 4096, False, 128, 8, 4), (1, 16384, 16384, True, 128, 8, 4),
    (1, 16384, 16384, False, 128, 8, 4), (8, 2048, 2048, True, 128, 8, 4), (1, 4096, 4096, True, 64, 8, 4), (1, 4096, 4096, True, 256, 8, 4)]
MODELS = [(128, 8, 4), (128, 8, 8), (128, 4, 7), (128, 2, 6), (64, 8, 8), (64, 8, 1), (128, 4, 8), (128, 32, 1), (256, 4, 2), (96, 32, 1), (80, 32, 1), (128, 8, 5)]
PEERS = {"flash_attention_2": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
TURNS, RUNS = 2, 5


def drawn(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        n = rng.choice([rng.randint(17, 300), rng.randint(300, 2048), rng.randint(2048, 8192)])
        yield (rng.choice([1, 1, 2, 4]), n, n, rng.random() < 0.8, *rng.choice(MODELS))


def kernel_us(call, flush):
    """Medians of each kernel over RUNS calls, added."""
    call()
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(RUNS):
            flush.add_(1)
            call()
        torch.cuda.synchronize()
    times = {}
    for event in trace.events():
        if event.device_type == torch.autograd.DeviceType.CUDA and "elementwise" not in event.name and "Mem" not in event.name:
            times.setdefault(event.name, []).append(event.device_time)
    return sum(statistics.median(t) * len(t) / RUNS for t in times.values())


def peer_us(backend, shape, flush):
    batch, queries, keys, causal, dim, heads_kv, group = shape
    q = torch.randn(batch, heads_kv * group, queries, dim, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(batch, heads_kv, keys, dim, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    with sdpa_kernel(backend):
        return kernel_us(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=group > 1), flush)


def quern_us(command, shape):
    batch, queries, keys, causal, dim, heads_kv, group = shape
    words = [f"batch={batch}", f"queries={queries}", f"keys={keys}", f"causal={int(causal)}", f"head_dim={dim}", f"heads_kv={heads_kv}", f"gqa={group}", "spare=0"]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.csv")
        ended = subprocess.run([command, "bench", "attention.ragged", *words, "--device", "cuda", "--budget", "60", "--csv", out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if ended.returncode != 0:
            sys.exit(f"quern bench ended with {ended.returncode}:\n{ended.stdout}")
        with open(out, newline="", encoding="utf-8") as f:
            row = next(r for r in csv.DictReader(f) if r["provider"] == "quern")
    if row["ok"] != "1":
        sys.exit(f"{shape} is wrong: {row['message']}")
    return float(row["median_us"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("quern")
    parser.add_argument("--csv")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--random", type=int, default=0)
    options = parser.parse_args()
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    rows, ratios = [], {}
    for shape in drawn(int(options.seed, 16), options.random) if options.random else SHAPES:
        times = {}
        for _ in range(TURNS):
            for name, backend in PEERS.items():
                try:
                    times.setdefault(name, []).append(peer_us(backend, shape, flush))
                except RuntimeError:  # a shape that it has no kernel for
                    continue
            times.setdefault("quern", []).append(quern_us(options.quern, shape))
        batch, queries, keys, causal, dim, heads_kv, group = shape
        flops = 4 * batch * heads_kv * group * queries * keys * dim * (0.5 if causal else 1)
        for by, us in times.items():
            rows.append(dict(batch=batch, queries=queries, keys=keys, causal=int(causal), head_dim=dim, heads_kv=heads_kv, group=group, by=by, median_us=round(statistics.median(us), 2), min_us=round(min(us), 2), max_us=round(max(us), 2), tflops=round(flops / statistics.median(us) / 1e6, 1)))
            if by != "quern":
                ratios.setdefault(by, []).append(statistics.median(us) / statistics.median(times["quern"]))
        print(shape, {by: [round(t, 1) for t in us] for by, us in times.items()}, flush=True)
    for by, all_of in ratios.items():
        print(f"{by} / quern: geometric mean {statistics.geometric_mean(all_of):.3f}, least {min(all_of):.3f} of {len(all_of)}")
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as f:
            writer = csv.DictWriter(f, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
