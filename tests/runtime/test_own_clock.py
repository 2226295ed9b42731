"""Timeouts of launches whose host is held up: workers of a GPU then stop by their own clock."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest
from shared_tasks import again, every_schedule, launch

import atos_py as atos
from atos_py.errors import LaunchTimeoutError

pytestmark = pytest.mark.gpu


def sum_of(added):
    """Return a task that is a program of its own."""

    @atos.task
    def add(worker, v, out):
        if worker.rank == 0:
            atos.atomic_add(out, 0, v + added)

    return add


@every_schedule
@pytest.mark.parametrize("num_blocks", [None, 1])
def test_workers_stop_while_the_host_is_held_up(worker, persistent, barrier, num_blocks):
    """The callback waits for the kernel, as the driver may where another thread loads a program."""
    driver = ctypes.CDLL("libcuda.so.1")
    waited = []
    queue = atos.Queue(4000, device="cuda")
    queue.push(range(3000))
    options = {"persistent": persistent, "barrier": barrier, "num_blocks": num_blocks, "timeout": 0.3}
    launch(atos.Queue(1, device="cuda"), worker, again, **options)  # compiles it
    with pytest.raises(LaunchTimeoutError, match=r"its timeout of 0\.3 s; 3000 tasks are unfinished") as stopped:
        launch(queue, worker, again, progress=lambda *_: waited.append(driver.cuCtxSynchronize()), **options)
    assert waited
    assert set(waited) == {0}
    assert (stopped.value.pending, stopped.value.stuck) == (3000, False)
    assert np.sort(queue.peek()).tolist() == list(range(3000))


@pytest.mark.parametrize("persistent", [True, False])
def test_a_timeout_comes_while_another_thread_loads_programs_and_frees_memory(persistent):
    queue, sums, failed = atos.Queue(4000, device="cuda"), [], []
    queue.push(range(3000))
    launch(atos.Queue(1, device="cuda"), "warp", again, persistent=persistent)

    def load() -> None:
        try:
            for added in range(3):
                other, out = atos.Queue(10, device="cuda"), atos.zeros(1, dtype=np.int64, device="cuda")
                other.push(range(10))
                other.launch_warp(sum_of(added), out)
                sums.append(int(out.to_numpy()[0]))
        except BaseException as error:
            failed.append(error)
            raise

    thread = threading.Thread(target=load)
    thread.start()
    launches = 0
    while thread.is_alive() or not launches:
        with pytest.raises(LaunchTimeoutError, match="3000 tasks are unfinished"):
            launch(queue, "warp", again, persistent=persistent, timeout=0.2)
        launches += 1
    thread.join()
    assert not failed
    assert sums == [45, 55, 65]
    assert np.sort(queue.peek()).tolist() == list(range(3000))
