"""The thesis' measures on a small graph: every table is written, and says what the runs did."""

from __future__ import annotations

import csv

import atos_py as atos
from atos_py.tools import reproduce_onyx as onyx


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_every_mode_of_every_algorithm_ran(tmp_path, monkeypatch):
    """In two of the four modes, since each takes programs of its own."""
    monkeypatch.setattr(onyx, "_FEATURES", (3,))
    monkeypatch.setattr(onyx, "MODES", {mode: onyx.MODES[mode] for mode in ("FA/NCD", "FA/CD")})
    graph = atos.generate.road(12, device="cpu")
    of_its_own = {name: run for name, run in onyx._algorithms(graph).items() if name in ("LP", "ALS", "BP")}
    monkeypatch.setattr(onyx, "_algorithms", lambda graph: of_its_own)  # the others call functions that have tests
    files = onyx.reproduce_onyx(tmp_path / "new", [("road12", graph)], repeat=1)
    assert {path.name for path in files} == {"table-7.2.csv", "figure-7.3.csv", "figure-7.4.csv", "memory.csv"}
    table = rows(tmp_path / "new" / "table-7.2.csv")
    modes = {(row["algorithm"], row["mode"]): row for row in table}
    assert set(modes) == {(algorithm, mode) for algorithm in of_its_own for mode in onyx.MODES}
    assert all(float(row["milliseconds"]) > 0 for row in table)
    for algorithm in of_its_own:
        work = [int(modes[algorithm, mode]["edge_operations"]) for mode in ("FA/CD", "FA/NCD")]
        assert 0 < work[0] <= work[1] + graph.num_edges  # all sums once more at the end
    assert {(row["k"], row["mode"]) for row in rows(tmp_path / "new" / "figure-7.3.csv")} == {("3", "FA"), ("3", "NFA")}
    assert [row["folded"] for row in rows(tmp_path / "new" / "figure-7.4.csv")] == ["False", "True"]
