"""Words of a launch's arguments, written anew where they differ from those of the call before."""

from __future__ import annotations

import gc
import weakref
from typing import Any, NamedTuple

import numpy as np
import pytest
from fake_arrays import Pair
from hypothesis import given
from hypothesis import strategies as st

import atos_py as atos
from atos_py.runtime.last_arguments import LastArguments, _list_values
from atos_py.runtime.launch_arguments import Arguments

CPU = atos.device("cpu")
ARRAYS = [atos.zeros(shape, dtype=dtype, device=CPU) for shape in (3, 4, (2, 2)) for dtype in ("u4", "f4")]
ARRAYS.append(atos.asarray(np.arange(3), device=CPU, readonly=True))
NUMBERS = [0, 1, -1, 2**63 - 1, -(2**63), 0.0, -0.0, 1.5, float("nan"), True, False]
NUMBERS += [np.uint64(2**64 - 1), np.uint64(0), np.float32(-0.0), np.float32(2.5), np.int8(-2), np.bool_(True)]


class Three(NamedTuple):
    first: Any
    second: Any
    third: Any


VALUES = st.recursive(
    st.sampled_from([*ARRAYS, *NUMBERS, None]),
    lambda inner: st.builds(Pair, inner, inner) | st.builds(Three, inner, inner, inner),
    max_leaves=6,
)


def change(data, value):
    """Return a value of the same structure, some of whose members are others."""
    if isinstance(value, tuple):
        return type(value)(*[change(data, member) for member in value])
    return data.draw(st.sampled_from([value, *ARRAYS, *NUMBERS, None]))


@given(st.lists(VALUES, max_size=4), st.data())
def test_words_are_those_of_the_new_arguments(first, data):
    packed = Arguments(first, CPU)
    last, words, copies = LastArguments(first, CPU), list(packed.words), list(packed.words)
    classes = list(map(type, _list_values(first, [])))
    for _ in range(3):
        given_next = [change(data, value) for value in first]
        if data.draw(st.booleans()) and given_next:
            given_next[data.draw(st.integers(0, len(given_next) - 1))] = data.draw(VALUES)
        expected = Arguments(given_next, CPU)
        same_types = expected.kinds == packed.kinds
        same_classes = list(map(type, _list_values(given_next, []))) == classes
        written = last.write_changes(given_next, words, copies)
        assert written == same_types or (same_types and not same_classes)  # NumPy's bool and Python's are one kind of argument
        if not written:
            break  # the launch is filled anew
        assert words == copies == expected.words


@pytest.mark.parametrize("other", [(), (1,), (1, 2, 3), (1, Pair(2, 3)), (Pair(1, 2),), (1, int), (1, [2]), (1, np.zeros(2))])
def test_other_structures_are_filled_anew(other):
    assert not LastArguments((1, 2), CPU).write_changes(other, [1, 2])


def test_arrays_of_other_devices_and_libraries_are_filled_anew():
    array = atos.zeros(3, device=CPU)
    last = LastArguments((array,), CPU)
    there, theirs = atos.zeros(3, device="cpu:1"), atos.zeros(3, device=CPU)
    theirs.library = "cupy"
    assert not last.write_changes((there,), [0, 0])
    assert not last.write_changes((theirs,), [0, 0])
    words = [0, 0]
    other = atos.zeros(5, device=CPU)
    assert last.write_changes((other,), words)
    assert words == [other.pointer, 5]


def test_no_array_is_kept_alive():
    array = atos.zeros(3, device=CPU)
    last, gone = LastArguments((array, Pair(array, 1)), CPU), weakref.ref(array)
    gc.disable()
    try:
        del array
        assert gone() is None
    finally:
        gc.enable()
    other = atos.zeros(3, device=CPU)
    words = [0] * 5
    assert last.write_changes((other, Pair(other, 1)), words)
    assert words == [other.pointer, 3, other.pointer, 3, 0]  # the number is the same, so that its word is left alone
