"""Claims of papers, and findings: a verdict (*holds*, *turned*, *not decided*, *not applicable*) with its measurement.

A claim compares a number of one run with a number of another. Both were measured in turns, so that they make pairs: a pair for
each turn. The statistic is the median of the pairs' ratios, with its interval by the bootstrap (B. Efron, "Bootstrap methods:
another look at the jackknife", 1979). A claim holds if the whole interval is where the paper has the ratio, and has turned if
the whole interval is on the other side of the threshold.

Examples
--------
>>> from atos_py.models.papers.claims import Claim, Number, judge
>>> claim = Claim(
...     key="faster", place="Table 1", says="A is twice as fast as B.", compared="time of B over time of A",
...     over=Number.of("B"), under=Number.of("A"),
... )
>>> runs = {"A": [{"milliseconds": 2.0}] * 10, "B": [{"milliseconds": 4.0 + turn / 10} for turn in range(10)]}
>>> judge(claim, "road", "mesh-like", "cpu", runs).verdict
'holds'
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...runtime.trace import format_digits

__all__ = [
    *("GPU", "LEAST_PAIRS", "MESH_LIKE", "SCALE_FREE", "VERDICTS"),
    *("Claim", "Finding", "Kind", "Number", "Runs", "Spread", "judge", "kind_of_graph", "names_of_runs"),
]

Verdict = Literal["holds", "turned", "not decided", "not applicable"]
Kind = Literal["scale-free", "mesh-like"]
#: The numbers of runs: by the name of the run, those of each turn by their names.
Runs = Mapping[str, Sequence[Mapping[str, Any]]]

VERDICTS: tuple[Verdict, ...] = ("holds", "turned", "not decided", "not applicable")
SCALE_FREE: tuple[Kind, ...] = ("scale-free",)
MESH_LIKE: tuple[Kind, ...] = ("mesh-like",)
GPU = ("cuda",)
LEAST_PAIRS = 10
_RESAMPLES, _SEED, _PERCENTILES = 2000, 2022, (2.5, 97.5)
_EVEN_DEGREES = 8  # the largest degree of a mesh-like graph is at most so many times the mean
_SIDES = {">": "above", ">=": "at or above", "<": "below", "<=": "at or below"}


class Number(NamedTuple):
    """A number of a run; of several runs, that of the run where its median is the least."""

    runs: tuple[str, ...]
    name: str = "milliseconds"

    @classmethod
    def of(cls, *runs: str, name: str = "milliseconds") -> Number:
        """Return the number of this name of these runs."""
        return cls(runs, name)


class Spread(NamedTuple):
    """Median and quartiles of a number over the turns."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{format_digits(self.median)} ({format_digits(self.low)} to {format_digits(self.high)})"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim of a paper, and the test on the numbers that decides it.

    Attributes
    ----------
    key : str
        Name of the claim, once in a paper.
    place : str
        Figure, table or section of the paper.
    says : str
        What the paper says, with its number.
    compared : str
        What the ratio is of, such as "time of BSP over time of persistent CTAs".
    over, under : Number or None
        The ratio is of these two; without `under` it is the number `over` itself. Without `over` nothing is measured.
    test, threshold
        Where the paper has the ratio: ">", ">=", "<" or "<=" the threshold.
    graphs : tuple of str
        Kinds of graphs that the claim is about.
    devices : tuple of str
        Kinds of devices on which it can be tested.
    because : str
        Why the claim cannot be tested on other devices, or nothing is measured.
    effect : Number or None
        A number that is 0 in all turns if what the claim is about did not happen, so that nothing can be decided.
    no_effect : str
        What is said then.
    """

    key: str
    place: str
    says: str
    compared: str
    over: Number | None = None
    under: Number | None = None
    test: Literal[">", ">=", "<", "<="] = ">"
    threshold: float = 1.0
    graphs: tuple[Kind, ...] = ("scale-free", "mesh-like")
    devices: tuple[str, ...] = ("cpu", "cuda")
    because: str = ""
    effect: Number | None = None
    no_effect: str = ""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was measured of a claim on a graph, and the verdict with its reason.

    `ratio` lies from `low` to `high` in 95 % of the bootstrap's samples; these three are NaN if nothing was compared.
    """

    claim: Claim
    graph: str
    verdict: Verdict
    reason: str
    pairs: int = 0
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    over: Spread | None = None
    under: Spread | None = None

    @property
    def measured(self) -> str:
        """The numbers as text: medians with quartiles, and the ratio with its interval."""
        if self.over is None:
            return "nothing"
        if self.under is None:
            return str(self.over)
        ratio = f"{self.ratio:.4g} ({self.low:.4g} to {self.high:.4g})"
        return f"{self.over} over {self.under} = {ratio}"


def names_of_runs(claims: Sequence[Claim], device: str) -> set[str]:
    """Return the runs that claims need on a kind of device."""
    numbers = (number for claim in claims if device in claim.devices for number in (claim.over, claim.under, claim.effect))
    return {run for number in numbers if number is not None for run in number.runs}


def kind_of_graph(degrees: NDArray[Any]) -> Kind:
    """Return the kind of a graph by its degrees: mesh-like if the largest is at most 8 times the mean, otherwise scale-free."""
    return "mesh-like" if degrees.max(initial=0) <= _EVEN_DEGREES * max(float(degrees.mean()), 1.0) else "scale-free"


def judge(
    claim: Claim, graph: str, kind: Kind, device: str, runs: Runs, refusals: Mapping[str, str] | None = None
) -> Finding | None:
    """Return what measurements say about a claim, or None if it is not about graphs of this kind.

    Parameters
    ----------
    claim : Claim
    graph : str
        Name of the graph, of the kind `kind`.
    kind : str
    device : str
        Kind of the device, "cpu" or "cuda".
    runs : mapping
        By the name of each run, the numbers of its turns. Turn by turn, runs make pairs.
    refusals : mapping, optional
        By the name of a run that could not be made, why.
    """
    if claim.over is None or device not in claim.devices:
        return Finding(claim=claim, graph="", verdict="not applicable", reason=claim.because)
    if kind not in claim.graphs:
        return None
    for number in filter(None, (claim.over, claim.under)):
        for run in number.runs:
            if refusals and run in refusals:
                return Finding(claim=claim, graph=graph, verdict="not decided", reason=refusals[run])
    effect = np.ones(1) if claim.effect is None else _choose(claim.effect, runs)
    if effect.size and not effect.any():
        return Finding(claim=claim, graph=graph, verdict="not decided", reason=claim.no_effect, pairs=effect.size)
    over = _choose(claim.over, runs)
    under = np.ones(len(over)) if claim.under is None else _choose(claim.under, runs)
    pairs = min(len(over), len(under))
    over, under = over[:pairs], under[:pairs]
    if not pairs or np.isnan(over).any() or np.isnan(under).any() or (under == 0).any():
        is_zero = pairs and (under == 0).any()
        why = "A number under the line is 0." if is_zero else "A run that the claim needs has no such number."
        return Finding(claim=claim, graph=graph, verdict="not decided", reason=why, pairs=pairs)
    ratio, low, high = _interval(over / under)
    verdict, reason = _decide(claim, pairs, low, high)
    spreads = _spread(over), None if claim.under is None else _spread(under)
    return Finding(
        claim=claim, graph=graph, verdict=verdict, reason=reason, pairs=pairs, ratio=ratio, low=low, high=high,
        over=spreads[0], under=spreads[1],
    )  # fmt: skip


def _choose(number: Number, runs: Runs) -> NDArray[np.float64]:
    """Return a number in all turns, of the run where its median is the least."""
    turns = [[each.get(number.name) for each in runs.get(run, ())] for run in number.runs]
    values = [np.array([math.nan if each is None else each for each in turn], np.float64) for turn in turns]
    if not all(each.size for each in values):
        return np.empty(0)
    return min(values, key=lambda each: float(np.median(each)))


def _interval(ratios: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the median of ratios, and the interval of it by the bootstrap."""
    picked = np.random.default_rng(_SEED).integers(ratios.size, size=(_RESAMPLES, ratios.size))
    low, high = np.percentile(np.median(ratios[picked], axis=1), _PERCENTILES)
    return float(np.median(ratios)), float(low), float(high)


def _decide(claim: Claim, pairs: int, low: float, high: float) -> tuple[Verdict, str]:
    """Return the verdict, and its reason in words."""
    side, limit = _SIDES[claim.test], f"{claim.threshold:.4g}"
    if pairs < LEAST_PAIRS:
        return "not decided", f"There are {pairs} pairs of runs; {LEAST_PAIRS} are needed."
    least, most = (low, high) if claim.test[0] == ">" else (-high, -low)  # so that the paper's side is above
    threshold = claim.threshold if claim.test[0] == ">" else -claim.threshold
    if least > threshold or (len(claim.test) == 2 and least >= threshold):
        return "holds", f"The interval lies {side} {limit}, as in the paper."
    if most < threshold:
        other = "below" if claim.test[0] == ">" else "above"
        return "turned", f"The interval lies {other} {limit}; the paper's claim is {side} it."
    return "not decided", f"{limit} lies within the interval."


def _spread(values: NDArray[np.float64]) -> Spread:
    return Spread(float(np.median(values)), *map(float, np.percentile(values, (25, 75))))
