"""Races of tasks that `debug="races"` finds, and programs in which it finds none."""

from __future__ import annotations

import copy
import json
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from racy_tasks import EDGES, PAIRS, ints
from repository import ROOT

import atos_py as atos
from atos_py.runtime import race_search
from atos_py.runtime.launch_options import LaunchConfig

NAMES = list(PAIRS)


def test_there_are_25_pairs():
    assert len(PAIRS) == 25


@pytest.mark.parametrize("name", NAMES)
def test_a_race_is_found(name):
    pair = PAIRS[name]
    with pytest.raises(atos.RaceError) as caught:
        pair.racy.run()
    races = caught.value.races
    assert pair.array in [race.array for race in races]
    for race in races:
        assert str(race) in str(caught.value)
        assert all(race.mend and operation for operation in race.operations)
        assert [name.endswith("racy_tasks.py") for name in race.filenames] == [True, True]
        source = (ROOT / "tests" / "racy_tasks.py").read_text().splitlines()
        short = race.array.split(".")[-1]
        assert all(short in source[line - 1] for line in race.lines)


@pytest.mark.parametrize("name", NAMES)
def test_the_mended_program_is_silent(name, monkeypatch):
    mended = PAIRS[name].mended
    plain, expected = mended.run(debug=True)
    for seed in ("0", "1", "12345"):
        monkeypatch.setenv("ATOS_RACES_SEED", seed)
        stats, arrays = mended.run()
        if "lock" not in name and "flag" not in name and name != "fence":  # where tasks push themselves again
            assert (stats.tasks_run, stats.tasks_pushed) == (plain.tasks_run, plain.tasks_pushed)
        assert stats.tasks_run_by.keys() == plain.tasks_run_by.keys()
        assert sum(stats.tasks_run_by.values()) == stats.tasks_run
        if name not in ("count", "exchange"):
            assert all(np.array_equal(a, b) for a, b in zip(arrays, expected, strict=True))


def test_a_report_has_all_that_there_is_to_say():
    with pytest.raises(atos.RaceError) as caught:
        PAIRS["dependency count"].racy.run()
    (race,) = caught.value.races
    assert (race.array, race.operations) == ("total", ("atomic_add", "read"))
    assert race.functions == ("count_dependencies", "column")
    assert race.tasks == ("count_dependencies",) * 2
    assert (race.items[0], race.index) in EDGES
    assert race.items[1] == race.index
    assert race.iterations[0] is not None
    assert race.iterations[1] is None
    assert "worker.arrive(counter, i, push=...)" in race.mend
    assert copy.deepcopy(race) == race
    assert json.loads(json.dumps(race.to_dict()))["index"] == race.index


@atos.task
def same_bits(worker, v, seen):
    seen[0] = 1


@atos.task
def other_bits(worker, v, seen):
    seen[0] = v % 2 + 1


@atos.task
def correct_labels(worker, v, label):
    if label[v] > 0 and atos.atomic_min(label, v // 2, label[v] - 1) > 0:
        worker.push(v // 2)


@atos.task
def meant_so(worker, v, count):
    if count[0] < 100:  # race: a count that is too low lets one more through
        atos.atomic_add(count, 0, 1)


@atos.task
def by_worker(worker, v, sums):
    sums[worker.index] += v


@pytest.mark.parametrize(
    ("task", "sizes"), [(same_bits, (1,)), (correct_labels, (32,)), (meant_so, (1,)), (by_worker, (64,))], ids=lambda x: str(x)
)
def test_what_is_no_race(task, sizes):
    (array,) = ints(*sizes)()
    array[:] = 50
    queue = atos.Queue(100, device="cpu")
    queue.push(range(20))
    queue.launch_thread(task, array, debug="races")


def test_stores_of_other_bits_are_a_race():
    queue = atos.Queue(100, device="cpu")
    queue.push(range(20))
    with pytest.raises(atos.RaceError, match=r"element 0 of array 'seen': .* writes it in item \d+, and .* writes it in item"):
        queue.launch_thread(other_bits, *ints(1)(), debug="races")
    assert len(queue) == 0  # the launch has ended


def make_many() -> atos.Task:
    """Return a task with 40 lines that race with themselves."""
    lines = "".join(f"    a[{k}] = v\n" for k in range(40))
    scope: dict[str, object] = {}
    exec(compile(f"def many(worker, v, a):\n{lines}", "many.py", "exec"), scope)
    return atos.task(scope["many"])


def test_at_most_20_races_are_told():
    queue = atos.Queue(100, device="cpu")
    queue.push(range(1, 4))
    with pytest.raises(atos.RaceError, match=r"20 races .* and looked no further") as caught:
        queue.launch_thread(make_many(), *ints(40)(), debug="races")
    assert len({race.lines for race in caught.value.races}) == 20


def test_a_search_that_ends_early_says_so(monkeypatch):
    monkeypatch.setattr(race_search, "MOST_TASKS", 10)
    queue = atos.Queue(100, device="cpu")
    queue.push(range(20))
    with pytest.warns(RuntimeWarning, match=r"follows 10 tasks .* what came after was not looked at"):
        assert queue.launch_thread(same_bits, *ints(1)(), debug="races").tasks_run == 20


def test_other_errors_come_first_and_the_next_launch_is_searched():
    queue = atos.Queue(100, device="cpu")
    queue.push(5)
    with pytest.raises(atos.TaskError, match="index 5 is out of range"):
        queue.launch_thread(PAIRS["count"].racy.tasks, *ints(1, 2)(), debug="races")
    queue.clear()
    with pytest.raises(atos.RaceError):
        PAIRS["sum"].racy.run()


def test_where_it_does_not_run(monkeypatch):
    gpu = atos.Device("cuda", 0)
    with pytest.raises(atos.LaunchConfigError, match=r'debug="races" runs on CPU devices only.* device="cpu"'):
        LaunchConfig.from_options("cta", gpu, {"debug": "races"})
    with pytest.raises(atos.InvalidArgumentError, match="debug"):
        LaunchConfig.from_options("cta", atos.device("cpu"), {"debug": "race"})
    over_two = atos.Queue(100, owner=atos.generate.road(4, 1.0, device="cpu").partition(["cpu:0", "cpu:1"]))
    with pytest.raises(atos.LaunchConfigError, match=r'over several devices has no debug="races"'):
        over_two.launch_thread(same_bits, *ints(1)(), debug="races")
    monkeypatch.setenv("ATOS_RACES_SEED", "x")
    with pytest.raises(atos.InvalidArgumentError, match="ATOS_RACES_SEED"):
        PAIRS["sum"].racy.run()


READ, WRITE, PUSH, ARRIVE = range(4)


@atos.task
def run_steps(worker, t, first, kind, target, data, missing, sink):
    for k in range(first[t], first[t + 1]):
        at = target[k]
        if kind[k] == READ:
            atos.atomic_add(sink, 0, data[at])
        elif kind[k] == WRITE:
            data[at] = t + 1
        elif kind[k] == PUSH:
            worker.push(at)
        else:
            worker.arrive(missing, at, push=at)


@st.composite
def programs(draw):
    """Draw tasks as lists of steps, where two tasks access each element, and arrivals come last."""
    count = draw(st.integers(2, 12))
    steps: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    arrivals: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    by_host = [0]
    for t in range(1, count):
        before = draw(st.lists(st.integers(0, t - 1), max_size=3, unique=True))
        if not before:
            by_host.append(t)
        elif len(before) == 1:
            steps[before[0]].append((PUSH, t))
        for other in before if len(before) > 1 else []:
            arrivals[other].append((ARRIVE, t))
    for element in range(draw(st.integers(1, 5))):
        pair = draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True))
        for t, kind in zip(pair, draw(st.sampled_from([(READ, WRITE), (WRITE, WRITE)])), strict=True):
            steps[t].insert(draw(st.integers(0, len(steps[t]))), (kind, element))
    return [own + last for own, last in zip(steps, arrivals, strict=True)], by_host


def has_race(steps, last_one_acquires) -> bool:
    """Whether two accesses of one element are on no path of the graph of all steps.

    The last task to arrive at a counter acquires what the others did; which one is the last depends on the order. With
    `last_one_acquires`, each of them is taken for the last.
    """
    graph, accesses, arrivals = nx.DiGraph(), {}, {}
    for t, own in enumerate(steps):
        nx.add_path(graph, [(t, k) for k in range(-1, len(own))])
        graph.add_node((t, -1))
        for k, (kind, at) in enumerate(own):
            if kind in (PUSH, ARRIVE):
                graph.add_edge((t, k), (at, -1))
            else:
                accesses.setdefault(at, []).append((t, k))
            if kind == ARRIVE and last_one_acquires:
                arrivals.setdefault(at, []).append((t, k))
    for each in arrivals.values():
        graph.add_edges_from((one, (t, k + 1)) for one in each for t, k in each if k + 1 < len(steps[t]))
    return any(not nx.has_path(graph, a, b) and not nx.has_path(graph, b, a) for a, b in accesses.values())


@settings(max_examples=150, deadline=None)
@given(program=programs(), seed=st.integers(0, 99))
@example(  # a race or none, by which of tasks 1 and 2 comes last
    program=([[(3, 8)], [(0, 0), (3, 7)], [(3, 7), (3, 8)], *[[]] * 5, [(1, 0)], [], []], [0, 1, 2, 3, 4, 5, 6, 9, 10]), seed=0
)
def test_races_are_those_of_the_graph_of_all_steps(program, seed):
    steps, by_host = program
    flat = [step for own in steps for step in own]
    first = np.cumsum([0, *map(len, steps)])
    missing = np.bincount([at for kind, at in flat if kind == ARRIVE], minlength=len(steps))
    columns = [np.array(list(column) or [0]) for column in (zip(*flat, strict=True) if flat else ([], []))]
    arrays = [atos.asarray(each, readonly=True, device="cpu") for each in (first, *columns)]
    queue = atos.Queue(100, device="cpu")
    queue.push(by_host)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATOS_RACES_SEED", str(seed))
        counters = atos.asarray(missing, device="cpu")
        launch = queue.prepare(run_steps, *arrays, *ints(5)(), counters, *ints(1)(), worker="thread", debug="races")
        if has_race(steps, last_one_acquires=True):
            with pytest.raises(atos.RaceError) as caught:
                launch()
            assert {race.array for race in caught.value.races} == {"data"}
        elif not has_race(steps, last_one_acquires=False):
            assert launch().tasks_run == len(steps)


def test_algorithms_are_silent(monkeypatch):
    monkeypatch.setenv("ATOS_DEBUG", "races")
    graph = atos.generate.rmat(8, device="cpu").simplify(sort=True)
    atos.verify_bfs(graph, 0, atos.bfs(graph, 0).depth)
    atos.connected_components(graph)
    atos.core_number(graph)


def test_marks_are_few():
    marks = [
        line
        for folder in ("atos_py", "docs", "examples")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md")
        for line in path.read_text().splitlines()
        if re.search(r"[\w)\]] +# race: ", line)
    ]
    assert 0 < len(marks) <= 15, marks
    assert all(len(line.split("# race: ")[1]) > 15 for line in marks)
