"""Drawing of which filter ran in which round, as in Figure 7 of the paper. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InvalidArgumentError, MissingPackageError
from .stats import ProgramStats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_pattern"]

_COLORS = {"online": "C0", "ballot": "C1", "none": "C2"}


def draw_pattern(runs: Mapping[str, ProgramStats]) -> Figure:
    """Draw the frontier of each round over the rounds, colored by the filter that listed it; crosses are rounds that pull.

    Parameters
    ----------
    runs : mapping of str to ProgramStats
        What `Program.run` has returned, by names for the panels.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InvalidArgumentError
        If there is none, or one without rounds.
    MissingPackageError
        If matplotlib is not installed.

    Examples
    --------
    >>> from atos_py import acc
    >>> _, stats = acc.programs.bfs(atos.generate.road(30, 1.0), 0)
    >>> acc.draw_pattern({"BFS": stats}).savefig("pattern.png")
    """
    if not runs or not all(stats.frontiers for stats in runs.values()):
        raise InvalidArgumentError(
            "there is a pattern of runs with rounds only: give one or more, without barrier=False or delta="
        )
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError("drawing needs matplotlib: python -m pip install matplotlib") from error
    figure = Figure(figsize=(8, 0.6 + 1.9 * len(runs)), layout="constrained")
    panels = figure.subplots(len(runs), 1, squeeze=False)[:, 0]
    for panel, (name, stats) in zip(panels, runs.items(), strict=True):
        rounds, frontier = np.arange(len(stats.frontiers)), np.array(stats.frontiers)
        for kind, color in _COLORS.items():
            for direction, marker in (("push", "."), ("pull", "x")):
                mine = (np.array(stats.filters) == kind) & (np.array(stats.directions) == direction)
                panel.plot(
                    rounds[mine], frontier[mine], marker, color=color, label=f"{kind}, {direction}" if mine.any() else None
                )
        panel.set(title=name, ylabel="active vertices")
        panel.set_yscale("symlog")
        panel.legend(fontsize=8)
        panel.grid(alpha=0.3)
    panels[-1].set_xlabel("round")
    return figure
