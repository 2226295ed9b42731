"""Entry of strongly connected components in the registry."""

from __future__ import annotations

from ..connected_components import describe_components
from ..registry import Algorithm
from .api import strongly_connected_components
from .verify import verify_strongly_connected_components

__all__ = ["ENTRY"]


ENTRY = Algorithm(
    name="strongly_connected_components",
    run=strongly_connected_components,
    verify=lambda graph, result, _: verify_strongly_connected_components(graph, result.label, result.num_components),
    describe=describe_components,
    arrays=lambda result: {"label": result.label},
    help="find which vertices reach each other",
    description="""\
Finds the strongly connected components of a directed graph by smallest keys that are propagated from both ends of edges
(ECL-SCC). The label of a vertex is the smallest vertex of its component. Tarjan's algorithm, on one core, proves it right.""",
    examples=("web.txt.gz --out label.npy", "rmat:16:16 --worker warp"),
    launch_defaults=True,
)
