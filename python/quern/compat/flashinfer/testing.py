# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What programs of FlashInfer measure with."""
import random
import time

from quern import _check
from quern.compat.flashinfer._base import refuse, torch


def set_seed(random_seed):
    """Seeds the generators of Python, NumPy and torch."""
    import numpy

    _check.integer("flashinfer.testing.set_seed", "random_seed", random_seed, 0, 2**63 - 1)
    random.seed(random_seed), numpy.random.seed(random_seed % 2**32), torch.manual_seed(random_seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(random_seed)


def _seconds(function, on_gpu, flush):
    if flush is not None:
        flush.zero_()
    if not on_gpu:
        begin = time.perf_counter()
        function()
        return time.perf_counter() - begin
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    function()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def bench_gpu_time(fn, dry_run_iters=None, repeat_iters=None, dry_run_time_ms=25, repeat_time_ms=100, l2_flush=None, l2_flush_size_mb=None, l2_flush_device=None,
                   sleep_after_run=False, enable_cupti=False, use_cuda_graph=False, num_iters_within_graph=10, input_args=(), input_kwargs=None, cold_l2_cache=True, aggregate_op=max):
    """Milliseconds of each of repeat_iters calls of fn(*input_args, **input_kwargs), by events; without a GPU by the host's clock, which says nothing of one.
    Iterations that are not given are as many as fill dry_run_time_ms and repeat_time_ms. cold_l2_cache: the L2 is overwritten before each call.
    quern.testing.bench_gpu_time takes the time of kernels alone."""
    where = "testing.bench_gpu_time"
    _check.function(f"flashinfer.{where}", "fn", fn)
    refuse(where, "time is taken by events, quern.testing.bench_gpu_time has kernels' times and graphs", enable_cupti=enable_cupti, use_cuda_graph=use_cuda_graph)
    refuse(where, "`cold_l2_cache` says whether the L2 is flushed", l2_flush=l2_flush, l2_flush_size_mb=l2_flush_size_mb, l2_flush_device=l2_flush_device)
    refuse(where, "calls follow each other", sleep_after_run=sleep_after_run)
    refuse(where, "it is of graphs", num_iters_within_graph=None if num_iters_within_graph == 10 else num_iters_within_graph)
    refuse(where, "it is of several processes", aggregate_op=None if aggregate_op is max else aggregate_op)
    for name, value in (("dry_run_iters", dry_run_iters), ("repeat_iters", repeat_iters)):
        if value is not None:
            _check.integer(f"flashinfer.{where}", name, value, 0, 2**31 - 1)
    for name, value in (("dry_run_time_ms", dry_run_time_ms), ("repeat_time_ms", repeat_time_ms)):
        _check.number(f"flashinfer.{where}", name, value)
    _check.boolean(f"flashinfer.{where}", "cold_l2_cache", cold_l2_cache)
    if not isinstance(input_args, (tuple, list)):
        _check.fail_type(f"flashinfer.{where}", "input_args", input_args, "a tuple")
    if input_kwargs is not None and not isinstance(input_kwargs, dict):
        _check.fail_type(f"flashinfer.{where}", "input_kwargs", input_kwargs, "a dict or None")
    on_gpu = torch.cuda.is_available()
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda") if on_gpu and cold_l2_cache else None  # more than any L2
    call = lambda: fn(*input_args, **(input_kwargs or {}))  # noqa: E731
    once = max(_seconds(call, on_gpu, flush), 1e-6)
    iterations = lambda given, ms: max(1, min(int(ms / 1e3 / once), 100000)) if given is None else given  # noqa: E731
    for _ in range(iterations(dry_run_iters, dry_run_time_ms)):
        _seconds(call, on_gpu, flush)
    return [_seconds(call, on_gpu, flush) * 1e3 for _ in range(iterations(repeat_iters, repeat_time_ms))]
