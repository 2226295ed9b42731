"""Plot of one run, from its trace and its profile, and figures that notebooks show. Needs matplotlib."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..compile.timing import Profile
from ..errors import InvalidArgumentError
from .trace import compute_throughput, format_digits

__all__ = ["ShownFigure", "draw_run"]

_COLORS = {"compile": "C4", "link": "C5", "load": "C6", "copy": "C1", "launch": "C7", "run": "C0"}


class ShownFigure(Figure):
    """A figure that a notebook shows where it is the value of a cell, with or without ``%matplotlib inline``.

    It is not one of pyplot's, which a notebook would show once more at the end of the cell.
    """

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png")
        return picture.getvalue()


def draw_run(title: str, trace: NDArray[Any] | None, profile: Profile, overwork: float | None) -> Figure:
    """Draw throughput, the queue and idle workers over time, and the parts of the call; see `LaunchStats.plot`."""
    if trace is None or len(trace) < 2:
        had = "no trace" if trace is None else f"a trace of {len(trace)} samples"
        raise InvalidArgumentError(
            f"there is nothing to draw, since the launch has {had}; launch with trace=20 or so, microseconds between samples"
        )
    figure = ShownFigure(figsize=(7.5, 7.5), layout="constrained")
    rate, queue, idle, parts = figure.subplots(4, 1, height_ratios=[4, 3, 2, 1.2])
    figure.suptitle(title, fontsize=10)
    middles, tasks = compute_throughput(trace)
    rate.plot(middles, tasks, label="tasks run")
    if overwork is not None:
        rate.plot(middles, tasks / overwork, "--", label=f"divided by the overwork, {format_digits(overwork)}")
        rate.legend(fontsize=8)
    rate.set(ylabel="million tasks / s")
    queue.fill_between(trace["milliseconds"], trace["waiting"], color="C2", alpha=0.6, linewidth=0.5)
    queue.set(ylabel="items waiting")
    if np.isnan(trace["idle"]).all():
        idle.text(0.5, 0.5, "not known with barriers or discrete kernels", transform=idle.transAxes, ha="center", va="center")
    idle.fill_between(trace["milliseconds"], 100 * trace["idle"], color="C3", alpha=0.6, linewidth=0.5)
    idle.set(ylabel="idle workers, %", xlabel="time (ms)", ylim=(0, 100))
    for panel in (rate, queue, idle):
        panel.set_xlim(0, float(trace["milliseconds"][-1]))
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    left = 0.0
    for name, value in profile.parts().items():
        if value > 0:
            parts.barh([0], [value], left=left, color=_COLORS[name], label=f"{name} {format_digits(value)}")
            left += value
    parts.set(yticks=[], xlabel="the call (ms)")
    if left:
        parts.set_xlim(0, left)
        parts.legend(loc="upper center", bbox_to_anchor=(0.5, 1.75), ncols=6, fontsize=8, frameon=False)
    return figure
