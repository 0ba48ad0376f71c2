# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What programs enter to have kernels tuned. quern's plans need no tuner: they are chosen by a model of the device (docs/concepts.md), so nothing is measured
here and nothing is kept. A file of results is written all the same, as programs hand it from process to process."""
import contextlib
import json

from quern import _check

_CONTENTS = {"_metadata": {"tuner": "quern: plans need none"}}


class AutoTuner:
    """The tuner of the process, AutoTuner.get(). It has nothing to remember."""

    _only = None
    _dirty = False  # vLLM asks whether there is anything to save

    def __init__(self, warmup=3, repeat=10, stream_delay_micro_secs=5000):
        """How often FlashInfer would measure a kernel. Nothing is measured."""
        for name, value in (("warmup", warmup), ("repeat", repeat), ("stream_delay_micro_secs", stream_delay_micro_secs)):
            _check.integer("flashinfer.AutoTuner", name, value, 0, 2**31 - 1)

    @classmethod
    def get(cls):
        """The one of this process."""
        if AutoTuner._only is None:
            AutoTuner._only = AutoTuner()
        return AutoTuner._only

    def save_configs(self, path):
        """Writes a file that load_configs() takes, and that has no results."""
        with open(_check.path("flashinfer.AutoTuner.save_configs", "path", path), "w", encoding="utf-8") as file:
            json.dump(_CONTENTS, file)

    def load_configs(self, path):
        """Whether the file is one that save_configs() wrote."""
        try:
            with open(_check.path("flashinfer.AutoTuner.load_configs", "path", path), encoding="utf-8") as file:
                return json.load(file) == _CONTENTS
        except (OSError, ValueError):
            return False

    def clear_cache(self):
        """Forgets results, of which there are none."""


_group = None


def set_autotune_process_group(group):
    """Processes that would tune together: a group of torch.distributed, or None. Nothing is tuned, so nobody waits for another."""
    global _group
    if group is not None and not hasattr(group, "rank"):
        _check.fail_type("flashinfer.set_autotune_process_group", "group", group, "a group of torch.distributed or None")
    _group = group


def get_autotune_process_group():
    """What set_autotune_process_group() was told."""
    return _group


def _collect_metadata():
    """What stands in a file of results beside them. SGLang compares it between processes."""
    return dict(_CONTENTS["_metadata"])


def check_what_to_tune(where, tuning_buckets, round_up, skip_ops):
    """Refuses what is no list of sizes, no answer whether they are rounded, or no names to leave out."""
    if round_up is not None:
        _check.boolean(where, "round_up", round_up)
    for name, value, kind, words in (("tuning_buckets", tuning_buckets, int, "integers"), ("skip_ops", [skip_ops] if isinstance(skip_ops, str) else skip_ops, str, "names of ops")):
        if value is not None and not (isinstance(value, (tuple, list, set, frozenset)) and all(isinstance(x, kind) for x in value)):
            _check.fail_type(where, name, value, f"a sequence of {words}")
    if tuning_buckets is not None and not tuning_buckets:
        _check.fail_value(where, "tuning_buckets", "empty", "at least one size")


@contextlib.contextmanager
def autotune(tune_mode=True, cache=None, tuning_buckets=None, round_up=None, skip_ops=None, cuda_graph_profile_replays=None):
    """A context in which FlashInfer would tune, and quern does nothing: its calls take the same kernels inside and outside. With tune_mode a file `cache` is written at
    the end, as AutoTuner.save_configs() does. tuning_buckets, round_up and skip_ops say what to tune: sizes, how they are rounded, and names to leave out;
    cuda_graph_profile_replays says how often."""
    where = "flashinfer.autotune"
    _check.boolean(where, "tune_mode", tune_mode)
    if cache is not None:
        _check.path(where, "cache", cache)
    check_what_to_tune(where, tuning_buckets, round_up, skip_ops)
    if cuda_graph_profile_replays is not None:
        _check.integer(where, "cuda_graph_profile_replays", cuda_graph_profile_replays, 1, 2**31 - 1)
    yield
    if tune_mode and cache is not None:
        AutoTuner.get().save_configs(cache)
