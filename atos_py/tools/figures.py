"""The drawings: throughput over time, and run time over worker size and fetch size. Needs matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..errors import InvalidArgumentError
from ..runtime.plot import ShownFigure
from ..runtime.trace import compute_throughput, format_digits
from ..support.atomic_files import replacing
from .tables import COUNTED, Measured, compute_overwork_of_trace

__all__ = [
    "Curve",
    "draw_bars",
    "draw_figures",
    "draw_heatmaps",
    "draw_throughput",
    "find_picture_format",
    "plot_heatmaps",
    "write_picture",
]


class Curve(NamedTuple):
    """Throughput of one variant on one graph: millions of tasks a second over milliseconds."""

    graph: str
    variant: str
    milliseconds: NDArray[np.float64]
    rate: NDArray[np.float64]
    overwork: float


def draw_throughput(path: Path, algorithm: str, curves: Sequence[Curve]) -> Path:
    """Draw a row of panels for each graph: throughput as it is, and divided by the overwork factor."""
    graphs = list(dict.fromkeys(curve.graph for curve in curves))
    figure = Figure(figsize=(11, 0.4 + 3.4 * len(graphs)), layout="constrained")
    axes = figure.subplots(len(graphs), 2, squeeze=False, sharey="row")
    figure.suptitle(f"{algorithm}: million tasks a second")
    for row, graph in enumerate(graphs):
        mine = [curve for curve in curves if curve.graph == graph]
        for curve in mine:
            for column, factor in enumerate((1.0, curve.overwork)):
                axes[row, column].plot(curve.milliseconds, curve.rate / factor, label=curve.variant, linewidth=1.3)
        # A variant that takes many times as long as the others would press them against the axis.
        ends = sorted(float(curve.milliseconds[-1]) for curve in mine if len(curve.milliseconds))
        limit = min(ends[-1], 4 * ends[0]) if ends else 1.0
        for column, title in enumerate(("throughput", "throughput / overwork")):
            panel = axes[row, column]
            cut = f"; the slowest goes on to {ends[-1]:.3g}" if ends and limit < ends[-1] else ""
            panel.set(title=f"{graph}, {title}", xlabel=f"time (ms{cut})")
            panel.set_ylabel("million tasks / s" if column == 0 else "")
            panel.set_xlim(0, limit)
            panel.set_ylim(bottom=0)
            panel.grid(alpha=0.3)
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=len(names))
    return write_picture(figure, path)


def draw_heatmaps(path: Path, cells: Sequence[dict[str, Any]]) -> Path:
    """Write the figure of `plot_heatmaps` to a file."""
    return write_picture(plot_heatmaps(cells), path)


def plot_heatmaps(cells: Sequence[dict[str, Any]]) -> Figure:
    """Return a figure with a heat map of run time for each algorithm and graph: workers down, fetch size across."""
    maps = list(dict.fromkeys((cell["algorithm"], cell["graph"]) for cell in cells))
    columns = 2 if len(maps) > 1 else 1
    rows = -(-len(maps) // columns)
    figure = ShownFigure(figsize=(5.6 * columns, 3.9 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for panel in axes.flat[len(maps) :]:
        panel.set_visible(False)
    for panel, (algorithm, graph) in zip(axes.flat, maps, strict=False):
        chosen = [cell for cell in cells if (cell["algorithm"], cell["graph"]) == (algorithm, graph)]
        mine = {(cell["workers"], cell["fetch_size"]): cell["milliseconds"] for cell in chosen}
        workers, fetches = (list(dict.fromkeys(cell[key] for cell in chosen)) for key in ("workers", "fetch_size"))
        grid = np.array([[mine[w, f] for f in fetches] for w in workers])
        panel.imshow(np.log(grid), cmap="viridis_r", aspect="auto")
        panel.set(title=f"{algorithm} on {graph}: ms", xlabel="fetch size", ylabel="workers")
        panel.set_xticks(range(len(fetches)), [str(f) for f in fetches])
        panel.set_yticks(range(len(workers)), workers)
        middle = np.log(np.nanmin(grid) * np.nanmax(grid)) / 2
        for (y, x), value in np.ndenumerate(grid):
            shade = "black" if np.log(value) < middle else "white"
            text = "-" if np.isnan(value) else format_digits(value)
            weight = "bold" if value == np.nanmin(grid) else "normal"
            panel.text(x, y, text, ha="center", va="center", fontsize=8, color=shade, fontweight=weight)
    return figure


def find_picture_format(path: Path) -> str:
    """Return what kind of picture the ending of a name asks for: PNG if it has none.

    Raises
    ------
    InvalidArgumentError
        If matplotlib has no such kind.
    """
    kinds = Figure().canvas.get_supported_filetypes()
    kind = path.suffix[1:].lower() or "png"
    if kind not in kinds:
        known = ", ".join(f".{name}" for name in sorted(kinds))
        raise InvalidArgumentError(f"the ending of {str(path)!r} names no kind of picture; there are {known}")
    return kind


def write_picture(figure: Figure, path: Path) -> Path:
    """Write a drawing to a file, as its ending says."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=130, format=find_picture_format(path))
    with replacing(path, "picture") as file:
        file.write(picture.getvalue())
    return path


def draw_figures(out: Path, measured: Measured) -> list[Path]:
    """Draw throughput over time and the heat maps."""
    written = []
    for algorithm, name in COUNTED.items():
        curves = []
        for entry in measured.traces:
            if entry["algorithm"] == algorithm:
                factor = compute_overwork_of_trace(measured, entry)
                curves.append(Curve(entry["graph"], entry["variant"], *compute_throughput(entry["trace"]), factor))
        written.append(draw_throughput(out / f"{name}.png", algorithm, curves))
    written.append(draw_heatmaps(out / "figure4_heatmap.png", measured.heat))
    return written


def draw_bars(path: Path, title: str, rows: Sequence[dict[str, Any]]) -> Path:
    """Draw run times of variants side by side, relative to the first variant, a group for each program and graph."""
    groups = list(dict.fromkeys((row["program"], row["graph"]) for row in rows))
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    figure = Figure(figsize=(1.5 + 1.6 * len(groups), 4.2), layout="constrained")
    panel = figure.subplots()
    for place, variant in enumerate(variants):
        times = [
            next(r["milliseconds"] for r in rows if (r["program"], r["graph"], r["variant"]) == (*g, variant)) for g in groups
        ]
        first = [
            next(r["milliseconds"] for r in rows if (r["program"], r["graph"], r["variant"]) == (*g, variants[0]))
            for g in groups
        ]
        heights = [time / base for time, base in zip(times, first, strict=True)]
        at = np.arange(len(groups)) + (place - (len(variants) - 1) / 2) * 0.8 / len(variants)
        bars = panel.bar(at, heights, 0.8 / len(variants), label=variant)
        panel.bar_label(bars, [format_digits(time) for time in times], fontsize=6, rotation=90, padding=2)
    panel.set_xticks(range(len(groups)), [f"{program}\n{graph}" for program, graph in groups], fontsize=8)
    panel.set(title=title, ylabel=f"time relative to {variants[0]} (labels: ms)")
    panel.margins(y=0.15)
    panel.legend(fontsize=8)
    return write_picture(figure, path)
