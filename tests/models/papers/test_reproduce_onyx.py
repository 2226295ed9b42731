"""The thesis' measures on a small graph: every table is written, and says what the runs did."""

from __future__ import annotations

import os

import numpy as np
import pytest
from written_files import rows

import atos_py as atos
from atos_py.models.papers import nsight_compute, onyx_algorithms, onyx_references
from atos_py.models.papers import reproduce_onyx as onyx

PROFILER = """#!/bin/sh
for word in "$@"; do
  if [ "$before" = --log-file ]; then log=$word; fi
  before=$word
done
{ echo "==PROF== Connected to process 1"; cat "$(dirname "$0")/counts.csv"; } > "$log"
"""
COUNTS = """\
"ID","Kernel Name","{}"
"","","","","sector","%"
"0","atos_kernel","1,000","24","3,000","50"
"1","atos_kernel","0","10","1,000","100"
""".format('","'.join((*nsight_compute._ATOMICS, nsight_compute._SECTORS, nsight_compute._USED)))


def test_every_mode_of_every_algorithm_ran(tmp_path, monkeypatch):
    """In two of the four modes, since each takes programs of its own."""
    monkeypatch.setattr(onyx, "_FEATURES", (3,))
    monkeypatch.setattr(onyx, "MODES", {mode: onyx.MODES[mode] for mode in ("FA/NCD", "FA/CD")})
    graph = atos.generate.road(12, device="cpu")
    all_algorithms = onyx_algorithms.algorithms_on(graph, onyx_algorithms.inputs_of(graph))
    of_its_own = {name: all_algorithms[name] for name in ("LP", "ALS", "BP")}
    monkeypatch.setattr(onyx, "algorithms_on", lambda *_: of_its_own)  # the others call functions that have tests
    files = onyx.reproduce_onyx(tmp_path / "new", [("road12", graph)], repeat=1)
    assert {path.name for path in files} == {
        *("table-7.2.csv", "table-7.4.csv", "mapping.csv", "figure-7.3.csv", "figure-7.4.csv", "memory.csv")
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
    systems = rows(tmp_path / "new" / "table-7.4.csv")
    assert [row["algorithm"] for row in systems] == ["LP", "LP", "ALS", "ALS", "BP", "BP"]
    assert [row["system"] for row in systems] == ["atos_py, FA/CD", "SciPy, CPU"] * 3
    assert all(float(row["milliseconds"]) > 0 and float(row["residual"]) >= 0 for row in systems)


@pytest.mark.parametrize("name", ["LP", "ALS", "BP", "MMR", "MML"])
def test_what_stays_the_same_for_one_does_for_the_reference(name, monkeypatch):
    """Both go on until nothing changes."""
    monkeypatch.setattr(onyx_algorithms, "ITERATIONS", 400)
    monkeypatch.setattr(onyx_algorithms, "_EPSILON", 1e-6)
    graph = atos.generate.road(6, device="cpu")
    inputs = onyx_algorithms.inputs_of(graph)
    reference = onyx_references.references_on(graph, inputs)[name]()
    found = onyx_algorithms.algorithms_on(graph, inputs)[name](True, False).result.to_numpy().astype(np.float64)
    assert reference.residual(reference.start) > 0.05
    assert reference.residual(found) < 2e-5
    if name != "ALS":  # which has many such states
        state = reference.start
        for _ in range(400):
            state = reference.step(state)
        np.testing.assert_allclose(found, state, atol=1e-3)


@pytest.mark.parametrize("name", ["ALS", "BP"])
def test_all_are_numbers_where_vertices_have_many_edges(name, device):
    graph = atos.generate.rmat(13, device=device).to_symmetric()
    inputs = onyx_algorithms.inputs_of(graph)
    reference = onyx_references.references_on(graph, inputs)[name]()
    found = onyx_algorithms.algorithms_on(graph, inputs)[name](True, False).result.to_numpy()
    assert reference.residual(found.astype(np.float64)) < reference.residual(reference.start) < np.inf


def test_counts_of_a_profiler(tmp_path, monkeypatch):
    (tmp_path / "ncu").write_text(PROFILER)
    (tmp_path / "ncu").chmod(0o755)
    (tmp_path / "counts.csv").write_text(COUNTS)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert nsight_compute.count("") == nsight_compute.Counts(2, 1034, 4000, 0.625)
    (tmp_path / "counts.csv").write_text("==ERROR== ERR_NVGPUCTRPERM\n")
    with pytest.raises(atos.DeviceError, match=r"(?s)counted nothing .*ERR_NVGPUCTRPERM"):
        nsight_compute.count("")


def test_what_a_profiled_process_runs(tmp_path, monkeypatch):
    graph = atos.generate.road(4, device="cpu")
    graph.save(tmp_path / "graph.npz")
    ran = []
    monkeypatch.setattr(onyx, "algorithms_on", lambda loaded, _: {"LP": lambda *mode: ran.append((loaded.num_edges, mode))})
    onyx.profiled_run(str(tmp_path / "graph.npz"), "cpu", "LP", "FA/NCD")
    assert ran == [(graph.num_edges, (True, False))]


@pytest.mark.gpu
def test_a_profiler_counts_fewer_sectors_with_feature_aware_mapping(monkeypatch):
    if nsight_compute.command_of_profiler() is None:
        pytest.skip("there is no Nsight Compute")
    monkeypatch.setattr(onyx, "MODES", {mode: onyx.MODES[mode] for mode in ("NFA/NCD", "FA/NCD")})
    every = onyx.algorithms_on
    monkeypatch.setattr(onyx, "algorithms_on", lambda *args: {"BP": every(*args)["BP"]})
    graph = atos.generate.rmat(12, device="cuda")
    unaware, aware = onyx._profile("rmat12", graph, lambda steps, *_: steps)
    assert unaware["launches"] == aware["launches"] >= 2 * onyx_algorithms.ITERATIONS
    assert 0 < aware["load_sectors"] < unaware["load_sectors"]
    assert min(aware["load_efficiency"], unaware["load_efficiency"]) > 0
    assert min(aware["atomic_transactions"], unaware["atomic_transactions"]) > 0


def test_sectors_of_a_warp():
    """With 4 features, 32 threads that have an edge each touch 32 sectors for a feature; as teams, one for each edge."""
    far = 2 * np.arange(64, dtype=np.uint32)  # targets that share no sector
    assert onyx._sectors_of_edge(far, 4, False) == 4
    assert onyx._sectors_of_edge(far, 4, True) == 1
    assert onyx._sectors_of_edge(far, 128, False) == 128
    assert onyx._sectors_of_edge(far, 128, True) == 16  # the least: all bytes of a sector are used
    assert onyx._sectors_of_edge(np.zeros(64, np.uint32), 4, False) == 4 / 32  # one vertex for all
    assert onyx._sectors_of_edge(np.zeros(5, np.uint32), 4, True) == 0  # no full warp
