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


def symbols(file):
    """(kind, name) of each symbol of an object file"""
    said = subprocess.run(["nm", file], capture_output=True, text=True, check=True).stdout.split("\n")
    return [line.split()[-2:] for line in said if line.strip()]


def closures_hold_what_linkers_need(build):
    """Each symbol that an object file of an op or of a test lacks, and another of the library has, is of an object file of the closure."""
    sources, has, objects = depends.Sources(ROOT), {}, {}
    for folder, _, files in os.walk(build):
        for name in files:
            made = re.search(r"/(?:quern_objects|(\w+_test))\.dir/(.*)\.cpp\.o$", os.path.join(folder, name))
            if not made or "build-wheel" in folder:
                continue
            path = "quern/" + made[2] + ".cpp" if not made[1] else made[2].removeprefix("__/") + ".cpp" if made[2].startswith("__/") else f"tests/{made[2]}.cpp"
            if sources.exists(path):
                objects[path] = symbols(os.path.join(folder, name))
    for path, of_file in objects.items():
        has.update({symbol: path for kind, symbol in of_file if kind in "TDBR" and not depends.is_test(path)})
    compared = 0
    for path, of_file in objects.items():
        closure = sources.of_test(path, "") if depends.is_test(path) else sources.closure([path]) if path.startswith("quern/ops/") else None
        for kind, symbol in of_file if closure is not None else []:
            compared += kind == "U" and symbol in has
            expect(f"{path}: {symbol} is of {has.get(symbol)}, which the closure lacks", kind != "U" or has.get(symbol, path) in closure)
    expect(f"only {compared} symbols were compared", compared > 1500)


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
    """One line of each kind of file that decides whether tests of norm.rms_norm and gemm.dense pass."""
    def digests(changed=None):
        now = depends.Sources(ROOT, changed)
        return {
            "norm.rms_norm": now.digest(now.of_op("norm.rms_norm")),
            "gemm.dense": now.digest(now.of_op("gemm.dense")),
            "golden": now.digest(now.of_test("tests/golden_plans_test.cpp", "gemm.dense")),
            "faults": now.digest(now.of_test("tests/planted_faults_test.cpp", "gemm.dense")),
            "invariant": now.digest(now.of_test("quern/ops/gemm/dense/dense_invariant_test.cpp", "")),
            "sample": now.digest(now.of_test("quern/ops/sampling/sample/sample_test.cpp", "")),
        }
    before = digests()
    norm, dense, tests = {"norm.rms_norm"}, {"gemm.dense", "golden", "faults", "invariant"}, {"invariant", "sample"}
    for path, changes in {
            "quern/emu/mbarrier.cpp": norm | dense | tests, "quern/testing/compare.cpp": norm | dense - {"invariant"}, "quern/kit/reduce.cuh": norm | dense | tests,
            "quern/kit/emu/mbarrier.cuh": norm | dense | tests, "quern/op/schema.h": norm | dense | tests, "quern/device/emulated.cpp": norm | dense | tests,
            "quern/jit/sources.cpp": norm | dense | tests, "quern/base/fs.cpp": norm | dense | tests, "quern/cli/check.cpp": norm | dense - {"invariant"},
            "quern/ops/norm/norm_row/kernel.cuh": norm, "quern/ops/norm/norm_row/norm_row.cpp": norm, "quern/ops/norm/rms_norm/ref.h": norm,
            "quern/ops/norm/rms_norm/rms_norm.cpp": norm, "quern/ops/norm/rms_norm.h": norm, "quern/ops/gemm/dense/dense.cpp": dense,
            "quern/ops/gemm/dense/portable/mma_ring.cuh": dense, "quern/ops/gemm/dense/warp_specialised_sm90/kernel.cuh": dense,
            "quern/bricks/gemm/sm90/multiply.cuh": dense, "quern/bricks/gemm/sm90/plan.h": dense, "quern/ops/gemm/dense/plans.txt": {"golden"},
            "quern/bricks/gemm/sm90/planted_faults.cpp": {"faults"}, "docs/sampling.md": {"sample"}}.items():
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            after = digests({path: f.read() + "\n"})
        differ = {name for name in before if before[name] != after[name]}
        expect(f"{path} decides {sorted(changes - differ)} and changes no digest of it", changes <= differ)
        if path.startswith(("quern/ops/norm", "quern/ops/gemm", "quern/bricks/gemm")):
            expect(f"{path} changes {sorted(differ - changes)} too", differ == changes)


closures_hold_what_compilers_read(os.path.abspath(sys.argv[1]))
closures_hold_what_linkers_need(os.path.abspath(sys.argv[1]))
ops_of_the_tree_are_those_of_the_command(os.path.abspath(sys.argv[1]))
kernels_hold_what_they_include()
a_changed_line_changes_the_digest()
print("\n".join(failures[:40]))
sys.exit(1 if failures else 0)
