"""The thesis' measures on a small graph: every table is written, and says what the runs did."""

from __future__ import annotations

import os

import numpy as np
import pytest
from written_files import rows

import atos_py as atos
from atos_py.errors import VerificationError
from atos_py.models.papers import nsight_compute, onyx_algorithms, onyx_folds, onyx_references
from atos_py.models.papers import reproduce_onyx as onyx
from atos_py.models.papers.turns import Options

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
    files = onyx.reproduce_onyx(tmp_path / "new", [("road12", graph)], Options(repeat=1)).files
    tables = "table-7.2.csv", "table-7.4.csv", "figure-7.3.csv", "figure-7.4.csv"
    assert {path.name for path in files} == {*tables, "onyx.md", "onyx-claims.csv", "onyx-runs.csv"}
    table = {row["run"]: row for row in rows(tmp_path / "new" / "table-7.2.csv")}
    assert set(table) == {f"{algorithm} {mode}" for algorithm in of_its_own for mode in onyx.MODES}
    assert all(float(row["milliseconds"]) > 0 for row in table.values())
    for algorithm in of_its_own:
        work = [int(table[f"{algorithm} {mode}"]["edge_operations"]) for mode in ("FA/CD", "FA/NCD")]
        assert 0 < work[0] <= work[1] + graph.num_edges  # all sums once more at the end
    assert {row["run"] for row in rows(tmp_path / "new" / "figure-7.3.csv")} == {"edges k=3 FA", "edges k=3 NFA"}
    folds = [row["run"] for row in rows(tmp_path / "new" / "figure-7.4.csv")]
    assert folds == [f"{what} {fold}" for what in ("LP vertices", "BP edges") for fold in onyx_folds.FOLDS]
    systems = rows(tmp_path / "new" / "table-7.4.csv")
    assert [row["algorithm"] for row in systems] == ["LP", "LP", "ALS", "ALS", "BP", "BP"]
    assert [row["system"] for row in systems] == ["atos_py, FA/CD", "SciPy, CPU"] * 3
    assert all(float(row["milliseconds"]) > 0 and float(row["residual"]) >= 0 for row in systems)


def test_a_wrong_result_of_a_mode_is_noticed():
    reference = onyx_references.Reference(np.ones((2, 2)), lambda x: x / 2)
    measured = onyx_algorithms.Measured(1.0, 2, np.full((2, 2), 0.9))
    assert onyx._run_mode(lambda *_: measured, "FA/CD", reference) == {"milliseconds": 1.0, "edge_operations": 2}
    with pytest.raises(VerificationError, match="the result in the mode FA/CD changes by"):
        onyx._run_mode(lambda *_: measured._replace(result=np.full((2, 2), 2.0)), "FA/CD", reference)


@pytest.mark.parametrize("fold", onyx_folds.FOLDS)
def test_folds(device, fold):
    """Each proves its result; a vertex without neighbors and a hub are among the vertices."""
    graph = atos.Graph.from_edges([0] * 40, range(1, 41), num_vertices=42, symmetrize=True, device=device)
    assert onyx_folds.vertex_maps(graph, fold) > 0
    assert onyx_folds.edge_maps(graph, fold) > 0
    with pytest.raises(VerificationError, match="the labels are not those of the formula: one differs by 1"):
        onyx_folds._check("labels", np.ones(3), np.zeros(3))


def test_counters_that_are_refused_are_noted(tmp_path, monkeypatch):
    graph, runs = atos.generate.road(4, device="cpu"), {f"counted BP {mode}" for mode in onyx.MODES}
    refusals: dict[str, str] = {}
    monkeypatch.setattr(onyx, "command_of_profiler", lambda: None)
    assert onyx._count_in_turns(graph, 1, Options().progress, "road4", refusals) == {}
    assert refusals == dict.fromkeys(runs, "Nsight Compute, the command `ncu`, is not installed.")
    (tmp_path / "ncu").write_text(PROFILER)
    (tmp_path / "ncu").chmod(0o755)
    (tmp_path / "counts.csv").write_text("==ERROR== ERR_NVGPUCTRPERM\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(onyx, "command_of_profiler", lambda: "ncu")
    assert onyx._count_in_turns(graph, 1, Options().progress, "road4", refusals) == {}
    assert all("ERR_NVGPUCTRPERM" in refusals[run] for run in runs)
    (tmp_path / "counts.csv").write_text(COUNTS)
    counted = onyx._count_in_turns(graph, 2, Options().progress, "road4", {})
    assert set(counted) == runs
    assert all([turn["atomic_transactions"] for turn in turns] == [1034, 1034] for turns in counted.values())


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
    graph = atos.generate.rmat(12, device="cuda")
    refusals: dict[str, str] = {}
    counted = onyx._count_in_turns(graph, 1, Options().progress, "rmat12", refusals)
    assert not refusals
    unaware, aware = (counted[f"counted BP {mode}"][0] for mode in ("NFA/NCD", "FA/NCD"))
    assert unaware["launches"] == aware["launches"] >= 2 * onyx_algorithms.ITERATIONS
    assert 0 < aware["load_sectors"] < unaware["load_sectors"]
    assert min(aware["load_efficiency"], unaware["load_efficiency"]) > 0
    assert min(aware["atomic_transactions"], unaware["atomic_transactions"]) > 0
