"""Litmus tests whose verdicts are published: programs, whether the model allows what must never be, and where that is said.

Most are tests of Dartagnan for PTX (https://github.com/hernanponcedeleon/Dat3M). The verdicts under its model `ptx-v7.5` are
in `dartagnan/src/test/resources/PTXv7_5-expected.csv`: names like `Manual/MP-cta` are files below `litmus/PTX`. Some of
these tests come from papers:

- ASPLOS 2015: Alglave et al., "GPU Concurrency: Weak Behaviours and Programming Assumptions".
- POPL 2017: Wickerson, Batty, Sorensen and Constantinides, "Automatically Comparing Memory Consistency Models" (Memalloy).
- ASPLOS 2019: Lustig, Sahasrabuddhe and Giroux, "A Formal Analysis of the NVIDIA PTX Memory Consistency Model".

The programs are written anew in the form of `form.py`. What a test there says of all executions, is here what must never be.
"""

from __future__ import annotations

from typing import NamedTuple

from litmus.form import Program


class Published(NamedTuple):
    """A program, whether the model allows what its condition says, and where the verdict is stated."""

    program: Program
    allowed: bool
    stated: str


def threads(*texts: str, places: str = "") -> dict[str, str]:
    """Return threads P, Q, R, S: an instruction after the other between semicolons; by default each has a block of its own."""
    where = places.split(";") if places else [f"block {number}" for number in range(len(texts))]
    names = (f"{name}, {place.strip()}" for name, place in zip("PQRS"[: len(texts)], where, strict=False))
    return {name: text.replace(";", "\n") for name, text in zip(names, texts, strict=True)}


ONE_BLOCK = "block 0; block 0; block 0; block 0"
TWO_GPUS = "block 0; block 0 of GPU 1"
PAIR = "block 0; block 1; block 1; block 1"  # as Memalloy's tests are placed
READ_BOTH = "a == 1 and b == 0"

TICKETS = (
    "{} = atom.{}.gpu.add in, 1; {} = ld.{}.gpu out; need {} == {}; {} = ld.weak x; st.weak x, 1; {} = atom.{}.gpu.add out, 1"
)
FIRST, SECOND = ("a", "b", "c", "d"), ("e", "f", "g", "h")


def ticket_lock(take: str = "acquire", look: str = "acquire", give: str = "release", places: str = ONE_BLOCK) -> dict[str, str]:
    """Return two threads that take a ticket lock, the first one with other orders."""

    def one(names: tuple[str, ...], take: str, look: str, give: str) -> str:
        a, b, c, d = names
        return TICKETS.format(a, take, b, look, a, b, c, d, give)

    return threads(one(FIRST, take, look, give), one(SECOND, "acquire", "acquire", "release"), places=places)


def published(name: str, allowed: bool, stated: str, of: dict[str, str], never: str, **init: int) -> Published:
    return Published(Program(name, of, never, init), allowed, stated)


ALL = [
    # Message passing.
    published(
        "relaxed flag",
        True,
        "Manual/MP-relaxed",
        threads("st.release.sys x, 1; st.release.sys y, 1", "a = ld.relaxed.sys y; b = ld.acquire.gpu x", places=ONE_BLOCK),
        READ_BOTH,
    ),
    published(
        "release and acquire of a GPU",
        False,
        "Manual/MP-gpu",
        threads("st.weak x, 1; st.release.gpu y, 1", "a = ld.acquire.gpu y; b = ld.weak x", places=ONE_BLOCK),
        READ_BOTH,
    ),
    published(
        "release and acquire of the system",
        False,
        "Manual/MP-sys",
        threads("st.weak x, 1; st.release.sys y, 1", "a = ld.acquire.sys y; b = ld.weak x", places=ONE_BLOCK),
        READ_BOTH,
    ),
    published(
        "release and acquire of a block, in two blocks",
        True,
        "Manual/MP-cta",
        threads("st.weak x, 1; st.release.cta y, 1", "a = ld.acquire.cta y; b = ld.weak x"),
        READ_BOTH,
    ),
    published(
        "two scopes that include both threads",
        False,
        "Manual/MP-cta-gpu",
        threads("st.weak x, 1; st.release.cta y, 1", "a = ld.acquire.gpu y; b = ld.weak x", places=ONE_BLOCK),
        READ_BOTH,
    ),
    published(
        "fences",
        False,
        "Manual/MP-sys-fence",
        threads(
            "st.weak x, 1; fence.acq_rel.sys; st.relaxed.sys y, 1",
            "a = ld.relaxed.sys y; fence.acq_rel.sys; b = ld.weak x",
            places=ONE_BLOCK,
        ),
        READ_BOTH,
    ),
    published(
        "release, then a relaxed store of the flag",
        False,
        "Nvidia/Release-acquire-pattern",
        threads(
            "st.weak y, 1; st.release.sys x, 1; st.relaxed.sys x, 2", "a = ld.relaxed.sys x; fence.acq_rel.sys; b = ld.weak y"
        ),
        "a == 2 and b == 0",
    ),
    published(
        "over three threads and two scopes",
        False,
        "Manual/MP-3-transitive",
        threads(
            "st.weak x, 1; st.release.cta y, 1",
            "a = ld.acquire.cta y; st.release.gpu z, 1",
            "b = ld.acquire.gpu z; c = ld.weak x",
            places="block 0; block 0; block 1",
        ),
        "a == 1 and b == 1 and c == 0",
    ),
    published(
        "a read-modify-write in between",
        False,
        "Manual/MP+RMW",
        threads(
            "st.relaxed.gpu x, 1; st.release.gpu y, 1",
            "a = atom.relaxed.gpu.add y, 1",
            "b = ld.acquire.gpu y; c = ld.relaxed.gpu x",
            places=ONE_BLOCK,
        ),
        "a == 1 and b == 2 and c == 0",
    ),
    published(
        "a deque's tail, pushed and stolen",
        False,
        "Manual/MP-dlb, after ASPLOS 2015, figure 7",
        threads(
            "st.relaxed.gpu d, 1; fence.sc.gpu; a = ld.weak t; st.weak t, a + 1",
            "b = ld.weak t; need b != 0; fence.sc.gpu; c = ld.relaxed.gpu d",
        ),
        "b == 1 and c == 0",
    ),
    published(
        "a deque's tail, without the owner's fence",
        True,
        "Manual/MP-dlb-no-fence-1, after ASPLOS 2015, figure 7",
        threads("st.weak d, 1; a = ld.weak t; st.weak t, a + 1", "b = ld.weak t; need b != 0; fence.sc.gpu; c = ld.weak d"),
        "b == 1 and c == 0",
    ),
    published(
        "a deque's tail, without the thief's fence",
        True,
        "Manual/MP-dlb-no-fence-2, after ASPLOS 2015, figure 7",
        threads("st.weak d, 1; fence.sc.gpu; a = ld.weak t; st.weak t, a + 1", "b = ld.weak t; need b != 0; c = ld.weak d"),
        "b == 1 and c == 0",
    ),
    published(
        "a sum and a flag, fences of a block, in two blocks",
        True,
        "Manual/MICRO24-Fig4b",
        threads(
            "a = atom.relaxed.gpu.add sum, 1; fence.sc.cta; b = atom.relaxed.gpu.exch flag, 1",
            "c = atom.relaxed.gpu.cas flag, 1, 0; need c == 1; fence.sc.cta; d = atom.relaxed.gpu.add sum, 0",
        ),
        "c == 1 and d != 1",
    ),
    # Store buffering.
    published(
        "store buffering",
        True,
        "Manual/SB-weak",
        threads("st.weak x, 1; a = ld.weak y", "st.weak y, 1; b = ld.weak x"),
        "a == 0 and b == 0",
    ),
    published(
        "store buffering, fences of acquire and release",
        True,
        "Manual/SB+acq_rel-cta",
        threads(
            "st.release.cta x, 1; fence.acq_rel.cta; a = ld.acquire.cta y",
            "st.release.cta y, 1; fence.acq_rel.cta; b = ld.acquire.cta x",
            places=ONE_BLOCK,
        ),
        "a == 0 and b == 0",
    ),
    published(
        "store buffering, fences sc",
        False,
        "Manual/SB+sc-gpu",
        threads("st.weak x, 1; fence.sc.gpu; a = ld.weak y", "st.weak y, 1; fence.sc.gpu; b = ld.weak x"),
        "a == 0 and b == 0",
    ),
    published(
        "store buffering, fences sc of two GPUs",
        False,
        "Manual/SB+sc-sys",
        threads("st.weak x, 1; fence.sc.sys; a = ld.weak y", "st.weak y, 1; fence.sc.sys; b = ld.weak x", places=TWO_GPUS),
        "a == 0 and b == 0",
    ),
    published(
        "store buffering, fences sc of two scopes",
        False,
        "Manual/SB+sc-sys-gpu",
        threads("st.weak x, 1; fence.sc.sys; a = ld.weak y", "st.weak y, 1; fence.sc.gpu; b = ld.weak x"),
        "a == 0 and b == 0",
    ),
    published(
        "store buffering, fences sc of a block, in two blocks",
        True,
        "Manual/SB+sc-cta-outScope",
        threads("st.weak x, 1; fence.sc.cta; a = ld.weak y", "st.weak y, 1; fence.sc.cta; b = ld.weak x"),
        "a == 0 and b == 0",
    ),
    published(
        "store buffering, two fences each",
        False,
        "Manual/SB+sc-gpu-multiFence",
        threads(
            "st.weak x, 1; fence.sc.gpu; st.weak x, 2; fence.sc.gpu; a = ld.weak y",
            "st.weak y, 1; fence.sc.gpu; st.weak y, 2; fence.sc.gpu; b = ld.weak x",
        ),
        "a != 2 and b != 2",
    ),
    published(
        "store buffering, a barrier",
        False,
        "Manual/SB+bar-const-equal",
        threads("st.weak x, 1; bar.sync one; a = ld.weak y", "st.weak y, 1; bar.sync one; b = ld.weak x", places=ONE_BLOCK),
        "a == 0 or b == 0",
    ),
    published(
        "store buffering, two barriers in a row",
        False,
        "Manual/SB+twice-bars",
        threads(
            "st.weak u, 1; bar.sync one; a = ld.weak v; st.weak x, 1; bar.sync two; c = ld.weak y",
            "st.weak v, 1; bar.sync one; b = ld.weak u; st.weak y, 1; bar.sync two; d = ld.weak x",
            places=ONE_BLOCK,
        ),
        "a == 0 or b == 0 or c == 0 or d == 0",
    ),
    published(
        "store buffering of read-modify-writes",
        False,
        "Nvidia/Atom-SB",
        threads(
            "a = atom.acq_rel.gpu.add x, 1; b = atom.acq_rel.gpu.add y, 1",
            "c = atom.acq_rel.gpu.add y, 1; d = atom.acq_rel.gpu.add x, 1",
        ),
        "b == 0 and d == 0",
    ),
    # Load buffering.
    published(
        "load buffering with data dependencies, of a value out of thin air",
        False,
        "Manual/LB+NoThinAir-register",
        threads("a = ld.weak y; st.weak x, a", "b = ld.weak x; st.weak y, b"),
        "a == 42 and b == 42",
    ),
    published(
        "load buffering, release and acquire",
        False,
        "Manual/LB+RMW-b",
        threads("a = ld.acquire.gpu y; st.weak x, 1", "b = ld.relaxed.gpu x; st.release.gpu y, 1", places=ONE_BLOCK),
        "a == 1 and b == 1",
    ),
    published(
        "load buffering, a read-modify-write of a weak store in between",
        True,
        "Manual/LB+RMW-a",
        threads(
            "a = ld.acquire.gpu y; st.weak x, 1",
            "b = atom.relaxed.gpu.add x, 1",
            "c = ld.relaxed.gpu x; st.release.gpu y, 1",
            places=ONE_BLOCK,
        ),
        "a == 1 and b == 1 and c == 2",
    ),
    published(
        "load buffering, a read-modify-write of a relaxed store in between",
        False,
        "Manual/LB+RMW-c",
        threads(
            "a = ld.acquire.gpu y; st.relaxed.gpu x, 1",
            "b = atom.relaxed.gpu.add x, 1",
            "c = ld.relaxed.gpu x; st.release.gpu y, 1",
            places=ONE_BLOCK,
        ),
        "a == 1 and b == 1 and c == 2",
    ),
    published(
        "a deque's head, stolen and pushed",
        False,
        "Manual/LB-dlb, after ASPLOS 2015, figure 8",
        threads(
            "a = atom.relaxed.gpu.cas h, 0, 1; fence.sc.gpu; st.weak t, 1",
            "b = ld.weak t; fence.sc.gpu; c = atom.relaxed.gpu.cas h, 0, 1",
        ),
        "a == 1 and b == 1",
    ),
    published(
        "a deque's head, without the owner's fence",
        True,
        "Manual/LB-dlb-no-fence-1, after ASPLOS 2015, figure 8",
        threads(
            "a = atom.relaxed.gpu.cas h, 0, 1; st.weak t, 1",
            "b = ld.weak t; fence.sc.gpu; c = atom.relaxed.gpu.cas h, 0, 1",
        ),
        "a == 1 and b == 1",
    ),
    published(
        "a deque's head, without the thief's fence",
        True,
        "Manual/LB-dlb-no-fence-2, after ASPLOS 2015, figure 8",
        threads(
            "a = atom.relaxed.gpu.cas h, 0, 1; fence.sc.gpu; st.weak t, 1",
            "b = ld.weak t; c = atom.relaxed.gpu.cas h, 0, 1",
        ),
        "a == 1 and b == 1",
    ),
    # Locks.
    published(
        "a spin lock, given and taken",
        False,
        "Manual/SL-cas-plus, after ASPLOS 2015, figure 9",
        threads(
            "st.weak x, 1; fence.sc.gpu; a = atom.relaxed.gpu.exch m, 0",
            "b = atom.relaxed.gpu.cas m, 0, 1; need b == 0; fence.sc.gpu; c = ld.weak x",
        ),
        "b == 0 and c == 0",
        m=1,
    ),
    published(
        "a spin lock without fences",
        True,
        "Manual/SL-cas-minus, after ASPLOS 2015, figure 9",
        threads("st.weak x, 1; a = atom.relaxed.gpu.exch m, 0", "b = atom.relaxed.gpu.cas m, 0, 1; need b == 0; c = ld.weak x"),
        "b == 0 and c == 0",
        m=1,
    ),
    published(
        "a spin lock, read from the future",
        False,
        "Manual/SL-future-plus, after ASPLOS 2015, figure 11",
        threads(
            "a = ld.weak x; fence.sc.gpu; b = atom.relaxed.gpu.exch m, 0",
            "c = atom.relaxed.gpu.cas m, 0, 1; need c == 0; fence.sc.gpu; st.weak x, 1",
        ),
        "a == 1 and c == 0",
        m=1,
    ),
    published(
        "a spin lock, read from the future, its fence too late",
        True,
        "Manual/SL-future-minus, after ASPLOS 2015, figure 11",
        threads("a = ld.weak x; st.weak m, 0; fence.sc.gpu", "c = atom.relaxed.gpu.cas m, 0, 1; need c == 0; st.weak x, 1"),
        "a == 1 and c == 0",
        m=1,
    ),
    published("a ticket lock", False, "Manual/Ticketlock-same-gpu", ticket_lock(), "c == 0 and g == 0"),
    published(
        "a ticket lock of a GPU, on two GPUs",
        True,
        "Manual/Ticketlock-diff-gpu",
        ticket_lock(places=TWO_GPUS),
        "c == 0 and g == 0",
    ),
    published(
        "a ticket lock, tickets relaxed",
        False,
        "Manual/Ticketlock-acq2rlx-1",
        ticket_lock(take="relaxed"),
        "c == 0 and g == 0",
    ),
    published(
        "a ticket lock, its look relaxed", True, "Manual/Ticketlock-acq2rlx-2", ticket_lock(look="relaxed"), "c == 0 and g == 0"
    ),
    published(
        "a ticket lock, given back relaxed", True, "Manual/Ticketlock-rel2rlx", ticket_lock(give="relaxed"), "c == 0 and g == 0"
    ),
    # One word.
    published(
        "two weak reads go back",
        True,
        "Manual/CoRR-weak-weak",
        threads("st.release.gpu x, 1", "a = ld.weak x; b = ld.weak x"),
        READ_BOTH,
    ),
    published(
        "an acquire and a weak read do not go back",
        False,
        "Manual/CoRR-acquire-weak",
        threads("st.release.gpu x, 1", "a = ld.acquire.gpu x; b = ld.weak x"),
        READ_BOTH,
    ),
    published(
        "two weak stores, seen in another order",
        True,
        "Manual/CoWW-RR",
        threads("st.weak x, 1; st.weak x, 2", "a = ld.weak x; b = ld.weak x", places=ONE_BLOCK),
        "a == 2 and b == 1",
    ),
    published(
        "a read after own stores", False, "Manual/CoWW-R", threads("st.weak x, 1; st.weak x, 2; a = ld.acquire.sys x"), "a == 1"
    ),
    published(
        "a store after a read of the other's",
        False,
        "Manual/CoRW_",
        threads("st.release.gpu x, 1", "a = ld.acquire.gpu x; st.weak x, 2"),
        "a == 1 and [x] == 1",
    ),
    published(
        "a read of the other's store after an own one, which is last",
        False,
        "Manual/CoWR_",
        threads("st.release.gpu x, 1", "st.release.gpu x, 2; a = ld.weak x"),
        "[x] == 2 and a == 1",
    ),
    published(
        "additions of the system",
        False,
        "Manual/Atom-plus-location_",
        threads("a = atom.acq_rel.sys.add x, 1", "b = atom.acq_rel.sys.add x, 1"),
        "[x] != 2",
    ),
    published(
        "additions of a block, in two blocks",
        True,
        "Manual/Atom-plus-location-weak_",
        threads("a = atom.acq_rel.cta.add x, 1", "b = atom.acq_rel.cta.add x, 1"),
        "[x] != 2",
    ),
    # Three and four threads.
    published(
        "three threads, weak reads and fences of two scopes",
        True,
        "Memalloy/WRC1, after POPL 2017",
        threads(
            "st.weak x, 1",
            "a = ld.weak x; fence.sc.cta; st.weak y, 1",
            "b = ld.weak x; fence.sc.gpu; c = ld.weak y",
            places=PAIR,
        ),
        "a == 1 and b == 1 and c == 0",
    ),
    published(
        "four threads, weak accesses of one word",
        True,
        "Memalloy/IRIW_uniproc, after POPL 2017",
        threads(
            "st.weak x, 1",
            "a = ld.weak x; fence.sc.cta; b = ld.weak x",
            "st.weak x, 2",
            "c = ld.weak x; fence.sc.gpu; d = ld.weak x",
            places=PAIR,
        ),
        "a == 1 and b == 0 and c == 2 and d == 2 and [x] == 1",
    ),
    published(
        "four threads, acquire and release",
        True,
        "ASPLOS 2019: independent reads of independent writes need fences sc",
        threads(
            "st.release.gpu x, 1",
            "a = ld.acquire.gpu x; b = ld.acquire.gpu y",
            "st.release.gpu y, 1",
            "c = ld.acquire.gpu y; d = ld.acquire.gpu x",
        ),
        "a == 1 and b == 0 and c == 1 and d == 0",
    ),
    published(
        "four threads, fences sc",
        False,
        "ASPLOS 2019: independent reads of independent writes need fences sc",
        threads(
            "st.relaxed.gpu x, 1",
            "a = ld.relaxed.gpu x; fence.sc.gpu; b = ld.relaxed.gpu y",
            "st.relaxed.gpu y, 1",
            "c = ld.relaxed.gpu y; fence.sc.gpu; d = ld.relaxed.gpu x",
        ),
        "a == 1 and b == 0 and c == 1 and d == 0",
    ),
]
