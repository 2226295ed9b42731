"""Statistics of a run of a program: those of its launches, and of each round what it worked on."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ...runtime.stats import LaunchStats

__all__ = ["ProgramStats", "as_program_stats"]


@dataclass(slots=True, repr=False)
class ProgramStats(LaunchStats):
    """Statistics of a run of a program: those of a launch, and a log of its rounds.

    Attributes
    ----------
    filters, directions, frontiers : tuple
        For each round what listed its active vertices ("online" or "ballot", or "none" if it works on all), which way their
        updates went ("push" or "pull"), and how many vertices were active. Empty without rounds.

    Examples
    --------
    >>> from atos_py import acc
    >>> _, stats = acc.programs.bfs(atos.generate.road(3, 1.0), 0)
    >>> print(stats.frontiers, stats.directions[0])
    (1, 2, 3, 2, 1) push
    """

    filters: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    frontiers: tuple[int, ...] = ()


def as_program_stats(stats: LaunchStats, **others: Any) -> ProgramStats:
    """Return the statistics of launches as those of a program, with other values of some fields."""
    return ProgramStats(**{each.name: getattr(stats, each.name) for each in fields(stats)} | others)
