"""Arguments of a launch, packed into words in one pass."""

from __future__ import annotations

import numpy as np
import pytest
from fake_arrays import FakeArray, Pair

import atos_py as atos
from atos_py.arrays.private import PrivateArray
from atos_py.compile.arguments import describe, device_words, words
from atos_py.runtime.arguments_over import ArgumentsOverDevices
from atos_py.runtime.launch_arguments import Arguments

CPU = atos.device("cpu")


def flat(value):
    """Return the members of an argument, however deep."""
    return [each for member in value for each in flat(member)] if isinstance(value, tuple) else [value]


def test_what_one_device_takes_is_packed_as_it_is_described():
    array, frozen = atos.zeros((2, 3), device=CPU), atos.asarray(np.arange(4), device=CPU, readonly=True)
    numbers = [True, 7, -1, 1.5, np.int8(-2), np.uint64(2**64 - 1), np.float32(2.5), np.bool_(False)]
    given = [array, frozen, None, *numbers, Pair(Pair(array, 1.5), None), Pair(np.int8(-2), frozen)]
    packed = Arguments(given, CPU)
    assert list(packed.kinds) == list(map(describe, given))
    assert packed.words == [word for value in given for word in words(value)]
    assert all(one is other for one, other in zip(packed.values, given, strict=True))
    assert packed.is_steady
    assert Arguments((), CPU).is_steady


def test_what_may_change_until_the_next_launch_is_packed_again():
    array, queue, pool = np.zeros(3), atos.Queue(1, device=CPU), atos.Pool("i4", 4, device=CPU)
    for value in (array, Pair(1, array), FakeArray(array), queue, pool):
        packed = Arguments((1, value), CPU)
        assert not packed.is_steady
    assert Arguments((queue,), CPU).receivers[0][0] is queue
    assert Arguments((1, pool), CPU).pools == [(pool, 1, 2)]
    (wrapped,) = Arguments((Pair(1, array),), CPU).values
    assert type(wrapped) is Pair
    assert wrapped.second.pointer == array.ctypes.data


@pytest.mark.parametrize("value", [[1], (1, 2), "text", int, atos.Device("cpu")])
def test_what_no_task_takes(value):
    for given in (value, Pair(1, value)):
        with pytest.raises(atos.UnsupportedTypeError, match="a task cannot take an argument of type"):
            Arguments((given,), CPU)


def test_a_queue_is_no_member_of_a_tuple():
    with pytest.raises(atos.UnsupportedTypeError):
        Arguments((Pair(1, atos.Queue(1, device=CPU)),), CPU)


def test_arrays_on_other_devices():
    there = atos.zeros(3, device="cpu:1")
    for given in (there, Pair(1, there)):
        with pytest.raises(atos.InvalidArgumentError, match="argument 1 is on cpu:1, the task runs on cpu; copy it"):
            Arguments((1, given), CPU)


def test_words_over_several_devices():
    graph = atos.generate.road(8, 1.0, device="cpu")
    parts, others = (graph.partition(["cpu:0", "cpu:1"], order="random") for _ in range(2))
    n, first, owner = graph.num_vertices, parts.devices[0], parts.ownership
    over = [atos.full(n, 0.5, partition=parts, placement=each) for each in ("partitioned", "mirrored", "owned")]
    over += [atos.full(n, 7, partition=parts, combine="min"), PrivateArray(3, np.int64, owner.others(3))]
    for value in (*over, parts, atos.zeros(3, device="cpu:1"), None, 1.5, Pair(Pair(parts, over[1]), over[3])):
        packed = ArgumentsOverDevices((1, value), first, owner)
        assert packed.kinds[1] is describe(value)
        assert packed.words == [1, *words(value)]
        place, expected = 1, []
        for member in flat(value):
            expected += [(place + word, step) for word, step in device_words(member)]
            place += len(words(member))
        assert packed.by_device == expected
    foreign = atos.full(n, 0, partition=others)
    for value in (foreign, Pair(1, foreign), others, graph, atos.zeros(3, device="cpu:2")):
        with pytest.raises(atos.InvalidArgumentError):
            ArgumentsOverDevices((value,), first, owner)
    for value in (over[0], parts):
        with pytest.raises(atos.InvalidArgumentError, match="the queue runs on one device"):
            Arguments((value,), first)


def test_too_many_words():
    value: object = 1
    for _ in range(8):
        value = Pair(value, value)
    assert len(Arguments((value,), CPU).words) == 256
    with pytest.raises(atos.InvalidArgumentError, match="the arguments take 257 words of 8 bytes, but at most 256"):
        Arguments((value, 1), CPU)
