"""Joins: what checks find in launches with `debug=True`, and what is refused."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
from shared_tasks import CALL, fibonacci, launch

import atos_py as atos
from atos_py.errors import (
    InvalidArgumentError,
    LaunchConfigError,
    TaskCompileError,
    TaskError,
    UnsupportedTypeError,
)


class Pair(NamedTuple):
    """An argument with joins in it."""

    joins: Any
    number: int


class TestDebug:
    def check(self, device: atos.Device, body: Any, message: str, item: Any = 0, dtype: Any = np.int64) -> None:
        joins, kept = atos.Joins(5, dtype, device=device), atos.zeros(1, dtype=np.int64, device=device)
        queue = atos.Queue(10, device=device)
        queue.push(0)
        with pytest.raises(TaskError, match=message) as error:
            queue.launch_thread(atos.task(body), joins, kept, debug=True)
        assert (error.value.kind, error.value.item) == ("join", item)

    def test_a_handle_of_a_join_that_has_ended(self, device):
        def body(worker, v, joins, kept):
            j = worker.open(joins, 1)
            worker.arrive_at(joins, j, 1)
            worker.arrive_at(joins, j, 1)

        self.check(device, body, "is the handle of no open join")

    def test_a_handle_of_a_record_that_has_another_join(self, device):
        def body(worker, v, joins, kept):
            j = worker.open(joins, 1)
            worker.arrive_at(joins, j, 1)
            worker.open(joins, 1)
            worker.arrive_at(joins, j, 1)

        self.check(device, body, "is the handle of no open join")

    @pytest.mark.parametrize("dtype", [np.int64, np.int32])
    def test_more_arrivals_than_were_waited_for(self, device, dtype):
        def body(worker, v, joins, kept):
            worker.arrive_at(joins, worker.open(joins, 2), 1, 3)

        self.check(device, body, "more arrive than it waits for", dtype=dtype)

    def test_a_count_that_does_not_fit_beside_a_value(self, device):
        def body(worker, v, joins, kept):
            worker.open(joins, 2**31)

        self.check(device, body, "a join with values of float32 waits for at most 2,147,483,647", dtype=np.float32)

    def test_a_handle_from_before_a_reset(self, device):
        joins, queue = atos.Joins(5, device=device), atos.Queue(10, device=device)
        before = joins.open(1)
        joins.reset()
        assert joins.open(1) != before

        @atos.task
        def late(worker, v, joins, handle):
            worker.arrive_at(joins, handle)

        queue.push(0)
        with pytest.raises(TaskError, match="is the handle of no open join"):
            queue.launch_thread(late, joins, before, debug=True)

    def test_a_value_that_is_taken_too_early(self, device):
        def body(worker, v, joins, kept):
            j = worker.open(joins, 2)
            worker.then(joins, j, 1)
            worker.arrive_at(joins, j, 1)
            kept[0] = worker.take(joins, j)

        self.check(device, body, r"worker.take is for joins whose item has been pushed")

    def test_an_item_of_a_join_that_has_a_parent(self, device):
        def body(worker, v, joins, kept):
            j = worker.open(joins, 1)
            worker.then(joins, worker.open(joins, 1, parent=j), 1)

        self.check(device, body, "a join that ends by a push is opened without a parent")

    def test_no_handle_at_all(self, device):
        def body(worker, v, joins, kept):
            worker.arrive_at(joins, 12345)

        self.check(device, body, "12345 is the handle of no open join")

    def test_a_parent_that_has_ended(self, device):
        def body(worker, v, joins, kept):
            j = worker.open(joins, 1)
            worker.arrive_at(joins, j, 1)
            worker.open(joins, 1, parent=j)

        self.check(device, body, "is the handle of no open join")

    def test_a_count_below_one(self, device):
        def body(worker, v, joins, kept):
            worker.open(joins, v)

        self.check(device, body, r"a join waits for at least 1 arrival \(got 0\)")

    def test_joins_that_are_open_at_the_end(self, device):
        def body(worker, v, joins, kept):
            worker.open(joins, 4)

        self.check(device, body, "1 of the joins in argument 0 of body are open after the launch: .* lacks 4", None)

    def test_nothing_is_wrong(self, device, worker):
        joins, queue = atos.Joins(10, device=device), atos.Queue(100, dtype=CALL, device=device)
        queue.push([(12, 0)])
        launch(queue, worker, fibonacci, joins, debug=True)
        assert joins.result == 144


class TestRefused:
    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"capacity": 0}, "capacity must be from 1"),
            ({"capacity": 5, "max_capacity": 4}, "max_capacity must be from 5"),
            ({"capacity": 5, "combine": "product"}, "combine must be 'sum', 'min', 'max' or None"),
            ({"capacity": 5, "dtype": np.uint8}, "values of joins are of int32, int64, float32, float64"),
            ({"capacity": 5, "dtype": [("a", np.int64)]}, "values of joins are of"),
        ],
    )
    def test_what_they_are_made_of(self, wrong, message):
        with pytest.raises((InvalidArgumentError, UnsupportedTypeError), match=message):
            atos.Joins(**wrong, device="cpu")

    def test_copies(self):
        joins = atos.Joins(5, device="cpu")
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(UnsupportedTypeError, match="joins are neither copied nor pickled"):
                copied(joins)

    def test_launches(self, device):
        joins, queue = atos.Joins(5, device=device), atos.Queue(10, dtype=CALL, device=device)
        for options, message in (
            ({"persistent": False}, "joins, which take a launch with persistent=True"),
            ({"num_blocks": 100_000}, "a launch with joins has at most"),
            ({"idle": lambda worker, joins: None}, "without idle= and each_round="),
            ({"each_round": lambda worker, joins: None, "barrier": True}, "without idle= and each_round="),
        ):
            with pytest.raises(LaunchConfigError, match=message):
                queue.launch_thread(fibonacci, joins, **options)
        with pytest.raises(UnsupportedTypeError, match="joins in a tuple, which are arguments by themselves"):
            queue.launch_thread(fibonacci, Pair(joins, 1))

    def test_several_devices(self):
        graph = atos.Graph.from_edges([0, 1], [1, 0], device="cpu").partition(["cpu", "cpu:1"])
        queue = atos.Queue(10, owner=graph)
        with pytest.raises(LaunchConfigError, match="over several devices take no joins yet"):
            queue.launch_thread(fibonacci, atos.Joins(5, device="cpu"))

    def test_two_launches_at_once(self):
        joins, queue = atos.Joins(5, device="cpu"), atos.Queue(10, dtype=CALL, device="cpu")
        other = atos.Queue(10, dtype=CALL, device="cpu")
        begun, end = threading.Event(), atos.zeros(1, dtype=np.int32, device="cpu")

        @atos.task(opens=0)
        def wait(worker, item, joins, end):
            if end[0] == 0:
                worker.push(item)

        def run() -> None:
            queue.push([(1, 0)])
            queue.launch_thread(wait, joins, end, progress=lambda *_: begun.set())

        thread = threading.Thread(target=run)
        thread.start()
        try:
            assert begun.wait(60)
            with pytest.raises(LaunchConfigError, match="are used by a launch that runs"):
                other.launch_thread(fibonacci, joins)
        finally:
            end[0] = 1
            thread.join()
        other.push([(10, 0)])
        other.launch_thread(fibonacci, joins)
        assert joins.result == 55

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (lambda worker, v, joins: worker.open(joins), r"worker.open is called as worker.open\(joins, count"),
            (lambda worker, v, joins: worker.open(v, 1), "worker.open takes the joins that the task has as an argument"),
            (lambda worker, v, joins: worker.open(joins, 1.5), "worker.open takes count, an integer, not float64"),
            (lambda worker, v, joins: worker.open(joins, 1, parent=1.5), "worker.open takes the handle of a join, not float64"),
            (
                lambda worker, v, joins: worker.open(joins, 1, combine="product"),
                "takes combine='sum', 'min', 'max'",
            ),
            (lambda worker, v, joins: worker.arrive_at(joins, 0, (v, v)), "worker.arrive_at takes a number as the value"),
            (lambda worker, v, joins: worker.arrive_at(joins), "worker.arrive_at is called as"),
            (lambda worker, v, joins: worker.then(joins, 0, 1.5), "worker.push takes an integer"),
            (lambda worker, v, joins: worker.then(joins, 0, 1, priority=2), "worker.then takes a priority only if"),
            (lambda worker, v, joins: worker.take(joins), r"worker.take takes \(joins, j\) by position"),
            (lambda worker, v, joins: joins.peek(), r"joins.peek takes \(j\) by position"),
            (lambda worker, v, joins: joins.expect(0, 1.5), "joins.expect takes n, an integer"),
            (lambda worker, v, joins: joins.open(1), "joins have no 'open' in a task; they offer expect and peek"),
            (lambda worker, v, joins: worker.push(joins), r"joins\(int64, 'sum'\)"),
        ],
    )
    def test_words(self, body, message):
        queue = atos.Queue(10, device="cpu")
        with pytest.raises(TaskCompileError, match=message):
            queue.launch_thread(atos.task(body), atos.Joins(5, device="cpu"))

    def test_a_nested_task_opens_none(self):
        @atos.task(workload=lambda v, joins: v)
        def nested(worker, v, i, joins):
            worker.open(joins, 1)

        with pytest.raises(TaskCompileError, match="open is for flat tasks"):
            atos.Queue(10, device="cpu").launch_cta(nested, atos.Joins(5, device="cpu"))
        with pytest.raises(InvalidArgumentError, match=r"task\(opens=2\) is for flat tasks"):
            atos.task(workload=lambda v: v, opens=2)

    def test_what_is_no_open_join(self):
        joins = atos.Joins(5, device="cpu")
        j = joins.open(2)
        joins.expect(j, 3)
        assert (joins.peek(j), joins.waiting().missing.tolist()) == (0, [5])
        for wrong in (0, 7, j + 1, j + (1 << 34)):
            for call in (joins.peek, lambda handle: joins.expect(handle, 1)):
                with pytest.raises(InvalidArgumentError, match=f"{wrong} is the handle of no open join"):
                    call(wrong)

    def test_how_many_a_task_opens(self):
        for wrong in (-1, 5000, 1.5, "x"):
            with pytest.raises((InvalidArgumentError, UnsupportedTypeError), match="opens"):
                atos.task(opens=wrong)
