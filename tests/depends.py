#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What tools/depends.py says a job depends on: no less than what compilers read, and each of the files that decide a verdict.

Usage: depends.py BUILD_FOLDER"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import depends  # noqa: E402

failures = []


def expect(what, truth):
    if not truth:
        failures.append(what)


def read_by_compiler(build):
    """(a .cpp file, the files of the tree that its compiler read)"""
    said = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    for block in said.split("\n\n"):
        files = [os.path.normpath(os.path.join(build, line.strip())) for line in block.splitlines()[1:]]
        inside = [os.path.relpath(f, ROOT) for f in files if f.startswith((ROOT + "/quern/", ROOT + "/tests/"))]
        if inside and inside[0].endswith(".cpp"):
            yield inside[0], inside


def closures_hold_what_compilers_read(build):
    sources, compared = depends.Sources(ROOT), 0
    for path, files in read_by_compiler(build):
        if not sources.exists(path):
            continue  # of a build before the file went
        closure = sources.closure([path])
        for f in files:
            compared += 1
            expect(f"{path}: the compiler read {f}, the closure lacks it", f in closure or not sources.exists(f))
    expect(f"only {compared} files were compared: the build has no record of what was read", compared > 5000)


def closures_hold_what_linkers_need(build):
    """Each symbol that an op's object files lack, and another of the library has, is of an object file of the closure."""
    sources, has, lacks = depends.Sources(ROOT), {}, {}
    folder = os.path.join(build, "lib/CMakeFiles/quern_objects.dir")
    for path in [f for f in sources.room("quern") if f.endswith(".cpp")]:
        file = os.path.join(folder, path.removeprefix("quern/") + ".o")
        if not os.path.exists(file):
            continue
        said = subprocess.run(["nm", file], capture_output=True, text=True, check=True).stdout.split("\n")
        for kind, symbol in [line.split()[-2:] for line in said if line.strip()]:
            if kind == "U":
                lacks.setdefault(path, set()).add(symbol)
            elif kind in "TDBR":
                has[symbol] = path
    compared = 0
    for path in [f for f in lacks if f.startswith("quern/ops/")]:
        closure = sources.closure([path])
        for symbol in lacks[path]:
            compared += symbol in has
            expect(f"{path}: {symbol} is of {has.get(symbol)}, which the closure lacks", has.get(symbol, path) in closure)
    expect(f"only {compared} symbols were compared", compared > 1000)


def ops_of_the_tree_are_those_of_the_command(build):
    """What is an op is read from its source: tests of one op would be left out if that missed it."""
    listed = set(re.findall(r"^(?:\S* )?([a-z_0-9]+\.[a-z_0-9]+)\b", subprocess.run([os.path.join(build, "quern"), "list"], capture_output=True, text=True, check=True).stdout, re.MULTILINE))
    sources = depends.Sources(ROOT)
    families = [f for f in os.listdir(os.path.join(ROOT, "quern/ops")) if os.path.isdir(os.path.join(ROOT, "quern/ops", f))]
    found = {name for f in families for op in os.listdir(os.path.join(ROOT, "quern/ops", f)) if sources.op_folder(name := f"{f}.{op}")}
    expect(f"ops of the tree alone: {sorted(found - listed)}, of `quern list` alone: {sorted(listed - found)}", found == listed and found)


def kernels_hold_what_they_include():
    """Every file that a kernel reaches by its includes, found by another walk."""
    sources = depends.Sources(ROOT)
    kernels = [f for f in sources.room("quern/ops") if f.endswith("/kernel.cuh")]
    expect("no kernels", len(kernels) > 40)
    for kernel in kernels:
        reached, todo = set(), [kernel]
        while todo:
            path = todo.pop()
            if path in reached:
                continue
            reached.add(path)
            for line in open(os.path.join(ROOT, path), encoding="utf-8"):
                found = re.match(r'#include "(.*)"', line)
                if found and os.path.exists(os.path.join(ROOT, found[1])):
                    todo.append(found[1])
        lacking = reached - sources.closure([kernel])
        expect(f"{kernel}: the closure lacks {lacking}", not lacking)


def a_changed_line_changes_the_digest():
    """One line of each kind of file that decides whether norm.rms_norm and gemm.dense pass."""
    def digest(op, changed=None):
        sources = depends.Sources(ROOT, changed)
        return sources.digest(sources.closure([*sources.room(sources.op_folder(op)), "quern/testing/check.h", "quern/emu/mbarrier.cpp"]))
    before = {op: digest(op) for op in ("norm.rms_norm", "gemm.dense")}
    both = ["quern/emu/mbarrier.cpp", "quern/testing/compare.cpp", "quern/kit/reduce.cuh", "quern/kit/emu/mbarrier.cuh", "quern/op/schema.h",
            "quern/device/emulated.cpp", "quern/jit/sources.cpp", "quern/base/fs.cpp"]
    norm = ["quern/ops/norm/norm_row/kernel.cuh", "quern/ops/norm/norm_row/norm_row.cpp", "quern/ops/norm/rms_norm/ref.h",
            "quern/ops/norm/rms_norm/rms_norm.cpp", "quern/ops/norm/rms_norm.h", "quern/bricks/rows/whole.cuh"]
    dense = ["quern/ops/gemm/dense/portable/mma_ring.cuh", "quern/ops/gemm/dense/warp_specialised_sm90/kernel.cuh",
             "quern/ops/gemm/dense/dense.cpp", "quern/bricks/gemm/sm90/multiply.cuh", "quern/bricks/gemm/sm90/plan.h"]
    for path in both + norm + dense:
        changed = {path: open(os.path.join(ROOT, path), encoding="utf-8").read() + "\n"}
        for op, own in (("norm.rms_norm", norm), ("gemm.dense", dense)):
            is_other = digest(op, changed) != before[op]
            expect(f"{path} {'does not change' if not is_other else 'changes'} the verdicts of {op}", is_other == (path in both + own))


closures_hold_what_compilers_read(os.path.abspath(sys.argv[1]))
closures_hold_what_linkers_need(os.path.abspath(sys.argv[1]))
ops_of_the_tree_are_those_of_the_command(os.path.abspath(sys.argv[1]))
kernels_hold_what_they_include()
a_changed_line_changes_the_digest()
print("\n".join(failures[:40]))
sys.exit(1 if failures else 0)
