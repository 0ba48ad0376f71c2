# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""`quern plot`: what is drawn is what the CSV says, for each CSV of bench/results; files that bench did not write are refused."""
import collections
import csv
import os
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import pytest

matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")

from quern import plot  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = os.path.join(ROOT, "bench", "results", "h200")
BENCHED = ("bench", "fused_fp8", "gemm_layouts", "gemm_peer", "host", "layer")
OTHERS = ("conform", "flashinfer_fp8", "gemm_torch", "grouped", "python_host")
ROW = {"op": "norm.rms_norm", "case": "hidden=96 tokens=3", "kernel": "norm_row", "device": "NVIDIA H200", "timer": "CUPTI activity", "cold": "1", "runs": "200", "median_us": "4", "p10_us": "3",
       "p90_us": "5", "floor_us": "2", "copy_us": "", "provider": "quern", "sm_clock_mhz": "1980", "version": "0.1.0", "ok": "1", "message": ""}
PEER = {**ROW, "provider": "peer", "median_us": "6", "p10_us": "6", "p90_us": "6"}


def path_of(name):
    return os.path.join(RESULTS, name + ".csv")


def rows_of(name):
    with open(path_of(name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def written(folder, *rows):
    path = os.path.join(str(folder), "rows.csv")
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def drawn(*rows, folder, **options):
    return plot.figures(plot.read(written(folder, *rows)), **options)


def labelled(axis):
    """Points (value, shape) of each line of the legend; the marks of providers lie beside their shape's row."""
    return {line.get_label(): sorted((x, round(y)) for x, y in zip(*line.get_data())) for line in axis.lines if not line.get_label().startswith("_")}


def spreads(axis):
    return sorted((low, high, round(y)) for line in axis.lines if line.get_linestyle() == "-" and len(line.get_xdata()) % 3 == 0
                  for low, high, y in zip(line.get_xdata()[::3], line.get_xdata()[1::3], line.get_ydata()[::3]))


def text_of(svg):
    return ["".join(e.itertext()) for e in xml.etree.ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]


def case_of(figure, at):
    """All words of a shape: those of its label over those that are said once."""
    label = figure.axes[0].get_yticklabels()[at].get_text()
    said = [line for line in figure.get_suptitle().splitlines()[2:]]
    return " ".join(said), "" if label == "as above" else label


@pytest.mark.parametrize("name", BENCHED)
def test_all_figures_are_those_of_the_csv(name):
    rows = rows_of(name)
    figures = plot.figures(plot.read(path_of(name)))
    assert [op for op, _ in figures] == list(dict.fromkeys(row["op"] for row in rows))
    for op, figure in figures:
        of_op = [row for row in rows if row["op"] == op]
        cases = list(dict.fromkeys(row["case"] for row in of_op))
        times, *beside = figure.axes
        assert len(times.get_yticklabels()) == len(cases)
        points = labelled(times)
        for label, column in (("floor", "floor_us"), ("copy of as many bytes", "copy_us")):
            assert points.pop(label, []) == sorted({(float(row[column]), cases.index(row["case"])) for row in of_op if row[column]})
        timed = [row for row in of_op if row["median_us"]]
        assert timed and sorted(p for line in points.values() for p in line) == sorted((float(row["median_us"]), cases.index(row["case"])) for row in timed)
        assert spreads(times) == sorted((float(row["p10_us"]), float(row["p90_us"]), cases.index(row["case"])) for row in timed if row["p10_us"])
        assert {label.split(",")[0] for label in points} == {row["provider"] for row in timed}
        own = {row["case"]: float(row["median_us"]) for row in timed if row["provider"] == "quern"}
        peers = collections.defaultdict(list)
        for row in timed:
            if row["provider"] != "quern":
                peers[row["provider"] + " / quern"].append((float(row["median_us"]) / own[row["case"]], cases.index(row["case"])))
        assert [labelled(axis) for axis in beside] == [{label: sorted(points) for label, points in peers.items()}] * bool(peers)


@pytest.mark.parametrize("name", BENCHED)
def test_labels_tell_each_shape(name):
    """Its label and what is said once make up the case; a word that others lack is in the label."""
    rows = rows_of(name)
    for op, figure in plot.figures(plot.read(path_of(name))):
        cases = list(dict.fromkeys(row["case"] for row in rows if row["op"] == op))
        seen = [case_of(figure, at) for at in range(len(cases))]
        assert len(set(seen)) == len(cases)
        for case, (said, label) in zip(cases, seen):
            for word in case.split():
                assert word in label.split() or word in said.split() and word.split("=")[0] not in (w.split("=")[0] for w in label.split()), (case, label)


def test_series_that_differ_in_timer_or_l2_stand_apart():
    (_, figure), = plot.figures(plot.read(path_of("layer")), op="layer")
    assert set(labelled(figure.axes[0])) == {"floor", "quern, L2 cold, CUDA events", "quern, L2 hot, CUDA events", "quern, L2 hot, wall clock"}


def test_title_says_how_it_was_timed(tmp_path):
    (_, figure), = drawn(ROW, {**PEER, "case": "hidden=96 tokens=4", "sm_clock_mhz": "1785", "runs": "15"}, folder=tmp_path, note="commit 1234567")
    first, second, third = figure.get_suptitle().splitlines()
    assert first == "norm.rms_norm on NVIDIA H200" and third == "hidden=96"
    assert second == "median, 10 and 90 % of 15 to 200 runs, L2 cold, CUPTI activity, SM clock 1785 to 1980 MHz, quern 0.1.0, commit 1234567"
    assert len(figure.axes) == 1  # no shape has both


def test_wrong_and_missing_figures_are_said(tmp_path):
    wrong = {**PEER, "ok": "0", "message": "`out` [0] is 3"}
    (_, figure), = drawn(ROW, wrong, {**PEER, "case": "hidden=96 tokens=4", "median_us": "", "p10_us": "", "p90_us": "", "timer": "", "runs": "0", "message": "takes 3 only"}, folder=tmp_path)
    times, = figure.axes  # nothing is told of a wrong result's time
    assert labelled(times)["peer, WRONG"] == [(6.0, 0)] and labelled(times)["quern"] == [(4.0, 0)]
    assert len(drawn({**ROW, "ok": "0"}, wrong, folder=tmp_path)[0][1].axes) == 1
    assert figure.get_supxlabel().splitlines() == ["peer: norm_row", "peer: wrong for 1 shapes: `out` [0] is 3", "peer: no figure for 1 shapes: takes 3 only"]


def test_ratios_are_of_times_taken_alike(tmp_path):
    hot = {**PEER, "cold": "0", "median_us": "1"}
    (_, figure), = drawn(ROW, PEER, hot, folder=tmp_path)
    assert labelled(figure.axes[1]) == {"peer / quern": [(1.5, 0)]}


def test_what_is_timed_twice_is_drawn_twice(tmp_path):
    (_, figure), = drawn(ROW, {**ROW, "median_us": "5"}, folder=tmp_path)
    assert labelled(figure.axes[0])["quern"] == [(4.0, 0), (5.0, 1)]


def test_nothing_timed(tmp_path):
    (_, figure), = drawn({**ROW, "median_us": "", "p10_us": "", "p90_us": "", "floor_us": "", "message": "no GPU"}, folder=tmp_path)
    assert "no GPU" in figure.get_supxlabel() and not figure.axes[0].lines


def test_many_shapes_are_several_figures(tmp_path):
    rows = [{**ROW, "case": f"tokens={i + 1}", "median_us": str(i + 1)} for i in range(130)]
    figures = drawn(*rows, folder=tmp_path)
    assert [name for name, _ in figures] == ["norm.rms_norm.1", "norm.rms_norm.2", "norm.rms_norm.3"]
    assert [p[0] for _, figure in figures for p in labelled(figure.axes[0])["quern"]] == list(range(1, 131))
    assert sorted(os.path.basename(p) for p in plot.save(figures, str(tmp_path / "a.svg"))) == [f"a.norm.rms_norm.{i}.svg" for i in (1, 2, 3)]


@pytest.mark.parametrize("ending, magic", [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_files(tmp_path, ending, magic):
    out = str(tmp_path / f"a.{ending}")
    written_twice = []
    for _ in range(2):
        assert plot.save(drawn(ROW, PEER, folder=tmp_path), out) == [out]
        with open(out, "rb") as file:
            written_twice.append(file.read())
    assert written_twice[0].startswith(magic) and written_twice[0] == written_twice[1]


def test_names_of_files_stay_in_the_folder(tmp_path):
    paths = plot.save(drawn(ROW, {**ROW, "op": "/../../b"}, folder=tmp_path), str(tmp_path / "a.svg"))
    assert {os.path.dirname(p) for p in paths} == {str(tmp_path)} and all(os.path.exists(p) for p in paths)


def test_svg_has_every_shape_and_provider(tmp_path):
    out = str(tmp_path / "a.svg")
    drawn_ = plot.figures(plot.read(path_of("gemm_peer")))
    plot.save(drawn_, out)
    text = text_of(out)
    labels = [label.get_text() for label in drawn_[0][1].axes[0].get_yticklabels()]
    assert len(labels) == len({row["case"] for row in rows_of("gemm_peer")}) and set(labels) <= set(text)
    assert {"floor", "quern", "cublaslt", "cublaslt / quern"} <= set(text)


def test_text_is_no_formula(tmp_path):
    out = str(tmp_path / "a.svg")
    plot.save(drawn({**ROW, "case": "x=$a_b$ y=1"}, {**ROW, "case": r"x=$\bad y=1"}, folder=tmp_path), out)
    assert {"x=$a_b$", r"x=$\bad"} <= set(text_of(out))


def command(*arguments):
    program = shutil.which("quern", path=os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
    return subprocess.run([program, "plot", *arguments], capture_output=True, text=True)


def test_command_chooses_ops_and_families(tmp_path, capsys):
    for op, names in (("norm", ["norm.fused_add_rms_norm", "norm.rms_norm", "norm.rms_norm_backward"]), ("rope.rope_inplace", [""])):
        assert plot.main([path_of("bench"), "--op", op, "-o", str(tmp_path / op) + ".svg"]) == 0
        paths = [str(tmp_path / op) + (f".{name}" if name else "") + ".svg" for name in names]
        assert capsys.readouterr().out.splitlines() == [f"wrote {path}" for path in paths] and all(os.path.exists(path) for path in paths)


def test_command_writes_here_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert plot.main([path_of("gemm_layouts")]) == 0 and os.listdir(tmp_path) == ["gemm_layouts.svg"]


@pytest.mark.parametrize("name", OTHERS)
def test_files_that_bench_did_not_write(name, capsys):
    with open(path_of(name), encoding="utf-8") as file:
        columns = file.readline().strip().replace(",", ", ")
    missing = "case" if name == "python_host" else "op"
    assert plot.main([path_of(name)]) == 2
    assert capsys.readouterr().err == f"quern: value error: plot: `{path_of(name)}` has the columns {columns}, expected {missing} among them, as in what `quern bench --csv` writes\n"


@pytest.mark.parametrize("text, said", [("", "has the columns none, expected op"), ("\0\xff\n", "expected op among them")])
def test_files_that_are_no_csv(tmp_path, text, said, capsys):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode("latin-1"))
    assert plot.main([str(path)]) == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize("change, said", [({"median_us": "fast"}, "median_us=fast in line 3, expected a number or nothing"), ({"p10_us": "nan"}, "p10_us=nan"), ({"p90_us": "-1"}, "p90_us=-1"),
                                          ({"floor_us": "inf"}, "floor_us=inf"), ({"runs": "x"}, "runs=x"), ({"sm_clock_mhz": "1.5.5"}, "sm_clock_mhz=1.5.5")])
def test_bad_numbers(tmp_path, change, said):
    with pytest.raises(ValueError, match=said):
        plot.read(written(tmp_path, ROW, {**ROW, **change}))


def test_bad_rows(tmp_path):
    path = written(tmp_path, ROW)
    with pytest.raises(ValueError, match="has 0 rows, expected at least 1"):
        with open(path, encoding="utf-8") as file:
            header = file.readline()
        (tmp_path / "b.csv").write_text(header)
        plot.read(str(tmp_path / "b.csv"))
    with open(path, "a", encoding="utf-8") as file:
        file.write("norm.rms_norm,tokens=4\n")
    with pytest.raises(ValueError, match=f"has 2 fields in line 3, expected {len(ROW)}"):
        plot.read(path)


def test_bad_arguments(tmp_path, capsys):
    for arguments, said in (([path_of("bench"), "--op", "gemm.dens"], "`op` is 'gemm.dens', expected one of activation.silu_and_mul, attention.decode_paged, gemm.k_grouped, gemm.scaled,"),
                            ([path_of("bench"), "-o", "a.txt"], "`out` is 'a.txt', expected a name that ends in .svg, .png, .pdf"),
                            ([str(tmp_path / "none.csv")], "none.csv"), ([path_of("gemm_peer"), "-o", str(tmp_path / "no" / "a.svg")], "a.svg")):
        assert plot.main(arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith("quern: value error: ") and said in error, error


def test_without_matplotlib(tmp_path):
    """As a script, in an interpreter that does not find it."""
    result = subprocess.run([sys.executable, "-S", plot.__file__, path_of("gemm_peer")], capture_output=True, text=True, cwd=tmp_path, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
    assert result.returncode == 3 and result.stderr == "quern: plot: No module named 'matplotlib', expected matplotlib: pip install matplotlib\n", result.stderr
    assert os.listdir(tmp_path) == []


def test_figures_of_the_documents_are_current(tmp_path):
    """Those of docs/figures are what the commands beside them draw: the same words, and marks at the same places."""
    with open(os.path.join(ROOT, "docs", "benchmarks.md"), encoding="utf-8") as file:
        commands = [shlex.split(line) for line in file if line.startswith("quern plot ") and "docs/figures/" in line]
    figures = os.path.join(ROOT, "docs", "figures")
    assert commands and sorted(c[-1] for c in commands) == sorted("docs/figures/" + name for name in os.listdir(figures))
    for _, _, source, *options, out in commands:
        new, old = str(tmp_path / "new.svg"), os.path.join(ROOT, out)
        assert command(os.path.join(ROOT, source), *options, new).returncode == 0
        assert text_of(new) == text_of(old) and os.path.getsize(old) < 100_000

        def marks(path):
            return [float(e.get(axis)) for e in xml.etree.ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}use") for axis in "xy"]

        assert marks(new) == pytest.approx(marks(old), abs=0.01) and marks(new)
