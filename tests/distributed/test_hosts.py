"""Processes that exchange messages, as on several hosts: each has its part of a graph, and launches proceed by rounds."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import CASES
from repository import ROOT

import atos_py as atos
from atos_py.distributed.engines import engine_of_launcher
from atos_py.distributed.environment import is_on_several_hosts
from atos_py.errors import DistributedError, InvalidArgumentError, MissingPackageError

MEMBER = Path(__file__).parent / "host_member.py"
LIMIT = 200  # seconds that nothing takes here unless it hangs
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


ENGINES = [
    pytest.param("mpi", marks=pytest.mark.skipif(not (MPIEXEC and has("mpi4py")), reason="mpi4py or mpiexec is missing")),
    pytest.param("torch", marks=pytest.mark.skipif(not has("torch"), reason="PyTorch is missing")),
]


def environment() -> dict[str, str]:
    """Return that of this process, with this package's source where others find it, and one thread for each library."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def start(engine: str, size: int, *arguments: str, program: Path = MEMBER) -> tuple[list[int], str, str]:
    """Run a program in several processes; return their statuses, or that of MPI's launcher, and what they said."""
    command = [sys.executable, str(program), *arguments]
    if engine == "mpi":
        assert MPIEXEC is not None
        done = subprocess.run(
            [MPIEXEC, "-n", str(size), *command], env=environment(), capture_output=True, text=True, timeout=LIMIT, check=False
        )
        return [done.returncode], done.stdout, done.stderr
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size), "ENGINE": engine}
    processes = [
        subprocess.Popen(
            command,
            env={**environment(), **where, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        said = [process.communicate(timeout=LIMIT) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], *("".join(each) for each in zip(*said, strict=True))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [2, 4])
def test_tasks_and_algorithms(engine, size, monkeypatch):
    monkeypatch.setenv("CASES", str(CASES // 4))
    status, _, errors = start(engine, size, "tasks", "algorithms")
    assert set(status) == {0}, errors


@pytest.mark.parametrize("engine", ENGINES)
def test_refusals(engine):
    status, _, errors = start(engine, 2, "refusals")
    assert set(status) == {0}, errors


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [2, 3])
def test_full_queues_and_stops(engine, size):
    status, _, errors = start(engine, size, "stops")
    assert set(status) == {0}, errors


@pytest.mark.parametrize("engine", ENGINES)
def test_groups_that_are_left_open(engine, tmp_path):
    """Programs need not close their group before they end."""
    program = tmp_path / "program.py"
    program.write_text(f"import atos_py as atos\natos.distributed.init(engine={engine!r}).barrier()\n")
    status, _, errors = start(engine, 3, program=program)
    assert set(status) == {0}, errors


@pytest.mark.parametrize("engine", ENGINES)
def test_a_process_that_is_killed(engine):
    """MPI ends the others; PyTorch lets them see an error."""
    status, said, errors = start(engine, 3, "killed")
    if engine == "mpi":
        assert status[0] != 0
    else:
        assert status == [0, 0, -9], errors
        assert said == "told\ntold\n"


@pytest.fixture
def two_gpus() -> None:
    """Skip tests of two processes with a GPU each where they cannot run."""
    if not has("torch"):
        pytest.skip("PyTorch is missing")
    if sum(device.kind == "cuda" for device in atos.devices()) < 2:
        pytest.skip("there is no second GPU for the second process")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def nccl_size(request, monkeypatch) -> int:
    """Have tests use NCCL between two GPUs, or Gloo in its place; return how many processes."""
    if not has("torch"):
        pytest.skip("PyTorch is missing")
    if request.param == "cuda":
        request.getfixturevalue("two_gpus")
        monkeypatch.setenv("ATOS_TEST_ON_GPUS", "1")
        return 2
    monkeypatch.setenv("ATOS_TEST_NCCL_ON_CPU", "1")
    return 3


@pytest.mark.parametrize("longest", [0, 100])
def test_messages_by_nccl(nccl_size, longest, monkeypatch):
    """All messages are long ones, or some."""
    monkeypatch.setenv("ATOS_TEST_LONG_MESSAGE", str(longest))
    monkeypatch.setenv("CASES", str(CASES // 8))
    status, _, errors = start("nccl", nccl_size, "tasks", "algorithms", "refusals", "stops")
    assert set(status) == {0}, errors


@pytest.mark.parametrize("case", ["killed", "killed_in_a_message"])
def test_a_process_that_is_killed_with_nccl(nccl_size, case, monkeypatch):
    monkeypatch.setenv("ATOS_TEST_LONG_MESSAGE", "100")
    status, said, errors = start("nccl", nccl_size, case)
    assert status == [0] * (nccl_size - 1) + [-9], errors
    assert said == "told\n" * (nccl_size - 1)


@pytest.mark.parametrize("case", ["failed_before_a_message", "failed_in_a_message"])
def test_a_process_that_fails_with_nccl(nccl_size, case, monkeypatch):
    monkeypatch.setenv("ATOS_TEST_LONG_MESSAGE", "100")
    status, said, errors = start("nccl", nccl_size, case)
    assert set(status) == {0}, errors
    assert said == "told\n" * nccl_size


@pytest.mark.skipif(not has("torch"), reason="PyTorch is missing")
@pytest.mark.parametrize(
    ("visible", "message"),
    [
        ("", "PyTorch finds none in process 0, 1; take engine='torch'"),
        pytest.param("0", "DistributedError: torch.distributed could not exchange messages", marks=pytest.mark.gpu),
    ],
)
def test_nccl_without_a_gpu_for_each_process(visible, message, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    status, _, errors = start("nccl", 2)
    assert set(status) == {1}
    assert errors.count(message) == 2, errors


@pytest.mark.parametrize(
    ("engine", "size", "device", "scale"),
    [
        pytest.param("mpi", 3, "cpu", 9, marks=ENGINES[0].marks),
        pytest.param("nccl", 2, "cuda:0", 17, marks=pytest.mark.gpu),  # with messages that go by NCCL
    ],
)
def test_the_example(engine, size, device, scale, request):
    if engine == "nccl":
        request.getfixturevalue("two_gpus")
    status, said, errors = start(engine, size, str(scale), engine, program=ROOT / "examples" / "multi_node.py")
    assert set(status) == {0}, errors
    graph = atos.generate.rmat(scale, device="cpu")
    depth = atos.bfs(graph, int(graph.degrees().argmax())).depth.to_numpy()
    levels = np.bincount(depth[depth != atos.UNREACHED])
    assert f"{', '.join(map(str, levels))} vertices in the levels from 0 on; verified" in said
    assert f"host 0 of {size} on {device}" in said


def test_launchers():
    several = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    assert is_on_several_hosts(several)
    assert engine_of_launcher(several) == "mpi"
    assert not is_on_several_hosts({**several, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"})
    torchrun = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "TORCHELASTIC_RUN_ID": "a"}
    assert is_on_several_hosts(torchrun)
    assert engine_of_launcher(torchrun) == "torch"
    assert not is_on_several_hosts({})


def test_wrong_engines(monkeypatch):
    with pytest.raises(InvalidArgumentError, match=r"engine must be one of mpi, torch, nccl \(got 'gloo'\)"):
        atos.distributed.init(engine="gloo")
    with pytest.raises(InvalidArgumentError, match="knows rank, world_size and job by itself"):
        atos.distributed.init(0, 1, engine="mpi")
    monkeypatch.setitem(sys.modules, "torch", None)
    for engine in ("torch", "nccl"):
        with pytest.raises(MissingPackageError, match="need PyTorch"):
            atos.distributed.init(engine=engine)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"):
        monkeypatch.setenv(name, {"RANK": "0", "WORLD_SIZE": "2"}.get(name, "1"))
    with pytest.raises(MissingPackageError, match="need PyTorch"):  # by the launcher
        atos.distributed.init()


@pytest.mark.skipif(not has("mpi4py"), reason="mpi4py is missing")
def test_a_launcher_of_another_library():
    """It starts processes of which MPI knows nothing, so that each would be alone."""
    program = "import atos_py as atos; atos.distributed.init()"
    several = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment(), **several},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert DistributedError.__name__ in done.stderr
    assert "calls this process 1 of 4, and mpi 0 of 1" in done.stderr
