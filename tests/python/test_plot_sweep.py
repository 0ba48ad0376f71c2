# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""`quern plot` of a sweep: a plot is of one kernel, metric, mode, config and GPU; what is drawn is what the rows say; files are whole before they are shown."""
import csv
import os

import pytest

matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")

from quern import plot  # noqa: E402

ROW = {"kernel_name": "norm.layer_norm", "kernel_provider": "quern", "kernel_operation_mode": "forward", "metric_name": "speed", "metric_unit": "ms", "x_name": "hidden", "x_label": "width of the residual stream",
       "x_value": "1024", "y_value_50": "0.02", "y_value_20": "0.019", "y_value_80": "0.025", "extra_benchmark_config_str": '{"dtype":"bf16","tokens":4096}', "gpu_name": "NVIDIA H200", "timestamp": "2026-01-02 03:04:05",
       "version": "0.1.0", "sol_ms": "0.01", "sheet_ms": "0.008"}
NAME = "norm.layer_norm_speed_forward_dtype-bf16_tokens-4096"


def at(x, y, **changes):
    return {**ROW, "x_value": str(x), "y_value_50": str(y), "y_value_20": str(0.9 * y), "y_value_80": str(1.2 * y), "sol_ms": str(0.5 * y), "sheet_ms": str(0.4 * y), **changes}


ROWS = [at(2048, 0.04), at(1024, 0.02), at(1024, 0.03, kernel_provider="torch"), at(2048, 0.06, kernel_provider="torch")]
OTHER_GPU = at(1024, 0.2, gpu_name="NVIDIA L4")
OTHER_DTYPE = at(1024, 0.04, extra_benchmark_config_str='{"dtype":"f32","tokens":4096}')
OTHER_MODE = at(1024, 0.05, kernel_operation_mode="full")
MEMORY = at(1024, 8, metric_name="memory", metric_unit="MB", sol_ms="", sheet_ms="")


def written(folder, *rows):
    path = os.path.join(str(folder), "rows.csv")
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def drawn(folder, *rows, **options):
    return plot.sweep_figures(plot.read_sweep(written(folder, *rows)), **options)


def points(figure):
    """[(x, y)] of each line of the legend."""
    axes, = figure.axes
    handles, labels = axes.get_legend_handles_labels()
    lines = [h.lines[0] if hasattr(h, "has_yerr") else h for h in handles]
    return {label: list(zip(line.get_xdata(), line.get_ydata())) for label, line in zip(labels, lines)}


def is_blank(path):
    image = matplotlib.image.imread(path)
    return image.reshape(-1, image.shape[-1]).std(axis=0)[:3].max() < 0.02


def test_lines_are_the_rows(tmp_path):
    (name, figure), = drawn(tmp_path, *ROWS)
    assert name == NAME
    assert points(figure) == {"quern": [(1024, 0.02), (2048, 0.04)], "torch": [(1024, 0.03), (2048, 0.06)],
                              "speed of light, as measured": [(1024, 0.0125), (2048, 0.025)], "speed of light, data sheet": [(1024, 0.01), (2048, 0.02)]}
    axes, = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log") and axes.xaxis.get_transform().base == 2
    bars = [segment for container in axes.containers for segment in container.lines[2][0].get_segments()]
    assert sorted((x, round(low, 6), round(high, 6)) for (x, low), (_, high) in bars) == [(1024, 0.018, 0.024), (1024, 0.027, 0.036), (2048, 0.036, 0.048), (2048, 0.054, 0.072)]
    assert {line.get_linestyle() for line in axes.lines if line.get_label().startswith("speed of light")} == {"--"}
    assert figure.get_suptitle().splitlines() == ["norm.layer_norm forward on NVIDIA H200", "dtype=bf16, tokens=4096, median, 20 and 80 %, quern 0.1.0"]
    assert axes.get_xlabel() == "hidden (width of the residual stream)" and axes.get_ylabel() == "speed, ms"


def test_gpus_dtypes_modes_and_metrics_are_never_in_one(tmp_path):
    figures = drawn(tmp_path, *ROWS, OTHER_GPU, OTHER_DTYPE, OTHER_MODE, MEMORY)
    assert {name: sorted(points(f)["quern"]) for name, f in figures} == {
        NAME + "_NVIDIA-H200": [(1024, 0.02), (2048, 0.04)], NAME + "_NVIDIA-L4": [(1024, 0.2)], NAME.replace("bf16", "f32") + "_NVIDIA-H200": [(1024, 0.04)],
        NAME.replace("forward", "full") + "_NVIDIA-H200": [(1024, 0.05)], NAME.replace("speed", "memory") + "_NVIDIA-H200": [(1024, 8)]}
    memory = dict(figures)[NAME.replace("speed", "memory") + "_NVIDIA-H200"]
    assert set(points(memory)) == {"quern"}, "memory has no speed of light"


@pytest.mark.parametrize("options, left", [({"gpu": "NVIDIA L4"}, 1), ({"gpu": "NVIDIA H200"}, 4), ({"modes": ["full"]}, 1), ({"metrics": ["memory"]}, 1), ({"kernels": ["norm.layer_norm"]}, 5),
                                           ({"filters": [("dtype", "f32")]}, 1), ({"filters": [("provider", "torch")]}, 1), ({"filters": [("tokens", "4096"), ("hidden", "2048")]}, 1)])
def test_options_leave_out(tmp_path, options, left):
    assert len(drawn(tmp_path, *ROWS, OTHER_GPU, OTHER_DTYPE, OTHER_MODE, MEMORY, **options)) == left


def test_a_provider_alone(tmp_path):
    (_, figure), = drawn(tmp_path, *ROWS, filters=[("provider", "torch")])
    assert "quern" not in points(figure) and len(points(figure)["torch"]) == 2


def test_files_of_14_columns(tmp_path):
    """As other tools write them, with NaN for what is missing."""
    rows = [{k: v for k, v in list(row.items())[:14]} for row in (*ROWS, at(4096, 1, y_value_50="NaN", y_value_20="NaN", y_value_80="NaN"))]
    (name, figure), = drawn(tmp_path, *rows)
    assert name == NAME and points(figure)["quern"] == [(1024, 0.02), (2048, 0.04)] and set(points(figure)) == {"quern", "torch"}


def test_command_writes_keeps_and_overwrites(tmp_path, capsys):
    path, out = written(tmp_path, *ROWS, OTHER_GPU), str(tmp_path / "plots")
    files = [os.path.join(out, f"{NAME}_{gpu}.png") for gpu in ("NVIDIA-H200", "NVIDIA-L4")]
    assert plot.main([path, "--out", out]) == 0
    assert capsys.readouterr().out.splitlines() == [f"wrote {file}" for file in files] and not any(is_blank(file) for file in files)
    for file in files:
        with open(file, "wb") as old:
            old.write(b"old")
    assert plot.main([path, "--out", out, "--gpu", "NVIDIA L4"]) == 0
    alone = os.path.join(out, NAME + ".png")
    assert capsys.readouterr().out == f"wrote {alone}\n" and os.path.getsize(files[1]) == 3, "one GPU needs no name"
    assert plot.main([path, "--out", out]) == 0
    assert capsys.readouterr().out.splitlines() == [f"kept {file} (--overwrite draws it again)" for file in files] and all(os.path.getsize(file) == 3 for file in files)
    assert plot.main([path, "--out", out, "--overwrite"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"wrote {file}" for file in files] and not any(is_blank(file) for file in files)


def test_one_plot_to_a_file(tmp_path, capsys):
    path = written(tmp_path, *ROWS, OTHER_DTYPE)
    assert plot.main([path, "--filter", "dtype=f32", "-o", str(tmp_path / "a.svg")]) == 0 and (tmp_path / "a.svg").exists()
    assert plot.main([path, "-o", str(tmp_path / "b.svg")]) == 2
    assert f"`out` is the file '{tmp_path / 'b.svg'}' for 2 plots, expected a folder, or options that leave one plot" in capsys.readouterr().err


def test_shown_when_they_are_saved(tmp_path, monkeypatch):
    from matplotlib import pyplot

    shown = []
    monkeypatch.setattr(pyplot, "get_backend", lambda: "windows")
    monkeypatch.setattr(pyplot, "show", lambda: shown.append((len(pyplot.get_fignums()), is_blank(tmp_path / f"{NAME}.png"))))
    assert plot.main([written(tmp_path, *ROWS), "--display", "-o", str(tmp_path)]) == 0
    pyplot.close("all")
    assert shown == [(1, False)]


def test_no_display(tmp_path, monkeypatch, capsys):
    from matplotlib import pyplot

    monkeypatch.setattr(pyplot, "get_backend", lambda: "agg")
    assert plot.main([written(tmp_path, *ROWS), "--display", "-o", str(tmp_path)]) == 3
    assert capsys.readouterr().err == "quern: plot: `display` is asked for and matplotlib has the backend agg, expected one with windows (MPLBACKEND)\n"


@pytest.mark.parametrize("words, said", [(["--kernel", "norm.layer"], "`kernel` is 'norm.layer', expected one of norm.layer_norm"), (["--metric", "time"], "`metric` is 'time', expected one of speed"),
                                         (["--mode", "forward,back"], "`mode` is 'back', expected one of forward"), (["--gpu", "H200"], "`gpu` is 'H200', expected one of NVIDIA H200"),
                                         (["--filter", "dtype"], "`filter` is 'dtype', expected key=value"), (["--filter", "width=3"], "`filter` has the key 'width', expected one of dtype, gpu, hidden, kernel"),
                                         (["--filter", "dtype=f64"], "`filter` is 'dtype=f64', expected one of bf16"), (["--op", "norm"], "`op` is given for"), ])
def test_bad_options(tmp_path, words, said, capsys):
    assert plot.main([written(tmp_path, *ROWS), "-o", str(tmp_path), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("quern: value error: plot: ") and said in error, error


def test_options_of_sweeps_are_for_sweeps(tmp_path, capsys):
    results = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "bench", "results", "h200", "gemm_peer.csv")
    assert plot.main([results, "--gpu", "NVIDIA H200", "-o", str(tmp_path / "a.svg")]) == 2
    assert capsys.readouterr().err == f"quern: value error: plot: `gpu` is given for {results}, a CSV of cases, expected one of a sweep\n"


@pytest.mark.parametrize("change, said", [({"y_value_50": "fast"}, "has y_value_50=fast in line 3, expected a number or nothing"), ({"extra_benchmark_config_str": "{"}, "has the config { in row 2, expected an object of JSON"),
                                          ({"extra_benchmark_config_str": "[1]"}, "has the config [1] in row 2, expected an object of JSON")])
def test_bad_rows(tmp_path, change, said):
    with pytest.raises(ValueError) as e:
        plot.read_sweep(written(tmp_path, ROW, {**ROW, **change}))
    assert said in str(e.value)


def test_missing_column(tmp_path):
    with pytest.raises(ValueError, match="expected gpu_name among them"):
        plot.read_sweep(written(tmp_path, {k: v for k, v in ROW.items() if k != "gpu_name"}))
