"""The claims of Nasre, Burtscher and Pingali 2013: runs are named by measure, program and variant (`reproduce_worklists`)."""

from __future__ import annotations

from .claims import GPU, MESH_LIKE, Claim, Number

__all__ = ["CLAIMS"]


_NEVER_SWITCHED = "No round listed as many vertices as the threshold asks for, so the hybrid was data-driven throughout."


def _ms(measure: str, program: str, *variants: str) -> Number:
    return Number.of(*(f"{measure}/{program}/{variant}" for variant in variants))


def _sssp(variant: str) -> Number:
    return _ms("figure8", "SSSP, worklists", variant)


def _orders(variant: str) -> Number:
    return _ms("figure9", "SSSP, reordered", variant)


def _tree(variant: str) -> Number:
    return _ms("figure13", "tree", variant)


CLAIMS = (
    Claim(
        key="bfs-topology", place="Figure 5, Section VI.A",
        says="Topology-driven BFS is faster than data-driven BFS, since it needs no atomics.",
        compared="time of data-driven over time of topology-driven rounds",
        over=_ms("figure5", "BFS", "data"), under=_ms("figure5", "BFS", "topology"),
    ),
    Claim(
        key="sssp-topology", place="Figure 5, Section VI.A",
        says="Topology-driven SSSP is faster than data-driven SSSP, since it needs no atomics.",
        compared="time of data-driven over time of topology-driven rounds",
        over=_ms("figure5", "SSSP", "data"), under=_ms("figure5", "SSSP", "topology"),
    ),
    Claim(
        key="spanning-tree-topology", place="Figure 5, Section VI.A",
        compared="time of data-driven over topology-driven Boruvka",
        says="Topology-driven minimum spanning trees are faster, by the widest margin of all programs.",
        because="`minimum_spanning_forest` of atos_py has one policy.",
    ),
    Claim(
        key="mesh-refinement-data", place="Figure 6, Section VI.A",
        compared="time of topology-driven over data-driven refinement",
        says="Data-driven Delaunay mesh refinement beats the topology-driven one, and scales better.",
        because="The example of mesh refinement has one policy.",
    ),
    Claim(
        key="survey-propagation-data", place="Figure 6, Section VI.A",
        compared="time of topology-driven over data-driven surveys",
        says="Data-driven survey propagation beats the topology-driven one by far.",
        because="The example of survey propagation has one policy.",
    ),
    Claim(
        key="barnes-hut-topology", place="Figure 6, Section VI.A", graphs=MESH_LIKE,
        says="Topology-driven summarization of an octree is faster than the data-driven one.",
        compared="time of data-driven over time of topology-driven sums of an octree",
        over=_tree("0"), under=_tree("topology"),
    ),
    Claim(
        key="few-edges-a-round", place="Figure 7", graphs=MESH_LIKE, test="<", threshold=0.1,
        says="Data-driven SSSP on the USA road network relaxes less than 10 % of the edges in any iteration.",
        compared="share of the vertices active in the widest round of data-driven SSSP",
        over=Number.of("figure7/SSSP/data", name="widest"), under=Number.of("figure7/SSSP/data", name="vertices"),
    ),
    Claim(
        key="hierarchical-worklist", place="Figure 8, Section VI.B", devices=GPU,
        because="A push buffer is in the shared memory of a GPU.",
        says="A hierarchical worklist makes SSSP 2 % faster on RMAT, and 18 % on the road network.",
        compared="time without a push buffer over time with one", over=_sssp("no buffer"), under=_sssp("rounds"),
    ),
    Claim(
        key="atomic-free-worklist", place="Figure 8, Section VI.B",
        says="Worklists that are made without atomics, by prefix sums, make SSSP 15 % faster on average.",
        compared="time with an atomic for each full push buffer over time with prefix sums",
        over=_sssp("rounds"), under=_sssp("prefix sums"),
    ),
    Claim(
        key="work-donation", place="Figure 8, Section VI.B", devices=GPU, because="Threads of a CPU split no items.",
        says="Donating work makes SSSP 10 % faster on average.",
        compared="time without sharing of long rows over time with it", over=_sssp("no sharing"), under=_sssp("rounds"),
    ),
    Claim(
        key="variable-configuration", place="Figure 8, Section VI.B", devices=GPU,
        because="On a CPU the blocks of a launch are threads, of which there are as many in each launch.",
        says="A number of blocks that follows the worklist is the largest gain of all.",
        compared="time with a fixed number of blocks over time with as many as there is work for",
        over=_sssp("fixed blocks"), under=_sssp("discrete"),
    ),
    Claim(
        key="duplicates", place="Section VI.D", test=">=",
        says="Keeping duplicates off the worklist costs as much as it saves.",
        compared="time with each vertex listed once over time with duplicates", over=_sssp("unique"), under=_sssp("rounds"),
    ),
    Claim(
        key="unrolled-worklist", place="Section VI.C",
        says="Even with atomics, following changes for several edges in a kernel helps.",
        compared="time of data-driven SSSP over time of that unrolled three levels",
        over=_sssp("rounds"), under=_sssp("unrolled"),
    ),
    Claim(
        key="unrolled-topology", place="Figure 9, Section VI.C",
        says="Unrolling is very effective for topology-driven SSSP with plain stores.",
        compared="time without unrolling over time with 4 levels", over=_orders("stores"), under=_orders("unrolled, 4"),
    ),
    Claim(
        key="memory-layout", place="Figure 9, Section VI.C",
        says="Neighbors in the graph that are neighbors in memory make topology-driven SSSP almost 15 % faster.",
        compared="time with vertices in random order over time with vertices in the order of a search",
        over=_orders("random order"), under=_orders("bfs order"),
    ),
    Claim(
        key="donations", place="Figure 10", devices=GPU, because="Threads of a CPU split no items.", threshold=0,
        says="Work is donated in the middle of SSSP, up to 1,500 times in an iteration.",
        compared="items donated to idle workers, in the whole run",
        over=Number.of("figure10/SSSP/relaxed", name="items_donated"),
    ),
    Claim(
        key="hybrid-sssp", place="Figure 11, Section VI.D", graphs=MESH_LIKE,
        says="With a threshold of 40 to 70 % a temporal hybrid of SSSP is faster than either policy, most at 60 %.",
        compared="time of the faster policy over time of the hybrid at 60 %",
        over=_ms("figure5", "SSSP", "data", "topology"), under=_ms("figure11", "SSSP", "60%"),
        effect=Number.of("figure11/SSSP/60%", name="sweeps"), no_effect=_NEVER_SWITCHED,
    ),
    Claim(
        key="hybrid-bfs", place="Figure 11, Section VI.D", graphs=MESH_LIKE, test="<=", threshold=1.05,
        says="From 20 % on, a temporal hybrid of BFS takes about as long as data-driven BFS, never less.",
        compared="time of the hybrid at 60 % over time of data-driven BFS",
        over=_ms("figure11", "BFS", "60%"), under=_ms("figure5", "BFS", "data"),
        effect=Number.of("figure11/BFS/60%", name="sweeps"), no_effect=_NEVER_SWITCHED,
    ),
    Claim(
        key="hybrid-bfs-low", place="Figure 11, Section VI.D", graphs=MESH_LIKE,
        says="With a threshold of 10 % a temporal hybrid of BFS is slower than either policy.",
        compared="time of the hybrid at 10 % over time of data-driven BFS",
        over=_ms("figure11", "BFS", "10%"), under=_ms("figure5", "BFS", "data"),
        effect=Number.of("figure11/BFS/10%", name="sweeps"), no_effect=_NEVER_SWITCHED,
    ),
    Claim(
        key="partitions-bfs", place="Figure 12, Section VI.D", graphs=MESH_LIKE,
        says="A spatial hybrid of BFS with partitions of 2 vertices is slower than one of single vertices.",
        compared="time with partitions of 2 over time with partitions of 1",
        over=_ms("figure12", "BFS, spatial", "r = 2"), under=_ms("figure12", "BFS, spatial", "r = 1"),
    ),
    Claim(
        key="partitions-sssp", place="Figure 12, Section VI.D", graphs=MESH_LIKE,
        says="A spatial hybrid of SSSP with partitions of 2 vertices is slower than one of single vertices.",
        compared="time with partitions of 2 over time with partitions of 1",
        over=_ms("figure12", "SSSP, spatial", "r = 2"), under=_ms("figure12", "SSSP, spatial", "r = 1"),
    ),
    Claim(
        key="partitions-grow", place="Figure 12, Section VI.D", graphs=MESH_LIKE,
        says="The larger the partitions, the slower is the spatial hybrid of SSSP.",
        compared="time with partitions of 10 over time with partitions of 2",
        over=_ms("figure12", "SSSP, spatial", "r = 10"), under=_ms("figure12", "SSSP, spatial", "r = 2"),
    ),
    Claim(
        key="no-pre-pass", place="Figure 13, Section VI.E", graphs=MESH_LIKE,
        says="Without pre-passes the hybrid sums of an octree are much slower than topology-driven ones.",
        compared="time without pre-passes over time of topology-driven passes", over=_tree("0"), under=_tree("topology"),
    ),
    Claim(
        key="one-pre-pass", place="Figure 13, Section VI.E", graphs=MESH_LIKE,
        says="With one pre-pass the hybrid sums of an octree are faster than topology-driven ones.",
        compared="time of topology-driven passes over time with one pre-pass", over=_tree("topology"), under=_tree("1"),
    ),
    Claim(
        key="combined-pre-passes", place="Figure 13, Section VI.E", graphs=MESH_LIKE,
        says="With five combined pre-passes the sums of an octree are 14 % faster than topology-driven ones.",
        compared="time of topology-driven passes over time with five combined pre-passes",
        over=_tree("topology"), under=_tree("5 combined"),
    ),
    Claim(
        key="growth-costs", place="Figure 14, Section VI.F",
        says="A worklist that begins with room for a fifth of the vertices costs time, more on denser graphs.",
        compared="time with room for a fifth of the vertices at first over time with room for all",
        over=_ms("figure14", "BFS, growing", "0.2 n"), under=_ms("figure14", "BFS, growing", "1 n"),
        effect=Number.of("figure14/BFS, growing/0.2 n", name="grown"), no_effect="The queue never grew.",
    ),
    Claim(
        key="galois", place="Section VI.A", compared="time of Galois over time on the GPU",
        says="Both policies on the GPU are faster than Galois on 48 threads, but for spanning trees.",
        because="Galois is not run here.",
    ),
)  # fmt: skip
