# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Settings of the process. Kernels of quern follow their shapes by themselves, so that most are kept for whoever asks and change nothing."""
import functools
import logging

import torch

from quern._library import library
from quern.compat.deep_gemm._arguments import checked

ALIGNMENT = 128  # rows to which DeepGEMM's programs pad a group unless they say otherwise

_settings = {
    "num_sms": None, "tc_util": 100, "pdl": False, "mk_alignment": ALIGNMENT, "ignore_compile_dims": False, "block_size_multiple_of": (1, 1), "compile_mode": 0, "deterministic": False,
}


@functools.lru_cache(maxsize=None)
def _sms_of_device(index):
    """Multiprocessors of a GPU; None: of the emulated device, as `quern doctor` has them."""
    if index is not None:
        return torch.cuda.get_device_properties(index).multi_processor_count
    import quern

    return next(d["sms"] for d in quern.doctor()["devices"] if d["name"] == "emu")


def _all_sms():
    return _sms_of_device(torch.cuda.current_device() if torch.cuda.is_available() else None)


def arch_major():
    """9 of sm_90a: the device that QN_DEVICE or the machine gives."""
    return int(str(library().device_arch("")).rstrip("abcdefghijklmnopqrstuvwxyz").partition("_")[2]) // 10


@checked()
def set_num_sms(new_num_sms):
    """Kept for get_num_sms(); kernels of quern use the whole GPU, which the log says. ValueError for a number that the device does not have."""
    if not 0 < new_num_sms <= _all_sms():
        raise ValueError(f"deep_gemm.set_num_sms: `new_num_sms` is {new_num_sms}, expected 1 to {_all_sms()}")
    if new_num_sms < _all_sms():
        logging.getLogger("quern").warning("deep_gemm.set_num_sms(%d) is kept and changes nothing: kernels of quern use all %d SMs", new_num_sms, _all_sms())
    _settings["num_sms"] = int(new_num_sms)


def get_num_sms():
    """What was set, else the SMs of the device."""
    return _settings["num_sms"] or _all_sms()


@checked()
def set_tc_util(new_tc_util):
    """Kept for get_tc_util(), in percent."""
    if not 0 <= new_tc_util <= 100:
        raise ValueError(f"deep_gemm.set_tc_util: `new_tc_util` is {new_tc_util}, expected 0 to 100")
    _settings["tc_util"] = int(new_tc_util)


def get_tc_util():
    """What was set, else 100."""
    return _settings["tc_util"]


@checked()
def set_pdl(new_enable_pdl):
    """Kept for get_pdl(). quern's own pdl=True promises more: that no kernel before writes b, which DeepGEMM's callers have not promised."""
    _settings["pdl"] = bool(new_enable_pdl)


def get_pdl():
    """What was set, else False."""
    return _settings["pdl"]


@checked()
def set_compile_mode(mode):
    """Kept for get_compile_mode(). 1 is what programs set to compile kernels ahead without running them: here a call compiles its kernel, and runs it too."""
    _settings["compile_mode"] = int(mode)


def get_compile_mode():
    """What was set, else 0."""
    return _settings["compile_mode"]


@checked()
def use_deterministic_algorithms(enabled):
    """Changes nothing: results of quern's kernels are the same on every run."""
    _settings["deterministic"] = bool(enabled)


@checked()
def set_ignore_compile_dims(new_value):
    """Changes nothing: no kernel of quern has its sizes compiled in."""
    _settings["ignore_compile_dims"] = bool(new_value)


@checked()
def set_block_size_multiple_of(value):
    """Changes nothing: tiles of quern are no promise to callers."""
    _settings["block_size_multiple_of"] = (value, value) if isinstance(value, int) else tuple(value)


@checked()
def init(library_root_path="", cuda_home_path_by_python=""):
    """Changes nothing: quern needs neither."""


@checked(new_value="at least 1")
def set_mk_alignment_for_contiguous_layout(new_value):
    """Rows, or elements of K, to which groups are padded in contiguous layouts. One above 16 gains nothing; 128 is what DeepGEMM's programs expect."""
    _settings["mk_alignment"] = int(new_value)


def get_mk_alignment_for_contiguous_layout():
    """What was set, else 128."""
    return _settings["mk_alignment"]


@checked(expected_m="expected or not")
def get_theoretical_mk_alignment_for_contiguous_layout(expected_m=None):
    """128, as on every GPU but SM100."""
    return ALIGNMENT
