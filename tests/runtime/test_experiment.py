"""Experiments: what they refuse and how they compare. The launch options that they replace warn at the line that has them."""

from __future__ import annotations

import dataclasses
import itertools
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py import acc, features
from atos_py.algorithms.launch_sequence import LaunchSequence
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError
from atos_py.runtime.experiment import OLD_OPTIONS

WRONG = [
    ({"local_items": -1}, InvalidArgumentError, r"local_items must be from 0 to 4096 \(got -1\)"),
    ({"local_items": 4097}, InvalidArgumentError, "local_items"),
    ({"local_items": "all"}, UnsupportedTypeError, "local_items must be an integer"),
    ({"work_sharing": 1}, UnsupportedTypeError, r"work_sharing must be True or False \(got 1\)"),
    ({"work_sharing": None}, UnsupportedTypeError, "work_sharing must be"),
    ({"counters": 1}, UnsupportedTypeError, "counters must be"),
    ({"push_buffer": -1}, InvalidArgumentError, r"push_buffer must be from 0 to 65536 \(got -1\)"),
    ({"push_buffer": 65537}, InvalidArgumentError, "push_buffer"),
    ({"push_buffer": True}, UnsupportedTypeError, "push_buffer must be an integer"),
]
OLD = {"local_items": False, "work_sharing": False, "push_buffer": 0, "counters": True}


@atos.task
def nothing(worker, v):
    pass


def warnings_of(call: Callable[..., Any], **options: Any) -> tuple[Any, list[warnings.WarningMessage]]:
    """Return what a function of one line returns, and the warnings that it gives, all of them at that line."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = call(**options)
    places = {(each.category, each.filename, each.lineno) for each in seen}
    assert places == {(DeprecationWarning, __file__, call.__code__.co_firstlineno)}
    return found, seen


@pytest.mark.parametrize(("fields", "error", "message"), WRONG)
def test_what_makes_no_sense_is_refused(fields, error, message):
    with pytest.raises(error, match=message):
        atos.Experiment(**fields)
    queue = atos.Queue(10, device="cpu")
    queue.push([1, 2])
    with pytest.raises(error, match=message):
        queue.launch_cta(nothing, **fields)
    assert queue.peek().tolist() == [1, 2]


def test_fields_of_the_same_meaning_are_equal():
    assert set(OLD) == OLD_OPTIONS
    usual = [atos.Experiment(), atos.Experiment(local_items=True), atos.Experiment(local_items=np.True_, push_buffer=None)]
    none = [atos.Experiment(local_items=value) for value in (False, 0, np.int64(0), np.False_)]
    one = [atos.Experiment(local_items=value) for value in (1, np.int64(1))]
    for same in (usual, none, one):
        assert len(set(same)) == len(set(map(repr, same))) == 1
    assert len({usual[0], none[0], one[0], atos.Experiment(work_sharing=False), atos.Experiment(counters=True)}) == 5
    with pytest.raises(dataclasses.FrozenInstanceError):
        usual[0].counters = True


def test_what_an_experiment_leaves_out_is_as_an_algorithm_has_it():
    """A search by levels has a push buffer of its own size, whatever else is tried."""
    defaults = {"experiment": atos.Experiment(push_buffer=4096)}
    for given, joined in (
        ({}, {"push_buffer": 4096}),
        ({"experiment": None}, {"push_buffer": 4096}),
        ({"experiment": atos.Experiment(counters=True)}, {"push_buffer": 4096, "counters": True}),
        ({"experiment": atos.Experiment(push_buffer=0)}, {"push_buffer": 0}),
    ):
        launches = LaunchSequence("search", atos.Queue(1, device="cpu"), given)
        assert launches._join(defaults, {})["experiment"] == atos.Experiment(**joined)


@pytest.mark.parametrize("name", OLD)
def test_an_old_option_does_what_the_experiment_does(name):
    queue, options = atos.Queue(10, device="cpu"), {name: OLD[name]}
    new = queue.prepare(nothing, experiment=atos.Experiment(**options))
    for _ in range(2):  # the second one finds what was checked
        old, seen = warnings_of(lambda: queue.prepare(nothing, **options))
        assert old._plan is new._plan
        value, last = f"{name}={OLD[name]}", "this release is the last one that takes the old form"
        assert [str(each.message) for each in seen] == [
            f"write experiment=atos.Experiment({value}) in place of {value}; {last}"
        ]
    assert options == {name: OLD[name]}


def test_old_options_beside_an_experiment():
    queue = atos.Queue(10, device="cpu")
    given = atos.Experiment(push_buffer=0, local_items=3)
    old, seen = warnings_of(lambda: queue.prepare(nothing, experiment=given, local_items=4, counters=True))
    written = (
        "experiment=atos.Experiment(local_items=4, push_buffer=0, counters=True) in place of local_items=4, counters=True;"
    )
    assert written in str(seen[0].message)
    assert old._plan.config.experiment == atos.Experiment(push_buffer=0, local_items=4, counters=True)
    assert given == atos.Experiment(push_buffer=0, local_items=3)
    with pytest.raises(UnsupportedTypeError, match=r"experiment must be an atos.Experiment.* \(got 3\)"):
        queue.prepare(nothing, experiment=3, local_items=4)


def ended(run):
    run.close()
    return run.wait()


def calls():
    """Yield what takes launch options, by name."""
    queue, graph = atos.Queue(10, device="cpu"), atos.generate.road(4, 1.0, device="cpu")
    program = acc.Program(lambda m_v, weight, m_u: m_v, acc.MIN)
    label = atos.asarray(np.arange(16), device="cpu")
    yield "prepare", lambda **options: queue.prepare(nothing, **options)
    for kind in ("thread", "warp", "cta"):
        yield f"launch_{kind}", lambda kind=kind, **options: getattr(queue, f"launch_{kind}")(nothing, **options)
    yield "launch", lambda **options: queue.launch(nothing, worker="warp", **options)
    yield "start", lambda **options: ended(queue.start(nothing, **options))
    for name in ("core_number", "color", "connected_components", "count_triangles", "label_propagation"):
        yield name, lambda name=name, **options: getattr(atos, name)(graph, **options)
    yield "k_core", lambda **options: atos.k_core(graph, 2, **options)
    yield "bfs", lambda **options: atos.bfs(graph, 0, **options)
    yield "bfs, in parts", lambda **options: atos.bfs(graph.partition(["cpu", "cpu:1"]), 0, **options)
    yield "Program.run", lambda **options: program.run(graph, label, **options)
    yield "programs", lambda **options: acc.programs.bfs(graph, 0, **options)
    yield "Maps", lambda **options: features.Maps(graph, 2, label, **options).vertex_map(lambda v, k, d: None)
    yield "label_spreading", lambda **options: atos.label_spreading(graph, np.arange(16) % 3 - 1, **options)


CALLS = dict(calls())


@pytest.mark.parametrize("name", CALLS)
def test_everything_that_takes_launch_options_warns_at_the_line_of_its_caller(name):
    experiment = atos.Experiment(push_buffer=5, counters=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CALLS[name](experiment=experiment)
        with pytest.raises(UnsupportedTypeError, match=r"experiment must be an atos\.Experiment"):
            CALLS[name](experiment=5)
    for _ in range(2):
        _, seen = warnings_of(CALLS[name], push_buffer=5)
        assert "push_buffer=5" in str(seen[0].message)
        assert len(seen) == 1 or name in ("Maps", "label_spreading")  # of several launches


def test_a_call_by_a_thread_warns_at_the_line_that_it_runs():
    """Also where nothing outside of the package has called: then at the outermost frame."""
    queue = atos.Queue(10, device="cpu")

    def run():
        queue.launch_cta(nothing, counters=True)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        threads = [
            threading.Thread(target=run),
            threading.Thread(target=queue.launch_cta, args=[nothing], kwargs={"counters": True}),
        ]
        for thread in threads:
            thread.start()
            thread.join()
    assert [each.filename == __file__ for each in seen] == [True, False]


def test_old_options_are_no_suggestion():
    with pytest.raises(UnsupportedTypeError, match="no option 'push_bufer'") as refused:
        atos.bfs(atos.generate.road(4, device="cpu"), 0, push_bufer=3)
    assert not any(name in str(refused.value) for name in itertools.chain(["push_buffer"], OLD_OPTIONS))
    assert "experiment" in str(refused.value)
