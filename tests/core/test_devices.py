"""Devices: how they are named, what they tell of themselves, and which one is taken."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pytest

import atos_py as atos
from atos_py.core.devices import driver_version, why_no_gpu
from atos_py.errors import DeviceNotFoundError, InvalidArgumentError

CPU = atos.Device("cpu")


def test_the_cpu():
    assert atos.device("cpu") == CPU
    assert (str(CPU), CPU.number, CPU.name, CPU.compute_capability) == ("cpu", -1, "CPU threads", (0, 0))
    assert CPU.processors == len(os.sched_getaffinity(0))
    assert CPU.max_threads_per_block == 0
    free, total = CPU.memory
    assert 0 < free <= total
    assert total == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_the_cpu_is_as_many_devices_as_one_likes():
    assert atos.device("cpu:0") == CPU
    other = atos.device("cpu:3")
    assert other == atos.Device("cpu", 3) != CPU
    assert (str(other), other.number, other.processors) == ("cpu:3", CPU.number, CPU.processors)
    queue = atos.Queue(3, device=other)
    array = atos.full(3, 7, device="cpu:3")
    assert queue.device == array.device == array.copy().device == other
    assert atos.asarray(array, device="cpu").device == CPU
    with pytest.raises(InvalidArgumentError, match="must be from 0 to 2147483647"):
        atos.device("cpu:" + "9" * 30)


def test_algorithms_run_on_any_cpu_device():
    graph = atos.generate.rmat(6, 4, 1, device="cpu:1")
    first = graph.to("cpu")
    assert str(atos.bfs(graph, 0).stats.device) == "cpu:1"
    assert np.array_equal(atos.pagerank(graph).rank.to_numpy(), atos.pagerank(first).rank.to_numpy())
    features = np.arange(128.0).reshape(64, 2)
    assert np.array_equal(np.asarray(atos.spmm(graph, features)), np.asarray(atos.spmm(first, features)))


def test_devices_are_values():
    assert atos.Device("cuda", 1) == atos.Device("cuda", 1) != atos.Device("cuda", 0)
    assert len({CPU, atos.Device("cpu"), atos.Device("cuda")}) == 2
    assert atos.device(CPU) is CPU
    with pytest.raises(dataclasses.FrozenInstanceError):
        CPU.index = 1


def test_the_list_of_devices_ends_with_the_cpu():
    found = atos.devices()
    assert found[-1] == CPU
    assert [str(device) for device in found[:-1]] == [f"cuda:{i}" for i in range(len(found) - 1)]
    assert atos.device() == found[0]
    assert (why_no_gpu() is None) == (len(found) > 1)
    assert (driver_version() is None) == (len(found) == 1)


@pytest.mark.parametrize(
    "name", ["gpu", "CPU", "cpu:", "cpu0", "cpu:-1", "cuda:", "cuda:x", "cuda:-1", "cuda:1.0", " cpu", "", "cpu\n", "cuda:1\n"]
)
def test_names_of_no_device(name):
    with pytest.raises(InvalidArgumentError, match=r"a device is 'cpu', 'cpu:N', 'cuda' or 'cuda:N' \(got "):
        atos.device(name)


@pytest.mark.parametrize("wrong", [0, 1.5, ["cpu"], b"cpu"])
def test_what_is_no_name(wrong):
    with pytest.raises(InvalidArgumentError, match="a device is"):
        atos.device(wrong)


def test_a_gpu_that_is_not_there():
    with pytest.raises(DeviceNotFoundError, match="there is no device 'cuda:99': ") as error:
        atos.device("cuda:99")
    assert isinstance(error.value, LookupError)
    reason = why_no_gpu()
    assert (reason or "this machine has") in str(error.value)


def test_the_environment_names_the_default(monkeypatch):
    monkeypatch.setenv("ATOS_DEVICE", "cpu")
    assert atos.device() == CPU
    assert atos.zeros(3).device == CPU
    assert atos.Queue(3).device == CPU
    monkeypatch.setenv("ATOS_DEVICE", "tpu")
    with pytest.raises(InvalidArgumentError, match="got 'tpu'"):
        atos.device()
    monkeypatch.setenv("ATOS_DEVICE", "cuda:99")
    with pytest.raises(DeviceNotFoundError, match="cuda:99"):
        atos.Queue(3)
    assert atos.device("cpu") == CPU  # what is said in the program counts
    monkeypatch.setenv("ATOS_DEVICE", "")
    assert atos.device() == atos.devices()[0]


@pytest.mark.gpu
def test_a_gpu():
    gpu = atos.device("cuda")
    assert gpu == atos.device("cuda:0") == atos.device() == atos.Device("cuda", 0)
    assert gpu.number == 0
    assert "NVIDIA" in gpu.name
    assert gpu.compute_capability >= (7, 5)
    assert gpu.processors > 1
    assert gpu.max_threads_per_block == 1024
    free, total = gpu.memory
    assert 0 < free <= total
    assert (12, 0) <= driver_version() < (100, 0)
    kept = atos.zeros(1 << 28, dtype="int32", device=gpu)
    assert free - gpu.memory[0] >= kept.nbytes - (64 << 20)
