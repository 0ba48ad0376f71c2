#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Breaks the JIT and its cache, one line at a time, and requires that a test notices.

Usage: jit_mutations.py BUILD_FOLDER [--sample N]

Each mutation is applied to a copy of one source, compiled beside the build, and linked into a test program of its own; the
build folder is not touched. Ends with 1 when a test stays green on a mutation."""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# File below quern/jit, what is broken, text that occurs once, its replacement, tests that must notice.
MUTATIONS = [
    ("build.cpp", "a frozen process compiles", "  if (frozen())\n    throw", "  if (false)\n    throw", "jit_freeze.*"),
    ("kernel_table.cpp", "a kernel is loaded while the stream captures", "if (device.capturing(stream))", "if (false)", "jit_freeze.loads*"),
    ("kernel_table.cpp", "a kernel loaded on one device is launched on another", "e->device == device && ", "", "jit_freeze.loads*"),
    ("cache_entry.cpp", "the binary's checksum is not compared", " || hash128_hex(files.image) != meta.checksum", "", "cache_faults.damaged*"),
    ("cache_entry.cpp", "meta.json's own checksum is not compared", "if (own != hash128_hex(", "if (false && own != hash128_hex(", "cache_faults.a_meta*"),
    ("cache_entry.cpp", "kernels of a denied compiler are used", "!why.empty()) fail(\"its compiler", "false) fail(\"its compiler", "cache_denied.*"),
    ("cache_disk.cpp", "the key of an entry is not compared", "if (checked.key != d.key_text)", "if (false)", "cache_faults.something*"),
    ("cache_disk.cpp", "a rename that reports failure is believed", "if ((done || !replace) && read(name, d))", "if (false)",
     "cache_faults.a_rename*"),
    ("cache_disk.cpp", "a damaged entry stays in the way", "if (::rename(target.c_str(), away.c_str()) == 0) {", "if (false) {", "cache_faults.damaged*"),
    ("cache_disk.cpp", "a writable folder serves another compiler's kernels", "  if (!read_only_ && !d.provenance.empty()) return std::nullopt;\n", "",
     "cache_roots.a_read_only*"),
    ("build.cpp", "a load waits for a compile", "  if (auto found = find_kept(keys, {})) return *found;  // waits for nobody\n", "", "cache_safety.a_load*"),
    ("kernel_table.cpp", "an entry is replaced when the device is full", "if (e.kind() != ErrorKind::unsupported) throw;", "", "cache_safety.an_entry_is*"),
    ("build.cpp", "a full disk is a compile error", "if (room) throw;", "throw;", "cache_faults.a_full_disk"),
    ("build.cpp", "another process's compile is not looked for again", "    scope.emplace(keys[0]);\n", "",
     "cache_faults.race_of_16*"),
    ("cache_locks.cpp", "a lock is taken for granted", "if (::fcntl(fd_, F_OFD_SETLK, &lock) == 0) return true;",
     "if (::fcntl(fd_, F_OFD_SETLK, &lock) <= 0) return true;", "cache_faults.race_of_16*"),
    ("cache_locks.cpp", "a lock is waited for without end", " || steady_clock::now() > end", "", "cache_faults.a_lock_holder*"),
    ("cache_sweep.cpp", "eviction takes fresh entries", "e.idle_seconds < fresh_seconds || ", "", "cache_eviction.takes*"),
    ("cache_sweep.cpp", "eviction takes entries in use", "locks.in_use(e.name) || ", "", "cache_eviction.leaves*"),
    ("cache_sweep.cpp", "eviction takes the last used first", "return a.idle_seconds > b.idle_seconds;", "return a.idle_seconds < b.idle_seconds;", "cache_eviction.takes*"),
    ("cache_sweep.cpp", "builds that were killed stay", "return ::kill(pid, 0) != 0 && errno == ESRCH;", "return false;", "cache_faults.a_process*"),
    ("digests.cpp", "the compiler's options are not in the key", 'd.key_text += " " + option;', "(void)option;", "cache_key.options*"),
    ("digests.cpp", "the included files are not in the key", "d.key_text += header.name + \" \" + hash128_hex(header.text)", "d.key_text += header.name",
     "cache_key.a_byte*"),
    ("sources.cpp", "files that an included file includes are not in the key", "    collect(*included, other_world, into);\n", "", "cache_key.a_byte*"),
    ("cache_entry.cpp", "an entry may name a folder outside", "if (!is_entry_name(digests_of(meta).folder_name())) fail(", "if (false) fail(", "cache_safety.a_pack*"),
    ("build.cpp", "a cubin that is not kept says that it is", "  c.kept = c.folder == cache.folder_of(d);\n  if (!c.folder", "  if (!c.folder", "cache_safety.what_is_not*"),
    ("build.cpp", "an entry that does not load is compiled again for ever", "  if (auto found = find_kept(keys, bad)) return *found;\n", "", "cache_safety.an_entry*"),
    ("cache_disk.cpp", "what a process made may be evicted while it runs", "if (d.emulated) CacheLocks::of(root_).hold_in_use(name);  // its maker", "// its maker",
     "cache_safety.what_a_process*"),
    ("cache_disk.cpp", "a pipe in a file's place is waited for", "if (auto bytes = read_regular_file(path))", "if (auto bytes = read_file(path))", "cache_faults.damaged*"),
    ("cache_roots.cpp", "the limit overflows", "std::clamp<i64>(megabytes, 0, kMost)", "megabytes", "cache_safety.the_limit*"),
    ("pack.cpp", "a root that is a pipe is waited for", "O_RDONLY | O_NONBLOCK | O_CLOEXEC", "O_RDONLY | O_CLOEXEC", "cache_safety.a_root*"),
    ("pack.cpp", "entries of a pack are not checked", "if (check_entry(f).key != d.key_text)", "if (false)", "cache_roots.a_damaged_pack*"),
]


def compile_command(build, source):
    for entry in json.load(open(os.path.join(build, "compile_commands.json"), encoding="utf-8")):
        if os.path.realpath(entry["file"]) == os.path.realpath(source):
            return entry["command"], entry["directory"]
    sys.exit(f"{source} is not in {build}/compile_commands.json")


def link_command(build):
    """The last command of the test program, which links it."""
    lines = subprocess.run(["ninja", "-C", build, "-t", "commands", "tests/engine_test"], capture_output=True, text=True, check=True).stdout
    return [line for line in lines.splitlines() if " -o tests/engine_test " in line][-1]


def mutated_program(build, folder, mutation):
    """Compiles and links the program with the mutation; None when the source no longer holds what is mutated."""
    file, _, old, new, _ = mutation
    source = os.path.join(ROOT, "quern/jit", file)
    text = open(source, encoding="utf-8").read()
    if text.count(old) != 1:
        return None
    copy, made, program = (os.path.join(folder, name) for name in (file, file + ".o", "engine_test"))
    open(copy, "w", encoding="utf-8").write(text.replace(old, new))
    command, directory = compile_command(build, source)
    words = shlex.split(command)
    at = words.index("-o") + 1
    usual = words[at]
    words[at], words[words.index("-c") + 1] = made, copy
    subprocess.run([*words, "-w"], cwd=directory, check=True)
    link = link_command(build).replace(f" {usual} ", f" {made} ").replace(" -o tests/engine_test ", f" -o {program} ")
    subprocess.run(link, shell=True, cwd=build, check=True)
    return program


def verdict(build, mutation):
    """"noticed" or what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        program = mutated_program(build, folder, mutation)
        if program is None:
            return "the source does not hold exactly once what is changed"
        environment = {**os.environ, "QN_TEST_FULL": "0"}
        result = subprocess.run([program, "--gtest_filter=" + mutation[4], "--gtest_brief=1"], cwd=build, env=environment, capture_output=True,
                                text=True, timeout=400)
        if result.returncode < 0:
            return "the test program crashed"
        return "noticed" if result.returncode == 1 and "[  FAILED  ]" in result.stdout else "no test noticed"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--sample", type=int, default=0)
    arguments = parser.parse_args()
    build = os.path.abspath(arguments.build)
    chosen = MUTATIONS
    if arguments.sample:
        chosen = [MUTATIONS[i * len(MUTATIONS) // arguments.sample] for i in range(arguments.sample)]
    missed = 0
    for mutation in chosen:
        said = verdict(build, mutation)
        missed += said != "noticed"
        print(f"{said}: {mutation[0]}: {mutation[1]} ({mutation[4]})", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} mutations of the JIT noticed")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
