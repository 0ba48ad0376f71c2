# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""`quern plot`: draws a CSV of `quern bench` (docs/benchmarks.md). Needs matplotlib and nothing else of this package, so it also runs as a script."""
import argparse
import collections
import csv
import itertools
import math
import os
import re
import sys
import textwrap

WORDS = ("op", "case", "kernel", "device", "timer", "cold", "provider", "version", "ok", "message")
NUMBERS = ("median_us", "p10_us", "p90_us", "floor_us", "copy_us", "runs", "sm_clock_mhz")
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
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = csv.reader(file)
        columns = next(lines, [])
        for column in WORDS + NUMBERS:
            if column not in columns:
                got = textwrap.shorten(", ".join(columns), 300) or "none"
                raise ValueError(f"plot: `{path}` has the columns {got}, expected {column} among them, as in what `quern bench --csv` writes")
        rows = []
        for fields in lines:
            if len(fields) != len(columns):
                raise ValueError(f"plot: `{path}` has {len(fields)} fields in line {lines.line_num}, expected {len(columns)}")
            rows.append(row := dict(zip(columns, fields)))
            for name in NUMBERS:
                if not re.fullmatch(r"(\d+\.?\d*(e[+-]?\d+)?)?", row[name]):
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


def save(drawn, path):
    """Writes what figures() returned and returns the paths: `path`, or of several figures a file each, with its name before the ending.
    ValueError for another ending than .svg, .png and .pdf, OSError where a file cannot be written."""
    _check("save", "path", path, (str, os.PathLike), "a path: a str or an os.PathLike")
    _check("save", "drawn", drawn, (list, tuple), "what figures() returned")
    for i, pair in enumerate(drawn):
        _check("save", f"drawn[{i}]", pair, tuple, "a name and a figure, as figures() returned them")
        if len(pair) != 2 or not isinstance(pair[0], str) or not hasattr(pair[1], "savefig"):
            raise ValueError(f"save: `drawn[{i}]` is a tuple of {len(pair)}, expected a name and a figure, as figures() returned them")
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


def main(arguments=None):
    """The command. Its exit code is as that of others: 2 for bad input, 3 without matplotlib. `arguments`: words; None: those of the process."""
    _check("main", "arguments", arguments, (list, tuple, type(None)), "a list of words, or None")
    for i, word in enumerate(arguments or ()):
        _check("main", f"arguments[{i}]", word, str, "a str")
    parser = argparse.ArgumentParser("quern plot", description="Draws a CSV of `quern bench`: the times of each op, floors, and peers over quern.")
    parser.add_argument("csv", help="what `quern bench --csv` wrote")
    parser.add_argument("--op", default="", help="only this op or family")
    parser.add_argument("--note", default="", help="stands in the titles, as the commit that was measured")
    parser.add_argument("-o", "--out", default="", help="file that ends in .svg, .png or .pdf (default: here, the name of the CSV with .svg); several ops are a file each")
    options = parser.parse_args(arguments)
    try:
        drawn = figures(read(options.csv), options.op, options.note)
        for path in save(drawn, options.out or os.path.splitext(os.path.basename(options.csv))[0] + ".svg"):
            print("wrote", path)
        return 0
    except ModuleNotFoundError as e:
        print(f"quern: plot: {e}, expected matplotlib: pip install matplotlib", file=sys.stderr)
        return 3
    except (ValueError, OSError, csv.Error) as e:
        print(f"quern: value error: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
