"""Graphs in a word, as the command line and the benchmarks name them: a file, or the parameters of a generator."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.devices import Device
from ..errors import InvalidArgumentError
from . import generate
from .graph import Graph

__all__ = ["SPEC_HELP", "graph_of", "names_of", "source_of"]


class _Generator(NamedTuple):
    make: Callable[..., Graph]
    types: tuple[Callable[[str], Any], ...]
    required: int
    words: str


def _matrix(text: str) -> NDArray[np.float64]:
    """Return a square matrix of the numbers that commas separate."""
    numbers = np.array([float(number) for number in text.split(",")])
    return numbers.reshape(round(numbers.size**0.5), -1)


_GENERATORS = {
    "rmat": _Generator(generate.rmat, (int, int, int), 1, "SCALE[:EDGE_FACTOR[:SEED]]"),
    "road": _Generator(generate.road, (int, float, int), 1, "SIDE[:KEEP[:SEED]]"),
    "barabasi_albert": _Generator(generate.barabasi_albert, (int, int, int), 2, "VERTICES:EDGES[:SEED]"),
    "bipartite": _Generator(generate.bipartite, (int, int, int, int), 3, "LEFT:RIGHT:EDGES[:SEED]"),
    "grid2d": _Generator(generate.grid2d, (int, int), 2, "ROWS:COLUMNS"),
    "grid3d": _Generator(generate.grid3d, (int, int, int), 3, "LAYERS:ROWS:COLUMNS"),
    "kronecker": _Generator(generate.kronecker, (_matrix, int, int, int), 2, "A,B,C,D:SCALE[:EDGE_FACTOR[:SEED]]"),
    "small_world": _Generator(generate.small_world, (int, int, float, int), 3, "VERTICES:NEIGHBORS:REWIRE[:SEED]"),
    "uniform": _Generator(generate.uniform, (int, int, int), 2, "VERTICES:EDGES[:SEED]"),
}
_WORDS = ", ".join(f"{name}:{generator.words}" for name, generator in _GENERATORS.items())
SPEC_HELP = (
    f"a graph file, or one of {_WORDS}; with ~PROBABILITY behind it, each direction of an edge is kept with that probability,"
    " and with @LOW-HIGH at the end it has random weights"
)


def graph_of(
    spec: str,
    *,
    device: Device | str | None = None,
    weights: bool = False,
    symmetrize: bool = False,
    simplify: bool = False,
    renumber: bool = False,
) -> Graph:
    """Return the graph that a word names.

    Parameters
    ----------
    spec : str
        A path, or a generator and its parameters: ``rmat:22:16`` is ``generate.rmat(22, 16)``, ``road:4900:0.62`` is
        ``generate.road(4900, 0.62)``; a further number is the seed. With ``~0.5`` behind that, each direction of an edge is
        kept with probability 1/2 (`generate.sample_edges`). With ``@1-255`` at the end, edges have random weights from 1 to 255
        (`generate.random_weights`).
    device : Device or str, optional
        Where the graph goes; the best device there is unless given.
    weights : bool
        Whether to keep the weights of a file that has some; what is generated has those that the word ends in.
    symmetrize, simplify, renumber : bool
        As in `Graph.load`, of a file.

    Raises
    ------
    InvalidArgumentError
        If the parameters are not those of the generator, or what is generated is to be changed as a file.
    MissingFileError, GraphFormatError
        If there is no such file, or it is malformed.
    """
    if not _generated(spec):
        return Graph.load(spec, device=device, weights=weights, symmetrize=symmetrize, simplify=simplify, renumber=renumber)
    if symmetrize or simplify or renumber:
        raise InvalidArgumentError(f"{spec!r} is no file: symmetrize, simplify and renumber are for those; leave them out")
    unweighted, weighted, bounds = spec.partition("@")
    numbers, sampled, probability = unweighted.partition("~")
    kind, *given = numbers.split(":")
    generator = _GENERATORS[kind]
    try:
        if not generator.required <= len(given) <= len(generator.types):
            raise ValueError
        values = [read(text) for read, text in zip(generator.types, given, strict=False)]
        low, high = map(_number, bounds.split("-")) if weighted else (0, 0)
        graph = generator.make(*values, device=device)
        if sampled:
            graph = generate.sample_edges(graph, float(probability))
        return graph.with_weights(generate.random_weights(graph, low, high)) if weighted else graph
    except InvalidArgumentError:
        raise
    except ValueError:
        raise InvalidArgumentError(f"{spec!r} names no graph: give {SPEC_HELP}") from None


def _number(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)


def _generated(spec: str) -> bool:
    kind, _, numbers = spec.partition(":")
    return kind in _GENERATORS and bool(numbers)


def names_of(specs: Sequence[str]) -> list[str]:
    """Return a short name for each: that of a file without its endings, unless another has the same, or the word itself."""
    names = [spec if _generated(spec) else Path(spec).name.partition(".")[0] for spec in specs]
    return [spec if names.count(name) > 1 else name for spec, name in zip(specs, names, strict=True)]


def source_of(spec: str, graph: Graph) -> int:
    """Return where a search of that graph begins: a grid's middle, otherwise a vertex of largest degree."""
    kind, *given = re.split("[~@]", spec)[0].split(":")
    if kind in ("road", "grid2d", "grid3d") and _generated(spec):
        extents = [int(given[0])] * 2 if kind == "road" else [int(extent) for extent in given]
        return sum(extent // 2 * math.prod(extents[axis + 1 :]) for axis, extent in enumerate(extents))
    return int(np.argmax(graph.degrees())) if graph.num_vertices else 0
