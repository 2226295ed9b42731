"""The thesis' measures on a small graph: every table is written, and says what the runs did."""

from __future__ import annotations

import numpy as np
from written_files import rows

import atos_py as atos
from atos_py.tools import reproduce_onyx as onyx


def test_every_mode_of_every_algorithm_ran(tmp_path, monkeypatch):
    """In two of the four modes, since each takes programs of its own."""
    monkeypatch.setattr(onyx, "_FEATURES", (3,))
    monkeypatch.setattr(onyx, "MODES", {mode: onyx.MODES[mode] for mode in ("FA/NCD", "FA/CD")})
    graph = atos.generate.road(12, device="cpu")
    of_its_own = {name: run for name, run in onyx._algorithms(graph).items() if name in ("LP", "ALS", "BP")}
    monkeypatch.setattr(onyx, "_algorithms", lambda graph: of_its_own)  # the others call functions that have tests
    files = onyx.reproduce_onyx(tmp_path / "new", [("road12", graph)], repeat=1)
    assert {path.name for path in files} == {
        *("table-7.2.csv", "figures-7.1-7.2.csv", "figure-7.3.csv", "figure-7.4.csv", "memory.csv")
    }
    table = rows(tmp_path / "new" / "table-7.2.csv")
    modes = {(row["algorithm"], row["mode"]): row for row in table}
    assert set(modes) == {(algorithm, mode) for algorithm in of_its_own for mode in onyx.MODES}
    assert all(float(row["milliseconds"]) > 0 for row in table)
    for algorithm in of_its_own:
        work = [int(modes[algorithm, mode]["edge_operations"]) for mode in ("FA/CD", "FA/NCD")]
        assert 0 < work[0] <= work[1] + graph.num_edges  # all sums once more at the end
    assert {(row["k"], row["mode"]) for row in rows(tmp_path / "new" / "figure-7.3.csv")} == {("3", "FA"), ("3", "NFA")}
    assert [row["folded"] for row in rows(tmp_path / "new" / "figure-7.4.csv")] == ["False", "True"]


def test_sectors_of_a_warp():
    """With 4 features, 32 threads that have an edge each touch 32 sectors for a feature; as teams, one for each edge."""
    far = 2 * np.arange(64, dtype=np.uint32)  # targets that share no sector
    assert onyx._sectors_of_edge(far, 4, False) == 4
    assert onyx._sectors_of_edge(far, 4, True) == 1
    assert onyx._sectors_of_edge(far, 128, False) == 128
    assert onyx._sectors_of_edge(far, 128, True) == 16  # the least: all bytes of a sector are used
    assert onyx._sectors_of_edge(np.zeros(64, np.uint32), 4, False) == 4 / 32  # one vertex for all
    assert onyx._sectors_of_edge(np.zeros(5, np.uint32), 4, True) == 0  # no full warp
