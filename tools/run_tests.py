#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Runs the tests and the sweeps of the quern command, as many at a time as there are CPUs; fails on any failure and on any skip
that is not allowed.

Usage: run_tests.py [--changed] BUILD_FOLDER. Shows what failed with its output, and what took long. Ends with the slowest tests and one
line "N passed, N failed, N skipped".

--changed leaves out what passed before on the same sources: BUILD_FOLDER/verdicts.json has the digest of all that a job depended on when
it passed (depends.py). A job of one op depends on that op alone and on what all ops share. What the build folder lacks is built first.

Without QN_TEST_FULL=1 the sweeps take samples. QN_TEST_ROTATION, by default ROTATION below, decides which: those of successive numbers
differ, and together they are the whole."""
import concurrent.futures
import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as xml

import depends

ALLOWED_SKIPS = ("needs a GPU", "needs CUDA's headers")
if os.environ.get("QN_TEST_TORCH") != "1":  # ./test.sh --with-torch
    ALLOWED_SKIPS += ("needs torch",)
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.path.abspath(sys.argv[-1])
only_changed = "--changed" in sys.argv[1:-1]
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
    depends: object = None  # the files it depends on; None: on everything
    digest: str = ""        # of these and of what all jobs depend on; empty: no verdict of it is kept


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


sources = depends.Sources(root)
OP = re.compile(r'"([a-z_0-9]+\.[a-z_0-9]+)"')


def ops():
    """Names of the ops, those first whose cases take longest."""
    names = sorted(f"{family}.{op}" for family in os.listdir(os.path.join(root, "quern/ops"))
                   if os.path.isdir(os.path.join(root, "quern/ops", family)) for op in os.listdir(os.path.join(root, "quern/ops", family)))
    slow = ("gemm", "attention", "sampling", "norm")
    return sorted(filter(sources.op_folder, names), key=lambda name: next((i for i, word in enumerate(slow) if name.startswith(word)), len(slow)))


def gtest_jobs():
    """A job for each file of tests, and in it for each op that its tests have as a parameter."""
    listed = subprocess.run(["ctest", "-N", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True)
    for binary in [t["command"][0] for t in json.loads(listed.stdout)["tests"] if "command" in t]:
        with tempfile.NamedTemporaryFile("r", suffix=".json") as listing:
            subprocess.run([binary, "--gtest_list_tests", "--gtest_output=json:" + listing.name], check=True, capture_output=True)
            suites = json.load(listing)["testsuites"]
        tests = {}
        for suite in suites:
            for test in suite["testsuite"]:
                path, parameter = os.path.relpath(test["file"], root), test.get("value_param", "")
                op = next((name for name in OP.findall(parameter) if sources.op_folder(name)), "")
                tests.setdefault((path, op, parameter if op else ""), []).append(f"{suite['name']}.{test['name']}")
        for number, ((path, op, parameter), names) in enumerate(sorted(tests.items())):
            report = f"{binary}.{number}.xml"
            title = f"{path} {parameter}".strip()
            yield Job(title, [binary, "--gtest_brief=1", "--gtest_output=xml:" + report, "--gtest_filter=" + ":".join(names)], {}, report,
                      sources.of_test(path, op))


def pytest_job(name, interpreter, folder):
    report = os.path.join(build, f"{folder}_test.xml")
    return Job(name, [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", report, os.path.join(root, "tests", folder)], {}, report)


def pytest_jobs():
    """The tests of the Python package, in the virtual environment that has the wheel; with torch also those inside other engines' classes, in theirs."""
    yield pytest_job("pytest", python, "python")
    if os.environ.get("QN_TEST_TORCH") == "1":
        yield pytest_job("pytest engines", os.environ.get("QN_TEST_ENGINES") or os.path.join(root, ".venv-engines", "bin", "python"), "engines")


def command_job(*arguments, depends=None):
    return Job("quern " + " ".join(arguments), [quern, *arguments], depends=depends)


def script_job(script, *arguments):
    return Job(script, [sys.executable, os.path.join(root, script), *arguments])


def check_jobs(*arguments, sample, seconds):
    """So many cases of each op, in so many seconds of one CPU; --full: all."""
    if not full:
        arguments += ("--sample", str(sample), "--seconds", str(seconds), "--rotate", os.environ["QN_TEST_ROTATION"])
    for op in ops():
        yield command_job("check", op, "--no-nvrtc", "--threads", "1", *arguments, depends=sources.of_op(op))  # NVRTC has bench --compile


def sweep_jobs():
    yield from check_jobs(sample=40, seconds=20)
    yield from check_jobs("--checked", "--async", "eager,lazy,random", "--seeds", "25" if full else "2", sample=8, seconds=30)
    for compiler in ("g++", "clang++"):
        yield from check_jobs("--asan", "--host-compiler", compiler, *(["--async", "eager,lazy,random"] if full else []), sample=2, seconds=10)
    yield from check_jobs("--host-compiler", "clang++", sample=6, seconds=10)
    archs = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_121a"] if full else ["sm_80", "sm_90a"]
    for op in ops():
        yield command_job("bench", "--compile", op, *([] if full else ["--sample", "10", "--rotate", os.environ["QN_TEST_ROTATION"]]),
                          *[w for a in archs for w in ("--arch", a)], depends=sources.of_op(op))
    yield command_job("fuzz", "10000" if full else "1500")
    yield Job("quern demo, twice", ["bash", "-c", '"$0" demo --device emu && "$0" demo --device emu', quern])
    yield script_job("tests/fuzz_cli.py", quern, "2000" if full else "500")
    yield script_job("tests/jit_mutations.py", build, *([] if full else ["--sample", "2"]))
    nvcc = [os.environ["QN_TEST_NVCC"]] if "QN_TEST_NVCC" in os.environ else []
    yield script_job("tests/examples/run.py", build, *nvcc)
    yield script_job("tools/gen_docs.py", "--check", quern)
    yield script_job("tests/docs_snippets/run.py", build)
    yield script_job("tests/depends.py", build)


def everything():
    """All files of the tree, without builds and what begins with a dot."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith((".", "build", "__pycache__")) and not os.path.islink(os.path.join(folder, f))]
        found += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return found


def packages():
    """Compilers and libraries of the system, as text."""
    said = [subprocess.run([name, "--version"], capture_output=True, text=True).stdout for name in ("g++", "clang++")]
    return "".join(said) + (subprocess.run(["dpkg-query", "-W"], capture_output=True, text=True).stdout if shutil.which("dpkg-query") else "")


class Verdicts:
    """What passed before, by job: the digest of what it depended on, its tests, its seconds. Kept after each job."""

    def __init__(self):
        self.path, self.lock = os.path.join(build, "verdicts.json"), threading.Lock()
        self.known = json.load(open(self.path)) if os.path.exists(self.path) else {}
        subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)  # a verdict is of these sources, not of an older build
        self.all, self.packages = everything(), packages()

    def digest(self, job, now):
        """Of what decides the job's verdict, read from `now`. The Python package is tested as it is installed, which ./test.sh has just done."""
        if job.name.startswith("pytest") and "QN_TEST_PYTHON" not in os.environ:
            return ""
        built = [path for path in self.all if path.endswith(("CMakeLists.txt", ".cmake")) or path.startswith("cmake/") or (path.startswith("tools/") and path.endswith(".py"))]
        variables = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("QN_")]
        with open(os.path.join(build, "CMakeCache.txt")) as cache:
            words = [self.packages, cache.read(), *variables, *job.command]
        return now.digest(set(self.all if job.depends is None else job.depends) | set(built), *words)

    def before(self, job):
        """The result of a job that passed on the same sources, else None."""
        known = self.known.get(job.name)
        if not job.digest or not known or known["digest"] != job.digest:
            return None
        return Result(job, 0, 0, "", known["passed"], known["skipped"])

    def keep(self, result):
        """The verdict, unless a source has changed meanwhile."""
        job = result.job
        is_same = bool(job.digest) and self.digest(job, depends.Sources(root)) == job.digest
        with self.lock:
            self.known.pop(job.name, None)
            if is_same and not result.failed:
                self.known[job.name] = {"digest": job.digest, "passed": result.passed, "skipped": result.skipped, "seconds": result.seconds}
            with open(self.path + ".new", "w") as f:
                json.dump(self.known, f, indent=1)
            os.replace(self.path + ".new", self.path)


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
        if result.failed or result.seconds >= 20:
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
    """Longest first, as they were the last time or by experience: what is started last must not be long."""
    slow = ("pytest", "tests/", "tools/", "quern check gemm", "quern check attention", "quern")
    def place(job):
        known = verdicts.known.get(job.name)
        return -known["seconds"] if known else next((i - 60 for i, word in enumerate(slow) if job.name.startswith(word)), 0)
    def finish(job):
        result = run(job)
        verdicts.keep(result)
        return show(result)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as lanes:
        return list(lanes.map(finish, sorted(jobs, key=place)))


begin = time.time()
verdicts = Verdicts()
jobs = [*gtest_jobs(), *pytest_jobs(), *sweep_jobs()]
for job in jobs:
    job.digest = verdicts.digest(job, sources)
before = [result for result in map(verdicts.before, jobs) if result] if only_changed else []
known = {result.job.name for result in before}
results = [*before, *run_all([job for job in jobs if job.name not in known])]
tests = sorted((t for r in results for t in r.tests), reverse=True)
print("slowest:")
for seconds, name in tests[:25]:
    print(f"  {seconds:6.1f} s  {name}")
failed = [what for r in results for what in r.failed]
for what in failed:
    print("FAILED " + what)
passed = sum(r.passed for r in results)
print(f"{time.time() - begin:.0f} s, samples of rotation {os.environ['QN_TEST_ROTATION']}")
if before:
    print(f"{len(before)} of {len(jobs)} jobs passed before on the same sources")
print(f"{passed} passed, {len(failed)} failed, {sum(r.skipped for r in results)} skipped")
sys.exit(0 if not failed and passed > 0 else 1)
