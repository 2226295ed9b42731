"""Tuning: the fastest setting is found and remembered, what cannot run is skipped, and the time is kept."""

from __future__ import annotations

import csv
import itertools
import os
import random
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import atos_py as atos
from atos_py.__main__ import main
from atos_py.algorithms import registry
from atos_py.graph import signature
from atos_py.runtime.stats import LaunchStats
from atos_py.support import disk_cache as disk
from atos_py.tools import tuning_search
from atos_py.tools.tune import choose_space

STATS = LaunchStats(
    tasks_run=1, tasks_pushed=0, milliseconds=1.0, rounds=1, task="t", device="cpu", worker="cta", fetch_size=8,
    persistent=True, barrier=False, num_blocks=1, num_threads=256, num_workers=1,
)  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache directory of each test's own."""
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def graph():
    return atos.generate.rmat(7, 8, device="cpu")


def model(cost, calls=None):
    """Return a run whose time is `cost(**options)`."""

    def run(**options):
        if calls is not None:
            calls.append(options)
        return replace(STATS, milliseconds=cost(**options))

    return run


class TestSearch:
    @given(st.data())
    @settings(max_examples=40, deadline=None)
    def test_finds_the_best_of_a_space_that_it_can_run_through(self, data):
        sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        space = {f"option_{i}": list(range(1, size + 1)) for i, size in enumerate(sizes)}
        cost = {}

        def time_of(**options):
            return cost.setdefault(tuple(options.values()), data.draw(st.floats(0.1, 10)))

        tuning = atos.tune(model(time_of), space=space, device="cpu")
        assert len(cost) == len(tuning.table) <= 64
        assert tuning.milliseconds == min(cost.values())
        assert time_of(**tuning.best) == tuning.milliseconds
        assert tuning.finished

    def test_climbs_beyond_the_settings_that_it_begins_with(self):
        space = {name: range(6) for name in "abcd"}  # 1,296 of them, of which 128 are looked at first
        calls = []
        tuning = atos.tune(model(lambda **o: 30 - sum(o.values()), calls), space=space, device="cpu")
        assert tuning.best == dict.fromkeys("abcd", 5)
        assert len(tuning.table) < 300
        assert calls[1] == dict.fromkeys("abcd", 0)

    def test_good_settings_run_more_often(self):
        tuning = atos.tune(model(lambda x: x), space={"x": [3, 1, 4, 2, 8, 6, 7, 5]}, device="cpu")
        assert [row["x"] for row in tuning.table] == [1, 2, 3, 4, 5, 6, 7, 8]
        assert [row["runs"] for row in tuning.table] == [8 + 15, 8, 8 + 15, 8, 1, 1, 1, 1]  # 3 is where it began

    def test_one_lucky_run_does_not_decide(self):
        runs = {1: iter([2.0] * 9), 2: iter([0.1, *[3.0] * 7])}
        tuning = atos.tune(model(lambda x: next(runs[x])), space={"x": [1, 2]}, device="cpu")
        assert tuning.best == {"x": 1}
        assert tuning.table[1]["least"] == 0.1

    @pytest.mark.parametrize("seed", range(20))
    def test_what_is_only_lucky_is_not_kept(self, seed, graph):
        noise = random.Random(seed)
        space = {"x": [None, 1, 2, 3], "y": [None, 1, 2, 3]}
        tuning = atos.tune(model(lambda **_: 1 + 0.2 * noise.random()), space=space, task=mine, graph=graph)
        assert tuning.best == atos.tuned(mine, graph) == {}
        assert tuning.finished
        assert tuning.table[0]["x"] is tuning.table[0]["y"] is None

    @pytest.mark.parametrize("seed", range(20))
    def test_what_is_better_is_kept_whatever_the_noise(self, seed, graph):
        noise = random.Random(seed)
        cost = lambda x=0: (0.8 if x == 2 else 1) * (1 + 0.2 * noise.random())  # noqa: E731
        tuning = atos.tune(model(cost), space={"x": [None, 1, 2, 3]}, task=mine, graph=graph)
        assert tuning.best == atos.tuned(mine, graph) == {"x": 2}

    def test_what_drifts_favors_neither(self):
        clock = itertools.count(1)
        tuning = atos.tune(model(lambda x=0: next(clock) * (1 + 0.001 * (x == 0))), space={"x": [None, 1]}, device="cpu")
        assert tuning.best == {}

    def test_without_time_to_compare_the_first_setting_stays(self, monkeypatch):
        now = itertools.count()
        ticking = SimpleNamespace(perf_counter=lambda: float(next(now)))
        monkeypatch.setattr(tuning_search, "time", ticking)
        tuning = atos.tune(model(lambda x: x), space={"x": [2, 1]}, budget=40, device="cpu")
        assert tuning.best == {"x": 2}
        assert tuning.table[1]["milliseconds"] == 1
        assert not tuning.finished

    def test_what_cannot_run_a_second_time_is_not_kept(self):
        runs = itertools.count()

        def run(x):
            if x == 1 and next(runs) == 10:
                raise atos.QueueFullError("full", capacity=1, pending=2, lost=0)
            return replace(STATS, milliseconds=x)

        tuning = atos.tune(run, space={"x": [2, 1]}, device="cpu")
        assert tuning.best == {"x": 2}

    def test_none_leaves_an_option_out(self):
        tuning = atos.tune(model(lambda blocks=0: 1 + blocks), space={"blocks": [2, None]}, device="cpu")
        assert tuning.best == {}
        assert tuning.table[0]["blocks"] is None

    def test_both_orders_of_a_queue_are_tried_by_who_names_them(self, device, monkeypatch):
        """A tree is worked off in either order; with "newest" no launch has barriers, so such settings are skipped.

        The usual space is cut down to four settings with `take`, so that all of them run long before the time is over.
        """
        monkeypatch.setattr("atos_py.tools.tune.choose_space", lambda device: {"barrier": (False, True)})

        @atos.task
        def split(worker, depth):
            if worker.rank == 0 and depth:
                worker.push(depth - 1)
                worker.push(depth - 1)

        def run(take="oldest", worker="cta", **options):
            queue = atos.Queue(1000, take=take, device=device)
            queue.push(6)
            stats = queue.launch(split, worker=worker, **options)
            assert stats.tasks_run == 2**7 - 1
            return stats

        tuning = atos.tune(run, budget=60, device=device)
        skipped = {(row["take"], row["barrier"]): bool(row["skipped"]) for row in tuning.table}
        assert skipped == {
            (take, barrier): take == "newest" and barrier for take in ("oldest", "newest") for barrier in (False, True)
        }
        without = atos.tune(lambda **options: run(**options), budget=60, device=device)
        assert [row.keys() & {"take", "barrier"} for row in without.table] == [{"barrier"}] * 2

    def test_results_with_stats_count_too(self, graph):
        tuning = atos.tune(lambda **o: atos.bfs(graph, 0, **o), space={"fetch_size": [8, 32]}, graph=graph)
        assert {row["fetched"] for row in tuning.table} == {8, 32}

    def test_what_cannot_run_is_skipped_and_told(self):
        def run(x):
            if x == 1:
                raise atos.LaunchConfigError("too large")
            if x == 2:
                raise atos.QueueFullError("full", capacity=1, pending=2, lost=0)
            return STATS

        tuning = atos.tune(run, space={"x": [1, 2, 3]}, device="cpu")
        assert tuning.best == {"x": 3}
        assert {row["x"]: row["skipped"] for row in tuning.table} == {1: "too large", 2: "full", 3: ""}
        assert "1 settings run, 2 cannot run" in str(tuning)

    def test_nothing_can_run(self):
        def run(**_options):
            raise atos.LaunchConfigError("too large")

        with pytest.raises(atos.LaunchConfigError, match="none of 2 settings can run; the first: too large"):
            atos.tune(run, space={"x": [1, 2]}, device="cpu")

    def test_what_cannot_be_searched_or_remembered_is_refused_before_anything_runs(self):
        def run(**_options):
            raise AssertionError

        with pytest.raises(atos.InvalidArgumentError, match="space is empty"):
            atos.tune(run, space={}, device="cpu")
        for value in (float, (1, 2)):
            with pytest.raises(atos.UnsupportedTypeError, match="for 'x'; only numbers, words and experiments are remembered"):
                atos.tune(run, space={"x": [1, value]}, task="mine", device="cpu")

    def test_a_wrong_result_ends_it(self):
        def run(**_options):
            raise atos.VerificationError("wrong")

        with pytest.raises(atos.VerificationError):
            atos.tune(run, space={"x": [1]}, device="cpu")

    def test_the_budget_is_kept_and_one_setting_run(self):
        def run(x):
            time.sleep(0.02)
            return STATS

        tuning = atos.tune(run, space={"x": range(100)}, budget=0.01, device="cpu")
        assert tuning.best == {"x": 0}
        assert sum(row["runs"] for row in tuning.table) == 1
        assert not tuning.finished
        assert "all the time there was" in str(tuning)

    def test_short_of_time_the_likely_settings_still_compete(self):
        def run(x):
            time.sleep(0.01)
            return replace(STATS, milliseconds=10 - x)

        tuning = atos.tune(run, space={"x": [2, 9, *range(10, 1000)]}, budget=0.3, device="cpu")
        assert not tuning.finished
        assert 2 < len(tuning.table) < 128
        assert tuning.table[0]["runs"] > 1

    def test_progress_sees_every_step(self):
        seen = []

        def progress(steps, description, total):
            steps = list(steps)
            assert len(steps) == total
            seen.append((description, total))
            return steps

        atos.tune(model(lambda x: x), space={"x": [1, 2, 3]}, progress=progress, device="cpu")
        assert seen[:2] == [("round 1 of 4", 3), ("round 2 of 4", 3)]

    @pytest.mark.parametrize("bad", [{"space": {"x": []}}, {"budget": 0}, {"budget": float("nan")}])
    def test_bad_arguments(self, bad):
        with pytest.raises(atos.InvalidArgumentError):
            atos.tune(model(lambda **_: 1.0), device="cpu", **bad)

    def test_a_run_that_returns_nothing(self):
        with pytest.raises(atos.UnsupportedTypeError, match="LaunchStats"):
            atos.tune(lambda **_: None, space={"x": [1]}, device="cpu")

    def test_the_space_of_a_device_can_be_run(self, device):
        graph = atos.generate.rmat(7, 8, device=device)
        space = {name: values[:2] for name, values in choose_space(device).items()}
        tuning = atos.tune(lambda **o: atos.bfs(graph, 0, **o), space=space, graph=graph)
        assert tuning.finished
        atos.verify_bfs(graph, 0, atos.bfs(graph, 0, **tuning.best).depth)


class TestOutput:
    def tuning(self):
        def cost(worker, fetch_size):
            if worker == "thread" and fetch_size == 8:
                raise atos.LaunchConfigError("no")
            return fetch_size / 8 + (worker == "warp")

        def run(worker, fetch_size):
            return replace(STATS, worker=worker, fetch_size=fetch_size, milliseconds=cost(worker, fetch_size))

        return atos.tune(run, space={"worker": ["cta", "warp", "thread"], "fetch_size": [8, 16]}, device="cpu")

    def test_csv(self, tmp_path):
        tuning = self.tuning()
        tuning.to_csv(tmp_path / "t.csv")
        with open(tmp_path / "t.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 6
        assert (rows[0]["worker"], rows[0]["fetch_size"], rows[0]["worker_size"]) == ("cta", "8", "256")
        assert rows[-1]["skipped"] == "no"
        assert tuning.to_dict()["table"] == tuning.table

    def test_heat_map(self, tmp_path):
        pytest.importorskip("matplotlib")
        self.tuning().draw(tmp_path / "heat.png")
        assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")

    def test_the_axes_of_the_heat_map_are_in_order(self, monkeypatch):
        figures = pytest.importorskip("atos_py.tools.figures")
        drawn = []
        monkeypatch.setattr(figures, "plot_heatmaps", drawn.extend)
        run = lambda num_threads, fetch_size: replace(STATS, num_threads=num_threads, fetch_size=fetch_size)  # noqa: E731
        space = {"num_threads": [512, 64, 128], "fetch_size": [8, 2048, 32, 1]}
        atos.tune(run, space=space, device="cpu").plot()
        at = [(cell["workers"], cell["fetch_size"]) for cell in drawn]
        assert at == sorted(at)
        assert len(at) == 12

    def test_drawing_leaves_the_users_matplotlib_alone(self, tmp_path):
        matplotlib = pytest.importorskip("matplotlib")
        with matplotlib.rc_context():
            matplotlib.use("svg")
            self.tuning().draw(tmp_path / "heat.png")
            assert matplotlib.get_backend().lower() == "svg"

    def test_files_that_cannot_be_written(self, tmp_path):
        for write in (self.tuning().to_csv, self.tuning().draw):
            with pytest.raises(atos.AtosError):
                write(tmp_path / "nowhere" / "x.png")

    def test_without_matplotlib(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "atos_py.tools.figures", None)
        with pytest.raises(atos.MissingPackageError, match="pip install matplotlib"):
            self.tuning().draw(tmp_path / "heat.png")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"space": {"fetch_size": 32}}, "space must map 'fetch_size' to a sequence of values to try, such as .32."),
        ({"space": {"worker": "cta"}}, "space must map 'worker' to a sequence"),
        ({"progress": 3}, "progress must be a function"),
    ],
)
def test_what_cannot_be_searched(options, message):
    with pytest.raises(atos.UnsupportedTypeError, match=message):
        atos.tune(lambda **_: STATS, device="cpu", **options)


@atos.task
def mine(worker, v):
    pass


class TestMemory:
    def tune(self, task, graph):
        return atos.tune(model(lambda fetch_size: fetch_size), space={"fetch_size": [64, 8]}, task=task, graph=graph)

    @pytest.mark.parametrize("names", [("bfs", atos.bfs), (atos.pagerank, "pagerank"), (mine, mine), ("any", "any")])
    def test_by_any_name_and_for_graphs_of_that_shape(self, names, graph):
        self.tune(names[0], graph)
        other = atos.generate.rmat(7, 8, seed=1, device="cpu")
        assert atos.tuned(names[1], graph) == atos.tuned(names[1], other) == {"fetch_size": 8}
        assert atos.tuned(names[1], atos.generate.road(30, device="cpu")) == {}
        assert atos.tuned("another", graph) == {}
        atos.verify_bfs(graph, 0, atos.bfs(graph, 0, **atos.tuned(names[1], graph)).depth)

    def test_without_a_graph(self):
        atos.tune(model(lambda x: x), space={"x": [2, 1]}, task=mine, device="cpu")
        assert atos.tuned(mine, device="cpu") == {"x": 1}

    def test_experiments_are_remembered(self, graph):
        tried = [atos.Experiment(), atos.Experiment(local_items=False, push_buffer=7)]
        space = {"experiment": tried}
        tuning = atos.tune(model(lambda experiment: 9 - (experiment.push_buffer or 0)), space=space, task=mine, graph=graph)
        assert tuning.best == atos.tuned(mine, graph) == {"experiment": tried[1]}
        assert f"experiment={tried[1]}" in str(tuning)

    def test_nothing_is_remembered_without_a_task(self, graph, cache):
        self.tune(None, graph)
        assert not cache.exists()

    def entry(self, cache: Path) -> Path:
        (path,) = cache.glob("tuned-*")
        return path

    def test_what_others_may_write_is_not_read(self, graph, cache):
        self.tune("bfs", graph)
        os.chmod(self.entry(cache), 0o666)
        assert atos.tuned("bfs", graph) == {}

    def test_an_altered_entry_is_not_read(self, graph, cache):
        self.tune("bfs", graph)
        path = self.entry(cache)
        path.write_bytes(path.read_bytes().replace(b"8}}", b"9}}"))
        assert atos.tuned("bfs", graph) == {}

    @pytest.mark.parametrize(
        "content",
        [
            b"{",
            b"[]",
            b'{"best": {"x": 1}}',
            b'{"best": [], "key": KEY}',
            b'{"best": {"x": []}, "key": KEY}',
            b'{"best": {"x": {"y": 1}}, "key": KEY}',
        ],
    )
    def test_an_entry_of_another_format_is_not_used(self, content, graph, cache):
        self.tune("bfs", graph)
        name = self.entry(cache).name
        key = disk.read_entry(name)[0].partition(b'"key": ')[2].partition(b', "best"')[0]
        disk.write_entry(name, [content.replace(b"KEY", key)])
        assert atos.tuned("bfs", graph) == {}

    def test_a_directory_that_cannot_be_written(self, graph, cache):
        cache.write_text("a file")
        assert self.tune("bfs", graph).best == {"fetch_size": 8}
        assert atos.tuned("bfs", graph) == {}

    def test_what_has_no_name(self, graph):
        with pytest.raises(atos.UnsupportedTypeError):
            atos.tuned(3, graph)


class TestSignature:
    def test_signatures(self):
        def star(n):
            return atos.Graph.from_edges([0] * n, range(1, n + 1), device="cpu")

        assert signature.graph_signature(star(1023)) == (10, 0, 10)
        assert signature.graph_signature(atos.generate.road(32, 1.0, device="cpu")) == (10, 2, 0)
        assert signature.graph_signature(atos.Graph.from_edges([], [], device="cpu")) == (0, 0, 0)

    def test_a_signature_is_forgotten_with_its_graph(self):
        before = len(signature._known)
        graph = atos.generate.road(4, device="cpu")
        assert signature.graph_signature(graph) is signature.graph_signature(graph)
        assert len(signature._known) == before + 1
        del graph
        assert len(signature._known) == before


class TestCommand:
    def test_finds_prints_and_remembers(self, tmp_path, capsys):
        given = ["--algorithm", "bfs", "--graph", "rmat:6:4", "--device", "cpu", "--budget", "300"]
        files = ["--csv", str(tmp_path / "t.csv"), "--draw", str(tmp_path / "t.png")]
        pytest.importorskip("matplotlib")
        assert main(["tune", *given, *files]) == 0
        text = capsys.readouterr().out
        graph = atos.generate.rmat(6, 4, device="cpu")
        kept = atos.tuned(atos.bfs, graph)
        assert f"best: {kept}, " in text
        assert ("no setting that was tried is faster than the defaults" in text) == (not kept)
        assert "times the best" in text
        assert len((tmp_path / "t.csv").read_text().splitlines()) >= 72
        assert (tmp_path / "t.png").stat().st_size > 1000

    def test_a_wrong_result_fails(self, monkeypatch, capsys):
        true = atos.bfs

        def wrong(graph, source, **options):
            result = true(graph, source, **options)
            result.depth[source] = 1
            return result

        monkeypatch.setitem(registry._registered, "bfs", replace(registry.find_algorithms()["bfs"], run=wrong))
        assert main(["tune", "--algorithm", "bfs", "--graph", "road:8:1", "--device", "cpu"]) == 1
        assert "a result was wrong" in capsys.readouterr().out
