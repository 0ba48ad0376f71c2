#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Two or more builds of the command in turns: `quern bench layer` with each of them, several times, then what the others take beside the first one (docs/benchmarks.md).

Usage: layers_in_turns.py NAME=QUERN NAME=QUERN ... [--turns N] [--csv FILE] [-- words and options of `bench layer`, but --csv]
A library that a command needs is looked for where LD_LIBRARY_PATH and the command itself say. Each build has a cache of its own; the first turn compiles."""
import argparse
import csv
import math
import os
import re
import subprocess
import sys
import tempfile

LAYER_WORDS = ("batch", "length", "page_size", "call", "as", "pdl", "in_a_row")  # of a line's case: what tells lines apart in every version


def key(row):
    """What a line is of, by words that all builds print: kernels, and words that a version adds, differ."""
    words = dict(re.findall(r"(\w+)=(.*?)(?= \w+=|$)", row["case"]))
    return (row["op"], row["timer"], *(f"{w}={words[w]}" for w in LAYER_WORDS if w in words))


def measure(command, options, cache, out):
    """By what a line is of: the median and, where the line has it, the host's time; both in us."""
    ended = subprocess.run([command, "bench", "layer", "--device", "cuda", *options, "--csv", out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "QN_CACHE_DIR": cache}, check=False)
    if ended.returncode != 0:
        sys.exit(f"{command} bench layer ended with {ended.returncode}:\n{ended.stdout}")
    with open(out, newline="", encoding="utf-8") as f:
        rows = [row for row in csv.DictReader(f) if row["provider"] == "quern"]
    wrong = [row for row in rows if row["ok"] != "1"]
    if wrong:
        sys.exit(f"{command}: {wrong[0]['op']} {wrong[0]['case']} is wrong: {wrong[0]['message']}")
    times = {}
    for row in rows:
        of = key(row)
        if row["median_us"]:
            times[of] = float(row["median_us"])
        if row["host_us"] and row["timer"] != "wall clock":
            times[(*of, "host_us")] = float(row["host_us"])
    return times


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def group(of):
    """What lines are summed up by: how the layer was run; of calls alone the op."""
    if of[0] != "layer":
        return f"{of[0]} alone" + (", host" if of[-1] == "host_us" else "")
    return " ".join(("layer", of[1], *(w for w in of[2:] if not w.startswith(("batch=", "length=", "page_size=")))))


def main():
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="NAME=QUERN")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--csv", help="every median of every turn")
    given = parser.parse_args(sys.argv[1:at])
    builds = dict(b.split("=", 1) for b in given.builds if "=" in b)
    if len(builds) < 2 or len(builds) < len(given.builds) or given.turns < 1:
        sys.exit(__doc__)
    turns = {name: [] for name in builds}
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(given.turns):
            names = list(builds) if turn % 2 == 0 else list(builds)[::-1]  # at the power limit whoever is first has the higher clocks
            for name in names:
                turns[name].append(measure(os.path.abspath(builds[name]), sys.argv[at + 1 :], os.path.join(scratch, name), os.path.join(scratch, "out.csv")))
                print(f"turn {turn + 1} of {given.turns}: {name}", file=sys.stderr, flush=True)
    first = next(iter(builds))
    lines = [of for of in turns[first][0] if all(of in t for of_build in turns.values() for t in of_build)]
    missing = {of for of_build in turns.values() for t in of_build for of in t} - set(lines)
    if not lines:
        sys.exit("the builds have no line in common")
    ratios = {}
    for of in lines:
        text = " ".join(of)
        for name, of_build in turns.items():
            times = [t[of] for t in of_build]
            text += f"  {name} {median(times):.2f} [{min(times):.2f}, {max(times):.2f}]"
            if name != first and median(times) > 0:
                ratio = median(times) / median([t[of] for t in turns[first]])
                ratios.setdefault((name, group(of)), []).append(ratio)
                text += f" ({100 * (ratio - 1):+.1f} %)"
        print(text)
    for (name, what), of_group in ratios.items():
        print(f"{what}: {name} {100 * (math.exp(sum(map(math.log, of_group)) / len(of_group)) - 1):+.2f} % in the geomean of {len(of_group)}, worst {100 * (max(of_group) - 1):+.2f} %")
    for of in sorted(missing):
        print(f"not in all builds: {' '.join(of)}")
    if given.csv:
        with open(given.csv, "w", newline="", encoding="utf-8") as f:
            out = csv.writer(f)
            out.writerow(["of", "build", "turn", "us"])
            for of in lines:
                for name, of_build in turns.items():
                    for turn, t in enumerate(of_build):
                        out.writerow([" ".join(of), name, turn + 1, t[of]])


if __name__ == "__main__":
    main()
