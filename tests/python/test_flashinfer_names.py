# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Which of FlashInfer's names are there, with which parameters, and what the document says of them."""
import importlib
import importlib.util
import inspect
import numbers
import os
import re
import subprocess
import sys

import pytest

from flashinfer_signatures import MORE, PROBES, PUBLIC, SGLANG, SIGNATURES

from quern.compat.flashinfer import _names

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENT = os.path.join(HERE, "..", "..", "docs", "flashinfer.md")
KINDS = {kind: {full: what for full, what in _names.NAMES.items() if isinstance(what, kind)} for kind in (_names.There, _names.Raising, _names.ForSglang, _names.Absent)}


def python(script, **env):
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **env})
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_import_takes_no_framework_and_no_name():
    """Not torch, not the library, not the name flashinfer; install() takes the name."""
    python("""
import sys, importlib.util
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "vllm", "transformers", "numpy"):
            raise ImportError(name)
sys.meta_path.insert(0, Nothing())
import quern.compat.flashinfer as package
assert not [n for n in sys.modules if n.split(".")[0] in ("torch", "numpy", "tvm_ffi", "flashinfer")]
assert importlib.util.find_spec("flashinfer") is None
package.install()
package.install()
import flashinfer, flashinfer.norm
from flashinfer import rmsnorm
from flashinfer.page import get_seq_lens
assert flashinfer is package and importlib.util.find_spec("flashinfer") is not None
assert rmsnorm is package.norm.rmsnorm is sys.modules["flashinfer.norm"].rmsnorm
for name in ("comm", "fused_moe", "mla", "jit", "cudnn"):
    assert importlib.util.find_spec("flashinfer." + name) is None, name
    try:
        importlib.import_module("flashinfer." + name)
    except ModuleNotFoundError:
        continue
    assert False, name
""")


def test_install_does_not_replace_another_package():
    python("""
import sys, types, quern.compat.flashinfer
sys.modules["flashinfer"] = types.ModuleType("flashinfer")
try:
    quern.compat.flashinfer.install()
except RuntimeError as e:
    assert "`flashinfer` is imported from another package" in str(e)
else:
    assert False
""")


LOOK = """
import importlib, importlib.util
def there(module, name):
    try:
        return hasattr(importlib.import_module("flashinfer" + ("." + module if module else "")), name)
    except ModuleNotFoundError:
        return False
"""


def test_engines_learn_what_there_is_not():
    """vLLM's questions after install(): each is answered by no."""
    python(f"""
import quern.compat.flashinfer
quern.compat.flashinfer.install()
PROBES = {PROBES!r}{LOOK}
for module, names in PROBES.items():
    if not names:
        assert not there(module.rpartition(".")[0], module.rpartition(".")[2]), module
        try:
            assert importlib.util.find_spec("flashinfer." + module) is None, module
        except ModuleNotFoundError as e:
            assert "flashinfer.comm" in str(e)  # its parent is not there
    for name in names.split():
        assert not there(module, name), (module, name)
""")


def test_sglang_finds_what_it_imports():
    """Names that it imports where it starts, and nothing that it asks for."""
    python(f"""
import logging, sys
import quern.compat.flashinfer as package
from quern.compat.flashinfer import _names
package.install()
SGLANG = {SGLANG!r}{LOOK}
missing = [(module, name) for module, names in SGLANG.items() for name in names.split() if not there(module, name)]
assert len(missing) == 8 == sum(isinstance(what, _names.ForSglang) for what in _names.NAMES.values()), missing
package.install(engine="sglang")
package.install("sglang")
for module, names in SGLANG.items():
    for name in names.split():
        assert there(module, name), (module, name)
for full, what in _names.NAMES.items():
    if isinstance(what, _names.ForSglang) and full != "jit.core.logger":
        module, _, name = full.rpartition(".")
        try:
            getattr(sys.modules["flashinfer" + ("." + module if module else "")], name)(1, any_keyword=2)
        except NotImplementedError as e:
            assert str(e) == "flashinfer." + full + ": " + what.reason
        else:
            assert False, full
from flashinfer.jit.core import logger
logger.setLevel(logging.ERROR)
import flashinfer.comm as comm, flashinfer.fused_moe.core
assert comm is sys.modules["flashinfer.comm"] and importlib.util.find_spec("flashinfer.fused_moe") is not None
for module, name in (("", "fp4_quantize"), ("", "mm_fp4"), ("comm", "allreduce_fusion"), ("comm.mnnvl", "TorchDistBackend"), ("fused_moe", "fused_topk_deepseek"), ("fused_moe", "cutlass_fused_moe"), ("mla", "x")):
    assert not there(module, name), (module, name)
try:
    comm.allreduce_fusion
except AttributeError as e:
    assert str(e) == "module 'flashinfer.comm' has no attribute 'allreduce_fusion': quern has no communication", e
else:
    assert False
class Backend(flashinfer.comm.mnnvl.CommBackend):
    def __init__(self, group):
        self.group = group
assert Backend(3).group == 3
for wrong, kind in (("trt", ValueError), (3, TypeError)):
    try:
        package.install(engine=wrong)
    except kind as e:
        assert str(e).startswith("quern.compat.flashinfer.install: `engine` is " + repr(wrong)), e
    else:
        assert False
package.install("vllm")
""")


def found(fi, full):
    """What a program gets for a name of the table; an AttributeError where it is not there."""
    module, _, name = full.rpartition(".")
    return getattr(importlib.import_module(f"flashinfer.{module}") if module else fi, name)


def test_names_that_are_there(fi):
    for full, what in {**KINDS[_names.There], **KINDS[_names.Raising]}.items():
        name = full.rpartition(".")[2]
        if full == "__version__":
            continue
        assert callable(found(fi, full)) and inspect.getdoc(found(fi, full)), full
        assert (getattr(fi, name, None) is found(fi, full)) == (name in _names.TOP_LEVEL), full
    for full, what in KINDS[_names.There].items():
        path, test = what.test.split("::")
        source = open(os.path.join(HERE, path), encoding="utf-8").read()
        name = full.rpartition(".")[2].removesuffix("_inplace").removesuffix("_pos_ids")  # test_flashinfer_rope.py puts these behind a name
        assert re.search(rf"^def {test}\(", source, re.M) and re.search(rf"\b{name}\b", source), full
    for op in {op for what in KINDS[_names.There].values() for op in re.findall(r"\b[a-z_]+\.[a-z_0-9]+\b", what.by)}:
        import quern

        assert op in {o.id for o in quern.ops()}, op


def test_every_public_name_is_in_the_table(fi):
    for module in _names.MODULES:
        names = {name for name, value in vars(importlib.import_module(f"flashinfer.{module}")).items() if not name.startswith("_") and callable(value) and getattr(value, "__module__", None) == f"quern.compat.flashinfer.{module}"}
        assert {f"{module}.{name}" for name in names} <= set(_names.NAMES) | HELPERS
    tops = {name for name in vars(fi) if not name.startswith("_") and callable(getattr(fi, name))} - {"install"}
    assert tops == set(_names.TOP_LEVEL)


HELPERS = {"page.unpack", "autotuner.check_what_to_tune"}


def test_names_that_raise(fi):
    for full, what in KINDS[_names.Raising].items():
        with pytest.raises(NotImplementedError, match=rf"^flashinfer\.{re.escape(full)}: {re.escape(what.reason)}"):
            found(fi, full)(1, any_keyword=2)


def test_every_name_of_flashinfer_has_a_row(fi):
    """All of its __init__, and no row without a module that it does not have."""
    last = {full.rpartition(".")[2] for full in _names.NAMES} | set(_names.MODULES)
    assert len(PUBLIC) == len(set(PUBLIC)) > 200
    assert not [name for name in PUBLIC if name not in last]
    assert not [name for name in _names.TOP_LEVEL if name not in PUBLIC]
    modules = "jit aot compilation_context artifacts comm fused_moe moe_ep mla mamba gdn_prefill gdn_decode kda kda_decode fp4_quantization msa_ops mhc fi_trace trace profiler cudnn cute_dsl green_ctx api_logging"
    assert not [full for full in _names.NAMES if "." not in full and full not in PUBLIC + modules.split()]


def test_names_that_are_absent(fi):
    for full, what in {**KINDS[_names.Absent], **KINDS[_names.ForSglang]}.items():
        if full.count(".") > 1 or full.split(".")[0] not in ("", *_names.MODULES) and "." in full:
            with pytest.raises(ModuleNotFoundError):
                found(fi, full)
            continue
        with pytest.raises(AttributeError, match=rf"has no attribute '{full.rpartition('.')[2]}': {re.escape(what.reason)}"):
            found(fi, full)
    for module in (fi, fi.norm):
        with pytest.raises(AttributeError, match=r"has no attribute 'rmsnorm_xy'$"):
            module.rmsnorm_xy


def text_of(parameters, named_defaults=("bfloat16", "TopKTieBreak.NONE", "MaskMode.NON_CAUSAL.value")):
    words = []
    for p in parameters:
        if p.kind == p.KEYWORD_ONLY and "*" not in words and not any(w.startswith("*") for w in words):
            words.append("*")
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = {"<TopKTieBreak.NONE: 0>": "TopKTieBreak.NONE"}.get(repr(p.default), repr(p.default))
        words.append(star + p.name + ("" if p.default is p.empty else "=" + default))
    return words


def test_signatures(fi):
    """Names, order and defaults of parameters. A default that is an object of torch is None here: the package does not import torch."""
    by_name = {full.rpartition(".")[2]: found(fi, full) for full in {**KINDS[_names.There], **KINDS[_names.Raising]}}
    checked = 0
    for full, text in SIGNATURES.items():
        name, _, method = full.partition(".")
        if any(full_name.rpartition(".")[2] == name for full_name in KINDS[_names.Raising]):
            continue
        function = getattr(by_name[name], method) if method else by_name[name].__init__ if inspect.isclass(by_name[name]) else by_name[name]
        parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
        expected = [word for word in re.split(r", (?![^(]*\))", text.replace("=bfloat16", "=None")) if word] + (MORE[full].split(", ") if full in MORE else [])
        normal = lambda words: [re.sub(r"=(\d+(\.\d+)?(e[+-]?\d+)?)$", lambda m: f"={float(m[1])}", word) for word in words]  # noqa: E731
        assert normal(text_of(parameters)) == normal(expected), full
        checked += 1
    assert checked > 35


def test_what_engines_import(fi):
    """vLLM imports these before it knows whether it needs them; SGLang and TensorRT-LLM the others."""
    from flashinfer import (  # noqa: F401
        BatchAttentionWithAttentionSinkWrapper, BatchDecodeWithPagedKVCacheWrapper, BatchPrefillWithPagedKVCacheWrapper, BatchPrefillWithRaggedKVCacheWrapper, get_seq_lens,
        nvfp4_quantize_append_paged_kv_cache_with_slot_mapping,
    )
    from flashinfer.activation import gelu_tanh_and_mul, silu_and_mul  # noqa: F401
    from flashinfer.cascade import merge_state  # noqa: F401
    from flashinfer.decode import fast_decode_plan, trtllm_batch_decode_with_kv_cache  # noqa: F401
    from flashinfer.norm import fused_add_rmsnorm, fused_add_rmsnorm_quant, gemma_fused_add_rmsnorm, gemma_rmsnorm, layernorm, rmsnorm, rmsnorm_quant  # noqa: F401
    from flashinfer.page import append_paged_kv_cache, get_batch_indices_positions  # noqa: F401
    from flashinfer.prefill import trtllm_batch_context_with_kv_cache  # noqa: F401
    from flashinfer.rope import apply_rope_with_cos_sin_cache_inplace  # noqa: F401
    from flashinfer.sampling import min_p_sampling_from_probs, top_k_renorm_probs, top_k_top_p_sampling_from_logits, top_k_top_p_sampling_from_probs, top_p_renorm_probs  # noqa: F401
    from flashinfer.utils import FP4Tensor  # noqa: F401


# How engines call: arguments by position, then keywords. Of a class, "NAME." is its constructor.
ENGINES = {
    "sampling.top_k_top_p_sampling_from_logits": (3, "deterministic"), "sampling.top_p_sampling_from_probs": (2, "deterministic"), "sampling.top_k_sampling_from_probs": (2, "deterministic"),
    "sampling.top_k_top_p_sampling_from_probs": (3, "filter_apply_order"), "sampling.min_p_sampling_from_probs": (2, ""), "sampling.softmax": (2, ""),
    "sampling.sampling_from_probs": (1, "generator check_nan"), "gemm.fp8_blockscale_gemm_sm90": (0, "input weight weight_scale out_dtype"), "gemm.tinygemm_bf16": (4, "use_pdl"),
    "topk.top_k": (2, "sorted deterministic"), "topk.top_k_ragged_transform": (4, ""), "rope.apply_rope_with_cos_sin_cache_inplace": (0, "positions query key head_size cos_sin_cache is_neox"),
    "activation.silu_and_mul": (1, "enable_pdl"), "norm.rmsnorm_quant": (5, ""), "norm.layernorm": (4, ""),
    "prefill.BatchPrefillWithPagedKVCacheWrapper.": (2, "backend"), "prefill.BatchPrefillWithPagedKVCacheWrapper.plan": (0, "qo_indptr paged_kv_indptr paged_kv_indices paged_kv_last_page_len "
        "seq_lens num_qo_heads num_kv_heads head_dim_qk page_size causal sm_scale window_left logits_soft_cap q_data_type kv_data_type o_data_type fixed_split_size disable_split_kv"),
    "prefill.BatchPrefillWithPagedKVCacheWrapper.run": (2, "q_scale k_scale v_scale out kv_cache_sf"),
    "prefill.BatchPrefillWithPagedKVCacheWrapper.begin_forward": (8, "q_data_type kv_data_type custom_mask non_blocking fixed_split_size disable_split_kv prefix_len_ptr "
        "token_pos_in_items_ptr token_pos_in_items_len max_item_len_ptr"),
    "prefill.BatchPrefillWithPagedKVCacheWrapper.forward": (2, "causal sm_scale window_left logits_soft_cap k_scale v_scale"),
    "decode.BatchDecodeWithPagedKVCacheWrapper.": (2, "use_cuda_graph paged_kv_indptr_buffer paged_kv_indices_buffer paged_kv_last_page_len_buffer use_tensor_cores backend"),
    "decode.BatchDecodeWithPagedKVCacheWrapper._plan_impl": (7, "data_type q_data_type non_blocking fixed_split_size disable_split_kv block_tables seq_lens"),
    "decode.fast_decode_plan": (8, "data_type q_data_type non_blocking fixed_split_size disable_split_kv global_override_indptr_cpu"),
    "decode.BatchDecodeWithPagedKVCacheWrapper.run": (2, "lse return_lse sinks q_scale k_scale v_scale out kv_cache_sf"),
    "decode.BatchDecodeWithPagedKVCacheWrapper.forward": (2, "sm_scale logits_soft_cap k_scale v_scale"),
    "decode.xqa_batch_decode_with_kv_cache": (0, "query kv_cache kv_cache_sf workspace_buffer block_tables seq_lens max_seq_len bmm1_scale bmm2_scale window_left out sinks kv_layout "
        "q_len_per_req mask q_cu_seq_lens"),
    "gemm.bmm_fp8": (7, ""), "concat_ops.concat_mla_k": (3, ""), "autotuner.autotune": (1, "cache tuning_buckets round_up skip_ops"),
    "prefill.trtllm_ragged_attention_deepseek": (0, "query key value workspace_buffer seq_lens max_q_len max_kv_len bmm1_scale bmm2_scale o_sf_scale batch_size window_left cum_seq_lens_q "
        "cum_seq_lens_kv enable_pdl is_causal return_lse skip_softmax_threshold_scale_factor out"),
    "prefill.trtllm_fmha_v2_prefill": (1, "input_layout workspace_buffer seq_lens max_q_len max_kv_len bmm1_scale bmm2_scale batch_size cum_seq_lens_q cum_seq_lens_kv block_tables out "
        "out_dtype mask_mode window_left sinks skip_softmax_threshold_scale_factor"),
    "prefill.cudnn_batch_prefill_with_kv_cache": (5, "max_token_per_sequence max_sequence_kv actual_seq_lens_q actual_seq_lens_kv causal return_lse batch_offsets_q batch_offsets_k "
        "batch_offsets_v batch_offsets_o q_scale k_scale v_scale o_data_type out"),
    "prefill.BatchPrefillWithRaggedKVCacheWrapper.plan": (0, "qo_indptr kv_indptr num_qo_heads num_kv_heads head_dim_qk head_dim_vo causal sm_scale window_left logits_soft_cap q_data_type "
        "o_data_type"), "prefill.BatchPrefillWithRaggedKVCacheWrapper.run": (0, "q k v out return_lse"),
}


def test_calls_of_engines_bind(fi):
    for full, (positional, keywords) in ENGINES.items():
        module, name, *method = full.split(".")
        value = getattr(getattr(fi, module), name)
        function = getattr(value, method[0] or "__init__") if method else value
        inspect.signature(function).bind(*([None] * (positional + bool(method))), **dict.fromkeys(keywords.split()))


def test_the_document_has_the_table():
    text = open(DOCUMENT, encoding="utf-8").read()
    table = text.split("<!-- names -->\n")[1].split("<!-- end -->")[0]
    assert table == _names.tables(), "python -m quern.compat.flashinfer prints what belongs there"


def test_utils(fi):
    utils = fi.utils
    assert [m.value for m in utils.MaskMode] == [0, 1, 2, 3] and utils.MaskMode.CUSTOM.value == 2
    assert utils.PosEncodingMode["ALIBI"].value == 2 and utils.TensorLayout["HND"].value == 1
    assert [fi.next_positive_power_of_2(n) for n in (0, 1, 2, 3, 5, 64, 65)] == [1, 1, 2, 4, 8, 64, 128]

    class Integer:  # as NumPy's
        __index__ = lambda self: 5  # noqa: E731

    numbers.Integral.register(Integer)
    assert fi.next_positive_power_of_2(Integer()) == 8
    pytest.importorskip("torch", reason="needs torch")
    assert utils.get_compute_capability("cpu") == (9, 0) and utils.is_sm90a_supported("cpu")
    assert not any(f("cpu") for f in (utils.is_sm100a_supported, utils.is_sm110a_supported, utils.is_sm120a_supported, utils.is_sm121a_supported))


def test_testing(fi):
    torch = pytest.importorskip("torch", reason="needs torch")
    fi.testing.set_seed(random_seed=3)
    first = torch.rand(3)
    fi.testing.set_seed(3)
    assert torch.equal(first, torch.rand(3))
    calls = []
    times = fi.testing.bench_gpu_time(fn=lambda *a, **k: calls.append((a, k)), dry_run_iters=2, repeat_iters=5, input_args=(1,), input_kwargs={"x": 2}, cold_l2_cache=False)
    assert len(times) == 5 and all(0 < t < 1e3 for t in times) and calls == [((1,), {"x": 2})] * 8
    assert len(fi.testing.bench_gpu_time(lambda: None, dry_run_time_ms=1, repeat_time_ms=2)) >= 1
    for keywords in ({"enable_cupti": True}, {"use_cuda_graph": True}, {"l2_flush": True}, {"sleep_after_run": True}, {"num_iters_within_graph": 3}):
        with pytest.raises(NotImplementedError, match=rf"^flashinfer\.testing\.bench_gpu_time: `{next(iter(keywords))}`"):
            fi.testing.bench_gpu_time(lambda: None, **keywords)


def test_autotuner(fi, tmp_path):
    """As vLLM enters it: nothing is tuned, and the file of results goes from process to process."""
    tuner, path = fi.autotuner.AutoTuner.get(), str(tmp_path / "configs.json")
    assert tuner is fi.autotuner.AutoTuner.get() and not tuner._dirty
    fi.autotuner.set_autotune_process_group(None)
    with fi.autotune(tune_mode=True, cache=None, tuning_buckets=(1, 2, 4), round_up=True, skip_ops={"trtllm_moe"}) as entered:
        assert entered is None
    assert not tuner.load_configs(path)
    with pytest.raises(KeyError), fi.autotuner.autotune(cache=path):
        raise KeyError
    assert not tuner.load_configs(path), "only what has ended is kept"
    with fi.autotune(False, cache=path):
        pass
    assert not os.path.exists(path)
    with fi.autotune(True, cache=path):
        pass
    assert tuner.load_configs(path) and tuner.clear_cache() is None
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"_metadata": {"flashinfer": "0.7.2"}}')
    assert not tuner.load_configs(path)
    tuner.save_configs(path)
    assert tuner.load_configs(path)

    @fi.autotune()
    def tuned():
        return 3

    assert tuned() == 3
    for keywords in ({"tune_mode": 1}, {"cache": 3}, {"round_up": "up"}, {"tuning_buckets": 8}, {"tuning_buckets": ["8"]}, {"skip_ops": [3]}, {"cuda_graph_profile_replays": "3"}):
        with pytest.raises(TypeError, match=rf"^flashinfer\.autotune: `{next(iter(keywords))}` is "), fi.autotune(**keywords):
            pass
    with pytest.raises(TypeError, match=r"^flashinfer\.set_autotune_process_group: `group` is 'world'"):
        fi.autotuner.set_autotune_process_group("world")
    with fi.autotune(skip_ops="gemm", cuda_graph_profile_replays=3):
        pass
    for keywords in ({"tuning_buckets": ()}, {"cuda_graph_profile_replays": 0}):
        with pytest.raises(ValueError, match=rf"^flashinfer\.autotune: `{next(iter(keywords))}` is "), fi.autotune(**keywords):
            pass

    class Group:
        def rank(self):
            return 0

    group = Group()
    fi.autotuner.set_autotune_process_group(group)
    assert fi.autotuner.get_autotune_process_group() is group
    fi.autotuner.set_autotune_process_group(None)
    assert fi.autotuner.get_autotune_process_group() is None and fi.autotuner._collect_metadata() == {"tuner": "quern: plans need none"}
    with pytest.raises(TypeError, match=r"^flashinfer\.AutoTuner: `warmup` is 'no'"):
        fi.autotuner.AutoTuner(warmup="no")


def test_autotune_v2(fi, tmp_path):
    """Nothing is tuned and nothing is written; every word is looked at."""
    policy = fi.MeasurementPolicy(execution_mode="cuda_graph", cold_l2=True)
    assert policy == fi.autotune_cache.MeasurementPolicy("cuda_graph", True) and policy.use_cuda_graph is True
    assert fi.MeasurementPolicy().use_cuda_graph is None and fi.MeasurementPolicy("eager").use_cuda_graph is False
    with fi.autotune_v2(mode="replay", persistent_cache=True, cache_root=str(tmp_path / "root"), measurement_policy=policy, tuning_buckets=(1, 2), round_up=True, skip_ops={"gemm"}) as entered:
        assert entered is None
    with fi.autotune_v2():
        assert fi.autotune_v2_reload() is None
    assert not list(tmp_path.iterdir())
    for kind, keywords in ((ValueError, {"mode": "on"}), (TypeError, {"mode": None}), (TypeError, {"persistent_cache": 1}), (TypeError, {"cache_root": 3}), (TypeError, {"measurement_policy": "eager"}),
                           (ValueError, {"tuning_buckets": ()}), (TypeError, {"round_up": 1}), (TypeError, {"skip_ops": 3})):
        with pytest.raises(kind, match=rf"^flashinfer\.autotune_v2: `{next(iter(keywords))}` is "), fi.autotune_v2(**keywords):
            pass
    for kind, keywords in ((ValueError, {"execution_mode": "graph"}), (TypeError, {"cold_l2": "yes"})):
        with pytest.raises(kind, match=rf"^flashinfer\.MeasurementPolicy: `{next(iter(keywords))}` is "):
            fi.MeasurementPolicy(**keywords)


def test_modules_are_one(fi):
    for module in _names.MODULES:
        function = getattr(importlib.import_module("flashinfer." + module), module, None) if module == "xqa" else None  # a function of its module's name
        assert (function or importlib.import_module("flashinfer." + module)) is getattr(fi, module)
    assert fi.__spec__ is not None and fi.__version__
