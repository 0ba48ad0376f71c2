#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Runs the tests and the sweeps of the quern command, as many at a time as there are CPUs; fails on any failure and on any skip
that is not allowed.

Usage: run_tests.py BUILD_FOLDER. Shows what failed with its output. Ends with the slowest tests and one line
"N passed, N failed, N skipped".

Without QN_TEST_FULL=1 the sweeps take samples. QN_TEST_ROTATION, by default ROTATION below, decides which: those of successive numbers
differ, and together they are the whole."""
import concurrent.futures
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as xml

ALLOWED_SKIPS = ("needs a GPU", "needs CUDA's headers")
if os.environ.get("QN_TEST_TORCH") != "1":  # ./test.sh --with-torch
    ALLOWED_SKIPS += ("needs torch",)
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.path.abspath(sys.argv[1])
full = os.environ.get("QN_TEST_FULL") == "1"
LONGEST_S = None if full else 3000  # a job of samples that takes longer hangs
quern = os.path.join(build, "quern")
python = os.environ.get("QN_TEST_PYTHON") or os.path.join(root, ".venv-python", "bin", "python")


@dataclasses.dataclass
class Job:
    name: str
    command: list
    env: dict = dataclasses.field(default_factory=dict)
    report: str = ""  # JUnit XML that it writes, with a test each; without one the job is a test


@dataclasses.dataclass
class Result:
    job: Job
    seconds: float
    status: int
    output: str
    passed: int = 0
    skipped: int = 0
    failed: list = dataclasses.field(default_factory=list)  # what failed, in words
    tests: list = dataclasses.field(default_factory=list)   # (seconds, name)


# Which samples are taken. Count it up with each change that lands: then another one is taken. A number of the tree and not of its
# history: a shallow clone takes the same samples.
ROTATION = 687
os.environ.setdefault("QN_TEST_ROTATION", str(ROTATION))


def gtest_jobs():
    """Each executable; those that take minutes in shards."""
    shards = {"engine_test": 24, "ops_test": 8, "emu_test": 4, "kit_test": 2}
    listed = subprocess.run(["ctest", "-N", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True)
    for binary in [t["command"][0] for t in json.loads(listed.stdout)["tests"] if "command" in t]:
        name = os.path.basename(binary)
        count = shards.get(name, 1)
        for i in range(count):
            report = f"{binary}.{i}.xml"
            title = name if count == 1 else f"{name} {i + 1}/{count}"
            yield Job(title, [binary, "--gtest_brief=1", "--gtest_output=xml:" + report],
                      {"GTEST_TOTAL_SHARDS": str(count), "GTEST_SHARD_INDEX": str(i)}, report)


def pytest_job(name, interpreter, folder):
    report = os.path.join(build, f"{folder}_test.xml")
    return Job(name, [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", report, os.path.join(root, "tests", folder)], {}, report)


def pytest_jobs():
    """The tests of the Python package, in the virtual environment that has the wheel; with torch also those inside other engines' classes, in theirs."""
    yield pytest_job("pytest", python, "python")
    if os.environ.get("QN_TEST_TORCH") == "1":
        yield pytest_job("pytest engines", os.environ.get("QN_TEST_ENGINES") or os.path.join(root, ".venv-engines", "bin", "python"), "engines")


def command_job(*arguments):
    return Job("quern " + " ".join(arguments), [quern, *arguments])


def script_job(script, *arguments):
    return Job(script, [sys.executable, os.path.join(root, script), *arguments])


def check_job(*arguments, sample, seconds):
    """So many cases of each op, in so many seconds of one CPU; --full: all."""
    if not full:
        arguments += ("--sample", str(sample), "--seconds", str(seconds), "--rotate", os.environ["QN_TEST_ROTATION"])
    return command_job("check", "all", "--no-nvrtc", "--threads", "1", *arguments)  # NVRTC has bench --compile


def sweep_jobs():
    yield check_job(sample=40, seconds=20)
    yield check_job("--checked", "--async", "eager,lazy,random", "--seeds", "25" if full else "2", sample=8, seconds=30)
    for compiler in ("g++", "clang++"):
        yield check_job("--asan", "--host-compiler", compiler, *(["--async", "eager,lazy,random"] if full else []), sample=2, seconds=10)
    yield check_job("--host-compiler", "clang++", sample=6, seconds=10)
    archs = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"] if full else ["sm_80", "sm_90a"]
    yield command_job("bench", "--compile", *([] if full else ["--sample", "10", "--rotate", os.environ["QN_TEST_ROTATION"]]), *[w for a in archs for w in ("--arch", a)])
    yield command_job("fuzz", "10000" if full else "1500")
    yield Job("quern demo, twice", ["bash", "-c", '"$0" demo --device emu && "$0" demo --device emu', quern])
    yield script_job("tests/fuzz_cli.py", quern, "2000" if full else "500")
    yield script_job("tests/jit_mutations.py", build, *([] if full else ["--sample", "2"]))
    nvcc = [os.environ["QN_TEST_NVCC"]] if "QN_TEST_NVCC" in os.environ else []
    yield script_job("tests/examples/run.py", build, *nvcc)
    yield script_job("tools/gen_docs.py", "--check", quern)
    yield script_job("tests/docs_snippets/run.py", build)


running = set()  # each is the leader of a process group


def end_all(number, frame):
    """Ctrl-C and kill end the jobs too."""
    for process in list(running):
        os.killpg(process.pid, signal.SIGKILL)
    os._exit(128 + number)


signal.signal(signal.SIGINT, end_all)
signal.signal(signal.SIGTERM, end_all)


def run(job):
    if job.report and os.path.exists(job.report):
        os.remove(job.report)
    begin = time.time()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(job.command, cwd=build, env={**os.environ, **job.env}, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        running.add(process)
        try:
            status = process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = f"killed after {LONGEST_S} s"
        running.discard(process)
        output.seek(0)
        result = Result(job, time.time() - begin, status, output.read())
    judge(result)
    return result


def judge(result):
    """Counts the tests of a job."""
    job = result.job
    cases = list(xml.parse(job.report).getroot().iter("testcase")) if job.report and os.path.exists(job.report) else []
    for case in cases:
        name = f"{case.get('classname')}.{case.get('name')}"
        result.tests.append((float(case.get("time") or 0), name))
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            result.failed.append(name)
        elif skip is None:
            result.passed += 1
        else:
            # Of a whole file of Python's the message only says that it was skipped, and the text why.
            why = f"{skip.get('message') or ''} {skip.text or ''}".strip()
            if any(reason in why for reason in ALLOWED_SKIPS):
                result.skipped += 1
            else:
                result.failed.append(f"{name}: skipped without an allowed reason: {why}")
    if result.status != 0 and not result.failed:
        result.failed.append(f"{job.name}: exit {result.status}")
    elif job.report and not cases:
        result.failed.append(f"{job.name}: no report of tests")
    elif not job.report:
        result.passed += 1
        result.tests.append((result.seconds, job.name))


printing = threading.Lock()


def show(result):
    verdict = "FAILED" if result.failed else "ok"
    with printing:
        print(f"{result.job.name}: {verdict}, {result.seconds:.1f} s", flush=True)
        if result.failed:
            print(result.output[-20000:])
            for what in result.failed:
                print("FAILED " + what, flush=True)
        else:
            for line in result.output.splitlines():
                if line.startswith("cases left out"):
                    print("  " + line, flush=True)
    return result


def run_all(jobs):
    """Longest first by experience: what is started last must not be long."""
    slow = ("quern check", "pytest", "quern bench", "engine_test", "ops_test", "emu_test")
    jobs = sorted(jobs, key=lambda job: next((i for i, word in enumerate(slow) if job.name.startswith(word)), len(slow)))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as lanes:
        return list(lanes.map(lambda job: show(run(job)), jobs))


begin = time.time()
results = run_all([*gtest_jobs(), *pytest_jobs(), *sweep_jobs()])
tests = sorted((t for r in results for t in r.tests), reverse=True)
print("slowest:")
for seconds, name in tests[:25]:
    print(f"  {seconds:6.1f} s  {name}")
failed = [what for r in results for what in r.failed]
for what in failed:
    print("FAILED " + what)
passed = sum(r.passed for r in results)
print(f"{time.time() - begin:.0f} s, samples of rotation {os.environ['QN_TEST_ROTATION']}")
print(f"{passed} passed, {len(failed)} failed, {sum(r.skipped for r in results)} skipped")
sys.exit(0 if not failed and passed > 0 else 1)
