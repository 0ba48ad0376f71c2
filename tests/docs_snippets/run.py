#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Runs what the documents show, in a copy of the tree. Usage: run.py BUILD_FOLDER

A ```sh block behind `<!-- run -->` must end with status 0, behind `<!-- run 2 -->` with 2; a ```python block is run by the Python that has
the wheel (QN_TEST_PYTHON, else .venv-python, which tools/install_python.sh makes), one that imports torch only with QN_TEST_TORCH=1, and one that imports vllm or sglang
then by the Python that has those (QN_TEST_ENGINES, else .venv-engines, which tools/install_engines.sh makes). The ```text block behind a
following `<!-- prints -->` must stand in its output, line by line, where * matches anything. The lines of a ```cpp block behind
`<!-- in FILE -->` must stand in that file, in order, `// ...` for what is left out between them. Besides: relative links lead
somewhere, words that begin with QN_ exist, and the files that `quern new` wrote compile. QN_TEST_FULL=1 also builds the
tree with the new op and checks it."""
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BLOCK = re.compile(r"^<!-- run(?: (\d+))? -->\n```(sh|python)\n(.*?)^```\n(?:<!-- prints -->\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
EXCERPT = re.compile(r"^<!-- in (\S+) -->\n```cpp\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
OTHER_BLOCKS = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
PYTHON = os.environ.get("QN_TEST_PYTHON") or os.path.join(ROOT, ".venv-python", "bin", "python")
ENGINES = os.environ.get("QN_TEST_ENGINES") or os.path.join(ROOT, ".venv-engines", "bin", "python")
# Prefixes that stand for many words.
FAMILIES = {"QN_", "QN_EMU_", "QN_JIT_"}
failures = []
done = 0


def fail(where, what):
    failures.append(f"{where}: {what}")
    print(f"FAILED {where}: {what}", flush=True)


def documents():
    patterns = ["*.md", "docs/*.md", "docs/proof/*.md", "quern/ops/*/README.md"]
    return sorted(os.path.relpath(p, ROOT) for pattern in patterns for p in glob.glob(os.path.join(ROOT, pattern)))


def matches(line, pattern):
    """Whether a line of output is the pattern's; only * is special."""
    return fnmatch.fnmatchcase(line, re.sub(r"([\[?])", r"[\1]", pattern))


def missing_line(output, expected):
    """The first expected line that is not in the output behind those before it, or None."""
    lines = iter(line.rstrip() for line in output.splitlines())
    for pattern in expected.splitlines():
        if not any(matches(line, pattern.rstrip()) for line in lines):
            return pattern
    return None


def environment(tree):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("QN_") or k == "QN_JIT_NVRTC"}
    return {**kept, "QN_CACHE_DIR": os.path.join(tree, "kernels"), "QN_DEVICE": "emu"}


def shell(tree, script):
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tree, env=environment(tree), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1200)


def python(tree, script):
    interpreter = ENGINES if re.search(r"^import (vllm|sglang)\b", script, re.MULTILINE) else PYTHON
    return subprocess.run([interpreter, "-c", script], cwd=tree, env=environment(tree), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1200)


def run_blocks(tree, document):
    global done
    text = open(os.path.join(ROOT, document), encoding="utf-8").read()
    if len(re.findall("^<!-- run", text, re.MULTILINE)) != len(BLOCK.findall(text)):
        fail(document, "has a <!-- run --> without a ```sh or ```python block behind it")
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        status, language, script, expected = int(match.group(1) or 0), match.group(2), match.group(3), match.group(4)
        if language == "python" and re.search(r"^import (quern\.)?torch$", script, re.MULTILINE) and os.environ.get("QN_TEST_TORCH") != "1":
            print(f"left out, needs torch: {document}:{line}", flush=True)
            continue
        result = (python if language == "python" else shell)(tree, script)
        done += 1
        if result.returncode != status:
            fail(f"{document}:{line}", f"ended with {result.returncode}, expected {status}:\n{result.stdout}")
        elif expected and (missing := missing_line(result.stdout, expected)) is not None:
            fail(f"{document}:{line}", f"does not print '{missing}' but\n{result.stdout}")


def check_excerpts(document):
    text = open(os.path.join(ROOT, document), encoding="utf-8").read()
    if len(re.findall("^<!-- in ", text, re.MULTILINE)) != len(EXCERPT.findall(text)):
        fail(document, "has an <!-- in FILE --> without a ```cpp block behind it")
    for match in EXCERPT.finditer(text):
        shown = "".join(line + "\n" for line in match.group(2).splitlines() if line.strip() != "// ...")
        source = open(os.path.join(ROOT, match.group(1)), encoding="utf-8").read()
        if (missing := missing_line(source, shown)) is not None:
            fail(f"{document}:{text.count(chr(10), 0, match.start()) + 2}", f"shows '{missing}', which {match.group(1)} has not, or not there")


def check_links(document):
    text = OTHER_BLOCKS.sub("", open(os.path.join(ROOT, document), encoding="utf-8").read())
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        if not os.path.exists(os.path.join(ROOT, os.path.dirname(document), target)):
            fail(document, f"links to {target}, which is not there")


def known_words():
    words = set(FAMILIES)
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if not f.startswith((".", "build")) and f not in ("docs", "docs_snippets")]
        for name in names:
            if name.endswith((".h", ".cpp", ".cuh", ".py", ".sh", "CMakeLists.txt", "CMakePresets.json")):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    words.update(re.findall(r"\bQN_[A-Z_]+\b", f.read()))
    return words


def check_words(document, known):
    text = open(os.path.join(ROOT, document), encoding="utf-8").read()
    for word in sorted(set(re.findall(r"\bQN_[A-Z_]*", text)) - known):
        fail(document, f"names {word}, which no source has")


def check_new_op(tree):
    """The op that CONTRIBUTING.md has made by now."""
    global done
    kernel = ('printf \'#include "quern/ops/tutorial/scale/kernel.cuh"\\n'
              "constexpr quern::tutorial::ScaleConfig config{quern::DType(2), 8, 128};\\n"
              "QN_ENTRY(scale, quern::tutorial::ScaleParams, 128, 1, quern::tutorial::scale_row<config>(p))\\n'")
    script = f"""
g++ -std=c++20 -fsyntax-only -Wall -Wextra -Werror -Wno-missing-field-initializers -I. quern/ops/tutorial/scale/scale.cpp
{kernel} | g++ -std=c++20 -fsyntax-only -w -DQN_EMU -march=x86-64-v3 -I. -x c++ -
if python3 tools/check_layers.py | grep quern/ops/tutorial; then exit 1; fi
"""
    if os.environ.get("QN_TEST_FULL") == "1":
        script += """
cmake -S . -B with_scale -G Ninja -DQN_BUILD_TESTS=OFF
cmake --build with_scale
with_scale/quern check tutorial.scale --device emu
with_scale/quern check tutorial.scale --device emu --checked
"""
    result = shell(tree, script)
    done += 1
    if result.returncode != 0:
        fail("the op that `quern new` wrote", result.stdout)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = os.path.abspath(sys.argv[1])
    if not os.path.exists(PYTHON):
        sys.exit(f"{PYTHON} is missing: tools/install_python.sh makes it")
    known = known_words()
    for document in documents():
        check_excerpts(document)
        check_links(document)
        check_words(document, known)
    with tempfile.TemporaryDirectory(prefix="quern-docs-") as folder:
        tree = os.path.join(folder, "quern")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("build*", ".git", ".venv*", ".cache", "__pycache__"))
        os.symlink(build, os.path.join(tree, "build"))
        for document in documents():
            run_blocks(tree, document)
        check_new_op(tree)
    print(f"documents: {done} commands run, {len(failures)} failures")
    sys.exit(1 if failures or done < 2 else 0)


if __name__ == "__main__":
    main()
