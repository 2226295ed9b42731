"""Searching for the best setting of a launch: worker size, fetch size, blocks and the two switches."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np

from ..compile.task import Task
from ..core.devices import Device
from ..core.devices import device as device_of
from ..errors import InvalidArgumentError, LaunchConfigError, MissingPackageError, QueueFullError, UnsupportedTypeError
from ..graph.graph import Graph, check_graph
from ..runtime.stats import LaunchStats, stats_of
from ..support.atomic_files import as_path, replacing
from ..support.host_memory import host_memory_for
from ..support.validation import number, unknown_option
from .tuning_cache import REMEMBERED, remember, tuned

__all__ = ["Tuning", "space_for", "tune"]

_SCREENED = 128  # settings that the search begins with, at most
# Runs of each setting that is left, and the part of the time that is over then.
_ROUNDS = ((1, 0.4), (2, 0.55), (4, 0.7), (8, 0.8))
_TURNS = 15  # runs of the best and of the first setting, in turns, by which it is told whether the best is better
_FINALISTS = 4  # that are left to the end, so that one lucky run does not decide
_CANNOT_RUN = (LaunchConfigError, QueueFullError)
_MEASURED = ("milliseconds", "least", "runs", "tasks_run", "worker_size", "fetched", "skipped")
_WORKER_SIZE = {"thread": 1, "warp": 32}

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]


def space_for(device: Device | str | None = None) -> dict[str, tuple[Any, ...]]:
    """Return what `tune` searches on a device unless told otherwise.

    The first value of each option is where it begins: the guidelines of Chen et al. 2022 (Section 7) are a persistent kernel
    against small frontiers, and task and data parallelism in tandem, so large workers that fetch many items, against load
    imbalance. A value of None leaves an option out.
    """
    on = device_of(device)
    switches = {"persistent": (True, False), "barrier": (False, True)}
    if on.kind == "cpu":
        threads = tuple(n for n in (None, 2 * on.processors, on.processors // 2) if n is None or n > 0)
        return {"fetch_size": (128, 32, 512, 8, 2048, 1), "num_blocks": threads, **switches}
    return {
        "worker": ("cta", "warp", "thread"),
        "fetch_size": (128, 64, 256, 32, 512, 8, 1),
        "num_threads": (256, 128, 512, 1024),
        "num_blocks": (None, *(n * on.processors for n in (4, 2, 1))),
        **switches,
    }


@dataclass
class _Setting:
    options: dict[str, Any]
    times: list[float] = field(default_factory=list)
    launched: LaunchStats | None = None
    skipped: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.times) if self.times else float("inf")

    def row(self, names: Sequence[str]) -> dict[str, Any]:
        stats = self.launched
        options = {name: self.options.get(name) for name in names}
        if stats is None:
            return {**options, **dict.fromkeys(_MEASURED), "runs": 0, "skipped": self.skipped}
        size = _WORKER_SIZE.get(stats.worker, stats.num_threads)
        measured = (self.median, min(self.times), len(self.times), stats.tasks_run, size, stats.fetch_size, self.skipped)
        return {**options, **dict(zip(_MEASURED, measured, strict=True))}


@dataclass(frozen=True)
class Tuning:
    """What `tune` found.

    Attributes
    ----------
    best : dict
        The options of the best setting, to be handed on: ``run(**tuning.best)``.
    milliseconds : float
        The median of its runs.
    table : list of dict
        Every setting that was tried, the best first: its options (None: left out), `milliseconds` (the median),
        `least`, `runs`, `tasks_run`, `worker_size` (threads of a worker), `fetched` (the fetch size that it ran with), and
        `skipped`, why it cannot run.
    seconds : float
        What the search took.
    finished : bool
        Whether it came to its end within the budget; if not, the first setting may have stayed for want of time.

    Examples
    --------
    >>> graph = atos.generate.road(30)
    >>> tuning = atos.tune(lambda **options: atos.bfs(graph, 0, **options), space={"fetch_size": (32, 128)}, budget=1)
    >>> print(list(tuning.best), len(tuning.table))
    ['fetch_size'] 2
    """

    best: dict[str, Any]
    milliseconds: float
    table: list[dict[str, Any]]
    seconds: float
    finished: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary.

        Examples
        --------
        >>> graph = atos.generate.road(30)
        >>> tuning = atos.tune(lambda **options: atos.bfs(graph, 0, **options), space={"fetch_size": (32,)}, budget=1)
        >>> tuning.to_dict()["best"]
        {'fetch_size': 32}
        """
        return {name: getattr(self, name) for name in ("best", "milliseconds", "table", "seconds", "finished")}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file.

        Raises
        ------
        FileWriteError
            If it cannot be written.

        Examples
        --------
        >>> graph = atos.generate.road(30)
        >>> tuning = atos.tune(lambda **options: atos.bfs(graph, 0, **options), space={"fetch_size": (32,)}, budget=1)
        >>> tuning.to_csv("settings.csv")
        """
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(self.table[0]))
        writer.writeheader()
        writer.writerows(self.table)
        with replacing(as_path(path), "table") as file:
            file.write(text.getvalue().encode())

    def draw(self, path: str | os.PathLike[str], task: str = "task", graph: str = "its input") -> None:
        """Draw a heat map: the best time over worker size and fetch size, of all settings tried (Chen et al., Figure 4).

        Parameters
        ----------
        path : path-like
            The picture; its ending says of what kind.
        task, graph : str
            What ran on what, for the title.

        Raises
        ------
        MissingPackageError
            If matplotlib is not installed.
        FileWriteError, InvalidArgumentError
            If it cannot be written, or there is no such kind of picture.

        Examples
        --------
        >>> graph = atos.generate.road(30)
        >>> tuning = atos.tune(lambda **options: atos.bfs(graph, 0, **options), space={"fetch_size": (32, 128)}, budget=1)
        >>> tuning.draw("settings.png", "BFS", "a small grid")
        """
        try:
            from .figures import draw_heatmaps
        except ImportError as error:
            raise MissingPackageError("drawing needs matplotlib: python -m pip install matplotlib") from error
        best: dict[tuple[int, int], float] = {}
        for row in self.table:
            if row["runs"]:
                at = row["worker_size"], row["fetched"]
                best[at] = min(best.get(at, row["milliseconds"]), row["milliseconds"])
        workers, fetches = sorted({w for w, _ in best}), sorted({f for _, f in best})
        where = {"algorithm": task, "graph": graph}
        draw_heatmaps(
            as_path(path),
            [
                {**where, "workers": w, "fetch_size": f, "milliseconds": best.get((w, f), float("nan"))}
                for w, f in itertools.product(workers, fetches)
            ],
        )

    def __str__(self) -> str:
        ran = [row for row in self.table if row["runs"]]
        lines = [f"{'ms':>10} {'least':>10} {'runs':>4}  setting"]
        for row in ran:
            options = " ".join(f"{name}={v}" for name, v in row.items() if name not in _MEASURED and v is not None)
            lines.append(f"{row['milliseconds']:10.3f} {row['least']:10.3f} {row['runs']:4}  {options}")
        skipped = len(self.table) - len(ran)
        end = "" if self.finished else ", which was all the time there was"
        lines.append(f"{len(ran)} settings run, {skipped} cannot run; {self.seconds:.1f} s{end}")
        return "\n".join(lines)


@host_memory_for("atos.tune")
def tune(
    run: Callable[..., Any],
    *,
    task: Task | Callable[..., Any] | str | None = None,
    graph: Graph | None = None,
    device: Device | str | None = None,
    budget: float = 60.0,
    space: Mapping[str, Sequence[Any]] | None = None,
    progress: Progress = lambda steps, _description, _total: steps,
    **unknown: Any,
) -> Tuning:
    """Search for the setting in which something runs fastest.

    The search begins at the first value of every option, goes through the settings that differ from there in the fewest
    options, at most 128, and runs each once. Then, three times, the better half (at least 4) stays and runs as often again
    (successive halving; Jamieson and Talwalkar 2016). From the best by the median, single options are changed as long as
    that helps. So the order of the values matters where the space is large or the time short: likely ones first.

    The best of many settings is often no more than the luckiest. So it and the first setting of all, which is to be the usual
    one, run 15 times more, in turns, and of these times the upper quartile of the one has to be below the lower quartile of the
    other; if not, or if the time does not suffice for that, the first setting stays. Of settings that are equal, one in about
    700 is kept by chance.

    Parameters
    ----------
    run : callable
        ``run(**options)`` sets everything up, launches with these options, and returns the `LaunchStats`, or a result that
        has them as `stats`. Their `milliseconds` count, not the time of the call. It may verify what it did, and raise.
    task : Task, callable or str, optional
        Under what to remember the result on disk, for `tuned`. It is not remembered unless given.
    graph : Graph, optional
        The input, if it is a graph: the result is remembered for its shape.
    device : Device or str, optional
        Where `run` runs: the graph's device unless given, or the best there is.
    budget : float
        Seconds that the search may take; a run that has begun is waited for. At least one setting is run.
    space : mapping, optional
        Values of each option; by default those of `worker` ("thread", "warp", "cta"), `fetch_size`, `num_threads`,
        `num_blocks`, `persistent` and `barrier` that make sense on the device. Other options of `run` may be among them. A
        value of None leaves an option out.
    progress : callable, optional
        ``progress(steps, description, total)`` wraps the steps of a round:
        ``lambda steps, description, total: tqdm(steps, description, total)``.

    Returns
    -------
    Tuning

    Raises
    ------
    InvalidArgumentError
        If the space or the budget is empty.
    LaunchConfigError
        If no setting can run. Those that cannot (`LaunchConfigError`, `QueueFullError`) are skipped otherwise.

    Examples
    --------
    >>> graph = atos.generate.road(30)
    >>> def run(**options):
    ...     return atos.bfs(graph, 0, **options)
    >>> tuning = atos.tune(run, task=atos.bfs, graph=graph, budget=1, space={"barrier": (False, True)})
    >>> atos.tuned(atos.bfs, graph) == tuning.best  # remembered
    True
    """
    if error := unknown_option(
        "tune", unknown, [p.name for p in signature(tune).parameters.values() if p.kind is p.KEYWORD_ONLY]
    ):
        raise error
    if not callable(run):
        raise UnsupportedTypeError(f"tune a function of launch options, such as lambda **options: ... (got {run!r:.80})")
    if space is not None and not isinstance(space, Mapping):
        raise UnsupportedTypeError(f"space must map options to the values to try (got {space!r:.80})")
    if graph is not None:
        check_graph(graph)
    on = graph.device if graph is not None and device is None else device_of(device)
    if not callable(progress):
        raise UnsupportedTypeError(f"progress must be a function of steps, description and total (got {progress!r:.80})")
    options = {}
    for name, values in (space_for(on) if space is None else space).items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise UnsupportedTypeError(f"space must map {name!r} to a sequence of values to try, such as [{values!r:.80}]")
        options[name] = [value.item() if isinstance(value, np.generic) else value for value in values]
        if not options[name]:
            raise InvalidArgumentError(f"space has no values for {name!r}; leave it out, or give some")
    if not options:
        raise InvalidArgumentError("space is empty; give the values to try of at least one option, or leave it out")
    if not number("budget", budget) > 0:
        raise InvalidArgumentError(f"budget must be a number of seconds above 0 (got {budget})")
    if task is not None:  # what cannot be remembered is told before the search, and not after it
        tuned(task, graph, device=on)
        for name, values in options.items():
            for value in values:
                if value is not None and not isinstance(value, REMEMBERED):
                    raise UnsupportedTypeError(
                        f"space has {value!r:.80} for {name!r}; only numbers and words are remembered for a task"
                    )
    search = _Search(run, options, budget, progress)
    best, finished = search.best()
    ranked = sorted(search.tried.values(), key=lambda setting: (setting is not best, setting.median))
    table = [setting.row(list(options)) for setting in ranked]
    tuning = Tuning(best.options, best.median, table, time.perf_counter() - search.begin, finished)
    if task is not None:
        remember(task, graph, on, tuning.best)
    return tuning


class _Search:
    def __init__(self, run: Callable[..., Any], space: dict[str, list[Any]], budget: float, progress: Progress) -> None:
        self.run, self.space, self.progress = run, space, progress
        self.begin, self.budget = time.perf_counter(), budget
        self.tried: dict[tuple[int, ...], _Setting] = {}

    def best(self) -> tuple[_Setting, bool]:
        """Return the best setting, and whether the search ended before its time."""
        ranges = [range(len(values)) for values in self.space.values()]
        # The sort is stable: among the equally near, those with likely values of the first options come first.
        nearest = sorted(itertools.product(*ranges), key=lambda place: sum(map(bool, place)))[:_SCREENED]
        alive = nearest
        self.warm_up(nearest[0])
        complete = True
        for count, (runs, over) in enumerate(_ROUNDS, start=1):
            kept = alive[: max(-(-len(nearest) // 2 ** (count - 1)), _FINALISTS)]
            complete &= self.measure(kept, runs, f"round {count} of {len(_ROUNDS)}", over)
            alive = self.ranked(kept)
            if not alive:
                reason = next(iter(self.tried.values())).skipped
                raise LaunchConfigError(f"none of {len(self.tried)} settings can run; the first: {reason}")
        best, improved = self.improve(alive[0])
        first = self.tried[nearest[0]]
        if best is first or first.skipped:
            return best, complete and improved
        better, compared = self.beats(best, first)
        return best if better else first, complete and improved and compared

    def beats(self, best: _Setting, first: _Setting) -> tuple[bool, bool]:
        """Return whether `best` is faster than `first` beyond their spread, and whether there was time to tell."""
        begin = len(best.times), len(first.times)
        for turn in self.progress(range(_TURNS), "the best against the first", _TURNS):
            for setting in (best, first) if turn % 2 else (first, best):  # so that what drifts favours neither
                if self.is_over(1.0):
                    return False, False
                self.run_once(setting)
                if setting.skipped:
                    return setting is first, True
        upper = statistics.quantiles(best.times[begin[0] :], n=4)[2]
        lower = statistics.quantiles(first.times[begin[1] :], n=4)[0]
        return upper < lower, True

    def warm_up(self, place: tuple[int, ...]) -> None:
        """Run a setting once before anything counts, since the first run of all is slow."""
        with contextlib.suppress(*_CANNOT_RUN):
            self.run(**self.options(place))

    def options(self, place: tuple[int, ...]) -> dict[str, Any]:
        chosen = {name: values[i] for i, (name, values) in zip(place, self.space.items(), strict=True)}
        return {name: value for name, value in chosen.items() if value is not None}

    def improve(self, place: tuple[int, ...]) -> tuple[_Setting, bool]:
        """Change single options as long as that helps; only what is new and promising runs as often as the best did."""
        while True:
            beside = [
                (*place[:i], j, *place[i + 1 :]) for i, values in enumerate(self.space.values()) for j in range(len(values))
            ]
            new = [other for other in beside if other not in self.tried]
            complete = self.measure(new, 1, "neighbours")
            promising = [other for other in self.ranked(new) if self.tried[other].median < self.tried[place].median]
            often = _ROUNDS[-1][0]
            complete = complete and self.measure(promising, often, "neighbours that promise more")
            better = self.ranked([place, *(other for other in promising if len(self.tried[other].times) >= often)])[0]
            if better == place or not complete:
                return self.tried[better], complete
            place = better

    def ranked(self, places: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return those that have run, the fastest first."""
        ran = [place for place in places if place in self.tried and self.tried[place].times]
        return sorted(ran, key=lambda place: self.tried[place].median)

    def measure(self, places: Sequence[tuple[int, ...]], runs: int, description: str, over: float = _ROUNDS[-1][1]) -> bool:
        """Run each setting until it has run that often; return whether that part of the time was enough for all of them."""
        if not places:
            return True
        for place in self.progress(places, description, len(places)):
            setting = self.tried.get(place) or _Setting(self.options(place))
            while len(setting.times) < runs and not setting.skipped:
                if self.tried and self.is_over(over):
                    return False
                self.tried[place] = setting
                self.run_once(setting)
        return True

    def is_over(self, part: float) -> bool:
        """Whether that part of the time has passed."""
        return time.perf_counter() - self.begin > part * self.budget

    def run_once(self, setting: _Setting) -> None:
        """Run a setting, and note its time, or why it cannot run."""
        try:
            setting.launched = stats_of(self.run(**setting.options))
            setting.times.append(setting.launched.milliseconds)
        except _CANNOT_RUN as error:
            setting.skipped = str(error)
