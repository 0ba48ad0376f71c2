# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""`quern plot`: draws a CSV of `quern bench` (docs/benchmarks.md). Needs matplotlib and nothing else of this package, so it also runs as a script."""
import argparse
import collections
import csv
import itertools
import json
import math
import os
import re
import statistics
import sys
import textwrap

WORDS = ("op", "case", "kernel", "device", "timer", "cold", "provider", "version", "ok", "message")
NUMBERS = ("median_us", "p10_us", "p90_us", "floor_us", "copy_us", "runs", "sm_clock_mhz")
# Of a sweep: columns that every file has, and of them those with numbers; `sol_ms` and `sheet_ms` where it has them.
SWEEP_WORDS = ("kernel_name", "kernel_provider", "kernel_operation_mode", "metric_name", "metric_unit", "x_name", "x_label", "extra_benchmark_config_str", "gpu_name", "timestamp")
SWEEP_NUMBERS = ("x_value", "y_value_50", "y_value_20", "y_value_80")
LIGHT = (("sol_ms", "speed of light, as measured", "black"), ("sheet_ms", "speed of light, data sheet", "0.5"))
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
SHAPES_A_FIGURE = 60
ENDINGS = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}  # with what makes two files of the same rows equal
STYLE = {"font.size": 8, "font.sans-serif": ["DejaVu Sans", "Verdana"], "text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "quern", "axes.axisbelow": True, "figure.constrained_layout.w_pad": 0.12}


def _check(function, name, value, kinds, expected):
    """TypeError for an argument of another type."""
    if not isinstance(value, kinds):
        raise TypeError(f"{function}: `{name}` is {'None' if value is None else 'a ' + type(value).__name__}, expected {expected}")


def read(path):
    """The rows of a CSV as dicts of text; times in us, runs and clocks as floats, None where nothing was measured. ValueError where the file
    was not written by `quern bench`, OSError where it cannot be read."""
    _check("read", "path", path, (str, os.PathLike), "a path: a str or an os.PathLike")
    return _read(path, WORDS, NUMBERS, r"(\d+\.?\d*(e[+-]?\d+)?)?")


def _read(path, words, numbers, pattern):
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = csv.reader(file)
        columns = next(lines, [])
        for column in words + numbers:
            if column not in columns:
                got = textwrap.shorten(", ".join(columns), 300) or "none"
                raise ValueError(f"plot: `{path}` has the columns {got}, expected {column} among them, as in what `quern bench --csv` writes")
        rows = []
        for fields in lines:
            if len(fields) != len(columns):
                raise ValueError(f"plot: `{path}` has {len(fields)} fields in line {lines.line_num}, expected {len(columns)}")
            rows.append(row := dict(zip(columns, fields)))
            for name in numbers:
                if not re.fullmatch(pattern, row[name]):
                    raise ValueError(f"plot: `{path}` has {name}={row[name]} in line {lines.line_num}, expected a number or nothing")
                row[name] = float(row[name] or 0) or None
    if not rows:
        raise ValueError(f"plot: `{path}` has 0 rows, expected at least 1")
    return rows


def figures(rows, op="", note=""):
    """[(name, matplotlib Figure)] of the rows of read(), one for each op, or for each 60 of its shapes: times, floors and copies, beside them
    peers over quern. `op` is the name of an op or a family, empty for all; `note` stands in every title. ValueError for another op."""
    _check("figures", "rows", rows, (list, tuple), "rows as read() returns them")
    for i, row in enumerate(rows):
        _check("figures", f"rows[{i}]", row, dict, "a dict as read() returns it")
        if missing := [column for column in WORDS + NUMBERS if column not in row]:
            raise ValueError(f"figures: `rows[{i}]` has no {missing[0]}, expected a dict as read() returns it")
    for name, value in (("op", op), ("note", note)):
        _check("figures", name, value, str, "a str")
    from matplotlib import rc_context

    found = collections.defaultdict(list)
    for row in rows:
        if op in ("", row["op"], row["op"].split(".")[0]):
            found[row["op"]].append(row)
    if not found:
        raise ValueError(f"plot: `op` is '{op}', expected one of {', '.join(sorted({row['op'] for row in rows}))}")
    drawn = []
    with rc_context(STYLE):
        for name, shapes in ((name, _shapes(group)) for name, group in found.items()):
            parts = [shapes[i:i + SHAPES_A_FIGURE] for i in range(0, len(shapes), SHAPES_A_FIGURE)]
            drawn += [(f"{name}.{i}" if len(parts) > 1 else name, _figure(part, note)) for i, part in enumerate(parts, 1)]
    return drawn


def _series(row):
    """What makes times comparable: the provider, right or not, and how they were taken."""
    return row["provider"], row["ok"], row["device"], "L2 cold" if row["cold"] == "1" else "L2 hot", row["timer"]


def _shapes(rows):
    """The rows of each case, in the order of the file; what was timed twice in the same way stands apart."""
    times, shapes = collections.Counter(), collections.defaultdict(list)
    for row in rows:
        times[row["case"], _series(row)] += 1
        shapes[row["case"], times[row["case"], _series(row)]].append(row)
    return list(shapes.values())


def _labels(shapes):
    """What tells the shapes apart, and in one text the words that more than three quarters of them have."""
    cases = [dict(word.partition("=")[::2] for word in re.split(r" (?=[^ =]+=)", shape[0]["case"])) for shape in shapes]
    common = {}
    for name in dict.fromkeys(name for case in cases for name in case):
        value, count = collections.Counter(case.get(name) for case in cases).most_common(1)[0]
        if 4 * count > 3 * len(cases):
            common[name] = value
    own = [" ".join(f"{n}={v}" for n, v in case.items() if n not in common or v != common[n]) for case in cases]
    return [label or "as above" for label in own], " ".join(f"{n}={v}" for n, v in common.items() if v is not None)


def _figure(shapes, note):
    from matplotlib.figure import Figure

    rows = [row for shape in shapes for row in shape]
    labels, common = _labels(shapes)
    colors = dict(zip(dict.fromkeys(_series(row) for row in rows if row["median_us"]), itertools.cycle(COLORS)))
    timed = [{_series(row): row for row in shape if row["median_us"]} for shape in shapes]
    ratios = collections.defaultdict(list)
    for y, of in enumerate(timed):
        for s in (s for s in of if s[0] != "quern" and s[1] == "1" and ("quern", *s[1:]) in of):
            ratios[s].append((of[s]["median_us"] / of[("quern", *s[1:])]["median_us"], y))
    width = max(10, 6.5 + 0.065 * max(map(len, labels)))
    above, below = ("\n".join(line for text in texts for line in textwrap.wrap(text, int(16 * width))) for texts in ((_conditions(rows, note), common), _notes(rows)))
    figure = Figure(figsize=(width, 1.9 + 0.16 * len(shapes) + 0.12 * (above + below).count("\n")), layout="constrained")
    axes = figure.subplots(1, 2 if ratios else 1, sharey=True, squeeze=False, width_ratios=(2, 1) if ratios else (1,))[0]
    figure.suptitle(f"{rows[0]['op']} on {' or '.join(dict.fromkeys(row['device'] for row in rows))}\n{above}", x=0.01, ha="left", fontsize=8)
    figure.supxlabel(below, x=0.01, ha="left", fontsize=8)
    _draw_times(axes[0], shapes, timed, colors)
    for s, points in ratios.items():
        axes[1].plot(*zip(*points), "o", color=colors[s], markersize=4, label=s[0] + " / quern")
    for axis in axes[1:]:
        axis.axvline(1, color="black", linewidth=1)
        axis.set_xlabel("above 1 quern is quicker")
    for axis in axes:
        axis.grid(True, color="0.9")
        axis.tick_params(axis="y", left=False)
        if axis.lines:
            axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, handletextpad=0.1, columnspacing=1)
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].set_ylim(len(labels) - 0.4, -0.6)
    return figure


def _conditions(rows, note):
    timed = [row for row in rows if row["median_us"]]

    def span(column):
        ends = sorted({row[column] for row in timed if row[column]})
        return " to ".join(dict.fromkeys(f"{end:g}" for end in ends[:1] + ends[-1:])) or "?"

    how = [" or ".join(dict.fromkeys(words)) for words in list(zip(*map(_series, timed)))[3:]]
    versions = " or ".join(dict.fromkeys(row["version"] for row in rows))
    return ", ".join([f"median, 10 and 90 % of {span('runs')} runs", *how, f"SM clock {span('sm_clock_mhz')} MHz", f"quern {versions}", *[note] * bool(note)])


def _notes(rows):
    """What stands below: which kernels peers are, and why figures are missing or wrong."""
    kernels = dict.fromkeys(f"{row['provider']}: {row['kernel']}" for row in rows if row["median_us"] and row["provider"] != "quern")
    flaws = collections.Counter((row["provider"], "wrong" if row["median_us"] else "no figure", row["message"]) for row in rows if row["ok"] != "1" or not row["median_us"])
    return [*kernels, *(f"{provider}: {flaw} for {count} shapes: {message}" for (provider, flaw, message), count in flaws.items())]


def _draw_times(axis, shapes, timed, colors):
    from matplotlib.ticker import AutoLocator, FuncFormatter, LogLocator, NullFormatter

    axis.set_xscale("log")
    for column, label, color in (("floor_us", "floor", "black"), ("copy_us", "copy of as many bytes", "0.6")):
        points = list(dict.fromkeys((row[column], y) for y, shape in enumerate(shapes) for row in shape if row[column]))
        if points:
            axis.plot(*zip(*points), "|", color=color, markersize=9, markeredgewidth=1.5, label=label)
    for i, (key, color) in enumerate(colors.items()):
        at = [(of[key], y + 0.4 * ((i + 0.5) / len(colors) - 0.5)) for y, of in enumerate(timed) if key in of]
        label = ", ".join([key[0]] + ["WRONG"] * (key[1] != "1") + [word for word, all_ in list(zip(key, zip(*colors)))[2:] if len(set(all_)) > 1])
        axis.plot([row["median_us"] for row, _ in at], [y for _, y in at], "o" if key[1] == "1" else "x", color=color, markersize=4, label=label)
        spread = [(us, y) for row, y in at if row["p10_us"] and row["p90_us"] for us in (row["p10_us"], row["p90_us"], math.nan)]
        axis.plot(*zip(*spread), "-", color=color, linewidth=1)
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if axis.get_xlim()[1] > 10 * axis.get_xlim()[0] else AutoLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda us, _: f"{us:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("us")


def _check_drawn(function, drawn, of):
    _check(function, "drawn", drawn, (list, tuple), f"what {of} returned")
    for i, pair in enumerate(drawn):
        _check(function, f"drawn[{i}]", pair, tuple, f"a name and a figure, as {of} returned them")
        if len(pair) != 2 or not isinstance(pair[0], str) or not hasattr(pair[1], "savefig"):
            raise ValueError(f"{function}: `drawn[{i}]` is a tuple of {len(pair)}, expected a name and a figure, as {of} returned them")


def save(drawn, path):
    """Writes what figures() returned and returns the paths: `path`, or of several figures a file each, with its name before the ending.
    ValueError for another ending than .svg, .png and .pdf, OSError where a file cannot be written."""
    _check("save", "path", path, (str, os.PathLike), "a path: a str or an os.PathLike")
    _check_drawn("save", drawn, "figures()")
    from matplotlib import rc_context

    path = os.fspath(path)
    stem, ending = os.path.splitext(path)
    if ending not in ENDINGS:
        raise ValueError(f"plot: `out` is '{path}', expected a name that ends in {', '.join(ENDINGS)}")
    paths = [path if len(drawn) == 1 else f"{stem}.{re.sub(r'[^0-9A-Za-z_.]', '_', name)}{ending}" for name, _ in drawn]
    with rc_context(STYLE):
        for (_, figure), name in zip(drawn, paths):
            figure.savefig(name, dpi=150, metadata=ENDINGS[ending])
    return paths


def is_sweep(path):
    """Whether a CSV is of a sweep (`quern bench --sweep`): it begins with its columns. OSError where it cannot be read."""
    _check("is_sweep", "path", path, (str, os.PathLike), "a path: a str or an os.PathLike")
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        return next(csv.reader(file), [])[:1] == [SWEEP_WORDS[0]]


def read_sweep(path):
    """The rows of a sweep's CSV as dicts of text; x and y as floats, None where there is none; `config`: the JSON of a row as a dict of text. Files of other
    tools with the same 14 columns are read too. ValueError where the file is no sweep's, OSError where it cannot be read."""
    _check("read_sweep", "path", path, (str, os.PathLike), "a path: a str or an os.PathLike")
    rows = _read(path, SWEEP_WORDS, SWEEP_NUMBERS, r"(-?\d+\.?\d*(e[+-]?\d+)?|NaN|nan)?")
    for number, row in enumerate(rows, 1):
        for name in SWEEP_NUMBERS[1:]:
            row[name] = row[name] if row[name] is not None and row[name] > 0 else None
        row["x_value"] = row["x_value"] or 0.0
        for name, _, _ in LIGHT:
            row[name] = float(row.get(name) or 0) or None
        try:
            config = json.loads(row["extra_benchmark_config_str"] or "{}")
        except ValueError:
            config = None
        if not isinstance(config, dict):
            raise ValueError(f"plot: `{path}` has the config {row['extra_benchmark_config_str']} in row {number}, expected an object of JSON")
        row["config"] = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    return rows


def sweep_figures(rows, kernels=(), metrics=(), modes=(), filters=(), gpu="", note="", new_figure=None):
    """[(name, matplotlib Figure)] of the rows of read_sweep(): one for each kernel, metric, mode, config and GPU, so that neither GPUs nor dtypes are ever in one. A line for
    each provider with the quantiles as bars, dashed the speed of light; x by its logarithm to base 2, y to base 10. The name is that of the file:
    KERNEL_METRIC_MODE[_CONFIG], and the GPU where rows are of several. `kernels`, `metrics`, `modes`: only these; `filters`: pairs of a key (of the config, or provider, x_name,
    x_value) and its value, which must all hold; `gpu`: only that one. `new_figure`: makes a Figure, as pyplot.figure does. ValueError where nothing is left."""
    _check_sweep(rows, {"kernels": kernels, "metrics": metrics, "modes": modes}, filters, new_figure)
    for name, value in (("gpu", gpu), ("note", note)):
        _check("sweep_figures", name, value, str, "a str")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    for option, column, wanted in (("kernel", "kernel_name", kernels), ("metric", "metric_name", metrics), ("mode", "kernel_operation_mode", modes), ("gpu", "gpu_name", (gpu,) if gpu else ())):
        known = sorted({row[column] for row in rows})
        for word in wanted:
            if word not in known:
                raise ValueError(f"plot: `{option}` is '{word}', expected one of {', '.join(known)}")
        rows = [row for row in rows if not wanted or row[column] in wanted]
    for key, value in filters:
        rows = _filtered(rows, key, value)
    if not rows:
        raise ValueError("plot: no rows are left, expected options that some row has together")
    several = len({row["gpu_name"] for row in rows}) > 1
    groups = collections.defaultdict(list)
    for row in rows:
        groups[tuple(row[c] for c in ("kernel_name", "metric_name", "kernel_operation_mode", "extra_benchmark_config_str", "gpu_name", "x_name", "metric_unit"))].append(row)
    drawn, names = [], collections.Counter()
    with rc_context(STYLE):
        for group in groups.values():
            name = _sweep_name(group[0], several)
            names[name] += 1  # two axes of one config: the second is told by its number
            drawn.append((name if names[name] == 1 else f"{name}_{names[name]}", _sweep_figure(group, note, new_figure or Figure)))
    return drawn


def _check_sweep(rows, words, filters, new_figure):
    _check("sweep_figures", "rows", rows, (list, tuple), "rows as read_sweep() returns them")
    for i, row in enumerate(rows):
        _check("sweep_figures", f"rows[{i}]", row, dict, "a dict as read_sweep() returns it")
        if missing := [column for column in (*SWEEP_WORDS, *SWEEP_NUMBERS, "config", *(name for name, _, _ in LIGHT)) if column not in row]:
            raise ValueError(f"sweep_figures: `rows[{i}]` has no {missing[0]}, expected a dict as read_sweep() returns it")
    for name, list_ in words.items():
        _check("sweep_figures", name, list_, (list, tuple), "a list of names")
        for i, word in enumerate(list_):
            _check("sweep_figures", f"{name}[{i}]", word, str, "a name")
    _check("sweep_figures", "filters", filters, (list, tuple), "a list of pairs of a key and a value")
    for i, pair in enumerate(filters):
        if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(word, str) for word in pair):
            raise TypeError(f"sweep_figures: `filters[{i}]` is {type(pair).__name__}, expected a pair of a key and a value")
    if new_figure is not None and not callable(new_figure):
        raise TypeError(f"sweep_figures: `new_figure` is a {type(new_figure).__name__}, expected None or a function")


def _filtered(rows, key, value):
    """Rows whose key has that value. ValueError for a key that none has."""
    own = {"provider": "kernel_provider", "x_name": "x_name", "gpu": "gpu_name", "kernel": "kernel_name", "mode": "kernel_operation_mode", "metric": "metric_name"}

    def of(row):
        return row[own[key]] if key in own else row["config"].get(key, f"{row['x_value']:g}" if key in ("x_value", row["x_name"]) else None)

    known = sorted({*own, "x_value", *(row["x_name"] for row in rows), *(k for row in rows for k in row["config"])})
    if key not in known:
        raise ValueError(f"plot: `filter` has the key '{key}', expected one of {', '.join(known)}")
    left = [row for row in rows if of(row) == value]
    if not left:
        raise ValueError(f"plot: `filter` is '{key}={value}', expected one of {', '.join(sorted({str(of(row)) for row in rows if of(row) is not None}))}")
    return left


def _sweep_name(row, with_gpu):
    words = [row["kernel_name"], row["metric_name"], row["kernel_operation_mode"], *(f"{k}-{v}" for k, v in row["config"].items())]
    return re.sub(r"[^0-9A-Za-z_.-]", "-", "_".join(words + [row["gpu_name"]] * with_gpu))[:200]


def _sweep_figure(rows, note, new_figure):
    from matplotlib.ticker import FuncFormatter, NullFormatter

    first = rows[0]
    figure = new_figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    providers = sorted({row["kernel_provider"] for row in rows}, key=lambda p: (p != "quern", p))
    for provider, color in zip(providers, itertools.cycle(COLORS)):
        points = sorted((r for r in rows if r["kernel_provider"] == provider and r["y_value_50"]), key=lambda r: r["x_value"])
        x, y = [r["x_value"] for r in points], [r["y_value_50"] for r in points]
        low = [max(0.0, r["y_value_50"] - (r["y_value_20"] or r["y_value_50"])) for r in points]
        high = [max(0.0, (r["y_value_80"] or r["y_value_50"]) - r["y_value_50"]) for r in points]
        if points:
            axes.errorbar(x, y, yerr=(low, high), fmt="-o", color=color, markersize=4, linewidth=1, capsize=4, label=provider)
    lights = []
    for column, label, color in LIGHT:
        at = collections.defaultdict(list)
        for row in rows:
            if row[column]:
                at[row["x_value"]].append(row[column])
        if at:  # each run has measured it anew
            lights.append(label)
            axes.plot(sorted(at), [statistics.median(at[x]) for x in sorted(at)], "--", color=color, linewidth=1, label=label)
    if all(row["x_value"] > 0 for row in rows):
        axes.set_xscale("log", base=2)
    ticks = sorted({row["x_value"] for row in rows})
    axes.set_xticks(ticks if len(ticks) <= 12 else ticks[:: -(-len(ticks) // 12)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.10g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    label = first["x_label"]
    axes.set_xlabel(first["x_name"] if label in ("", first["x_name"]) else f"{first['x_name']} ({label})")
    axes.set_ylabel(f"{first['metric_name']}, {first['metric_unit']}")
    axes.grid(True, color="0.9")
    if axes.lines:
        axes.legend(frameon=False)
    versions = " or ".join(dict.fromkeys(row["version"] for row in rows if row.get("version")))
    said = [*(f"{k}={v}" for k, v in first["config"].items()), "median, 20 and 80 %", *[f"quern {versions}"] * bool(versions), *[note] * bool(note)]
    if "emulated" in first["gpu_name"] and first["metric_name"] == "speed":
        said.append("times of an emulated device are no speeds of a GPU")
    figure.suptitle("\n".join([f"{first['kernel_name']} {first['kernel_operation_mode']} on {first['gpu_name']}", *textwrap.wrap(", ".join(said), 110)]), x=0.01, ha="left", fontsize=8)
    return figure


def save_sweep(drawn, out="", overwrite=False):
    """Writes what sweep_figures() returned: NAME.png in the folder `out` (empty: here), or one figure as the file `out`, which ends in .svg, .png or .pdf. Files that are there are kept
    unless `overwrite`. Returns [(path, whether it was written)]. ValueError for a file for several figures, OSError where one cannot be written."""
    _check_drawn("save_sweep", drawn, "sweep_figures()")
    _check("save_sweep", "out", out, (str, os.PathLike), "a path: a str or an os.PathLike")
    if overwrite is not True and overwrite is not False:
        raise TypeError(f"save_sweep: `overwrite` is {overwrite!r}, expected True or False")
    from matplotlib import rc_context

    out = os.fspath(out)
    ending = os.path.splitext(out)[1]
    if ending in ENDINGS and len(drawn) > 1:
        raise ValueError(f"plot: `out` is the file '{out}' for {len(drawn)} plots, expected a folder, or options that leave one plot")
    if ending in ENDINGS:
        paths = [out]
    else:
        if out:
            os.makedirs(out, exist_ok=True)
        paths = [os.path.join(out, name + ".png") for name, _ in drawn]
    done = []
    with rc_context(STYLE):
        for (_, figure), path in zip(drawn, paths):
            if overwrite or not os.path.exists(path):
                figure.savefig(path, dpi=150, metadata=ENDINGS[os.path.splitext(path)[1]])
                done.append((path, True))
            else:
                done.append((path, False))
    return done


def _main_sweep(options):
    filters = []
    for text in options.filter:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise ValueError(f"plot: `filter` is '{text}', expected key=value, as in dtype=bf16")
        filters.append((key, value))
    split = [[word for text in texts for word in text.split(",")] for texts in (options.kernel, options.metric, options.mode)]
    new_figure = None
    if options.display:
        from matplotlib import pyplot

        if pyplot.get_backend().lower() in ("agg", "svg", "pdf", "ps", "cairo", "template"):
            raise ModuleNotFoundError(f"`display` is asked for and matplotlib has the backend {pyplot.get_backend()}, expected one with windows (MPLBACKEND)")
        new_figure = pyplot.figure
    drawn = sweep_figures(read_sweep(options.csv), *split, filters, options.gpu, options.note, new_figure)
    for path, written in save_sweep(drawn, options.out, options.overwrite):  # before they are shown: what a window has drawn is gone when it closes
        print("wrote" if written else "kept", path, *[] if written else ["(--overwrite draws it again)"])
    if options.display:
        pyplot.show()


def main(arguments=None):
    """The command. Its exit code is as that of others: 2 for bad input, 3 without matplotlib. `arguments`: words; None: those of the process."""
    _check("main", "arguments", arguments, (list, tuple, type(None)), "a list of words, or None")
    for i, word in enumerate(arguments or ()):
        _check("main", f"arguments[{i}]", word, str, "a str")
    parser = argparse.ArgumentParser("quern plot", description="Draws a CSV of `quern bench`: the times of each op, floors, and peers over quern; or of a sweep: a plot for each kernel, metric, mode, config and GPU.")
    parser.add_argument("csv", help="what `quern bench --csv` wrote")
    parser.add_argument("--note", default="", help="stands in the titles, as the commit that was measured")
    parser.add_argument("-o", "--out", default="", help="file that ends in .svg, .png or .pdf (default: here, the name of the CSV with .svg); several ops are a file each. Of a sweep: the folder of the plots (default: here), or the file of one")
    cases = parser.add_argument_group("of a CSV of cases")
    cases.add_argument("--op", default="", help="only this op or family")
    sweep = parser.add_argument_group("of a CSV of a sweep")
    for name, what in (("kernel", "op"), ("metric", "metric: speed, memory"), ("mode", "mode: forward, backward, full")):
        sweep.add_argument("--" + name, action="append", default=[], help=f"only this {what}; several with commas")
    sweep.add_argument("--filter", action="append", default=[], metavar="KEY=VALUE", help="only rows of that config (dtype=bf16, tokens=4096) or provider; again: all must hold")
    sweep.add_argument("--gpu", default="", help="only this GPU")
    sweep.add_argument("--overwrite", action="store_true", help="draw plots again whose files are there")
    sweep.add_argument("--display", action="store_true", help="show the plots, when they are saved")
    options = parser.parse_args(arguments)
    try:
        of_sweep = is_sweep(options.csv)
        for name in ("op",) if of_sweep else ("kernel", "metric", "mode", "filter", "gpu", "overwrite", "display"):
            if getattr(options, name):
                raise ValueError(f"plot: `{name}` is given for {options.csv}, a CSV of {'a sweep' if of_sweep else 'cases'}, expected one of {'cases' if of_sweep else 'a sweep'}")
        if of_sweep:
            _main_sweep(options)
            return 0
        drawn = figures(read(options.csv), options.op, options.note)
        for path in save(drawn, options.out or os.path.splitext(os.path.basename(options.csv))[0] + ".svg"):
            print("wrote", path)
        return 0
    except ModuleNotFoundError as e:
        said = str(e) if "expected" in str(e) else f"{e}, expected matplotlib: pip install matplotlib"
        print(f"quern: plot: {said}", file=sys.stderr)
        return 3
    except (ValueError, OSError, csv.Error) as e:
        print(f"quern: value error: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
