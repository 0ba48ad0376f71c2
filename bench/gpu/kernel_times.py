# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What attention_peers.py, rows_peers.py and sampling_peers.py share: kernel times of calls that take turns, by CUPTI with a cold L2, and what `quern bench` says of a list of cases.

The L2 is filled before each call with lines that are only read, as `quern bench` does it: lines that wait to be written back would slow down whoever comes next.
A call's time is that during which one of its kernels or memsets runs: a kernel that PDL starts before the end of the one before it does not count twice. Memsets count because a kernel may need one before
it, of counters. Copies of the driver are not in it, nor the gaps between kernels."""
import csv
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch.profiler import ProfilerActivity, profile

BLOCK = 4096
RUNS = 10
WARM_S = 0.03  # clocks rise meanwhile
TURNS = 2


@triton.jit
def flush_the_l2(data, sums, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums + tl.program_id(0), tl.sum(tl.load(data + at)))


@triton.jit
def read_once(data, sums, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(sums + tl.program_id(0), tl.sum(tl.load(data + at)))


class Reader:
    """Reads so many bytes, once a call."""

    def __init__(self, kernel, size):
        self.kernel, self.blocks = kernel, size // 4 // BLOCK
        self.data = torch.ones(self.blocks * BLOCK, dtype=torch.int32, device="cuda")
        self.sums = torch.empty(self.blocks, dtype=torch.int32, device="cuda")

    def __call__(self):
        self.kernel[(self.blocks,)](self.data, self.sums, BLOCK=BLOCK)


class Times(NamedTuple):
    """Of one call: microseconds of each run, and how many kernels and memsets a run has."""

    us: list
    kernels: float

    @property
    def median(self):
        return statistics.median(self.us)


_flush = None


def flush():
    global _flush
    if _flush is None:
        _flush = Reader(flush_the_l2, 256 << 20)
    _flush()


def _kernels_by_call(events):
    """(start, end) of the kernels and memsets behind each flush of the L2, in order of start, in microseconds."""
    on_gpu = [e for e in events if e.device_type == torch.autograd.DeviceType.CUDA and not getattr(e, "is_user_annotation", False) and not e.name.startswith("Memcpy")]
    calls = []
    for e in sorted(on_gpu, key=lambda e: e.time_range.start):
        if e.name.startswith("flush_the_l2"):
            calls.append([])
        elif calls:
            calls[-1].append((e.time_range.start, e.time_range.end))
    return calls


def _busy_us(kernels):
    """How long one of them runs at least."""
    busy, until = 0.0, -math.inf
    for start, end in kernels:
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    return busy


def kernel_us(calls, runs=RUNS):
    """{name: Times} of {name: call}; the calls take turns, with a cold L2 before each."""
    names = list(calls)
    if not names:
        return {}
    start = time.perf_counter()
    while time.perf_counter() - start < WARM_S:
        for name in names:
            flush()
            calls[name]()
        torch.cuda.synchronize()
    for _ in range(4):  # records of a trace may be missing
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            for _ in range(runs):
                for name in names:
                    flush()
                    calls[name]()
            torch.cuda.synchronize()
        by_call = _kernels_by_call(trace.events())
        if len(by_call) == runs * len(names) and all(by_call):
            break
    else:
        sys.exit(f"{len(by_call)} flushes of the L2 and {sum(map(len, by_call))} other kernels and memsets were recorded of {runs} runs of {', '.join(names)}")
    times = {}
    for i, name in enumerate(names):
        mine = by_call[i :: len(names)]
        times[name] = Times([_busy_us(kernels) for kernels in mine], sum(map(len, mine)) / runs)
    return times


def working(calls, what):
    """Those of {name: call} that run; of the others a line is printed."""
    there = {}
    for name, call in calls.items():
        try:
            call()
            torch.cuda.synchronize()
            there[name] = call
        except Exception as e:  # noqa: BLE001  a peer may refuse a shape in any way
            print(f"{what}: {name} does not: {type(e).__name__} {(str(e).splitlines() or [''])[0][:160]}", flush=True)
    return there


def read_bytes_per_us():
    """The better of two reductions over 2 GiB."""
    reader = Reader(read_once, 2 << 30)
    floats = reader.data.view(torch.float32)
    times = kernel_us({"read_once": reader, "torch.sum": lambda: torch.sum(floats)})
    return (2 << 30) / min(t.median for t in times.values())


def compile_without_limit():
    """torch.compile makes kernels for every shape, and says so where it would go back to eager."""
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 100000
    torch._dynamo.config.fail_on_recompile_limit_hit = True


def flashinfer_or_none():
    """The package, or None and a line about why it is absent."""
    try:
        import flashinfer
    except Exception as e:  # noqa: BLE001  whatever its import needs
        print(f"FlashInfer is absent: {type(e).__name__} {(str(e).splitlines() or [''])[0][:160]}")
        return None
    norms = "CUDA C++" if getattr(flashinfer.norm, "_USE_CUDA_NORM", False) else "CuTe DSL"
    print(f"FlashInfer {flashinfer.__version__}, its norms in {norms}")
    return flashinfer


def must_be_close(got, want, what, rtol=0.02, atol=0.02):
    """Ends the script where a peer's result is wrong: its time would say nothing."""
    for g, w in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,), strict=True):
        g, w = g.double(), w.double()
        wrong = ~((g - w).abs() <= atol + rtol * w.abs())
        if g.shape != w.shape or wrong.any():
            at = wrong.nonzero()[:1].flatten().tolist() if g.shape == w.shape else []
            sys.exit(f"{what} is wrong: {tuple(g.shape)} for {tuple(w.shape)}, {int(wrong.sum())} elements differ" + (f", at {at} {g[tuple(at)].item()} for {w[tuple(at)].item()}" if at else ""))


def words_of(case):
    """{word: value} of a case in a CSV of `quern bench`."""
    return dict(re.findall(r"(\S+?)=(\S+)", case.split(" (runs as ")[0]))


def quern_bench(command, ops, words, budget):
    """Rows of `quern bench OPS WORDS`, each with its words under "words"; ends the script where one is wrong."""
    line = [command, "bench", *ops, *words]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.csv")
        ended = subprocess.run([*line, "--device", "cuda", "--budget", str(budget), "--csv", out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if ended.returncode != 0:
            sys.exit(f"{' '.join(line)} ended with {ended.returncode}:\n{ended.stdout}")
        with open(out, newline="", encoding="utf-8") as f:
            rows = [row for row in csv.DictReader(f) if row["provider"] == "quern"]
    for row in rows:
        row["words"] = words_of(row["case"])
        if row["ok"] != "1" or not row["median_us"]:
            sys.exit(f"{row['op']} {row['case']} is wrong or was not timed: {row['message']}")
    return rows


def stop_at_sigterm():
    """`timeout` then leaves time for the summary."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by SIGTERM"))


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def spread(us):
    """The median of turns, and the least and the most."""
    return f"{statistics.median(us):.2f} [{min(us):.2f} {max(us):.2f}]"


def write_csv(path, rows):
    if not path or not rows:
        return
    with open(path, "w", newline="", encoding="utf-8") as f:
        writer = csv.DictWriter(f, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
