# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Timers. On a GPU by events and torch's profiler; on the emulated device by the host's clock, which says nothing of a GPU."""
import contextlib
import logging
import os
import time

import torch

from quern.compat.deep_gemm._arguments import checked

_FLUSH_BYTES = 256 << 20  # more than any L2


def _flush():
    torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda").zero_()


def _host_seconds(function, times):
    begin = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - begin) / times


@checked()
def bench(fn, num_warmups=5, num_tests=10, high_precision=False):
    """Seconds a call, mean of num_tests in a row. high_precision: the GPU is kept busy until all are queued."""
    for _ in range(num_warmups):
        fn()
    if not torch.cuda.is_available():
        return _host_seconds(fn, num_tests)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    _flush()
    if high_precision:
        torch.cuda._sleep(20_000_000)  # cycles: 10 ms
    begin.record()
    for _ in range(num_tests):
        fn()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / num_tests / 1e3


@checked()
def bench_kineto(fn, kernel_names, num_tests=30, suppress_kineto_output=False, trace_path=None, flush_l2=True, with_multiple_kernels=False, barrier=None):
    """Seconds that the kernels take whose names contain kernel_names, a text or a tuple of texts: the mean of a kernel, or with_multiple_kernels their sum in
    a call. A text that no kernel's name has is a RuntimeError; in a tuple, of what a call may launch or not, it counts 0, and where all do the log says so.
    RuntimeError where several have it and with_multiple_kernels is not said. Without a GPU the time of a call. With DG_USE_NVIDIA_TOOLS=1 nothing is
    measured and the result is 1."""
    alone = isinstance(kernel_names, str)
    names = (kernel_names,) if alone else kernel_names
    if int(os.environ.get("DG_USE_NVIDIA_TOOLS", 0)):
        seconds = [1] * len(names)
    elif not torch.cuda.is_available():
        fn()
        seconds = [_host_seconds(fn, num_tests)] * len(names)
    else:
        with (suppress_stdout_stderr if suppress_kineto_output else empty_suppress)():
            kernels = _profiled(fn, num_tests, trace_path, flush_l2, barrier)
        seconds = _seconds_of(names, kernels, num_tests, with_multiple_kernels, alone)
    return seconds[0] if alone else tuple(seconds)


def _profiled(fn, num_tests, trace_path, flush_l2, barrier):
    """[(name, calls, seconds of all)] of the kernels that num_tests calls launch."""
    fn()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(num_tests):
            if flush_l2:
                _flush()
            if barrier is not None:
                torch.cuda._sleep(20_000_000)
                barrier()
            fn()
        torch.cuda.synchronize()
    if trace_path is not None:
        profiler.export_chrome_trace(trace_path)
    return [(e.key, e.count, e.device_time_total / 1e6) for e in profiler.key_averages()]


def _seconds_of(names, kernels, num_tests, several, alone):
    matching = [[k for k in kernels if name in k[0]] for name in names]
    ran = ", ".join(k[0] for k in kernels)
    for name, of_name in zip(names, matching):
        if (alone and not of_name) or (len(of_name) > 1 and not several):
            raise RuntimeError(f"deep_gemm.bench_kineto: `kernel_names` has {name!r}, which {len(of_name)} kernels have, expected {'one or more' if several else 'one'} of {ran}")
    if not any(matching):
        logging.getLogger("quern").warning("deep_gemm.bench_kineto: `kernel_names` is %s, of which no kernel has any, so all are 0; there are %s", names, ran)
    return [sum(k[2] for k in of_name) / (num_tests if several else of_name[0][1]) if of_name else 0.0 for of_name in matching]


empty_suppress = contextlib.nullcontext


@contextlib.contextmanager
def suppress_stdout_stderr():
    """What is written to both goes nowhere, also by C."""
    saved = [os.dup(descriptor) for descriptor in (1, 2)]
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        for descriptor in (1, 2):
            os.dup2(nothing, descriptor)
        yield
    finally:
        for descriptor, old in zip((1, 2), saved):
            os.dup2(old, descriptor)
            os.close(old)
        os.close(nothing)
