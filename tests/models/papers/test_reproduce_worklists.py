"""The measures of data-driven and topology-driven programs on a small graph: every table and figure, and what the runs did."""

from __future__ import annotations

import numpy as np
import pytest
from written_files import check_pictures, rows

import atos_py as atos
from atos_py.__main__ import main
from atos_py.errors import VerificationError
from atos_py.graph.spec import graph_of
from atos_py.models.papers import reproduce_worklists as paper
from atos_py.models.papers import worklist_hybrids as hybrids
from atos_py.models.papers import worklist_scan as scan
from atos_py.models.papers.turns import Options
from atos_py.runtime.stats import COUNTED


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A part of the measures, since each kernel has to be compiled."""
    out = tmp_path_factory.mktemp("worklists")
    some = {
        "figure5": paper.MEASURES["figure5"]._replace(programs=("SSSP",)),
        "figure7": paper.MEASURES["figure7"],
        "figure8": paper.MEASURES["figure8"]._replace(
            variants={
                name: paper.MEASURES["figure8"].variants[name] for name in ("nothing kept", "prefix sums", "fixed blocks")
            }
        ),
        "figure9": paper.MEASURES["figure9"],
        "figure10": paper.MEASURES["figure10"]._replace(programs=("SSSP",)),
        "streams": paper.MEASURES["streams"],
        "figure11": paper.MEASURES["figure11"]._replace(programs=("SSSP",)),
        "figure12": paper.MEASURES["figure12"]._replace(programs=("SSSP, spatial",)),
        "figure13": paper.MEASURES["figure13"],
        "figure14": paper.MEASURES["figure14"],
    }
    graphs = [("road", atos.generate.road(20, 1.0, device="cpu"))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "MEASURES", some)
        return out, paper.reproduce_worklists(out, graphs, Options(repeat=1)).files


def test_tables_and_figures_are_there(written):
    out, files = written
    names = {"runs.csv", "figure5.csv", "figure5.md", "figure7.md", "figure7.csv", "figure11.md", "figure14.md"}
    assert {path.name for path in files} >= names
    assert all(path.stat().st_size > 50 for path in files)
    assert "growing" in (out / "figure14.md").read_text()


def test_pictures(written):
    pytest.importorskip("matplotlib")
    check_pictures(
        written[1],
        {
            f"{name}.png"
            for name in (
                *("figure5", "figure7_road", "figure8", "figure9", "figure10", "figure11", "figure12", "figure13", "figure14"),
                "streams",
            )
        },
    )


def test_rows_say_what_ran(written):
    runs = {(row["measure"], row["program"], row["variant"]): row for row in rows(written[0] / "runs.csv")}
    swept = {variant: int(runs["figure5", "SSSP", variant]["sweeps"]) for variant in ("data", "topology")}
    assert swept["data"] == 0
    assert swept["topology"] == int(runs["figure5", "SSSP", "topology"]["rounds"]) > 3
    shares = [int(runs["figure11", "SSSP", share]["sweeps"]) for share in ("10%", "120%")]
    assert shares[0] >= shares[1]
    partitions = [int(runs["figure12", "SSSP, spatial", f"r = {size}"]["tasks_run"]) for size in (1, 2, 10)]
    assert partitions[0] > partitions[2] > 0
    counted = {variant: runs["figure10", "SSSP", variant] for variant in ("rounds", "relaxed")}
    assert [counted[variant][name] for variant in counted for name in COUNTED] == ["0"] * 8  # of a thread without priorities
    assert int(runs["figure10", "SSSP", "ordered"]["local_items"]) > 100
    assert runs["figure5", "SSSP", "data"]["local_items"] == ""
    rounds = rows(written[0] / "figure7.csv")
    assert {(row["variant"], row["filter"] == "none") for row in rounds} == {("data", False), ("topology", True)}


def test_all_measures_have_programs_and_notes():
    for measure in paper.MEASURES.values():
        assert set(measure.programs) <= set(paper.PROGRAMS)
        assert measure.note.endswith(".")


def test_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(paper, "MEASURES", {"figure7": paper.MEASURES["figure7"]})
    arguments = ["--paper", "worklists", "--graph", "road:5:1.0", "--device", "cpu", "--repeat", "1", "--out", str(tmp_path)]
    assert main(["reproduce", *arguments]) == 0
    assert str(tmp_path / "figure7.md") in capsys.readouterr().out


@pytest.mark.parametrize(("passes", "is_combined"), [(0, False), (hybrids.TOPOLOGY, False), (1, False), (2, True), (5, True)])
def test_trees_are_summed_up(device, passes, is_combined):
    for bodies in (1, 2, 3000):
        total, stats = hybrids.sum_up_tree(bodies, device, passes, is_combined)
        hybrids.verify_tree(bodies, total)
        assert stats.launches == (2 if passes and not is_combined else 1)
    total[0, 0] += 1
    with pytest.raises(VerificationError, match="1 cells have wrong sums, the first of them cell 0"):
        hybrids.verify_tree(3000, total)


def test_pre_passes_leave_less_to_do(device):
    """Each adds a level from below, so that as many as there are levels leave nothing to push."""
    left = [hybrids.sum_up_tree(3000, device, passes, False)[1].tasks_run_by.get("gather", 0) for passes in (0, 1, 2, 20)]
    assert sorted(left, reverse=True) == left
    assert left[0] > left[1] > 0 == left[-1]


@pytest.mark.parametrize("graph", ["rmat:6", "road:40:0.7"])
def test_lists_by_prefix_sums(device, graph):
    """They find shortest paths, and each round ends with an empty list of marks."""
    given = graph_of(graph, device=device)
    weighted, source = given.with_weights(atos.generate.random_weights(given, 1, 64)), int(given.degrees().argmax())
    distance, stats = scan.search_by_prefix_sums(weighted, source)
    atos.verify_sssp(weighted, source, distance)
    assert stats.launches % 3 == 0
    assert stats.tasks_run > np.count_nonzero(np.isfinite(distance))


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_partitions_find_shortest_paths(device, size):
    graph = atos.generate.rmat(6, device=device)
    weighted = graph.with_weights(atos.generate.random_weights(graph, 1, 64))
    source = int(graph.degrees().argmax())
    distance, stats = hybrids.search_by_partitions(weighted, source, size)
    atos.verify_sssp(weighted, source, distance)
    assert stats.rounds > 1
