#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Tokens a second of `quern generate` beside transformers on torch: Llama-3.1-8B with random weights, prompts of 2048 tokens.
Usage: generate_peers.py QUERN [--batch 1,16,64] [--context 2048] [--new 64] [--csv FILE] [--no-peer]

A row for each batch: time of a step that decodes (wall clock, the copy of the tokens included), the time in which its weights and cache are read
at the rate of the same run, their ratio, tokens a second of decode steps and of steps with prompts; the peer's time of a step by
`generate` with a static cache, sdpa and compiled decode."""
import argparse
import csv
import json
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIG = os.path.join(ROOT, "examples", "engine", "configs", "llama-3.1-8b.json")


def of_quern(program, batch, context, new):
    words = [program, "generate", "--random", CONFIG, "--random-prompts", ",".join([str(context)] * batch), "--max-new", str(new), "--ignore-eos",
             "--floor", "--json", "--device", "cuda"]
    result = subprocess.run(words, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stdout[-3000:] + result.stderr)
    out = json.loads(result.stdout)
    decode = out["decode"]
    return {"device": out["device"], "step_us": decode["us"] / decode["steps"], "floor_us": decode["floor_us"] / decode["steps"],
            "decode_tokens_per_s": decode["tokens_per_s"], "prefill_tokens_per_s": out["prefill"]["tokens_per_s"]}


def model_of_transformers():
    """Llama-3.1-8B with random weights on the GPU, by torch's sdpa."""
    import torch
    import transformers

    with open(CONFIG, encoding="utf-8") as file:
        values = json.load(file)
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **{k: v for k, v in values.items() if k != "torch_dtype"})
    config._attn_implementation = "sdpa"
    with torch.device("cuda"):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def step_us(model, ids, new, **options):
    """Microseconds of a decode step: the difference of two answers' times over the difference of their tokens."""
    import torch

    def seconds(count):
        torch.cuda.synchronize()
        begin = time.time()
        model.generate(ids, max_new_tokens=count, min_new_tokens=count, do_sample=False, pad_token_id=0, **options)
        torch.cuda.synchronize()
        return time.time() - begin

    few = 4
    seconds(new), seconds(few)  # compiles
    return (min(seconds(new) for _ in range(3)) - min(seconds(few) for _ in range(3))) / (new - few) * 1e6


def prompts_of(model, batch, context):
    """Random tokens, the same for a batch in every run."""
    import torch

    return torch.randint(0, model.config.vocab_size, (batch, context), device="cuda", generator=torch.Generator("cuda").manual_seed(batch))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("quern")
    parser.add_argument("--batch", default="1,16,64")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--csv")
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    rows, peer = [], None if options.no_peer else model_of_transformers()
    for batch in map(int, options.batch.split(",")):
        row = {"model": "llama-3.1-8b", "batch": batch, "context": options.context, **of_quern(options.quern, batch, options.context, options.new)}
        row["of_floor"] = row["step_us"] / row["floor_us"]
        row["peer_step_us"] = "" if peer is None else step_us(peer, prompts_of(peer, batch, options.context), options.new, cache_implementation="static")
        rows.append(row)
        print(row, flush=True)
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
