#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What a call from Python costs the host, for each op at a small shape with tensors of torch: outputs given and allocated, beside the bare launches
of the same arguments and the call from C++, an empty call of TVM-FFI and two of torch's own ops. Bare launches and calls from C++ go to the same stream
from the same thread in turns with those from Python: on one machine a launch takes 3.8 us in one process and 5.4 in the next.

Usage: python_host.py [--csv FILE] [--batches N]. Without a GPU the emulated device runs, on empty tensors, and no launch is timed: what is left is the
binding. Calls are queued in batches that the device works off before the next; figures are microseconds a call, median and p10..p90 of the batches."""
import argparse
import csv
import os
import re
import statistics
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("QN_DEVICE", "cuda")
sys.path.insert(0, os.path.join(ROOT, "tests", "python"))

import places  # noqa: E402
import torch  # noqa: E402

import quern  # noqa: E402
import quern.testing  # noqa: E402
import quern.torch  # noqa: E402, F401  # as in a program that compiles as well
from quern._library import library  # noqa: E402

# What stands in the place of the first values of the op's cases.
SHAPES = {
    "norm.rms_norm": "tokens=1 hidden=4096", "norm.fused_add_rms_norm": "tokens=1 hidden=4096", "norm.rms_norm_backward": "tokens=1 hidden=4096",
    "activation.silu_and_mul": "tokens=1 intermediate=1024", "rope.rope_inplace": "tokens=1 heads_q=8 heads_kv=2 head_dim=64",
    "kv_cache.append_paged": "tokens=1 batch=1 heads_kv=2 head_dim=64", "attention.paged": "batch=1 capacity=64 length=64 heads_kv=2 gqa=4 head_dim=64 out_lse.present=0",
    "gemm.dense": "m=1 n=512 k=512", "gemm.scaled": "m=1 n=512 k=512",
    "gemm.grouped_contiguous": "m=16 groups=2 n=512 k=512", "gemm.grouped_masked": "max_m=16 groups=2 n=512 k=512",
    "gemm.k_grouped": "m=512 n=512 k=256 groups=2", "quant.per_token_group": "m=1 k=4096", "quant.per_tensor": "m=1 k=4096",
    "quant.per_block": "n=128 k=512", "quant.transform_scales": "m=1 groups=32",
}
COLUMNS = ["op", "shape", "how", "median_us", "p10_us", "p90_us", "batches", "bare_launch_us", "cpp_call_us", "over_bare_launch_us"]


def words_of(op):
    """A small shape; without a GPU one with nothing to compute."""
    words = SHAPES.get(op.id, "")
    return words if places.ON_GPU else re.sub(r"^(\w+)=\d+", r"\1=0", words)


def timed(call, batches, beside=lambda: None, calls=200):
    """Microseconds a call, one figure a batch. `beside` runs after each batch."""
    synchronize = torch.cuda.synchronize if places.ON_GPU else lambda: None
    for _ in range(20):
        call()
    figures = []
    for _ in range(batches):
        synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        figures.append((time.perf_counter() - begin) / calls * 1e6)
        beside()
    synchronize()
    return figures


def calls_of(case, arrays):
    """{how: function of no argument}, and one that times a batch of calls from C++ and one of bare launches, which it returns."""
    op, schema = case.op, case.op.schema
    given = {n: None if t is None else arrays(t) for n, t in case.tensors.items()}
    calls = {}
    positional = [given[p] if p in given else case.attributes[p] for p in (p.name for p in schema.parameters()) if p in given or p in case.attributes]
    if schema.outputs:
        calls["out given"] = lambda: op(*positional)
        inputs = {n: t for n, t in given.items() if schema.tensors[schema.index[n]]["role"] != "out"}
        wanted = {schema.tensors[i]["name"]: True for i in schema.outputs if schema.tensors[i]["optional"] and given[schema.tensors[i]["name"]] is not None}
        calls["allocated"] = lambda: op(**inputs, **case.attributes, **wanted)
    else:
        calls["in place"] = lambda: op(*positional)
    handed = [*given.values(), *case.attributes.values()]
    host_time = library().op_timed(op.id, 1)
    return calls, lambda: host_time(*handed)


def baselines():
    import tvm_ffi

    x, out = torch.zeros(1, 64, device=places.TORCH), torch.empty(1, 64, device=places.TORCH)
    weight = torch.ones(64, device=places.TORCH)
    tensors = [x, weight, out]
    echo = tvm_ffi.get_global_func("testing.nop", allow_missing=True)
    yield "torch.add", "out given", lambda: torch.add(x, x, out=out)
    yield "torch.nn.functional.rms_norm", "allocated", lambda: torch.nn.functional.rms_norm(x, (64,), weight, 1e-6)
    if echo is not None:
        yield "tvm_ffi testing.nop, 3 tensors", "", lambda: echo(*tensors)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv")
    parser.add_argument("--batches", type=int, default=31)
    options = parser.parse_args()
    rows = []

    def add(name, shape, how, call, from_cpp=None):
        beside = []
        figures = sorted(timed(call, options.batches, lambda: beside.append(from_cpp())) if from_cpp and places.ON_GPU else timed(call, options.batches))
        median, tenth = statistics.median(figures), len(figures) // 10
        cpp, bare = (statistics.median(f) for f in zip(*beside)) if beside else ("", "")
        rows.append(dict(zip(COLUMNS, [name, shape, how, f"{median:.3f}", f"{figures[tenth]:.3f}", f"{figures[-1 - tenth]:.3f}", len(figures),
                                       *(f"{v:.3f}" if beside else "" for v in (bare, cpp, median - bare if beside else 0))])))
        print(*(str(v) for v in rows[-1].values()), sep="\t", flush=True)

    print(*COLUMNS, sep="\t")
    with torch.no_grad():
        for name, how, call in baselines():
            add(name, "", how, call)
        for op in quern.ops():
            words = words_of(op)
            with quern.testing.Case(op.id, words) as case:
                calls, from_cpp = calls_of(case, places.Torch())
                for how, call in calls.items():
                    add(op.id, words, how, call, from_cpp)
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as f:
            writer = csv.DictWriter(f, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
