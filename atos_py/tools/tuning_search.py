"""Search of `tune`: successive halving over a space of settings, then changes of single options, then a comparison in turns."""

from __future__ import annotations

import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..errors import LaunchConfigError, QueueFullError
from ..runtime.stats import find_stats
from .tuning_result import Setting

__all__ = ["Progress", "Search"]

_SCREENED = 128  # settings that the search begins with, at most
# Runs of each setting that is left, and the part of the budget that may have passed then.
_ROUNDS = ((1, 0.4), (2, 0.55), (4, 0.7), (8, 0.8))
_TURNS = 15  # runs of the best and of the first setting, in turns, for the comparison of the two
_FINALISTS = 4  # settings that stay to the end, so that one lucky run does not decide
_CANNOT_RUN = (LaunchConfigError, QueueFullError)

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]


class Search:
    """Search by successive halving, then by changes of single options.

    Parameters
    ----------
    run : callable
        ``run(**options)``, as for `tune`.
    space : dict
        Values of each option; None leaves it out.
    budget : float
        Seconds.
    progress : callable
        As for `tune`.
    """

    def __init__(self, run: Callable[..., Any], space: dict[str, list[Any]], budget: float, progress: Progress) -> None:
        self.run, self.space, self.progress = run, space, progress
        self.begin, self.budget = time.perf_counter(), budget
        self.tried: dict[tuple[int, ...], Setting] = {}

    def find_best(self) -> tuple[Setting, bool]:
        """Return the best setting, and whether the search ended before its time."""
        ranges = [range(len(values)) for values in self.space.values()]
        # The sort is stable: among places that are equally near, likely values of the first options come first.
        nearest = sorted(itertools.product(*ranges), key=lambda place: sum(map(bool, place)))[:_SCREENED]
        alive = nearest
        self.warm_up(nearest[0])
        complete = True
        for count, (runs, over) in enumerate(_ROUNDS, start=1):
            kept = alive[: max(-(-len(nearest) // 2 ** (count - 1)), _FINALISTS)]
            complete &= self.measure(kept, runs, f"round {count} of {len(_ROUNDS)}", over)
            alive = self.rank(kept)
            if not alive:
                reason = next(iter(self.tried.values())).skipped
                raise LaunchConfigError(f"none of {len(self.tried)} settings can run; the first: {reason}")
        best, improved = self.improve(alive[0])
        first = self.tried[nearest[0]]
        if best is first or first.skipped:
            return best, complete and improved
        better, compared = self.compare(best, first)
        return best if better else first, complete and improved and compared

    def compare(self, best: Setting, first: Setting) -> tuple[bool, bool]:
        """Return whether `best` is faster than `first` beyond their spread, and whether there was time to tell."""
        begin = len(best.times), len(first.times)
        for turn in self.progress(range(_TURNS), "the best against the first", _TURNS):
            for setting in (best, first) if turn % 2 else (first, best):  # so that a drift of the times favors neither
                if self.is_over(1.0):
                    return False, False
                self.run_once(setting)
                if setting.skipped:
                    return setting is first, True
        upper = statistics.quantiles(best.times[begin[0] :], n=4)[2]
        lower = statistics.quantiles(first.times[begin[1] :], n=4)[0]
        return upper < lower, True

    def warm_up(self, place: tuple[int, ...]) -> None:
        """Run a setting once without counting it, since the very first run is slow."""
        with contextlib.suppress(*_CANNOT_RUN):
            self.run(**self.options_at(place))

    def options_at(self, place: tuple[int, ...]) -> dict[str, Any]:
        """Return the options at a place of the space."""
        chosen = {name: values[i] for i, (name, values) in zip(place, self.space.items(), strict=True)}
        return {name: value for name, value in chosen.items() if value is not None}

    def improve(self, place: tuple[int, ...]) -> tuple[Setting, bool]:
        """Change single options as long as that helps.

        New settings run once; only those that are faster than the best then run as often as the best did.
        """
        while True:
            neighbors = [
                (*place[:i], j, *place[i + 1 :]) for i, values in enumerate(self.space.values()) for j in range(len(values))
            ]
            new = [other for other in neighbors if other not in self.tried]
            complete = self.measure(new, 1, "neighbors")
            promising = [other for other in self.rank(new) if self.tried[other].median < self.tried[place].median]
            often = _ROUNDS[-1][0]
            complete = complete and self.measure(promising, often, "neighbors that promise more")
            better = self.rank([place, *(other for other in promising if len(self.tried[other].times) >= often)])[0]
            if better == place or not complete:
                return self.tried[better], complete
            place = better

    def rank(self, places: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the places whose settings have run, the fastest first."""
        ran = [place for place in places if place in self.tried and self.tried[place].times]
        return sorted(ran, key=lambda place: self.tried[place].median)

    def measure(self, places: Sequence[tuple[int, ...]], runs: int, description: str, over: float = _ROUNDS[-1][1]) -> bool:
        """Run each setting until it has that many runs; return whether that part of the time was enough for all."""
        if not places:
            return True
        for place in self.progress(places, description, len(places)):
            setting = self.tried.get(place) or Setting(self.options_at(place))
            while len(setting.times) < runs and not setting.skipped:
                if self.tried and self.is_over(over):
                    return False
                self.tried[place] = setting
                self.run_once(setting)
        return True

    @property
    def seconds(self) -> float:
        """Time since the search began."""
        return time.perf_counter() - self.begin

    def is_over(self, part: float) -> bool:
        """Whether that part of the time has passed."""
        return self.seconds > part * self.budget

    def run_once(self, setting: Setting) -> None:
        """Run a setting, and record its time, or the reason why it cannot run."""
        try:
            setting.launched = find_stats(self.run(**setting.options))
            setting.times.append(setting.launched.milliseconds)
        except _CANNOT_RUN as error:
            setting.skipped = str(error)
