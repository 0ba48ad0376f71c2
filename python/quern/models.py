# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Text in and out of `quern generate`: python -m quern.models FOLDER PROMPT [options of quern generate]

Reads FOLDER/tokenizer.json with the package `tokenizers`. Prints the answer as it is drawn."""
import json
import os
import subprocess
import sys
import tempfile


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
    tokens = [[] for _ in prompts]
    # The log may be longer than a pipe holds, and goes where nobody waits for it to be read.
    with tempfile.TemporaryDirectory() as prompt_files, tempfile.TemporaryFile("w+") as log:
        for number, prompt in enumerate(prompts):
            path = os.path.join(prompt_files, str(number))  # a word of a command is at most 128 KB long
            with open(path, "w", encoding="ascii") as file:
                file.write(",".join(map(str, tokenizer.encode(prompt))))
            words += ["--ids", "@" + path]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "QN_LOG_DEST": "stderr"}) as process:
            for line in process.stdout:
                event = json.loads(line)
                if "token" not in event:
                    continue  # the last line sums up
                tokens[event["request"]].append(event["token"])
                yield event["request"], tokenizer.decode(tokens[event["request"]])
        log.seek(0)
        said = log.read()
    if process.returncode != 0:
        raise RuntimeError(said.strip() or f"quern generate ended with {process.returncode}")


def main(words):
    if len(words) < 2 or words[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    shown = text = ""
    try:
        for _, text in generate(words[0], [words[1]], *words[2:]):
            # Letters whose bytes are not all there, and what a later token may join, wait. What is shown stays.
            if text.startswith(shown) and not text.endswith("\ufffd"):
                print(text[len(shown):], end="", flush=True)
                shown = text
        rest = len(os.path.commonprefix([shown, text]))
        print(text[rest:] if rest == len(shown) else "\n" + text, end="", flush=True)
    except (ImportError, OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
