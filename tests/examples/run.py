#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Installs quern into a folder of its own and builds and runs what examples/ shows with nothing but that.
Usage: run.py BUILD_FOLDER [NVCC]"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
build = os.path.abspath(sys.argv[1])
work = tempfile.mkdtemp(prefix="quern-examples.")
prefix = os.path.join(work, "prefix")
quern = os.path.join(prefix, "bin", "quern")
environment = dict(os.environ, QN_CACHE_DIR=os.path.join(work, "cache"))


def run(*command, folder=work, prints=None, status=0):
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    out = result.stdout + result.stderr
    if result.returncode != status or (prints and not re.search(prints, out)):
        sys.exit(f"{' '.join(command)}: exit {result.returncode}, expected {status} and /{prints}/ in\n{out}")
    return out


def build_project(folder):
    run("cmake", "-S", ".", "-B", "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", folder=folder)
    run("cmake", "--build", "build", folder=folder)


def example_cpp():
    folder = os.path.join(work, "cpp")
    shutil.copytree(os.path.join(ROOT, "examples", "cpp"), folder)
    build_project(folder)
    run("build/mine-demo", folder=folder, prints=r"row 0: mean square 4\.0+\nrow 1: mean square 1\.0+")
    mine = ["--load", os.path.join(folder, "build", "libmine.so")]
    run(quern, *mine, "check", "mine.scale_rows", "--device", "emu", "--sample", "12", prints=r"mine\.scale_rows +12 +0 +0")
    run(quern, *mine, "check", "mine.decode_alibi", "--device", "emu", "--sample", "4", prints=r"mine\.decode_alibi +[4-8] +0 +0")  # by one variant or two
    run(quern, *mine, "check", "mine.scale_rows", "--device", "emu", "--sample", "4", "--checked", prints=r"mine\.scale_rows +4 +0 +0")
    # The cache has them: the second time compiles nothing.
    run(quern, *mine, "check", "mine.decode_alibi", "--device", "emu", "--sample", "4", prints=r" 0 kernels compiled")
    run(quern, *mine, "bench", "--compile", "mine", "--arch", "sm_90a", "--sample", "2", prints=r"scale_rows_row<")
    run(quern, *mine, "plan", "mine.decode_alibi", "batch=64", prints=r"hooks=alibi")
    if "QN_TEST_PYTHON" in os.environ:
        hooks_from_python(mine[1])
    run(quern, "--load", "/nowhere/lib.so", "list", status=2, prints=r"`--load` cannot be loaded")
    copy = os.path.join(work, "libcopy.so")
    shutil.copy(os.path.join(prefix, "lib", "libquern.so"), copy)
    run(quern, "--load", copy, "list", status=2, prints=r"registered twice")
    # A hook that does not compile is said once, then counted.
    hooks = os.path.join(folder, "mine", "alibi_hooks.cuh")
    text = open(hooks).read()
    assert "at.head_q" in text
    open(hooks, "w").write(text.replace("at.head_q", "at.hed_q"))
    out = run("env", f"QN_SOURCE_DIR={folder}", quern, *mine, "check", "mine.decode_alibi", "batch=3", "--device", "emu", "--sample", "5", status=1,
              prints=r"mine\.decode_alibi: [4-9] more failures with the same text: error: .*hed_q")
    assert out.count("did not compile") == 1, out
    open(hooks, "w").write(text)
    nvrtc_refuses(mine, os.path.join(folder, "mine", "scale_rows.cuh"), folder)
    # A reference that forgets the slope must not agree with the kernel.
    source = os.path.join(folder, "mine", "decode_alibi.cpp")
    text = open(source).read()
    wrong = text.replace("x - slopes(at", "x + slopes(at")
    assert wrong != text
    open(source, "w").write(wrong)
    run("cmake", "--build", "build", folder=folder)
    run(quern, *mine, "check", "mine.decode_alibi", "--device", "emu", "--sample", "4", status=1, prints=r"WRONG mine\.decode_alibi")


def nvrtc_refuses(mine, kernel, folder):
    """A kernel of the user's that g++ takes and NVRTC does not is found without a GPU."""
    if subprocess.run([quern, "doctor", "--has-nvrtc"], env=environment, capture_output=True).returncode != 0:
        return  # test.sh installs one
    text = open(kernel).read()
    changed = text.replace("template <", "constexpr i64 first_of(i64 x) { return x; }\n\ntemplate <", 1).replace("row = blockIdx.x", "row = first_of(blockIdx.x)")
    assert changed.count("first_of") == 2
    open(kernel, "w").write(changed)
    words = ["env", f"QN_SOURCE_DIR={folder}", quern, *mine, "check", "mine.scale_rows", "--device", "emu", "--sample", "2"]
    run(*words, status=1, prints=r"COMPILE mine\.scale_rows [\s\S]*first_of")
    run(*words, "--no-nvrtc", prints=r"mine\.scale_rows +2 +0 +0")
    open(kernel, "w").write(text)


def hooks_from_python(library):
    """An op with hooks of its own: its tensor is a parameter, and the bytes that they read must be given."""
    code = f"""
import numpy as np, quern
quern.load({library!r})
from quern import testing
decode = quern.mine.decode_alibi
with testing.Case("mine.decode_alibi", "capacity=100 head_dim=64") as case:
    case.run()
    assert case.wrong() == "", case.wrong()
    assert len(case.options["hook_params"]) == 12
    for params in (None, b"12345678", np.ones(3, np.float64)):
        try:
            case.run(hook_params=params)
        except ValueError as e:
            print(e)
print("hooks" in decode.__doc__, "slopes" in decode.__doc__)
"""
    run(os.environ["QN_TEST_PYTHON"], "-c", code, prints=r"`hook_params` is missing, expected 12 bytes, which the hooks alibi read\n.*`hook_params` has 8 bytes, expected 12 bytes\n.*has 24 bytes, expected 12 bytes\nTrue True")


def example_that_judges(name, right, change, wrong):
    """A program of examples/ that compares what it is given: its own is right, and with one text changed it must not be."""
    folder = os.path.join(work, name)
    shutil.copytree(os.path.join(ROOT, "examples", name), folder)
    build_project(folder)
    run(f"build/{name}", folder=folder, prints=right)
    source = os.path.join(folder, "main.cpp")
    text = open(source).read()
    changed = text.replace(*change)
    assert changed != text
    open(source, "w").write(changed)
    run("cmake", "--build", "build", folder=folder)
    run(f"build/{name}", folder=folder, status=1, prints=wrong)


def example_calls():
    """The program of docs/calls.md; the scales of the first 128 rows of b for all of them are wrong."""
    example_that_judges("calls", r"out\[0\]\[0\] = 14\.75, largest relative error 0\.0", ("{n / 128, groups}", "{1, groups}"), r"largest relative error 0\.[2-9]")


def example_attention_step():
    """The program of docs/attention.md; queries that see ten keys alone are wrong."""
    example_that_judges("attention_step", r"4 steps by one graph, [1-9][0-9]+ bytes of workspace, largest error 0\.00", (".causal = true}", ".causal = true, .window_left = 9}"), r"largest error 0\.[0-9]")


def example_engine():
    folder = os.path.join(work, "engine")
    shutil.copytree(os.path.join(ROOT, "examples", "engine"), folder)
    build_project(folder)
    run("build/engine", "configs/tiny-llama.json", "1,2,3", "6", folder=folder, prints=r"^195 410 219 170 219 219")
    run("build/engine", "configs/tiny-llama.json", "1,2,512", folder=folder, status=1, prints=r"value error: engine: `prompt` has token 512, expected 0 to 511")


def gemm_steps():
    """The kernels of docs/gemm_tutorial.md, each alone."""
    folder = os.path.join(work, "gemm_steps")
    shutil.copytree(os.path.join(ROOT, "examples", "gemm_steps"), folder)
    build_project(folder)
    steps = ["--load", os.path.join(folder, "build", "libgemm_steps.so")]
    for variant in ("thread", "shared", "mma", "wgmma", "ring", "persistent"):
        words = ["check", "steps.gemm", f"variant={variant}", "--device", "emu", "--no-nvrtc"]
        run(quern, *steps, *words, "--sample", "12", prints=r"steps\.gemm +12 +0 +0")
        run(quern, *steps, *words, "m=129", "n=264", "k=136", "--sample", "1", "--checked", prints=r"steps\.gemm +1 +0 +0")
    run(quern, *steps, "plan", "steps.gemm", "m=200", "--arch", "sm_90a", prints=r"gemm_persistent<dtype=bf16, tile_m=128, tile_n=256, tile_k=64, stages=4, threads=384>")
    # A copy that is not waited for is a race, whatever the result.
    source = os.path.join(folder, "steps", "step2_shared.cuh")
    text = open(source).read()
    wrong = text.replace("column, k, b);\n    ptx::sync_block();", "column, k, b);")
    assert wrong != text
    open(source, "w").write(wrong)
    run("cmake", "--build", "build", folder=folder)
    run(quern, *steps, "check", "steps.gemm", "variant=shared", "m=65", "n=65", "k=64", "--device", "emu", "--sample", "1", "--checked", status=1, prints=r"RACE")


def new_project():
    """What `quern new --project` writes and says is enough for an op."""
    folder = os.path.join(work, "new")
    os.mkdir(folder)
    said = run(quern, "new", "elementwise.triple", "--project", folder)
    lines = [line.strip() for line in said.splitlines() if line.startswith("  ")]
    with open(os.path.join(folder, "CMakeLists.txt"), "w") as f:
        f.write("cmake_minimum_required(VERSION 3.25)\nproject(mine LANGUAGES CXX)\n" + "\n".join(lines) + "\n")
    build_project(folder)
    library = os.path.join(folder, "build", "libops.so")
    run(quern, "--load", library, "check", "elementwise.triple", "--device", "emu", "--sample", "6", prints=r"elementwise\.triple +6 +0 +0")
    # A report names the file as the library embeds it, wherever the command runs.
    kernel = os.path.join(folder, "elementwise", "triple", "kernel.cuh")
    text = open(kernel).read()
    assert text.count("h < p.hidden") == 1
    open(kernel, "w").write(text.replace("h < p.hidden", "h <= p.hidden"))
    run("env", f"QN_SOURCE_DIR={folder}", quern, "--load", library, "check", "elementwise.triple", "--device", "emu", "--checked", "--sample", "3", status=1,
        prints=r"GLOBAL-OOB[^\n]*[ (]elementwise/triple/kernel\.cuh:\d+")
    open(kernel, "w").write(text)
    if "QN_TEST_PYTHON" in os.environ:
        from_python(library, os.path.join(work, "stubs"))


def new_variant():
    """What `quern new --based-on` writes is the op that it is based on; its reference sees a mask that the hooks alone have."""
    folder = os.path.join(work, "variant")
    os.mkdir(folder)
    said = run(quern, "new", "mine.my_mask", "--based-on", "attention.paged", "--project", folder)
    lines = [line.strip() for line in said.splitlines() if line.startswith("  ")]
    with open(os.path.join(folder, "CMakeLists.txt"), "w") as f:
        f.write("cmake_minimum_required(VERSION 3.25)\nproject(mine LANGUAGES CXX)\nadd_compile_options(-Wall -Wextra -Werror)\n" + "\n".join(lines) + "\n")
    build_project(folder)
    words = [quern, "--load", os.path.join(folder, "build", "libops.so"), "check", "mine.my_mask", "--device", "emu", "--sample", "2"]
    run(*words, prints=r"mine\.my_mask +[2-4] +0 +0")
    hooks = os.path.join(folder, "mine", "my_mask", "hooks.cuh")
    text = open(hooks).read()
    assert "return true;" in text
    open(hooks, "w").write(text.replace("return true;", "return at.key_position % 2 == 0;"))
    run("env", f"QN_SOURCE_DIR={folder}", *words, status=1, prints=r"QN_LOAD=\S*libops\.so (.*)quern check mine\.my_mask")


def from_python(library, stubs):
    """The op is in the Python package and in its stubs, and nobody wrote Python for it."""
    code = f"""
import inspect, quern
quern.load({library!r})
from quern import testing
words = testing.cases("elementwise.triple", 6)
for w in words:
    with testing.Case("elementwise.triple", w) as case:
        case.run()
        assert case.wrong() == "", case.wrong()
from quern.elementwise import triple
print("elementwise" in dir(quern), inspect.signature(triple), len(words) > 1)
"""
    run(os.environ["QN_TEST_PYTHON"], "-c", code, prints=r"True \(x, .*\) True")
    run("env", f"QN_LOAD={library}", os.environ["QN_TEST_PYTHON"], os.path.join(ROOT, "python", "quern", "_schema.py"), quern, stubs)
    with open(os.path.join(stubs, "elementwise.pyi"), encoding="utf-8") as f:
        assert "triple: _triple" in f.read()


def headers_compile():
    """Every installed header includes what it needs, of what is installed: in one order and in the other."""
    include = os.path.join(prefix, "include")
    names = sorted(os.path.relpath(os.path.join(folder, name), include) for folder, _, files in os.walk(include) for name in files
                   if name.endswith(".h"))
    for order in (names, names[::-1]):
        source = os.path.join(work, "headers.cpp")
        with open(source, "w") as f:
            f.writelines(f'#include "{name}"\n' for name in order)
        run("c++", "-std=c++20", "-fsyntax-only", "-I", include, source)


def example_subdirectory():
    """The checkout as a part of another project: configured without GoogleTest, as it has no tests there."""
    folder = os.path.join(work, "subdirectory")
    run("cmake", "-S", os.path.join(ROOT, "examples", "cpp_minimal"), "-B", folder, "-G", "Ninja", "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_benchmark=ON")
    targets = run("ninja", "-C", folder, "-t", "targets", "all")
    assert "cpp_minimal: " in targets and "libquern.so" in targets and "engine_test" not in targets, targets[:3000]


def example_nvcc(nvcc):
    folder = os.path.join(work, "nvcc")
    shutil.copytree(os.path.join(ROOT, "examples", "nvcc"), folder)
    for arch in ("sm_80", "sm_90a"):
        run(nvcc, "-std=c++20", f"-arch={arch}", "-I", os.path.join(prefix, "include"), "-c", "main.cu", "-o", "main.o", folder=folder)


try:
    run("cmake", "--install", build, "--prefix", prefix)
    headers_compile()
    example_cpp()
    example_calls()
    example_attention_step()
    example_engine()
    gemm_steps()
    new_project()
    new_variant()
    example_subdirectory()
    if len(sys.argv) > 2:
        example_nvcc(sys.argv[2])
    print("examples: ok")
finally:
    shutil.rmtree(work)
