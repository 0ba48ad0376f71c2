#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Writes the parts of the documents that are derived from the code.

Usage: gen_docs.py [--check] [QUERN]

Between `<!-- generated: NAME -->` and `<!-- end -->` stand the environment variables (from quern/base/env.cpp), files quoted
whole (NAME is `file PATH`), the faults planted in kernels and mutations of the JIT (from the tables of tests), which tests run each function of the kit, and what the command QUERN tells about itself: its
ops and subcommands, and how many kernels the model files reach. Without QUERN these are left as they are. --check writes nothing and exits with 1 when a text is stale."""
import glob
import json
import os
import re
import runpy
import subprocess
import sys

import conformance

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/calls.md", "docs/environment.md", "docs/ops.md", "docs/own_ops.md", "docs/proof/conformance.md", "docs/proof/planted_faults.md", "docs/warm.md"]
SECTION = re.compile(r"(<!-- generated: ([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".cuh": "cpp", ".py": "python", ".txt": "cmake", ".json": "json"}


def cell(text):
    """Text for a Markdown table: a bar ends a cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(cell(c) for c in row) + " |" for row in rows]) + "\n"


def environment():
    """Rows of the table in env.cpp: {Env::id, "NAME", "values", "meaning"}."""
    text = open(os.path.join(ROOT, "quern/base/env.cpp"), encoding="utf-8").read()
    string = r'"((?:[^"\\]|\\.)*)"'
    rows = re.findall(r"\{Env::\w+,\s*" + ",\\s*".join([string] * 3) + r"(?:,\s*true)?\s*\}", text)
    if len(rows) != text.count("{Env::"):
        sys.exit("gen_docs: quern/base/env.cpp has a row that is not {Env::id, \"NAME\", \"values\", \"meaning\"}")
    return table(["variable", "values", "meaning"], [(f"`{name}`", values, meaning) for name, values, meaning in rows])


def quoted_file(path):
    text = open(os.path.join(ROOT, path), encoding="utf-8").read()
    return f"```{LANGUAGES.get(os.path.splitext(path)[1], '')}\n{text.rstrip()}\n```\n"


STRING = r'"(?:[^"\\]|\\.)*"'
SAMPLE = r'\{"(\w+)",\s*\d+,\s*\d+,\s*\d+,'
OP_OR_BRICK = r'\{"((?:ops|bricks|kit)/[\w/.]+)",'
FAULTS_OF_OPS = sorted(glob.glob("quern/**/planted_faults.cpp", root_dir=ROOT, recursive=True))


def objects(kind):
    """The tables of one kind, Checked or Asan, of a planted_faults.cpp."""
    return lambda text: "".join(re.findall(r"^static const " + kind + r" .*?^\}\};$", text, re.DOTALL | re.MULTILINE))


KINDS = r"\{((?:(?:" + STRING + r"|kWrongResult)(?:, )?)+)\}(?:, HiddenBy::\w+)?\}"
FAULT = re.compile(r"\{(" + STRING + r")," + (r"\s*" + STRING + r"(?:\s*" + STRING + r")*,") * 2 + r"\s*" + KINDS)


def planted_faults(paths, owner, part=lambda text: text):
    """Rows of the table of mutations in C++ sources, or in a part of each; `owner` matches the entry that holds them and names its kernel."""
    rows = []
    for path in paths:
        text = part(re.sub(r'R"\(.*?\)"', '""', open(os.path.join(ROOT, path), encoding="utf-8").read(), flags=re.DOTALL))
        if not text:
            continue
        faults = list(FAULT.finditer(text))
        if not faults or len(faults) != len(re.findall(KINDS, text)):
            sys.exit(f"gen_docs: {path} has a fault that is not {{\"name\", \"from\", \"to\", {{\"KIND\"}}}}")
        for fault in faults:
            names = re.findall(owner, text[:fault.start()])
            kinds = fault.group(2).replace("kWrongResult", "wrong result").replace('"', "").replace(", ", " or ")
            rows.append((f"`{names[-1]}`", fault.group(1).strip('"'), kinds))
    return table(["kernel", "fault", "report"], rows)


SMALL_FAULT = re.compile(r"\{" + r",\s*".join([r"(" + STRING + r")"] * 7) + r"\}")


def small_faults(path):
    """Rows of the table of mutations that a proof finds and a check does not."""
    text = open(os.path.join(ROOT, path), encoding="utf-8").read()
    text = text[text.index("kSmallFaults[] = {"):]
    rows = []
    for fault in SMALL_FAULT.findall(text[:text.index("};")]):
        name, file, _, _, op, words, message = (word.strip('"') for word in fault)
        rows.append((f"`{file}`", name, f"`{op} {words}`", message))
    if len(rows) < 3:
        sys.exit(f"gen_docs: {path} has too few faults that can be read")
    return table(["kernel", "fault", "case", "what `quern prove` says"], rows)


def jit_mutations():
    rows = runpy.run_path(os.path.join(ROOT, "tests/jit_mutations.py"))["MUTATIONS"]
    return table(["source", "mutation", "noticed by"], [(f"`{file}`", what, f"`{tests}`") for file, what, _, _, tests in rows])


def names_of_cuda():
    """What kernels write instead of CUDA's functions; several names that have one answer share a row."""
    instead = {}
    for name, text in re.findall(r'^QN_(?:NOT|HIDDEN)_IN_KERNELS\((\w+), "([^"]*)"\)', open(os.path.join(ROOT, "quern/kit/cuda_names.cuh"), encoding="utf-8").read(), re.MULTILINE):
        instead.setdefault(text, []).append(f"`{name}`")

    def answer(text):
        """The code, and what is said of it in parentheses behind a blank."""
        code, _, note = text.partition(" (")
        return " or ".join(f"`{part}`" for part in code.split(", or ")) + (f" ({note}" if note else "")

    return table(["CUDA", "here"], [(", ".join(names), answer(text)) for text, names in instead.items()])


class Command:
    """What the command tells about itself."""

    def __init__(self, path):
        self.path = os.path.abspath(path)

    def output(self, *arguments):
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, check=True).stdout

    def op_table(self):
        return table(["op", "formula"], [(f"`{o['op']}`", f"`{o['formula']}`") for o in json.loads(self.output("list", "--json"))])

    def subcommands(self):
        text = self.output("--help").split("Subcommands:\n")[1]
        return table(["command", "what it does"], [(f"`quern {name}`", does) for name, does in re.findall(r"^  ([\w-]+) +(.+)$", text, re.M)])

    def kernels_of_models(self):
        """How many kernels each model file reaches on sm_90a; those for operands of which each row is aligned to 16 bytes among them."""
        rows = []
        for path in sorted(glob.glob(os.path.join(ROOT, "models", "*.json"))):
            degrees = json.load(open(path, encoding="utf-8"))["limits"]["tp"]
            kernels = json.loads(self.output("warm", "--model", path, "--arch", "sm_90a", "--list", "--json"))["kernels"]
            rows.append((os.path.basename(path).removesuffix(".json"), ", ".join(map(str, degrees)), str(len(kernels)), str(sum(k["aligned"] for k in kernels))))
        return table(["file", "TP", "kernels", "of them with `alignment=16`"], rows)

    def ops(self):
        return "\n".join(self.op_section(o["op"]) for o in json.loads(self.output("list", "--json")))

    def op_section(self, op):
        info = json.loads(self.output("info", op, "--json"))
        parts = [f"## {op}\n", f"`{info['formula']}`\n"]
        if info["source"]:
            parts.append(f"After {info['source']}.\n")
        if "rows" in info:
            parts.append(f"Each of its `{info['rows']}` is computed from that one alone.\n")
        if "backward" in info:
            parts.append("Its gradients: " + ", ".join(f"`{b['op']}`" for b in info["backward"]) + ".\n")
        parts.append(table(["tensor", "role", "dims", "dtype", "meaning"], [self.tensor(t) for t in info["tensors"]]))
        if info["attributes"]:
            parts.append(table(["attribute", "type", "default", "meaning"],
                               [(f"`{a['name']}`", " ".join(a["words"]) or a["type"], standard(a), a["meaning"]) for a in info["attributes"]]))
        parts.append("Variants: " + ", ".join(f"`{v}`" for v in info["variants"]) + ".\n")
        return "\n".join(parts)

    @staticmethod
    def tensor(t):
        notes = [t["meaning"], t["values"], "optional" if t["optional"] else "", "any strides" if t["strided"] else "", "rows or columns are dense" if t["either_major"] else "",
                 f"allocated column by column, each a multiple of {t['column_bytes']} bytes" if t["column_bytes"] else "",
                 f"may be {t['may_be']} itself" if t["may_be"] else ""]
        return (f"`{t['name']}`", t["role"], f"`[{t['dims']}]`", " ".join(t["dtypes"]), "; ".join(n for n in notes if n))


def standard(attribute):
    """The default as a person writes it: an f32 that the command prints as a double has digits of no meaning."""
    value = attribute["default"]
    if attribute["words"]:
        return attribute["words"][int(value)]
    if attribute["type"] == "bool":
        return "true" if value else "false"
    return f"{value:.7g}"


def generated(name, command):
    """The text of a section, or None when it needs the command and there is none."""
    if name == "environment":
        return environment()
    if name.startswith("file "):
        return quoted_file(name.removeprefix("file "))
    if name == "planted faults of ops":
        return planted_faults(FAULTS_OF_OPS, OP_OR_BRICK, objects("Checked"))
    if name == "planted faults of samples":
        return planted_faults([f"quern/emu/planted_{which}.h" for which in ("kernels", "copies")], SAMPLE)
    if name == "planted faults of warpgroups":
        return planted_faults(["quern/emu/planted_wgmma.h"], SAMPLE)
    if name == "planted faults of one order":
        return planted_faults(["quern/emu/planted_luck.h"], SAMPLE)
    if name == "planted faults of Hopper kernels":
        return planted_faults(["quern/emu/planted_hopper.h"], SAMPLE)
    if name == "faults of ops for asan":
        return planted_faults(FAULTS_OF_OPS, OP_OR_BRICK, objects("Asan"))
    if name == "faults of samples for asan":
        return planted_faults(["quern/emu/planted_asan.h"], SAMPLE)
    if name == "small faults":
        return small_faults("tests/prove_command_test.cpp")
    if name == "conformance":
        return table(["in `kit/ptx`", "function", "tests in the emulated worlds", "on an H200"], conformance.rows())
    if name == "mutations of the JIT":
        return jit_mutations()
    if name == "names of CUDA":
        return names_of_cuda()
    makers = {"op table": "op_table", "ops": "ops", "subcommands": "subcommands", "kernels of models": "kernels_of_models"}
    if name not in makers:
        sys.exit(f"gen_docs: nobody generates '{name}'")
    return getattr(command, makers[name])() if command else None


def main():
    arguments = sys.argv[1:]
    check = "--check" in arguments
    arguments = [a for a in arguments if a != "--check"]
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        sys.exit(__doc__)
    command = Command(arguments[0]) if arguments else None
    stale = []
    for document in DOCUMENTS:
        path = os.path.join(ROOT, document)
        before = open(path, encoding="utf-8").read()
        if before.count("<!-- generated:") != len(SECTION.findall(before)):
            sys.exit(f"gen_docs: {document} has a generated section without its <!-- end -->")

        def section(match):
            text = generated(match.group(2), command)
            return match.group(0) if text is None else match.group(1) + text + match.group(3)

        after = SECTION.sub(section, before)
        if after == before:
            continue
        stale.append(document)
        if not check:
            with open(path, "w", encoding="utf-8") as f:
                f.write(after)
    for document in stale:
        print(f"{document}: " + ("stale, run: python3 tools/gen_docs.py build/quern" if check else "written"))
    if check and not stale:
        print("generated documents: ok")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
