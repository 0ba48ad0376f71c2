# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What programs enter to have kernels tuned, with results that FlashInfer keeps in a folder of its own. quern's plans need no tuner (docs/concepts.md): nothing is
measured, and no folder is made."""
import contextlib
import dataclasses
import typing

from quern import _check
from quern.compat.flashinfer._base import one_of
from quern.compat.flashinfer.autotuner import check_what_to_tune


@dataclasses.dataclass(frozen=True)
class MeasurementPolicy:
    """How FlashInfer would measure: in graphs, or with the host's part of each call; with the L2 cold or hot, or as each op has it. quern measures nothing."""
    execution_mode: str = "auto"
    cold_l2: typing.Optional[bool] = None

    def __post_init__(self):
        one_of("MeasurementPolicy", "execution_mode", self.execution_mode, {"auto": None, "cuda_graph": None, "eager": None})
        if self.cold_l2 is not None:
            _check.boolean("flashinfer.MeasurementPolicy", "cold_l2", self.cold_l2)

    @property
    def use_cuda_graph(self):
        """Whether it measures in graphs; None: as each op has it."""
        return {"auto": None, "cuda_graph": True, "eager": False}[self.execution_mode]


@contextlib.contextmanager
def autotune_v2(mode="tune", persistent_cache=True, cache_root=None, measurement_policy=None, *, tuning_buckets=None, round_up=None, skip_ops=None):
    """A context in which FlashInfer would tune, or take what it has tuned, and quern does nothing: its calls take the same kernels inside and outside. mode: tune or
    replay. persistent_cache and cache_root say whether and where results are kept, of which there are none."""
    where = "flashinfer.autotune_v2"
    one_of("autotune_v2", "mode", mode, {"tune": None, "replay": None})
    _check.boolean(where, "persistent_cache", persistent_cache)
    if cache_root is not None:
        _check.path(where, "cache_root", cache_root)
    if measurement_policy is not None and not isinstance(measurement_policy, MeasurementPolicy):
        _check.fail_type(where, "measurement_policy", measurement_policy, "a MeasurementPolicy")
    check_what_to_tune(where, tuning_buckets, round_up, skip_ops)
    yield


def autotune_v2_reload():
    """Reads results again, of which there are none."""
