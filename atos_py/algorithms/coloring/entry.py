"""Entry of graph coloring in the registry."""

from __future__ import annotations

from ..registry import Option, register
from .api import color
from .verify import verify_coloring

register(
    run=color,
    launch_defaults=False,
    verify=lambda graph, result, _: verify_coloring(graph, result.colors),
    describe=lambda result: {"colors": result.num_colors},
    arrays=lambda result: {"color": result.colors},
    help="color the vertices of a graph",
    description="""\
Gives every vertex a color so that no edge joins equal colors (Chen et al. 2022, Algorithm 6). A pass over every edge proves
that. An edge without its reverse is taken as undirected. The order by degree takes the fewest colors.""",
    examples=("road:1000:0.62 --out color.npy", "rmat:16:16 --order degree"),
    options={
        "order": Option("which vertices come first: natural, random or degree"),
        "window": Option("vertices in flight: begun and not final", int),
        "patience": Option("how often a vertex waits for another", int),
    },
    paper={"coloring": {}},
)
