# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What the engines import of `flashinfer` on their way to a server, and what they ask it, beside quern.compat.flashinfer. Processes of their own take the name."""
import ast
import importlib.util
import os
import subprocess
import sys

import pytest
import torch
from exact import assert_near, attention

SGLANG = ["sglang.srt.entrypoints.http_server", "sglang.srt.managers.scheduler", "sglang.srt.model_executor.model_runner", "sglang.srt.layers.attention.flashinfer_backend"]
VLLM = ["vllm.entrypoints.openai.api_server", "vllm.v1.worker.gpu_worker", "vllm.v1.attention.backends.flashinfer", "vllm.v1.engine.core"]
NO_ANSWER = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def python(script, **env):
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **env})
    assert result.returncode == 0, result.stderr[-4000:]
    return result.stdout


def imports(nodes, asks=False, tests=()):
    """(import, whether a `try` around it takes no for an answer, conditions around it) of statements that run when a module is imported."""
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, asks, tests
        elif isinstance(node, ast.Try):
            caught = {name.id for handler in node.handlers for name in ast.walk(handler.type or ast.Name("Exception")) if isinstance(name, ast.Name)}
            yield from imports(node.body, asks or bool(caught & NO_ANSWER), tests)
            yield from imports([n for handler in node.handlers for n in handler.body] + node.orelse + node.finalbody, asks, tests)
        elif isinstance(node, ast.If):
            yield from imports(node.body, asks, (*tests, ast.unparse(node.test)))
            yield from imports(node.orelse, asks, tests)
        elif isinstance(node, (ast.With, ast.ClassDef)):
            yield from imports(node.body, asks or (isinstance(node, ast.With) and "suppress" in ast.unparse(node.items[0])), tests)


def reached(roots):
    """{(module of flashinfer, name): modules of the engine that import it without asking}, for all modules that `roots` import on a Hopper GPU."""
    top = roots[0].split(".")[0]
    site = os.path.dirname(importlib.util.find_spec(top).submodule_search_locations[0])
    todo, seen, found = list(roots), set(), {}
    while todo:
        module = todo.pop()
        todo += [parent for parent in [module.rpartition(".")[0]] if parent]
        path = os.path.join(site, *module.split("."))
        path = os.path.join(path, "__init__.py") if os.path.isdir(path) else path + ".py"
        if module in seen or not os.path.exists(path):
            continue
        seen.add(module)
        package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node, asks, tests in imports(tree.body):
            if any("TYPE_CHECKING" in test or "blackwell" in test for test in tests):
                continue
            if isinstance(node, ast.Import):
                targets = [(alias.name, "") for alias in node.names]
            else:
                above = package.split(".")[:len(package.split(".")) - node.level + 1] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                targets = [(base, alias.name) for alias in node.names]
            for base, name in targets:
                if base.split(".")[0] == "flashinfer" and not asks:
                    found.setdefault((base, name), []).append(module)
                elif base.split(".")[0] == top:
                    todo += [base, f"{base}.{name}"] if name else [base]
    return found, seen


@pytest.mark.parametrize("roots, engine, least", [(SGLANG, "sglang", 14), (VLLM, None, 10)])
def test_names_on_the_way_to_a_server(roots, engine, least):
    found, seen = reached(roots)
    assert len(seen) > 500 and len(found) >= least
    missing = python(f"""
import importlib, quern.compat.flashinfer
quern.compat.flashinfer.install(engine={engine!r})
for module, name in {sorted(found)!r}:
    try:
        assert not name or hasattr(importlib.import_module(module), name), name
    except (ImportError, AssertionError) as e:
        print(module, name, e)
""")
    assert not missing, missing


def test_the_list_of_the_plain_tests():
    """tests/python has no engine, so it has what SGLang imports as a list."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "flashinfer_signatures.py")
    spec = importlib.util.spec_from_file_location("flashinfer_signatures", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    listed = {(f"flashinfer.{at}".removesuffix("."), name) for at, names in module.SGLANG.items() for name in names.split()}
    assert not sorted(set(reached(SGLANG)[0]) - listed)


def test_sglang_imports_itself():
    """With a FlashInfer, which a machine without a GPU would not have: the modules that the scan names, and the function that every process of a server calls."""
    modules = sorted({module for at in reached(SGLANG)[0].values() for module in at} - {"sglang.srt.layers.quantization.fp8_utils"})
    assert "sglang.srt.layers.quantization.mxfp4" in modules
    python(f"""
import importlib, types
import quern.compat.flashinfer
quern.compat.flashinfer.install(engine="sglang")
from sglang.srt.utils import common
import sglang.srt.utils
common.is_flashinfer_available = sglang.srt.utils.is_flashinfer_available = lambda: True
for module in {modules!r}:
    importlib.import_module(module)
from sglang.srt.layers.quantization import mxfp4
import flashinfer
assert mxfp4.nvfp4_block_scale_interleave is flashinfer.nvfp4_block_scale_interleave and not mxfp4._FI_HAS_SM90_CUTLASS_MXFP4
from sglang.srt.layers import flashinfer_comm_fusion
assert flashinfer_comm_fusion._flashinfer_comm is None
import logging
common.configure_logger(types.SimpleNamespace(log_level="info"))
assert logging.getLogger("flashinfer.jit").level == logging.ERROR
""")


def test_vllm_asks_what_there_is():
    answers = python("""
import inspect, quern.compat.flashinfer
quern.compat.flashinfer.install()
from vllm.utils import flashinfer
for name, function in sorted(vars(flashinfer).items()):
    if name.startswith("has_flashinfer") and "wheels" not in name and not inspect.signature(function).parameters and function():
        print(name)
""", VLLM_HAS_FLASHINFER_CUBIN="1").split()
    assert answers == ["has_flashinfer", "has_flashinfer_bf16_gemm", "has_flashinfer_cubin"]


def test_sglangs_plan_of_a_graph():
    """fast_prefill_plan() on the wrapper of a captured graph: what run() gives then is attention over the new tables."""
    from sglang.srt.layers.attention.flashinfer_backend import fast_prefill_plan

    from quern.compat import flashinfer

    heads, heads_kv, dim, slots = 4, 2, 64, 64
    numbers = lambda *shape, seed: torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(torch.bfloat16)  # noqa: E731
    ints = lambda values: torch.tensor(values, dtype=torch.int32)  # noqa: E731
    k, v = numbers(slots, 1, heads_kv, dim, seed=1), numbers(slots, 1, heads_kv, dim, seed=2)
    buffers = {name: ints([0] * n) for name, n in (("qo_indptr_buf", 4), ("paged_kv_indptr_buf", 4), ("paged_kv_indices_buf", slots), ("paged_kv_last_page_len_buf", 3))}
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(torch.empty(1 << 22, dtype=torch.uint8), "NHD", use_cuda_graph=True, backend="fa2", **buffers)
    sizes = (heads, heads_kv, dim, 1)
    wrapper.begin_forward(ints([0, 2, 4, 6]), ints([0, 2, 4, 6]), ints(range(6)), ints([1, 1, 1]), *sizes, q_data_type=torch.bfloat16, kv_data_type=torch.bfloat16, non_blocking=True)
    lengths = [20, 3, 11]
    ends = [0, 20, 23, 34]
    order = torch.randperm(slots, generator=torch.Generator().manual_seed(3))[:34]
    fast_prefill_plan(wrapper, ints([0, 2, 4, 6]), ints(ends), order.to(torch.int32), ints([1, 1, 1]), *sizes, q_data_type=torch.bfloat16, kv_data_type=torch.bfloat16,
                      qo_indptr_host=ints([0, 2, 4, 6]), kv_indptr_host=ints(ends), kv_lens_host=ints(lengths), max_q_len=2, max_kv_len=20)
    q = numbers(6, heads, dim, seed=4)
    got = wrapper.forward(q, (k, v), causal=True)
    for i in range(len(lengths)):
        of = order[ends[i]:ends[i + 1]]
        assert_near(got[2 * i:2 * i + 2], *attention(q[2 * i:2 * i + 2], k[of, 0], v[of, 0], dim**-0.5), torch.bfloat16)
    with pytest.raises(ValueError, match=r"`batch_size` is 2, expected 3, as the plan before the graph was told"):
        wrapper._cached_module.plan(None, None, None, ints([0, 1, 2]), ints([0, 1, 2]), ints([1, 1]), 2, 2, heads, heads_kv, 1, True, dim, dim, False, -1, -1, False, 0, 0)
