#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Changes an op's kernel sources in one place at a time and counts which changes `quern check` notices.

Usage: mutate.py OP [--list] [--count 60] [--seed N] [--minutes 40] [--build build] [--jobs 2] [--words "hidden=2056 ..."]

Sources are those that the op's plans name, and what these include of ops and bricks. The seed, by
default the commit, draws the mutants, the classes in turn. Each runs over the op's cases in plain mode for up to 30 s and then, if it lives, over a
sample of them in checked mode. Ends with a table of the kills by class and the mutants that survive. Some of those change nothing: look at them."""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CALL = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"  # brackets, nested up to three deep
NAME = r"[A-Za-z_][\w.]*"
# Class, what is found in a line, what stands for it then. `^ *` is a whole statement: a part of one may not be dropped.
CLASSES = [
    ("wait", rf"^( *)(?:ptx::)?\w*wait\w*(?:<[^;]*?>)?{CALL};", r"\1;"),
    ("fence", rf"^( *)(?:ptx::)?\w*fence\w*(?:<[^;]*?>)?{CALL};", r"\1;"),
    ("barrier", rf"^( *)ptx::(?:sync_block|sync_warp|bar_sync|bar_arrive|cluster_arrive|cluster_sync)\w*(?:<[^;]*?>)?{CALL};", r"\1;"),
    ("bound", r" < (?=[\w(])", " <= "),
    ("bound", r" <= (?=[\w(])", " < "),
    ("bound", r" > (?=[\w(])", " >= "),
    ("bound", r" >= (?=[\w(])", " > "),
    ("bound", rf" && [\w.:!]+(?:{CALL})?(?: [<>=!]=? [\w.]+(?:{CALL})?)?(?=[);&])", ""),
    ("bound", rf"\bmin_of(?:<\w+>)?\(({NAME}), ", r"max_of(\1, "),
    ("mask", r" & (?!1\b)[\w.]+", ""),
    ("mask", r" % [\w.]+", ""),
    ("parity", r" & 1\b", " & 0"),
    ("parity", r" \^= 1\b", " ^= 0"),
    ("parity", r" \^ 1\b", ""),
    ("index", rf"(\w\[{NAME})\]", r"\1 + 1]"),
    ("index", rf" \+ {NAME} \* {NAME}", ""),
    ("constant", r"(?<=[(=+\-*/%,] )0(?=[;,) ])", "1"),
    ("constant", r"(?<=[+\-*/%] )1(?=[;,)\] ])", "2"),
    ("constant", r"(?<=[+\-*/%] )2(?=[;,)\] ])", "3"),
    ("width", r"\bi64\((?=\w)", "i32("),
    ("operands", rf"(?<![\w.])({NAME}) - ({NAME})(?![\w.(\[])", r"\2 - \1"),
    ("operands", rf"(?<![\w.])({NAME}) / ({NAME})(?![\w.(\[])", r"\2 / \1"),
    ("operands", rf"\b(fma)\(({NAME}), ([^,()]+), ({NAME})\)", r"\1(\4, \3, \2)"),
]
# What changes how fast a kernel is, or whether it compiles, and not what it computes.
LEFT_OUT = re.compile(r"^\s*(//|#|template|using|static_assert|QN_PRINT)|static_assert|QN_UNROLL|CachePolicy|_registers|prefetch|launch_dependents|setmaxnreg|constexpr int kStages")

Mutant = collections.namedtuple("Mutant", "kind path line before after")


def sources_of(quern, op):
    """Kernel sources that the op's plans name, for each value of each word of its cases and each variant, and those of ops and bricks that they include."""
    def json_of(*words):
        done = subprocess.run([str(quern), *words, "--json"], capture_output=True, text=True, env={**os.environ, "QN_DEVICE": "emu"})
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout else {}

    info = json_of("info", op)
    if not info:
        sys.exit(f"mutate: {op} is no op of {quern}")
    words = [[]] + [[f"{name}={value}"] for name, values in info["cases"].items() for value in values[1:]]
    todo = {launch["source"] for case in words for variant in [[], *([f"variant={v}"] for v in info["variants"])] for launch in json_of("plan", op, *case, *variant).get("launches", [])}
    found = set()
    while todo:
        path = todo.pop()
        if path not in found and (ROOT / path).is_file():
            found.add(path)
            todo.update(re.findall(r'#include "(quern/(?:ops|bricks)/[\w/]+\.cuh)"', (ROOT / path).read_text()))
    return sorted(found)


def mutants_of(paths):
    """All of them, by class."""
    by_kind = collections.defaultdict(list)
    for path in paths:
        for number, line in enumerate((ROOT / path).read_text().split("\n"), 1):
            code = line.split("//")[0]
            if LEFT_OUT.search(line):
                continue
            for kind, pattern, to in CLASSES:
                for match in re.finditer(pattern, code):
                    after = code[: match.start()] + match.expand(to) + code[match.end():]
                    if after.strip() != code.strip():
                        by_kind[kind].append(Mutant(kind, path, number, line, after.rstrip()))
    return by_kind


def draw(by_kind, count, seed):
    """The classes in turn, so that the rare ones are met."""
    chance = random.Random(seed)
    for mutants in by_kind.values():
        chance.shuffle(mutants)
    kinds, drawn = [kind for kind in dict.fromkeys(c[0] for c in CLASSES) if by_kind[kind]], []
    while len(drawn) < count and any(by_kind[kind] for kind in kinds):
        drawn += [by_kind[kind].pop() for kind in kinds if by_kind[kind]]
    return drawn[:count]


class Runner:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.end = time.time() + 60 * options.minutes

    def check(self, sources, *words, seconds):
        """Exit status and output; a hang is 124."""
        command = [str(self.options.quern), "check", self.options.op, *self.options.words.split(), "--threads", "1", "--no-nvrtc", "--device", "emu", "--quiet", "--seconds", str(seconds), *words]
        env = {**os.environ, "QN_SOURCE_DIR": str(sources), "QN_CACHE_DIR": str(self.folder / "cache")}
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=2 * seconds + 30)
            return done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            return 124, "hangs"

    def judge(self, sources):
        """Who noticed the changes in that folder; what it does not have is as quern was built."""
        for mode, words, seconds in (("plain", (), 30), ("checked", ("--checked", "--async", "eager,lazy,random", "--schedule", "warp,shuffled", "--sample", "6"), 40)):
            status, output = self.check(sources, *words, seconds=seconds)
            if "compile error:" in output:
                return "no compile"
            if status == 2 and "WRONG" not in output:
                sys.exit("mutate: " + output)
            if status != 0:
                return mode
        return "survives"

    def __call__(self, mutant):
        if time.time() > self.end:
            return mutant, "not run"
        with tempfile.TemporaryDirectory(dir=self.folder) as sources:
            lines = (ROOT / mutant.path).read_text().split("\n")
            lines[mutant.line - 1] = mutant.after
            changed = pathlib.Path(sources) / mutant.path
            changed.parent.mkdir(parents=True)
            changed.write_text("\n".join(lines))
            verdict = self.judge(sources)
        print(f"{verdict:10} {mutant.kind:9} {mutant.path}:{mutant.line}", flush=True)
        return mutant, verdict


def show(mutant):
    print(f"{mutant.kind} {mutant.path}:{mutant.line}\n  - {mutant.before.strip()}\n  + {mutant.after.strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op")
    parser.add_argument("--list", action="store_true", help="only prints the mutants")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", help="default: the commit")
    parser.add_argument("--minutes", type=float, default=40, help="of all together; mutants that are left then are not run")
    parser.add_argument("--build", default="build")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--words", default="", help="of quern check, as hidden=2056")
    options = parser.parse_args()
    options.quern = (pathlib.Path(options.build) / "quern").resolve()
    seed = options.seed or subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    drawn = draw(mutants_of(sources_of(options.quern, options.op)), options.count, seed)
    if options.list:
        for mutant in drawn:
            show(mutant)
        return
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(options, folder)
        if (verdict := runner.judge(ROOT)) != "survives":
            sys.exit(f"mutate: {options.op} as it is: {verdict}")
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as workers:
            results = list(workers.map(runner, drawn))
    columns = ("plain", "checked", "survives", "no compile", "not run")
    print(f"\n{options.op}, seed {seed}\n{'class':10}" + "".join(f"{c:>12}" for c in columns))
    for kind in [*dict.fromkeys(m.kind for m in drawn), "all"]:
        print(f"{kind:10}" + "".join(f"{sum(v == c and kind in (m.kind, 'all') for m, v in results):12}" for c in columns))
    print("\nsurvivors:")
    for mutant, verdict in results:
        if verdict == "survives":
            show(mutant)


if __name__ == "__main__":
    main()
