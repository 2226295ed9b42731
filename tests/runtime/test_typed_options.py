"""Options of a launch: type checkers see them, the documents name them, and each reaches the core under its own name."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import atos_py as atos
from atos_py.core.library import ffi
from atos_py.runtime import launch_plan
from atos_py.runtime.launch_options import LaunchConfig, LaunchOptions

ROOT = Path(__file__).parents[2]
OPTIONS = list(LaunchOptions.__annotations__)

# A line that is an error says so with mypy's code for it.
PROGRAM = """\
from typing_extensions import Unpack
import atos_py as atos

def show(tasks_run: int, rate: float, waiting: int) -> None: ...

def run(queue: atos.Queue, task: atos.Task, graph: atos.Graph, **options: Unpack[atos.LaunchOptions]) -> atos.LaunchStats:
    queue.launch_thread(task, 1, graph, persistent=False, barrier=True, fetch_size=None, num_blocks=2, num_threads=64)
    queue.launch_warp(task, idle=show, each_round=show, shared_memory=64, stream=0, device="cpu", timeout=3, trace=2.5)
    experiment = atos.Experiment(local_items=False, work_sharing=True, push_buffer=None)
    queue.launch_cta(task, progress=show, debug=None, tier="best", experiment=experiment)
    queue.launch_cta(task, experiment=atos.Experiment(local_items=3, push_buffer=0, counters=True), streams=2)
    atos.Experiment(push_buffers=0)  # call-arg
    atos.Experiment(push_buffer=0.5)  # arg-type
    queue.launch_cta(task, push_buffer=0)  # call-arg
    atos.bfs(graph, 0, direction="push", parents=True, worker="cta", capacity=9, timeout=0.5, progress=True)
    atos.pagerank(graph, tolerance=1e-3, find="push", barrier=True)
    atos.color(graph, "random", window=3, fetch_size=1, device=graph.device)
    queue.launch_thread(task, 1, fetch_sise=3)  # call-arg
    queue.launch_warp(task, 1, fetch_size="3")  # arg-type
    queue.launch_cta(task, 1, num_blocks=2.5)  # arg-type
    queue.launch_cta(task, progress=abs)  # arg-type
    queue.launch_cta(task, tier="first")  # arg-type
    queue.launch_cta(task, debug="races")
    queue.launch_cta(task, debug="race")  # arg-type
    queue.launch(task, 1, worker="warp", fetch_size=3)
    queue.launch(task, 1, worker=3)  # arg-type
    queue.launch(task, 1, fetch_sise=3)  # call-arg
    queue.launch_cta(task, worker="cta")  # call-arg
    atos.bfs(graph, 0, barier=True)  # call-arg
    atos.bfs(graph, 0, timeout="1 s")  # arg-type
    atos.pagerank(graph, tolerence=1e-3)  # call-arg
    atos.pagerank(graph, barrier="no")  # arg-type
    atos.color(graph, num_block=3)  # call-arg
    atos.color(graph, device=3)  # arg-type
    atos.tune(atos.bfs, spase={})  # arg-type
    run(queue, task, graph, fetch_sise=3)  # call-arg
    stats: int = queue.launch_cta(task)  # assignment
    found = atos.bfs(graph, 0)
    found.depth.tolist(3)  # call-arg
    found.depth.cuda().tolist(3)
    shape: int = found.depth.shape  # assignment
    part: int = found.depth[0:2]  # assignment
    row: list[int] = found.depth[0].tolist()
    array: atos.Array = found.depth
    return queue.launch_cta(task, **options)
"""


def test_type_checkers_see_the_options(tmp_path, monkeypatch):
    api = pytest.importorskip("mypy.api")
    assert [option for option in OPTIONS if f" {option}=" not in PROGRAM] == []
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    # With the settings and the cache of the package's own check.
    said, fault, _ = api.run(["--config-file", str(ROOT / "pyproject.toml"), str(tmp_path / "program.py")])
    assert not fault
    found = re.findall(r"^\S*program\.py:(\d+): error: .*\[([a-z-]+)\]$", said, re.MULTILINE)
    lines = enumerate(PROGRAM.splitlines(), start=1)
    assert dict(found) == {str(number): mark[1] for number, line in lines if (mark := re.search(r"# ([a-z-]+)$", line))}, said


def test_options_are_documented():
    for option in OPTIONS:
        assert re.search(rf"^{option} : ", inspect.getdoc(LaunchOptions), re.MULTILINE), option
        assert f"`{option}`" in atos.Queue.launch_cta.__doc__, option


def test_defaults():
    cpu = atos.Device("cpu")
    for worker, fetch_size in (("thread", 1), ("warp", 32), ("cta", 128)):
        config = LaunchConfig.from_options(worker, cpu, {})
        assert (config.worker, config.fetch_size, config.num_threads, config.num_blocks) == (worker, fetch_size, 1, 0)
        assert (config.persistent, config.barrier, config.sample_interval) == (True, False, 0)
    config = LaunchConfig.from_options("cta", atos.Device("cuda", 0), {"trace": 2.5})
    assert (config.num_threads, config.sample_interval) == (256, 2500)


def test_what_is_checked_does_not_change():
    config = LaunchConfig.from_options("cta", atos.Device("cpu"), {"fetch_size": np.int64(3)})
    assert type(config.fetch_size) is int
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.fetch_size = 0


def test_options_that_were_checked_are_kept_by_value_and_type(monkeypatch):
    @atos.task
    def nothing(worker, v):
        pass

    queue = atos.Queue(1, device="cpu")

    def config(**options):
        return queue.prepare(nothing, **options)._plan.config

    assert config(persistent=True, fetch_size=3) is config(persistent=True, fetch_size=3)
    assert config(fetch_size=3) is not config(fetch_size=4)
    for equal in (1, np.int64(1), 1.0):
        with pytest.raises(atos.UnsupportedTypeError, match="persistent must be True or False"):
            config(persistent=equal)
    kept = [config(experiment=atos.Experiment(local_items=value)) for value in (True, 1)]
    assert [each.experiment.local_items for each in kept] == [None, 1]
    assert config(experiment=atos.Experiment(local_items=1)) is kept[1]
    assert config(timeout=1.0) is config(timeout=2.0) is config()  # which would be one for each launch
    monkeypatch.setenv("ATOS_DEBUG", "1")
    assert config().debug
    monkeypatch.setenv("ATOS_DEBUG", "0")
    assert not config().debug


def test_launches_of_one_program_keep_their_options_apart():
    @atos.task
    def nothing(worker, v):
        pass

    queue = atos.Queue(10, device="cpu")
    for options in (
        {"num_blocks": 1},
        {"num_blocks": 2},
        {"num_blocks": 1, "barrier": True},
        {"trace": 1.0},
        {"timeout": 5},
        {},
    ):
        queue.push([1, 2])
        stats = queue.launch_thread(nothing, **options)
        assert (stats.tasks_run, stats.barrier) == (2, options.get("barrier", False))
        assert (stats.trace is None) == ("trace" not in options)
        assert stats.num_blocks == options.get("num_blocks", stats.num_blocks)


class Fields:
    """cffi, with what a launch is filled with."""

    def __init__(self):
        self.given = None

    def __getattr__(self, name):
        return getattr(ffi, name)

    def new(self, kind, *values):
        if kind == "atos_launch *":
            (self.given,) = values
        return ffi.new(kind, *values)


def test_every_field_is_filled_by_its_name(monkeypatch):
    """cffi leaves what is not named at zero, so that a new field of the header would be forgotten in silence."""

    @atos.task
    def nothing(worker, v):
        pass

    fields = Fields()
    monkeypatch.setattr(launch_plan, "ffi", fields)
    queue = atos.Queue(1, device="cpu")
    queue.launch_cta(nothing, fetch_size=7)
    assert list(fields.given) == [name for name, _ in ffi.typeof("atos_launch").fields]
    switches = "local_items", "push_buffer", "unshared"
    assert [fields.given[name] for name in ("fetch", *switches)] == [7, 0, 0, False]
    for local_items, given in ((True, 0), (False, 1), (0, 1), (5, 6)):
        experiment = atos.Experiment(local_items=local_items, push_buffer=0, work_sharing=False)
        queue.launch_cta(nothing, experiment=experiment)
        assert [fields.given[name] for name in switches] == [given, 1, True]
