# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""quern inside the engines' own Python classes, on host tensors and the emulated device. tools/install_engines.sh makes the environment; no server runs."""
import json
import os

os.environ.setdefault("QN_DEVICE", "emu")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")

import pytest  # noqa: E402

MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 512, "dtype": "bfloat16", "rms_norm_eps": 1e-5, "rope_theta": 10000.0}


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """A folder with the configuration of a small model; there are no weights."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps(MODEL))
    return str(folder)


@pytest.fixture(scope="session")
def engine_config(model_folder):
    """vLLM's configuration of it, by the arguments of a server."""
    return make_config(model_folder)


def make_config(folder, **arguments):
    from vllm.engine.arg_utils import EngineArgs

    from quern.integrations.vllm import options

    return EngineArgs(model=folder, skip_tokenizer_init=True, load_format="dummy", max_model_len=128, max_num_seqs=8, max_num_batched_tokens=128, block_size=16, **{**options(), **arguments}).create_engine_config()
