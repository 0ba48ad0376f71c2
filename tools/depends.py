# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Which sources a test depends on, and a digest of their contents.

A file depends on what it includes, what those include, and on what belongs to each of them:
* In a room other than ops and bricks: the whole room, for any file of it may define what a header declares.
* In a folder of ops or bricks: all files in it and below it, as the variants of an op. Beside the ops' folders, as quern/ops/gemm/dense.h:
  the files with its stem.
* A kernel, whose path a file holds as a string; an op, whose name a file holds as a string (in the other rooms such a name is an example).
Tests are left out unless they are what is asked for: no other source includes one.

tests/depends.py compares this with what compilers read and linkers need."""
import functools
import hashlib
import os
import re

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
QUOTED = re.compile(r'"(quern/[\w/]+\.(?:cuh|h|cpp)|[a-z_0-9]+\.[a-z_0-9]+)"')
DOCUMENT = re.compile(r"docs/\w+\.md")
SUFFIXES = (".h", ".cpp", ".cuh")


def is_test(path):
    return path.endswith("_test.cpp") or os.path.basename(path).startswith("planted")


class Sources:
    """The files of a tree. `changed` has texts that are taken instead of those on disk."""

    def __init__(self, root, changed=None):
        self.root, self.changed = root, changed or {}

    @functools.lru_cache(maxsize=None)
    def text(self, path):
        return self.changed[path] if path in self.changed else open(os.path.join(self.root, path), encoding="utf-8").read()

    @functools.lru_cache(maxsize=None)
    def exists(self, path):
        return os.path.isfile(os.path.join(self.root, path))

    @functools.lru_cache(maxsize=None)
    def folder(self, path):
        """The sources right in a folder, tests left out."""
        names = sorted(os.listdir(os.path.join(self.root, path)))
        return tuple(f"{path}/{n}" for n in names if n.endswith(SUFFIXES) and not is_test(n))

    @functools.lru_cache(maxsize=None)
    def room(self, name):
        """All sources of a folder and those below it, tests left out."""
        found = []
        for folder, _, _ in os.walk(os.path.join(self.root, name)):
            found += self.folder(os.path.relpath(folder, self.root))
        return tuple(sorted(found))

    @functools.lru_cache(maxsize=None)
    def op_folder(self, name):
        """quern/ops/norm/rms_norm of norm.rms_norm, else empty."""
        family, _, op = name.partition(".")
        folder = f"quern/ops/{family}/{op}"
        source = f"{folder}/{op}.cpp"
        return folder if self.exists(source) and f'"{name}")' in self.text(source) and "QN_OP(" in self.text(source) else ""

    @functools.lru_cache(maxsize=None)
    def named(self, path):
        """Paths that a file includes or names."""
        text, found = self.text(path), set()
        for name in INCLUDE.findall(text):
            found |= {p for p in (name, os.path.join(os.path.dirname(path), name)) if self.exists(p)}
        for name in QUOTED.findall(text):
            if name.startswith("quern/"):
                found |= {name} if self.exists(name) else set()
            elif path.startswith(("quern/ops/", "quern/bricks/", "tests/")) and self.op_folder(name):
                found |= set(self.room(self.op_folder(name)))
        if is_test(path):
            folders = [os.path.splitext(name)[0] for name in found if name.startswith("quern/ops/") and name.count("/") == 3]
            for folder in filter(lambda f: os.path.isdir(os.path.join(self.root, f)), folders):
                found |= set(self.room(folder))
            found |= {name for name in DOCUMENT.findall(text) if self.exists(name)}
        return tuple(sorted(found))

    @functools.lru_cache(maxsize=None)
    def belongs(self, path):
        """What comes with a file."""
        parts = path.split("/")
        if is_test(path) or parts[0] != "quern" or len(parts) < 3:
            return (path,)
        if parts[1] not in ("ops", "bricks"):
            return self.room("quern/" + parts[1])
        folder = os.path.dirname(path)
        if parts[1] == "ops" and len(parts) == 4:
            stem = os.path.splitext(path)[0]
            return tuple(f for f in self.folder(folder) if os.path.splitext(f)[0] == stem)
        return self.room(folder)

    def closure(self, paths):
        """All files that these depend on."""
        seen, todo = set(), list(paths)
        while todo:
            for path in self.belongs(todo.pop()):
                if path not in seen:
                    seen.add(path)
                    todo += self.named(path)
        return seen

    @functools.lru_cache(maxsize=None)
    def of_op(self, op):
        """What tests of one op depend on: the op, and all rooms that have no op."""
        shared = [path for room in ("base", "device", "emu", "jit", "kit", "op", "testing", "bench", "cli") for path in self.room("quern/" + room)]
        return frozenset(self.closure(self.room(self.op_folder(op)))) | frozenset(shared)

    @functools.lru_cache(maxsize=None)
    def faults_of(self, op):
        """The tables of faults that are shown on an op, and the test that plants them."""
        tables = [f"{os.path.relpath(folder, self.root)}/planted_faults.cpp" for folder, _, files in os.walk(os.path.join(self.root, "quern")) if "planted_faults.cpp" in files]
        return frozenset(["tests/planted_faults_test.cpp", "tests/planted_faults.h", *(path for path in tables if f'"{op}"' in self.text(path))])

    def of_test(self, path, op):
        """What the tests of a file depend on, or those of them that are about one op; None: on everything."""
        if op and path == "tests/planted_faults_test.cpp":
            return self.of_op(op) | self.faults_of(op)
        if op:
            plans = self.op_folder(op) + "/plans.txt"
            return self.of_op(op) | {path} | ({plans} if self.exists(plans) else set())
        if path.startswith(("quern/ops/", "quern/bricks/")) and "registry()" not in self.text(path):
            return self.closure([path])
        if path.split("/")[1] in ("base", "device", "emu", "jit", "kit"):
            return self.closure([path])
        return None

    @functools.lru_cache(maxsize=None)
    def digest_of(self, path):
        if path in self.changed:
            return hashlib.sha256(self.changed[path].encode()).hexdigest()
        with open(os.path.join(self.root, path), "rb") as f:
            return hashlib.sha256(f.read()).hexdigest()

    def digest(self, paths, *words):
        """Of the contents of these files and of the words."""
        whole = hashlib.sha256()
        for word in words:
            whole.update(f"{len(word)} {word}\n".encode())
        for path in sorted(paths):
            whole.update(f"{path} {self.digest_of(path)}\n".encode())
        return whole.hexdigest()
