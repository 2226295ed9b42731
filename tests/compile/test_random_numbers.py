"""The random numbers: known answers of the published generator, and the same numbers in tasks as on the host."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_tasks import launch

import atos_py as atos
from atos_py.compile.random_numbers import philox4x32
from atos_py.errors import InvalidArgumentError, UnsupportedTypeError

# kat_vectors of Random123, philox4x32 with 10 rounds: counter, key, result.
KNOWN = [
    ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
WORDS = st.integers(-(2**63), 2**64 - 1)


def join(low: int, high: int) -> int:
    return high << 32 | low


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN)
def test_known_answers(counter, key, result):
    words = philox4x32(*(tuple(np.array(word, np.uint64) for word in part) for part in (counter, key)))
    assert tuple(map(int, words)) == result
    bits = atos.random_bits(join(*key), join(*counter[:2]), join(*counter[2:]))
    assert bits == join(*result[:2])
    assert atos.random(join(*key), join(*counter[:2]), join(*counter[2:])) == (int(bits) >> 11) / 2**53


def signed(word: int) -> int:
    return word - 2**64 if word >= 2**63 else word


@atos.task
def draw_known(worker, k, words, bits):
    seed, a, b = words[3 * k], words[3 * k + 1], words[3 * k + 2]
    bits[k] = atos.random_bits(seed, a, b)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_known_answers_in_tasks(device, worker, dtype):
    given = [join(*part) for counter, key, _ in KNOWN for part in (key, counter[:2], counter[2:])]
    words = np.array(given, np.uint64).view(dtype)
    bits = atos.zeros(len(KNOWN), dtype=np.uint64, device=device)
    queue = atos.Queue(len(KNOWN), device=device)
    queue.push(np.arange(len(KNOWN)))
    launch(queue, worker, draw_known, atos.asarray(words, device=device), bits)
    assert bits.to_numpy().tolist() == [join(*result[:2]) for *_, result in KNOWN]


@atos.task
def draw(worker, item, seed, wide, numbers, bits, counted):
    for k in worker.split(numbers.shape[1]):
        numbers[item, k] = atos.random(seed, item, k)
        bits[item, k] = atos.random_bits(seed, k)
        counted[item, k] = atos.random_bits(seed, item, wide, -k, np.int8(k % 100), k)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(-(2**63), 2**63 - 1), wide=st.integers(0, 2**64 - 1))
def test_tasks_draw_what_the_host_draws(device, seed, wide):
    shape = (4, 150)
    numbers = atos.zeros(shape, dtype=np.float64, device=device)
    bits, counted = (atos.zeros(shape, dtype=np.uint64, device=device) for _ in range(2))
    queue = atos.Queue(4, device=device)
    queue.push(np.arange(4))
    queue.launch_warp(draw, seed, np.uint64(wide), numbers, bits, counted)
    item, k = np.arange(4)[:, None], np.arange(150)
    assert np.array_equal(numbers.to_numpy(), atos.random(seed, item, k))
    assert np.array_equal(bits.to_numpy(), np.broadcast_to(atos.random_bits(seed, k), shape))
    expected = atos.random_bits(seed, item, wide, -k, (k % 100).astype(np.int8), k)
    assert np.array_equal(counted.to_numpy(), expected)


@given(seed=WORDS, counters=st.lists(WORDS, min_size=1, max_size=5))
def test_numbers_depend_on_values_and_not_on_their_types(seed, counters):
    bits = atos.random_bits(seed, *counters)
    assert bits.dtype == np.uint64
    assert bits == atos.random_bits(*(np.array([x % 2**64], np.uint64) for x in (seed, *counters)))[0]
    assert bits == atos.random_bits(*(np.int64(signed(x % 2**64)) for x in (seed, *counters)))
    if len(counters) % 2:
        assert bits == atos.random_bits(seed, *counters, 0)
    number = atos.random(seed, *counters)
    assert isinstance(number, float)
    assert 0 <= number < 1
    assert number == (int(bits) >> 11) / 2**53


@given(seed=WORDS, counters=st.lists(WORDS, min_size=1, max_size=5), data=st.data())
def test_every_bit_of_every_argument_counts(seed, counters, data):
    words = [seed, *counters]
    k, bit = data.draw(st.integers(0, len(words) - 1)), data.draw(st.integers(0, 63))
    changed = [x if j != k else x % 2**64 ^ 1 << bit for j, x in enumerate(words)]
    assert atos.random_bits(*changed) != atos.random_bits(*words)


def test_numbers_are_spread_evenly():
    numbers = atos.random(1, np.arange(1000)[:, None], np.arange(100)).ravel()
    counts = np.histogram(numbers, 100, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 200  # chi square of 99 degrees of freedom: fixed numbers, no chance
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.01


def test_what_is_refused():
    with pytest.raises(InvalidArgumentError, match="takes a seed and one or more counters"):
        atos.random(1)
    with pytest.raises(UnsupportedTypeError, match="argument 2 of random must be an integer, not float64"):
        atos.random(1, 0.5)
    with pytest.raises(UnsupportedTypeError, match="argument 1 of random_bits must be an integer, not bool"):
        atos.random_bits(True, 1)
    with pytest.raises(InvalidArgumentError, match=r"random is given arrays whose shapes do not go together: \(3,\), \(2,\)"):
        atos.random(np.arange(3), np.arange(2))
    with pytest.raises(InvalidArgumentError, match=r"argument 3 of random does not fit 64 bits \(got 18446744073709551616\)"):
        atos.random(1, 2, 2**64)
