"""Several processes of one host: the same launches over shared memory, and errors in place of hangs where one is gone."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import member
import numpy as np
import pytest
from cases import CASES, IS_FULL
from repository import ROOT

import atos_py as atos
from atos_py.core.process_group import turn
from atos_py.distributed.cores import divide_cores
from atos_py.distributed.environment import Place, place_of
from atos_py.distributed.rendezvous import connect_all
from atos_py.errors import DeviceNotFoundError, DistributedError, InvalidArgumentError, UnsupportedTypeError

MEMBER = Path(member.__file__)
LIMIT = 200  # seconds that nothing takes here unless it hangs


def environments(launcher: str, size: int) -> list[dict[str, str]]:
    """The variables that a launcher sets for each process."""
    job = uuid.uuid4().hex
    each = {
        "torchrun": lambda rank: {
            "RANK": rank,
            "WORLD_SIZE": size,
            "LOCAL_RANK": rank,
            "LOCAL_WORLD_SIZE": size,
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": "29500",
            "TORCHELASTIC_RUN_ID": job,
        },
        "mpirun": lambda rank: {
            "OMPI_COMM_WORLD_RANK": rank,
            "OMPI_COMM_WORLD_SIZE": size,
            "OMPI_COMM_WORLD_LOCAL_SIZE": size,
            "PMIX_NAMESPACE": job,
        },
        "pmi": lambda rank: {"PMI_RANK": rank, "PMI_SIZE": size},  # and no name: all are children of this process
        "none": lambda rank: {"MY_RANK": rank, "MY_JOB": job},
    }[launcher]
    return [{name: str(value) for name, value in each(rank).items()} for rank in range(size)]


def start(
    size: int, *cases: str, launcher: str = "torchrun", program: Path = MEMBER, **more: str
) -> list[tuple[int, str, str]]:
    """Run cases, or another program, in several processes; return the status and the output of each."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(program), *cases],
            env={**os.environ, **its, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for its in environments(launcher, size)
    ]
    try:
        said = [process.communicate(timeout=LIMIT) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [(process.returncode, *each) for process, each in zip(processes, said, strict=True)]


def check(results: list[tuple[int, str, str]]) -> list[str]:
    """Return what the processes said, all of which have ended well."""
    assert [status for status, _, _ in results] == [0] * len(results), [errors for _, _, errors in results]
    return [out for _, out, _ in results]


@pytest.mark.parametrize(("size", "launcher"), [(2, "mpirun"), (4, "torchrun")])
def test_searches(size, launcher):
    check(start(size, "searches", *["algorithms"] * (size == 2), launcher=launcher))


@pytest.mark.parametrize(("size", "launcher"), [(2, "mpirun"), (3, "torchrun"), (2, "pmi")])
def test_the_example(size, launcher):
    """As a launcher starts it; one process speaks for all."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    first, *others = check(start(size, "9", launcher=launcher, program=ROOT / "examples" / "multi_node.py", PYTHONPATH=path))
    assert others == [""] * (size - 1)
    graph = atos.generate.rmat(9, device="cpu")
    depth = atos.bfs(graph, int(graph.degrees().argmax())).depth.to_numpy()
    levels = np.bincount(depth[depth != atos.UNREACHED])
    assert f"over {', '.join(['cpu', *(f'cpu:{i}' for i in range(1, size))])})\n" in first
    assert f"{', '.join(map(str, levels))} vertices in the levels from 0 on; verified" in first


def test_kinds_and_rounds():
    check(start(3, "kinds", "rounds", "buckets", "shown", "mirrors", "pushed_levels", "meshes"))


def test_random_trees():
    said = check(start(3, "trees", launcher="pmi", TREES=str(CASES // 4)))
    assert int(said[0]) > 3  # launches that were stopped


def test_checkpoints_go_on_in_other_processes(tmp_path):
    """Saved by two processes and loaded by any number of them, and by one device here; and the other way round."""
    folder, from_here = tmp_path / "theirs", tmp_path / "mine"
    folder.mkdir()
    from_here.mkdir()
    check(start(2, "saved", FOLDER=str(folder)))
    saved = sorted(folder.glob("*.atos"))
    assert len(saved) == 4
    for path in saved:
        member.go_on(None, path)
    for size in (1, 3):
        check(start(size, "resumed", FOLDER=str(folder)))
    for barrier in (False, True):
        member.stop_and_save(None, from_here / f"{barrier}.atos", barrier, None)
    check(start(2, "resumed", FOLDER=str(from_here)))


def test_checkpoints_keep_tasks_and_priorities(tmp_path):
    check(start(3, "kept", FOLDER=str(tmp_path), launcher="pmi"))
    ids = [*range(1, 40, 3), *range(0, 60, 2), 41]
    names = [None] * 13 + ["even"] * 30 + ["odd"]
    priorities = [10 - place / 3 for count in (13, 30, 1) for place in range(count)]
    for itemsize, options, tasks in itertools.product((4, 12), (0, 2), (1, 3)):
        queue = atos.Queue.load(tmp_path / f"{itemsize}-{options}-{tasks}", device="cpu")
        items, kinds = queue.peek(kinds=True)
        found = list(zip((items if itemsize == 4 else items["vertex"]).tolist(), kinds, strict=True))
        expected = list(zip(ids, names, strict=True))[: 13 if tasks == 1 else None]
        assert sorted(found, key=str) == sorted(expected, key=str)
        if options:
            ordered = [priorities[expected.index(each)] for each in found]
            assert ordered == sorted(ordered)
        assert (queue.buckets, queue.delta) == ((8, 2.5) if options else (None, None))


def test_checkpoints_that_fail_in_one_process(tmp_path):
    check(start(3, "unsaved", FOLDER=str(tmp_path)))


def test_stops_and_refusals():
    check(start(2, "stops", "refusals", launcher="none"))


@pytest.mark.skipif(not IS_FULL, reason="takes as long as processes have to stop")
def test_a_task_that_hangs_in_one_process():
    check(start(3, "stuck"))


@pytest.mark.parametrize("barrier", ["0", "1"], ids=["relaxed", "barrier"])
def test_a_process_that_is_killed_gives_an_error_on_the_others(barrier):
    results = start(3, "killed", BARRIER=barrier)
    assert results[1][0] == -signal.SIGKILL
    assert check([results[0], results[2]]) == ["told\n"] * 2


def test_a_process_that_ends_gives_an_error_on_the_others():
    results = start(3, "ended")
    assert check([results[0], results[2]]) == ["told\n"] * 2


def test_a_forked_child_does_not_stand_for_its_parent():
    results = start(2, "forked")
    os.kill(int(results[1][1]), signal.SIGKILL)
    check(results)


@pytest.fixture
def on_gpus(monkeypatch):
    """Have each of two processes use a GPU of its own, or both of them the same one."""
    several = sum(device.kind == "cuda" for device in atos.devices()) > 1
    monkeypatch.setenv("ATOS_TEST_DEVICE", "cuda" if several else "cuda:0")


@pytest.mark.gpu
@pytest.mark.parametrize(
    "cases", ["searches", "algorithms", "kinds rounds buckets", "shown mirrors meshes", "trees", "saved kept", "stops refusals"]
)
def test_gpus(cases, on_gpus, tmp_path):
    check(start(2, *cases.split(), FOLDER=str(tmp_path), TREES=str(min(CASES // 4, 20))))


@pytest.mark.gpu
@pytest.mark.parametrize("barrier", ["0", "1"], ids=["relaxed", "barrier"])
def test_a_process_with_a_gpu_that_is_killed_gives_an_error_on_the_other(barrier, on_gpus):
    results = start(2, "killed", BARRIER=barrier)
    assert (results[1][0], check(results[:1])) == (-signal.SIGKILL, ["told\n"])


@pytest.mark.gpu
def test_processes_with_a_gpu_and_without(tmp_path):
    program = tmp_path / "mixed.py"
    program.write_text(
        "import os, atos_py as atos\n"
        "try:\n"
        "    atos.distributed.init(device='cuda:0' if os.environ['RANK'] == '0' else 'cpu')\n"
        "except atos.InvalidArgumentError as error:\n"
        "    print(error)\n"
    )
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    said = check(start(2, program=program, PYTHONPATH=path))
    assert said == ["either all processes have GPUs, or none has (got cuda:0, cpu:1)\n"] * 2


def test_a_process_without_its_device_gives_an_error_on_the_others(tmp_path):
    program = tmp_path / "lacking.py"
    program.write_text(
        "import os, atos_py as atos\n"
        "try:\n"
        "    atos.distributed.init(device='cuda:99' if os.environ['RANK'] == '1' else None)\n"
        "except atos.AtosError as error:\n"
        "    print(type(error).__name__, error)\n"
        "assert atos.distributed.init(0, 1, job=os.environ['RANK']).world_size == 1\n"
    )
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    first, second = check(start(2, program=program, PYTHONPATH=path))
    assert first.startswith("DistributedError process 1: there is no device 'cuda:99'")
    assert second.startswith("DeviceNotFoundError there is no device 'cuda:99'")


def test_cores_are_divided():
    four = {0, 1, 2, 3}
    assert divide_cores([four] * 2, [4] * 2) == [2, 2]
    assert divide_cores([four] * 3, [4] * 3) == [2, 1, 1]
    assert divide_cores([four] * 5, [4] * 5) == [1] * 5
    assert divide_cores([{0, 1}, {2, 3}], [2, 2]) == [2, 2]  # bound to cores of their own
    assert divide_cores([four, four, {8}], [4, 4, 1]) == [2, 2, 1]
    assert divide_cores([set(range(64))] * 4, [10] * 4) == [3, 3, 2, 2]  # by a quota


def test_environments():
    for launcher in ("torchrun", "mpirun", "pmi"):
        places = [place_of(its) for its in environments(launcher, 3)]
        assert [place and (place.rank, place.world_size) for place in places] == [(0, 3), (1, 3), (2, 3)]
        assert len({place and place.job for place in places}) == 1
        if launcher != "pmi":
            assert place_of(environments(launcher, 3)[0]).job != places[0].job  # type: ignore[union-attr]
    assert place_of({}) is None
    (first,) = environments("torchrun", 1)
    with pytest.raises(DistributedError, match="RANK is not a number"):
        place_of({**first, "RANK": "first"})


def test_init_refuses(monkeypatch):
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    init = atos.distributed.init
    with pytest.raises(DistributedError, match="torchrun"):
        init()
    with pytest.raises(InvalidArgumentError, match="together"):
        init(rank=0)
    with pytest.raises(InvalidArgumentError, match="rank must be from 0 to 1"):
        init(2, 2)
    with pytest.raises(UnsupportedTypeError, match="device must be a device"):
        init(0, 1, device=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="CPU device of process 0 is cpu:0"):
        init(0, 1, device="cpu:1")
    with pytest.raises(InvalidArgumentError, match="that of its graph"):
        init(engine="mpi", device="cpu")
    with pytest.raises(DeviceNotFoundError, match="there is no device 'cuda:99'"):
        init(0, 1, device="cuda:99")
    with pytest.raises(UnsupportedTypeError, match="job"):
        init(0, 1, job=3)  # type: ignore[arg-type]
    with pytest.raises(DistributedError, match="waited in vain for processes 1, 2"):
        init(0, 3, job="nobody comes", timeout=0.05)
    with pytest.raises(DistributedError, match="waited in vain for process 0"):
        init(1, 2, job="nobody comes", timeout=0.05)
    with pytest.raises(InvalidArgumentError, match=r"distributed\.init\(\)"):
        atos.generate.road(3, device="cpu").partition()


def test_a_device_is_for_one_host(monkeypatch):
    for name, value in {"RANK": 0, "WORLD_SIZE": 4, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 2}.items():
        monkeypatch.setenv(name, str(value))
    with pytest.raises(InvalidArgumentError, match=r"device='cuda'.*several hosts"):
        atos.distributed.init(device="cuda")


def test_processes_that_do_not_fit():
    """In threads, which meet as processes do."""
    with ThreadPoolExecutor(2) as pool:
        job = uuid.uuid4().hex
        first, second = pool.submit(connect_all, Place(0, 2, job), LIMIT), pool.submit(connect_all, Place(1, 3, job), 0.5)
        with pytest.raises(DistributedError, match="process 1 of 3 has called, and this is process 0 of 2"):
            first.result()
        with pytest.raises(DistributedError, match="in vain for process 2"):
            second.result()
        job = uuid.uuid4().hex
        first = pool.submit(connect_all, Place(0, 2, job), 0.5)
        while not first.done():
            with pytest.raises(DistributedError, match=r"there already|in vain"):
                connect_all(Place(0, 2, job), 0.01)
        with pytest.raises(DistributedError):
            first.result()


def test_a_group_of_one():
    with atos.distributed.init(0, 1) as group:
        with pytest.raises(InvalidArgumentError, match="met others already"):
            atos.distributed.init(0, 1)
        parts = atos.generate.road(3, device="cpu").partition()
        assert parts.original.to_numpy().tolist() == list(range(9))
        assert group.gather(b"x" * 10_000) == [b"x" * 10_000]
        array = atos.full((9, 2), 4, partition=parts)
        array[2:4] = 1
        assert array.to_numpy().sum() == 4 * 18 - 12
        with turn(group), ThreadPoolExecutor(1) as pool:
            group.barrier()
            with pytest.raises(DistributedError, match="another thread"):
                pool.submit(group.barrier).result()
        group.barrier()
    with pytest.raises(DistributedError, match="has left"):
        group.gather(b"x")
