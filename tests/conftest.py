"""What the tests share: a cache directory of their own, the devices to run on, and no GPU tests without a GPU."""

from __future__ import annotations

import gc
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from cases import ALL_COMBINATIONS
from pairwise import pairwise
from repository import ROOT
from resumed import GoOn
from stamps import LeaveOut

import atos_py as atos
from atos_py.arrays import array
from atos_py.core.devices import why_no_gpu
from atos_py.core.library import check, ffi, lib

os.environ.pop("ATOS_DEVICE", None)
# Compilers make many objects that live for a while: with the default, 700, the collector looks at them again and again.
gc.set_threshold(50_000, 20, 100)
pytest.register_assert_rewrite("graph_files", "public_calls", "shared_tasks", "tasks_over_devices")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not ALL_COMBINATIONS:
        _leave_out_repetitions_on_gpus(config, items)
    reason = why_no_gpu()
    if reason is None:
        return
    skip = pytest.mark.skip(reason=f"needs a GPU: {reason}")
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(skip)


def _leave_out_repetitions_on_gpus(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the cases of a test that need a GPU, keep some with every two values of its parameters: each compiles for seconds."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("gpu") and isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out = set()
    for of_test in cases.values():
        kept = pairwise([item.callspec.params for item in of_test])
        left_out.update(item for place, item in enumerate(of_test) if place not in kept)
    _deselect(config, items, left_out)


def _deselect(config: pytest.Config, items: list[pytest.Item], left_out: set[pytest.Item]) -> None:
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_configure(config: pytest.Config) -> None:
    """Begin with an empty cache, so that all tasks are compiled by the code under test; pytest-xdist's workers share it."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        directory = tempfile.TemporaryDirectory(prefix="atos-cache-")
        config.add_cleanup(directory.cleanup)
        os.environ["ATOS_CACHE_DIR"] = directory.name
    config.pluginmanager.register(LeaveOut(config))
    config.pluginmanager.register(GoOn())


@pytest.fixture(scope="session", autouse=True)
def garbage() -> Iterator[None]:
    """Fill arrays whose elements may be anything with a byte that nobody expects, so that nobody relies on zeros."""
    allocate = array._allocate

    def fill(shape: Any, dtype: Any, device: Any, cleared: bool) -> atos.Array:
        new = allocate(shape, dtype, device, cleared)
        if not cleared:
            check(lib.atos_fill(new.device.number, ffi.cast("void *", new.pointer), b"\xa5", 1, new.nbytes))
        return new

    with mock.patch.object(array, "_allocate", fill):
        yield


@pytest.fixture(scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> atos.Device:
    """Each device that tasks run on."""
    return atos.device(request.param)


@pytest.fixture(scope="session", params=["cpu", "team", pytest.param("cuda", marks=pytest.mark.gpu)])
def threaded(request: pytest.FixtureRequest) -> atos.Device:
    """Each device that tasks run on, and a CPU device whose workers have 8 threads."""
    return atos.device("cpu", threads_per_worker=8) if request.param == "team" else atos.device(request.param)


@pytest.fixture(scope="session", params=["thread", "warp", "cta"])
def worker(request: pytest.FixtureRequest) -> str:
    """Each size of worker."""
    return str(request.param)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the directory of the real graphs, which lie beside the checkout or in it."""
    for candidate in (ROOT / "shared" / "data", ROOT.parent / "shared" / "data"):
        if candidate.is_dir():
            return candidate
    pytest.skip("the real graphs are not there (shared/data)")
