# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Which conformance tests run each function of quern/kit/ptx, read off the sources, and what a GPU said of them.

A test runs the kernels of quern/kit/conform that its text names, or that functions of its file name that it calls; a kernel
runs the functions that its text names, and what these call. What a GPU said is in bench/results/h200/conform.csv, written by
bench/gpu/record.sh."""
import csv
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEVICE_FUNCTION = re.compile(r"^(?:template <[^;{}]*?> )?QN_DEVICE [\w<>:&* ]*?\b(\w+)\(", re.MULTILINE)
HOST_FUNCTION = re.compile(r"^[\w:<>,&* ]+ (\w+)\([^;{}]*\) \{", re.MULTILINE)
TEST = re.compile(r"^TEST_P\((\w+), (\w+)\) \{", re.MULTILINE)
RESULTS = "bench/results/h200/conform.csv"


def read(path):
    return open(os.path.join(ROOT, path), encoding="utf-8").read()


def body(text, begin):
    """From the first brace behind `begin` to its partner."""
    first = text.index("{", begin)
    depth = 0
    for at in range(first, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[first:at + 1]
    raise ValueError("a brace has no partner")


def functions(paths, pattern):
    """{name: the bodies of all its overloads}"""
    found = {}
    for path in paths:
        text = re.sub(r"//.*", "", read(path))
        for match in pattern.finditer(text):
            found[match.group(1)] = found.get(match.group(1), "") + body(text, match.end() - 1)
    return found


def sources(folder):
    return sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, folder)))


def reached(text, known):
    """Names of `known` that the text calls, and that these call. A string is no call, and holds none."""
    names, queue = set(), [text]
    while queue:
        calls = re.findall(r"\b(\w+)[(<]", re.sub(r'"[^"]*"', "", queue.pop()))
        for name in set(calls) & known.keys() - names:
            names.add(name)
            queue.append(known[name])
    return names


def wrappers():
    """[(file, function)] of quern/kit/ptx, in the order of the sources."""
    found = []
    for path in sources("quern/kit/ptx/*.cuh"):
        for name in DEVICE_FUNCTION.findall(re.sub(r"//.*", "", read(path))):
            if (path, name) not in found:
                found.append((path, name))
    return found


def tests():
    """{suite.test: the functions of the kit that its kernels reach}"""
    kit = functions(sources("quern/kit/ptx/*.cuh") + sources("quern/kit/*.cuh"), DEVICE_FUNCTION)
    kernels = functions(sources("quern/kit/conform/*.cuh"), DEVICE_FUNCTION)
    found = {}
    for path in sources("quern/kit/conform*_test.cpp"):
        text = read(path)
        here = functions([path], HOST_FUNCTION)
        for match in TEST.finditer(text):
            own = body(text, match.end() - 1)
            words = set(re.findall(r"\w+", " ".join(re.findall(r'"[^"]*"', own + "".join(here[f] for f in reached(own, here))))))
            named = words & kernels.keys()
            run = named.union(*(reached(kernels[name], kernels) for name in named))
            found[".".join(match.groups())] = reached("".join(kernels[name] for name in run), kit)
    return found


def gpu_results():
    """{suite.test: [(result, commit)]}, one for each of its parameters."""
    found = {}
    if os.path.exists(os.path.join(ROOT, RESULTS)):
        for row in csv.DictReader(read(RESULTS).splitlines()):
            found.setdefault(row["test"].split("/")[1], []).append((row["result"], row["commit"]))
    return found


def verdict(names, results):
    """What the GPU said of the tests that run a function."""
    said = {name: results.get(name, [("not run", "")]) for name in names}
    passed = [name for name in names if all(result == "passed" for result, _ in said[name])]
    commits = ", ".join(sorted({commit for name in passed for _, commit in said[name]}))
    if len(passed) == len(names):
        return f"passed at {commits}"
    if not passed and {row[0] for rows in said.values() for row in rows} == {"not run"}:
        return "not run"
    parts = [f"{len(passed)} of {len(names)} tests passed at {commits}"] if passed else []
    for result in sorted({result for rows in said.values() for result, _ in rows} - {"passed"}):
        parts.append(f"{result}: " + ", ".join(f"`{n}`" for n in names if any(r == result for r, _ in said[n])))
    return "; ".join(parts)


def rows():
    """(file, function, tests, what an H200 said), none of them empty: a function without a test is an error."""
    by_test, results = tests(), gpu_results()
    unknown = sorted(results.keys() - by_test.keys())
    if unknown:
        raise SystemExit(f"conformance: {RESULTS} has tests that are not there: {', '.join(unknown)}")
    made = []
    for path, name in wrappers():
        using = sorted((t for t in by_test if name in by_test[t]), key=lambda t: (len(by_test[t]), t))
        if not using:
            raise SystemExit(f"conformance: {name} of {path} is in no conformance test")
        more = f" and {len(using) - 3} more" if len(using) > 3 else ""
        made.append((os.path.basename(path), f"`{name}`", ", ".join(f"`{t}`" for t in using[:3]) + more, verdict(using, results)))
    return made
