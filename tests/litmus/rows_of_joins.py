"""Programs of arrivals at counters, and of the lists of free records of joins."""

from __future__ import annotations

from litmus.form import Program
from litmus.row import Row

ROWS = [
    Row(
        ("last arrival",),
        Program(
            "the last arrival sees what the lanes of another one wrote",
            {
                "lane, block 0": """
                    st.weak data, 1
                    bar.sync lanes  ~ arrive_at __syncwarp
                """,
                "arrives, block 0": """
                    bar.sync lanes  ~ arrive_at __syncwarp
                    a = atom.release.gpu.add left, -1      @ arrive_at release_add
                """,
                "arrives last, block 1": """
                    b = atom.release.gpu.add left, -1      ~ arrive_at release_add
                    need b == 1
                    fence.acq_rel.gpu                      @ arrive_at fence
                    x = ld.weak data
                """,
            },
            never="x == 0",
            init={"left": 2},
        ),
    ),
    Row(
        ("last arrival",),
        Program(
            "the last arrival sees the first, through the one between them",
            {
                "first, block 0": """
                    st.weak data, 1
                    a = atom.release.gpu.add left, -1      @ arrive_at release_add
                """,
                "second, block 1": """
                    c = atom.release.gpu.add left, -1      ~ arrive_at release_add
                """,
                "last, block 2": """
                    b = atom.release.gpu.add left, -1      ~ arrive_at release_add
                    need b == 1
                    fence.acq_rel.gpu                      @ arrive_at fence
                    x = ld.weak data
                """,
            },
            never="x == 0",
            init={"left": 3},
        ),
    ),
    Row(
        ("block of free join records", "take such a block"),
        Program(
            "who takes a block of records sees its links",
            {
                "giver, block 0": """
                    st.weak next, 0
                    st.weak link, 5
                    fence.acq_rel.gpu                      @ _give_block release
                    g = atom.relaxed.gpu.cas head, 0, 1    ~ _give_block atomic_cas
                """,
                "taker, block 1": """
                    h = ld.relaxed.gpu head                ~ _pop atomic_load
                    fence.acq_rel.gpu                      @ _pop acquire#1
                    need h == 1
                    n = ld.weak next
                    fence.acq_rel.gpu                      ~ _pop release
                    f = atom.relaxed.gpu.cas head, h, n + 10    ~ _pop atomic_cas
                    fence.acq_rel.gpu                      ~ _pop acquire#2
                    need f == h
                    x = ld.weak link
                """,
            },
            never="n != 0 or x != 5",
            init={"next": 3, "link": 4},
        ),
    ),
    Row(
        ("take such a block",),
        Program(
            "who looks again sees the links of the block that came meanwhile",
            {
                "giver, block 0": """
                    st.weak next, 2
                    fence.acq_rel.gpu                      @ _give_block release
                    g = atom.relaxed.gpu.cas head, 2, 1    ~ _give_block atomic_cas
                """,
                "taker, block 1": """
                    f = atom.relaxed.gpu.cas head, 0, 9    ~ _pop atomic_cas
                    fence.acq_rel.gpu                      @ _pop acquire#2
                    need f == 1
                    n = ld.weak next
                """,
            },
            never="n != 2",
            init={"next": 3, "head": 2},
        ),
    ),
    Row(
        ("take such a block",),
        Program(
            "who takes the block behind one that was taken sees its links",
            {
                "giver, block 0": """
                    st.weak link, 5
                    fence.acq_rel.gpu                      @ _give_block release
                    a = atom.relaxed.gpu.cas head, 0, 2    ~ _give_block atomic_cas
                """,
                "next giver, block 1": """
                    b = atom.relaxed.gpu.cas head, 2, 1    ~ _give_block atomic_cas
                """,
                "taker, block 2": """
                    h = ld.relaxed.gpu head                ~ _pop atomic_load
                    fence.acq_rel.gpu                      ~ _pop acquire#1
                    need h == 1
                    fence.acq_rel.gpu                      @ _pop release
                    f = atom.relaxed.gpu.cas head, h, 12   ~ _pop atomic_cas
                """,
                "next taker, block 3": """
                    k = ld.relaxed.gpu head                ~ _pop atomic_load
                    fence.acq_rel.gpu                      @ _pop acquire#1
                    need k == 12
                    x = ld.weak link
                """,
            },
            never="x != 5",
            init={"link": 4},
        ),
        spare={
            "_pop release": "the chain of compare-and-swaps passes on the release of the thread that gave the block. What a "
            "taker has written before, nobody reads because of the head. It could go: `acquire` would do"
        },
    ),
]
