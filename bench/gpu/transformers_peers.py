#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""A decode step of transformers with quern's layers (quern.integrations.transformers) beside the same model with torch's: Llama-3.1-8B with random weights.

Usage: transformers_peers.py [--batch 1,16] [--context 2048] [--new 32] [--csv FILE] [--skip WAY;...]

A row for each batch and way: time of a step by the wall clock, as the difference of two answers' times over that of their tokens, and tokens a second. Ways:
`sdpa` and `quern` with transformers' growing cache and no compilation; `sdpa, compiled` and `quern, compiled` with a static cache, which transformers compiles and
replays as a graph; `quern, static` with that cache and no compilation."""
import argparse
import csv
import sys

import torch
import transformers
from generate_peers import model_of_transformers, prompts_of, step_us

from quern.integrations.transformers import disable, enable

WAYS = {"sdpa": {}, "quern": {}, "quern, static": {"cache_implementation": "static", "disable_compile": True}, "sdpa, compiled": {"cache_implementation": "static"},
        "quern, compiled": {"cache_implementation": "static"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", default="1,16")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--csv")
    parser.add_argument("--skip", default="", help="ways that are left out, with ; between")
    arguments = parser.parse_args()
    model = model_of_transformers()
    rows, skipped = [], arguments.skip.split(";")
    for way, options in WAYS.items():
        if way in skipped:
            continue
        if way.startswith("quern"):
            enable(model)
        try:
            for batch in map(int, arguments.batch.split(",")):
                us = step_us(model, prompts_of(model, batch, arguments.context), arguments.new, **options)
                rows.append([way, batch, arguments.context, f"{us:.0f}", f"{batch / us * 1e6:.0f}", torch.__version__, transformers.__version__, torch.cuda.get_device_name()])
                print(f"batch {batch:3}  {way:16} {us:8.0f} us a step  {batch / us * 1e6:8.0f} tokens/s", flush=True)
        finally:
            if way.startswith("quern"):
                disable(model)
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["way", "batch", "context", "step_us", "tokens_per_s", "torch", "transformers", "device"])
            writer.writerows(rows)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
