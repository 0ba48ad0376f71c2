# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""`quern generate` beside transformers, on checkpoints of random weights that transformers writes; and `python -m quern.models`."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest

if os.environ.get("QN_TEST_TORCH") != "1":
    pytest.skip("needs torch", allow_module_level=True)

import torch
import transformers

from quern import models

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIGS = os.path.join(ROOT, "examples", "engine", "configs")
IDS = [3, 14, 159, 26, 5, 358, 97, 93, 238, 462, 64, 33, 83, 279, 50]


def checkpoint(folder, name, **changes):
    """A model of transformers in f32 that holds bf16 numbers, saved in bf16."""
    with open(os.path.join(CONFIGS, name + ".json"), encoding="utf-8") as file:
        values = {**json.load(file), **changes}
    values.pop("torch_dtype", None), values.pop("dtype", None)
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    config._attn_implementation = "eager"
    torch.manual_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
    with torch.no_grad():
        for key, value in model.named_parameters():
            if key.endswith("norm.weight"):
                value.copy_(1 + 0.1 * torch.randn_like(value))
            if key.endswith("bias"):
                value.copy_(0.1 * torch.randn_like(value))
    model.save_pretrained(folder)
    return model.eval()


def run(*words, status=0):
    result = subprocess.run([models.program(), "generate", *map(str, words), "--device", "emu"], capture_output=True, text=True)
    assert result.returncode == status, result.stdout + result.stderr
    return result


def logits_of(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    (begin, end), shape = header["request.0"]["data_offsets"], header["request.0"]["shape"]
    return np.frombuffer(data[begin:end], np.float32).reshape(shape).astype(np.float64)


def with_next(model, ids, answer):
    """Logits behind the prompt and behind each token of the answer but the last."""
    with torch.no_grad():
        out = model(torch.tensor([ids + answer[:-1]])).logits[0, len(ids) - 1:]
    return out.double().numpy()


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-qwen2", "tiny-qwen3"])
def test_logits_are_as_near_as_those_of_torch(name, tmp_path):
    model = checkpoint(tmp_path, name)
    answer = json.loads(run(tmp_path, "--ids", ",".join(map(str, IDS)), "--max-new", 6, "--ignore-eos", "--check", "--json", "--logits", tmp_path / "logits").stdout)
    assert answer["check"]["ok"] and answer["check"]["rows"] == 6
    tokens = answer["requests"][0]["tokens"]
    of_bf16 = with_next(model, IDS, tokens)
    exact = with_next(model.to(torch.float64), IDS, tokens)
    got = logits_of(tmp_path / "logits")
    assert got.shape == exact.shape == (6, model.config.vocab_size)

    def error(x):
        return np.linalg.norm(x - exact) / np.linalg.norm(exact)

    assert 0 < error(got) <= 2 * error(of_bf16), (error(got), error(of_bf16))
    assert error(of_bf16) < 0.05


def test_a_key_that_transformers_knows_and_the_engine_does_not_is_refused(tmp_path):
    checkpoint(tmp_path, "tiny-llama")
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "residual_multiplier": 0.5}))
    said = run(tmp_path, "--ids", "1", status=2).stderr
    assert "residual_multiplier" in said and "0.5" in said


def test_text_is_shown_as_it_grows(monkeypatch, capsys):
    def shown(*texts):
        monkeypatch.setattr(models, "generate", lambda *words: ((0, text) for text in texts))
        assert models.main(["folder", "prompt"]) == 0
        return capsys.readouterr().out

    assert shown("I", "I do", "I do so") == "I do so\n"
    assert shown("I", "I \ufffd", "I \u00e9") == "I \u00e9\n"
    assert shown("Hi", "Hi \ufffd") == "Hi \ufffd\n", "the end is shown as it is"
    assert shown("I do", "I do n", "I don't", "I don't know") == "I do n\nI don't know\n", "what is shown stays"


def test_a_long_log_does_not_stop_it(tmp_path, monkeypatch):
    import tokenizers

    checkpoint(tmp_path, "tiny-llama")
    tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(512)}, unk_token="w0")).save(str(tmp_path / "tokenizer.json"))
    monkeypatch.setenv("QN_LOG_LEVEL", "3")
    assert len(list(models.generate(str(tmp_path), ["w1", "w2"], "--max-new", "20", "--ignore-eos", "--no-graphs", "--device", "emu"))) == 40


def test_text_in_and_out(tmp_path):
    import tokenizers

    checkpoint(tmp_path, "tiny-llama")
    words = {f"w{i}": i for i in range(512)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    expected = json.loads(run(tmp_path, "--ids", "5,6,7", "--max-new", 4, "--ignore-eos", "--json").stdout)["requests"][0]["tokens"]
    command = [sys.executable, "-m", "quern.models", str(tmp_path), "w5 w6 w7", "--max-new", "4", "--ignore-eos", "--device", "emu"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [f"w{token}" for token in expected]
    (tmp_path / "tokenizer.json").unlink()
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1 and "tokenizer.json is not there" in result.stderr
