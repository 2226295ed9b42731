"""Where the time of a launch goes: the parts add up to the call, and profilers see them as ranges."""

from __future__ import annotations

import itertools
import os
import sys
import time
import types

import numpy as np
import pytest

import atos_py as atos
from atos_py.compile import timing as profile
from atos_py.compile.timing import Profile, during, profile_of

_numbers = itertools.count(os.getpid() % 100_000 * 1000)  # not those of another process of this run, which has the same cache


def fresh():
    """Return a task that nobody has compiled."""
    number = next(_numbers)

    @atos.task
    def mark(worker, v, out):
        out[v] = number

    return mark


def run(task, device, **options):
    out = atos.zeros(1000, dtype=np.uint32, device=device)
    queue = atos.Queue(1000, device=device)
    queue.push(np.arange(1000))
    begin = time.perf_counter()
    stats = queue.launch_warp(task, out, **options)
    return stats, (time.perf_counter() - begin) * 1e3


class TestLaunch:
    def test_the_first_launch_compiles_and_the_next_does_not(self, device):
        task = fresh()
        first, again = run(task, device)[0].profile, run(task, device)[0].profile
        assert first.compile > 0
        assert first.load > 0
        assert (first.link > 0) == (device.kind == "cuda")
        assert (again.compile, again.link, again.load) == (0, 0, 0)

    def test_the_parts_add_up_to_the_call(self, device):
        task = fresh()
        for _ in range(3):
            stats, outside = run(task, device)
            assert all(part >= 0 for part in stats.profile.parts().values())
            assert stats.profile.run + stats.profile.copy == pytest.approx(max(stats.milliseconds, stats.profile.copy))
            assert 0 < stats.profile.call <= outside

    def test_a_queue_that_grows_is_copied(self, device):
        @atos.task
        def spread(worker, left):
            if left > 0:
                worker.push(left - 1)
                worker.push(left - 1)

        queue = atos.Queue(2, max_capacity=1 << 16, device=device)
        queue.push(10)
        stats = queue.launch_thread(spread, persistent=False)  # which grows between kernels
        assert stats.grown > 0
        assert 0 < stats.profile.copy <= stats.profile.call

    def test_a_task_that_does_not_compile_leaves_the_clock_in_order(self):
        @atos.task
        def wrong(worker, v, out):
            out.nothing_like_it(v)

        with pytest.raises(atos.TaskCompileError):
            run(wrong, "cpu")
        stats, outside = run(fresh(), "cpu")
        assert 0 < stats.profile.call <= outside


class TestParts:
    def test_time_belongs_to_the_innermost_part(self):
        begin = time.perf_counter()
        with during("load", "t"):
            time.sleep(0.002)
            for _ in range(2):
                with during("compile", "t"):
                    time.sleep(0.05)
        parts = profile_of(begin, 0.0, 0.0)
        assert parts.compile >= 100
        assert 2 <= parts.load < 100
        assert parts.link == parts.run == 0
        assert parts.call <= (time.perf_counter() - begin) * 1e3

    def test_what_was_before_the_launch_is_not_its_own(self):
        with pytest.raises(ZeroDivisionError), during("load", "t"), during("compile", "t"):
            raise ZeroDivisionError
        parts = profile_of(time.perf_counter(), 0.0, 0.0)
        assert parts.load == parts.compile == 0
        begin = time.perf_counter()
        with during("link", "t"):
            pass
        assert profile_of(begin, 0.0, 0.0).load == 0

    def test_what_the_device_did_is_taken_from_the_launch(self):
        begin = time.perf_counter()
        time.sleep(0.01)
        parts = profile_of(begin, 6.0, 2.0)
        assert (parts.run, parts.copy) == (4.0, 2.0)
        assert parts.launch >= 4
        assert parts.call == pytest.approx(parts.launch + 6)

    def test_profiles_add_up(self):
        total = Profile(compile=1, run=2) + Profile(run=3, copy=4)
        assert total == Profile(compile=1, copy=4, run=5)
        assert total.call == 10
        assert str(total) == "call 10.000 ms: compile 1.000, copy counters 4.000, run 5.000"
        assert str(Profile()) == "call 0.000 ms: nothing"


class TestRanges:
    @pytest.fixture
    def ranges(self, monkeypatch):
        """The package nvtx, which notes what is asked of it."""
        seen: list[str] = []

        class Range:
            def __init__(self, name, domain):
                assert domain == "atos_py"
                self.name = name

            def __enter__(self):
                seen.append(f"[{self.name}")

            def __exit__(self, *_):
                seen.append(f"{self.name}]")

        monkeypatch.setitem(sys.modules, "nvtx", types.SimpleNamespace(annotate=Range))
        profile.nvtx_annotate.cache_clear()
        yield seen
        profile.nvtx_annotate.cache_clear()

    def test_launches_and_what_comes_before_them(self, ranges):
        task = fresh()
        run(task, "cpu")
        assert ranges == ["[load mark", "[compile mark", "compile mark]", "load mark]", "[mark", "mark]"]
        ranges.clear()
        run(task, "cpu")
        assert ranges == ["[mark", "mark]"]

    @pytest.mark.parametrize("found", [None, types.ModuleType("nvtx")])
    def test_none_without_the_package(self, monkeypatch, found):
        monkeypatch.setitem(sys.modules, "nvtx", found)
        profile.nvtx_annotate.cache_clear()
        with profile.annotated("x") as nothing:
            assert nothing is None
        profile.nvtx_annotate.cache_clear()
