"""What ``bfs``, ``pagerank`` and ``color`` have in common: one run on one graph, verified, printed and saved."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..core.devices import device
from ..errors import InvalidArgumentError, VerificationError
from ..graph.spec import SPEC_HELP, graph_of, source_of
from ..support.atomic_files import replacing
from ..tools.tuning_cache import tuned
from ..tools.workloads import OPTIONS, on_graph
from .options import LAUNCH, add_device, add_json, add_launch, add_own, check_outputs, given, say, write_json

__all__ = ["add_arguments", "command"]

_SAMPLES = 20.0  # microseconds between those of a trace that is to be drawn


def add_arguments(parser: argparse.ArgumentParser, algorithm: str) -> None:
    """Describe the options that the three share, and those that are the algorithm's own."""
    parser.add_argument("graph", metavar="GRAPH", help=SPEC_HELP)
    add_device(parser)
    parser.add_argument("--no-verify", dest="verify", action="store_false", help="do not verify the result")
    parser.add_argument("--out", type=Path, metavar="FILE", help="save the result: .npy, or .npz with a name for each array")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the run over time (matplotlib)")
    parser.add_argument("--progress", action="store_true", help="show a bar while it runs")
    add_json(parser)
    add_own(parser, algorithm)
    add_launch(parser)


def command(
    options: argparse.Namespace,
    algorithm: str,
    describe: Callable[[Any], dict[str, Any]],
    arrays: Callable[[Any], dict[str, Array]],
    least_tasks: Callable[[Any], int | None] = lambda _: None,
    **own: Any,
) -> int:
    """Run an algorithm, and return the exit code.

    Parameters
    ----------
    options : argparse.Namespace
    algorithm : str
        Its name in `workloads`.
    describe : callable
        Returns what is worth saying about a result.
    arrays : callable
        Returns the arrays of a result by name; the first is what goes to an .npy file.
    least_tasks : callable
        Returns how many tasks could have been enough for a result, if that is known.
    **own
        More options for the algorithm.
    """
    if options.out and options.out.suffix not in (".npy", ".npz"):
        raise InvalidArgumentError(f"--out names an .npy or .npz file (got '{options.out}')")
    check_outputs(options.out, options.json, picture=options.plot)
    on = device(options.device)
    host = graph_of(options.graph, device="cpu")
    graph = host.to(on)
    say(options, f"{options.graph}: {graph.num_vertices:,} vertices, {graph.num_edges:,} edges")
    source = getattr(options, "source", None)
    workload = on_graph(algorithm, graph, source_of(options.graph, host) if source is None else source, host)
    setting = given(options, *LAUNCH, *OPTIONS.get(algorithm, ())) | own
    if options.tuned:
        setting = {**tuned(algorithm, graph), **setting}
    watched = ({"trace": _SAMPLES} if options.plot else {}) | ({"progress": True} if options.progress else {})
    result = workload.run(**setting, **watched)
    facts, failure = describe(result), ""
    if options.verify:
        try:
            facts |= workload.verify(result, setting)
        except VerificationError as error:
            failure = str(error)
    proved = f"NOT RIGHT: {failure}" if failure else "verified" if options.verify else "not verified"
    said = ", ".join(f"{name} {_shown(value)}" for name, value in facts.items())
    say(options, result.stats, f"{said}; {proved}")
    if options.out and not failure:
        _save(options.out, arrays(result))
        say(options, f"saved to {options.out}")
    write_json(
        options,
        {
            "algorithm": algorithm,
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

        write_picture(result.stats.plot(least_tasks(result)), options.plot)
        say(options, f"drawn to {options.plot}")
    return 1 if failure else 0


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} ({_shown(inner)})" for key, inner in value.items())
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _save(path: Path, arrays: dict[str, Array]) -> None:
    found = {name: array.to_numpy() for name, array in arrays.items()}
    with replacing(path, "the result") as file:
        if path.suffix == ".npz":
            np.savez(file, **found)  # type: ignore[arg-type]
        else:
            np.save(file, next(iter(found.values())))
