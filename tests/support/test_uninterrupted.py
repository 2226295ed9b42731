"""Signals that come while something is compiled: their handlers run afterwards, and nothing is left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import atos_py as atos
from atos_py.compile import host_kernel_cache as numba_cache
from atos_py.compile import host_kernels as parallel
from atos_py.compile.spec import ProgramSpec
from atos_py.support.uninterrupted import uninterrupted

ONE, OTHER = signal.SIGUSR1, signal.SIGUSR2


class TooLateError(Exception):
    """What a handler raises."""


@pytest.fixture(autouse=True)
def _own_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (ONE, OTHER)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def raising(number: int, _frame: Any) -> None:
    raise TooLateError(number)


def test_handlers_run_afterwards():
    events: list[Any] = []

    def handler(number: int, frame: Any) -> None:
        assert frame is not None
        events.append(number)

    signal.signal(ONE, handler)
    signal.signal(OTHER, handler)

    @uninterrupted
    def work(more: int) -> int:
        for number in (OTHER, ONE, OTHER):
            signal.raise_signal(number)
        events.append("worked")
        return more + 1

    assert work(1) == 2
    assert events == ["worked", OTHER, ONE]
    assert signal.getsignal(ONE) is signal.getsignal(OTHER) is handler


def test_what_a_handler_raises_comes_after_the_work():
    done: list[bool] = []
    ran: list[int] = []
    signal.signal(ONE, raising)
    signal.signal(OTHER, lambda number, _frame: ran.append(number))

    @uninterrupted
    def work() -> None:
        signal.raise_signal(ONE)
        signal.raise_signal(OTHER)
        done.append(True)
        raise ValueError("of the work")

    with pytest.raises(TooLateError) as caught:
        work()
    assert isinstance(caught.value.__context__, ValueError)
    assert done == [True]
    assert ran == [OTHER]
    assert signal.getsignal(ONE) is raising


@pytest.mark.parametrize("at", range(4))
def test_a_handler_that_raises_while_handlers_are_changed(monkeypatch, at):
    """Whatever is left in its place hands on to it."""
    signal.signal(ONE, raising)
    calls = iter(range(100))
    change = signal.signal

    def interrupted(number: Any, handler: Any) -> Any:
        if next(calls) == at:
            raise TooLateError(number)
        return change(number, handler)

    with monkeypatch.context() as patch:
        patch.setattr(signal, "signal", interrupted)
        patch.setattr(signal, "valid_signals", lambda: [ONE, OTHER])
        change(OTHER, raising)
        with pytest.raises(TooLateError):
            uninterrupted(lambda: None)()
    for number in (ONE, OTHER):
        with pytest.raises(TooLateError):
            signal.raise_signal(number)


def test_another_thread_changes_no_handlers():
    signal.signal(ONE, raising)
    seen: list[Any] = []
    thread = threading.Thread(target=uninterrupted(lambda: seen.append(signal.getsignal(ONE))))
    thread.start()
    thread.join()
    assert seen == [raising]


def test_a_signal_while_a_task_is_compiled(monkeypatch):
    from atos_py.compile.codegen import prepare
    from atos_py.compile.codegen import target_cpu as cpu

    compiled: list[str] = []
    original = cpu.compile_cpu

    def compile_cpu(spec: ProgramSpec) -> Any:
        code = original(spec)
        signal.raise_signal(ONE)
        compiled.append(spec.task.name)
        return code

    # Where Numba's errors become ours, and so would what a handler raises.
    translated = prepare.translated
    monkeypatch.setattr(prepare, "translated", lambda *args: signal.raise_signal(ONE) or translated(*args))
    monkeypatch.setattr(cpu, "compile_cpu", compile_cpu)
    signal.signal(ONE, raising)
    queue = atos.Queue(4, device="cpu")
    queue.push([1])

    @atos.task
    def body(worker, v, out):
        out[0] = v + 20261122

    out = np.zeros(1, np.int64)
    with pytest.raises(TooLateError):
        queue.launch_cta(body, out)
    assert queue.launch_cta(body, out).tasks_run == 1
    assert out[0] == 20261123
    assert compiled == ["body"]


def test_a_signal_while_a_kernel_of_the_host_is_compiled(monkeypatch):
    ended: list[bool] = []
    save = numba_cache.KernelCache.save_overload

    def save_overload(self: Any, *args: Any) -> None:
        signal.raise_signal(ONE)
        save(self, *args)
        ended.append(True)

    monkeypatch.setattr(numba_cache.KernelCache, "save_overload", save_overload)
    signal.signal(ONE, raising)
    kernel = parallel.compile_kernel(lambda x: x + 20261122)
    with pytest.raises(TooLateError):
        kernel(1)
    assert ended == [True]
    assert kernel(1) == 20261123
