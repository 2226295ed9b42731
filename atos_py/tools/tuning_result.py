"""Result of tuning: the table of settings that were tried, as text, CSV or a heat map."""

from __future__ import annotations

import csv
import io
import itertools
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import MissingPackageError
from ..runtime.stats import LaunchStats
from ..support.atomic_files import as_path, replacing
from ..support.shown import Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Setting", "Tuning"]

_MEASURED = ("milliseconds", "least", "runs", "tasks_run", "worker_size", "fetched", "skipped")
_WORKER_SIZE = {"thread": 1, "warp": 32}


@dataclass
class Setting:
    """Options of a run, and its times so far; `skipped` is the reason why it cannot run."""

    options: dict[str, Any]
    times: list[float] = field(default_factory=list)
    launched: LaunchStats | None = None
    skipped: str = ""

    @property
    def median(self) -> float:
        """Median of the times; infinite without any."""
        return statistics.median(self.times) if self.times else float("inf")

    def make_row(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the row of the table, with options of these names."""
        stats = self.launched
        options = {name: self.options.get(name) for name in names}
        if stats is None:
            return {**options, **dict.fromkeys(_MEASURED), "runs": 0, "skipped": self.skipped}
        size = _WORKER_SIZE.get(stats.worker, stats.num_threads)
        measured = (self.median, min(self.times), len(self.times), stats.tasks_run, size, stats.fetch_size, self.skipped)
        return {**options, **dict(zip(_MEASURED, measured, strict=True))}


@dataclass(frozen=True, repr=False)
class Tuning(Shown):
    """Result of `tune`.

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
        Time of the search.
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

    def plot(self, task: str = "task", graph: str = "its input") -> Figure:
        """Draw a heat map: the best time over worker size and fetch size, of all settings tried (Chen et al., Figure 4).

        Parameters
        ----------
        task, graph : str
            Names of the task and of its input, for the title.

        Returns
        -------
        matplotlib.figure.Figure
            Shown by a notebook; `draw` writes it to a file.

        Raises
        ------
        MissingPackageError
            If matplotlib is not installed.

        Examples
        --------
        >>> graph = atos.generate.road(30)
        >>> tuning = atos.tune(lambda **options: atos.bfs(graph, 0, **options), space={"fetch_size": (32, 128)}, budget=1)
        >>> figure = tuning.plot("BFS", "a small grid")
        """
        try:
            from .figures import plot_heatmaps
        except ImportError as error:
            raise MissingPackageError("drawing needs matplotlib: python -m pip install matplotlib") from error
        best: dict[tuple[int, int], float] = {}
        for row in self.table:
            if row["runs"]:
                at = row["worker_size"], row["fetched"]
                best[at] = min(best.get(at, row["milliseconds"]), row["milliseconds"])
        workers, fetches = sorted({w for w, _ in best}), sorted({f for _, f in best})
        where = {"algorithm": task, "graph": graph}
        return plot_heatmaps(
            [
                {**where, "workers": w, "fetch_size": f, "milliseconds": best.get((w, f), float("nan"))}
                for w, f in itertools.product(workers, fetches)
            ]
        )

    def draw(self, path: str | os.PathLike[str], task: str = "task", graph: str = "its input") -> None:
        """Write the heat map of `plot` to a file.

        Parameters
        ----------
        path : path-like
            The picture; its ending says of what kind.
        task, graph : str
            Names of the task and of its input, for the title.

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
        figure = self.plot(task, graph)
        from .figures import write_picture

        write_picture(figure, as_path(path))

    def __repr__(self) -> str:
        best = ", ".join(f"{name}={value}" for name, value in self.best.items()) or "all as it is"
        tried = f"{len(self.table)} settings in {self.seconds:.1f} s"
        return f"<Tuning best: {best}, {self.milliseconds:.3f} ms; {tried}{'' if self.finished else ', not finished'}>"

    def _shown(self) -> Mapping[str, object]:
        best = ", ".join(f"{name}={value}" for name, value in self.best.items()) or "all as it is"
        return {"best": f"{best}: {self.milliseconds:.3f} ms", "settings": str(self)}

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
