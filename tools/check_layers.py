#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Checks which room includes which, and what kernels may contain. Exits 1 with one line per breach."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A room may include itself and the rooms listed here.
MAY_INCLUDE = {
    "base": set(),
    "device": {"base", "emu"},  # emulated.cpp drives the emulator's runtime
    "emu": {"base", "device"},  # the device's plain structs; never the other way round but for emulated.cpp
    "jit": {"base", "device"},
    "op": {"base", "device", "jit"},
    "bricks": {"base", "device", "jit", "op"},  # parts of kernels and plans that several ops share
    "ops": {"base", "device", "jit", "op", "bricks"},
    "testing": {"base", "device", "emu", "jit", "op"},  # emu: the graph of expressions
    "bench": {"base", "device", "jit", "op", "testing"},
    "cli": {"base", "device", "jit", "op", "testing", "bench"},
    "ffi": {"base", "device", "jit", "op", "testing", "bench", "cli"},  # bench: host time; cli: what the commands print as JSON
}
HOST_KIT = {"quern/kit/abi.h", "quern/kit/order_free.h"}
FORBIDDEN_IN_KERNELS = [r"\basm\b", r"\bprintf\b", r"\bgetenv\b", r"__CUDA_ARCH__", r"\bQN_EMU\b", r"__syncthreads", r"__shfl",
                        r"\bstd::", r"#\s*include\s*<", r"__shared__"]
# A function, not a variable: no initialiser before the parenthesis.
BARE_CONSTEXPR = re.compile(r"\bconstexpr\s+(?:[\w:<>,&*\s]+[\s&*])?\w+\s*\(")
# The template of `quern new` holds other files' text; the runner and the tensors of kit's conformance tests are test code.
NOT_READ = {"quern/cli/op_template.cpp", "quern/kit/conform/runner.h", "quern/kit/conform/tensors.h"}
TESTS = ("_test.cpp", "/planted_faults.cpp")
breaches = []


def sources():
    for folder, _, names in os.walk(os.path.join(ROOT, "quern")):
        for name in names:
            if name.endswith((".h", ".cpp", ".cuh")):
                path = os.path.join(folder, name)
                yield os.path.relpath(path, ROOT), open(path, encoding="utf-8").read()


def breach(path, line, text):
    breaches.append(f"{path}:{line}: {text}")


def is_spec(path):
    return path.endswith("_spec.h") or (os.path.basename(path) == "spec.h" and path.startswith(("quern/ops/", "quern/bricks/")))


def op_folder(path):
    """`gemm/dense` of `quern/ops/gemm/dense/call.h`; "" of a file beside the ops' folders. A folder is an op's where a public header beside it
    has its name; others, as `gemm/grouped`, are what several ops of a family share."""
    parts = path.split("/")
    if len(parts) < 5 or parts[:2] != ["quern", "ops"] or not os.path.exists(os.path.join(ROOT, "quern/ops", parts[2], parts[3] + ".h")):
        return ""
    return parts[2] + "/" + parts[3]


def check_family(path, line, name):
    """What an op may include of other ops: their public headers, and what its family shares."""
    if name.split("/")[2] != path.split("/")[2]:
        breach(path, line, f"a family may not include another: {name}")
    elif op_folder(name) not in ("", op_folder(path)) and not path.endswith(TESTS):
        breach(path, line, f"an op may not include what is another's: {name}; what both need is a brick")


def check_kernel(path, text, includes):
    for line, name in includes:
        if name.startswith("quern/ops/") and path.startswith("quern/ops/"):
            check_family(path, line, name)
            continue
        bricks = name.startswith("quern/bricks/") and path.startswith(("quern/ops/", "quern/bricks/"))
        if not bricks and not name.startswith(("quern/kit/", os.path.dirname(path) + "/")):
            breach(path, line, f"a kernel may not include {name}")
    if not path.startswith("quern/kit/"):
        for number, line in enumerate(text.splitlines(), 1):
            code = line.split("//")[0]
            for pattern in FORBIDDEN_IN_KERNELS:
                if re.search(pattern, code):
                    breach(path, number, f"{pattern} in a kernel")
    if (path.endswith((".cuh", "quern/kit/abi.h")) or is_spec(path)) and not path.startswith("quern/kit/emu/"):  # NVRTC reads them
        for number, line in enumerate(text.splitlines(), 1):
            code = line.split("//")[0]
            if BARE_CONSTEXPR.search(code) and not re.search(r"\bQN_(HOST_)?DEVICE\b", code):
                breach(path, number, "a constexpr function without QN_HOST_DEVICE: g++ calls it in a kernel, NVRTC does not")


def check_state(path, text):
    """Behind plan and params there is no state but a Memo's."""
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        if "Memo<" in code or not re.search(r"\bthread_local\b|^\s+static\s+(?!const\b|constexpr\b|void\b|_)[^(]*[;={]", code):
            continue
        breach(path, number, "state behind plan that is no Memo")


def check_host(path, room, includes):
    is_test = path.endswith(TESTS) or path.endswith("_bench.cpp")
    for line, name in includes:
        if name.startswith("quern/kit/"):
            emulator = room == "emu" or path == "quern/device/emulated.cpp" or is_test
            if name not in HOST_KIT and not emulator and not is_spec(name):
                breach(path, line, f"host code sees of kit only abi.h, not {name}")
            continue
        if not name.startswith("quern/"):
            continue
        other = name.split("/")[1]
        if is_test and other in ("testing", "bench", "device", "jit", "op", "base", "emu"):
            continue
        if name.endswith(".cuh"):
            breach(path, line, f"host code may not include a kernel: {name}")
        elif other == "ops" and room == "ops":
            check_family(path, line, name)
        elif other != room and other not in MAY_INCLUDE[room]:
            breach(path, line, f"{room} may not include {other} ({name})")


for path, text in sources():
    includes = [(n, m.group(1)) for n, l in enumerate(text.splitlines(), 1) if (m := re.match(r'\s*#\s*include\s*"([^"]+)"', l))]
    room = path.split("/")[1]
    if path in NOT_READ:
        continue
    if path.endswith(".cuh") or room == "kit" or is_spec(path):
        if not path.endswith(TESTS):
            check_kernel(path, text, includes)
    else:
        check_host(path, room, includes)
        if room in ("ops", "bricks") and not path.endswith(TESTS):
            check_state(path, text)
    if re.search(r"\basm\s*(volatile)?\s*\(", text) and not (path.startswith(("quern/kit/ptx/", "quern/emu/")) or path.endswith(TESTS)):
        breach(path, 1, "asm outside kit/ptx")

    if re.search(r"\bgetenv\(", text) and path != "quern/base/env.cpp" and not path.endswith(TESTS):
        breach(path, 1, "getenv outside base/env.cpp, which refuses what a variable may not be")

print("\n".join(breaches) if breaches else "layers: ok")
sys.exit(1 if breaches else 0)
