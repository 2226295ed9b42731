"""Random numbers without a state: Philox4x32-10 of a seed and counters, on the host as in a task.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, and its library Random123.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..support.validation import as_host_array, broadcast_arrays

__all__ = ["MULTIPLIERS", "ROUNDS", "TO_UNIT", "WEYL", "philox4x32", "random", "random_bits"]

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)  #: What the two words of the key grow by from round to round.
TO_UNIT = 2.0**-53  #: From an integer of 53 bits to a number from 0 to 1.
_LOWER, _HALF, _11 = np.uint64(2**32 - 1), np.uint64(32), np.uint64(11)


def random(seed: Any, /, *counters: Any) -> Any:
    """Return a random number from 0 to 1, without 1, that depends on the seed and the counters alone.

    The same call gives the same number in a task on any device, on any thread, and on the host; calls that differ in a counter
    or in the seed give numbers that are independent of each other. So no state has to be kept or shared: count what is drawn,
    such as by the item and the number of the draw.

    Parameters
    ----------
    seed : int
        Of 64 bits, signed or unsigned.
    *counters : int
        One or more, each of 64 bits. An odd number of them is filled up by a 0: `random(seed, i)` is `random(seed, i, 0)`. On
        the host, these and the seed may be arrays, which are broadcast against each other.

    Returns
    -------
    float or numpy.ndarray
        Of float64, a multiple of 2**-53.

    Raises
    ------
    UnsupportedTypeError
        If something is no integer.
    InvalidArgumentError
        If an integer does not fit 64 bits, shapes do not go together, or there is no counter.

    See Also
    --------
    random_bits : the integer that it is made from.

    Notes
    -----
    The generator is Philox4x32-10, which passes BigCrush of TestU01, and which cuRAND, PyTorch and TensorFlow have for GPUs. It
    is no cipher: do not use it for secrets. `random_bits` has the definition.

    Examples
    --------
    >>> @atos.task
    ... def draw(worker, item, seed, out):
    ...     out[item] = atos.random(seed, item)
    >>> out, queue = atos.zeros(3, dtype=np.float64), atos.Queue(capacity=10)
    >>> queue.push([0, 1, 2])
    >>> stats = queue.launch_thread(draw, 7, out)
    >>> print(out.to_numpy().round(4), np.array_equal(out.to_numpy(), atos.random(7, np.arange(3))))
    [0.7502 0.7953 0.0085] True
    """
    return _uniform(_bits("random", seed, counters))[()]


def random_bits(seed: Any, /, *counters: Any) -> Any:
    """Return 64 random bits, as a uint64, that depend on the seed and the counters alone; otherwise as `random`.

    For integers below n, up to 2**32, take the upper half times n: `(bits >> 32) * n >> 32`, all of it as uint64.

    Notes
    -----
    The key is the seed, its lower 32 bits first. The counter is the first two of `counters`, each with its lower 32 bits first,
    where negative numbers are two's complements. The result is the first two words of Philox4x32-10, the first one being its
    lower 32 bits. With more counters, the four words are combined with the next two counters by exclusive or, and enciphered
    again.

    Examples
    --------
    >>> print(hex(atos.random_bits(0, 0, 0)), atos.random_bits(7, np.arange(2)) % np.uint64(6))
    0xe169c58d6627e8d5 [1 3]
    """
    return _bits("random_bits", seed, counters)[()]


def philox4x32(
    counter: tuple[NDArray[Any], ...], key: tuple[NDArray[Any], ...]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the four words of Philox4x32-10 for four words and two of a key: each an array of uint64 below 2**32."""
    a, b, c, d = counter
    k, m = key
    for _ in range(ROUNDS):
        low, high = np.uint64(MULTIPLIERS[0]) * a, np.uint64(MULTIPLIERS[1]) * c
        a, b, c, d = high >> _HALF ^ b ^ k, high & _LOWER, low >> _HALF ^ d ^ m, low & _LOWER
        k, m = k + np.uint64(WEYL[0]) & _LOWER, m + np.uint64(WEYL[1]) & _LOWER
    return a, b, c, d


def _bits(name: str, seed: Any, counters: tuple[Any, ...]) -> NDArray[Any]:
    if not counters:
        raise InvalidArgumentError(f"{name} takes a seed and one or more counters, such as {name}(seed, item)")
    given = [_as_words(f"argument {k} of {name}", x) for k, x in enumerate((seed, *counters), start=1)]
    key, *words = broadcast_arrays(name, *given)
    state: Any = (np.zeros(key.shape, np.uint64),) * 4
    for first in range(0, len(words), 2):
        pair = (words[first], words[first + 1] if first + 1 < len(words) else np.zeros(key.shape, np.uint64))
        halves = (half for word in pair for half in (word & _LOWER, word >> _HALF))
        state = philox4x32(tuple(x ^ y for x, y in zip(state, halves, strict=True)), (key & _LOWER, key >> _HALF))
    return np.asarray(state[0] | state[1] << _HALF)


def _uniform(bits: NDArray[Any]) -> NDArray[Any]:
    return np.asarray((bits >> _11) * TO_UNIT)


def _as_words(name: str, value: Any) -> NDArray[Any]:
    """Return integers modulo 2**64."""
    given = as_host_array(name, value)
    if given.dtype == object and all(isinstance(x, int) and not isinstance(x, bool) for x in given.flat):
        raise InvalidArgumentError(f"{name} does not fit 64 bits (got {value!r:.80})")
    if given.dtype.kind not in "iu":
        raise UnsupportedTypeError(f"{name} must be an integer, not {given.dtype}")
    return given.astype(np.uint64)
