"""The claims of Chen et al. 2022 (Atos): runs are named by algorithm and variant, those of `reproduce.VARIANTS`."""

from __future__ import annotations

from .claims import GPU, MESH_LIKE, SCALE_FREE, Claim, Number

__all__ = ["CLAIMS"]

_WORKERS = "Warps and CTAs are workers of a GPU; a worker of a CPU is one thread."
_BSP = "time of BSP over time of "
_RANK = "PageRank by vertex"  # every vertex with work is a task, as in the paper


def _ms(algorithm: str, variant: str) -> Number:
    return Number.of(f"{algorithm}/{variant}")


def _work(algorithm: str, variant: str, name: str = "tasks_run") -> Number:
    return Number.of(f"{algorithm}/{variant}", name=name)


CLAIMS = (
    Claim(
        key="bfs-mesh-persistent", place="Table 1", graphs=MESH_LIKE,
        says="BFS by persistent CTAs is 12.8 times as fast as BSP on road_usa and on roadNet_ca.",
        compared=_BSP + "persistent CTAs", over=_ms("BFS", "BSP"), under=_ms("BFS", "persist-CTA"),
    ),
    Claim(
        key="bfs-mesh-discrete", place="Table 1", graphs=MESH_LIKE,
        says="BFS by discrete CTAs is 3.46 and 3.58 times as fast as BSP on the road networks.",
        compared=_BSP + "discrete CTAs", over=_ms("BFS", "BSP"), under=_ms("BFS", "discrete-CTA"),
    ),
    Claim(
        key="bfs-mesh-persistent-over-discrete", place="Section 6.6, Table 1", graphs=MESH_LIKE,
        says="The gap between persistent and discrete kernels is large for BFS on road networks: 3.7 and 3.6 times.",
        compared="time of discrete over time of persistent CTAs",
        over=_ms("BFS", "discrete-CTA"), under=_ms("BFS", "persist-CTA"),
    ),
    Claim(
        key="bfs-mesh-warps", place="Table 1, Section 6.4", graphs=MESH_LIKE, devices=GPU, because=_WORKERS,
        says="BFS by persistent warps is 1.84 and 1.41 times as fast as BSP on road networks, in spite of the extra work.",
        compared=_BSP + "persistent warps", over=_ms("BFS", "BSP"), under=_ms("BFS", "persist-warp"),
    ),
    Claim(
        key="bfs-scale-free-persistent", place="Table 1", graphs=SCALE_FREE,
        says="BFS by persistent CTAs is 1.23 to 1.65 times as fast as BSP on scale-free graphs.",
        compared=_BSP + "persistent CTAs", over=_ms("BFS", "BSP"), under=_ms("BFS", "persist-CTA"),
    ),
    Claim(
        key="bfs-scale-free-discrete", place="Table 1", graphs=SCALE_FREE,
        says="BFS by discrete CTAs is 1.42 to 2.02 times as fast as BSP on scale-free graphs.",
        compared=_BSP + "discrete CTAs", over=_ms("BFS", "BSP"), under=_ms("BFS", "discrete-CTA"),
    ),
    Claim(
        key="bfs-scale-free-warps", place="Table 1", graphs=SCALE_FREE, devices=GPU, because=_WORKERS, test="<",
        says="BFS by persistent warps is slower than BSP on scale-free graphs: 0.68 to 0.84 times as fast.",
        compared=_BSP + "persistent warps", over=_ms("BFS", "BSP"), under=_ms("BFS", "persist-warp"),
    ),
    Claim(
        key="bfs-ctas-over-warps", place="Section 6.4", devices=GPU, because=_WORKERS,
        says="On all BFS experiments CTAs are faster than warps: 1.8 to 9.1 times.",
        compared="time of persistent warps over time of persistent CTAs",
        over=_ms("BFS", "persist-warp"), under=_ms("BFS", "persist-CTA"),
    ),
    Claim(
        key="bfs-work-ctas", place="Table 4", test="<=", threshold=1.19,
        says="BFS by persistent CTAs runs 1.00 to 1.19 times the tasks of BSP.",
        compared="tasks of persistent CTAs over tasks of BSP",
        over=_work("BFS", "persist-CTA"), under=_work("BFS", "BSP"),
    ),
    Claim(
        key="bfs-work-discrete", place="Table 4", test="<=", threshold=1.07,
        says="BFS by discrete CTAs runs 1.00 to 1.07 times the tasks of BSP.",
        compared="tasks of discrete CTAs over tasks of BSP",
        over=_work("BFS", "discrete-CTA"), under=_work("BFS", "BSP"),
    ),
    Claim(
        key="bfs-work-warps", place="Table 4, Section 6.4", devices=GPU, because=_WORKERS,
        says="Warps run more extra tasks in BFS than CTAs: 1.28 to 3.56 times the tasks of BSP, against 1.00 to 1.19.",
        compared="tasks of persistent warps over tasks of persistent CTAs",
        over=_work("BFS", "persist-warp"), under=_work("BFS", "persist-CTA"),
    ),
    Claim(
        key="pagerank-scale-free-persistent", place="Table 1", graphs=SCALE_FREE,
        says="PageRank by persistent CTAs is 1.27 to 3.02 times as fast as BSP on scale-free graphs.",
        compared=_BSP + "persistent CTAs", over=_ms(_RANK, "BSP"), under=_ms(_RANK, "persist-CTA"),
    ),
    Claim(
        key="pagerank-mesh-persistent", place="Table 1", graphs=MESH_LIKE,
        says="PageRank by persistent CTAs is 1.81 and 2.03 times as fast as BSP on road networks.",
        compared=_BSP + "persistent CTAs", over=_ms(_RANK, "BSP"), under=_ms(_RANK, "persist-CTA"),
    ),
    Claim(
        key="pagerank-discrete", place="Table 1",
        says="PageRank by discrete CTAs is 1.20 to 3.20 times as fast as BSP on all graphs.",
        compared=_BSP + "discrete CTAs", over=_ms(_RANK, "BSP"), under=_ms(_RANK, "discrete-CTA"),
    ),
    Claim(
        key="pagerank-work", place="Table 4, Section 6.4", test="<",
        says="PageRank without barriers does less work than BSP in general: persistent CTAs run 0.72 to 1.18 times its tasks.",
        compared="tasks of persistent CTAs over tasks of BSP",
        over=_work(_RANK, "persist-CTA"), under=_work(_RANK, "BSP"),
    ),
    Claim(
        key="coloring-scale-free-warps", place="Table 1", graphs=SCALE_FREE, devices=GPU, because=_WORKERS,
        says="Coloring by persistent warps is 2.4 to 9.08 times as fast as BSP on scale-free graphs.",
        compared=_BSP + "persistent warps", over=_ms("coloring", "BSP"), under=_ms("coloring", "persist-warp"),
    ),
    Claim(
        key="coloring-persistent", place="Table 1",
        says="Coloring by persistent CTAs is 1.31 to 3.65 times as fast as BSP on all graphs.",
        compared=_BSP + "persistent CTAs", over=_ms("coloring", "BSP"), under=_ms("coloring", "persist-CTA"),
    ),
    Claim(
        key="coloring-warps-over-ctas", place="Section 6.4, Table 1", graphs=SCALE_FREE, devices=GPU, because=_WORKERS,
        says="On scale-free graphs persistent CTAs color slower than persistent warps, by their extra work: 1.8 to 2.5 times.",
        compared="time of persistent CTAs over time of persistent warps",
        over=_ms("coloring", "persist-CTA"), under=_ms("coloring", "persist-warp"),
    ),
    Claim(
        key="coloring-ctas-over-warps", place="Section 6.4, Table 1", graphs=MESH_LIKE, devices=GPU, because=_WORKERS,
        says="On road networks persistent CTAs color faster than persistent warps: 1.2 and 2.7 times.",
        compared="time of persistent warps over time of persistent CTAs",
        over=_ms("coloring", "persist-warp"), under=_ms("coloring", "persist-CTA"),
    ),
    Claim(
        key="coloring-work-persistent", place="Table 4", test="<=", threshold=1.15,
        says="Persistent warps color with the least extra work: 1.00 to 1.15 times a run without clashes.",
        compared="tasks over those of a run without clashes", over=_work("coloring", "persist-warp", "workload"),
    ),
    Claim(
        key="coloring-work-discrete", place="Table 4", threshold=1.41, test=">=", devices=GPU,
        because="The cause that the paper gives is the order in which the hardware of a GPU schedules kernels.",
        says="Discrete warps color with the most extra work: 1.41 to 37.34 times a run without clashes.",
        compared="tasks over those of a run without clashes", over=_work("coloring", "discrete-warp", "workload"),
    ),
    Claim(
        key="coloring-permuted-work", place="Section 6.4", test="<", threshold=1.5,
        says="With permuted vertex ids the extra work of persistent CTAs drops to less than 1.5 times.",
        compared="tasks over those of a run without clashes", over=_work("coloring permuted", "persist-CTA", "workload"),
    ),
    Claim(
        key="coloring-permuted-time", place="Section 6.4", graphs=SCALE_FREE,
        says="Permuting vertex ids makes persistent CTAs 1.7 to 3.7 times as fast on scale-free graphs.",
        compared="time with given ids over time with permuted ids, persistent CTAs",
        over=_ms("coloring", "persist-CTA"), under=_ms("coloring permuted", "persist-CTA"),
    ),
    Claim(
        key="coloring-permuted-over-bsp", place="Section 6.4", graphs=SCALE_FREE,
        says="After the permutation persistent CTAs are faster than BSP on scale-free graphs: 2.2 to 9.7 times.",
        compared=_BSP + "persistent CTAs, permuted ids",
        over=_ms("coloring permuted", "BSP"), under=_ms("coloring permuted", "persist-CTA"),
    ),
    Claim(
        key="coloring-permuted-persistent", place="Section 6.6", graphs=SCALE_FREE,
        says="After the permutation the persistent variant is 4.3 times as fast as the discrete one on indochina_2004.",
        compared="time of discrete over time of persistent warps, permuted ids",
        over=_ms("coloring permuted", "discrete-warp"), under=_ms("coloring permuted", "persist-warp"),
    ),
    Claim(
        key="coloring-registers", place="Section 6.4", devices=GPU, because="Tasks of a CPU have no count of registers.",
        says="The persistent warps of coloring take more registers than the discrete ones: 72 against 42.",
        compared="registers of persistent over registers of discrete warps",
        over=_work("coloring", "persist-warp", "registers"), under=_work("coloring", "discrete-warp", "registers"),
    ),
    Claim(
        key="gunrock", place="Table 1", compared="time of Gunrock over time of Atos",
        says="Atos is faster than Gunrock, the paper's BSP of BFS and PageRank.",
        because="Gunrock is not run. BSP here is atos_py's own: CTAs in discrete launches with a barrier between the levels.",
    ),
)  # fmt: skip
