# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""The words by which DeepGEMM's users find kernels in a profiler's output, in what each GEMM of quern.compat.deep_gemm launches."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import contiguous, fp8_operands, grouped_operands, poisoned, randn  # noqa: E402

import quern  # noqa: E402

WORDS = ("fp8_gemm", "bf16_gemm")


def dense_calls(dg):
    a, b, d = randn(9, 72, dtype=torch.bfloat16), randn(24, 72, seed=2, dtype=torch.bfloat16), poisoned(9, 24, dtype=torch.bfloat16)
    fp8, fp8_row_scales = (fp8_operands(dg, 9, 136, 272, gran_n) for gran_n in (128, 1))
    wide = poisoned(9, 136, dtype=torch.bfloat16)
    for layout, over_a, over_b in (("nt", False, False), ("nn", False, True), ("tn", True, True), ("tt", True, False)):
        shown = [t.mT if over else t for t, over in zip((a, b), (over_a, over_b))]
        for prefix in ("bf16_gemm", "cublaslt_gemm"):
            yield f"{prefix}_{layout}", "bf16_gemm", lambda f=getattr(dg, f"{prefix}_{layout}"), s=shown: f(*s, d)
        shown = [tuple(t.mT for t in o) if over else o for o, over in zip(fp8, (over_a, over_b))]
        for prefix in ("fp8_gemm", "fp8_fp4_gemm"):
            yield f"{prefix}_{layout}", "fp8_gemm", lambda f=getattr(dg, f"{prefix}_{layout}"), s=shown: f(*s, wide)
    yield "cublaslt_gemm_nt of fp8", "fp8_gemm", lambda: dg.cublaslt_gemm_nt(fp8[0][0], fp8[1][0], wide)
    c = randn(9, 136)
    yield "fp8_gemm_nt with c", "fp8_gemm", lambda: dg.fp8_gemm_nt(*fp8_row_scales, poisoned(9, 136, dtype=torch.float32), c=c)
    yield "bf16_gemm_nt of odd rows", "bf16_gemm", lambda: dg.bf16_gemm_nt(a[:, :71], b[:23, :71], poisoned(9, 23, dtype=torch.bfloat16))
    long_a, long_b = randn(3, 4096, dtype=torch.bfloat16), randn(33, 4096, seed=2, dtype=torch.bfloat16)
    yield "bf16_gemm_nt of split sums", "bf16_gemm", lambda: dg.bf16_gemm_nt(long_a, long_b, poisoned(3, 33, dtype=torch.bfloat16))


def grouped_calls(dg):
    sizes = [40, 0, 7]
    for kind, word in (("bf16", "bf16_gemm"), ("fp8", "fp8_gemm"), ("fp8_fp4", "fp8_gemm")):
        for psum in (False, True):
            rows, layout, _ = contiguous(sizes, 128, psum)
            a, b, _ = grouped_operands(dg, rows, len(sizes), 136, 272, kind)
            exchanged = tuple(t.mT for t in b) if isinstance(b, tuple) else b.mT
            for name, shown in (("nt", b), ("nn", exchanged)):
                function = getattr(dg, f"m_grouped_{kind}_gemm_{name}_contiguous")
                yield f"m_grouped_{kind}_gemm_{name}_contiguous, psum {psum}", word, lambda f=function, a=a, b=shown, layout=layout, psum=psum, rows=rows: f(
                    a, b, poisoned(rows, 136, dtype=torch.bfloat16), layout, use_psum_layout=psum)
        a, b, _ = grouped_operands(dg, len(sizes) * 40, len(sizes), 136, 272, kind)
        a = tuple(t.view(len(sizes), 40, -1) for t in a) if isinstance(a, tuple) else a.view(len(sizes), 40, -1)
        masked_m = torch.tensor(sizes, dtype=torch.int32, device=places.TORCH)
        function = getattr(dg, f"m_grouped_{kind}_gemm_nt_masked")
        yield f"m_grouped_{kind}_gemm_nt_masked", word, lambda f=function, a=a, b=b, masked_m=masked_m: f(a, b, poisoned(len(sizes), 40, 136, dtype=torch.bfloat16), masked_m, 16)


def k_grouped_calls(dg):
    a, b = [[dg.per_token_cast_to_fp8(randn(rows, k, seed=k + rows), use_ue8m0=False) for k in (128, 256)] for rows in (9, 24)]
    flat = [(torch.cat([t.flatten() for t, _ in parts]), torch.cat([s for _, s in parts], 1)) for parts in (a, b)]
    c = randn(2, 9, 24)
    yield "k_grouped_fp8_gemm_nt_contiguous", "fp8_gemm", lambda: dg.k_grouped_fp8_gemm_nt_contiguous(*flat, poisoned(2, 9, 24, dtype=torch.float32), [128, 256], None, c)
    a, b = randn(192, 24, dtype=torch.bfloat16), randn(192, 40, seed=2, dtype=torch.bfloat16)
    yield "k_grouped_bf16_gemm_tn_contiguous", "bf16_gemm", lambda: dg.k_grouped_bf16_gemm_tn_contiguous(a, b, poisoned(2, 24, 40, dtype=torch.float32), [64, 128], None)


def calls(dg):
    """[(name, the word of its kernel, call)]: every GEMM there is, on small operands."""
    return [*dense_calls(dg), *grouped_calls(dg), *k_grouped_calls(dg)]


def record(folder):
    """Runs each call while all are recorded and returns {name: symbols of what it launched}."""
    import quern.compat.deep_gemm as dg

    symbols = {}
    for name, _, call in calls(dg):
        before = set(os.listdir(folder)) if os.path.exists(folder) else set()
        call()
        records = [json.loads((pathlib.Path(folder) / new / "call.json").read_text()) for new in sorted(set(os.listdir(folder)) - before)]
        symbols[name] = [launch["entry"] for r in records for launch in r["plan"]["launches"]]
    return symbols


def are_found(name, word, symbols):
    """One kernel has the word of the call, and no other one of a product."""
    of_products = [s for s in symbols if "gemm" in s]
    return len(of_products) == 1 and [w for w in WORDS if w + "_" in of_products[0]] == [word]


@pytest.mark.anywhere
def test_kernels_that_run_have_the_words(dg, tmp_path):
    folder = str(tmp_path / "calls")
    ran = subprocess.run([sys.executable, __file__, folder], env={**os.environ, "QN_TRACE": folder}, stdout=subprocess.PIPE, check=True, timeout=300)
    symbols = json.loads(ran.stdout)
    expected = {name: word for name, word, _ in calls(dg)}
    assert symbols.keys() == expected.keys() and len(symbols) == 37
    assert {name: symbols[name] for name, word in expected.items() if not are_found(name, word, symbols[name])} == {}
    assert [name for name, s in symbols.items() if any("reduce" in entry for entry in s)] == ["bf16_gemm_nt of split sums"]


def test_planned_kernels_have_the_words():
    """By each kernel that m leads to, and on an older GPU."""
    planned = set()
    for op, word, words in (("gemm.dense", "bf16_gemm", "a.dtype=bf16"), ("gemm.dense", "fp16_gemm", "a.dtype=f16"), ("gemm.scaled", "fp8_gemm", "a.dtype=e5m2"),
                            ("gemm.k_grouped", "fp8_gemm", "bits8=1"), ("gemm.k_grouped", "bf16_gemm", "bits8=0 alignment=8")):
        for arch, m in (("sm_90a", 1), ("sm_90a", 128), ("sm_90a", 4096), ("sm_80", 128)):
            entries = [launch["entry"] for launch in quern.plan(op, *words.split(), m=m, n=1024, k=2048, arch=arch)["launches"]]
            of_products = [e for e in entries if "gemm" in e]
            assert len(of_products) == 1 and f"__{word}_" in of_products[0], (op, words, arch, entries)
            planned.add(of_products[0].split("__")[0])
    assert len(planned) == 10, planned


@pytest.mark.gpu
def test_bench_kineto_finds_the_kernels(dg):
    for name, word, call in calls(dg):
        of_word, of_product, of_sums = dg.testing.bench_kineto(call, (word, "gemm_", "reduce"), num_tests=3, suppress_kineto_output=True)
        assert 0 < of_word == of_product < 1 and (of_sums > 0) == (name == "bf16_gemm_nt of split sums"), (name, of_word, of_product, of_sums)
    assert 0 < dg.testing.bench_kineto(call, word) < 1 and dg.testing.bench_kineto(call, ("nvjet", "reduce")) == (0, 0)


if __name__ == "__main__":
    print(json.dumps(record(sys.argv[1])))
