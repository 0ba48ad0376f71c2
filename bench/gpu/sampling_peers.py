#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Sampling, argmax, softmax, filters, top-k and penalties on rows of f32 beside FlashInfer's, torch's, torch.compile's and quack's kernels, where these packages can be imported; in turns: kernel
times by CUPTI, L2 cold. Logits are 2 (u + u + u) with u uniform in [-1, 1), as `quern bench` draws normal rows. Temperature is 1, top-k 50, top-p 0.9, min-p 0.05.

Usage: sampling_peers.py QUERN [--package] [--large] [--csv FILE] [--section sample,argmax,softmax,renorm,mask,topk,process,kinds] [--turns N] [--budget MS]
QUERN is the command. Its `bench` compares tokens with a reference that sorts each row, which for sampling.sample takes 6 to 25 s a case of more than 64 x 128256: these need --large. It draws
the rows of top-k from all kinds in turn (few values, -inf, NaN, ...), not normal ones. With --package quern is called from its Python package, in the peers' turns on
the peers' tensors, and QUERN is not used; tokens are then compared with the filters alone, as the peers' are.

A name says whether a call starts from logits or from probs; softmax is no part of the time of those from probs, whoever makes them. FlashInfer's top-k then top-p gets top-k as a tensor, as
engines give it; with a number it takes its top-k kernel, a module that takes long to compile: that form and its top_k are timed where the module is there already.

`over` is quern's time less `passes` times that of reading all rows once at the rate which two reductions over 2 GiB reach in this run: rows that are written count as one more pass.
kinds: sampling.sample of other rows (flat, plateaus, one token that holds nearly all, a third of -inf), quern alone."""
import argparse
import math
import statistics
import sys
import time

import torch

from kernel_times import TURNS, compile_without_limit, flashinfer_or_none, geomean, kernel_us, must_be_close, quern_bench, read_bytes_per_us, spread, stop_at_sigterm, working, write_csv

SHAPES = {128256: [1, 16, 64, 256], 262144: [64, 256]}  # rows of each vocabulary
MOST_REFERENCED = 64 * 128256
TOP_K, TOP_P, MIN_P = 50, 0.9, 0.05
KINDS = {0: "normal", 1: "flat", 2: "plateaus", 3: "one token", 4: "a third -inf"}  # as the word data counts them
KIND_ROWS = 16
LOGITS, PROBS = "logits", "probs"

fi = quack_softmax = quern = None


class Inputs:
    """Rows of one shape, and what the checks need of them."""

    def __init__(self, rows, vocab, kind=0):
        u = lambda: torch.rand(rows, vocab, device="cuda") * 2 - 1  # noqa: E731
        self.rows, self.vocab, self.logits = rows, vocab, 2 * (u() + u() + u())
        if kind == 1:
            self.logits.fill_(-1.5)
        elif kind == 2:
            self.logits = torch.randint(0, 4, (rows, vocab), device="cuda") / 2
        elif kind == 3:  # 0.99 of the mass
            chosen = torch.randint(0, vocab, (rows, 1), device="cuda")
            self.logits.scatter_(1, chosen, self.logits.logsumexp(-1, keepdim=True) + math.log(99))
        elif kind == 4:
            self.logits[torch.rand(rows, vocab, device="cuda") < 1 / 3] = -math.inf
        self.probs = torch.softmax(self.logits, -1)
        self.out = torch.empty(rows, vocab, device="cuda")
        self.tokens = torch.empty(rows, dtype=torch.int32, device="cuda")
        self.top_ks = torch.full((rows,), TOP_K, dtype=torch.int32, device="cuda")


def check_tokens(d, tokens, what, top_k=0, top_p=1.0, min_p=0.0, joint=False):
    """Ends the script where a token is not of those that the filters keep."""
    p = d.probs
    mine = p.gather(1, tokens.view(-1, 1).long())
    larger = p > mine
    rank = larger.sum(-1)
    before = torch.where(larger, p, 0).sum(-1)
    total = torch.ones_like(before)
    if top_k and top_p < 1 and not joint:
        total = p.topk(top_k, -1).values.sum(-1)
    wrong = (mine[:, 0] <= 0) | (before >= (top_p + 1e-3) * total)
    if top_k:
        wrong |= rank >= top_k
    if min_p:
        wrong |= mine[:, 0] < min_p * p.amax(-1) * (1 - 1e-4)
    if wrong.any():
        sys.exit(f"{what} draws tokens that its filters remove, in {int(wrong.sum())} of {d.rows} rows")


def some(t):
    return t[:4]


def check_kept(d, out, what, empty, top_k=0, top_p=1.0, tokens_more=4, values=None):
    """Of the first rows: about as many are kept as should be, the largest, with their values."""
    p = some(d.probs).double()
    order = p.argsort(-1, descending=True)
    ordered = p.gather(1, order)
    keep = torch.ones_like(p, dtype=torch.bool)
    if top_k:
        keep[:, top_k:] = False
    if top_p < 1:
        keep &= ordered.cumsum(-1) - ordered < top_p
    wanted = keep.sum(-1)
    got = (some(out) != empty).gather(1, order)
    slack = tokens_more + (wanted * 0.002).long()
    if ((got.sum(-1) - wanted).abs() > slack).any() or (got & ~keep).sum(-1).gt(slack).any():
        sys.exit(f"{what} keeps {got.sum(-1).tolist()} tokens, not {wanted.tolist()}")
    here = got & keep
    if values is not None:
        want = values(p, keep, ordered, order)
        must_be_close(some(out).gather(1, order)[here], want[here], what, rtol=5e-3, atol=0)


def renormed(p, keep, ordered, order):
    return ordered / torch.where(keep, ordered, 0).sum(-1, keepdim=True)


class Mode:
    """One op with one set of filters. words: of `quern bench`, alike from logits and probs; call(d, source): quern's through its package; peers(d): {name: call};
    check(d, result, what). batch: modes of one `quern bench`, whose words then multiply."""

    def __init__(self, section, name, op, words, call, peers, check, passes=1, batch=None, sources=(LOGITS,), length="vocab"):
        self.section, self.name, self.op, self.words, self.call, self.peers, self.check = section, name, op, words, call, peers, check
        self.passes, self.batch, self.sources, self.length = passes, batch or name, sources, length


def sample_mode(name, batch, top_k=0, top_p=1.0, min_p=0.0, order="top_k_first", peers=lambda d: {}):
    words = {"data": "0", "tensors": "0", "temperature": "1", "top_k": str(top_k), "top_p": f"{top_p:g}", "min_p": f"{min_p:g}", "order": order, "min_p_first": "0", "logits.dtype": "f32"}

    def call(d, source):
        given = {"logits": d.logits} if source == LOGITS else {"probs": d.probs}
        return quern.sampling.sample(**given, top_k=top_k, top_p=top_p, min_p=min_p, order=order, seed=1, out=d.tokens)

    def check(d, tokens, what):
        check_tokens(d, tokens, what, top_k, top_p, min_p, order == "joint")

    return Mode("sample", name, "sampling.sample", words, call, peers, check, batch=batch, sources=(LOGITS, PROBS))


def peers_plain(d):
    calls = {"torch.multinomial from probs": lambda: torch.multinomial(d.probs, 1)}
    if fi:
        calls["FlashInfer from logits"] = lambda: fi.sampling_from_logits(d.logits)
        calls["FlashInfer from probs"] = lambda: fi.sampling_from_probs(d.probs)
    return calls


def peers_top_k(d):
    return {"FlashInfer from probs": lambda: fi.top_k_sampling_from_probs(d.probs, TOP_K)} if fi else {}


def peers_top_p(d):
    return {"FlashInfer from probs": lambda: fi.top_p_sampling_from_probs(d.probs, TOP_P)} if fi else {}


def has_top_k_module():
    from flashinfer.jit import env

    return env.get_aot_path("topk").exists()


def peers_top_k_first(d):
    if not fi:
        return {}
    calls = {"FlashInfer from logits": lambda: fi.top_k_top_p_sampling_from_logits(d.logits, d.top_ks, TOP_P, filter_apply_order="top_k_first"),
             "FlashInfer from probs": lambda: fi.top_k_top_p_sampling_from_probs(d.probs, d.top_ks, TOP_P, filter_apply_order="top_k_first")}
    if has_top_k_module():
        calls["FlashInfer from logits, one top-k"] = lambda: fi.top_k_top_p_sampling_from_logits(d.logits, TOP_K, TOP_P, filter_apply_order="top_k_first")
    return calls


def peers_joint(d):
    if not fi:
        return {}
    return {"FlashInfer from logits": lambda: fi.top_k_top_p_sampling_from_logits(d.logits, TOP_K, TOP_P, filter_apply_order="joint"),
            "FlashInfer from probs": lambda: fi.top_k_top_p_sampling_from_probs(d.probs, TOP_K, TOP_P, filter_apply_order="joint")}


def peers_min_p(d):
    return {"FlashInfer from probs": lambda: fi.min_p_sampling_from_probs(d.probs, MIN_P)} if fi else {}


def peers_argmax(d):
    return {"torch.argmax": lambda: torch.argmax(d.logits, -1)}


def check_argmax(d, out, what):
    if not torch.equal(out.long(), torch.argmax(d.logits, -1)):
        sys.exit(f"{what} is wrong")


def peers_softmax(d):
    calls = {"torch.softmax": lambda: torch.softmax(d.logits, -1)}
    if fi:
        calls["FlashInfer"] = lambda: fi.softmax(d.logits, temperature=1.0)
    if quack_softmax:
        calls["quack"] = lambda: quack_softmax(d.logits)
    return calls


def check_softmax(d, out, what):
    must_be_close(some(out), torch.softmax(some(d.logits).double(), -1), what, rtol=1e-3, atol=0)


def renorm_mode(name, peers, **filters):
    words = {"data": "0", "tensors": "0", "top_k": str(filters.get("top_k", 0)), "top_p": f"{filters.get('top_p', 1):g}", "min_p": "0", "order": "top_k_first", "min_p_first": "0"}
    return Mode("renorm", name, "sampling.renorm", words, lambda d, _: quern.sampling.renorm(d.probs, **filters, out=d.out), peers,
                lambda d, out, what: check_kept(d, out, what, 0, **filters, values=renormed), passes=2, sources=(PROBS,))


def peers_renorm_top_k(d):
    return {"FlashInfer from probs": lambda: fi.top_k_renorm_probs(d.probs, TOP_K)} if fi else {}


def peers_renorm_top_p(d):
    return {"FlashInfer from probs": lambda: fi.top_p_renorm_probs(d.probs, TOP_P)} if fi else {}


def peers_mask(d):
    return {"FlashInfer from logits": lambda: fi.top_k_mask_logits(d.logits, TOP_K)} if fi else {}


def select_mode(k):
    def call(d, _):
        return quern.topk.select(d.logits, k=k, indices=outputs(d)[0], values=outputs(d)[1])

    def outputs(d):
        if getattr(d, "k", None) != k:
            d.k, d.selected = k, (torch.empty(d.rows, k, dtype=torch.int32, device="cuda"), torch.empty(d.rows, k, device="cuda"))
        return d.selected

    def peers(d):
        calls = {"torch.topk": lambda: torch.topk(d.logits, k, -1)[::-1]}
        if fi and has_top_k_module():
            calls["FlashInfer"] = lambda: fi.top_k(d.logits, k, sorted=True)[::-1]
        return calls

    def check(d, result, what):
        indices, values = result
        want = torch.topk(some(d.logits), k, -1).values
        if not torch.equal(some(values), want) or not torch.equal(some(d.logits).gather(1, some(indices).long()), want):
            sys.exit(f"{what} is wrong")

    return Mode("topk", f"top-k {k}", "topk.select", {"k": str(k), "sorted": "1", "x.dtype": "f32", "lengths.present": "0", "row_starts.present": "0", "values.present": "1"}, call, peers, check, batch="select", length="length")


class Penalties:
    """How often each token stands in the output, whether it stands in the prompt, and the penalties of each row."""

    def __init__(self, d):
        self.counts = (torch.rand(d.rows, d.vocab, device="cuda") < 0.02).int() * torch.randint(1, 9, (d.rows, d.vocab), device="cuda", dtype=torch.int32)
        words = (d.vocab + 31) // 32
        self.bits = torch.randint(-(2**31), 2**31, (d.rows, words), device="cuda") & torch.randint(-(2**31), 2**31, (d.rows, words), device="cuda") & torch.randint(-(2**31), 2**31, (d.rows, words), device="cuda")
        self.bits = self.bits.int()
        self.repetition, self.frequency, self.presence = (torch.rand(d.rows, device="cuda") * 0.5 + least for least in (1.0, 0.0, 0.25))


def penalised(logits, counts, bits, repetition, frequency, presence):
    at = torch.arange(logits.shape[1], device=logits.device)
    prompt = (bits[:, at // 32] >> (at % 32)) & 1
    output = counts > 0
    repetition = repetition[:, None].to(logits.dtype)
    x = torch.where(output | (prompt == 1), torch.where(logits > 0, logits / repetition, logits * repetition), logits)
    return x - frequency[:, None] * counts.clamp(min=0) - torch.where(output, presence[:, None], 0)


_compiled = {}


def penalties_of(d):
    if not hasattr(d, "penalties"):
        d.penalties = Penalties(d)
    return d.penalties


def process_call(d, _):
    p = penalties_of(d)
    return quern.logits.process(d.logits, counts=p.counts, prompt_bits=p.bits, repetition_penalties=p.repetition, frequency_penalties=p.frequency, presence_penalties=p.presence, out=d.out)


def peers_process(d):
    p = penalties_of(d)
    compiled = _compiled.setdefault("process", torch.compile(penalised, dynamic=False))
    return {"torch.compile": lambda: compiled(d.logits, p.counts, p.bits, p.repetition, p.frequency, p.presence)}


def check_process(d, out, what):
    p = penalties_of(d)
    want = penalised(some(d.logits).double(), *map(some, (p.counts, p.bits, p.repetition, p.frequency, p.presence)))
    must_be_close(some(out), want, what, rtol=1e-4, atol=1e-4)


PLAIN = sample_mode("sample", "sample", peers=peers_plain)
FIRST = sample_mode("sample, top-k then top-p", "sample", top_k=TOP_K, top_p=TOP_P, peers=peers_top_k_first)
MODES = [
    PLAIN, sample_mode("sample, top-k", "sample", top_k=TOP_K, peers=peers_top_k), sample_mode("sample, top-p", "sample", top_p=TOP_P, peers=peers_top_p), FIRST,
    sample_mode("sample, joint", "joint", top_k=TOP_K, top_p=TOP_P, order="joint", peers=peers_joint), sample_mode("sample, min-p", "min_p", min_p=MIN_P, peers=peers_min_p),
    Mode("argmax", "argmax", "sampling.argmax", {"data": "0", "logits.dtype": "f32"}, lambda d, _: quern.sampling.argmax(d.logits, out=d.tokens), peers_argmax, check_argmax),
    Mode("softmax", "softmax", "sampling.softmax", {"data": "0", "logits.dtype": "f32", "temperatures.present": "0", "temperature": "1"}, lambda d, _: quern.sampling.softmax(d.logits, out=d.out), peers_softmax, check_softmax, passes=2),
    renorm_mode("renorm, top-k", peers_renorm_top_k, top_k=TOP_K), renorm_mode("renorm, top-p", peers_renorm_top_p, top_p=TOP_P),
    Mode("mask", "mask, top-k", "sampling.mask", {"data": "0", "tensors": "0", "temperature": "1", "top_k": str(TOP_K), "top_p": "1", "min_p": "0", "order": "top_k_first", "min_p_first": "0", "logits.dtype": "f32"},
         lambda d, _: quern.sampling.mask(d.logits, top_k=TOP_K, out=d.out), peers_mask, lambda d, out, what: check_kept(d, out, what, -math.inf, top_k=TOP_K, values=lambda p, keep, ordered, order: some(d.logits).double().gather(1, order)), passes=2),
    select_mode(64), select_mode(2048),
    Mode("process", "penalties", "logits.process", {"logits.dtype": "f32", "state": "1", "own_slots": "1", "tensors": "1", "mask": "0", "bias_form": "0", "soft_cap": "0"}, process_call, peers_process, check_process, passes=3)]


def named(source):
    return f"quern from {source}"


def same(a, b):
    try:
        return float(a) == float(b)
    except ValueError:
        return {"true": "1", "false": "0"}.get(a, a) == {"true": "1", "false": "0"}.get(b, b)


class Table:
    """Times by mode, rows and vocabulary, and by whose they are."""

    def __init__(self):
        self.us, self.kernels = {}, {}

    def add(self, mode, rows, vocab, by, us, kernels):
        self.us.setdefault((mode.name, rows, vocab), {}).setdefault(by, []).append(us)
        self.kernels[mode.name, rows, vocab, by] = kernels

    def median(self, mode, rows, vocab, by):
        us = self.us.get((mode.name, rows, vocab), {}).get(by)
        return statistics.median(us) if us else None

    def best(self, mode, rows, vocab, source=None):
        """The best peer's name and time: all, or those from one source."""
        times = self.us.get((mode.name, rows, vocab), {})
        peers = [(by, statistics.median(us)) for by, us in times.items() if not by.startswith("quern") and (source is None or f"from {source}" in by)]
        return min(peers, key=lambda x: x[1], default=None)


def cases_of(modes):
    """Words that are alike, and lists of those that are not: {word: "50,0"}."""
    words = {}
    for mode in modes:
        for word, value in mode.words.items():
            values = words.setdefault(word, [])
            if value not in values:
                values.append(value)
    return {word: ",".join(values) for word, values in words.items()}


def measure_command(command, modes, shapes, budget, table):
    """By `quern bench`, one for each batch of modes and vocabulary."""
    for batch in dict.fromkeys(mode.batch for mode in modes):
        mine = [mode for mode in modes if mode.batch == batch]
        words = cases_of(mine)
        if len(mine[0].sources) > 1:
            words["use_probs"] = "0,1"
        for vocab, rows in shapes.items():
            if not rows:
                continue
            line = [f"rows={','.join(map(str, rows))}", f"{mine[0].length}={vocab}", *(f"{word}={value}" for word, value in words.items())]
            for row in quern_bench(command, [mine[0].op], line, budget):
                for mode in mine:
                    if all(same(row["words"][word], value) for word, value in mode.words.items()):
                        source = PROBS if mode.sources == (PROBS,) or row["words"].get("use_probs") == "1" else LOGITS
                        table.add(mode, int(row["words"]["rows"]), vocab, named(source), float(row["median_us"]), row["kernel"].count("<"))


def referenced(modes, shapes, large):
    """The shapes of modes that the command times: those whose reference takes seconds alone where they are asked for."""
    slow = any(mode.op == "sampling.sample" for mode in modes) and not large
    return {vocab: [r for r in rows if not slow or r * vocab <= MOST_REFERENCED] for vocab, rows in shapes.items()}


def measure(mode, d, table, compare, package):
    calls = {}
    what = f"{mode.name} {d.rows} x {d.vocab}"
    given = dict(mode.peers(d))
    if package:
        given.update({named(source): lambda source=source: mode.call(d, source) for source in mode.sources})
    for name, call in given.items():

        def look(call=call, name=name):
            result = call()
            if compare and name.startswith("quern") and isinstance(result, tuple) and mode.section != "topk":
                result = result[0]
            if compare:
                mode.check(d, result, f"{what}: {name}")

        if working({name: look}, what):
            calls[name] = call
        elif name.startswith("quern"):
            sys.exit(f"{what}: quern's package does not run it")
    for name, times in kernel_us(calls).items():
        table.add(mode, d.rows, d.vocab, name, times.median, times.kernels)


def measure_kinds(command, package, budget):
    """sampling.sample of other rows, quern alone."""
    vocab = 128256
    if package:
        for data, kind in KINDS.items():
            d = Inputs(KIND_ROWS, vocab, data)
            for mode in (PLAIN, FIRST):
                for by, times in kernel_us({named(LOGITS): lambda mode=mode, d=d: mode.call(d, LOGITS)}).items():
                    print(f"{mode.name} {KIND_ROWS} x {vocab}, {kind}: {by} {times.median:.2f} us")
        return
    words = {**cases_of([PLAIN, FIRST]), "data": ",".join(map(str, KINDS)), "use_probs": "0"}
    for row in quern_bench(command, ["sampling.sample"], [f"rows={KIND_ROWS}", f"vocab={vocab}", *(f"{w}={v}" for w, v in words.items())], budget):
        print(f"sample {KIND_ROWS} x {vocab}, {KINDS[int(row['words']['data'])]}, top_k {row['words']['top_k']} top_p {row['words']['top_p']}: quern {float(row['median_us']):.2f} us")


def print_lines(mode, shapes, table, read_us):
    for vocab, all_rows in shapes.items():
        for rows in all_rows:
            times = table.us.get((mode.name, rows, vocab))
            if not times:
                continue
            text = "  ".join(f"{by} {spread(us)}" for by, us in times.items())
            mine = table.median(mode, rows, vocab, named(mode.sources[0]))
            best = table.best(mode, rows, vocab)
            read = read_us(rows, vocab)
            text += f"  read {read:.2f}"
            if mine:
                text += f" over {mine - mode.passes * read:.2f}"
                text += f"  {best[0]} / {named(mode.sources[0])} {best[1] / mine:.3f}" if best else ""
            print(f"{mode.name} {rows} x {vocab}: {text}", flush=True)


def print_summary(mode, shapes, table):
    pairs = [(rows, vocab) for vocab, all_rows in shapes.items() for rows in all_rows]
    ways = [("best peer", None, mode.sources[0])] + [(f"best peer from {source}", source, source) for source in mode.sources if len(mode.sources) > 1]
    for what, source, ours in ways:
        ratios = []
        for rows, vocab in pairs:
            best, mine = table.best(mode, rows, vocab, source), table.median(mode, rows, vocab, named(ours))
            if best and mine:
                ratios.append((best[1] / mine, best[0], rows, vocab))
        if ratios:
            least = min(ratios)
            print(f"{mode.name}: {what} / {named(ours)} {geomean([r[0] for r in ratios]):.3f} geomean, {least[0]:.3f} least ({least[1]} at {least[2]} x {least[3]}) of {len(ratios)}")


def csv_rows(modes, table, read_us):
    rows = []
    for mode in modes:
        for (name, n, vocab), times in table.us.items():
            if name != mode.name:
                continue
            mine = table.median(mode, n, vocab, named(mode.sources[0]))
            for by, us in times.items():
                median = statistics.median(us)
                rows.append(dict(mode=name, op=mode.op, rows=n, vocab=vocab, by=by, median_us=f"{median:.3f}", min_us=f"{min(us):.3f}", max_us=f"{max(us):.3f}", turns=len(us), kernels=f"{table.kernels[name, n, vocab, by]:g}",
                                 times_quern=f"{median / mine:.3f}" if mine else "", read_us=f"{read_us(n, vocab):.3f}", passes=mode.passes, over_us=f"{median - mode.passes * read_us(n, vocab):.3f}"))
    return rows


def main():
    global fi, quack_softmax, quern
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("quern")
    parser.add_argument("--package", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--csv")
    parser.add_argument("--section", default="sample,argmax,softmax,renorm,mask,topk,process,kinds")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--budget", type=float, default=20, help="milliseconds of timed runs of a case by `quern bench`")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    fi = flashinfer_or_none()
    try:
        from quack.softmax import softmax_fwd as quack_softmax
    except Exception as e:  # noqa: BLE001  whatever its import needs
        print(f"quack is absent: {type(e).__name__} {(str(e).splitlines() or [''])[0][:160]}")
    if options.package:
        import quern
    compile_without_limit()
    torch.manual_seed(0)
    rate = read_bytes_per_us()
    print(f"read {rate / 1e6:.3f} TB/s")
    read_us = lambda rows, vocab: rows * vocab * 4 / rate  # noqa: E731
    sections, table = options.section.split(","), Table()
    modes = [mode for mode in MODES if mode.section in sections]
    stop_at_sigterm()
    try:
        for section in dict.fromkeys(mode.section for mode in modes):
            start, mine = time.perf_counter(), [mode for mode in modes if mode.section == section]
            for turn in range(options.turns):
                for vocab, all_rows in SHAPES.items():
                    for rows in all_rows:
                        d = Inputs(rows, vocab)
                        for mode in mine:
                            measure(mode, d, table, turn == 0, options.package)
                del d
                torch.cuda.empty_cache()
                if not options.package:
                    measure_command(options.quern, mine, referenced(mine, SHAPES, options.large), options.budget, table)
            for mode in mine:
                print_lines(mode, SHAPES, table, read_us)
            print(f"{section}: {time.perf_counter() - start:.0f} s", flush=True)
            write_csv(options.csv, csv_rows(modes, table, read_us))
        if "kinds" in sections:
            measure_kinds(options.quern, options.package, options.budget)
    finally:  # of what was measured
        for mode in modes:
            print_summary(mode, SHAPES, table)


if __name__ == "__main__":
    main()
