"""Kinds and words of launch arguments."""

from __future__ import annotations

import struct
import timeit
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from fake_arrays import FakeArray, Pair

from atos_py.compile.arguments import ArrayKind, NoneKind, ScalarKind, TupleKind, describe, words
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError

SCALARS = [
    (True, "bool", 1),
    (7, "int64", 7),
    (-1, "int64", 2**64 - 1),
    (2**63 - 1, "int64", 2**63 - 1),
    (-(2**63), "int64", 2**63),
    (1.5, "float64", struct.unpack("<Q", struct.pack("<d", 1.5))[0]),
    (np.int8(-2), "int8", 2**64 - 2),
    (np.uint8(200), "uint8", 200),
    (np.int16(-3), "int16", 2**64 - 3),
    (np.uint16(65535), "uint16", 65535),
    (np.int32(-4), "int32", 2**64 - 4),
    (np.uint32(2**32 - 1), "uint32", 2**32 - 1),
    (np.int64(-5), "int64", 2**64 - 5),
    (np.uint64(2**64 - 1), "uint64", 2**64 - 1),
    (np.float32(-2.5), "float32", struct.unpack("<I", struct.pack("<f", -2.5))[0]),
    (np.float64(-2.5), "float64", struct.unpack("<Q", struct.pack("<d", -2.5))[0]),
    (np.bool_(False), "bool", 0),
]


@pytest.mark.parametrize(("value", "dtype", "word"), SCALARS, ids=lambda value: repr(value))
def test_scalars(value, dtype, word):
    assert describe(value) is ScalarKind(np.dtype(dtype))
    assert words(value) == (word,)


def test_none():
    assert describe(None) is NoneKind()
    assert words(None) == ()


def test_arrays():
    array = FakeArray(np.zeros((3, 4), np.float32), readonly=True)
    assert describe(array) is ArrayKind(np.dtype(np.float32), 2, True)
    assert words(array) == (array.pointer, 3, 4)
    assert describe(FakeArray(np.zeros(5, np.float32))) is ArrayKind(np.dtype(np.float32), 1, False)


def test_named_tuples_nest():
    array = FakeArray(np.zeros(3, np.int32))
    value = Pair(Pair(array, None), 5)
    kind = describe(value)
    inner = TupleKind(Pair, ("first", "second"), (ArrayKind(np.dtype(np.int32), 1, False), NoneKind()))
    assert kind is TupleKind(Pair, ("first", "second"), (inner, ScalarKind(np.dtype(np.int64))))
    assert words(value) == (array.pointer, 3, 5)


def test_the_text_of_a_kind_is_stable():
    value = Pair(FakeArray(np.zeros((2, 2), np.uint8), readonly=True), None)
    assert str(describe(value)) == f"{Pair.__module__}.Pair(first: readonly array(uint8, 2d), second: None)"


def test_kinds_of_equal_content_are_one_object_and_frozen():
    kind = ScalarKind(np.dtype(np.int32))
    assert kind is ScalarKind(np.dtype("int32"))
    assert {kind: 1}[describe(np.int32(1))] == 1
    with pytest.raises(FrozenInstanceError):
        kind.dtype = np.dtype(np.int64)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30])
def test_integers_have_to_fit(value):
    with pytest.raises(InvalidArgumentError, match=rf"{value} does not fit .* np.uint64"):
        words(value)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (np.zeros(3), r"numpy.ndarray; make it a device array with atos.asarray"),
        ([1, 2], r"list; make it a device array"),
        ((1, 2), r"tuple; make it with a typing.NamedTuple, which gives each member a name"),
        (np.float16(1), r"float16; numbers are integers of 8 to 64 bits"),
        (np.complex64(1), r"complex64; numbers are"),
        (np.datetime64(1, "s"), r"datetime64; numbers are"),
        ("text", r"str; it takes arrays"),
        (object(), r"object; it takes arrays"),
        (Pair(1, "text"), r"str; it takes arrays"),
    ],
    ids=lambda value: str(type(value).__name__),
)
def test_everything_else_is_refused(value, advice):
    with pytest.raises(UnsupportedTypeError, match=advice):
        describe(value)
    with pytest.raises(UnsupportedTypeError, match=advice):
        words(value)


def test_describing_is_cheap():
    values = (FakeArray(np.zeros(3, np.int32)), FakeArray(np.zeros(3, np.float32)), 7)

    def describe_all() -> None:
        for value in values:
            describe(value)

    assert min(timeit.repeat(describe_all, number=1000, repeat=5)) / 1000 < 20e-6  # 1 to 2 us here; loose, for busy machines
