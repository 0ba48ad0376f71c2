# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Text in and out of `quern generate`: python -m quern.models FOLDER PROMPT [options of quern generate]

Reads FOLDER/tokenizer.json with the package `tokenizers`. Prints the answer as it is drawn."""
import json
import os
import subprocess
import sys


class Tokenizer:
    """tokenizer.json of a checkpoint."""

    def __init__(self, folder):
        try:
            import tokenizers
        except ImportError:
            raise ImportError("quern.models needs the package `tokenizers` (pip install tokenizers); `quern generate --ids` needs nothing") from None
        path = os.path.join(folder, "tokenizer.json")
        if not os.path.exists(path):
            raise FileNotFoundError(f"{path} is not there: this checkpoint has no tokenizer that `tokenizers` reads; use `quern generate --ids`")
        self._tokenizer = tokenizers.Tokenizer.from_file(path)

    def encode(self, text):
        """Token ids, with those that the tokenizer adds, such as the one that begins a text."""
        return self._tokenizer.encode(text).ids

    def decode(self, ids):
        return self._tokenizer.decode(ids, skip_special_tokens=True)


def program():
    """The command `quern` beside this package's library."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "quern")


def generate(folder, prompts, *options):
    """Yields (number of the prompt, its text so far) with each token. `options` are words of `quern generate`, as in "--max-new", "64".
    Raises RuntimeError with what the command says where it fails."""
    tokenizer = Tokenizer(folder)
    words = [program(), "generate", folder, "--json", "--stream", *options]
    for prompt in prompts:
        words += ["--ids", ",".join(map(str, tokenizer.encode(prompt)))]
    tokens = [[] for _ in prompts]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            event = json.loads(line)
            if "token" not in event:
                continue  # the last line sums up
            tokens[event["request"]].append(event["token"])
            yield event["request"], tokenizer.decode(tokens[event["request"]])
        said = process.stderr.read()
    if process.returncode != 0:
        raise RuntimeError(said.strip() or f"quern generate ended with {process.returncode}")


def main(words):
    if len(words) < 2 or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    shown = ""
    try:
        for _, text in generate(words[0], [words[1]], *words[2:]):
            if text.startswith(shown) and not text.endswith("\ufffd"):  # a letter whose bytes are not all there
                print(text[len(shown):], end="", flush=True)
                shown = text
    except (ImportError, OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
