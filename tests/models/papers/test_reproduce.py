"""The paper's measures on a small graph: every table and figure is written, and says what the runs did."""

from __future__ import annotations

import numpy as np
import pytest
from written_files import rows

import atos_py as atos
from atos_py.__main__ import main
from atos_py.errors import InvalidArgumentError
from atos_py.models.papers import reproduce as paper
from atos_py.models.papers.claims import names_of_runs
from atos_py.models.papers.claims_atos import CLAIMS
from atos_py.models.papers.turns import Options
from atos_py.runtime import trace as tracing


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Everything measured once, on two graphs of a few hundred vertices."""
    out = tmp_path_factory.mktemp("paper")
    graphs = [("rmat8", atos.generate.rmat(8, device="cpu")), ("road20", atos.generate.road(20, device="cpu"))]
    return out, paper.reproduce(out, graphs, Options(repeat=1)).files


def test_every_variant_of_every_algorithm_ran(written):
    out, _ = written
    runs = rows(out / "runs.csv")
    assert {(r["algorithm"], r["graph"], r["variant"]) for r in runs} == {
        (a, g, v) for a in paper.list_runs() for g in ("rmat8", "road20") for v in paper.VARIANTS
    }
    assert all(float(r["milliseconds"]) > 0 and int(r["tasks_run"]) > 0 for r in runs)


def test_tables_and_figures_are_there(written):
    out, files = written
    assert {path.name for path in files} >= {"table1.md", "table4.md", "permutation.md", "heatmap.csv", "runs.csv"}
    assert all(path.stat().st_size > 100 for path in files)
    assert sum("PageRank" in line for line in (out / "table1.md").read_text().splitlines()) == 4
    bsp = [line for line in (out / "table1.md").read_text().splitlines() if "BFS" in line]
    assert len(bsp) == 2
    assert all("(x1.00)" in line for line in bsp)


def test_the_workload_ratio_counts_vertices(written):
    out, _ = written
    runs = {(r["algorithm"], r["graph"], r["variant"]): r for r in rows(out / "runs.csv")}
    text = (out / "table4.md").read_text().splitlines()
    lines = [line.strip("| ").split(" | ") for line in text if "rmat8" in line or "road20" in line]
    ratios = {(algorithm, graph): list(map(float, cells)) for algorithm, graph, *cells in lines}
    assert len(ratios) == 6
    assert {algorithm for algorithm, _ in ratios} == {"BFS", "PageRank by vertex", "coloring"}
    for graph in ("rmat8", "road20"):
        for algorithm in ("BFS", "PageRank by vertex"):
            assert ratios[algorithm, graph][0] == 1
        assert all(ratio >= 1 for ratio in ratios["coloring", graph])  # every vertex is assigned a color, and checked
        ranked = runs["PageRank by vertex", graph, "BSP"]
        assert int(ranked["tasks_run"]) > int(ranked["vertices"]) - int(ranked["isolated"])


def test_what_was_measured_is_there_when_the_rest_is_cut_short(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(paper, "_time_cell", interrupt)
    with pytest.raises(KeyboardInterrupt):
        paper.reproduce(tmp_path, [("road12", atos.generate.road(12, device="cpu"))], Options(repeat=1))
    assert len(rows(tmp_path / "runs.csv")) == len(paper.list_runs()) * len(paper.VARIANTS)
    assert "BFS | road12" in (tmp_path / "table1.md").read_text()
    assert {"throughput.csv", "table4.md"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0.100"), (2, "2.00"), (16.849, "16.8"), (112.0, "112"), (999.7, "1000"), (12345.6, "12346")]
)
def test_numbers_have_three_digits(value, text):
    assert tracing.format_digits(value) == text


def test_figures_are_pictures(written):
    pytest.importorskip("matplotlib")
    pictures = [path for path in written[1] if path.suffix == ".png"]
    assert len(pictures) == 4
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


def test_throughput_adds_up_to_the_tasks_run():
    trace = np.zeros(5, dtype=[("milliseconds", "f8"), ("tasks_run", "i8"), ("waiting", "i8")])
    trace["milliseconds"] = [0, 1, 2, 3, 4]
    trace["tasks_run"] = [0, 1000, 3000, 3000, 4000]
    middles, rates = tracing.compute_throughput(trace)
    assert len(middles) == len(rates)
    assert np.isclose(np.sum(rates) * (4 / len(rates)) * 1e3, 4000)


def test_permuting_ids_keeps_the_graph():
    graph = atos.generate.rmat(8, device="cpu")
    other = paper.permute_vertices(graph)
    assert sorted(other.degrees()) == sorted(graph.degrees())
    assert not np.array_equal(other.indices.to_numpy(), graph.indices.to_numpy())


def test_the_command_line(tmp_path, capsys):
    atos.generate.road(12, device="cpu").save(tmp_path / "tiny.npz")
    files = ["--out", str(tmp_path / "out"), "--graph", str(tmp_path / "tiny.npz")]
    assert main(["reproduce", *files, "--quick", "--device", "cpu", "--repeat", "2"]) == 0
    said = capsys.readouterr().out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"atos.md", "atos-claims.csv", "atos-runs.csv"}
    assert "not decided     bfs-mesh-persistent on tiny: There are 2 pairs of runs; 10 are needed." in said
    assert "not applicable  bfs-mesh-warps: " in said
    runs = rows(tmp_path / "out" / "atos-runs.csv")
    assert {run["run"] for run in runs} == names_of_runs(CLAIMS, "cpu")
    assert [run["turn"] for run in runs if run["run"] == "BFS/BSP"] == ["0", "1"]
    assert all(float(run["milliseconds"]) > 0 for run in runs)


def test_what_cannot_be_measured_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"repeat must be from 1 .* \(got 0\)"):
        paper.reproduce(tmp_path, [], Options(repeat=0))
    with pytest.raises(InvalidArgumentError, match="'nothing' has no vertices"):
        paper.reproduce(tmp_path, [("nothing", atos.generate.road(0, device="cpu"))])
