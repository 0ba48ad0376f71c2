#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Runs ctest and the sweeps of the quern command; fails on any failure and on any skip that is not allowed.

Usage: run_tests.py BUILD_FOLDER. Ends with one line "N passed, N failed, N skipped"."""
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ALLOWED_SKIPS = ("needs a GPU", "needs CUDA's headers")
if os.environ.get("QN_TEST_TORCH") != "1":  # ./test.sh --with-torch
    ALLOWED_SKIPS += ("needs torch",)
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.path.abspath(sys.argv[1])
full = os.environ.get("QN_TEST_FULL") == "1"
quern = os.path.join(build, "quern")
python = os.environ.get("QN_TEST_PYTHON") or os.path.join(root, ".venv-python", "bin", "python")
passed = failed = skipped = 0


def gtest_binaries():
    out = subprocess.run(["ctest", "-N", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True)
    import json
    return [t["command"][0] for t in json.loads(out.stdout)["tests"] if "command" in t]


def run_gtest(binary):
    """Counts the tests of one executable from its XML report."""
    global passed, failed, skipped
    report = binary + ".xml"
    if os.path.exists(report):
        os.remove(report)
    begin = time.time()
    result = subprocess.run([binary, "--gtest_brief=1", "--gtest_output=xml:" + report], cwd=build)
    name = os.path.basename(binary)
    if not os.path.exists(report):
        print(f"FAILED {name}: it ended with {result.returncode} and wrote no report")
        failed += 1
        return
    for case in xml.parse(report).getroot().iter("testcase"):
        skip = case.find("skipped")
        if case.find("failure") is not None:
            failed += 1
        elif skip is not None:
            text = (skip.get("message") or "") + (skip.text or "")
            if any(reason in text for reason in ALLOWED_SKIPS):
                skipped += 1
            else:
                print(f"FAILED {case.get('classname')}.{case.get('name')}: skipped without an allowed reason: {text.strip()}")
                failed += 1
        else:
            passed += 1
    if result.returncode != 0:
        failed += 1
    print(f"{name}: {time.time() - begin:.1f} s", flush=True)


def why_skipped(skip):
    """Of a whole file the message only says that it was skipped, and the text why."""
    return f"{skip.get('message') or ''} {skip.text or ''}".strip()


def run_pytest():
    """Counts the tests of the Python package, in the virtual environment that has the wheel."""
    global passed, failed, skipped
    report = os.path.join(build, "python_test.xml")
    if os.path.exists(report):
        os.remove(report)
    begin = time.time()
    result = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", report, os.path.join(root, "tests", "python")], cwd=build)
    cases = list(xml.parse(report).getroot().iter("testcase")) if os.path.exists(report) else []
    for case in cases:
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif skip is not None and not any(reason in why_skipped(skip) for reason in ALLOWED_SKIPS):
            print(f"FAILED {case.get('classname')}.{case.get('name')}: skipped without an allowed reason: {why_skipped(skip)}")
            failed += 1
        else:
            skipped += skip is not None
            passed += skip is None
    if result.returncode != 0 or not cases:
        failed += 1
    print(f"pytest: {time.time() - begin:.1f} s", flush=True)


def run_step(name, shown, command):
    """One command counts as one test."""
    global passed, failed
    begin = time.time()
    result = subprocess.run(command, cwd=build)
    verdict = "ok" if result.returncode == 0 else f"FAILED (exit {result.returncode})"
    print(f"{name}: {shown}: {verdict}, {time.time() - begin:.1f} s", flush=True)
    if result.returncode == 0:
        passed += 1
    else:
        failed += 1


def run_command(name, *arguments):
    run_step(name, "quern " + " ".join(arguments), [quern, *arguments])


def run_script(name, script, *arguments):
    run_step(name, script, [sys.executable, os.path.join(root, script), *arguments])


for binary in gtest_binaries():
    run_gtest(binary)

run_pytest()

# The sweep below by bench --compile has NVRTC.
run_command("cases on the emulated device", "check", "all", "--no-nvrtc", *([] if full else ["--sample", "40"]))
for async_policy in ("eager", "lazy", "random"):
    run_command("checked mode", "check", "all", "--no-nvrtc", "--checked", "--async", async_policy,
                *(["--seeds", "25"] if full else ["--sample", "8", "--seeds", "2"]))
for compiler in ("g++", "clang++"):
    run_command("asan", "check", "all", "--no-nvrtc", "--asan", "--host-compiler", compiler,
                *(["--async", "eager,lazy,random"] if full else ["--sample", "2"]))
run_command("clang++", "check", "all", "--no-nvrtc", "--host-compiler", "clang++", *([] if full else ["--sample", "6"]))
archs = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"] if full else ["sm_80", "sm_90a"]
run_command("NVRTC", "bench", "--compile", *([] if full else ["--sample", "24"]), *[w for a in archs for w in ("--arch", a)])
run_command("fuzz", "fuzz", "10000" if full else "1500")
run_script("fuzzed command lines", "tests/fuzz_cli.py", quern, "2000" if full else "500")
run_script("mutations of the JIT", "tests/jit_mutations.py", build, *([] if full else ["--sample", "2"]))
run_command("demo", "demo", "--device", "emu")
run_command("demo again", "demo", "--device", "emu")
run_script("examples on an installed copy", "tests/examples/run.py", build, *([os.environ["QN_TEST_NVCC"]] if "QN_TEST_NVCC" in os.environ else []))
run_script("generated documents", "tools/gen_docs.py", "--check", quern)
run_script("what the documents show", "tests/docs_snippets/run.py", build)

print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(0 if failed == 0 and passed > 0 else 1)
