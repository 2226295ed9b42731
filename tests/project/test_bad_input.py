"""Whatever callers hand in by mistake is refused with an AtosError that names the value and says what would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from public_calls import MASKED, RAGGED, array, cpu, csr, edges, keep, launch, weighted

import atos_py as atos
from atos_py import errors
from atos_py.errors import (
    AtosError,
    DeviceMemoryError,
    DeviceNotFoundError,
    InvalidArgumentError,
    MissingFileError,
    TaskCallError,
    TaskCompileError,
    UnsupportedTypeError,
)
from atos_py.graph import generate
from atos_py.graph.graph import Graph
from atos_py.runtime.queue import Queue

Wrong = InvalidArgumentError
Type = UnsupportedTypeError


@atos.task
def number_task(worker, v, number):
    pass


class Interface:
    """Something on a GPU, so it says."""

    def __init__(self, **fields: Any) -> None:
        self.__cuda_array_interface__ = {"shape": (3,), "typestr": "<i4", "data": (0, False), "version": 3} | fields


class Unmade(tuple[Any, ...]):
    """Almost a named tuple."""

    _fields = ("a", "b")


class Three(NamedTuple):
    a: int
    b: int
    c: int


class Stream:
    def __init__(self, handle: Any) -> None:
        self.__cuda_stream__ = (0, handle)


# What is passed, the error, and a part of its message.
TABLE: list[tuple[Callable[[], Any], type[AtosError], str]] = [
    # devices
    (lambda: atos.device("gpu"), Wrong, r"'cpu', 'cpu:N', 'cuda' or 'cuda:N' \(got 'gpu'\)"),
    (lambda: atos.device(-1), Wrong, r"\(got -1\)"),
    (lambda: atos.device("cuda:" + "9" * 30), DeviceNotFoundError, "no device 'cuda:99999"),
    (lambda: atos.Device("tpu"), Wrong, r"kind 'cpu' or 'cuda' \(got 'tpu'\)"),
    (lambda: atos.Device("cpu", -1), Wrong, r"index of a device must be from 0 to 2147483647 \(got -1\)"),
    (lambda: atos.Device("cuda", -1), Wrong, r"\(got -1\)"),
    (lambda: atos.Device("cuda", "0"), Type, r"must be an integer \(got '0'\)"),
    (lambda: Queue(1, device=atos.Device("cuda", 2**31 - 1)), DeviceNotFoundError, "2147483647|libcuda"),
    # statistics and algorithms
    (lambda: atos.LaunchStats.total([1]), Wrong, r"runs must be the statistics .* \(got \[1\]\)"),
    (lambda: atos.LaunchStats.total(5), Wrong, "runs must be"),
    (lambda: atos.Experiment(push_buffer=-1), Wrong, r"push_buffer must be from 0 to 65536 \(got -1\)"),
    (lambda: atos.Experiment(counters="no"), Type, "counters must be True or False .got 'no'"),
    (lambda: atos.bfs(edges(), 0, experiment={"counters": True}), Type, r"experiment must be an atos\.Experiment, such as"),
    (lambda: atos.bfs(edges(), 0, timeout=10**400), Wrong, "timeout must be a finite number"),
    # arrays
    (lambda: atos.zeros(3)[0.5:2], Wrong, "does not index an array of shape .3,.: slice indices"),
    (lambda: atos.zeros(3)[::0], Wrong, "slice step cannot be zero"),
    (lambda: atos.zeros(3, device="cpu").__dlpack__(max_version=3), Type, r"max_version must be a pair .* \(got 3\)"),
    (lambda: atos.zeros(-1), Wrong, r"extent of a shape must be from 0 to \d+ \(got -1\)"),
    (lambda: atos.zeros((2, -1)), Wrong, r"\(got -1\)"),
    (lambda: atos.zeros(1.5), Type, r"must be an integer \(got 1.5\)"),
    (lambda: atos.zeros(float("nan")), Type, r"\(got nan\)"),
    (lambda: atos.zeros("3"), Type, r"\(got '3'\)"),
    (lambda: atos.zeros(True), Type, r"\(got True\)"),
    (lambda: atos.zeros(np.array([1, 2])), Type, r"\(got array"),
    (lambda: atos.zeros((1,) * 33), Wrong, "at most 32 dimensions"),
    (lambda: atos.zeros(2**70), Wrong, f"got {2**70}"),
    (lambda: atos.zeros((2**40, 2**40), device="cpu"), DeviceMemoryError, "larger than any memory"),
    (lambda: atos.zeros(2**60, device="cpu"), DeviceMemoryError, "bytes asked for"),
    (lambda: atos.zeros(3, dtype="no"), Type, r"dtype of NumPy is wanted.* \(got 'no'\)"),
    (lambda: atos.zeros(3, dtype="f2"), Type, "float16"),
    (lambda: atos.zeros(3, dtype=">i4"), Type, ">i4"),
    (lambda: atos.zeros(3, dtype=object), Type, "object"),
    (lambda: atos.zeros(3, dtype=None), Type, "got None"),
    (lambda: atos.zeros(3, dtype={"names": ["a"], "formats": ["<i8"], "offsets": [2**70]}), Type, "dtype of NumPy is wanted"),
    (lambda: atos.empty(3, dtype=7), Type, "got 7"),
    (lambda: atos.full(3, [1, 2], device="cpu"), Wrong, r"value must be one number \(got shape \(2,\)\)"),
    (lambda: atos.full(3, 300, dtype=np.int8, device="cpu"), Wrong, "300 to 300 do not fit int8"),
    (lambda: atos.full(3, -1, dtype=np.uint8, device="cpu"), Wrong, "-1 to -1 do not fit uint8"),
    (lambda: atos.full(3, np.nan, dtype=np.int32, device="cpu"), Wrong, "nan"),
    (lambda: atos.full(3, 1e300, dtype=np.float32, device="cpu"), Wrong, "do not fit float32"),
    (lambda: atos.full(3, "a", device="cpu"), Type, "<U1"),
    (lambda: atos.asarray(RAGGED, device="cpu"), Type, "what is given cannot be made an array: .*inhomogeneous"),
    (lambda: atos.asarray(MASKED, device="cpu"), Type, r"has a mask.*compressed\(\)"),
    (lambda: atos.asarray(["a"], device="cpu"), Type, "<U1"),
    (lambda: atos.asarray([1 + 2j], device="cpu"), Type, "complex128"),
    (lambda: atos.asarray([1.5], dtype=int, device="cpu"), Wrong, "with fractions"),
    (lambda: atos.asarray([1], readonly="no", device="cpu"), Type, r"readonly must be True or False \(got 'no'\)"),
    (lambda: atos.asarray(Interface(shape=None)), Type, "malformed"),
    (lambda: atos.asarray(Interface(shape=(-1,))), Wrong, "got -1"),
    (lambda: atos.asarray(Interface(typestr="O")), Type, "object"),
    (lambda: atos.asarray(Interface(typestr=">i4")), Type, ">i4"),
    (lambda: atos.asarray(Interface(strides=(8,))), Wrong, "make it C-contiguous first"),
    (lambda: atos.asarray(Interface(mask=1)), Type, "has a mask"),
    (lambda: array()[4], Wrong, "index 4 is out of range"),
    (lambda: array()[-5], Wrong, "index -5"),
    (lambda: array()[1.0], Type, "an index is an integer or a slice"),
    (lambda: array()[::2], Wrong, "contiguous parts"),
    (lambda: array()[0, 0], Wrong, "does not index"),
    (lambda: array().__setitem__(slice(None), [1, 2]), Wrong, r"shape \(2,\) do not fit a part of shape \(4,\)"),
    (lambda: array().__setitem__(0, []), Wrong, r"shape \(0,\)"),
    (lambda: array().__setitem__(0, 2**40), Wrong, f"{2**40} do not fit int32"),
    (lambda: array().__setitem__(0, RAGGED), Type, "cannot be made an array"),
    (lambda: atos.asarray(np.zeros(3), readonly=True, device="cpu").__setitem__(0, 1), Wrong, "read-only"),
    (lambda: len(atos.zeros((), device="cpu")), Type, "no length"),
    # queues
    (lambda: Queue(0, device="cpu"), Wrong, r"capacity must be from 1 to \d+ \(got 0\)"),
    (lambda: Queue(1.0, device="cpu"), Type, r"capacity must be an integer \(got 1.0\)"),
    (lambda: Queue(np.array([1, 2]), device="cpu"), Type, "capacity must be an integer"),
    (lambda: Queue(2**61, device="cpu"), DeviceMemoryError, "larger than any memory"),
    (lambda: Queue(1, dtype="no", device="cpu"), Type, r"\(got 'no'\)"),
    (lambda: Queue(1, dtype=np.float32, device="cpu"), Type, "items are integers of 32 or 64 bits"),
    (lambda: cpu().push(-1), Wrong, r"item -1 does not fit uint32 \(0 to 4294967295\)"),
    (lambda: cpu().push([1, 2**32]), Wrong, f"item {2**32} does not fit"),
    (lambda: cpu().push([2**70]), Wrong, f"item {2**70} does not fit"),
    (lambda: cpu().push(np.nan), Type, "float64"),
    (lambda: cpu().push(RAGGED), Type, "cannot be made an array"),
    (lambda: cpu().push(MASKED), Type, "what is pushed has a mask"),
    (lambda: cpu().push(np.ones((2, 2), int)), Wrong, r"\(got shape \(2, 2\)\)"),
    (lambda: cpu().push(object()), Type, "object"),
    (lambda: cpu(range(10)).push(1), errors.QueueFullError, "max_capacity = 11"),
    (lambda: cpu([1, 2, 3]).resize(2), Wrong, "capacity of 2 is less than the 3 tasks pending"),
    (lambda: cpu().resize("3"), Type, r"\(got '3'\)"),
    (lambda: cpu().save(3), Type, "named by a str or a path"),
    (lambda: Queue.load(3), Type, "named by a str or a path"),
    (lambda: Queue.load("/nowhere"), MissingFileError, "cannot read checkpoint '/nowhere'"),
    # launches
    (lambda: launch(task=None), Type, "launch a task made with @atos.task"),
    (lambda: launch(worker_size=3), Type, "no option 'worker_size'; it has idle, each_round, persistent"),
    (lambda: launch(persistent="no"), Type, r"persistent must be True or False \(got 'no'\)"),
    (lambda: launch(barrier=1), Type, r"barrier must be True or False \(got 1\)"),
    (lambda: launch(fetch_size=4097), Wrong, r"fetch_size must be from 1 to 4096 \(got 4097\)"),
    (lambda: launch(num_blocks=2**31 - 1), errors.LaunchConfigError, "2147483647 threads asked for"),
    (lambda: launch(num_blocks=2**31), Wrong, "num_blocks must be from 1 to 2147483647"),
    (lambda: launch(num_threads=48), errors.LaunchConfigError, "multiple of 32"),
    (lambda: launch(num_threads=2**40), Wrong, "num_threads must be from 1 to 1024"),
    (lambda: launch(shared_memory=2**40), Wrong, "shared_memory must be from 0 to 1048576"),
    (lambda: launch(trace=0), Wrong, r"above 0 \(got 0\)"),
    (lambda: launch(trace=float("inf")), Wrong, r"trace must be a finite number \(got inf\)"),
    (lambda: launch(trace="1"), Type, r"trace must be a number \(got '1'\)"),
    (lambda: launch(idle=3), Type, r"idle must be a function.*\(got 3\)"),
    (lambda: launch(idle=[]), Type, "idle must be a function"),
    (lambda: launch(stream=object()), Type, "stream must be an address or a stream"),
    (lambda: launch(stream="0"), Type, "stream must be an address"),
    (lambda: launch(stream=-1), Wrong, r"stream must be from 0 .*\(got -1\)"),
    (lambda: launch(stream=Stream(2**64)), Wrong, "stream must be from 0"),
    (lambda: launch(stream=Stream("x")), Type, r"stream must be an address .*\(got 'x'\)"),
    (lambda: launch(device="tpu"), Wrong, "got 'tpu'"),
    (lambda: launch("x"), Type, "cannot take an argument of type builtins.str"),
    (lambda: launch([1, 2]), Type, "list; make it a device array"),
    (lambda: launch((1, 2)), Type, "NamedTuple"),
    (lambda: launch(Unmade((1, np.zeros(3)))), Type, "Unmade; make it with a typing.NamedTuple"),
    (lambda: launch(Unmade((1, 2))), Type, "Unmade; make it with a typing.NamedTuple"),
    (lambda: launch(tuple.__new__(Three, (1, 2))), Type, "Three; make it with a typing.NamedTuple"),
    (lambda: launch(tuple.__new__(Three, (1, np.zeros(3)))), Type, "Three; make it with a typing.NamedTuple"),
    (lambda: launch(atos.Array), Type, "the class Array is no array"),
    (lambda: launch(np.ndarray), Type, "the class ndarray is no array"),
    (lambda: launch(np.float32), Type, "float32 is a class"),
    (lambda: launch(Three), Type, "Three is a class"),
    (lambda: atos.asarray(np.ndarray), Type, "the class ndarray is no array"),
    (lambda: atos.asarray(atos.Array), Type, "the class Array is no array"),
    (lambda: launch(2**63, task=number_task), Wrong, "does not fit a signed 64-bit integer"),
    (lambda: launch(np.zeros(8)[::2]), Wrong, "argument 0 is not C-contiguous"),
    (lambda: launch(np.zeros((3, 3)).T), Wrong, "argument 0 is not C-contiguous"),
    (lambda: launch(np.ma.array(np.zeros(3), mask=[0, 1, 0])), Type, "has a mask"),
    (lambda: launch(np.zeros(3, ">i4")), Type, ">i4"),
    (lambda: launch(np.zeros(3, object)), Type, "object"),
    (lambda: launch(np.float16(1)), Type, "float16"),
    (lambda: launch(np.frombuffer(bytes(16), np.int32)), TaskCompileError, "read-only|readonly"),
    (lambda: launch(1, 2, 3), TaskCompileError, "takes"),
    # tasks
    (lambda: atos.task(3), Wrong, "decorates a function, not 3"),
    (lambda: atos.task(workload=3), Wrong, "not 3"),
    (lambda: atos.task(keep), Wrong, "decorates a function"),
    (lambda: launch(task=atos.task(len)), TaskCompileError, "len"),
    (lambda: launch(task=atos.task(dict)), TaskCompileError, "dict"),
    (lambda: launch(task=atos.task(lambda: None)), TaskCompileError, "takes"),
    (lambda: keep(1, 2), TaskCallError, "called from the host"),
    (lambda: atos.Worker(), TaskCallError, "inside tasks only"),
    (lambda: atos.Group(), TaskCallError, "inside tasks only"),
    (lambda: atos.task(workload=len, group=3), InvalidArgumentError, r"group must be 2, 4, 8, 16 or 32 \(got 3\)"),
    *[
        (lambda f=function, n=count: f(*range(n)), TaskCallError, "inside tasks only")
        for function, count in [
            (atos.atomic_min, 3),
            (atos.atomic_max, 3),
            (atos.atomic_add, 3),
            (atos.accumulate, 3),
            (atos.atomic_add2, 4),
            (atos.atomic_add4, 6),
            (atos.atomic_mul, 3),
            (atos.load_cached, 2),
            (atos.local_array, 2),
            (atos.atomic_exch, 3),
            (atos.atomic_cas, 4),
            (atos.atomic_or_, 3),
            (atos.atomic_and_, 3),
            (atos.atomic_xor, 3),
            (atos.atomic_load, 2),
            (atos.atomic_store, 3),
            (atos.fence, 0),
        ]
    ],
    # graphs
    (lambda: edges([-1]), Wrong, r"sources\[0\] is -1"),
    (lambda: edges([2**32 - 1]), Wrong, f"is {2**32 - 1}"),
    (lambda: edges([2**70]), Type, "sources must be integers, not object"),
    (lambda: edges([0.0]), Type, "sources must be integers, not float64"),
    (lambda: edges([np.nan]), Type, "float64"),
    (lambda: edges(RAGGED, [1, 2]), Type, "sources cannot be made an array"),
    (lambda: edges([0, 1]), Wrong, r"same length \(got 2 and 1\)"),
    (lambda: edges([[0]], [[1]]), Wrong, "one-dimensional"),
    (lambda: edges(MASKED, MASKED), Type, "sources has a mask"),
    (lambda: edges(weights=[np.nan]), Wrong, r"weights\[0\] is NaN"),
    (lambda: edges(weights=[1, 2]), Wrong, r"each of the 1 edges \(got shape \(2,\)\)"),
    (lambda: edges(weights=["a"]), Type, "<U1"),
    (lambda: edges(weights=[1j]), Type, "complex128"),
    (lambda: edges(n=1), Wrong, r"targets\[0\] is 1.*num_vertices is 1"),
    (lambda: edges(n=-1), Wrong, r"num_vertices must be from 0 to 4294967295 \(got -1\)"),
    (lambda: edges(n=2**32), Wrong, "num_vertices"),
    (lambda: edges(n=2.0), Type, "num_vertices must be an integer"),
    (lambda: edges(sort="no"), Type, "sort must be True or False"),
    (lambda: edges().simplify(deduplicate=1), Type, "deduplicate must be True or False"),
    (lambda: edges().to("tpu"), Wrong, "got 'tpu'"),
    (lambda: edges().save("a.gr"), Wrong, r"ends in .npz \(got 'a.gr'\)"),
    (lambda: csr(indptr=[]), Wrong, "at least one"),
    (lambda: csr(indptr=[1, 1]), Wrong, r"indptr\[0\] must be 0 \(got 1\)"),
    (lambda: csr(indptr=[0, 2]), Wrong, "number of edges, 1"),
    (lambda: csr(indptr=[0, 2, 1]), Wrong, "must not decrease"),
    (lambda: csr(indptr=3), Wrong, "one-dimensional"),
    (lambda: csr(indices=[1]), Wrong, r"indices\[0\] is 1"),
    (lambda: csr(indices=[-1]), Wrong, r"indices\[0\] is -1"),
    (lambda: csr(weights=[np.inf - np.inf]), Wrong, "is NaN"),
    (lambda: Graph.from_scipy(np.eye(3)), Type, "sparse matrix of SciPy is wanted"),
    (lambda: Graph.from_scipy(scipy.sparse.csr_array((2, 3))), Wrong, r"shape \(2, 3\)"),
    (lambda: Graph.from_scipy(scipy.sparse.csr_array([[np.nan]])), Wrong, "is NaN"),
    (lambda: Graph.from_scipy(scipy.sparse.csr_array([[1e300]]), weights="f4"), Wrong, "1e.300 do not fit float32"),
    (lambda: Graph.from_scipy(scipy.sparse.csr_array([[1]]), weights=None), Type, "got None"),
    (lambda: Graph.from_networkx([(0, 1)]), Type, "graph of NetworkX is wanted"),
    (lambda: Graph.from_networkx(weighted(np.nan), device="cpu"), Wrong, "is NaN"),
    (lambda: Graph.from_networkx(weighted("a"), device="cpu"), Type, "edge attribute 'weight'"),
    (lambda: Graph.from_networkx(weighted([1, [2]]), device="cpu"), Type, "edge attribute 'weight'"),
    (lambda: Graph.load("/nowhere.gr"), MissingFileError, "'/nowhere.gr': No such file"),
    (lambda: Graph.load("/nowhere.gr", weights="no"), Type, "got 'no'"),
    (lambda: Graph.load("/nowhere.gr", sort="no"), Type, "sort must be True or False"),
    # generators
    (lambda: generate.rmat(32), Wrong, r"scale must be from 0 to 31 \(got 32\)"),
    (lambda: generate.rmat(True), Type, "scale must be an integer"),
    (lambda: generate.rmat(3, a="x"), Type, r"a must be a number \(got 'x'\)"),
    (lambda: generate.rmat(3, a=np.nan), Wrong, "a must be a finite number"),
    (lambda: generate.rmat(3, a=0.9, b=0.9), Wrong, r"sum is at most 1 \(got 0.9, 0.9 and 0.19\)"),
    (lambda: generate.rmat(3, seed=-1), Wrong, "seed must be from 0"),
    (lambda: generate.road(3, keep=1.5), Wrong, r"keep must be a probability, 0 to 1 \(got 1.5\)"),
    (lambda: generate.road(3, keep=None), Type, "keep must be a number"),
    (lambda: generate.road(3.0), Type, "side must be an integer"),
    # settings
    (lambda: atos.tune("bfs", budget=1), Type, "tune a function of launch options"),
]


@pytest.mark.parametrize(("call", "error", "message"), TABLE, ids=[f"{number}" for number in range(len(TABLE))])
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, AtosError)


class Pair(NamedTuple):
    first: Any
    second: Any


def test_wrong_members_of_tuples_are_found():
    with pytest.raises(UnsupportedTypeError, match=r"builtins\.str"):
        launch(Pair(array(), Pair(1, "x")))
    with pytest.raises(InvalidArgumentError, match="but at most 256 can be passed"):
        launch(*[array() for _ in range(129)])
