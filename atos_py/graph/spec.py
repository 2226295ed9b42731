"""Graphs in a word, as the command line and the benchmarks name them: a file, or the parameters of a generator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..core.devices import Device
from ..errors import InvalidArgumentError
from . import generate
from .graph import Graph

__all__ = ["SPEC_HELP", "graph_of", "names_of", "source_of"]

SPEC_HELP = "a graph file, rmat:SCALE[:EDGE_FACTOR[:SEED]] or road:SIDE[:KEEP[:SEED]]"


def graph_of(spec: str, *, device: Device | str | None = None) -> Graph:
    """Return the graph that a word names, without weights.

    Parameters
    ----------
    spec : str
        A path, or a generator and its parameters: ``rmat:22:16`` is ``generate.rmat(22, 16)``, ``road:4900:0.62`` is
        ``generate.road(4900, 0.62)``; a third number is the seed.
    device : Device or str, optional
        Where the graph goes; the best device there is unless given.

    Raises
    ------
    InvalidArgumentError
        If the parameters are not those of the generator.
    MissingFileError, GraphFormatError
        If there is no such file, or it is malformed.
    """
    kind, _, numbers = spec.partition(":")
    if not _generated(spec):
        return Graph.load(spec, device=device, weights=False)
    given = numbers.split(":")
    try:
        if len(given) > 3:
            raise ValueError
        size = int(given[0])
        seed = int(given[2]) if len(given) > 2 else 0
        if kind == "rmat":
            return generate.rmat(size, int(given[1]) if len(given) > 1 else 16, seed, device=device)
        return generate.road(size, float(given[1]) if len(given) > 1 else 0.62, seed, device=device)
    except InvalidArgumentError:
        raise
    except ValueError:
        raise InvalidArgumentError(f"{spec!r} names no graph: give {SPEC_HELP}") from None


def _generated(spec: str) -> bool:
    kind, _, numbers = spec.partition(":")
    return kind in ("rmat", "road") and bool(numbers)


def names_of(specs: Sequence[str]) -> list[str]:
    """Return a short name for each: that of a file without its endings, unless another has the same, or the word itself."""
    names = [spec if _generated(spec) else Path(spec).name.partition(".")[0] for spec in specs]
    return [spec if names.count(name) > 1 else name for spec, name in zip(specs, names, strict=True)]


def source_of(spec: str, graph: Graph) -> int:
    """Return where a search of that graph begins: a grid's middle, otherwise a vertex of largest degree."""
    if spec.startswith("road:"):
        side = round(graph.num_vertices**0.5)
        return side // 2 * side + side // 2
    return int(np.argmax(graph.degrees())) if graph.num_vertices else 0
