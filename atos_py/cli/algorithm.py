"""Command of an algorithm, made from its entry in the registry: one run on one graph, verified, printed and saved."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ..algorithms.registry import Algorithm
from ..arrays.array import Array
from ..core.devices import device
from ..errors import InvalidArgumentError, VerificationError
from ..graph.graph import Graph
from ..graph.spec import SPEC_HELP, graph_of, source_of
from ..support.atomic_files import replacing
from ..tools.tuning_cache import tuned
from ..tools.workloads import bind_algorithm, vertices_of
from .options import (
    LAUNCH,
    add_algorithm_options,
    add_device,
    add_file_changes,
    add_json,
    add_launch,
    check_outputs,
    collect_given,
    file_changes,
    say,
    write_json,
)

__all__ = ["AlgorithmCommand"]

_SAMPLES = 20.0  # microseconds between those of a trace that is to be drawn


class AlgorithmCommand:
    """Command that runs an algorithm of the registry.

    Parameters
    ----------
    algorithm : Algorithm
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm
        self.HELP = algorithm.help
        self.DESCRIPTION = algorithm.description
        self.EXAMPLES = "\n".join(f"  atos {algorithm.name} {arguments}" for arguments in algorithm.examples)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Describe the command to `argparse`."""
        parser.add_argument("graph", metavar="GRAPH", help=SPEC_HELP)
        add_file_changes(parser)
        add_device(parser)
        parser.add_argument("--no-verify", dest="verify", action="store_false", help="do not verify the result")
        text = "save the result: .npy, or .npz with a name for each array"
        parser.add_argument("--out", type=Path, metavar="FILE", help=text)
        parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the run over time (matplotlib)")
        parser.add_argument("--progress", action="store_true", help="show a bar while it runs")
        add_json(parser)
        if self.algorithm.has_source:
            text = "where to begin, one vertex or several (default: a vertex of largest degree, a grid's middle)"
            parser.add_argument("--source", type=int, nargs="+", metavar="V", help=text)
        add_algorithm_options(parser, self.algorithm)
        add_launch(parser)

    def command(self, options: argparse.Namespace) -> int:
        """Run the algorithm; return the exit code."""
        algorithm = self.algorithm
        if options.out and options.out.suffix not in (".npy", ".npz"):
            raise InvalidArgumentError(f"--out names an .npy or .npz file (got '{options.out}')")
        if options.renumber and options.out and options.out.suffix != ".npz":
            raise InvalidArgumentError(
                f"with --renumber, --out names an .npz file, which has the labels of the vertices too (got '{options.out}')"
            )
        check_outputs(options.out, options.json, picture=options.plot)
        on = device(options.device)
        host = graph_of(options.graph, device="cpu", weights=algorithm.weighted, **file_changes(options))
        graph = host.to(on)
        say(options, f"{options.graph}: {graph.num_vertices:,} vertices, {graph.num_edges:,} edges")
        source = vertices_of(host, getattr(options, "source", None))
        workload = bind_algorithm(algorithm, graph, source_of(options.graph, host) if source is None else source, host)
        setting = collect_given(options, *LAUNCH, *algorithm.options)
        if options.tuned:
            setting = {**tuned(algorithm.name, graph), **setting}
        watched = ({"trace": _SAMPLES} if options.plot else {}) | ({"progress": True} if options.progress else {})
        result = workload.run(**setting, **watched)
        facts, failure = algorithm.describe(result), ""
        if options.verify:
            try:
                facts |= workload.verify(result, setting)
            except VerificationError as error:
                failure = str(error)
        facts = {name: _name_vertices(fact, host) for name, fact in facts.items()}
        proved = f"NOT RIGHT: {failure}" if failure else "verified" if options.verify else "not verified"
        said = ", ".join(f"{name} {_format_value(value)}" for name, value in facts.items())
        say(options, result.stats, f"{said}; {proved}")
        if options.out and not failure:
            _save(options.out, algorithm.arrays(result), host)
            say(options, f"saved to {options.out}")
        write_json(
            options,
            {
                "algorithm": algorithm.name,
                "graph": {"name": options.graph, "vertices": graph.num_vertices, "edges": graph.num_edges},
                "options": setting,
                "result": facts,
                "verified": not failure if options.verify else None,
                "failure": failure,
                "stats": result.stats.to_dict(),
            },
        )
        if options.plot:
            from ..tools.figures import write_picture  # with matplotlib

            write_picture(result.stats.plot(algorithm.least_tasks(result)), options.plot)
            say(options, f"drawn to {options.plot}")
        return 1 if failure else 0


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} ({_format_value(inner)})" for key, inner in value.items())
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _name_vertices(fact: Any, graph: Graph) -> Any:
    """Return a fact that goes by vertices with their labels, if the graph has some."""
    labels = graph.labels
    return (
        {int(labels[vertex]): value for vertex, value in fact.items()}
        if isinstance(fact, dict) and labels is not None
        else fact
    )


def _save(path: Path, arrays: dict[str, Array | None], graph: Graph) -> None:
    found = {name: array.to_numpy() for name, array in arrays.items() if array is not None}
    if graph.labels is not None and path.suffix == ".npz":
        found["labels"] = graph.labels
    with replacing(path, "the result") as file:
        if path.suffix == ".npz":
            np.savez(file, **found)  # type: ignore[arg-type]
        else:
            np.save(file, next(iter(found.values())))
