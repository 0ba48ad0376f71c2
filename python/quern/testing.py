# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Cases of the library's own checks, to be run from Python: arguments filled as `quern check` fills them, outputs poisoned, and the verdict
against the op's reference in double. And the timer of `quern bench`, for any calls.

    with quern.testing.Case("norm.rms_norm", "tokens=3 hidden=64") as case:
        case.run()
        assert not case.wrong()

    ours, theirs = quern.testing.bench_gpu_time(lambda: quern.gemm.dense(a, b, out=d), lambda: torch.mm(a, b.t(), out=d))
"""
import ctypes
import json
import math
import numbers
import os
import sys
from typing import Any, Callable, List, NamedTuple, Union

import numpy

from . import _arrays, _check, _op
from ._library import library


def cases(op, most=8, most_bytes=1 << 20):
    """Words of up to `most` cases of an op's covering array whose operands have few bytes."""
    id_, most = _check.op_id("cases", "op", op), _check.integer("cases", "most", most, 0, 1 << 30)
    most_bytes = _check.number("cases", "most_bytes", most_bytes)
    with _check.naming("cases"):
        return [str(words) for words in library().cases(id_, most, most_bytes)]


class Case:
    """Arguments of one case: `tensors` are arrays of NumPy over the case's memory (bf16 and fp8 of ml_dtypes) by name, None where
    absent; outputs hold NaN bytes. ValueError for a case that the op refuses."""

    def __init__(self, op, words="", seed=1):
        self._handle = 0
        id_, words, seed = _check.op_id("Case", "op", op), _check.text("Case", "words", words, "text, as 'tokens=3'"), _check.integer("Case", "seed", seed, 0, 2**63 - 1)
        with _check.naming("Case"):
            self.op = _op.by_id(id_)
            self._handle = library().case_open(id_, words, seed)
        facts = json.loads(library().case_arguments(self._handle))
        self.tensors = {name: None if t is None else _array_at(**t) for name, t in facts["tensors"].items()}
        kinds = {a["name"]: {"f32": float, "bool": bool}.get(a["type"], int) for a in self.op.schema.attributes}
        words = {a["name"]: a["words"] for a in self.op.schema.attributes}
        self.attributes = {name: words[name][int(value)] if words[name] else kinds[name](value) for name, value in facts["attributes"].items()}
        self.options = {"batch_invariant": facts["batch_invariant"], "backend": facts["variant"] or "auto"}
        if facts["hook_params"] is not None:
            self.options["hook_params"] = bytes(facts["hook_params"])

    def run(self, convert=lambda array: array, **options):
        """Calls the op with every tensor as convert(array), outputs given, on the emulated device. Returns what the op returns."""
        self._opened("run")
        _check.function("Case.run", "convert", convert)
        tensors = {name: None if t is None else convert(t) for name, t in self.tensors.items()}
        return self.op(**tensors, **self.attributes, **{"device": "emu", **self.options, **options})

    def changed(self):
        """Elements that a right call changes; it leaves the others as they are, or may put anything there."""
        return int(library().case_changed(self._opened("changed")))

    def wrong(self):
        """What is wrong with the outputs or the memory around them; empty: they are right."""
        return str(library().case_judge(self._opened("wrong")))

    def _opened(self, method):
        """The library's handle; ValueError after close()."""
        if not self._handle:
            raise ValueError(f"Case.{method}: the case of {self.op.id} is closed, expected one that is open")
        return self._handle

    def close(self):
        if self._handle:
            self.tensors = {}
            library().case_close(self._handle)
            self._handle = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Timing(NamedTuple):
    """Microseconds of the runs of a call; `timer` is "CUPTI activity", "CUDA events" (about 4 us more) or "wall clock" (the emulated device)."""

    median_us: float
    p10_us: float
    p90_us: float
    min_us: float
    runs: int
    timer: str


def bench_gpu_time(*calls: Callable[[], Any], cold: bool = True, budget_ms: float = 200.0, device: Any = None, stream: Any = None) -> Union[Timing, List[Timing]]:
    """How long each call keeps the GPU busy, whoever's kernels it launches: from the start of its first kernel to the end of its last, by CUPTI (copies and
    memsets before and behind them are not seen). Several
    calls take turns of one run, so that they meet the same clocks, and give a list. cold: the L2 is filled with other, clean lines before each run.
    budget_ms: of the runs of one call, of which there are 15 to 200 (few on the emulated device) after 30 ms that are not timed. `device`: as ops take it, else the
    standard one. `stream`: on which the calls work, else torch's current one of that GPU, where torch is there, else the default stream. What a call throws is thrown."""
    for i, call in enumerate(calls):
        _check.function("bench_gpu_time", f"calls[{i}]", call)
    if not isinstance(budget_ms, numbers.Real) or isinstance(budget_ms, bool):
        _check.fail_type("bench_gpu_time", "budget_ms", budget_ms, "a number")
    if not calls or not 0 < budget_ms < math.inf:
        raise ValueError(f"bench_gpu_time: {len(calls)} calls and `budget_ms` {budget_ms}, expected at least one and more than 0")
    _check.boolean("bench_gpu_time", "cold", cold)
    device, torch = _op.device_name("bench_gpu_time", device) or os.environ.get("QN_DEVICE", ""), sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and not device.startswith("emu"):
        device = device if ":" in device else f"cuda:{torch.cuda.current_device() if device == '' else 0}"
        stream = torch.cuda.current_stream(torch.device(device)) if stream is None else stream
    thrown = []

    def kept(call):  # TVM-FFI knows only the classes of exceptions that it was told of
        def run():
            try:
                call()
            except BaseException as e:
                thrown.append(e)
                raise

        return run

    handle = _arrays.handle_of("bench_gpu_time", stream) or 0
    try:
        with _check.naming("bench_gpu_time"):
            timings = [Timing(**t) for t in json.loads(library().time_calls([kept(call) for call in calls], cold, float(budget_ms), device, handle))]
    except Exception:
        if thrown:
            raise thrown[0] from None
        raise
    return timings[0] if len(calls) == 1 else timings


def _array_at(address, dtype, shape, strides):
    """An array over memory that is not NumPy's; strides in elements."""
    dtype = numpy.dtype(_arrays.Numpy().dtype(dtype))
    extent = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides))
    memory = (ctypes.c_uint8 * (extent * dtype.itemsize)).from_address(address) if extent else b""
    return numpy.ndarray(shape, dtype, memory, strides=[s * dtype.itemsize for s in strides]) if extent else numpy.empty(shape, dtype)
