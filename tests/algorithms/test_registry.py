"""The registry: an algorithm in one module of its own is found by every command, and by the tests of the documents."""

from __future__ import annotations

import inspect
import json
import re
import sys
from dataclasses import fields

import numpy as np
import pytest

import atos_py as atos
from atos_py import algorithms
from atos_py.__main__ import main
from atos_py.algorithms.registry import Algorithm, Option, find_algorithms, register
from atos_py.cli import find_commands
from atos_py.cli.options import LAUNCH
from atos_py.models.papers import reproduce

MODULE = '''
"""Degrees of all vertices plus a number: one module, which nothing else names."""
from typing import NamedTuple

import numpy as np

import atos_py as atos
from atos_py.algorithms.registry import Option, register


@atos.task
def count(worker, v, indptr, found, shift):
    found[v] = indptr[v + 1] - indptr[v] + shift


class Result(NamedTuple):
    degree: atos.Array
    stats: atos.LaunchStats


def shifted(graph, *, shift=0, wrong=False, worker="thread", **launch_options):
    found = atos.zeros(graph.num_vertices, dtype=np.int64, device=graph.device)
    queue = atos.Queue(graph.num_vertices, device=graph.device)
    queue.push(np.arange(graph.num_vertices))
    stats = getattr(queue, f"launch_{worker}")(count, graph.indptr, found, shift + wrong, **launch_options)
    return Result(found, stats)


def verify(graph, result, options):
    if not np.array_equal(result.degree.to_numpy() - options["shift"], graph.degrees()):
        raise atos.VerificationError("a degree is wrong")
    return {"checked": graph.num_vertices, "part": 0.5}


register(
    run=shifted,
    verify=verify,
    describe=lambda result: {"largest": int(result.degree.to_numpy().max())},
    arrays=lambda result: {"degree": result.degree},
    help="add a number to degrees",
    description="Adds a number to the degree of every vertex.",
    examples=("rmat:8 --shift 3",),
    options={"shift": Option("the number", int), "wrong": Option("fail", convert=None)},
    defaults={"shift": 2},
    tunable=lambda graph: {"shift": (0, graph.num_vertices)},
    paper={"Degrees": {"shift": 1}},
)
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A package of algorithms with one more module."""
    monkeypatch.setattr(algorithms, "__path__", [*algorithms.__path__, str(tmp_path / "more")])
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path / "cache"))
    before = find_algorithms()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "shifted.py").write_text(MODULE)
    assert "shifted" not in before
    yield find_algorithms()["shifted"]
    registered = sys.modules["atos_py.algorithms.registry"]._registered
    registered.pop("shifted", None)
    sys.modules.pop("atos_py.algorithms.shifted", None)
    if hasattr(algorithms, "shifted"):
        del algorithms.shifted


def told(capsys, *arguments):
    code = main([*arguments, "--device", "cpu", "--json", "-"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out), captured.err


@pytest.mark.usefixtures("toy")
class TestOneModuleIsEnough:
    def test_for_a_command(self, tmp_path, capsys):
        out = tmp_path / "degree.npy"
        code, found, said = told(capsys, "shifted", "road:8:1", "--shift", "5", "--fetch-size", "8", "--out", str(out))
        assert (code, found["verified"]) == (0, True)
        assert found["result"] == {"largest": 9, "checked": 64, "part": 0.5}
        assert found["options"] == {"fetch_size": 8, "shift": 5, "wrong": False}
        assert said.splitlines()[-2].endswith("largest 9, checked 64, part 0.5; verified")
        assert np.load(out).min() == 7
        code, found, _ = told(capsys, "shifted", "road:8:1", "--wrong")
        assert (code, found["failure"]) == (1, "a degree is wrong")

    def test_for_help(self, capsys):
        with pytest.raises(SystemExit, match="0"):
            main(["--help"])
        assert re.search(r"^ *shifted +add a number to degrees$", capsys.readouterr().out, re.MULTILINE)
        with pytest.raises(SystemExit, match="0"):
            main(["shifted", "--help"])
        text = capsys.readouterr().out
        assert "  atos shifted rmat:8 --shift 3" in text
        assert "--source" not in text

    def test_for_bench(self, capsys):
        given = ["--algorithm", "shifted", "bfs", "--graph", "road:8:1", "--repeat", "1", "--shift", "0", "3"]
        code, found, said = told(capsys, "bench", *given)
        assert code == 0
        assert [row["options"] for row in found["rows"]] == [{"shift": 0}, {"shift": 3}, {}]
        assert said.count("checked 64, part 5.00e-01") == 2
        code, found, _ = told(capsys, "bench", "--graph", "road:4:1", "--repeat", "1")
        assert [row["algorithm"] for row in found["rows"]] == list(find_algorithms())

    def test_for_tune(self, capsys):
        code, found, _ = told(capsys, "tune", "--algorithm", "shifted", "--graph", "road:8:1", "--budget", "0.5")
        assert code == 0
        assert "shift" in found["table"][0]

    def test_for_reproduce(self, toy):
        assert reproduce.list_runs()["Degrees"] == (toy, {"shift": 1})

    def test_no_name_is_given_twice(self, toy):
        with pytest.raises(atos.InvalidArgumentError, match="an algorithm named 'shifted' is registered already"):
            register(**vars(toy))


class TestEntries:
    def test_every_algorithm_is_a_public_function(self):
        for name, entry in find_algorithms().items():
            assert getattr(atos, name) is entry.run
            assert entry.run.__name__ == name  # by which `tuned` finds it

    def test_every_algorithm_has_a_public_verifier(self):
        modules = {entry.run.__module__.rpartition(".")[0] for entry in find_algorithms().values()}
        verifiers = [getattr(atos, name).__module__ for name in atos.__all__ if name.startswith("verify_")]
        assert modules == {each.rpartition(".")[0] for each in verifiers if each.startswith("atos_py.algorithms")}

    def test_options_are_those_of_the_function(self):
        graph = atos.generate.road(4, device="cpu")
        for entry in find_algorithms().values():
            parameters = inspect.signature(entry.run).parameters
            assert {*entry.options, *entry.defaults, *entry.tunable(graph)} <= set(parameters)
            assert ("source" in parameters) == entry.has_source
            launch = {*atos.LaunchOptions.__annotations__, *LAUNCH}
            assert not launch & {*entry.options, *entry.tunable(graph)}
            for options in entry.paper.values():
                assert options.keys() <= entry.options.keys()

    def test_what_is_tuned_is_searched_on_the_graphs_that_it_is_for(self):
        bfs = find_algorithms()["bfs"]
        assert bfs.tunable(atos.generate.road(4, device="cpu")) == {"direction": ("push", "auto")}
        assert bfs.tunable(atos.Graph.from_edges([0], [1], device="cpu")) == {}

    def test_methods_of_pagerank(self):
        pagerank = find_algorithms()["pagerank"]
        assert pagerank.tunable(atos.generate.road(4, device="cpu")) == {"find": ("sweep", "gather", "push")}
        assert pagerank.tunable(atos.Graph.from_edges([0], [1], device="cpu")) == {"find": ("sweep", "push")}

    def test_options_of_one_name_are_the_same(self):
        options: dict[str, Option] = {}
        for entry in find_algorithms().values():
            for name, option in entry.options.items():
                assert options.setdefault(name, option) == option

    def test_every_algorithm_has_a_command(self):
        assert set(find_algorithms()) < set(find_commands())

    def test_weights_of_files_are_for_those_that_read_them(self, tmp_path, capsys):
        path = str(tmp_path / "detour.npz")
        atos.Graph.from_edges([0, 1, 0], [1, 2, 2], [2, 3, 9], device="cpu").save(path)
        for name, farthest in (("sssp", {"reached": 3, "farthest": 5}), ("bfs", {"reached": 3, "levels": 2})):
            code, found, _ = told(capsys, name, path, "--source", "0")
            assert (code, found["result"]) == (0, farthest)
        code, found, _ = told(capsys, "bench", "--algorithm", "bfs", "sssp", "--graph", path, "--repeat", "1", "--source", "0")
        assert [row["result"] for row in found["rows"]] == [{"reached": 3, "levels": 2}, {"reached": 3, "farthest": 5}]
        code, found, _ = told(capsys, "shortest_path_lengths", path, "--weighted")
        assert (code, found["options"]["weighted"]) == (0, True)
        assert told(capsys, "tune", "--algorithm", "sssp", "--graph", path, "--budget", "0.2")[0] == 0

    def test_attributes_are_described(self):
        assert [each.name for each in fields(Algorithm) if each.name not in str(Algorithm.__doc__)] == []
