#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What a call from Python costs the host, for each op at a small shape with tensors of torch: outputs given and allocated, beside the bare launches
of the same shape and the call from C++ (`quern bench --host`, in the same run), an empty call of TVM-FFI and two of torch's own ops.

Usage: python_host.py [--csv FILE] [--batches N]. Without a GPU the emulated device runs, on empty tensors, and no launch is timed: what is left is the
binding. Calls are queued in batches that the device works off before the next; figures are microseconds a call, median and p10..p90 of the batches."""
import argparse
import csv
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("QN_DEVICE", "cuda")
sys.path.insert(0, os.path.join(ROOT, "tests", "python"))

import places  # noqa: E402
import torch  # noqa: E402

import quern  # noqa: E402
import quern.testing  # noqa: E402
import quern.torch  # noqa: E402, F401  # as in a program that compiles as well

# What stands in the place of the first values of the op's cases.
SHAPES = {
    "norm.rms_norm": "tokens=1 hidden=4096", "norm.fused_add_rms_norm": "tokens=1 hidden=4096", "norm.rms_norm_backward": "tokens=1 hidden=4096",
    "activation.silu_and_mul": "tokens=1 intermediate=1024", "rope.rope_inplace": "tokens=1 heads_q=8 heads_kv=2 head_dim=64",
    "kv_cache.append_paged": "tokens=1 batch=1 heads_kv=2 head_dim=64", "attention.decode_paged": "batch=1 capacity=64 length=64 heads_kv=2 gqa=4 head_dim=64 out_lse.present=0",
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


def timed(call, batches, calls=200):
    """Microseconds a call, one figure a batch."""
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
    synchronize()
    return figures


def from_cpp(id_, words):
    """(bare launches, whole call) of `quern bench --host`; empty where there is no GPU."""
    if not places.ON_GPU:
        return "", ""
    command = shutil.which("quern", path=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        subprocess.run([command, "bench", id_, *words.split(), "--device", "cuda", "--host", "--csv", file.name], check=True, stdout=subprocess.DEVNULL)
        row = next(csv.DictReader(open(file.name, encoding="utf-8")))
    return float(row["launch_us"]), float(row["host_us"])


def calls_of(case, arrays):
    """{how: function of no argument}."""
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
    return calls


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

    def add(name, shape, how, call, bare="", cpp=""):
        figures = sorted(timed(call, options.batches))
        median, tenth = statistics.median(figures), len(figures) // 10
        rows.append(dict(zip(COLUMNS, [name, shape, how, f"{median:.3f}", f"{figures[tenth]:.3f}", f"{figures[-1 - tenth]:.3f}", len(figures), bare, cpp,
                                       f"{median - bare:.3f}" if bare != "" else ""])))
        print(*(str(v) for v in rows[-1].values()), sep="\t", flush=True)

    print(*COLUMNS, sep="\t")
    with torch.no_grad():
        for name, how, call in baselines():
            add(name, "", how, call)
        for op in quern.ops():
            words = words_of(op)
            with quern.testing.Case(op.id, words) as case:
                bare, cpp = from_cpp(op.id, words)
                for how, call in calls_of(case, places.Torch()).items():
                    add(op.id, words, how, call, bare, cpp)
    if options.csv:
        with open(options.csv, "w", encoding="utf-8", newline="") as f:
            writer = csv.DictWriter(f, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
