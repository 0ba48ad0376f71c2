#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Random command lines: each must end right (0) or with a message and the exit code of bad input (2) or environment (3).

Usage: fuzz_cli.py QUERN CALLS [SEED]. A signal, a time-out, a wrong result (1) or a silent failure fails the run."""
import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

quern, calls = sys.argv[1], int(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
ops = [o["op"] for o in json.loads(subprocess.run([quern, "list", "--json"], capture_output=True, text=True, check=True).stdout)]
infos = {op: json.loads(subprocess.run([quern, "info", op, "--json"], capture_output=True, text=True, check=True).stdout) for op in ops}
DTYPES = ["f32", "f16", "bf16", "e4m3", "e5m2", "i32", "i64", "u8", "f64", "i8", "f8", ""]
SMALL = ["0", "1", "2", "3", "7", "8", "16", "33", "64", "100"]
ODD = ["-1", "1e99", "nan", "99999999999999999999", "4294967296", "2147483648", "x", "", "3.5", "true", "=", "1,2", "0x10"]


def parameters(info):
    """Words that a case of the op may set, read from its own description."""
    names = set()
    for case in info["cases"]:
        names.add(case)
    for tensor in info["tensors"]:
        names.update({tensor["name"] + suffix for suffix in (".dtype", ".pad", ".shift", ".present")})
    names.update(a["name"] for a in info["attributes"])
    return sorted(names) + ["batch_invariant", "variant", "no_such_word"]


def words(rng, op, huge):
    chosen = []
    for name in rng.sample(parameters(infos[op]), k=rng.randint(0, 4)):
        if rng.random() < 0.15:
            value = rng.choice(ODD)
        elif name.endswith(".dtype"):
            value = rng.choice(DTYPES)
        elif name.endswith(".present"):
            value = rng.choice(["0", "1", "true", "2"])
        else:
            value = rng.choice(SMALL + (["1048576", "8589934592"] if huge else []))
        chosen.append(f"{name}={value}")
    if rng.random() < 0.05:
        chosen.append(rng.choice(["", "=", "tokens", "--bogus", "tokens==3", "💥=1"]))
    return chosen


def command(rng):
    op = rng.choice(ops)
    name = op if rng.random() < 0.95 else rng.choice(["norm", "rms_norm", op + "x", "", "all"])
    kind = rng.random()
    if kind < 0.55:
        arch = rng.choice([[], ["--arch", "sm_80"], ["--arch", "sm_90a"], ["--arch", "sm_120a"], ["--arch", "sm_77"], ["--json"], ["--source"]])
        return ["plan", name, *words(rng, op, True), *arch]
    if kind < 0.85:
        return ["run", name, *words(rng, op, False), "--device", rng.choice(["emu", "emu", "emu:sm_80", "cuda:9", "tpu"])]
    if kind < 0.93:
        return ["info", name, *rng.choice([[], ["--json"]])]
    return [rng.choice(["list", "frobnicate", "check", "--version", "doctor --x"]), *rng.choice([[], ["--json"], ["--nope"], ["no.op"]])][:2] + (
        [] if rng.random() < 0.5 else ["--sample", "0x"])


def judge(index):
    rng = random.Random(seed * 1000003 + index)
    line = command(rng)
    if line[0] == "check":  # all of them would take minutes
        line = ["check", "norm.rms_norm", "--sample", "1", "--device", "emu", "--quiet"]
    try:
        result = subprocess.run([quern, *line], capture_output=True, text=True, errors="replace", timeout=120, env={**os.environ, "QN_EMU_THREADS": "1"})
    except subprocess.TimeoutExpired:
        return line, "timed out", 1
    if result.returncode not in (0, 2, 3):
        return line, f"exit {result.returncode}: {(result.stderr or result.stdout)[-300:]}", 1
    if result.returncode and not (result.stderr.strip() or result.stdout.strip()):
        return line, f"exit {result.returncode} without a word", 1
    return line, str(result.returncode), 0


with ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(judge, range(calls)))
bad = [r for r in results if r[2]]
for line, why, _ in bad[:20]:
    print("WRONG", " ".join(line), "->", why)
counts = {code: sum(1 for r in results if r[1] == code) for code in ("0", "2", "3")}
print(f"{calls} command lines: {counts['0']} right, {counts['2']} bad input, {counts['3']} environment, {len(bad)} wrong")
sys.exit(1 if bad else 0)
