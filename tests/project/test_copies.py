"""Every public class is copied and pickled rightly, or refused with a reason; a class without a decision here fails."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import importlib
import inspect
import operator
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import networkx
import numpy as np
import pytest
from public_calls import dynamic, edges, keep, parts, pool
from repository import ROOT
from test_errors import ERRORS

import atos_py as atos
from atos_py import acc, distributed, features
from atos_py.compile.timing import Profile
from atos_py.models.dynamic.row_edits import DynamicRows
from atos_py.models.nx_backend import AtosGraph

WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda thing: pickle.loads(pickle.dumps(thing))}


def public_classes() -> set[type]:
    """Return the classes among the public names of all packages but the command line's, and those that the reference has."""
    inner = pkgutil.walk_packages(atos.__path__, "atos_py.")
    packages = ["atos_py", *(each.name for each in inner if each.ispkg and each.name != "atos_py.cli")]
    found: set[type] = set()
    for name in packages:
        package = importlib.import_module(name)
        found.update(thing for each in getattr(package, "__all__", ()) if inspect.isclass(thing := getattr(package, each)))
    for page in (ROOT / "docs/api").glob("*.md"):
        for module, name in re.findall(r"autoclass:: (atos_py[\w.]*)\.(\w+)", page.read_text()):
            found.add(getattr(importlib.import_module(module), name))
    return found


def either(a: Any, b: Any) -> Any:
    return a | b


def used_pool() -> atos.Pool:
    made = pool([("at", np.float32, 2), ("of", np.int64)])
    made.append(at=[[1, 2], [3, 4]], of=[5, 6])
    return made


def edited() -> atos.DynamicGraph:
    made = dynamic(undirected=True, weights=np.uint64)
    made.insert_edges([0, 1], [1, 2], np.array([2**64 - 1, 1], np.uint64))
    return made


def launched() -> atos.LaunchStats:
    queue = atos.Queue(10, device="cpu")
    queue.push([1, 2])
    return queue.launch_thread(keep, atos.zeros(4, device="cpu"), trace=1.0)


def started() -> atos.Run:
    run = atos.Queue(10, device="cpu").start(keep, atos.zeros(4, device="cpu"))
    run.close()
    run.wait()
    return run


def result(cls: Any) -> Any:
    """Return a result with an array in each member, but for the statistics."""
    statistics: dict[str, Any] = {"stats": launched(), "runs": [launched()]}
    names = [each.name for each in dataclasses.fields(cls)]
    return cls(**{name: statistics.get(name, atos.asarray([1, 2, len(name)], device="cpu")) for name in names})


#: How to make an object of each class that is copied.
COPIED: dict[type, Callable[[], Any]] = {
    atos.Array: lambda: atos.asarray(np.arange(6.0).reshape(2, 3), device="cpu", readonly=True),
    atos.Device: lambda: atos.Device("cpu", 3),
    atos.DeviceStats: lambda: atos.DeviceStats("cpu", 1, 2, 3, 4, np.zeros(3)),
    atos.DynamicBFS: lambda: atos.DynamicBFS(edited(), [0, 2]),
    atos.DynamicComponents: lambda: atos.DynamicComponents(edited()),
    atos.DynamicGraph: edited,
    atos.Experiment: lambda: atos.Experiment(local_items=False, counters=True),
    atos.Graph: lambda: edges([0, 1], [1, 2], [0.5, 2.0]),
    atos.LaunchOptions: lambda: atos.LaunchOptions(fetch_size=3),
    atos.LaunchStats: launched,
    atos.Pool: used_pool,
    atos.Task: lambda: keep,
    atos.Tuning: lambda: atos.Tuning({"fetch_size": 32}, 1.5, [{"fetch_size": 32}], 2.5, True),
    atos.WaitingJoins: lambda: atos.Joins(3, device="cpu").waiting(),
    atos.Race: lambda: atos.Race(
        "total", 0, ("read", "write"), ("f", "f"), ("f", "g"), ("a.py", "a.py"), (3, 4), (1, 2), (None, None), "order them"
    ),
    atos.WaitingCounters: lambda: atos.WaitingCounters("missing", 5, 1, np.array([3]), np.array([2])),
    Profile: lambda: Profile(1.0, 2.0),
    DynamicRows: lambda: edited().rows,
    acc.Combine: lambda: acc.Combine(either, neutral=0, idempotent=True),
    acc.ProgramStats: lambda: acc.programs.bfs(edges(), 0)[1],
    acc.Program: lambda: acc.Program(either, acc.MIN),
    features.ActiveSet: lambda: features.Maps(edges(), 2, atos.zeros(1, device="cpu")).all(),
    AtosGraph: lambda: AtosGraph(networkx.path_graph(3), {"weight": 1}),
    features.FixedPoint: lambda: features.FixedPoint(atos.zeros(3, device="cpu"), True, 0.5, 1, 2, [launched()]),
}

#: How to make an object of each class that is not copied, and what the reason says to do.
REFUSED: dict[type, tuple[Callable[[], Any], str]] = {
    atos.Joins: (lambda: atos.Joins(3, device="cpu"), "make others"),
    atos.LoweredArray: (lambda: atos.full(2, 1, partition=parts(), combine="min"), "to_numpy()"),
    atos.MirroredArray: (lambda: atos.full(2, 1, partition=parts(), placement="mirrored"), "to_numpy()"),
    atos.OwnedArray: (lambda: atos.full(2, 1, partition=parts(), placement="owned"), "to_numpy()"),
    atos.Partition: (parts, "copy the graph"),
    atos.PartitionedArray: (lambda: atos.full(2, 1, partition=parts()), "to_numpy()"),
    atos.PreparedLaunch: (
        lambda: atos.Queue(4, device="cpu").prepare(keep, atos.zeros(4, device="cpu")),
        "call queue.prepare again",
    ),
    atos.Queue: (lambda: atos.Queue(4, device="cpu"), "save(path)"),
    atos.Run: (started, "wait()"),
    distributed.HostArray: (lambda: over_hosts(lambda group: atos.full(2, 1, partition=edges().partition())), "to_numpy()"),
    distributed.HostGroup: (lambda: over_hosts(lambda group: group), "init()"),
    distributed.HostPartition: (lambda: over_hosts(lambda group: edges().partition()), "copy the graph"),
    distributed.ProcessGroup: (lambda: alone(lambda group: group), "init()"),
    features.Maps: (lambda: features.Maps(edges(), 2, atos.zeros(1, device="cpu")), "make others"),
}

#: Interfaces of what exists in tasks alone.
NEVER_MADE = (atos.Group, atos.Worker)


def over_hosts(make: Callable[[Any], Any]) -> Any:
    with distributed.init(engine="mpi") as group:
        return make(group)


def alone(make: Callable[[Any], Any]) -> Any:
    with distributed.init(0, 1) as group:
        return make(group)


RESULTS = sorted((cls for cls in public_classes() if cls.__name__.endswith("Result")), key=lambda cls: cls.__name__)


def contents(value: Any) -> Any:
    """Return what is in an object, as plain values that compare."""
    if isinstance(value, (atos.Array, np.ndarray)):
        values = np.asarray(value)
        return str(values.dtype), values.tolist(), getattr(value, "readonly", None), str(getattr(value, "device", None))
    if isinstance(value, atos.Pool):
        fields = [contents(getattr(value, name)) for name in value.dtype.names or ["values"]]
        return value.dtype, value.max_capacity, str(value.device), fields
    if isinstance(value, atos.DynamicGraph):
        return value.undirected, contents(value.to_graph())
    if isinstance(value, (atos.DynamicBFS, atos.DynamicComponents)):
        return contents(value._graph), contents(value.depth if isinstance(value, atos.DynamicBFS) else value.label)
    if dataclasses.is_dataclass(value):
        return [contents(getattr(value, each.name)) for each in dataclasses.fields(value)]
    if isinstance(value, (tuple, list)):
        return [contents(each) for each in value]
    if isinstance(value, (acc.Combine, features.ActiveSet, AtosGraph)):
        return [contents(each) for name, each in sorted(vars(value).items()) if name != "change"]
    if isinstance(value, dict):
        return {key: contents(each) for key, each in value.items()}
    return value


def test_there_is_a_decision_for_each_public_class():
    decided = {*COPIED, *REFUSED, *NEVER_MADE, *RESULTS, *map(type, ERRORS)}
    assert public_classes() ^ decided == set(), "say in COPIED or REFUSED what copies and pickles of a class are"


def objects() -> Iterator[Any]:
    for cls, make in COPIED.items():
        yield pytest.param(make, id=cls.__name__)
    for cls in RESULTS:
        yield pytest.param(lambda cls=cls: result(cls), id=cls.__name__)
    for error in ERRORS:
        yield pytest.param(lambda error=error: error, id=type(error).__name__)
    for combine in (acc.MIN, acc.MAX, acc.SUM, acc.SUBTRACT, acc.VOTE):
        yield pytest.param(lambda combine=combine: combine, id=combine.name)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", list(objects()))
def test_copies_have_what_the_original_has(make, way):
    original = make()
    made = WAYS[way](original)
    assert type(made) is type(original)
    if isinstance(original, atos.AtosError):
        assert (str(made), vars(made)) == (str(original), vars(original))
    else:
        assert contents(made) == contents(original)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", REFUSED)
def test_what_is_not_copied_says_why(cls, way):
    make, advice = REFUSED[cls]
    original = make()
    with pytest.raises(atos.UnsupportedTypeError, match=f"neither copied nor pickled.*{re.escape(advice)}"):
        WAYS[way](original)


@pytest.mark.parametrize("cls", sorted(NEVER_MADE, key=lambda cls: cls.__name__))
def test_what_exists_in_tasks_alone_is_not_made(cls):
    with pytest.raises(atos.TaskCallError, match="inside tasks only"):
        cls()


@pytest.mark.parametrize("way", WAYS)
def test_edits_of_a_copied_graph_are_its_own(way):
    original = dynamic()
    original.insert_edges([0], [1])
    made = WAYS[way](original)
    made.insert_edges([1, 2], [2, 0])
    original.insert_edges([2], [1])
    assert original.to_graph().to_scipy().toarray().tolist() == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    assert made.to_graph().to_scipy().toarray().tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


#: What was pickled before models had a room of their own, by its public name or that of its class.
PICKLED = pickle.loads(gzip.decompress((ROOT / "tests/project/pickled_before_models.gz").read_bytes()))


@pytest.mark.parametrize("name", PICKLED)
def test_what_was_pickled_before_its_module_moved_loads(name):
    made = pickle.loads(PICKLED[name])
    hidden = {"DynamicGraph.rows": DynamicRows, "nx_backend.AtosGraph": AtosGraph}
    expected = hidden.get(name) or operator.attrgetter(name)(atos)
    assert type(made) is expected if inspect.isclass(expected) else made is expected
    assert contents(pickle.loads(pickle.dumps(made))) == contents(made)


def test_a_result_that_is_copied_with_its_graph_follows_the_copy():
    graph = dynamic()
    search, components = atos.DynamicBFS(graph, 0), atos.DynamicComponents(graph)
    for way in (copy.deepcopy, WAYS["pickle"]):
        of_copy, labels, other = way((search, components, graph))
        other.insert_edges([0], [1])
        assert of_copy.depth[:2].tolist() == [0, 1]
        assert labels.num_components == 2
        assert search.depth[1] == atos.UNREACHED
    beside = copy.copy(search)
    graph.insert_edges([0], [2])
    assert search.depth[2] == beside.depth[2] == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_copied_pool_has_its_own_elements_and_takes_their_memory_alone(way):
    original = atos.Pool(np.int32, 4, device="cpu")  # which has addresses for half of the memory
    original.append([7, 8])
    assert len(pickle.dumps(original)) < 1000
    made = WAYS[way](original)
    made.append([9])
    original.values[0] = 1
    assert (made.values[:].tolist(), original.values[:].tolist()) == ([7, 8, 9], [1, 8])
    made.clear()
    assert contents(WAYS[way](made))[-1] == [contents(made.values)]  # without an element
    made.resize(2)
    assert WAYS[way](made).max_capacity == 2


def test_an_array_of_a_library_gives_results_of_it_where_the_library_is_imported(monkeypatch):
    original = atos.zeros(3, device="cpu")
    original.library = "torch"
    text = pickle.dumps(original)
    monkeypatch.setitem(sys.modules, "torch", sys)
    assert pickle.loads(text).library == copy.copy(original).library == "torch"
    monkeypatch.delitem(sys.modules, "torch")
    assert pickle.loads(text).library is None


def test_a_task_is_pickled_by_its_name(tmp_path, monkeypatch):
    assert pickle.loads(pickle.dumps(keep)) is keep
    plain = atos.task(either)  # whose function has kept its name
    assert pickle.loads(pickle.dumps(plain)).body is either
    (tmp_path / "its_tasks.py").write_text("import atos_py as atos\n@atos.task\ndef mark(worker, v):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("its_tasks")
    text = pickle.dumps(module.mark)
    assert pickle.loads(text) is module.mark
    del module.mark
    with pytest.raises(atos.InvalidArgumentError, match="task mark of the module its_tasks, which has no such task"):
        pickle.loads(text)


def test_a_task_of_a_script_is_pickled(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import pickle, sys\nimport atos_py as atos\n@atos.task\ndef mark(worker, v):\n    pass\n"
        "assert pickle.loads(pickle.dumps(mark)) is mark\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_task_of_a_script_is_pickled_by_cloudpickle_as_a_whole(monkeypatch):
    """As functions are, since another process has no such script."""
    scope: dict[str, Any] = {"__name__": "__main__", "atos": atos}
    exec("@atos.task\ndef mark(worker, v):\n    pass\n", scope)
    mark = scope["mark"]
    monkeypatch.setattr(sys.modules["__main__"], "mark", mark, raising=False)
    assert pickle.loads(pickle.dumps(mark)) is mark
    monkeypatch.setitem(sys.modules, "cloudpickle", sys)
    assert mark.__reduce__() == (atos.Task, (mark.body, None, 1, None, None, 1))
