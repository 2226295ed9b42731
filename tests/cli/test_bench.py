"""The benchmark: every combination is run and verified, a wrong run fails it, and reports stay with their machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from repository import ROOT

import atos_py as atos
from atos_py.__main__ import main
from atos_py.algorithms import registry
from atos_py.cli import bench
from atos_py.compile.linker import CORE_DIR
from atos_py.tools import workloads
from atos_py.tools.machine import measure_peak, read_device_facts
from atos_py.tools.report import HEADER, Report, Row

CPU = ["--device", "cpu", "--repeat", "2"]
ROW = {"algorithm": "bfs", "graph": "g", "device": "cpu", "options": {}, "milliseconds": [1.5]}
WRONG_ROWS = [
    {"devices": {}, "versions": {}, "graphs": [], "rows": [ROW | change]}
    for change in ({"options": []}, {"graph": 3}, {"milliseconds": ["a"]}, {"milliseconds": [np.nan]}, {"milliseconds": 1})
]


def run(tmp_path: Path, *arguments: str) -> tuple[int, Report]:
    out = tmp_path / "report.json"
    code = main(["bench", *CPU, "--json", str(out), *arguments])
    return code, Report.load(out)


class TestCommand:
    def test_every_combination(self, tmp_path):
        code, report = run(
            tmp_path, "--algorithm", "bfs", "--graph", "rmat:6:4", "road:8", "--fetch-size", "8", "32", "--persistent", "1", "0"
        )
        assert code == 0
        assert len(report.rows) == 2 * 2 * 2
        assert {(r.options["fetch_size"], r.options["persistent"]) for r in report.rows} == {
            (f, p) for f in (8, 32) for p in (True, False)
        }
        for row in report.rows:
            assert len(row.milliseconds) == len(row.call_milliseconds) == 2
            assert row.launch["fetch_size"] == row.options["fetch_size"]
            assert row.result["reached"] <= row.launch["tasks_run"]

    def test_every_algorithm_with_its_own_options(self, tmp_path):
        given = ["--algorithm", *registry.find_algorithms(), *workloads.SCHEDULER, "--graph", "rmat:6:4", "--size", "500"]
        code, report = run(tmp_path, *given, "--order", "degree", "--tolerance", "1e-3", "--find", "push", "--worker", "warp")
        assert code == 0
        rows = {row.algorithm: row for row in report.rows}
        assert list(rows) == [*workloads.SCHEDULER, *registry.find_algorithms()]
        assert rows["tree"].launch["tasks_run"] == rows["chain"].launch["tasks_run"] == 500
        assert rows["pagerank"].options == {"worker": "warp", "tolerance": 1e-3, "find": "push"}
        assert rows["pagerank"].result["error"] <= 1e-3
        assert rows["color"].options == {"worker": "warp", "order": "degree"}
        assert rows["bfs"].options == {"worker": "warp"}

    def test_markdown_has_every_row(self, tmp_path, capsys):
        out = tmp_path / "report.md"
        assert main(["bench", *CPU, "--graph", "rmat:5:4", "--algorithm", "bfs", "color", "--markdown", str(out)]) == 0
        lines = out.read_text().splitlines()
        table = [line for line in lines if line.startswith("| ")]
        assert len(table) == 2 + 2
        assert all(line.replace("\\|", "").count("|") == len(HEADER) + 1 for line in table)
        assert any("rmat:5:4: 32 vertices" in line and "times its size" in line for line in lines)
        assert "rmat:5:4: 32 vertices" in capsys.readouterr().out

    def test_a_heading_names_the_columns_of_each_graph(self, tmp_path, capsys):
        out = tmp_path / "report.json"
        given = ["--algorithm", "tree", "bfs", "pagerank", "--size", "500", "--graph", "rmat:5:4", "road:8:1"]
        given += ["--fetch-size", "8", "512", "--find", "push", "--json", str(out)]
        assert main(["bench", *CPU, *given]) == 0
        lines = capsys.readouterr().out.splitlines()
        headings = [line for line in lines if line.startswith("algorithm ")]
        assert len(headings) == 3
        assert set(headings) == {headings[0]}
        columns = [(found[0], *found.span()) for found in re.finditer(r"\S+( \S+)*", headings[0])]
        assert tuple(name for name, _, _ in columns) == HEADER
        rows = [line for line in lines if line.startswith(("tree ", "bfs ", "pagerank "))]
        cells = [row.cells() for row in Report.load(out).rows]
        assert len(rows) == len(cells) == 2 + 2 * 2 * 2
        for line, row in zip(rows, cells, strict=True):
            for cell, (name, begin, end) in zip(row, columns, strict=True):
                is_number = name in HEADER[4:9]
                assert cell == (line[end - len(cell) : end] if is_number else line[begin : begin + len(cell)])

    def test_a_wrong_run_fails(self, tmp_path, monkeypatch):
        true = atos.bfs

        def wrong(graph, source, **options):
            result = true(graph, source, **options)
            result.depth[source] = 1
            return result

        monkeypatch.setitem(registry._registered, "bfs", replace(registry.find_algorithms()["bfs"], run=wrong))
        code, report = run(tmp_path, "--algorithm", "bfs", "--graph", "rmat:5:4")
        assert code == 1
        assert "is a source" in report.rows[0].failure
        assert report.rows[0].cells()[-1].startswith("NO: ")

    def test_tuned_settings_are_used_and_overruled(self, tmp_path, monkeypatch):
        monkeypatch.setattr(bench, "tuned", lambda name, graph: {"fetch_size": 16, "num_blocks": 1})
        _, report = run(tmp_path, "--algorithm", "bfs", "--graph", "rmat:5:4", "--tuned", "--fetch-size", "64")
        assert report.rows[0].options == {"fetch_size": 64, "num_blocks": 1}

    @pytest.mark.parametrize("bad", [["--repeat", "0"], ["--size", "0"], ["--graph", "rmat:x"], ["--against", "nothing.json"]])
    def test_what_cannot_be_done(self, bad, capsys):
        assert main(["bench", "--device", "cpu", "--algorithm", "bfs", "--graph", "rmat:5:4", *bad]) == 2
        assert capsys.readouterr().err.startswith("atos_py: ")


class TestMeasure:
    def test_a_setting_that_cannot_run_is_skipped(self):
        def refuse(**_options):
            raise atos.LaunchConfigError("too many blocks")

        row = bench.measure(Row("x", "g", "cpu", {}), workloads.Workload(refuse, lambda *_: {}), atos.device("cpu"), 3)
        assert (row.skipped, row.failure, row.milliseconds) == ("too many blocks", "", [])
        assert row.cells()[-1] == "cannot run: too many blocks"

    def test_a_tree_of_another_size_is_wrong(self):
        tree = workloads.make_scheduler_workload("tree", 100, "cpu")
        stats = tree.run(fetch_size=4)
        assert tree.verify(stats, {}) == {}
        with pytest.raises(atos.VerificationError, match="101 tasks ran"):
            tree.verify(replace(stats, tasks_run=101), {})

    def test_pagerank_is_held_to_the_tolerance_asked_for(self):
        graph = atos.generate.rmat(6, 4, device="cpu")
        workload = workloads.bind_algorithm(registry.find_algorithms()["pagerank"], graph, 0)
        result = workload.run(tolerance=1e-2)
        workload.verify(result, {"tolerance": 1e-2})
        result.rank[...] = np.full(64, 1 / 64, np.float32)
        with pytest.raises(atos.VerificationError):
            workload.verify(result, {"tolerance": 1e-2})

    def test_a_result_that_equals_the_one_proved_before_is_right(self):
        graph = atos.generate.rmat(6, 4, device="cpu")
        algorithm, proofs = registry.find_algorithms()["connected_components"], []

        def prove(*given):
            proofs.append(given)
            return algorithm.verify(*given)

        workload = workloads.bind_algorithm(replace(algorithm, verify=prove), graph, 0)
        numbers = [workload.verify(workload.run(**options), {}) for options in ({}, {}, {"worker": "warp"})]
        assert numbers[0] == numbers[1] == numbers[2]
        assert len(proofs) == 1
        result = workload.run()
        workload.verify(result, {"worker": "warp"})
        assert len(proofs) == 2
        result.label[5] += 1
        with pytest.raises(atos.VerificationError):
            workload.verify(result, {"worker": "warp"})


class TestAgainst:
    def test_ratios_of_the_same_settings(self, tmp_path, capsys):
        out = tmp_path / "old.json"
        given = ["--algorithm", "bfs", "--graph", "rmat:5:4"]
        assert main(["bench", *CPU, *given, "--fetch-size", "8", "--json", str(out)]) == 0
        old = json.loads(out.read_text())
        old["rows"][0]["milliseconds"] = [1e9, 1e9]
        out.write_text(json.dumps(old))
        capsys.readouterr()
        assert main(["bench", *CPU, *given, "--fetch-size", "8", "16", "--against", str(out)]) == 0
        ratios = [line for line in capsys.readouterr().out.splitlines() if "times as long" in line]
        assert len(ratios) == 1
        assert "fetch 8" in ratios[0]
        assert ratios[0].endswith(": 0.000 times as long")

    def test_what_is_no_report_is_refused(self, tmp_path, capsys):
        out = tmp_path / "old.json"
        out.write_text('{"devices": [1], "versions": {}, "graphs": [], "rows": []}')
        assert main(["bench", *CPU, "--graph", "rmat:5:4", "--against", str(out)]) == 2
        assert "is not a report of this command" in capsys.readouterr().err

    @pytest.mark.parametrize("devices", [{}, {"cpu": {"name": "another", "processors": 2}}])
    def test_another_machine_is_refused_before_anything_runs(self, devices, tmp_path, capsys):
        out = tmp_path / "old.json"
        out.write_text(Report(devices, {}).to_json())
        assert main(["bench", *CPU, "--graph", "rmat:5:4", "--against", str(out)]) == 2
        captured = capsys.readouterr()
        assert "was not measured on this machine" in captured.err
        assert captured.out == ""

    @pytest.mark.parametrize(
        "content",
        [
            *("", "[]", "{}", "[" * 100_000, '{"devices": {}, "versions": {}, "graphs": [], "rows": [{"a": 1}]}'),
            '{"devices": {"cpu": {"name": "x"}}, "versions": {}, "graphs": [], "rows": []}',
            '{"devices": {"cpu": "x"}, "versions": {}, "graphs": [], "rows": []}',
            *map(json.dumps, WRONG_ROWS),
        ],
        ids=lambda content: content[:80],
    )
    def test_what_is_no_report(self, content, tmp_path):
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(atos.InvalidArgumentError, match="not a report"):
            Report.load(tmp_path / "x.json")

    def test_a_time_of_nothing_has_no_ratio(self, tmp_path):
        rows = [Row("bfs", "g", "cpu", {}, [ms]) for ms in (1.5, 0.0)]
        devices = {"cpu": {"name": "a CPU", "processors": 2}}
        new, old = (Report(devices, {}, [], [row]) for row in rows)
        assert list(new.compare(old, tmp_path)) == ["bfs g cpu : 1.500 ms, was 0.000"]


class TestMemory:
    @pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.dtype([("a", "i8"), ("b", "i8")])])
    def test_a_launch_takes_at_most_32_mb_beside_the_slots(self, dtype, device):
        queue = atos.Queue(10, dtype=dtype, device=device)
        taken = queue.launch_warp(nothing).overhead_bytes
        assert 1000 < taken <= 32e6
        queue.resize(1 << 16)
        assert queue.launch_warp(nothing).overhead_bytes == taken
        assert queue.launch_warp(nothing, trace=100).overhead_bytes > taken

    def test_peak_of_what_is_made(self):
        made, peak = measure_peak(lambda: np.ones(1 << 22))
        assert made.nbytes == 1 << 25
        assert peak is None or 0.95 * (1 << 25) <= peak < 1 << 27

    def test_peak_of_what_is_gone_again(self):
        made, peak = measure_peak(lambda: float(np.ones(1 << 23).sum()))
        assert made == 1 << 23
        assert peak is None or peak >= 0.95 * (1 << 26)

    @pytest.mark.parametrize("spec", ["rmat:16:16", "road:1400:0.62"])
    def test_generators_take_at_most_three_times_the_graph(self, spec, tmp_path):
        _, report = run(tmp_path, "--algorithm", "bfs", "--graph", spec, "--repeat", "1")
        graph = report.graphs[0]
        assert graph.host_peak_bytes is None or graph.csr_bytes <= 1.1 * graph.host_peak_bytes <= 3.3 * graph.csr_bytes

    def test_facts_name_the_model(self, device):
        facts = read_device_facts(device)
        assert facts["processors"] == device.processors
        assert facts["name"]
        assert ("driver" in facts) == (device.kind == "cuda")


@atos.task
def nothing(worker, v):
    pass


def test_what_a_launch_costs_is_printed():
    """By `benchmarks/launch.py`: a row for each worker and schedule, and for each algorithm on the graph."""
    script = ROOT / "benchmarks" / "launch.py"
    command = [sys.executable, script, "--device", "cpu", "--graph", "rmat:6:4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split(" | ")[0] for line in done.stdout.splitlines()[2:]]
    assert len(rows) == 12
    assert rows[-3:] == ["| bfs of rmat:6:4", "| pagerank of rmat:6:4", "| color of rmat:6:4"]


@pytest.mark.parametrize("link", [False, True])
def test_what_a_first_call_takes_is_printed(link, tmp_path):
    """By `benchmarks/first_use.py`: a row for each call, which compiled something the first time and nothing again."""
    if link:
        pytest.importorskip("cuda.core", reason="cuda-core is not installed")
        pytest.importorskip("cuda.core")
        if not any(CORE_DIR.glob("core_*.fatbin")):
            pytest.skip("the core was built without GPU support")
    script = ROOT / "benchmarks" / "first_use.py"
    command = [sys.executable, script, "--call", "bfs", "--scale-free", "rmat:6:4", "--mesh", "road:6", "--repeat", "1"]
    command += ["--json", tmp_path / "told.json", *(["--link", "sm_90"] if link else ["--device", "cpu"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()
    assert len({row.count("|") for row in rows}) == 1
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| bfs, scale-free", "| bfs, mesh", "| bfs, directed"]
    for told in json.loads((tmp_path / "told.json").read_text()):
        first, again = told["first"], told["again"]
        assert first["tasks"] == again["tasks"]
        assert first["typing"] > again["typing"] == 0
        assert (first["links"] >= len(first["tasks"]), again["links"]) == (link, 0)
