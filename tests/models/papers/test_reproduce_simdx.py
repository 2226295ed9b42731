"""The measures of SIMD-X on small graphs: every table and figure is written, and says what the runs did."""

from __future__ import annotations

import pytest
from written_files import check_pictures, rows

import atos_py as atos
from atos_py.__main__ import main
from atos_py.errors import InvalidArgumentError
from atos_py.models.papers import reproduce_simdx as paper
from atos_py.models.papers.turns import Options

NAMES = ("figure7", "figure8a", "figure8b", "figure12", "table2")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A part of the measures, since each kernel has to be compiled."""
    out = tmp_path_factory.mktemp("simd-x")
    some = {name: paper.MEASURES[name]._replace(programs=("BFS",)) for name in ("figure8a", "figure8b", "figure12", "table2")}
    fused = some["figure12"].variants
    some["figure12"] = some["figure12"]._replace(variants={name: fused[name] for name in ("direction", "all")})
    some["figure7"] = paper.MEASURES["figure7"]._replace(programs=("BFS",))
    graphs = [("star", atos.Graph.from_edges([0] * 5000, range(1, 5001), symmetrize=True, device="cpu"))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "MEASURES", some)
        return out, paper.reproduce_simdx(out, graphs, Options(repeat=1)).files


def test_tables_and_figures_are_there(written):
    _, files = written
    assert {path.name for path in files} >= {"runs.csv", *(f"{name}.{kind}" for name in NAMES for kind in ("csv", "md"))}
    assert all(path.stat().st_size > 50 for path in files)


def test_pictures(written):
    pytest.importorskip("matplotlib")
    check_pictures(written[1], {"figure7_star.png", "figure8a.png", "figure8b.png", "figure12.png"})


def test_rows_say_what_ran(written):
    runs = {(row["measure"], row["program"], row["variant"]): row for row in rows(written[0] / "runs.csv")}
    launches = {name: int(runs["figure12", "BFS", name]["launches"]) for name in ("direction", "all")}
    assert launches["all"] == 1 <= launches["direction"]
    ballots = [int(runs["figure8a", "BFS", str(threshold)]["ballots"]) for threshold in (0, 1, 4, 16)]
    assert ballots == [1, 1, 1, 0]  # for 5,000 leaves
    tasks = [int(runs["figure8b", "BFS", name]["tasks_run"]) for name in ("off", "on")]
    assert tasks[1] <= tasks[0]  # the online filter has counted the leaves, and pushed none
    pattern = [row for row in rows(written[0] / "figure7.csv") if row["program"] == "BFS"]
    assert [(row["filter"], int(row["frontier"])) for row in pattern] == [("online", 1), ("online", 5000)]
    assert "%)" in (written[0] / "figure8b.md").read_text()
    table = [(row["measure"], row["variant"], row["launches"]) for row in rows(written[0] / "table2.csv")]
    assert table == [("table2", name, str(launches[name])) for name in ("direction", "all")]
    assert "0, 1 |" in (written[0] / "table2.md").read_text()


def test_all_measures_have_programs_and_notes():
    for measure in paper.MEASURES.values():
        assert set(measure.programs) <= set(paper.PROGRAMS)
        assert measure.note.endswith(".")


def test_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(paper, "MEASURES", {"figure7": paper.MEASURES["figure7"]._replace(programs=("BFS",))})
    arguments = ["--paper", "simd-x", "--graph", "road:5:1.0", "--device", "cpu", "--repeat", "1", "--out", str(tmp_path)]
    assert main(["reproduce", *arguments]) == 0
    assert str(tmp_path / "figure7.md") in capsys.readouterr().out


def test_what_cannot_be_measured_is_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="'nothing' has no vertices"):
        paper.reproduce_simdx(tmp_path, [("nothing", atos.generate.road(0, device="cpu"))])
