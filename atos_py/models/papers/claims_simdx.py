"""The claims of Liu and Huang 2019 (SIMD-X): runs are named by measure, program and variant, those of `reproduce_simdx`."""

from __future__ import annotations

from .claims import GPU, MESH_LIKE, SCALE_FREE, Claim, Number

__all__ = ["CLAIMS"]

_KERNELS = "Fusion is of a GPU's kernels; a CPU's workers are threads that stay."
_CALL = "call_milliseconds"  # with what the host takes between launches, which fusion is to save


def _fused(program: str, fuse: str, name: str = _CALL) -> Number:
    measure = "figure12-gathered" if program == "PageRank" else "figure12"
    return Number.of(f"{measure}/{program}/{fuse}", name=name)


def _filtered(program: str, name: str) -> Number:
    return Number.of(f"figure11/{program}/{name}")


def _over_none(program: str, percent: int) -> Claim:
    return Claim(
        key=f"fusion-over-none-{program.lower()}", place="Figure 12, Section 7.2", devices=GPU, because=_KERNELS,
        says=f"Fusing the kernels of a direction makes {program} {percent} % faster than no fusion.",
        compared="time of the call without fusion over that with fusion by direction",
        over=_fused(program, "none"), under=_fused(program, "direction"),
    )  # fmt: skip


def _over_all(program: str, percent: int) -> Claim:
    return Claim(
        key=f"fusion-over-all-{program.lower()}", place="Figure 12, Section 7.2", devices=GPU, because=_KERNELS,
        says=f"Fusing the kernels of a direction makes {program} {percent} % faster than fusing all.",
        compared="time of the call with all fused over that with fusion by direction",
        over=_fused(program, "all"), under=_fused(program, "direction"),
    )  # fmt: skip


def _over_ballot(program: str, times: str) -> Claim:
    return Claim(
        key=f"jit-over-ballot-{program.lower()}", place="Figure 11, Section 7.2",
        says=f"Just-in-time filters make {program} {times} times as fast as the ballot filter alone, on average.",
        compared="time of the ballot filter over time of just-in-time filters",
        over=_filtered(program, "ballot"), under=_filtered(program, "jit"),
    )  # fmt: skip


CLAIMS = (
    Claim(
        key="combine-vote", place="Figure 4", graphs=SCALE_FREE,
        says="Votes, which end early together, are 12 % faster than atomic updates on average.",
        compared="time of BFS that pushes atomic minima over time of BFS that pulls votes",
        over=Number.of("figure4/BFS by minimum/push"), under=Number.of("figure4/BFS/pull"),
    ),
    Claim(
        key="combine-aggregation", place="Figure 4",
        says="Aggregation without atomics is 9 % faster than atomic updates on average.",
        compared="time of SSSP that pushes atomic minima over time of SSSP that pulls and combines in registers",
        over=Number.of("figure4/SSSP/push"), under=Number.of("figure4/SSSP/pull"),
    ),
    Claim(
        key="ballots-mesh-bfs", place="Figure 7, Section 4", graphs=MESH_LIKE, test="<=", threshold=0,
        says="BFS on graphs of high diameter always uses the online filter: in all 2,578 and 555 iterations of ER and RC.",
        compared="rounds of BFS whose list a ballot makes", over=Number.of("figure7/BFS/jit", name="ballots"),
    ),
    Claim(
        key="ballots-mesh-sssp", place="Figure 7, Section 4", graphs=MESH_LIKE, test="<=", threshold=0,
        says="SSSP on graphs of high diameter always uses the online filter: in all 5,086 and 675 iterations of ER and RC.",
        compared="rounds of SSSP whose list a ballot makes", over=Number.of("figure7/SSSP/jit", name="ballots"),
    ),
    Claim(
        key="ballots-scale-free-bfs", place="Figure 7, Section 4", graphs=SCALE_FREE, test=">=", threshold=1,
        says="BFS uses the ballot filter in the middle of the computation.",
        compared="rounds of BFS whose list a ballot makes", over=Number.of("figure7/BFS/jit", name="ballots"),
    ),
    Claim(
        key="ballots-scale-free-sssp", place="Figure 7, Section 4", graphs=SCALE_FREE, test=">=", threshold=1,
        says="SSSP uses the ballot filter in the middle of the computation.",
        compared="rounds of SSSP whose list a ballot makes", over=Number.of("figure7/SSSP/jit", name="ballots"),
    ),
    Claim(
        key="ballots-k-core", place="Figure 7, Section 4", test=">=", threshold=1,
        says="The k-core uses the ballot filter in its first iterations: one or two on each graph.",
        compared="rounds of the k-core whose list a ballot makes", over=Number.of("figure7/k-core/jit", name="ballots"),
    ),
    Claim(
        key="ballots-pagerank", place="Figure 7, Section 4",
        says="PageRank and belief propagation need the ballot filter in exactly the first iteration.",
        compared="rounds whose list a ballot makes",
        because="PageRank and weighted sums of atos_py gather for all vertices in every round, and filter nothing.",
    ),
    Claim(
        key="threshold-too-low", place="Figure 8a",
        says="A threshold of the online filter that is too low costs time; 64 is best.",
        compared="time of BFS with threshold 0 over time with threshold 64",
        over=Number.of("figure8a/BFS/0"), under=Number.of("figure8a/BFS/64"),
    ),
    Claim(
        key="threshold-too-high", place="Figure 8a", graphs=SCALE_FREE,
        says="A threshold of the online filter that is too high costs time; 64 is best.",
        compared="time of BFS with a threshold that never overflows over time with threshold 64",
        over=Number.of(f"figure8a/BFS/{1 << 20}"), under=Number.of("figure8a/BFS/64"),
        effect=Number.of("figure8a/BFS/64", name="ballots"), no_effect="No ballot made a list.",
    ),
    Claim(
        key="online-costs-little", place="Figure 8b", test="<=", threshold=1.021,
        says="Keeping the online filter on while a ballot makes the list costs SSSP 0.02 % on average, 2.1 % at most.",
        compared="time of SSSP by ballots with the online filter on over time with it off",
        over=Number.of("figure8b/SSSP/on"), under=Number.of("figure8b/SSSP/off"),
        effect=Number.of("figure8b/SSSP/on", name="ballots"), no_effect="No ballot made a list.",
    ),
    _over_ballot("BFS", "16"),
    _over_ballot("SSSP", "4.5"),
    _over_ballot("k-core", "26 (28.5 in the text)"),
    Claim(
        key="jit-over-online-bfs", place="Section 7.2", test="<=", threshold=1.02, graphs=MESH_LIKE,
        says="Where the online filter does not overflow, just-in-time filters add 1 to 2 % to it in BFS.",
        compared="time of just-in-time filters over time of the online filter",
        over=_filtered("BFS", "jit"), under=_filtered("BFS", "online"),
    ),
    Claim(
        key="jit-over-online-sssp", place="Section 7.2", test="<=", threshold=1.02, graphs=MESH_LIKE,
        says="Where the online filter does not overflow, just-in-time filters add 1 to 2 % to it in SSSP.",
        compared="time of just-in-time filters over time of the online filter",
        over=_filtered("SSSP", "jit"), under=_filtered("SSSP", "online"),
    ),
    Claim(
        key="k-core-ballot-over-online", place="Section 7.2", graphs=MESH_LIKE,
        says="In the k-core of ER and RC the ballot filter is 3.4 and 1.7 times as fast as the online filter.",
        compared="time of the online filter over time of the ballot filter",
        over=_filtered("k-core", "online"), under=_filtered("k-core", "ballot"),
    ),
    _over_none("BFS", 74),
    _over_none("k-core", 85),
    _over_none("PageRank", 10),
    _over_none("SSSP", 66),
    _over_all("BFS", 55),
    _over_all("k-core", 62),
    _over_all("PageRank", 25),
    _over_all("SSSP", 11),
    Claim(
        key="all-fused-pagerank", place="Section 7.2", devices=GPU, because=_KERNELS,
        says="Fusing all kernels makes PageRank 13 % slower than no fusion.",
        compared="time of the call with all fused over that without fusion",
        over=_fused("PageRank", "all"), under=_fused("PageRank", "none"),
    ),
    Claim(
        key="all-fused-mesh", place="Section 7.2", devices=GPU, because=_KERNELS, graphs=MESH_LIKE,
        says="Fusing all kernels makes BFS and SSSP twice as fast on ER and RC.",
        compared="time of the call of BFS without fusion over that with all fused",
        over=_fused("BFS", "none"), under=_fused("BFS", "all"),
    ),
    Claim(
        key="registers", place="Table 2", devices=GPU, because="Programs on a CPU have no count of registers.",
        says="Fusing all kernels takes 110 registers of a thread, twice as many as fusing those of a direction: 48 and 50.",
        compared="registers of SSSP with all fused over registers with fusion by direction",
        over=_fused("SSSP", "all", "registers"), under=_fused("SSSP", "direction", "registers"),
    ),
    Claim(
        key="launches", place="Table 2", test="<=", threshold=3,
        says="Fusion by direction launches 3 kernels in all, where no fusion launches up to 40,688.",
        compared="launches of BFS with fusion by direction", over=_fused("BFS", "direction", "launches"),
    ),
    Claim(
        key="launches-without-fusion", place="Table 2", graphs=MESH_LIKE, threshold=100,
        says="Without fusion up to 40,688 kernels are launched, against 3.",
        compared="launches of SSSP without fusion over launches with fusion by direction",
        over=_fused("SSSP", "none", "launches"), under=_fused("SSSP", "direction", "launches"),
    ),
    Claim(
        key="other-systems", place="Table 4", compared="time of another system over time of SIMD-X",
        says="SIMD-X is 24, 2.9, 6.5 and 3.3 times as fast as CuSha, Gunrock, Galois and Ligra.",
        because="These four systems are not run here.",
    ),
    Claim(
        key="other-gpus", place="Section 7.3", compared="time on one GPU over time on another",
        says="SIMD-X is 1.7 and 5.1 times as fast on a K40 and a P100 as on a K20.",
        because="A report is of one device.",
    ),
)  # fmt: skip
