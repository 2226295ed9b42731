"""The claims of the thesis on Onyx (L. Vaz, 2021): runs are named as `reproduce_onyx` does, by algorithm and mode."""

from __future__ import annotations

from .claims import GPU, Claim, Number

__all__ = ["CLAIMS"]

_THREADS = "A group of threads that share a vertex or an edge is one thread on a CPU."
_COUNTERS = "Atomic transactions and loads are counted by a GPU."
# Of CP to OK in Table 7.2: the least and the most speed-up of FA/NCD, NFA/CD and FA/CD over NFA/NCD.
_SPEEDUPS = {
    "LP": ("1.2 to 2.4", "1.9 to 9.3", "3.1 to 16.4"),
    "ALS": ("1.2 to 3.2", "1.4 to 7.6", "1.8 to 20.3"),
    "BP": ("1.4 to 2.2", "1.1 to 3.0", "1.8 to 4.2"),
    "MMR": ("1.2 to 3.2", "1.3 to 6.2", "1.6 to 14.2"),
    "MML": ("1.3 to 3.2", "2.3 to 3.8", "2.8 to 8.7"),
}
_GATHERED = ("MMR", "MML")  # by `sum_map`, whose mapping is the same in all modes


def _feature_aware(algorithm: str) -> Claim:
    speedup, gathers = _SPEEDUPS[algorithm][0], algorithm in _GATHERED
    return Claim(
        key=f"feature-aware-{algorithm.lower()}", place="Table 7.2, Section 7.5.2", devices=GPU,
        says=f"Feature-aware mapping makes {algorithm} {speedup} times as fast, without change-driven computation.",
        because="It gathers by `sum_map`, whose mapping is feature-aware in all modes." if gathers else _THREADS,
        compared="time of NFA/NCD over time of FA/NCD",
        over=None if gathers else Number.of(f"{algorithm} NFA/NCD"), under=Number.of(f"{algorithm} FA/NCD"),
    )  # fmt: skip


def _change_driven(algorithm: str) -> Claim:
    return Claim(
        key=f"change-driven-{algorithm.lower()}", place="Table 7.2, Section 7.5.1",
        says=f"Change-driven computation alone makes {algorithm} {_SPEEDUPS[algorithm][1]} times as fast.",
        compared="time of NFA/NCD over time of NFA/CD",
        over=Number.of(f"{algorithm} NFA/NCD"), under=Number.of(f"{algorithm} NFA/CD"),
    )  # fmt: skip


def _saves_work(algorithm: str) -> Claim:
    return Claim(
        key=f"change-driven-work-{algorithm.lower()}", place="Section 7.5.1",
        says=f"Change-driven computation of {algorithm} leaves out what does not change.",
        compared="edge operations of FA/NCD over those of FA/CD",
        over=Number.of(f"{algorithm} FA/NCD", name="edge_operations"),
        under=Number.of(f"{algorithm} FA/CD", name="edge_operations"),
    )  # fmt: skip


def _both(algorithm: str) -> Claim:
    return Claim(
        key=f"both-{algorithm.lower()}", place="Table 7.2, Section 7.5.3", devices=GPU, because=_THREADS,
        says=f"Both techniques together make {algorithm} {_SPEEDUPS[algorithm][2]} times as fast.",
        compared="time of NFA/NCD over time of FA/CD",
        over=Number.of(f"{algorithm} NFA/NCD"), under=Number.of(f"{algorithm} FA/CD"),
    )  # fmt: skip


def _counted(key: str, figure: str, says: str, name: str, over: str, under: str) -> Claim:
    words = "atomic transactions" if name == "atomic_transactions" else "load efficiency"
    return Claim(
        key=key, place=f"Figure {figure}", devices=GPU, because=_COUNTERS, says=says,
        compared=f"{words} of BP {over} over those of {under}",
        over=Number.of(f"counted BP {over}", name=name), under=Number.of(f"counted BP {under}", name=name),
    )  # fmt: skip


CLAIMS = (
    *map(_feature_aware, _SPEEDUPS),
    *map(_change_driven, _SPEEDUPS),
    *map(_saves_work, _SPEEDUPS),
    *map(_both, _SPEEDUPS),
    _counted(
        "atomics-with-changes", "7.1", "Feature-aware mapping leaves 2.0 to 3.4 times fewer atomic transactions with CD.",
        "atomic_transactions", "NFA/CD", "FA/CD",
    ),
    _counted(
        "atomics", "7.2", "Feature-aware mapping leaves 2.4 to 3.4 times fewer atomic transactions without CD.",
        "atomic_transactions", "NFA/NCD", "FA/NCD",
    ),
    _counted(
        "loads-with-changes", "7.1", "Feature-aware mapping makes the global load efficiency 1.0 to 3.2 times as high with CD.",
        "load_efficiency", "FA/CD", "NFA/CD",
    ),
    _counted(
        "loads", "7.2", "Feature-aware mapping makes the global load efficiency 1.1 to 3.0 times as high without CD.",
        "load_efficiency", "FA/NCD", "NFA/NCD",
    ),
    Claim(
        key="few-features", place="Figure 7.3, Section 7.6", devices=GPU, because=_THREADS,
        says="Feature-aware mapping is the faster one with 4 features too.",
        compared="time of an edge map of 4 features with NFA over time with FA",
        over=Number.of("edges k=4 NFA"), under=Number.of("edges k=4 FA"),
    ),
    Claim(
        key="many-features", place="Figure 7.3, Section 7.6", devices=GPU, because=_THREADS,
        says="With 128 features feature-aware mapping is up to 7.7 times as fast.",
        compared="time of an edge map of 128 features with NFA over time with FA",
        over=Number.of("edges k=128 NFA"), under=Number.of("edges k=128 FA"),
    ),
    Claim(
        key="folded-vertices", place="Figure 7.4, Section 7.7",
        says="Folded kernels of LP, whose vertex functions are folded, are 1.2 to 1.7 times as fast as unfolded ones.",
        compared="time of the two vertex functions of LP in two launches over time in one",
        over=Number.of("LP vertices unfolded"), under=Number.of("LP vertices folded"),
    ),
    Claim(
        key="folded-edges", place="Figure 7.4, Section 7.7",
        says="Folded kernels of BP, whose edge functions are folded, are 1.2 to 1.7 times as fast as unfolded ones.",
        compared="time of the two edge functions of BP in two launches over time in one",
        over=Number.of("BP edges unfolded"), under=Number.of("BP edges folded"),
    ),
    Claim(
        key="folded-by-hand-vertices", place="Section 7.7",
        says="LP that is folded by hand is faster than LP that is folded automatically, since it keeps numbers in registers.",
        compared="time of the folded vertex functions of LP over time of one function that does both",
        over=Number.of("LP vertices folded"), under=Number.of("LP vertices by hand"),
    ),
    Claim(
        key="folded-by-hand-edges", place="Section 7.7", test="<=", threshold=1.1,
        says="BP that is folded automatically is about as fast as BP that is folded by hand.",
        compared="time of the folded edge functions of BP over time of one function that does both",
        over=Number.of("BP edges folded"), under=Number.of("BP edges by hand"),
    ),
    Claim(
        key="other-systems", place="Table 7.4", compared="time of another system over time of Onyx",
        says="Onyx is up to 51.2, 17 and 6.8 times as fast as Gunrock, Tigr and SIMD-X.",
        because="The programs that the thesis wrote for these systems were not published.",
    ),
)  # fmt: skip
