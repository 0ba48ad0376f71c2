# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""transformers' continuous batching with quern's attention, on the models and by the yardstick of test_transformers.py."""
import gc
import os
import subprocess
import sys
import weakref

import pytest

if os.environ.get("QN_TEST_TORCH") != "1":
    pytest.skip("needs torch", allow_module_level=True)

import torch
import transformers
from test_transformers import answers, every_family, models, padded, without

import quern
from quern.integrations import transformers as integration


def batched(model, **settings):
    """Greedy answers of continuous batching, 16 tokens a step, so that prompts are cut into chunks beside decodes: (new tokens, log of their probabilities)."""
    ids, there, _ = padded("left")
    prompts = [ids[b][there[b].bool()].tolist() for b in range(len(ids))]
    settings = transformers.ContinuousBatchingConfig(block_size=8, num_blocks=24, max_batch_tokens=16, return_logprobs=True, **settings)
    answer = model.generate_batch(prompts, transformers.GenerationConfig(max_new_tokens=8, do_sample=False, pad_token_id=0, eos_token_id=-1), settings)
    assert all(a.error is None for a in answer.values())
    rows = sorted(answer.values(), key=lambda a: prompts.index(a.prompt_ids))
    return torch.tensor([a.generated_tokens for a in rows]), torch.tensor([a.logprobs for a in rows])


def assert_batched_as_right(family, new, logprobs):
    """Tokens as far as margins allow, and their probabilities within twice the error of torch's bf16."""
    truth, margins, exact = answers(family)
    certain = (margins > 0.06).cumprod(1).bool()
    theirs = answers(family, 0)
    assert certain.sum() >= 14 and torch.equal(new[certain], truth[certain]) and torch.equal(theirs[0][certain], truth[certain])
    assert (logprobs - exact)[certain].abs().max() <= 2 * (theirs[2] - exact)[certain].abs().max()


@every_family
def test_continuous_batching(family, monkeypatch):
    """generate_batch of an enabled model: quern's kernels on transformers' paged cache, and the attention of before put back."""
    ours, called = models(family)[1], set()
    for name in ("attention.paged", "attention.ragged", "kv_cache.append_paged"):
        room, op = name.split(".")
        function = getattr(getattr(quern, room), op)
        monkeypatch.setattr(getattr(quern, room), op, lambda *a, _call=function, _name=name, **k: (called.add(_name), _call(*a, **k))[1])
    assert_batched_as_right(family, *batched(ours))
    assert called == {"attention.paged", "attention.ragged", "kv_cache.append_paged"}
    assert ours.config._attn_implementation == "quern"


@every_family
def test_continuous_batching_padded(family, monkeypatch):
    """Steps padded to a few sizes, as CUDA graphs need them: tokens of no request, requests without tokens, slots that nobody reads. What attention leaves in rows of no
    request is NaN here, and reaches no other row."""
    from transformers.generation.continuous_batching import model_runner

    rows = []

    def poisoned(call, place):
        def attention(*arguments, **keywords):
            out, begins = call(*arguments, **keywords), keywords["q_indptr"] if place is None else arguments[place]
            out[begins[-1]:] = float("nan")
            rows.append((len(out) - int(begins[-1]), (begins.diff() == 0).sum()))
            return out
        return attention

    expected = batched(models(family)[1])
    of = model_runner.ModelRunner
    monkeypatch.setattr(of, "__init__", lambda self, *a, init=of.__init__, **k: (init(self, *a, **k), setattr(self, "pad_inputs", True))[0])
    for name, place in (("paged", None), ("ragged", 3)):
        monkeypatch.setattr(quern.attention, name, poisoned(getattr(quern.attention, name), place))
    new, logprobs = batched(models(family)[1], q_padding_interval_size=16, kv_padding_interval_size=32)
    assert max(row[0] for row in rows) > 8 and max(row[1] for row in rows) > 0
    assert torch.equal(new, expected[0]) and (logprobs - expected[1]).abs().max() < 1e-3


@pytest.mark.parametrize("family", ["llama", "gemma3_text"])
def test_continuous_batching_keeps_nothing(family, monkeypatch):
    """Tables of a step are gone when it is over. With graphs a step runs in the memory that they share, so one that stayed would be written over by a replay."""
    rows, tables = [], []
    for name, made in (("_table_rows", rows), ("_page_table", tables)):
        monkeypatch.setattr(integration, name, lambda *a, made=made, call=getattr(integration, name): (table := call(*a), made.append(weakref.ref(table)))[0])
    batched(models(family)[1])
    gc.collect()
    assert rows and tables and not [made for made in rows + tables if made() is not None]


@torch._dynamo.config.patch(recompile_limit=1)
def compiled_batches():
    assert_batched_as_right("gemma2", *batched(models("gemma2")[1], varlen_compile_config=transformers.CompileConfig(fullgraph=True, dynamic=True, backend="aot_eager")))


def test_continuous_batching_compiled():
    """Lengths are numbers of the graph, and none of them is compiled in. In a process of its own: transformers compiles in a thread, and torch 2.11 then waits for ever
    where the main thread compiles."""
    subprocess.run([sys.executable, "-c", "import test_transformers_batches; test_transformers_batches.compiled_batches()"], cwd=os.path.dirname(__file__), check=True, timeout=300)


BATCH_FAULTS = {
    "a block of another request": ("llama", lambda m: m.setattr(integration, "_page_table", lambda *a, table=integration._page_table: table(*a).roll(1, 0))),
    "no window in a ring": ("gemma2", without("attention", "ragged", "window_left", lambda v: -1)),
    "scale": ("gemma2", without("attention", "ragged", "sm_scale", lambda v: 0.3)),
    "soft cap": ("gemma2", without("attention", "paged", "soft_cap", lambda v: 0.0)),
    "a slot beside": ("qwen3", without("kv_cache", "append_paged", "slot_mapping", lambda v: v ^ 1)),
}


@pytest.mark.parametrize("fault", BATCH_FAULTS)
def test_planted_faults_of_continuous_batching(fault, monkeypatch):
    family, plant = BATCH_FAULTS[fault]
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        assert_batched_as_right(family, *batched(models(family)[1]))
