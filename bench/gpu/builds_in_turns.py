#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Two or more builds of quern in turns: a benchmark of this folder with each of their wheels, all of them twice, then what the others take beside the first one (docs/benchmarks.md).

Usage: builds_in_turns.py FOLDER FOLDER ... -- gemm_peers.py|grouped.py|attention_peers.py [its options but --csv]
A folder has the wheels of one build, quern's and what it needs where pip has no network; its name is the build's."""
import csv
import itertools
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TURNS = 2


def install(folder, site):
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--target", site, *map(str, sorted(folder.glob("*.whl")))], check=True)


def run(benchmark, options, site, cache, out):
    """quern's medians, in us, by what the benchmark's columns say before `by`, and by form where there are several."""
    path = site + os.pathsep + os.environ.get("PYTHONPATH", "")
    subprocess.run([sys.executable, str(benchmark), *options, "--csv", out], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path, "QN_CACHE_DIR": cache})
    with open(out, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    columns = list(itertools.takewhile(lambda name: name != "by", rows[0]))
    ours = lambda row: row["by"].startswith("quern") or row.get("product", "").endswith("forms")  # noqa: E731
    return {(*(row[name] for name in columns), row["by"]): float(row["median_us"]) for row in rows if ours(row)}


def main():
    at = sys.argv.index("--") if "--" in sys.argv else 0
    folders, command = [Path(f).resolve() for f in sys.argv[1:at]], sys.argv[at + 1 :]
    if len({f.name for f in folders}) < 2 or len({f.name for f in folders}) < len(folders) or not command:
        sys.exit(__doc__)
    benchmark, *options = command
    with tempfile.TemporaryDirectory() as scratch:
        sites = {}
        for folder in folders:
            sites[folder.name] = os.path.join(scratch, folder.name)
            install(folder, sites[folder.name])
        medians = {name: [] for name in sites}
        for _ in range(TURNS):
            for name, site in sites.items():
                medians[name].append(run(Path(__file__).parent / benchmark, options, site, site + ".cache", os.path.join(scratch, "out.csv")))
    first, ratios = folders[0].name, {}
    for case in medians[first][0]:
        line = " ".join(case)
        for name, turns in medians.items():
            times = [turn[case] for turn in turns]
            line += f"  {name} " + " ".join(f"{t:.2f}" for t in times)
            if name != first:
                ratio = sum(times) / sum(turn[case] for turn in medians[first])
                ratios.setdefault((name, *case[:-1][:2]), []).append(ratio)
                line += f" ({100 * (ratio - 1):+.1f} %)"
        print(line)
    for (name, *group), of_group in ratios.items():  # a product and m
        print(f"{' '.join(group)}: {name} {100 * (math.exp(sum(map(math.log, of_group)) / len(of_group)) - 1):+.2f} % in the geomean")


if __name__ == "__main__":
    main()
