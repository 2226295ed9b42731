"""Graphs, sources and the directory of a report: graphs that suit the device, and the vertices where searches begin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ...algorithms.bfs import bfs
from ...core.devices import Device
from ...errors import FileWriteError
from ...graph.graph import Graph
from ...graph.spec import graph_of, names_of

__all__ = ["choose_source", "default_specs", "make_directory", "make_graphs"]

# By paper, a scale-free and a mesh-like graph on a CPU. The scale-free ones of SIMD-X have levels of more than 1,024 x 64
# vertices, so that the just-in-time filter switches.
_ON_CPU = {"atos": ("rmat:18:16", "road:1000"), "simd-x": ("rmat:18:16", "road:700"), "onyx": ("rmat:14:16", "road:250")}
_ON_CPU |= {"worklists": ("rmat:18:16", "road:500")}
_QUICKLY = {"atos": ("rmat:17:16", "road:500"), "simd-x": ("rmat:18:8", "road:400"), "onyx": ("rmat:13:8", "road:150")}
_QUICKLY |= {"worklists": ("rmat:17:16", "road:300")}
_ON_GPU = {"atos": ("rmat:22:16", "road:4900:0.62"), "simd-x": ("rmat:22:16", "road:2000:0.62")}
_ON_GPU |= {"onyx": ("rmat:18:16", "road:1000:0.62"), "worklists": ("rmat:20:16", "road:2000:0.62")}
_QUICKLY_ON_GPU = {"atos": ("rmat:20:16", "road:2000:0.62"), "simd-x": ("rmat:20:16", "road:1000:0.62")}
_QUICKLY_ON_GPU |= {"onyx": ("rmat:16:16", "road:500:0.62"), "worklists": ("rmat:18:16", "road:1000:0.62")}


def choose_source(graph: Graph, host: Graph) -> int:
    """Return the vertex of largest degree, unless another of a few reaches more: on a road network it may lie on an island."""
    others = np.random.default_rng(0).integers(graph.num_vertices, size=4)
    candidates = [int(np.argmax(host.degrees())), *others.tolist()]
    reached = [bfs(graph, source).num_reached for source in candidates]
    return candidates[int(np.argmax(reached))]


def default_specs(paper: str, device: Device, quick: bool) -> tuple[str, ...]:
    """Return the words for a scale-free and a mesh-like graph, large enough for the device that effects exceed noise."""
    of_device = (_ON_GPU, _QUICKLY_ON_GPU) if device.kind == "cuda" else (_ON_CPU, _QUICKLY)
    return of_device[quick][paper]


def make_graphs(specs: tuple[str, ...], device: Device, **changes: bool) -> Iterator[tuple[str, Graph]]:
    """Make the undirected graphs that words name, one at a time, so that they need not be in memory together.

    `changes` are options of `Graph.load`, for files.
    """
    for name, spec in zip(names_of(specs), specs, strict=True):
        yield name, graph_of(spec, device=device, **changes).to_symmetric()


def make_directory(out: Path) -> None:
    """Make the directory of the files, if it is not there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a null byte
        raise FileWriteError(f"cannot make directory {str(out)!r}: {getattr(error, 'strerror', None) or error}") from error
