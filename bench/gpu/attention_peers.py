#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""attention.ragged and attention.paged beside FlashInfer's FA2, FA3, CUDA-core, XQA and BatchAttention kernels, torch's scaled_dot_product_attention (FlashAttention-2, cuDNN) and flash-attn-4, where these can
be imported and run; in turns: kernel times by CUPTI, L2 cold, random data. quern is called from its Python package, on the tensors that the peers get.

Usage: attention_peers.py [--section prefill,paged,chunked,decode,few] [--random N] [--seed HEX] [--turns N] [--budget MS] [--without PEER,...] [--csv FILE] [--list]
Sections: prefill (whole prompts, contiguous keys), paged (prefill over pages of 1, 16 and 64), chunked (many queries on longer caches), decode (one query a request), few (4 to 64 queries a request),
decode-random and varlen-random (N shapes each of real models' heads, drawn by the seed; `random` names both). --list prints the shapes and measures nothing.

Before a row is timed, each result is compared with quern's: the largest difference, in units of the root mean square of the peer's result in that token and head. Where two differ by more than
16-bit numbers explain, the formula in double at that place says who is wrong. quern's result is also compared with the formula at a few places of each shape. A row where quern is wrong, or does not
run, is not timed, is marked WRONG, and makes the exit status 1. A peer that is wrong is left out with a line.

A call's time is that of all its kernels, those that merge parts too; FlashInfer's plans are made before. TFLOP/s count what causality leaves; GB/s count K and V read once. The ratio is the best
peer's time over quern's: above 1 quern is faster. FlashInfer compiles a module that it does not have, which takes minutes, unless FLASHINFER_DISABLE_JIT is set."""
import argparse
import itertools
import math
import random
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention_shapes import DRAWN, OTHER_HEADS, SECTIONS, shapes_of
from kernel_times import RUNS, TURNS, flashinfer_or_none, geomean, kernel_us, spread, stop_at_sigterm, working, write_csv

BF16 = torch.bfloat16
FEWEST_RUNS = 3
WORKSPACE_BYTES = 512 << 20
# Of the root mean square of a row. Two 16-bit roundings of one value differ by 2^-7 of it at most, and the largest of 1e8 normal values is 5.7: 0.045. Probabilities that are rounded to 16 bits add 0.01.
MOST_DIFFERENCE = 0.08
MOST_ERROR = 0.05  # the same of one result beside the formula
# XQA multiplies FP8 caches by q and probabilities that it rounds to e4m3 too, 2.6 % at random each and more where probabilities are small: 0.042 of the rms in a simulation, 5.7 times that is 0.24.
XQA_FP8_DIFFERENCE = 0.4
PLACES = 6  # (token, head) where quern's result is compared with the formula

OURS, OURS_CONTIGUOUS, OURS_PORTABLE = "quern", "quern, contiguous keys", "quern, portable kernels"
SDPA = {"torch FlashAttention-2": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}
FA4 = "flash-attn-4"
FI_FA2, FI_FA3, CUDA_CORES, XQA, BATCH_ATTENTION = "FlashInfer FA2", "FlashInfer FA3", "FlashInfer CUDA cores", "FlashInfer XQA", "FlashInfer BatchAttention"
PEERS = [OURS_PORTABLE, *SDPA, FA4, FI_FA2, FI_FA3, CUDA_CORES, XQA, BATCH_ATTENTION]

fi = flash_attn_4 = quern = None


class Inputs:
    """Tensors of a shape. Pages of all requests lie in random order in one cache [pages, 2, page, heads_kv, dim], K and V of a page behind each other."""

    def __init__(self, shape):
        s = self.shape = shape
        self.q = randn(sum(s.queries), s.heads_q, s.dim)
        self.q_starts, self.q_indptr = starts_of(s.queries)
        if s.page:
            pages = [-(-length // s.page) for length in s.keys]
            self.page_starts, self.indptr = starts_of(pages)
            self.indices = torch.randperm(sum(pages), device="cuda").int()
            self.cache = randn(sum(pages), 2, s.page, s.heads_kv, s.dim).to(s.kv_dtype)
            self.k_cache, self.v_cache = self.cache.unbind(1)
            self.last = torch.tensor([(length - 1) % s.page + 1 for length in s.keys], dtype=torch.int32, device="cuda")
            self.lengths = torch.tensor(s.keys, dtype=torch.int32, device="cuda")
            self.table = torch.zeros(len(pages), max(pages), dtype=torch.int32, device="cuda")
            for b, n in enumerate(pages):
                self.table[b, :n] = self.indices[self.page_starts[b] : self.page_starts[b] + n]
        else:
            self.k, self.v = randn(sum(s.keys), s.heads_kv, s.dim), randn(sum(s.keys), s.heads_kv, s.dim_v)
            self.kv_starts, self.kv_indptr = starts_of(s.keys)

    def out(self):
        """Where a result goes: NaN, so that what is not written is seen."""
        return torch.full((self.q.shape[0], self.shape.heads_q, self.shape.dim_v), math.nan, device="cuda", dtype=BF16)

    def contiguous(self):
        """(k, v, kv_indptr) of caches whose requests fill their pages."""
        s = self.shape
        k, v = (cache[self.indices.long()].view(-1, s.heads_kv, s.dim) for cache in (self.k_cache, self.v_cache))
        return k, v, starts_of(s.keys)[1]

    def keys_of(self, request, head):
        """(k, v) of one head in double."""
        s, length = self.shape, self.shape.keys[request]
        if not s.page:
            mine = slice(self.kv_starts[request], self.kv_starts[request] + length)
            return self.k[mine, head].double(), self.v[mine, head].double()
        pages = self.indices[self.page_starts[request] : self.page_starts[request + 1]].long()
        bits = torch.uint8 if s.kv_dtype.itemsize == 1 else torch.int16  # torch gathers no FP8 everywhere
        taken = (cache[:, :, head].view(bits)[pages].view(s.kv_dtype) for cache in (self.k_cache, self.v_cache))
        return tuple(t.double().flatten(0, 1)[:length] for t in taken)

    def exact(self, token, head):
        """The formula in double at one query token and head."""
        s = self.shape
        request = max(b for b, start in enumerate(self.q_starts[:-1]) if start <= token and s.queries[b])
        k, v = self.keys_of(request, head // s.group)
        seen = s.keys[request] - s.queries[request] + token - self.q_starts[request] + 1 if s.causal else s.keys[request]
        logits = k[:seen] @ self.q[token, head].double() / math.sqrt(s.dim)
        return logits.softmax(0) @ v[:seen]


def randn(*shape):
    return torch.randn(*shape, device="cuda", dtype=BF16)


def starts_of(counts):
    """Where each begins, and behind them the sum: as a list, and as i32 on the GPU."""
    starts = [0, *itertools.accumulate(counts)]
    return starts, torch.tensor(starts, dtype=torch.int32, device="cuda")


# What makes a provider's call for inputs. It allocates and plans; the call alone is timed, and returns the result.


def quern_call(d, backend=None):
    s, out = d.shape, d.out()
    if not s.page:
        return lambda: quern.attention.ragged(d.q, d.k, d.v, d.q_indptr, d.kv_indptr, causal=s.causal, max_seq_q=max(s.queries), out=out, backend=backend)
    steps = {"q_indptr": d.q_indptr, "causal": s.causal, "max_seq_q": max(s.queries)} if set(s.queries) != {1} else {}
    return lambda: quern.attention.paged(d.q, d.k_cache, d.v_cache, d.table, d.lengths, max_seq_kv=max(s.keys), out=out, backend=backend, **steps)


def quern_portable_call(d):
    return quern_call(d, "portable")


def quern_contiguous_call(d):
    s, out = d.shape, d.out()
    k, v, kv_indptr = d.contiguous()
    return lambda: quern.attention.ragged(d.q, k, v, d.q_indptr, kv_indptr, causal=s.causal, max_seq_q=max(s.queries), out=out)


def sdpa_call(backend):
    def make(d):
        s = d.shape
        q, k, v = (t.view(len(s.keys), -1, *t.shape[1:]).transpose(1, 2) for t in (d.q, d.k, d.v))

        def call():
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=s.causal, enable_gqa=s.group > 1).transpose(1, 2)

        return call

    return make


def flash_attn_4_call(d):
    q, k, v = (t.view(len(d.shape.keys), -1, *t.shape[1:]) for t in (d.q, d.k, d.v))

    def call():
        result = flash_attn_4(q, k, v, causal=d.shape.causal)
        return result[0] if isinstance(result, tuple) else result

    return call


_workspaces = {}


def workspace(name):
    """Zeros at first, as XQA wants its counters to be; one for all calls of a kind."""
    if name not in _workspaces:
        _workspaces[name] = torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
    return _workspaces[name]


def ragged_call(backend):
    def make(d):
        s, out = d.shape, d.out()
        wrapper = fi.BatchPrefillWithRaggedKVCacheWrapper(workspace("FlashInfer"), "NHD", backend=backend)
        wrapper.plan(d.q_indptr, d.kv_indptr, s.heads_q, s.heads_kv, s.dim, head_dim_vo=s.dim_v, causal=s.causal, q_data_type=BF16, kv_data_type=BF16)
        return lambda: wrapper.run(d.q, d.k, d.v, out=out)

    return make


def paged_call(backend):
    def make(d):
        s, out = d.shape, d.out()
        wrapper = fi.BatchPrefillWithPagedKVCacheWrapper(workspace("FlashInfer"), "NHD", backend=backend)
        wrapper.plan(d.q_indptr, d.indptr, d.indices, d.last, s.heads_q, s.heads_kv, s.dim, s.page, causal=s.causal, q_data_type=BF16, kv_data_type=s.kv_dtype)
        return lambda: wrapper.run(d.q, d.cache, out=out)

    return make


def batch_attention_call(d):
    s, out = d.shape, d.out()
    if BATCH_ATTENTION not in _workspaces:
        _workspaces[BATCH_ATTENTION] = fi.BatchAttention("NHD", "cuda")  # with a workspace of its own
    wrapper, lse = _workspaces[BATCH_ATTENTION], torch.empty(d.q.shape[:2], device="cuda")
    wrapper.plan(d.q_indptr, d.indptr, d.indices, d.lengths, s.heads_q, s.heads_kv, s.dim, s.dim_v, s.page, causal=s.causal, q_data_type=BF16, kv_data_type=s.kv_dtype)
    return lambda: wrapper.run(d.q, d.cache, out=out, lse=lse)[0]


def decode_call(tensor_cores):
    def make(d):
        s, out = d.shape, d.out()
        wrapper = fi.BatchDecodeWithPagedKVCacheWrapper(workspace("FlashInfer"), "NHD", use_tensor_cores=tensor_cores, backend="fa2")
        wrapper.plan(d.indptr, d.indices, d.last, s.heads_q, s.heads_kv, s.dim, s.page, q_data_type=BF16, kv_data_type=s.kv_dtype)
        return lambda: wrapper.run(d.q, d.cache, out=out)

    return make


def xqa_call(d):
    s, out = d.shape, d.out()
    return lambda: fi.decode.xqa_batch_decode_with_kv_cache(d.q, d.cache, workspace(XQA), d.table, d.lengths, max(s.keys), 1 / math.sqrt(s.dim), 1.0, out=out)


def providers(shape, without):
    """{name: what makes its call} of those that are asked for, quern first."""
    return {name: make for name, make in all_providers(shape).items() if name not in without}


def all_providers(shape):
    """What the shape's section compares, of what could be imported."""
    made = {OURS: quern_call}
    if shape.section == "prefill":
        made |= {name: sdpa_call(backend) for name, backend in SDPA.items()}
        if fi:
            made[FI_FA3] = ragged_call("fa3")
        if flash_attn_4:
            made[FA4] = flash_attn_4_call
        return made
    if shape.section == "paged":
        made[OURS_CONTIGUOUS] = quern_contiguous_call
    else:
        made[OURS_PORTABLE] = quern_portable_call
    if not fi:
        return made
    if shape.section.startswith("decode"):
        made |= {FI_FA2: decode_call(True), CUDA_CORES: decode_call(False), BATCH_ATTENTION: batch_attention_call}
        if shape.page in (16, 32, 64, 128):
            made[XQA] = xqa_call
        return made
    made |= {FI_FA2: paged_call("fa2"), BATCH_ATTENTION: batch_attention_call}
    if shape.kv == "bf16":  # its FA3 has no kernel for FP8 caches beside a q of 16 bits
        made[FI_FA3] = paged_call("fa3")
    return made


def has_module(dim):
    """Whether FlashInfer has its FA2 module for that head_dim without compiling it."""
    if not fi:
        return False
    from flashinfer.jit import env
    from flashinfer.jit.attention.modules import get_batch_prefill_uri

    uri = get_batch_prefill_uri("fa2", BF16, BF16, BF16, torch.int32, dim, dim, 0, False, False, False)
    return any(env.get_aot_path(uri + suffix).exists() for suffix in ("", "_kv_stride_equal"))


class Row:
    """What was measured of a shape. wrong: why quern's result is not to be timed."""

    def __init__(self, shape):
        self.shape, self.us, self.kernels, self.differences, self.left_out, self.wrong = shape, {}, {}, {}, set(), ""

    def median(self, by):
        return statistics.median(self.us[by])

    def best(self):
        """The best peer's name and time."""
        return min(((by, self.median(by)) for by in self.us if not by.startswith(OURS)), key=lambda x: x[1], default=None)

    def line(self):
        if self.wrong:
            return f"{self.shape.label}: WRONG: {self.wrong}"
        if OURS not in self.us:
            return f"{self.shape.label}: was not timed"
        text = "  ".join(f"{by} {spread(us)} {self.shape.rate(self.median(by))}" for by, us in self.us.items())
        best, most = self.best(), max(self.differences.values(), default=None)
        beside = f"  {best[0]} / quern {best[1] / self.median(OURS):.3f}" if best else "  no peer"
        return f"{self.shape.label}: {text}{beside}" + (f"  differ by {most:.3f} at most" if most is not None else "")


def most_difference(shape, name):
    """Between quern's result and that of a provider."""
    return XQA_FP8_DIFFERENCE if name == XQA and shape.kv == "e4m3" else MOST_DIFFERENCE


def difference(ours, theirs, rows=4096):
    """The largest difference, of the rms of theirs in its token and head, and that token and head. What is no number differs by infinity."""
    most, at = -1.0, (0, 0)
    for first in range(0, ours.shape[0], rows):
        a, b = ours[first : first + rows].float(), theirs[first : first + rows].float()
        of = ((a - b).abs().amax(-1) / b.square().mean(-1).sqrt()).nan_to_num(nan=math.inf)
        value, place = of.flatten().max(0)
        if value.item() > most:
            most, at = value.item(), (first + place.item() // of.shape[1], place.item() % of.shape[1])
    return most, at


def error_at(d, result, token, head):
    """The largest difference from the formula there, of the formula's rms."""
    want = d.exact(token, head)
    error = (result[token, head].double() - want).abs().amax() / want.square().mean().sqrt()
    return error.nan_to_num(nan=math.inf).item()


def places_of(d):
    """The first and the last query token, and some between."""
    tokens, heads = d.q.shape[:2]
    rng = random.Random(tokens)
    return [(0, 0), (tokens - 1, heads - 1), *((rng.randrange(tokens), rng.randrange(heads)) for _ in range(PLACES - 2))]


def judge(d, results, row):
    """Compares all results; fills the row's differences, what is left out, and whether quern is wrong."""
    ours = results[OURS]
    for token, head in places_of(d):
        error = error_at(d, ours, token, head)
        if error > MOST_ERROR:
            row.wrong = f"quern is {error:.3g} rms off the formula at token {token}, head {head}"
            return
    for name, theirs in results.items():
        if name == OURS:
            continue
        theirs = theirs.reshape(ours.shape)
        row.differences[name], (token, head) = difference(ours, theirs)
        if row.differences[name] <= most_difference(d.shape, name):
            continue
        mine, other = error_at(d, ours, token, head), error_at(d, theirs, token, head)
        what = f"at token {token}, head {head} they differ by {row.differences[name]:.3g} rms; off the formula: quern {mine:.3g}, {name} {other:.3g}"
        if mine > MOST_ERROR or mine >= other or name.startswith(OURS):
            row.wrong = what
            return
        print(f"{d.shape.label}: {name} is wrong and left out: {what}", flush=True)
        row.left_out.add(name)
        del row.differences[name]


_said = set()


def calls_of(d, row, without):
    """{name: call} of the providers that run the shape; of the others a line, once for each reason."""
    calls = {}
    for name, make in providers(d.shape, without).items():
        if name in row.left_out:
            continue

        def first(name=name, make=make):
            try:
                calls[name] = make(d)
                calls[name]()
            except Exception as e:
                calls.pop(name, None)
                row.left_out.add(name)
                module = getattr(getattr(e, "spec", None), "name", None)  # FlashInfer's, which it may not compile
                reason = f"{name} {type(e).__name__} {module or str(e)[:80]}"
                if reason in _said and name != OURS:
                    return
                _said.add(reason)
                if module:
                    raise RuntimeError(f"its module {module} is not there") from e
                raise

        working({name: first}, d.shape.label)
    return calls


def measure(row, compare, budget, without):
    d = Inputs(row.shape)
    calls = calls_of(d, row, without)
    if OURS not in calls:
        row.wrong = "quern does not run it"
        return
    if compare:
        judge(d, {name: call() for name, call in calls.items()}, row)
        if row.wrong:
            return
    calls = {name: call for name, call in calls.items() if name not in row.left_out}
    for name, times in kernel_us(calls, runs_within(calls, budget)).items():
        row.us.setdefault(name, []).append(times.median)
        row.kernels[name] = times.kernels


def runs_within(calls, budget):
    """Runs of each call for which a call takes `budget` milliseconds on average."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for call in calls.values():
        call()
    end.record()
    end.synchronize()
    return int(min(RUNS, max(FEWEST_RUNS, budget * len(calls) / max(start.elapsed_time(end), 1e-3))))


def print_summary(rows):
    for section in dict.fromkeys(row.shape.section for row in rows):
        mine = [row for row in rows if row.shape.section == section]
        ratios = [(row.best()[1] / row.median(OURS), row) for row in mine if OURS in row.us and row.best()]
        if ratios:
            least, at = min(ratios, key=lambda r: r[0])
            print(f"{section}: best peer / quern {geomean([r for r, _ in ratios]):.3f} geomean, {least:.3f} least ({at.best()[0]} at {at.shape.label}) of {len(ratios)}")
        for by in dict.fromkeys(by for row in mine for by in row.us if by != OURS):
            beside = [row.median(by) / row.median(OURS) for row in mine if by in row.us]
            print(f"{section}: {by} / quern {geomean(beside):.3f} geomean, {min(beside):.3f} least of {len(beside)}")
        wrong = sum(bool(row.wrong) for row in mine)
        if wrong:
            print(f"{section}: {wrong} of {len(mine)} rows are WRONG")


def csv_rows(rows):
    lines = []
    for row in rows:
        s = row.shape
        what = dict(section=s.section, batch=len(s.keys), queries=sum(s.queries), most_queries=max(s.queries), keys=sum(s.keys), most_keys=max(s.keys), heads_q=s.heads_q, heads_kv=s.heads_kv, head_dim=s.dim,
                    head_dim_v=s.dim_v, page_size=s.page, kv_dtype=s.kv, causal=int(s.causal))
        if row.wrong or not row.us:
            lines.append(what | dict(by=OURS, median_us="", min_us="", max_us="", turns=0, kernels="", times_quern="", tflops="", gbps="", difference="", verdict=f"WRONG: {row.wrong}" if row.wrong else "not timed"))
            continue
        for by, us in row.us.items():
            median = row.median(by)
            tflops, gbps = s.rates(median)
            lines.append(what | dict(by=by, median_us=f"{median:.3f}", min_us=f"{min(us):.3f}", max_us=f"{max(us):.3f}", turns=len(us), kernels=f"{row.kernels[by]:g}", times_quern=f"{median / row.median(OURS):.3f}",
                                     tflops=f"{tflops:.1f}", gbps=f"{gbps:.0f}", difference=f"{row.differences[by]:.4f}" if by in row.differences else "", verdict="right"))
    return lines


def sections_of(text):
    sections = [one for word in text.split(",") for one in (DRAWN if word == "random" else [word])]
    unknown = [section for section in sections if section not in [*SECTIONS, *DRAWN]]
    if unknown:
        sys.exit(f"no section is called {', '.join(unknown)}; expected some of {', '.join([*SECTIONS, *DRAWN, 'random'])}")
    return list(dict.fromkeys(sections))


def import_peers():
    global fi, flash_attn_4
    fi = flashinfer_or_none()
    try:
        from flash_attn.cute import flash_attn_func as flash_attn_4
    except Exception as e:  # noqa: BLE001  whatever its import needs
        print(f"{FA4} is absent: {type(e).__name__} {(str(e).splitlines() or [''])[0][:160]}")


def main():
    global quern
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", default=",".join(SECTIONS))
    parser.add_argument("--random", type=int, default=12, help="how many shapes of each random section")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--budget", type=float, default=60, help=f"milliseconds of timed runs of a call in a turn, which has {FEWEST_RUNS} to {RUNS}")
    parser.add_argument("--without", default="", help="peers that are left out, by their names in the output, with commas between: one that ends the process, say")
    parser.add_argument("--csv")
    parser.add_argument("--list", action="store_true", help="print the shapes alone")
    options = parser.parse_args()
    sections, seed, without = sections_of(options.section), int(options.seed, 16), list(filter(None, options.without.split(",")))
    unknown = [name for name in without if name not in PEERS]
    if unknown:
        sys.exit(f"no peer is called {', '.join(unknown)}; expected some of {', '.join(PEERS)}")
    import_peers()
    dims = [128, 128, *filter(has_module, OTHER_HEADS)]  # others only where a peer is there for them
    all_rows = {section: [Row(shape) for shape in shapes_of(section, seed, options.random, dims)] for section in sections}
    rows = [row for mine in all_rows.values() for row in mine]
    if options.list:
        for row in rows:
            print(f"{row.shape.label}: {row.shape.flops / 1e9:.1f} GFLOP, {row.shape.kv_bytes / 1e6:.1f} MB; {', '.join(providers(row.shape, without))}")
        return 0
    import quern

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, quern {quern.__version__}")
    torch.manual_seed(seed)
    stop_at_sigterm()
    try:
        for section, mine in all_rows.items():
            start = time.perf_counter()
            for turn in range(options.turns):
                for row in mine:
                    if not row.wrong:
                        measure(row, turn == 0, options.budget, without)
                    torch.cuda.empty_cache()
            for row in mine:
                print(row.line())
            print(f"{section}: {time.perf_counter() - start:.0f} s", flush=True)
    finally:  # of what was measured
        write_csv(options.csv, csv_rows(rows))
        print_summary([row for row in rows if row.us or row.wrong])
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
