#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Tells whether two builds of quern make the same machine code.

  machine_code.py dump build/quern before.json     compiles the list of every model file with NVRTC and keeps digests
  machine_code.py compare before.json after.json   names the kernels whose code differs; exits 1 if there are any

Compared are code, constant banks and shared memory of each kernel, as the cubin has them. Names are left aside, so kernels may
be renamed and moved. So are global objects, which hold constexpr values, as the Config, that the code has in itself. It needs NVRTC (QN_JIT_NVRTC), and no GPU."""
import collections
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ARCHS = ["sm_80", "sm_90a", "sm_100a"]


def sections(elf):
    """(name, bytes, length) of each section of a 64-bit ELF file."""
    offset, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * size) for i in range(count)]
    table = headers[names]
    for name, kind, _, _, at, length, _, _, _, _ in headers:
        begin = table[4] + name
        yield elf[begin:elf.index(b"\0", begin)].decode(), b"" if kind == 8 else elf[at:at + length], length


def digest(path):
    """What is compared of a cubin: sections that hold code, constants or the size of shared memory, without the kernel's name. Constant bank 4
    has addresses of global objects."""
    h = hashlib.sha256()
    parts = []
    for name, data, length in sections(open(path, "rb").read()):
        for kind in (".text.", ".nv.constant0.", ".nv.constant2.", ".nv.constant3", ".nv.shared."):
            if name.startswith(kind):
                parts.append((".".join(name.split(".")[:3 if name.startswith(".nv") else 2]), length, hashlib.sha256(data).hexdigest()))
    for part in sorted(parts):
        h.update(repr(part).encode())
    return h.hexdigest()


def dump(quern, out):
    kernels = {}
    models = sorted(f[:-5] for f in os.listdir(os.path.join(ROOT, "models")) if f.endswith(".json"))
    for arch in ARCHS:
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "QN_CACHE_DIR": folder + "/cache", "QN_JIT_DUMP": folder + "/dump"}
            for model in models:
                run = subprocess.run([quern, "warm", "--model", model, "--arch", arch], env=environment,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if run.returncode not in (0, 2):  # 2: some calls of a model file are refused
                    sys.exit(f"quern warm --model {model} --arch {arch} ended with {run.returncode}:\n{run.stdout[-2000:]}")
            for path, _, names in os.walk(folder + "/dump"):
                for name in names:
                    if name.endswith(".cubin"):
                        kernels[f"{arch} {name[:-6]}"] = digest(os.path.join(path, name))
    json.dump(kernels, open(out, "w"), indent=0, sort_keys=True)
    print(f"{len(kernels)} kernels of {', '.join(models)} for {', '.join(ARCHS)}")


def compare(before, after):
    old, new = json.load(open(before)), json.load(open(after))
    different = 0
    for arch in ARCHS:
        a = collections.Counter(v for k, v in old.items() if k.startswith(arch + " "))
        b = collections.Counter(v for k, v in new.items() if k.startswith(arch + " "))
        print(f"{arch}: {sum((a & b).values())} equal of {sum(a.values())} before and {sum(b.values())} after")
        for label, kernels, gone in (("before", old, a - b), ("after", new, b - a)):
            for name, value in sorted(kernels.items()):
                if name.startswith(arch + " ") and gone[value] > 0:
                    print(f"  {label} {name}")
                    different += 1
    return 1 if different else 0


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("dump", "compare"):
        sys.exit(__doc__)
    sys.exit(dump(sys.argv[2], sys.argv[3]) if sys.argv[1] == "dump" else compare(sys.argv[2], sys.argv[3]))
